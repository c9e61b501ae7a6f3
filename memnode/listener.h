// Listener: accepts a server's connections, on the server's own executor and thread.
#ifndef ONETRIP_MEMNODE_LISTENER_H_
#define ONETRIP_MEMNODE_LISTENER_H_

#include <functional>

#include "client_core/coro/socket.h"

namespace onetrip {

class Listener {
 public:
  // Calls `on_accept` with every connection until Pause() or the end. A process that is out of
  // descriptors leaves them in the queue and looks again after a moment. The executor outlives it.
  Listener(LoopExecutor& executor, UniqueFd socket, std::function<void(UniqueFd)> on_accept);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Accepts nothing any more.
  void Pause();

 private:
  void Accept();

  LoopExecutor& executor_;
  const UniqueFd socket_;
  const std::function<void(UniqueFd)> on_accept_;
  bool paused_ = false;
  FdWatcher watcher_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_LISTENER_H_
