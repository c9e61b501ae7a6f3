#include "tests/sim/register_world.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/coro/sync.h"
#include "tests/support/history.h"
#include "tests/support/linearizability.h"
#include "tests/support/register_fixture.h"

namespace onetrip {
namespace {

constexpr size_t kNodeBytes = size_t{36} * 1024;
constexpr uint64_t kHorizonNs = 30'000;  // faults begin within it
constexpr uint64_t kStepsMax = 400'000;
constexpr uint32_t kRegistersMax = 2;

constexpr NodeId NodeOf(int replica) { return NodeId{static_cast<uint16_t>(replica)}; }

// The programs of a run's clients: 'W' and 'R', one string a client.
using Programs = std::vector<std::string>;

Programs MakePrograms(Rng& rng, bool recycles) {
  // Those that killed all mutants of the protocol when it was explored by hand.
  static const std::array<Programs, 5> kSmall{
      Programs{"W", "WW", "RR", "R"}, Programs{"WW", "WW", "RR"}, Programs{"W", "W", "RRR"},
      Programs{"WW", "RR", "RR"}, Programs{"W", "WW", "WR", "RR"}};
  // A buffer comes back only after several epochs.
  static const std::array<Programs, 2> kLong{Programs{"WWWWWWWW", "RRRRRRRRRR"},
                                             Programs{"WWWWWWWW", "WWWWWWW", "RRRRRRRR"}};
  if (recycles && rng.Below(4) != 0) return kLong[rng.Below(kLong.size())];
  if (rng.Below(4) != 0) return kSmall[rng.Below(kSmall.size())];
  Programs programs(2 + rng.Below(4));
  for (std::string& program : programs) {
    const uint64_t operations = 1 + rng.Below(4);
    for (uint64_t i = 0; i < operations; ++i) program += rng.Below(2) == 0 ? 'W' : 'R';
  }
  return programs;
}

SimFabricOptions MakeNetwork(Rng& rng, uint64_t seed) {
  SimFabricOptions options;
  options.traits.has_max = seed % 3 != 0;
  // A network without MAX may lack more.
  const uint64_t lacks = options.traits.has_max ? 0 : Rng(seed).Next();
  options.traits.reads_first = (lacks & 1) == 0;
  options.atomics_tear = (lacks & 2) != 0;
  options.writes_backwards = (lacks & 4) != 0;
  options.latency_min_ns = 100 + rng.Below(700);
  options.latency_max_ns = options.latency_min_ns + rng.Below(3) * 1000;
  constexpr std::array<uint32_t, 4> kTails{0, 50, 200, 400};
  options.tail_permille = kTails[rng.Below(kTails.size())];
  options.tail_factor = static_cast<uint32_t>(2 + rng.Below(15));
  constexpr std::array<uint64_t, 4> kSteps{0, 5, 40, 200};
  options.step_ns = kSteps[rng.Below(kSteps.size())];
  options.failure_ns = 3000;
  return options;
}

// The buffers of one worker, reused as soon as PROTOCOLS, "Registers", allows it: retired when a
// larger word is at a majority, reused when no operation that began before is left anywhere.
class RecycledBuffers {
 public:
  RecycledBuffers(LittleCluster& cluster, Reclaimer& reclaimer)
      : cluster_(cluster), reclaimer_(reclaimer) {}

