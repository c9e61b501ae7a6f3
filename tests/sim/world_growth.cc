// The end of a run in which the index has grown: new keys must find their place.
#include <string>

#include "tests/sim/crowded_keys.h"
#include "tests/sim/world.h"

namespace onetrip {

Task<void> World::InsertAll(Agent* agent, uint64_t until_ns) {
  for (size_t i = 0; i < kLastGrowingKeys; ++i) {
    const Command command{"SET", GrowingKeys()[i], "last" + std::to_string(i)};
    for (bool done = false; !done;) {
      co_await NextTurn(agent);
      const size_t index = history_.Start(kGrower, command, executor_.NowNs());
      std::string reply;
      co_await agent->Execute(&command, &reply);
      history_.Finish(index, reply, executor_.NowNs());
      trace_.Note("the last insert gets " + Quote(reply, 60));
      const Ending ending = history_.ops()[index].ending;
      done = ending == Ending::kAnswered || reply.starts_with("-OOM");
      if (ending == Ending::kFault || (!done && executor_.NowNs() >= until_ns)) {
        Fail("after all faults a key cannot be inserted: " + DescribeOp(history_.ops()[index]));
        co_return;
      }
    }
  }
}

bool World::GrowAtTheEnd() {
  const uint64_t until_ns = executor_.NowNs() + Patience();
  Agent* const agent = JoinAtTheEnd(until_ns);
  if (agent == nullptr) return false;
  agent->process().Spawn(agent->gate(), InsertAll(agent, executor_.NowNs() + Patience()));
  return RunUntilDone("the last inserts");
}

}  // namespace onetrip
