#include "memnode/server_thread.h"

#include <pthread.h>

#include <ctime>
#include <future>
#include <memory>
#include <utility>

#include "client_core/base/check.h"

namespace onetrip {

ServerThread::ServerThread(LoopExecutor& executor)
    : executor_(executor), thread_([&executor] { executor.Run(); }) {}

ServerThread::~ServerThread() { CHECK(stopped_); }

bool ServerThread::Run(const std::function<void()>& fn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return false;
  // Shared: the waiter may be gone before set_value has returned.
  const auto done = std::make_shared<std::promise<void>>();
  executor_.Post([&fn, done] {
    fn();
    done->set_value();
  });
  done->get_future().wait();
  return true;
}

void ServerThread::Stop(const std::function<void()>& last, const std::function<void()>& cleanup) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(stopped_, true)) return;
  executor_.Post([this, &last] {
    last();
    executor_.Stop();
  });
  thread_.join();
  cleanup();
}

uint64_t ServerThread::CpuNs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clockid_t clock{};
  timespec used{};
  if (stopped_ || pthread_getcpuclockid(thread_.native_handle(), &clock) != 0 ||
      clock_gettime(clock, &used) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace onetrip
