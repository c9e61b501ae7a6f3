// The nemesis client's work beside generations, counters and registers: new keys at full speed,
// values above 1 MiB, deadlines, transactions, and FLUSHALL.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/nemesis/nemesis_run.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr size_t kPipeline = 50;
// Repairs get little of two processors meanwhile, and while they last few other faults happen.
constexpr uint64_t kGrowMsMax = 1500;
constexpr uint64_t kRestMsMax = 4000;
constexpr size_t kBigBytesMin = 1'100'000;
constexpr int kGrownReadsMax = 10;
// An agent that reaches its nodes by a network answers one connection's commands one after another.
constexpr size_t kReaders = 8;
constexpr uint32_t kFlusher = 999;
// A FLUSHALL that no client waits for any more may take effect for this long.
constexpr uint64_t kLateFlushMs = 20'000;

void SleepMs(uint64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Names its number at the beginning and at the end, and between them nothing but that.
std::string BigValue(uint64_t number, uint32_t bytes_max) {
  const std::string name = std::to_string(number) + ",";
  const size_t bytes = kBigBytesMin + number * 7919 % (bytes_max - kBigBytesMin);
  std::string value;
  value.reserve(bytes + name.size());
  while (value.size() < bytes) value += name;
  return value;
}

// The bytes of a bulk string; empty for anything else.
std::string_view BulkIn(std::string_view reply) {
  const size_t line = reply.find("\r\n");
  if (!reply.starts_with("$") || reply == kRespNil || line == std::string_view::npos) return "";
  return reply.substr(line + 2, reply.size() - line - 4);
}

// How a SET ended: +OK is the only answer that says that it was done.
Ending EndOfSet(const Command& set, const std::string& reply) {
  const Ending ending = ClassifyReply(set, reply);
  return ending == Ending::kAnswered && reply != kRespOk ? Ending::kFault : ending;
}

}  // namespace

void NemesisRun::IncrementByExec(size_t agent, Rng& rng, Connection* connection) {
  const size_t counter = options_.counters + rng.Below(options_.watched_counters);
  const std::string key = Lasting::CounterKey(counter);
  const auto give_up = [connection] { connection->Close(); };
  if (Call(agent, connection, {"WATCH", key}) != kRespOk) return give_up();
  const std::string read = Call(agent, connection, {"GET", key});
  if (ClassifyReply({"GET", key}, read) != Ending::kAnswered) return give_up();
  uint64_t value = 1;
  if (read != kRespNil) {
    const std::string digits(BulkIn(read));
    if (digits.empty() || digits.size() > 18 ||
        !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      Fail("GET " + key + " answers " + Quote(read, 64) + ", which nobody has written");
      return give_up();
    }
    value = std::stoull(digits) + 1;
  }
  if (Call(agent, connection, {"MULTI"}) != kRespOk) return give_up();
  const Command set = {"SET", key, std::to_string(value)};
  if (!connection->Connect() || connection->Call(set) != "+QUEUED\r\n") return give_up();
  if (!connection->Connect()) return;
  const std::string reply = connection->Call({"EXEC"});
  std::vector<std::string> replies;
  std::string of_set = reply;
  if (SplitArray(reply, &replies) && replies.size() == 1) of_set = replies[0];
  // Another was faster.
  if (reply == "*-1\r\n" || reply == kRespNil)
    return Note(agent, {"EXEC"}, reply, Ending::kAnswered);
  // EXECABORT is an answer to no SET; nothing was done.
  const bool aborted = reply.starts_with("-EXECABORT");
  const Ending ending = aborted ? Ending::kNotApplied : EndOfSet(set, of_set);
  Note(agent, {"EXEC"}, of_set, ending);
  lasting_.Incremented(counter, ending == Ending::kAnswered ? RespInteger(value) : of_set, ending);
}

