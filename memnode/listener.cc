#include "memnode/listener.h"

#include <utility>

namespace onetrip {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr uint64_t kExhaustedPauseNs = 10'000'000;

}  // namespace

Listener::Listener(LoopExecutor& executor, UniqueFd socket, std::function<void(UniqueFd)> on_accept)
    : executor_(executor),
      socket_(std::move(socket)),
      on_accept_(std::move(on_accept)),
      watcher_(
          executor, socket_.get(), [](void* self) { static_cast<Listener*>(self)->Accept(); },
          nullptr, this) {
  watcher_.WatchReads(true);
}

void Listener::Pause() {
  paused_ = true;
  watcher_.WatchReads(false);
}

void Listener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    bool exhausted = false;
    UniqueFd fd = onetrip::Accept(socket_.get(), &exhausted);
    if (exhausted) {
      // The connection stays in the queue, and asking again at once would spin.
      watcher_.WatchReads(false);
      executor_.At(
          executor_.NowNs() + kExhaustedPauseNs,
          [](void* self) {
            auto* listener = static_cast<Listener*>(self);
            if (!listener->paused_) listener->watcher_.WatchReads(true);
          },
          this);
    }
    if (!fd.valid()) return;
    on_accept_(std::move(fd));
  }
}

}  // namespace onetrip
