#include "client_core/base/large_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

// From here on memory is pages of its own.
constexpr size_t kMappedBytes = size_t{4} << 20;
// The kernel takes back this much at a time: it keeps other threads of the process from mapping
// meanwhile.
constexpr size_t kReturnBytes = size_t{1} << 20;

// Gives pages back on a thread of its own, which the first of them starts.
class PageReturner {
 public:
  ~PageReturner() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wakes_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  void Return(std::byte* start, size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.emplace_back(start, bytes);
      if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    }
    wakes_.notify_one();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wakes_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto [start, bytes] = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      for (size_t at = 0; at < bytes; at += kReturnBytes) {
        (void)madvise(start + at, std::min(kReturnBytes, bytes - at), MADV_DONTNEED);
      }
      munmap(start, bytes);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::pair<std::byte*, size_t>> waiting_;  // guarded by mutex_
  bool ends_ = false;                                  // guarded by mutex_
  std::thread thread_;
};

PageReturner& Returner() {
  static PageReturner returner;
  return returner;
}

}  // namespace

LargeMemory::LargeMemory(size_t bytes) : LargeMemory(TryMake(bytes)) { CHECK(start_ != nullptr); }

LargeMemory LargeMemory::TryMake(size_t bytes) {
  LargeMemory made;
  if (bytes < kMappedBytes) {
    made.start_ = new (std::nothrow) std::byte[bytes];
  } else {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) made.start_ = static_cast<std::byte*>(memory);
  }
  if (made.start_ != nullptr) made.bytes_ = bytes;
  return made;
}

LargeMemory::~LargeMemory() {
  if (start_ == nullptr) return;
  if (bytes_ < kMappedBytes) {
    delete[] start_;
  } else {
    Returner().Return(start_, bytes_);
  }
}

}  // namespace onetrip