  OutBuffer Take(const RegisterShape& shape) {
    const auto safe = [this](const Retired& retired) { return reclaimer_.IsSafe(retired.tag); };
    for (auto it = retired_.begin(); it != retired_.end();) {
      if (safe(*it)) free_.push_back(it->buffer);
      it = safe(*it) ? retired_.erase(it) : it + 1;
    }
    if (free_.empty()) return cluster_.NewBuffer(shape);
    ++reused_;
    const OutBuffer buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  // A write of this worker has ended, its words are at a majority or overtaken there.
  void Written(const RegisterRef& ref, const WriteBuffers& buffers, const WriteOutcome& outcome) {
    const auto used = [&](const OutBuffer& buffer, MetaWord word) {
      return OutBuffer{buffer.addr, {ref.birth.value + word.time()}};
    };
    const bool rewritten = !outcome.rewrite.is_empty();
    if (!rewritten) free_.push_back(buffers.rewrite);
    if (outcome.guess.is_empty()) {
      free_.push_back(buffers.guess);
    } else if (rewritten) {
      Retire(used(buffers.guess, outcome.guess));
    }
    OutBuffer& live = live_[ref.addr.bits()];
    if (!live.addr.is_null()) Retire(live);
    live = rewritten ? used(buffers.rewrite, outcome.rewrite) : used(buffers.guess, outcome.guess);
  }
  [[nodiscard]] uint32_t reused() const { return reused_; }

 private:
  struct Retired {
    uint64_t tag;
    OutBuffer buffer;
  };
  void Retire(const OutBuffer& buffer) { retired_.push_back({reclaimer_.current_epoch(), buffer}); }

  LittleCluster& cluster_;
  Reclaimer& reclaimer_;
  std::vector<OutBuffer> free_;
  std::vector<Retired> retired_;
  std::map<uint64_t, OutBuffer> live_;  // by register
  uint32_t reused_ = 0;
};

class RegisterWorld {
 public:
  RegisterWorld(LittleCluster& cluster, uint64_t seed, const RegisterRunOptions& options)
      : options_(options),
        rng_(seed),
        cluster_(cluster),
        world_(rng_.Next()),
        gate_(world_),
        network_(world_, cluster.endpoints(), MakeNetwork(rng_, seed)) {}

  RegisterReport Run();

 private:
  struct Worker {
    Worker(RegisterWorld& in, uint32_t id, const RegisterOptions& options)
        : by_abd(!options.in_place),
          process(in.world_, in.rng_.Next()),
          parts(process, in.network_, in.cluster_.master(), id, options) {
      for (const RegisterRef& ref : in.registers_) handles.emplace_back(ref, parts.guess_clock);
    }
    Task<Result<ReadOutcome>> Read(RegisterOperation& operation, RegisterHandle& handle) {
      return by_abd ? parts.abd.Read(operation, handle) : parts.safe_guess.Read(operation, handle);
    }
    Task<Status> Write(RegisterOperation& operation, RegisterHandle& handle, WriteBuffers buffers,
                       std::span<const std::byte> value, WriteOutcome* outcome) {
      return by_abd ? parts.abd.Write(operation, handle, buffers, value, outcome)
                    : parts.safe_guess.Write(operation, handle, buffers, value, outcome);
    }
    const bool by_abd;
    SimProcess process;
    RegisterWorker parts;
    std::vector<RegisterHandle> handles;
    Reclaimer reclaimer{parts.context};
    std::unique_ptr<RecycledBuffers> recycled;  // null: every write takes fresh buffers
    std::vector<Task<void>> clients;            // first to go
  };

  void MakeRegisters();
  void MakeWorkers();
  void PlanFaults();
  void PlanPauses();
  void FreezeWriters();
  // Calls `what` once the world's time is `time_ns`.
  void At(uint64_t time_ns, std::function<void()> what) {
    world_.Spawn(gate_, Do(this, time_ns, std::move(what)));
  }
  static Task<void> Do(RegisterWorld* world, uint64_t time_ns, std::function<void()> what) {
    co_await world->world_.SleepUntil(time_ns);
    what();
  }

