// Fiber: a stack of its own for the turns of a simulated process, so that a turn can stand still
// wherever it is and others run meanwhile.
//
// Coroutines suspend only where their code says so; an operation that completes inline does not.
// For tests and the simulation alone. One thread; a fiber may be resumed from within another one.
#ifndef ONETRIP_CLIENT_CORE_CORO_FIBER_H_
#define ONETRIP_CLIENT_CORE_CORO_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace onetrip {

class Fiber {
 public:
  // `turn` is called on the fiber's stack, once per turn.
  explicit Fiber(std::function<void()> turn);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // REQUIRES: not amid a turn.
  ~Fiber();

  // Begins a turn, or goes on with the one that stands still. Returns when it has ended, or stands
  // still again. REQUIRES: not running.
  void Resume();
  // The turn stands still until the next Resume(). REQUIRES: running.
  void Suspend();

  // True between the begin and the end of a turn.
  [[nodiscard]] bool amid_turn() const { return amid_turn_; }
  // True if the caller is a part of the turn.
  [[nodiscard]] bool running() const { return running_; }

 private:
  static void Main();
  void Loop();
  // To the fiber, and back to its caller; `for_good`: the fiber's stack is used no more.
  void SwitchTo();
  void SwitchBack(bool for_good);

  const std::function<void()> turn_;
  void* stack_ = nullptr;  // mapped by the first turn
  ucontext_t own_{};
  [[maybe_unused]] ucontext_t caller_{};
  [[maybe_unused]] jmp_buf own_point_{};
  [[maybe_unused]] jmp_buf caller_point_{};
  [[maybe_unused]] bool entered_ = false;
  bool amid_turn_ = false;
  bool running_ = false;
  bool ends_ = false;
  // For a sanitizer, which must be told of either side of a switch.
  [[maybe_unused]] void* own_shadow_ = nullptr;
  [[maybe_unused]] void* caller_shadow_ = nullptr;
  [[maybe_unused]] const void* caller_stack_ = nullptr;
  [[maybe_unused]] size_t caller_stack_bytes_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_FIBER_H_
