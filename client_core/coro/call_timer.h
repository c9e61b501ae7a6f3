// CallTimer: a timer that calls a function with an argument, once.
#ifndef ONETRIP_CLIENT_CORE_CORO_CALL_TIMER_H_
#define ONETRIP_CLIENT_CORE_CORO_CALL_TIMER_H_

#include <cstddef>

#include "client_core/coro/frame_pool.h"
#include "client_core/coro/timer_heap.h"

namespace onetrip {

// Made by `new`; it owns itself, and is gone once it has fired or its heap dies.
class CallTimer : public Timer {
 public:
  CallTimer(void (*fn)(void*), void* arg) : fn_(fn), arg_(arg) {}
  static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { ReleaseFrame(memory, bytes); }

  void Fire() override {
    const auto fn = fn_;
    void* const arg = arg_;
    delete this;
    fn(arg);
  }
  void Dropped() override { delete this; }

 private:
  void (*fn_)(void*);
  void* arg_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_CALL_TIMER_H_
