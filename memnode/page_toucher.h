// PageToucher: brings the pages of a memory node's memory in ahead of their first use, by a thread
// of its own, so that no insert waits while the kernel clears them.
#ifndef ONETRIP_MEMNODE_PAGE_TOUCHER_H_
#define ONETRIP_MEMNODE_PAGE_TOUCHER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace onetrip {

class PageToucher {
 public:
  // How far ahead of what was granted last: what a fast writer fills in a tenth of a second.
  static constexpr uint64_t kAheadBytes = 8ULL << 20;

  // The memory, of `bytes`, outlives it; what is there stays as it is.
  PageToucher(std::byte* base, uint64_t bytes);
  PageToucher(const PageToucher&) = delete;
  PageToucher& operator=(const PageToucher&) = delete;
  ~PageToucher();

  // Memory up to `end`, bytes from the base, is in use: what lies behind it will be soon. Any
  // thread; does not wait for pages.
  void NoteInUse(uint64_t end);

 private:
  // A huge page, where the kernel gives them.
  static constexpr uint64_t kStretchBytes = 2ULL << 20;

  void Run();

  std::byte* const base_;
  const uint64_t bytes_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::condition_variable wake_;
  std::vector<bool> asked_;  // by stretch: touched, or about to be
  std::deque<uint64_t> due_;
  bool ends_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_PAGE_TOUCHER_H_
