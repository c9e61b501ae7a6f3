#include "client_core/coro/fiber.h"

// Its longjmp takes a switch of stacks for an error.
#undef _FORTIFY_SOURCE

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <utility>

#include "client_core/base/check.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONETRIP_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define ONETRIP_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ONETRIP_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define ONETRIP_FIBER_TSAN 1
#endif

#if defined(ONETRIP_FIBER_ASAN) || defined(ONETRIP_FIBER_TSAN)
#define ONETRIP_FIBER_SANITIZED 1
#endif

#if defined(ONETRIP_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(ONETRIP_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace onetrip {
namespace {

// As large as a main thread's: a build without optimisation nests coroutines that end at once.
// Only what is touched takes memory.
constexpr size_t kStackBytes = 8ULL << 20;

// Main() has no parameters: the one whose first turn begins.
thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber(std::function<void()> turn) : turn_(std::move(turn)) {}

Fiber::~Fiber() {
  CHECK(!amid_turn_);
  if (stack_ == nullptr) return;
  ends_ = true;
  SwitchTo();
#if defined(ONETRIP_FIBER_ASAN)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
#if defined(ONETRIP_FIBER_TSAN)
  __tsan_destroy_fiber(own_shadow_);
#endif
  CHECK(munmap(stack_, kStackBytes) == 0);
}

void Fiber::Resume() {
  CHECK(!running_);
  if (stack_ == nullptr) {
    stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    CHECK(stack_ != MAP_FAILED);
    CHECK(getcontext(&own_) == 0);
    own_.uc_stack.ss_sp = stack_;
    own_.uc_stack.ss_size = kStackBytes;
    makecontext(&own_, Main, 0);
    entering = this;
#if defined(ONETRIP_FIBER_TSAN)
    own_shadow_ = __tsan_create_fiber(0);
#endif
  }
  amid_turn_ = true;
  running_ = true;
  SwitchTo();
  running_ = false;
}

void Fiber::Suspend() {
  CHECK(running_);
  SwitchBack(/*for_good=*/false);
}

void Fiber::SwitchTo() {
#if defined(ONETRIP_FIBER_ASAN)
  __sanitizer_start_switch_fiber(&caller_shadow_, stack_, kStackBytes);
#endif
#if defined(ONETRIP_FIBER_TSAN)
  caller_shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_shadow_, 0);
#endif
#if defined(ONETRIP_FIBER_SANITIZED)
  CHECK(swapcontext(&caller_, &own_) == 0);
#else
  // swapcontext() asks the kernel for the signal mask, twice a switch.
  if (_setjmp(caller_point_) == 0) {
    if (std::exchange(entered_, true)) _longjmp(own_point_, 1);
    setcontext(&own_);
    CHECK(false);
  }
#endif
#if defined(ONETRIP_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(caller_shadow_, nullptr, nullptr);
#endif
}

void Fiber::SwitchBack(bool for_good) {
#if defined(ONETRIP_FIBER_ASAN)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &own_shadow_, caller_stack_,
                                 caller_stack_bytes_);
#endif
#if defined(ONETRIP_FIBER_TSAN)
  __tsan_switch_to_fiber(caller_shadow_, 0);
#endif
#if defined(ONETRIP_FIBER_SANITIZED)
  CHECK(swapcontext(&own_, &caller_) == 0);
#else
  if (_setjmp(own_point_) == 0) _longjmp(caller_point_, 1);
#endif
  CHECK(!for_good);
#if defined(ONETRIP_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(own_shadow_, &caller_stack_, &caller_stack_bytes_);
#endif
}

void Fiber::Main() {
  Fiber* const fiber = entering;
#if defined(ONETRIP_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &fiber->caller_stack_, &fiber->caller_stack_bytes_);
#endif
  fiber->Loop();
}

void Fiber::Loop() {
  while (!ends_) {
    turn_();
    amid_turn_ = false;
    if (!ends_) SwitchBack(/*for_good=*/false);
  }
  SwitchBack(/*for_good=*/true);
}

}  // namespace onetrip