  static Task<void> RunClient(RegisterWorld* world, Worker* worker, uint32_t client,
                              std::string program, bool alone);
  Task<void> Get(Worker& worker, uint32_t client, uint32_t index);
  Task<void> Set(Worker& worker, uint32_t client, uint32_t index);
  static RegisterOperation Begin(Worker& worker) {
    RegisterOperation operation;
    if (worker.recycled != nullptr) operation.shared_pin = SharedPin(worker.reclaimer.Pin());
    return operation;
  }
  WriteBuffers TakeBuffers(Worker& worker, const RegisterShape& shape) {
    if (worker.recycled == nullptr) return cluster_.NewBuffers(shape);
    const OutBuffer guess = worker.recycled->Take(shape);
    return {guess, worker.recycled->Take(shape)};
  }
  // An operation failed although a majority of nodes answered it.
  void Failed(std::string_view what, const Status& status) {
    if (excused_) return;
    Report(std::string(what) + " failed: " + status.message());
  }
  void Report(std::string failure) {
    if (report_.failure.empty()) report_.failure = std::move(failure);
  }
  void Finish();

  const RegisterRunOptions options_;
  Rng rng_;
  LittleCluster& cluster_;
  SimExecutor world_;
  Gate gate_;
  SimNetwork network_;
  std::vector<RegisterRef> registers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> writes_;  // by worker: its programs write
  History history_;
  RegisterReport report_;
  uint32_t values_ = 0;
  uint32_t value_bytes_max_ = 0;
  uint64_t delay_ns_ = 0;
  bool excused_ = false;
  bool loses_nodes_ = false;  // one, or a connection to one
  bool frozen_ = false;
};

std::string KeyName(uint32_t index) { return std::string(1, static_cast<char>('a' + index)); }

Task<void> RegisterWorld::Get(Worker& worker, uint32_t client, uint32_t index) {
  const size_t op = history_.Start(client, {"GET", KeyName(index)}, world_.NowNs());
  ++report_.operations;
  RegisterOperation operation = Begin(worker);
  const Result<ReadOutcome> outcome = co_await worker.Read(operation, worker.handles[index]);
  if (!outcome.ok()) co_return Failed("GET", outcome.status());
  ++report_.finished;
  report_.fast_reads += operation.round_trips == 1 ? 1 : 0;
  const ReadOutcome& read = outcome.value();
  report_.iterations_max = std::max(report_.iterations_max, read.iterations);
  const auto writers = static_cast<uint32_t>(std::count(writes_.begin(), writes_.end(), true));
  if (read.iterations > 2 * writers + 1) Report("a read took more iterations than 2 n + 1");
  if (read.stalls > 0) Report("a read could not lock one guess twice");
  if (read.end == RegisterEnd::kEmpty) {
    history_.Finish(op, std::string(kRespNil), world_.NowNs());
  } else if (read.end == RegisterEnd::kDone) {
    history_.Finish(op, RespBulk(TextOf(read.tuple.value.bytes)), world_.NowNs());
  } else {
    Report("a read was interrupted, but nobody seals");
  }
}

Task<void> RegisterWorld::Set(Worker& worker, uint32_t client, uint32_t index) {
  // Different everywhere, so that mixtures of two values are neither.
  std::string value = std::to_string(++values_) + "-";
  const uint64_t bytes = rng_.Below(value_bytes_max_ - 8);
  while (value.size() < bytes) value += static_cast<char>('a' + values_ % 26);
  RegisterHandle& handle = worker.handles[index];
  const WriteBuffers buffers = TakeBuffers(worker, handle.ref.shape);
  const size_t op = history_.Start(client, {"SET", KeyName(index), value}, world_.NowNs());
  ++report_.operations;
  RegisterOperation operation = Begin(worker);
  WriteOutcome outcome;
  const Status status = co_await worker.Write(operation, handle, buffers, BytesOf(value), &outcome);
  if (!status.ok()) co_return Failed("SET", status);
  ++report_.finished;
  report_.fast_writes += operation.round_trips == 1 ? 1 : 0;
  if (outcome.end != RegisterEnd::kDone) {
    co_return Report("a write was interrupted or exhausted, but nobody seals");
  }
  history_.Finish(op, std::string(kRespOk), world_.NowNs());
  if (worker.recycled != nullptr) worker.recycled->Written(handle.ref, buffers, outcome);
}

Task<void> RegisterWorld::RunClient(RegisterWorld* world, Worker* worker, uint32_t client,
                                    std::string program, bool alone) {
  if (worker->recycled != nullptr) {
    // Without a place in the epochs it must not touch what others recycle.
    const Status joined = co_await worker->reclaimer.Join();
    if (!joined.ok()) co_return;
  }
  for (const char step : program) {
    if (worker->recycled != nullptr) (void)co_await worker->reclaimer.Tick({});
    co_await worker->process.SleepFor(world->rng_.Below(world->delay_ns_ + 1));
    const auto index = static_cast<uint32_t>(world->rng_.Below(world->registers_.size()));
    RegisterHandle& handle = worker->handles[index];
    if (alone && world->rng_.Below(8) == 0) {
      // Its cache entry was evicted.
      worker->parts.guess_clock.Forget(handle.times);
      handle = RegisterHandle(handle.ref, worker->parts.guess_clock);
    }
    if (step == 'W') {
      co_await world->Set(*worker, client, index);
    } else {
      co_await world->Get(*worker, client, index);
    }
  }
}

void RegisterWorld::MakeRegisters() {
  constexpr std::array<uint32_t, 4> kLanes{1, 2, 4, 16};
  constexpr std::array<uint32_t, 3> kInPlace{0, 32, 64};
  RegisterShape shape;
  shape.lanes = kLanes[rng_.Below(kLanes.size())];
  shape.in_place_bytes = kInPlace[rng_.Below(kInPlace.size())];
  shape.buffer_bytes = rng_.Below(2) == 0 ? 96 : 128;
  value_bytes_max_ = shape.value_bytes_max();
  const Ticks birth = TicksOfNs(kClusterOffsetNs - rng_.Below(1'000'000));
  const uint64_t count = rng_.Below(5) == 0 ? kRegistersMax : 1;
  for (uint64_t i = 0; i < count; ++i) {
    registers_.push_back(cluster_.CreateRegister(shape, rng_.Next(), birth));
  }
}

void RegisterWorld::MakeWorkers() {
  RegisterOptions options;
  options.widen_first_ns = 1000 + rng_.Below(30'000);
  constexpr std::array<uint64_t, 3> kDelays{200, 3000, 12'000};
  delay_ns_ = kDelays[rng_.Below(kDelays.size())];
  constexpr std::array<uint64_t, 4> kSkews{0, 2000, 20'000, 1'000'000};
  const uint64_t skew_ns = kSkews[rng_.Below(kSkews.size())];
  const bool shared = rng_.Below(6) == 0;
  const bool recycles = !shared && rng_.Below(6) == 0;
  const Programs programs = MakePrograms(rng_, recycles);
  options.ask_all = rng_.Below(2) == 0;
  // Each worker has its own idea of which nodes are near.
  const uint64_t one_far_of = rng_.Below(2) == 0 ? 2 : 6;
  uint32_t client = 0;
  for (const std::string& program : programs) {
    options.in_place = options_.protocol == RegisterProtocol::kSafeGuess ||
                       (options_.protocol == RegisterProtocol::kMixed && rng_.Below(2) == 0);
    workers_.push_back(std::make_unique<Worker>(*this, client + 1, options));
    Worker& worker = *workers_.back();
    worker.parts.wild_clock.Jump(static_cast<int64_t>(rng_.Below(2 * skew_ns + 1)) -
                                 static_cast<int64_t>(skew_ns));
    for (int node = 0; node < cluster_.replicas(); ++node) {
      if (rng_.Below(one_far_of) != 0) continue;
      worker.parts.sim_fabric->SetSlowness(NodeOf(node), 1 + static_cast<uint32_t>(rng_.Below(8)));
    }
    if (recycles) {
      worker.recycled = std::make_unique<RecycledBuffers>(cluster_, worker.reclaimer);
    }
    writes_.push_back(program.find('W') != std::string::npos);
    worker.clients.push_back(RunClient(this, &worker, client++, program, !shared));
    if (shared) worker.clients.push_back(RunClient(this, &worker, client++, "RR", false));
  }
}

void RegisterWorld::PlanFaults() {
  const auto some_worker = [this] { return workers_[rng_.Below(workers_.size())].get(); };
  const auto some_node = [this] {
    return NodeId{static_cast<uint16_t>(rng_.Below(static_cast<uint64_t>(cluster_.replicas())))};
  };
  const auto soon = [this] { return 1 + rng_.Below(kHorizonNs); };
  if (rng_.Below(3) == 0)
    network_.SetSlowness(some_node(), 2 + static_cast<uint32_t>(rng_.Below(9)));
  if (rng_.Below(4) == 0) {
    // One worker's writes are at one node long before they are at the others.
    Worker* worker = some_worker();
    const NodeId near = some_node();
    const auto slowness = static_cast<uint32_t>(10 + rng_.Below(100));
    for (int node = 0; node < cluster_.replicas(); ++node) {
      if (NodeOf(node) != near) worker->parts.sim_fabric->SetSlowness(NodeOf(node), slowness);
    }
  }
  if (!options_.faults) return;
  const bool node_crashes = rng_.Below(4) == 0;
  loses_nodes_ = node_crashes;
  if (node_crashes) {
    const NodeId node = some_node();
    At(soon(), [this, node] { cluster_.node(node.value).SetReachable(false); });
  }
  if (rng_.Below(4) == 0) {
    // The messages that it sent may be lost with it, node by node a part.
    Worker* worker = some_worker();
    const bool loses = rng_.Below(2) == 0;
    loses_nodes_ |= loses;
    At(soon(), [this, worker, loses] {
      worker->process.Kill();
      for (int node = 0; loses && node < cluster_.replicas(); ++node) {
        worker->parts.sim_fabric->BreakChannel(NodeOf(node));
      }
    });
  }
  if (rng_.Below(12) == 0) {
    // Together with a node that crashed it may leave an operation without a majority.
    Worker* worker = some_worker();
    const NodeId node = some_node();
    excused_ = node_crashes;
    loses_nodes_ = true;
    At(soon(), [worker, node] { worker->parts.sim_fabric->BreakChannel(node); });
  }
  for (uint64_t i = rng_.Below(4); i > 0; --i) {
    Worker* worker = some_worker();
    const uint64_t from_ns = soon();
    At(from_ns, [worker] { worker->process.Pause(); });
    At(from_ns + rng_.Below(40'000), [worker] { worker->process.Resume(); });
  }
  if (rng_.Below(4) == 0) {
    const NodeId node = some_node();
    const uint64_t from_ns = soon();
    At(from_ns, [this, node] { network_.PauseNode(node); });
    At(from_ns + rng_.Below(40'000), [this, node] { network_.ResumeNode(node); });
  }
  for (uint64_t i = rng_.Below(3); i > 0; --i) {
    Worker* worker = some_worker();
    const int64_t jump_ns = static_cast<int64_t>(rng_.Below(100'000)) - 50'000;
    At(soon(), [worker, jump_ns] { worker->parts.wild_clock.Jump(jump_ns); });
  }
}

// Each writer stops at a moment of its own, wherever it is.
void RegisterWorld::FreezeWriters() {
  frozen_ = true;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker* worker = workers_[i].get();
    if (writes_[i]) At(1 + rng_.Below(kHorizonNs / 2), [worker] { worker->process.Pause(); });
  }
}

void RegisterWorld::Finish() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    report_.slow_writes += worker.parts.safe_guess.slow_writes();
    // Nothing is recycled under an operation that began before.
    if (!loses_nodes_ && worker.parts.safe_guess.max_register().restarts() > 0) {
      Report("a value was not in its buffer, but no node was lost");
    }
    if (worker.recycled != nullptr) report_.reused += worker.recycled->reused();
    report_.rewrites += worker.parts.safe_guess.rewrites();
    if (worker.process.dead() || (frozen_ && writes_[i])) continue;
    for (const Task<void>& client : worker.clients) {
      if (!client.done()) Report("an operation of a live worker did not end");
    }
  }
  const CheckResult checked = CheckHistory(history_.ops());
  if (!checked.ok()) Report(checked.message);
  if (!report_.ok()) report_.failure += "\n" + DescribeHistory(history_.ops());
  report_.trace = world_.steps() * 0x9e3779b97f4a7c15ULL + world_.NowNs();
  for (const HistoryOp& op : history_.ops()) {
    for (const char c : op.reply) report_.trace = report_.trace * 31 + static_cast<uint8_t>(c);
    report_.trace = report_.trace * 31 + op.end_ns;
  }
}

RegisterReport RegisterWorld::Run() {
  MakeRegisters();
  MakeWorkers();
  PlanFaults();
  if (options_.freeze_writers) FreezeWriters();
  for (const auto& worker : workers_) {
    for (Task<void>& client : worker->clients) client.Start();
  }
  if (!world_.RunUntilIdle(kStepsMax)) Report("the run did not come to rest");
  // A value that was acknowledged is there for a late reader.
  workers_.push_back(std::make_unique<Worker>(*this, 1000, RegisterOptions{}));
  writes_.push_back(false);
  Worker& late = *workers_.back();
  late.clients.push_back(RunClient(this, &late, 1000, "RRR", true));
  late.clients.back().Start();
  if (!world_.RunUntilIdle(kStepsMax)) Report("the late reader did not come to rest");
  Finish();
  for (const auto& worker : workers_) {
    worker->process.Kill();
    worker->process.DropBackground();
    worker->clients.clear();
  }
  world_.DropBackground();
  return std::move(report_);
}

constexpr RegisterBug kRegisterBugs[] = {
    {Bug::kNoAnnounce, "no_announce"},
    {Bug::kNoWriteBack, "no_write_back"},
    {Bug::kWriteBackWithoutBytes, "write_back_without_bytes"},
    {Bug::kSeenPerRegister, "seen_per_register"},
    {Bug::kInPlaceHashWithoutWord, "in_place_hash_without_word", RegisterProtocol::kSafeGuess,
     175'500},
    {Bug::kFirstWordPlain, "first_word_plain"},
    {Bug::kMaxSetsBack, "max_sets_back"},
    {Bug::kLooksByRead, "looks_by_read"},
    {Bug::kLockAtMinority, "lock_at_minority"},
    {Bug::kNoWriteLock, "no_write_lock"},
    {Bug::kNoReaderLock, "no_reader_lock"},
    {Bug::kNoSecondRead, "no_second_read", RegisterProtocol::kSafeGuess, 72'790},
    {Bug::kNeverRewrite, "never_rewrite"},
    {Bug::kSameWriterNewest, "same_writer_newest"},
    {Bug::kSecondhandCounts, "secondhand_counts"},
    {Bug::kMajorityIsEverywhere, "majority_is_everywhere"},
    {Bug::kBesideOfAnyWrite, "beside_of_any_write"},
    {Bug::kNoWriteBack, "abd_no_write_back", RegisterProtocol::kAbd},
    {Bug::kAbdStaleTimestamp, "abd_stale_timestamp", RegisterProtocol::kAbd},
    {Bug::kAbdStaleTimestamp, "mixed_stale_timestamp", RegisterProtocol::kMixed},
};

}  // namespace

RegisterReport RunRegisters(uint64_t seed, const RegisterRunOptions& options) {
  static LittleCluster three(3, kNodeBytes);
  static LittleCluster five(5, kNodeBytes);
  LittleCluster& cluster = seed % 8 == 7 ? five : three;
  cluster.Clear();
  return RegisterWorld(cluster, seed, options).Run();
}

std::span<const RegisterBug> RegisterBugs() { return kRegisterBugs; }

}  // namespace onetrip