// At full speed for a while, then not at all; the oldest are deleted.
void NemesisRun::Grow(size_t agent, Rng& rng, Connection* connection) {
  const uint64_t end_ns = NowNs() + rng.Below(kGrowMsMax) * kNsPerMs;
  while (!stop_ && NowNs() < end_ns && connection->Connect()) {
    const Growth::BatchPtr batch = growth_.Begin(agent);
    for (size_t first = 0; first < Growth::kBatchKeys && connection->Connect();
         first += kPipeline) {
      std::vector<Command> commands;
      for (size_t i = first; i < first + kPipeline; ++i) {
        commands.push_back({"SET", Growth::Key(*batch, i), Growth::Value(*batch, i)});
      }
      const std::vector<std::string> replies = connection->CallAll(commands);
      for (size_t i = 0; i < kPipeline; ++i) {
        const Ending ending = EndOfSet(commands[i], replies[i]);
        batch->endings[first + i] = ending;
        Note(agent, {"SET-NEW"}, replies[i], ending);
      }
    }
    growth_.Written(batch);
    const Growth::BatchPtr oldest = growth_.TakeOldest(agent, BatchesToKeep());
    if (oldest == nullptr || !connection->Connect()) continue;
    std::vector<Command> commands;
    for (size_t i = 0; i < Growth::kBatchKeys; ++i) {
      commands.push_back({"DEL", Growth::Key(*oldest, i)});
    }
    uint64_t deleted = 0;
    for (const std::string& reply : connection->CallAll(commands)) {
      if (ClassifyReply(commands[0], reply) == Ending::kAnswered) ++deleted;
    }
    growth_.Deleted(deleted);
  }
  const uint64_t rest_ns = NowNs() + rng.Below(kRestMsMax) * kNsPerMs;
  while (!stop_ && NowNs() < rest_ns) SleepMs(10);
}

// More and more: an index of as many keys as before splits no longer.
size_t NemesisRun::BatchesToKeep() const {
  constexpr size_t kAtFirst = 20;
  constexpr uint64_t kNsPerBatch = 1000 * kNsPerMs;
  return std::min<size_t>(options_.batches, kAtFirst + (NowNs() - start_ns_) / kNsPerBatch);
}

void NemesisRun::ReadBatch(size_t agent, Rng& rng, Connection* connection) {
  const Growth::BatchPtr batch = growth_.BeginRead(rng);
  if (batch != nullptr) {
    const size_t first = rng.Below(Growth::kBatchKeys / kPipeline) * kPipeline;
    std::vector<Command> commands;
    for (size_t i = first; i < first + kPipeline; ++i) {
      commands.push_back({"GET", Growth::Key(*batch, i)});
    }
    const std::vector<std::string> replies = connection->CallAll(commands);
    for (size_t i = 0; i < kPipeline; ++i) {
      growth_.Read(options_.agents[agent], *batch, first + i, replies[i]);
      Note(agent, {"GET-NEW"}, replies[i], ClassifyReply(commands[i], replies[i]));
    }
    growth_.EndRead(batch);
  }
  SleepMs(20);
}

void NemesisRun::ReadGrown(size_t agent) {
  const std::vector<Growth::BatchPtr> batches = growth_.live();
  std::vector<std::thread> readers;
  for (size_t reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([this, agent, reader, &batches] {
      for (size_t i = reader; i < batches.size(); i += kReaders) ReadWhole(agent, *batches[i]);
    });
  }
  for (std::thread& reader : readers) reader.join();
}

void NemesisRun::ReadWhole(size_t agent, const Growth::Batch& batch) {
  Connection connection(options_.agents[agent], options_.timeout_ms);
  size_t read = 0;
  for (int attempt = 0; read < Growth::kBatchKeys; ++attempt) {
    if (attempt == kGrownReadsMax) {
      return Fail(options_.agents[agent] + " does not answer GET " + Growth::Key(batch, read) +
                  " at the end of the run");
    }
    if (attempt > 0) SleepMs(300);
    if (!connection.Connect()) continue;
    std::vector<Command> commands;
    for (size_t i = read; i < Growth::kBatchKeys; ++i) {
      commands.push_back({"GET", Growth::Key(batch, i)});
    }
    const std::vector<std::string> replies = connection.CallAll(commands);
    for (size_t i = 0; i < commands.size(); ++i, ++read) {
      const Ending ending = ClassifyReply(commands[i], replies[i]);
      if (ending != Ending::kAnswered && ending != Ending::kFault) break;
      growth_.Read(options_.agents[agent], batch, read, replies[i]);
    }
  }
}

