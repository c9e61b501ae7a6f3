#include "client_core/coro/acceptor.h"

#include <utility>

#include "client_core/base/log.h"

namespace onetrip {

Acceptor::Acceptor(LoopExecutor& executor, UniqueFd listener,
                   std::function<void(UniqueFd)> on_accept)
    : executor_(executor),
      listener_(std::move(listener)),
      on_accept_(std::move(on_accept)),
      watcher_(
          executor, listener_.get(), [](void* self) { static_cast<Acceptor*>(self)->OnReadable(); },
          [](void*) {}, this),
      resume_timer_(watcher_) {
  watcher_.WatchReads(true);
}

void Acceptor::Stop() {
  stopped_ = true;
  resume_timer_.Cancel();
  watcher_.WatchReads(false);
}

void Acceptor::OnReadable() {
  for (int i = 0; i < kAcceptsPerTurn && !stopped_; ++i) {
    bool exhausted = false;
    UniqueFd fd = Accept(listener_.get(), &exhausted);
    if (exhausted) {
      LogWarning("cannot accept a connection: out of file descriptors or memory; waiting");
      watcher_.WatchReads(false);
      executor_.timers().Add(&resume_timer_, executor_.NowNs() + kExhaustedRestNs);
    }
    if (!fd.valid()) return;
    on_accept_(std::move(fd));
  }
}

}  // namespace onetrip
