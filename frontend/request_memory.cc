#include "frontend/request_memory.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "client_core/base/large_memory.h"

namespace onetrip {
namespace {

// How often a request that waits for the budget looks again.
constexpr uint64_t kLookNs = 500'000;

}  // namespace

Task<void> RequestMemory::Take(uint64_t bytes, const bool* open) {
  if (bytes <= share_.bytes()) co_return;
  if (share_.bytes() > 0) {
    MemoryBudget::Growth growth(share_, bytes - share_.bytes());
    while (!growth.Take() && *open) co_await executor_.SleepFor(kLookNs);
  } else {
    MemoryBudget::Ticket turn(budget_, bytes);
    while (!turn.Take(&share_) && *open) co_await executor_.SleepFor(kLookNs);
  }
}

void RequestMemory::Count(uint64_t input_capacity, uint64_t queued) {
  const uint64_t input = input_capacity > kLargeBytes ? input_capacity : 0;
  if (input == 0 && queued <= kLargeBytes) {
    share_ = {};
  } else if (share_.bytes() == 0) {
    share_ = MemoryBudget::Share::TakeNow(budget_, input + queued);
  } else if (input + queued > share_.bytes()) {
    share_.Grow(input + queued - share_.bytes());
  }
}

Task<bool> RequestMemory::MakeRoom(QueryBuffer& input, size_t wanted) {
  if (input.Fits(wanted)) co_return true;
  LargeMemory larger = LargeMemory::TryMake(input.BytesFor(wanted));
  if (larger.start() == nullptr) co_return false;
  const std::string_view held = input.data();
  for (size_t from = 0; from < held.size(); from += kTurnBytes) {
    if (from > 0) co_await executor_.Yield();
    std::memcpy(larger.start() + from, held.data() + from,
                std::min<size_t>(kTurnBytes, held.size() - from));
  }
  input.TakeCopy(std::move(larger));
  co_return true;
}

}  // namespace onetrip
