// ScratchMemory: the memory of all nodes as one client sees it alone, round trip after round trip:
// where clients open, and where a scope lets production code make the memory to start from.
#ifndef ONETRIP_TESTS_EXPLORE_SCRATCH_MEMORY_H_
#define ONETRIP_TESTS_EXPLORE_SCRATCH_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

#include "client_core/coro/task.h"
#include "tests/explore/explore_executor.h"
#include "tests/explore/explore_fabric.h"

namespace onetrip {

class ScratchMemory {
 public:
  using Words = std::unordered_map<uint64_t, uint64_t>;

  // Words that were not written are as `below` says.
  explicit ScratchMemory(std::function<uint64_t(RemoteAddr)> below) : below_(std::move(below)) {}

  static uint64_t KeyOf(RemoteAddr at) { return uint64_t{at.node.value} << 48 | at.offset; }
  [[nodiscard]] uint64_t Word(RemoteAddr at) const {
    const auto found = words_.find(KeyOf(at));
    return found == words_.end() ? below_(at) : found->second;
  }
  // The words that were written.
  [[nodiscard]] const Words& words() const { return words_; }

  // Lets `task` run to its end, and what it leaves in the background. Returns its result.
  bool Finish(Task<bool>& task, ExploreExecutor& executor, ExploreFabric& fabric) {
    task.Start();
    executor.RunReady();
    while (!task.done() || !fabric.outstanding().empty()) {
      if (fabric.outstanding().empty()) {
        CHECK(executor.MayFire() && executor.FireEarliest());
      } else {
        Execute(*fabric.outstanding().front());
        fabric.Complete(0);
      }
      executor.RunReady();
    }
    return task.TakeResult();
  }

 private:
  static constexpr uint64_t kWordBytes = 8;

  void Execute(RoundTrip& round_trip) {
    for (FabricOp& op : round_trip.ops()) {
      op.ok = true;
      for (uint64_t at = 0; at < op.bytes; at += kWordBytes) {
        const RemoteAddr here{op.node, op.offset + at};
        uint64_t word = op.kind == FabricOpKind::kWrite ? 0 : Word(here);
        switch (op.kind) {
          case FabricOpKind::kRead:
            std::memcpy(op.local + at, &word, std::min<uint64_t>(kWordBytes, op.bytes - at));
            break;
          case FabricOpKind::kWrite:
            // The rest of the last word is the same object's.
            std::memcpy(&word, op.local + at, std::min<uint64_t>(kWordBytes, op.bytes - at));
            words_[KeyOf(here)] = word;
            break;
          case FabricOpKind::kCas:
            op.result = word;
            if (word == op.expected) words_[KeyOf(here)] = op.operand;
            break;
          case FabricOpKind::kFaa:
            op.result = word;
            words_[KeyOf(here)] = word + op.operand;
            break;
          case FabricOpKind::kMax:
            op.result = word;
            if (TakesMax(word, op.operand)) words_[KeyOf(here)] = op.operand;
            break;
        }
      }
    }
  }

  const std::function<uint64_t(RemoteAddr)> below_;
  Words words_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_SCRATCH_MEMORY_H_
