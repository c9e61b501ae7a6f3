#include "tests/sim/agent.h"

#include <utility>
#include <vector>

#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/reply_flow.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

namespace {

// A client that takes a while, and then all that is there, or nothing before the end.
class SlowClient final : public ReplyFlow {
 public:
  SlowClient(Executor& executor, OutputBuffer& output) : executor_(executor), output_(output) {}

  Task<bool> AwaitTaken() override {
    constexpr uint64_t kMostNs = 20'000;
    co_await executor_.SleepFor(executor_.rng().Below(kMostNs));
    const bool takes_it = executor_.rng().Below(4) > 0;
    if (takes_it) Take();
    co_return takes_it;
  }
  Task<void> Relieve() override { (void)co_await AwaitTaken(); }
  void Take() {
    taken_ += output_.TEST_ToString();
    output_.Clear();
  }
  [[nodiscard]] const std::string& taken() const { return taken_; }

 private:
  Executor& executor_;
  OutputBuffer& output_;
  std::string taken_;
};

}  // namespace

Agent::Agent(const World& world, uint32_t number, uint64_t seed, SimMasterClient::Events events)
    : number_(number),
      engine_kind_(world.engine),
      transactions_every_(world.transactions_every),
      look_ns_(world.control.reach_look_us * 1000),
      process_(world.executor, seed),
      network_(world.network),
      memory_(world.memory),
      meetings_(world.meetings),
      fabric_((world.inline_agents >> (number % 8) & 1) != 0
                  ? std::make_unique<SimFabric>(process_, world.executor, world.network)
                  : std::make_unique<SimFabric>(process_, world.network)),
      hold_(process_),
      master_(process_, world.executor, world.master, world.control,
              "agent " + std::to_string(number), std::move(events)),
      gate_(process_),
      probes_(process_) {}

// Frames first: they refer to everything below them.
Agent::~Agent() {
  process_.Kill();
  process_.DropBackground();
}

void Agent::Die() {
  process_.Kill();
  meetings_.Die();
  master_.link().Die();
}

Task<Status> Agent::Start(DataPathOptions options) {
  master_.Connect();
  if (look_ns_ != 0) co_await AwaitNetwork();
  const Result<Membership> membership = co_await master_.Join(hold_);
  if (!membership.ok()) co_return membership.status();
  context_ = std::make_unique<WorkerContext>(process_, *fabric_, master_, hold_, membership.value(),
                                             options);
  context_->memory_observer = &memory_;
  context_->mechanism_observer = &meetings_;
  engine_ = MakeEngine(engine_kind_, *context_);
  kv_ = std::make_unique<SlotStore>(*context_, *engine_);
  if (!co_await ReachNodes()) {
    co_return Status(StatusCode::kUnavailable, "a memory node cannot be reached");
  }
  const Status status = co_await kv_->Start();
  started_ = status.ok();
  if (started_ && look_ns_ != 0) {
    watch_ = std::make_unique<ReachWatch>(
        process_, look_ns_,
        ReachWatch::Calls{[this] { return master_.view(); },
                          [this](NodeId node) { return fabric_->Reaches(node); },
                          [this, id = membership.value().id](NodeId node, bool reached) {
                            master_.TellReach(id, node, reached);
                            if (!reached) process_.Spawn(probes_, ProbeAgain());
                          }});
  }
  co_return status;
}

bool Agent::Probe(NodeId node) {
  const bool reached = !fabric_->is_cut(node) && network_.endpoint(node).reachable();
  master_.TellProbed(node, reached);
  return reached;
}

Task<void> Agent::AwaitNetwork() {
  while (master_.view_version() == 0) co_await process_.SleepFor(look_ns_);
  while (true) {
    const std::shared_ptr<const View> view = master_.view();
    bool all = true;
    for (uint16_t i = 0; i < view->node_count; ++i) {
      all &= view->IsOut(NodeId{i}) || Probe(NodeId{i});
    }
    awaits_network_ = !all;
    if (all) break;
    co_await process_.SleepFor(look_ns_);
  }
  // Nodes that are out by now are probed again.
  process_.Spawn(probes_, ProbeAgain());
}

Task<void> Agent::ProbeAgain() {
  if (std::exchange(probing_, true)) co_return;
  while (!master_.unreached().entries().empty()) {
    co_await process_.SleepFor(look_ns_);
    for (const NodeId node : master_.unreached().ToProbe()) Probe(node);
  }
  probing_ = false;
}

Task<bool> Agent::ReachNodes() {
  constexpr uint64_t kLookNs = 1000;
  constexpr uint64_t kTimeoutNs = 20'000'000;
  const uint64_t deadline_ns = process_.NowNs() + kTimeoutNs;
  for (uint16_t i = 0; i < context_->view().node_count; ++i) {
    const NodeId node{i};
    // It may come in or go out meanwhile.
    const auto is_out = [&] { return context_->view().IsOut(node); };
    fabric_->SetEvicted(node, is_out());
    while (!is_out() && !fabric_->Reaches(node)) {
      // The agent is cut off meanwhile: no process must wait for a member that has not begun.
      if (look_ns_ != 0 && process_.NowNs() >= deadline_ns) co_return false;
      co_await process_.SleepFor(kLookNs);
      fabric_->SetEvicted(node, is_out());
    }
  }
  co_return true;
}

WorkerUsage Agent::usage() const {
  WorkerUsage usage;
  if (kv_ == nullptr) return usage;
  const AllocatorMetrics& metrics = *kv_->metrics().allocator;
  for (uint8_t i = 0; i < SizeClass::kCount; ++i) {
    usage.free_bytes[i] = metrics.free_bytes.ValueOf(SizeClass(i));
  }
  usage.retired_bytes = metrics.retired_bytes.Value();
  return usage;
}

Task<Status> Agent::Stop() {
  watch_.reset();
  const Status status = co_await kv_->Stop();
  if (!status.ok()) co_return status;
  co_return co_await context_->master.Leave(hold_, context_->membership);
}

Task<void> Agent::End() {
  (void)co_await master_.SayGoodbye(hold_);
  Die();
}

Task<void> Agent::Execute(const Command* command, std::string* reply, uint32_t database,
                          InOrder* in_order) {
  Session session;
  InitializeSession(session, next_session_++, process_.NowNs(), hooks_.config());
  session.database = database;
  if (transactions_every_ != 0 && session.id % transactions_every_ == 0) {
    co_await SendInTransaction(&session, command, reply);
  } else {
    co_await Send(&session, command, reply, in_order);
  }
}

Task<void> Agent::Send(Session* session, const Command* command, std::string* reply,
                       InOrder* in_order) {
  OutputBuffer output;
  ReplyWriter out(output, session->protocol);
  const std::vector<std::string_view> argv(command->begin(), command->end());
  SlowClient client(process_, output);
  CommandContext context{*session, hooks_, *kv_, hooks_.stats(), out, argv};
  context.flow = &client;
  context.in_order = in_order;
  co_await Dispatch(context);
  client.Take();
  *reply = client.taken();
}

// The command's own reply, or EXEC's if that is an error.
Task<void> Agent::SendInTransaction(Session* session, const Command* command, std::string* reply) {
  constexpr std::string_view kArrayOfOne = "*1\r\n";
  const Command multi{"MULTI"};
  const Command exec{"EXEC"};
  co_await Send(session, &multi, reply);
  co_await Send(session, command, reply);
  if (*reply != "+QUEUED\r\n") co_return;
  co_await Send(session, &exec, reply);
  if (reply->starts_with(kArrayOfOne)) reply->erase(0, kArrayOfOne.size());
}

}  // namespace onetrip
