#include "memnode/image_keeper.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/control/kept_state.h"

namespace onetrip {
namespace {

// A copy of the image that an operator puts back could lack, unnoticed, the writes of this time
// before the copy was taken.
constexpr std::chrono::milliseconds kBeat{2000};

}  // namespace

ImageKeeper::ImageKeeper(Backing& backing) : backing_(backing) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "image");
    Run();
  });
}

ImageKeeper::~ImageKeeper() { Stop(); }

void ImageKeeper::KeepState(std::string file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = std::move(file);
  changed_.notify_one();
}

void ImageKeeper::WriteSoon() {
  const std::lock_guard<std::mutex> lock(mutex_);
  due_ = true;
  changed_.notify_one();
}

void ImageKeeper::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ImageKeeper::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kBeat, [this] { return stopping_ || due_ || state_.has_value(); });
    due_ = false;
    const std::optional<std::string> state = std::exchange(state_, std::nullopt);
    lock.unlock();
    Write(state);
    lock.lock();
  }
}

void ImageKeeper::Write(const std::optional<std::string>& state) {
  std::string reason;
  Status status = backing_.Beat(&reason);
  if (state.has_value() && status.ok()) {
    status = WriteFileWhole(StatePath(backing_.options().path), *state, &reason);
  }
  if (!status.ok() && !complained_) LogWarning(reason + "; it is tried again");
  complained_ = !status.ok();
  if (status.ok() || !state.has_value()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, kBeat, [this] { return stopping_; });
  if (!stopping_ && !state_.has_value()) state_ = state;
}

}  // namespace onetrip
