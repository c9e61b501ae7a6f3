#include "bench/command_costs.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/coro/sync.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/resp_writer.h"
#include "tests/unit/redis_fake_hooks.h"

namespace onetrip {
namespace {

constexpr size_t kValueBytes = 64;
constexpr size_t kLargerValueBytes = 4096;
constexpr uint32_t kKeysOfSeveral = 10;
// Longer than an epoch's tick: words that a worker has seen before may have come again since.
constexpr uint64_t kRestNs = 100'000'000;
constexpr uint64_t kForTheAgedNs = 40ULL * 60 * 1'000'000'000;

// The client that executes a step of a key's past: the one that is measured later, or another one.
enum class By : uint8_t { kNone, kOwn, kOther };

// In a line, %k is the key, %v a value, %V a larger one, %p ten keys with a value each, %l ten
// keys.
struct Step {
  By by = By::kNone;
  std::string_view line{};
};

struct Case {
  std::string_view command;
  std::string_view key;
  Step past[2];
  std::string_view line;   // the measured call
  std::string_view reply;  // its reply begins so
  bool hot = false;        // all calls of a client are on one key, one after the other
  uint64_t age_ns = kRestNs;
};

// "Cold": the key is there, and the client has not used it yet. "Known": it was the last to write
// it, some epochs ago. "Written since": another one has written the key since then.
constexpr std::string_view kNew = "new";
constexpr std::string_view kCold = "cold";
constexpr std::string_view kKnown = "known";
constexpr std::string_view kWrittenSince = "known, written since";
constexpr std::string_view kOverRegister = "known, a register";
constexpr std::string_view kOverRecord = "known, a record";
constexpr std::string_view kSet = "SET %k %v";
constexpr std::string_view kSetNumber = "SET %k 1000";
constexpr std::string_view kGet = "GET %k";
constexpr std::string_view kIncr = "INCR %k";
constexpr std::string_view kSetEx = "SET %k %v EX 100000";
constexpr std::string_view kAppend = "APPEND %k %v";
constexpr std::string_view kDel = "DEL %k";
constexpr std::string_view kMSet = "MSET %p";
constexpr std::string_view kMGet = "MGET %l";
constexpr std::string_view kSetLarger = "SET %k %V";
constexpr std::string_view kOk = "+OK";

constexpr Case kCases[] = {
    {"SET", kNew, {}, kSet, kOk},
    {"SET", kCold, {{By::kOther, kSet}}, kSet, kOk},
    {"SET", kKnown, {{By::kOwn, kSet}, {By::kOwn, kSet}}, kSet, kOk},
    {"SET", kWrittenSince, {{By::kOwn, kSet}, {By::kOther, kSet}}, kSet, kOk},
    {"SET", "known, 40 minutes old", {{By::kOwn, kSet}}, kSet, kOk, false, kForTheAgedNs},
    {"SET", kOverRecord, {{By::kOwn, kIncr}, {By::kOwn, kIncr}}, kSet, kOk},
    {"GET", "missing", {}, kGet, "$-1"},
    {"GET", kCold, {{By::kOther, kSet}}, kGet, "$64"},
    {"GET", kKnown, {{By::kOwn, kSet}, {By::kOwn, kSet}}, kGet, "$64"},
    {"GET", kWrittenSince, {{By::kOwn, kSet}, {By::kOther, kSet}}, kGet, "$64"},
    {"GET", kOverRecord, {{By::kOwn, kAppend}, {By::kOwn, kGet}}, kGet, "$64"},
    {"GET of 4 KiB", kCold, {{By::kOther, kSetLarger}}, kGet, "$4096"},
    {"GET of 4 KiB", kKnown, {{By::kOwn, kSetLarger}, {By::kOwn, kSetLarger}}, kGet, "$4096"},
    {"INCR", kNew, {}, kIncr, ":1\r"},
    {"INCR", kCold, {{By::kOther, kIncr}}, kIncr, ":2\r"},
    {"INCR", kKnown, {{By::kOwn, kIncr}, {By::kOwn, kIncr}}, kIncr, ":3\r"},
    {"INCR", "own, hot", {{By::kOwn, kIncr}}, kIncr, ":", true},
    {"INCR", kWrittenSince, {{By::kOwn, kIncr}, {By::kOther, kIncr}}, kIncr, ":3\r"},
    {"INCR", "cold, a register", {{By::kOther, kSetNumber}}, kIncr, ":1001"},
    {"INCR", kOverRegister, {{By::kOwn, kSetNumber}}, kIncr, ":1001"},
    {"SETNX", kNew, {}, "SETNX %k %v", ":1"},
    {"SETNX", "there, cold", {{By::kOther, kSet}}, "SETNX %k %v", ":0"},
    {"SETNX", "there, known", {{By::kOwn, kSet}, {By::kOwn, kSet}}, "SETNX %k %v", ":0"},
    {"SET EX", kNew, {}, kSetEx, kOk},
    {"SET EX", kCold, {{By::kOther, kSetEx}}, kSetEx, kOk},
    {"SET EX", kKnown, {{By::kOwn, kSetEx}, {By::kOwn, kSetEx}}, kSetEx, kOk},
    {"SET EX", "own, hot", {{By::kOwn, kSetEx}, {By::kOwn, kSetEx}}, kSetEx, kOk, true},
    {"SET EX", kOverRegister, {{By::kOwn, kSet}}, kSetEx, kOk},
    {"APPEND", kNew, {}, kAppend, ":64"},
    {"APPEND", kCold, {{By::kOther, kAppend}}, kAppend, ":128"},
    {"APPEND", kKnown, {{By::kOwn, kAppend}, {By::kOwn, kAppend}}, kAppend, ":192"},
    {"APPEND", kOverRegister, {{By::kOwn, kSet}}, kAppend, ":128"},
    {"DEL", "missing", {}, kDel, ":0"},
    {"DEL", kCold, {{By::kOther, kSet}}, kDel, ":1"},
    {"DEL", kOverRegister, {{By::kOwn, kSet}, {By::kOwn, kSet}}, kDel, ":1"},
    {"DEL", kOverRecord, {{By::kOwn, kIncr}, {By::kOwn, kIncr}}, kDel, ":1"},
    {"MSET of ten", kNew, {}, kMSet, kOk},
    {"MSET of ten", kCold, {{By::kOther, kMSet}}, kMSet, kOk},
    {"MSET of ten", kKnown, {{By::kOwn, kMSet}, {By::kOwn, kMSet}}, kMSet, kOk},
    {"MGET of ten", kCold, {{By::kOther, kMSet}}, kMGet, "*10"},
    {"MGET of ten", kKnown, {{By::kOwn, kMSet}, {By::kOwn, kMSet}}, kMGet, "*10"},
};

bool IsOverSeveral(const Case& of) { return of.line == kMSet || of.line == kMGet; }

std::vector<std::string> Arguments(std::string_view line, const std::string& key) {
  std::vector<std::string> arguments;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word == "%p" || word == "%l") {
      for (uint32_t i = 0; i < kKeysOfSeveral; ++i) {
        arguments.push_back(key + ":" + std::to_string(i));
        if (word == "%p") arguments.emplace_back(kValueBytes, 'v');
      }
    } else if (word == "%k") {
      arguments.push_back(key);
    } else if (word == "%v") {
      arguments.emplace_back(kValueBytes, 'v');
    } else if (word == "%V") {
      arguments.emplace_back(kLargerValueBytes, 'v');
    } else {
      arguments.emplace_back(word);
    }
  }
  return arguments;
}

