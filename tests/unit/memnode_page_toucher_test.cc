#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "client_core/base/check.h"
#include "memnode/page_toucher.h"

namespace onetrip {
namespace {

constexpr uint64_t kBytes = 4 * PageToucher::kAheadBytes;

class PageToucherTest : public testing::Test {
 protected:
  PageToucherTest() {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
  }
  ~PageToucherTest() override { munmap(base_, kBytes); }

  bool AllAreThere(uint64_t from, uint64_t to) {
    return CountThere(from, to) == (to - from) / page_;
  }
  uint64_t CountThere(uint64_t from, uint64_t to) {
    std::vector<unsigned char> there((to - from) / page_);
    CHECK(mincore(base_ + from, to - from, there.data()) == 0);
    return static_cast<uint64_t>(std::count_if(there.begin(), there.end(),
                                               [](unsigned char one) { return (one & 1) != 0; }));
  }
  bool Await(uint64_t from, uint64_t to) {
    for (int i = 0; i < 10'000 && !AllAreThere(from, to); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return AllAreThere(from, to);
  }

  const uint64_t page_ = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::byte* base_ = nullptr;
};

TEST_F(PageToucherTest, WhatLiesBehindTheMemoryInUseIsThereBeforeItIsUsed) {
  if (madvise(base_, page_, MADV_POPULATE_WRITE) != 0) GTEST_SKIP() << "a kernel before 5.14";
  PageToucher toucher(base_, kBytes);
  toucher.NoteInUse(page_);
  ASSERT_TRUE(Await(0, PageToucher::kAheadBytes));
  EXPECT_EQ(CountThere(2 * PageToucher::kAheadBytes, kBytes), 0U);
  toucher.NoteInUse(PageToucher::kAheadBytes);
  ASSERT_TRUE(Await(0, 2 * PageToucher::kAheadBytes));
  toucher.NoteInUse(kBytes);
  EXPECT_EQ(CountThere(3 * PageToucher::kAheadBytes, kBytes), 0U);
}

TEST_F(PageToucherTest, WhatIsWrittenStays) {
  std::memset(base_, 7, kBytes / 2);
  {
    PageToucher toucher(base_, kBytes);
    for (uint64_t end = 0; end < kBytes; end += PageToucher::kAheadBytes / 2)
      toucher.NoteInUse(end);
  }
  EXPECT_TRUE(
      std::all_of(base_, base_ + kBytes / 2, [](std::byte one) { return one == std::byte{7}; }));
  EXPECT_TRUE(std::all_of(base_ + kBytes / 2, base_ + kBytes,
                          [](std::byte one) { return one == std::byte{0}; }));
}

}  // namespace
}  // namespace onetrip
