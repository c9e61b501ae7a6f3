// The end of a run in which agents have died: nothing that they had is lost for good.
#include <string>

#include "tests/sim/world.h"
#include "tests/support/index_worker.h"

namespace onetrip {
namespace {

// Counts account_rest_us: every agent's turn, twice, and rests between looks.
constexpr uint64_t kRests = 40;
constexpr uint64_t kLooksNs = 200'000'000;
// A sweep rests for up to 200 ms, and begins anew behind what it has met.
constexpr uint64_t kSweepNs = 2'000'000'000;

}  // namespace

Task<void> World::StopWell(Agent* agent) {
  const Status status = co_await agent->Stop();
  if (!status.ok()) Fail("after all faults an agent cannot end: " + std::string(status.message()));
}

// Whoever flushed may have died before its sweep had ended.
bool World::AllFlushedIsGone() {
  const uint64_t until_ns = executor_.NowNs() + kSweepNs;
  while (LookAtIndex(Endpoints(), master_.newest_view()).flushed != 0) {
    if (executor_.NowNs() >= until_ns) {
      Fail("flushed keys are still there");
      return false;
    }
    executor_.RunUntil(executor_.NowNs() + kSweepNs / 100);
  }
  return true;
}

// One more dies when all are well, so that what connections lost is looked for, too.
bool World::DieAtTheEnd() {
  OutlastFaults(plan_.faults);
  const uint64_t until_ns = executor_.NowNs() + Patience();
  if (JoinAtTheEnd(until_ns) == nullptr) return false;
  Agent* const dying = LiveAgent(static_cast<uint32_t>(plan_.seed % plan_.agents));
  if (dying == nullptr) return true;
  trace_.Note("one agent more dies");
  Bury(dying);
  const WorkerIndex seat = dying->context().membership.index;
  uint64_t before = master_.taken_over();
  while (master_.taken_over() == before && failure_.empty()) {
    if (master_.newest_view().IsLive(seat)) before = master_.taken_over();
    if (executor_.NowNs() >= until_ns) Fail("what the last to die had is not taken over");
    if (!executor_.RunOnce()) break;
  }
  const uint64_t rest_ns = plan_.data_path.account_rest_us * 1000;
  executor_.RunUntil(executor_.NowNs() + kLooksNs + kRests * rest_ns);
  if (!AllFlushedIsGone()) return false;
  trace_.EndLines();
  for (const auto& agent : agents_) {
    if (!agent->dead()) agent->process().Spawn(agent->gate(), StopWell(agent.get()));
  }
  if (!RunUntilDone("the end")) return false;
  if (LookAtIndex(Endpoints(), master_.newest_view()).claims != 0) Fail("a claim has no end");
  AccountForAll(/*owes_look=*/false);
  return failure_.empty();
}

}  // namespace onetrip
