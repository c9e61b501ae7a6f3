#include "tests/nemesis/generation.h"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"
#include "tests/support/collection_workload.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

// Every kEvery-th generation beside flushes and swaps is one of those.
constexpr uint64_t kEvery = 3;

constexpr auto kMixes =
    std::to_array<std::string_view>({"reads_and_writes", "counters", "conditions", "append",
                                     "churn", "mixed", "multi", "registers", "endings", "growth"});

// Returns true if it sets or tells a deadline. Left out: the cluster's clock is not the clients'.
bool IsAboutDeadlines(const KindWeight& kind) {
  return kind.kind == CommandKind::kSetPx || kind.kind == CommandKind::kSetKeepTtl ||
         kind.kind == CommandKind::kPttl;
}

// Calls `visit` with every argument that is a key.
template <typename Visit>
void ForEachKey(Command& command, const Visit& visit) {
  const std::string name = CommandName(command);
  if (name == "flushdb" || name == "swapdb") return;
  const bool several = name == "mset" || name == "mget" || name == "del" || name == "exists";
  const size_t step = name == "mset" ? 2 : 1;
  const size_t first = KeyPlace(command);
  const size_t end = several ? command.size() : first + 1;
  for (size_t i = first; i < end; i += step) visit(command[i]);
}

}  // namespace

Generation::Generation(uint64_t number, const GenerationOptions& options) : number_(number) {
  Rng rng(options.seed * 1'000'003 + number);
  WorkloadOptions workload;
  workload.clients = options.clients;
  workload.operations = options.operations;
  const Mix* const mix = FindMix(kMixes[rng.Below(kMixes.size())]);
  CHECK(mix != nullptr);
  ApplyMix(*mix, &workload);
  std::erase_if(workload.kinds, IsAboutDeadlines);
  program_ = MakeProgram(rng.Next(), workload);
  if (rng.Below(3) == 0) UseCollections(rng.Next(), &program_);
  if (!options.plain) AddWholeKeyspaces(rng);
  const std::string prefix = "g" + std::to_string(number) + ":";
  std::set<std::string> keys;
  for (std::vector<Command>& commands : program_) {
    for (Command& command : commands) {
      ForEachKey(command, [&](std::string& key) {
        key.insert(0, prefix);
        keys.insert(key);
      });
    }
  }
  keys_.assign(keys.begin(), keys.end());
}

// Some time is left without any: each flush or swap is a quiesce, behind which a take-over begins
// anew.
bool Generation::MayHaveWholeKeyspaces(uint64_t number) {
  constexpr uint64_t kRound = 40;
  constexpr uint64_t kOfRound = 10;
  return number % kRound < kOfRound && number % kEvery == 0;
}

// Adds flushes or swaps, in databases that are used again when none of those that no client has
// heard of any more can still happen.
void Generation::AddWholeKeyspaces(Rng& rng) {
  constexpr uint32_t kFirst = 2;
  constexpr uint32_t kPairs = 7;  // pairs of databases, in turn
  constexpr uint64_t kPermille = 8;
  if (!MayHaveWholeKeyspaces(number_)) return;
  kind_ = rng.Below(2) == 0 ? Kind::kFlushes : Kind::kSwaps;
  first_database_ = kFirst + 2 * static_cast<uint32_t>(number_ / kEvery % kPairs);
  for (std::vector<Command>& commands : program_) {
    for (Command& command : commands) {
      if (rng.Below(1000) >= kPermille) continue;
      command = kind_ == Kind::kFlushes ? Command{"FLUSHDB"} : Command{"SWAPDB", "0", "1"};
    }
  }
}

std::vector<uint32_t> Generation::databases() const {
  if (kind_ == Kind::kSwaps) return {first_database_, first_database_ + 1};
  return {first_database_};
}

Command Generation::OnTheWire(const Command& command) const {
  if (CommandName(command) != "swapdb") return command;
  return {"SWAPDB", std::to_string(first_database_), std::to_string(first_database_ + 1)};
}

size_t Generation::Start(uint32_t client, const Command& command, uint64_t now_ns) {
  return StartIn(DatabaseOf(client), client, command, now_ns);
}

size_t Generation::StartIn(uint32_t database, uint32_t client, const Command& command,
                           uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  return history_.Start(client, command, now_ns, database - first_database_);
}

Ending Generation::Finish(size_t index, std::string reply, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  // Without a reply the operation has no end: it may take effect at any later time.
  if (reply.empty()) return Ending::kUnknown;
  history_.Finish(index, std::move(reply), now_ns);
  return history_.ops()[index].ending;
}

void Generation::Enter() {
  const std::lock_guard lock(mutex_);
  ++inside_;
}

void Generation::Leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
}

bool Generation::IsLeft() const {
  const std::lock_guard lock(mutex_);
  return inside_ == 0;
}

CheckResult Generation::Check() const { return CheckHistory(history_.ops()); }

std::string Generation::Describe() const { return DescribeHistory(history_.ops()); }

}  // namespace onetrip
