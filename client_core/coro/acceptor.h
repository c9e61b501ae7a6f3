// Acceptor: takes connections off one listening socket and hands them on. A process that is out of
// descriptors or memory leaves them in the socket's queue, and looks again after a moment.
#ifndef ONETRIP_CLIENT_CORE_CORO_ACCEPTOR_H_
#define ONETRIP_CLIENT_CORE_CORO_ACCEPTOR_H_

#include <functional>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"

namespace onetrip {

// Lives on the executor's thread.
class Acceptor {
 public:
  // `listener` is a non-blocking listening socket; `on_accept` gets every connection, and may close
  // it at once. `executor` outlives the acceptor.
  Acceptor(LoopExecutor& executor, UniqueFd listener, std::function<void(UniqueFd)> on_accept);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Accepts nothing any more; `on_accept` may call it.
  void Stop();

 private:
  // Connections taken in one turn: a storm of new clients must not starve those being served.
  static constexpr int kAcceptsPerTurn = 64;
  // Rest after the process has run out of descriptors, instead of failing in every turn.
  static constexpr uint64_t kExhaustedRestNs = 100'000'000;

  class ResumeTimer final : public Timer {
   public:
    explicit ResumeTimer(FdWatcher& watcher) : watcher_(watcher) {}
    void Fire() override { watcher_.WatchReads(true); }

   private:
    FdWatcher& watcher_;
  };

  void OnReadable();

  LoopExecutor& executor_;
  UniqueFd listener_;
  std::function<void(UniqueFd)> on_accept_;
  bool stopped_ = false;
  FdWatcher watcher_;
  ResumeTimer resume_timer_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_ACCEPTOR_H_