// A connection of its own with a worker of its own.
class CommandClient {
 public:
  CommandClient(uint64_t id, TestCluster& cluster, Executor& executor, SimNetwork& network,
                const DataPathOptions& options)
      : CommandClient(id, cluster, executor, std::make_unique<SimFabric>(executor, network),
                      options) {}
  void Stop() { worker_.Stop(); }
  [[nodiscard]] bool idle() const { return fabric_.idle(); }

  // `arguments` lives until the Task completes. An empty `expected` is any reply but an error.
  Task<void> Call(const std::vector<std::string>& arguments, std::string_view expected) {
    const std::vector<std::string_view> argv(arguments.begin(), arguments.end());
    ReplyWriter out(output_, session_.protocol);
    CommandContext context{session_, hooks_, worker_.kv(), hooks_.stats(), out, argv};
    co_await Dispatch(context);
    const std::string reply = output_.TEST_ToString();
    output_.Clear();
    if (!reply.starts_with(expected) || reply.starts_with("-")) {
      fprintf(stderr, "%s %s was answered %s\n", arguments[0].c_str(), arguments[1].c_str(),
              reply.c_str());
      CheckFailed(__FILE__, __LINE__, "the expected reply");
    }
  }

  [[nodiscard]] uint64_t round_trips() {
    const StoreMetrics& metrics = worker_.kv().metrics();
    return metrics.get_round_trips.Sum() + metrics.set_round_trips.Sum() +
           metrics.del_round_trips.Sum() + metrics.rmw_round_trips.Sum();
  }

