#include "tests/nemesis/nemesis_run.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr auto kReconnectPause = std::chrono::milliseconds(10);
// After an operation whose outcome is unknown a client may have another, then it leaves the
// generation: each of them stays in flight for ever.
constexpr int kUnknownMax = 2;
// Reads that close a generation are worth no long wait.
constexpr uint32_t kCloserTimeoutMs = 2000;
constexpr size_t kPipelineMax = 200;
constexpr int kLastReadsMax = 5;

void Sleep(uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

// The first word of an error reply.
std::string ErrorWord(const std::string& reply) { return reply.substr(1, reply.find(' ') - 1); }

}  // namespace

uint64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

NemesisRun::NemesisRun(NemesisOptions options)
    : options_(std::move(options)),
      start_ns_(NowNs()),
      gaps_(options_.agents.size()),
      lasting_(options_.counters + options_.watched_counters, 2 * options_.agents.size()) {}

NemesisRun::~NemesisRun() {
  stop_ = true;
  stop_closing_ = true;
  for (std::thread& thread : threads_) thread.join();
  if (closer_.joinable()) closer_.join();
}

void NemesisRun::Start() {
  const auto agents = static_cast<uint32_t>(options_.agents.size());
  for (uint32_t client = 0; client < agents * options_.clients_per_agent; ++client) {
    threads_.emplace_back([this, client] { RunClient(client); });
  }
  if (options_.flush_all) threads_.emplace_back([this] { RunFlusher(); });
  for (size_t agent = 0; agent < agents && !options_.flush_all; ++agent) {
    for (const LastingRound round :
         {&NemesisRun::IncrementAndReadBack, &NemesisRun::WriteRegister, &NemesisRun::ReadRegister,
          &NemesisRun::IncrementByExec, &NemesisRun::Grow, &NemesisRun::ReadBatch,
          &NemesisRun::WriteWithDeadline, &NemesisRun::WriteBig, &NemesisRun::ReadBig}) {
      threads_.emplace_back([this, agent, round] { RunLasting(agent, round); });
    }
  }
  closer_ = std::thread([this] { RunCloser(); });
}

void NemesisRun::Finish() {
  gaps_.End(NowNs());
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  stop_closing_ = true;
  closer_.join();
  for (size_t agent = 0; agent < options_.agents.size() && !options_.flush_all; ++agent) {
    ReadLasting(agent);
    ReadGrown(agent);
  }
  for (const std::vector<std::string>& failures :
       {lasting_.failures(), growth_.failures(), deadlines_.failures()}) {
    findings_.failures.insert(findings_.failures.end(), failures.begin(), failures.end());
  }
}

void NemesisRun::RunClient(uint32_t client) {
  Connection connection(options_.agents[client / options_.clients_per_agent], options_.timeout_ms);
  while (!stop_) {
    if (!connection.Connect()) {
      std::this_thread::sleep_for(kReconnectPause);
      continue;
    }
    const std::shared_ptr<Generation> generation = EnterGeneration();
    connection.Select(generation->DatabaseOf(client));
    RunInGeneration(client, generation.get(), &connection);
    generation->Leave();
    while (!stop_ && NowNs() < EndOf(generation->number())) Sleep(kNsPerMs);
  }
}

void NemesisRun::RunInGeneration(uint32_t client, Generation* generation, Connection* connection) {
  Rng rng(options_.seed ^ (generation->number() << 16) ^ client);
  const size_t agent = client / options_.clients_per_agent;
  const uint64_t end_ns = EndOf(generation->number());
  const uint64_t step_ns = options_.generation_ms * kNsPerMs / options_.operations;
  int unknown = 0;
  for (const Command& command : generation->program(client)) {
    if (stop_ || NowNs() >= end_ns || unknown == kUnknownMax) return;
    // In bursts, with pauses that leave some of the generation's time over.
    if (rng.Below(4) == 0) Sleep(rng.Below(6 * step_ns));
    if (!connection->Connect()) return;
    const size_t index = generation->Start(client, command, NowNs());
    const std::string reply = connection->Call(generation->OnTheWire(command));
    const Ending ending = generation->Finish(index, reply, NowNs());
    Note(agent, command, reply, ending);
    if (ending == Ending::kUnknown) ++unknown;
  }
}

void NemesisRun::RunLasting(size_t agent, LastingRound round) {
  Rng rng(options_.seed * 31 + agent);
  Connection connection(options_.agents[agent], options_.timeout_ms);
  while (!stop_) {
    if (connection.Connect()) {
      (this->*round)(agent, rng, &connection);
      Sleep(options_.pause_us * 1000);
    } else {
      std::this_thread::sleep_for(kReconnectPause);
    }
  }
}