void NemesisRun::WriteWithDeadline(size_t agent, Rng& rng, Connection* connection) {
  Deadlines::Entry entry;
  entry.key = "deadline:" + std::to_string(next_deadline_++);
  entry.ttl_ms = Deadlines::kTtlMinMs + rng.Below(Deadlines::kTtlMaxMs - Deadlines::kTtlMinMs);
  entry.sent_ns = NowNs();
  const Command set = {"SET", entry.key, Deadlines::Value(entry.key), "PX",
                       std::to_string(entry.ttl_ms)};
  const std::string reply = connection->Call(set);
  entry.acknowledged_ns = NowNs();
  const Ending ending = EndOfSet(set, reply);
  if (ending == Ending::kFault) Fail("SET " + entry.key + " PX answers " + Quote(reply, 200));
  Note(agent, {"SET-PX"}, reply, ending);
  if (ending == Ending::kAnswered) deadlines_.Written(std::move(entry));
  for (int i = 0; i < 3 && connection->Connect(); ++i) {
    const auto any = deadlines_.Any(rng, NowNs());
    if (!any.has_value()) break;
    const uint64_t begun_ns = NowNs();
    const std::string value = connection->Call({"GET", any->key});
    deadlines_.Read(options_.agents[agent], *any, begun_ns, NowNs(), value);
    Note(agent, {"GET-PX"}, value, ClassifyReply({"GET", any->key}, value));
  }
  SleepMs(10);
}

void NemesisRun::WriteBig(size_t agent, Rng& rng, Connection* connection) {
  const size_t index = options_.agents.size() + agent;
  const uint64_t number = lasting_.NextValue(index);
  const Command set = {"SET", Lasting::RegisterKey(index),
                       BigValue(number, options_.big_bytes_max)};
  const std::string reply = connection->Call(set);
  const Ending ending = EndOfSet(set, reply);
  Note(agent, {"SET-BIG"}, reply, ending);
  lasting_.RegisterWritten(index, number, ending);
  SleepMs(50 + rng.Below(200));
}

void NemesisRun::ReadBig(size_t agent, Rng& rng, Connection* connection) {
  const size_t index = options_.agents.size() + rng.Below(options_.agents.size());
  const uint64_t acknowledged = lasting_.Acknowledged(index);
  const std::string reply = connection->Call({"GET", Lasting::RegisterKey(index)});
  Note(agent, {"GET-BIG"}, reply, ClassifyReply({"GET", "big"}, reply));
  lasting_.RegisterRead(options_.agents[agent], index, acknowledged, NumberOfBig(index, reply));
  SleepMs(50 + rng.Below(100));
}

std::string NemesisRun::NumberOfBig(size_t index, const std::string& reply) {
  const std::string_view value = BulkIn(reply);
  if (value.empty()) return reply;
  const std::string digits(value.substr(0, std::min<size_t>(value.find(','), 18)));
  uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<uint64_t>(c - '0');
  if (value != BigValue(number, options_.big_bytes_max)) {
    Fail("GET " + Lasting::RegisterKey(index) + " answers " + std::to_string(value.size()) +
         " bytes that are no one value: " + Quote(value.substr(0, 40)) + " to " +
         Quote(value.substr(value.size() - std::min<size_t>(value.size(), 40))));
  }
  return RespBulk(digits);
}

// Every generation that is not closed loses all of its keys by that.
void NemesisRun::RunFlusher() {
  Rng rng(options_.seed * 37);
  while (!stop_) {
    const uint64_t rest_ns = NowNs() + rng.Below(2500) * kNsPerMs;
    while (!stop_ && NowNs() < rest_ns) SleepMs(10);
    const size_t agent = rng.Below(options_.agents.size());
    Connection connection(options_.agents[agent], options_.timeout_ms);
    if (connection.Connect()) FlushAll(agent, &connection);
  }
}

void NemesisRun::NoteFlushIn(const std::shared_ptr<Generation>& generation) {
  const size_t index = generation->Start(kFlusher, {"FLUSHALL"}, NowNs());
  // A FLUSHALL that no client waits for any more will have no end.
  if (!flushing_) return;
  generation->Enter();
  flushed_.emplace_back(generation, index);
}

void NemesisRun::FlushAll(size_t agent, Connection* connection) {
  const Command command = {"FLUSHALL"};
  const std::lock_guard flush_lock(flush_mutex_);
  {
    const std::lock_guard lock(generations_mutex_);
    flushing_ = true;
    for (const auto& [number, generation] : generations_) NoteFlushIn(generation);
  }
  const std::string reply = connection->Call(command);
  const std::lock_guard lock(generations_mutex_);
  flushing_ = false;
  for (const auto& [generation, index] : std::exchange(flushed_, {})) {
    (void)generation->Finish(index, reply, NowNs());
    generation->Leave();
  }
  const Ending ending = ClassifyReply(command, reply);
  if (ending == Ending::kUnknown) may_flush_until_ns_ = NowNs() + kLateFlushMs * kNsPerMs;
  Note(agent, command, reply, ending);
}

}  // namespace onetrip
