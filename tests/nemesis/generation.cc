#include "tests/nemesis/generation.h"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"

namespace onetrip {
namespace {

constexpr auto kMixes =
    std::to_array<std::string_view>({"reads_and_writes", "counters", "conditions", "append",
                                     "churn", "mixed", "multi", "registers", "endings", "growth"});

// Whether it sets or tells a deadline. Left out: the cluster's clock is not the clients'.
bool IsAboutDeadlines(const KindWeight& kind) {
  return kind.kind == CommandKind::kSetPx || kind.kind == CommandKind::kSetKeepTtl ||
         kind.kind == CommandKind::kPttl;
}

// Calls `visit` with every argument that is a key.
template <typename Visit>
void ForEachKey(Command& command, const Visit& visit) {
  const std::string name = CommandName(command);
  const bool several = name == "mset" || name == "mget" || name == "del" || name == "exists";
  const size_t step = name == "mset" ? 2 : 1;
  const size_t end = several ? command.size() : 2;
  for (size_t i = 1; i < end; i += step) visit(command[i]);
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

size_t Generation::Start(uint32_t client, const Command& command, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  return history_.Start(client, command, now_ns);
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