void NemesisRun::IncrementAndReadBack(size_t agent, Rng& rng, Connection* connection) {
  const size_t counter = rng.Below(options_.counters);
  Command command = {"INCR", Lasting::CounterKey(counter)};
  const std::string reply = Call(agent, connection, command);
  lasting_.Incremented(counter, reply, ClassifyReply(command, reply));
  if (!connection->Connect()) return;
  std::string key = lasting_.AnyOnce(rng);
  if (!key.empty()) {
    lasting_.OnceRead(options_.agents[agent], key, Call(agent, connection, {"GET", key}));
  }
  // Now and then: these keys stay.
  if (rng.Below(options_.rounds_per_once) != 0 || !connection->Connect()) return;
  key = Lasting::OnceKey(agent, next_once_++);
  command = {"SET", key, Lasting::OnceValue(key)};
  lasting_.WrittenOnce(key, ClassifyReply(command, Call(agent, connection, command)));
}

void NemesisRun::WriteRegister(size_t agent, Rng& /*rng*/, Connection* connection) {
  const uint64_t value = lasting_.NextValue(agent);
  const Command command = {"SET", Lasting::RegisterKey(agent), std::to_string(value)};
  const std::string reply = Call(agent, connection, command);
  lasting_.RegisterWritten(agent, value, ClassifyReply(command, reply));
}

void NemesisRun::ReadRegister(size_t agent, Rng& rng, Connection* connection) {
  const size_t index = rng.Below(options_.agents.size());
  const uint64_t acknowledged = lasting_.Acknowledged(index);
  const std::string reply = Call(agent, connection, {"GET", Lasting::RegisterKey(index)});
  lasting_.RegisterRead(options_.agents[agent], index, acknowledged, reply);
}

void NemesisRun::RunCloser() {
  while (true) {
    // Read before: what is left by then is closed.
    const bool last = stop_closing_;
    const std::shared_ptr<Generation> generation = TakeAndRead();
    if (generation != nullptr) {
      Close(generation.get());
    } else if (last) {
      return;
    } else {
      Sleep(10 * kNsPerMs);
    }
  }
}

std::shared_ptr<Generation> NemesisRun::TakeAndRead() {
  const std::lock_guard lock(flush_mutex_);
  std::shared_ptr<Generation> generation = TakeLeft();
  if (generation != nullptr) ReadAll(generation.get());
  const std::lock_guard generations_lock(generations_mutex_);
  closing_ = nullptr;
  return generation;
}

void NemesisRun::Close(Generation* generation) {
  const CheckResult result = generation->Check();
  {
    const std::lock_guard lock(findings_mutex_);
    ++findings_.generations;
    findings_.configurations += result.configurations;
    findings_.counts_left += result.counts_left;
  }
  if (!result.ok()) {
    const std::string file = options_.history_dir + "/nemesis-generation-" +
                             std::to_string(generation->number()) + ".history";
    std::ofstream(file) << result.message << "\n\nThe whole generation:\n"
                        << generation->Describe();
    const bool gave_up = result.verdict == CheckVerdict::kGaveUp;
    Fail(std::string(gave_up ? "the checker gave up on" : "not linearizable:") + " generation " +
         std::to_string(generation->number()) + " (" + file + "): " +
         result.message.substr(result.message.size() -
                               std::min<size_t>(result.message.size(), 1500)));
  }
  DeleteAll(*generation);
}

void NemesisRun::ReadAll(Generation* generation) {
  const auto reader = static_cast<uint32_t>(options_.agents.size()) * options_.clients_per_agent;
  for (size_t agent = 0; agent < options_.agents.size(); ++agent) {
    if (!gaps_.IsUp(agent)) continue;
    for (const uint32_t database : generation->databases()) {
      Connection connection(options_.agents[agent], kCloserTimeoutMs);
      connection.Select(database);
      if (!connection.Connect()) continue;
      for (const std::string& key : generation->keys()) {
        const Command command = {"GET", key};
        const size_t index =
            generation->StartIn(database, reader + static_cast<uint32_t>(agent), command, NowNs());
        const std::string reply = connection.Call(command);
        const Ending ending = generation->Finish(index, reply, NowNs());
        Note(agent, command, reply, ending);
        if (ending != Ending::kAnswered) break;
      }
    }
  }
}

void NemesisRun::DeleteAll(const Generation& generation) {
  std::vector<Command> commands;
  for (const std::string& key : generation.keys()) commands.push_back({"DEL", key});
  for (const uint32_t database : generation.databases()) {
    for (size_t agent = 0; agent < options_.agents.size(); ++agent) {
      Connection connection(options_.agents[agent], kCloserTimeoutMs);
      connection.Select(database);
      if (!gaps_.IsUp(agent) || !connection.Connect()) continue;
      if (!connection.CallAll(commands).back().empty()) break;
    }
  }
}