 private:
  CommandClient(uint64_t id, TestCluster& cluster, Executor& executor,
                std::unique_ptr<SimFabric> fabric, const DataPathOptions& options)
      : fabric_(*fabric),
        worker_(cluster, executor, std::move(fabric), EngineKind::kSwarm, options) {
    worker_.Start();
    InitializeSession(session_, id, 0, hooks_.config());
  }

  SimFabric& fabric_;  // worker_ owns it
  TestWorker worker_;
  FakeHooks hooks_;
  Session session_;
  OutputBuffer output_;
};

class CommandWorld {
 public:
  explicit CommandWorld(uint64_t seed)
      : executor_(seed),
        cluster_(executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 1ULL << 30}),
        network_(executor_, cluster_.endpoints(), EvenFabric(kCommandRoundTripNs / 2)) {
    network_.set_instant(true);
    DataPathOptions options;
    options.location_cache_bytes = 16ULL << 20;
    for (uint32_t i = 0; i < kCommandClients; ++i) {
      clients_.push_back(
          std::make_unique<CommandClient>(i + 1, cluster_, executor_, network_, options));
    }
    for (uint32_t i = 0; i < kCommandBaseKeys; ++i) {
      CallNow(*clients_[i % kCommandClients], kSet, "base:" + std::to_string(i));
    }
  }
  CommandWorld(const CommandWorld&) = delete;
  CommandWorld& operator=(const CommandWorld&) = delete;
  ~CommandWorld() {
    for (auto& client : clients_) client->Stop();
  }

  std::vector<OpCost> Measure(const Case& of, size_t index, uint32_t calls) {
    const uint32_t each = std::max(1U, calls / kCommandClients);
    const auto key_of = [&of, index](size_t client, uint32_t call) {
      return "row" + std::to_string(index) + ":" + std::to_string(client) + ":" +
             std::to_string(of.hot ? 0 : call);
    };
    for (const Step& step : of.past) {
      if (step.by == By::kNone) continue;
      for (size_t i = 0; i < clients_.size(); ++i) {
        CommandClient& client = *clients_[(i + (step.by == By::kOther ? 1 : 0)) % clients_.size()];
        for (uint32_t call = 0; call < each; ++call) CallNow(client, step.line, key_of(i, call));
      }
    }
    executor_.RunUntil(executor_.NowNs() + of.age_ns);
    network_.set_instant(false);
    std::vector<OpCost> costs;
    Gate gate(executor_);
    running_ = kCommandClients;
    for (size_t i = 0; i < clients_.size(); ++i) {
      std::vector<std::vector<std::string>> lines;
      for (uint32_t call = 0; call < each; ++call) {
        lines.push_back(Arguments(of.line, key_of(i, call)));
      }
      executor_.Spawn(gate, RunCalls(*clients_[i], std::move(lines), of.reply, &costs));
    }
    while (running_ > 0) CHECK(executor_.RunOnce());
    // Steps behind an answer end before messages take no time again.
    executor_.RunUntil(executor_.NowNs() + kRestNs);
    const auto is_idle = [](const auto& client) { return client->idle(); };
    while (!std::all_of(clients_.begin(), clients_.end(), is_idle)) CHECK(executor_.RunOnce());
    network_.set_instant(true);
    return costs;
  }

 private:
  void CallNow(CommandClient& client, std::string_view line, const std::string& key) {
    const std::vector<std::string> arguments = Arguments(line, key);
    BlockOn(executor_, client.Call(arguments, ""));
  }

  Task<void> RunCalls(CommandClient& client, std::vector<std::vector<std::string>> lines,
                      std::string_view reply, std::vector<OpCost>* costs) {
    // They do not march in step.
    co_await executor_.SleepFor(executor_.rng().Below(kCommandRoundTripNs));
    for (const std::vector<std::string>& arguments : lines) {
      const uint64_t start_ns = executor_.NowNs();
      const uint64_t before = client.round_trips();
      co_await client.Call(arguments, reply);
      const auto counted = static_cast<uint32_t>(client.round_trips() - before);
      costs->push_back({OpKind::kCommand, counted, executor_.NowNs() - start_ns});
    }
    --running_;
  }

  SimExecutor executor_;
  TestCluster cluster_;
  SimNetwork network_;
  std::vector<std::unique_ptr<CommandClient>> clients_;
  uint32_t running_ = 0;
};

}  // namespace

void MeasureCommands(uint32_t calls, uint64_t seed,
                     const std::function<void(const CommandCosts& row)>& show) {
  CommandWorld world(seed);
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const Case& of = kCases[i];
    show({of.command, of.key, IsOverSeveral(of), world.Measure(of, i, calls)});
  }
}

}  // namespace onetrip
