// ServerThread: the one thread of a server, which turns the server's executor, and how others reach
// it.
//
// Everything of the server runs on that thread and needs no lock; another thread that wants
// something of it has a function run there and waits.
#ifndef ONETRIP_MEMNODE_SERVER_THREAD_H_
#define ONETRIP_MEMNODE_SERVER_THREAD_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "client_core/coro/loop_executor.h"

namespace onetrip {

class ServerThread {
 public:
  // Turns `executor`, which outlives it, from now on.
  explicit ServerThread(LoopExecutor& executor);
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;
  // REQUIRES: stopped.
  ~ServerThread();

  // Runs `fn` on the thread and waits for it; false, and nothing was run, once it has stopped. Any
  // thread but its own.
  bool Run(const std::function<void()>& fn);
  // Runs `last` on the thread, ends the thread, and then runs `cleanup` here; only once. When it
  // returns all of that has been done, by this call or another. Any thread but its own.
  void Stop(const std::function<void()>& last, const std::function<void()>& cleanup);

  // CPU time that the thread has used; 0 once it has stopped. Any thread.
  [[nodiscard]] uint64_t CpuNs();

 private:
  LoopExecutor& executor_;
  std::mutex mutex_;  // guards stopped_; keeps threads from waiting for one that ends
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_SERVER_THREAD_H_