void NemesisRun::ReadLasting(size_t agent) {
  const std::string& name = options_.agents[agent];
  Connection connection(name, options_.timeout_ms);
  std::vector<Command> commands;
  const size_t counters = options_.counters + options_.watched_counters;
  for (size_t i = 0; i < counters; ++i) {
    commands.push_back({"GET", Lasting::CounterKey(i)});
  }
  for (size_t i = 0; i < lasting_.registers(); ++i) {
    commands.push_back({"GET", Lasting::RegisterKey(i)});
  }
  const size_t others = commands.size();
  const std::vector<std::string> once = lasting_.once_acknowledged();
  for (const std::string& key : once) commands.push_back({"GET", key});

  size_t done = 0;
  for (int attempt = 0; attempt < kLastReadsMax && done < commands.size();) {
    if (!connection.Connect()) {
      ++attempt;
      Sleep(500 * kNsPerMs);
      continue;
    }
    const size_t count = std::min(kPipelineMax, commands.size() - done);
    const auto first = commands.begin() + static_cast<ptrdiff_t>(done);
    const std::vector<std::string> replies =
        connection.CallAll({first, first + static_cast<ptrdiff_t>(count)});
    for (size_t i = 0; i < count; ++i) {
      const Ending ending = ClassifyReply(commands[done], replies[i]);
      Note(agent, commands[done], replies[i], ending);
      if (ending != Ending::kAnswered && ending != Ending::kFault) break;
      if (done < counters) {
        lasting_.CounterRead(name, done, replies[i]);
      } else if (done < others) {
        const size_t index = done - counters;
        const bool big = index >= options_.agents.size();
        lasting_.RegisterRead(name, index, lasting_.Acknowledged(index),
                              big ? NumberOfBig(index, replies[i]) : replies[i]);
      } else {
        lasting_.OnceRead(name, once[done - others], replies[i]);
      }
      ++done;
      if (i + 1 == count) attempt = -1;
    }
    ++attempt;
    if (attempt > 0) Sleep(500 * kNsPerMs);
  }
  if (done < commands.size()) {
    Fail(name + " does not answer GET " + commands[done][1] + " at the end of the run");
  }
}

std::string NemesisRun::Call(size_t agent, Connection* connection, const Command& command) {
  std::string reply = connection->Connect() ? connection->Call(command) : "";
  Note(agent, command, reply, ClassifyReply(command, reply));
  return reply;
}

void NemesisRun::Note(size_t agent, const Command& command, const std::string& reply,
                      Ending ending) {
  gaps_.Answered(agent, command, ending, NowNs());
  const std::lock_guard lock(findings_mutex_);
  if (ending == Ending::kAnswered) ++findings_.commands[CommandName(command)];
  if (ending == Ending::kUnknown) {
    ++findings_.unknown;
    ++findings_.unknown_at_s[NowNs() / (1000 * kNsPerMs)][CommandName(command)];
  }
  if (reply.empty()) {
    ++findings_.connections_lost;
  } else if (reply[0] == '-' && ending != Ending::kAnswered) {
    ++findings_.errors[ErrorWord(reply)];
  }
}

std::shared_ptr<Generation> NemesisRun::EnterGeneration() {
  // The clock is read under the lock: no client enters a generation that was taken out.
  const std::lock_guard lock(generations_mutex_);
  const uint64_t number = (NowNs() - start_ns_) / (options_.generation_ms * kNsPerMs);
  std::shared_ptr<Generation>& generation = generations_[number];
  if (generation == nullptr) {
    const auto agents = static_cast<uint32_t>(options_.agents.size());
    GenerationOptions drawn{.seed = options_.seed,
                            .clients = agents * options_.clients_per_agent,
                            .operations = options_.operations,
                            .plain = options_.flush_all};
    std::shared_ptr<Generation> made = std::make_shared<Generation>(number, drawn);
    if (IsToBeReadBefore(*made)) {
      drawn.plain = true;
      made = std::make_shared<Generation>(number, drawn);
    }
    generation = std::move(made);
    if (flushing_ || NowNs() < may_flush_until_ns_) NoteFlushIn(generation);
  }
  generation->Enter();
  return generation;
}

bool NemesisRun::IsToBeReadBefore(const Generation& generation) const {
  const auto shares = [&](const std::shared_ptr<Generation>& other) {
    return other != nullptr && generation.SharesKeyspacesWith(*other);
  };
  return shares(closing_) || std::any_of(generations_.begin(), generations_.end(),
                                         [&](const auto& other) { return shares(other.second); });
}

std::shared_ptr<Generation> NemesisRun::TakeLeft() {
  const std::lock_guard lock(generations_mutex_);
  const uint64_t now_ns = NowNs();
  for (auto it = generations_.begin(); it != generations_.end(); ++it) {
    const bool over = stop_closing_ || now_ns > EndOf(it->first);
    if (!over || !it->second->IsLeft()) continue;
    std::shared_ptr<Generation> generation = std::move(it->second);
    generations_.erase(it);
    closing_ = generation;
    return generation;
  }
  return nullptr;
}

uint64_t NemesisRun::EndOf(uint64_t generation) const {
  return start_ns_ + (generation + 1) * options_.generation_ms * kNsPerMs;
}

void NemesisRun::Fail(std::string message) {
  const std::lock_guard lock(findings_mutex_);
  findings_.failures.push_back(std::move(message));
}

}  // namespace onetrip
