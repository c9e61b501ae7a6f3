// RequestMemory: a connection's share of the budget for large values that its requests take: of the
// request that is being read, and of those that an open transaction keeps. The worker's thread.
#ifndef ONETRIP_FRONTEND_REQUEST_MEMORY_H_
#define ONETRIP_FRONTEND_REQUEST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client_core/base/memory_budget.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/task.h"
#include "frontend/query_buffer.h"

namespace onetrip {

class RequestMemory {
 public:
  // A request that needs more memory takes it from the budget.
  static constexpr size_t kLargeBytes = size_t{1} << 20;
  // This much of such a request must be there before it takes any: to announce much costs nothing.
  static constexpr size_t kProofBytes = size_t{64} << 10;

  // Both outlive it.
  RequestMemory(LoopExecutor& executor, const std::shared_ptr<MemoryBudget>& budget)
      : executor_(executor), budget_(budget) {}

  // Waits until the share is `bytes`; gives up when `*open` is false.
  Task<void> Take(uint64_t bytes, const bool* open);
  // Counts what is held after a batch of commands: the input buffer, and what MULTI has queued.
  void Count(uint64_t input_capacity, uint64_t queued);
  // Makes room in `input` for `wanted` bytes more, moving by the piece what is there. False: the
  // host has no memory.
  Task<bool> MakeRoom(QueryBuffer& input, size_t wanted);

  [[nodiscard]] uint64_t bytes() const { return share_.bytes(); }
  // Other connections wait for what this one holds.
  [[nodiscard]] bool is_wanted() const { return share_.bytes() > 0 && budget_->waiting() > 0; }

 private:
  LoopExecutor& executor_;
  const std::shared_ptr<MemoryBudget>& budget_;
  MemoryBudget::Share share_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_REQUEST_MEMORY_H_
