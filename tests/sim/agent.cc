#include "tests/sim/agent.h"

#include <utility>
#include <vector>

#include "redis_compat/dispatch.h"
#include "redis_compat/output_buffer.h"
#include "redis_compat/resp_writer.h"

namespace onetrip {

Agent::Agent(SimExecutor& world, SimNetwork& network, SimMaster& master, uint64_t seed)
    : process_(world, seed),
      fabric_(std::make_unique<SimFabric>(process_, network)),
      hold_(process_),
      master_(process_, master),
      gate_(process_) {}

// Frames first: they refer to everything below them.
Agent::~Agent() { process_.DropBackground(); }

Task<Status> Agent::Start(DataPathOptions options, MemoryObserver* observer) {
  constexpr uint64_t kAskAgainNs = 50'000;
  Result<Membership> membership = co_await master_.Join(hold_);
  while (!membership.ok()) {
    if (membership.status().code() != StatusCode::kUnavailable) co_return membership.status();
    co_await process_.SleepFor(kAskAgainNs);
    membership = co_await master_.Join(hold_);
  }
  context_ = std::make_unique<WorkerContext>(process_, *fabric_, master_, hold_, membership.value(),
                                             options);
  context_->memory_observer = observer;
  engine_ = MakeEngine(EngineKind::kSwarm, *context_);
  kv_ = std::make_unique<Kv>(*context_, *engine_);
  const Status status = co_await kv_->Start();
  started_ = status.ok();
  co_return status;
}

Task<void> Agent::Stop() {
  const Status status = co_await kv_->Stop();
  if (status.ok()) (void)co_await context_->master.Leave(hold_, context_->membership);
}

Task<void> Agent::Execute(const Command* command, std::string* reply) {
  Session session;
  InitializeSession(session, next_session_++, process_.NowNs(), hooks_.config());
  OutputBuffer output;
  ReplyWriter out(output, session.protocol);
  const std::vector<std::string_view> argv(command->begin(), command->end());
  CommandContext context{session, hooks_, *kv_, hooks_.stats(), out, argv};
  co_await Dispatch(context);
  *reply = output.TEST_ToString();
}

}  // namespace onetrip
