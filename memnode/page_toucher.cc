#include "memnode/page_toucher.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace onetrip {

PageToucher::PageToucher(std::byte* base, uint64_t bytes)
    : base_(base),
      bytes_(bytes),
      asked_((bytes + kStretchBytes - 1) / kStretchBytes),
      thread_([this] { Run(); }) {}

PageToucher::~PageToucher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void PageToucher::NoteInUse(uint64_t end) {
  bool any = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t behind =
        std::min<uint64_t>((end + kAheadBytes + kStretchBytes - 1) / kStretchBytes, asked_.size());
    for (uint64_t stretch = end / kStretchBytes; stretch < behind; ++stretch) {
      if (asked_[stretch]) continue;
      asked_[stretch] = true;
      due_.push_back(stretch);
      any = true;
    }
  }
  if (any) wake_.notify_one();
}

void PageToucher::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || !due_.empty(); });
    if (ends_) return;
    const uint64_t from = due_.front() * kStretchBytes;
    due_.pop_front();
    lock.unlock();
    // As if each page were written to, but for its bytes, which others may be writing.
    const int touched =
        madvise(base_ + from, std::min(kStretchBytes, bytes_ - from), MADV_POPULATE_WRITE);
    // A kernel before 5.14. Pages come when they are used, as they do if there is no memory left.
    if (touched != 0 && errno == EINVAL) return;
    lock.lock();
  }
}

}  // namespace onetrip
