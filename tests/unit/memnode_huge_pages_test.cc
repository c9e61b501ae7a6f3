// Which pages a node's memory has, and what a user is told to change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memnode/backing.h"
#include "memnode/huge_pages.h"

namespace onetrip {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kMiB = 1 << 20;
constexpr char kMeminfo[] =
    "MemTotal:        8000000 kB\nHugePages_Total:      10\nHugePages_Free:        7\n"
    "HugePages_Rsvd:        4\nHugePages_Surp:        0\nHugepagesize:       2048 kB\n";

TEST(HugePages, TheReserveIsRead) {
  const HugePageReserve reserve = ParseHugePageReserve(kMeminfo);
  EXPECT_EQ(reserve.page_bytes, 2 * kMiB);
  EXPECT_EQ(reserve.total, 10U);
  EXPECT_EQ(reserve.free, 7U);
  EXPECT_EQ(reserve.promised, 4U);
  EXPECT_EQ(ParseHugePageReserve("").page_bytes, 0U);
  EXPECT_EQ(ParseHugePageReserve("HugePages_Total:").total, 0U);
  EXPECT_EQ(ParseHugePageReserve("XHugePages_Total: 5\n").total, 0U);
}

TEST(HugePages, TheReserveGrowsByWhatIsMissing) {
  HugePageReserve reserve{.page_bytes = 2 * kMiB};
  EXPECT_EQ(ReserveFor(512 * kMiB, reserve), 256U);
  EXPECT_EQ(ReserveFor(kMiB, reserve), 1U);
  // Three of the ten are in use, four are promised: three are left.
  reserve = ParseHugePageReserve(kMeminfo);
  EXPECT_EQ(ReserveFor(512 * kMiB, reserve), 10U + 253U);
  EXPECT_EQ(ReserveFor(4 * kMiB, reserve), 10U);
  EXPECT_EQ(ReserveFor(512 * kMiB, {}), 0U);
}

TEST(HugePages, TheKernelsSwitchIsRead) {
  EXPECT_TRUE(IsGivenOnAdvice("always [madvise] never\n"));
  EXPECT_TRUE(IsGivenOnAdvice("always within_size [advise] never deny force\n"));
  EXPECT_TRUE(IsGivenOnAdvice("[always] madvise never\n"));
  EXPECT_FALSE(IsGivenOnAdvice("always madvise [never]\n"));
  EXPECT_FALSE(IsGivenOnAdvice("always within_size advise never [deny] force\n"));
  EXPECT_FALSE(IsGivenOnAdvice(""));
  EXPECT_EQ(ReadTransparentSetting(MemoryKind::kFile), "");
}

TEST(HugePages, TheLineSaysWhatToDoOnlyWhenItHelps) {
  const HugePageReserve reserve{.page_bytes = 2 * kMiB};
  const MemoryPages small{.page_bytes = 4096};
  EXPECT_EQ(PagesText(MemoryKind::kSegment, 512 * kMiB, small, reserve),
            "memory: 512 MiB in pages of 4 KiB; huge ones are faster: sysctl -w "
            "vm.nr_hugepages=256 (256 more for each further node), or echo advise > "
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled; then start the node again");
  EXPECT_EQ(PagesText(MemoryKind::kSegment, 512 * kMiB,
                      {.page_bytes = 2 * kMiB, .is_reserved = true}, reserve),
            "memory: 512 MiB in pages of 2 MiB, from the host's reserve");
  EXPECT_THAT(PagesText(MemoryKind::kPrivate, 512 * kMiB, small, reserve),
              HasSubstr("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
  for (const std::string& line :
       {PagesText(MemoryKind::kSegment, 64 * kMiB, small, reserve),
        PagesText(MemoryKind::kFile, 512 * kMiB, small, reserve),
        PagesText(MemoryKind::kSegment, 512 * kMiB, small, {}),
        PagesText(MemoryKind::kPrivate, 512 * kMiB, {.page_bytes = 2 * kMiB}, reserve)}) {
    EXPECT_THAT(line, Not(HasSubstr("sysctl"))) << line;
    EXPECT_THAT(line, Not(HasSubstr("echo"))) << line;
  }
}

TEST(HugePages, ABackingKnowsItsPages) {
  for (const MemoryKind kind : {MemoryKind::kPrivate, MemoryKind::kSegment}) {
    std::string reason;
    BackingOptions options;
    options.kind = kind;
    // The memory is so small that no node asks for huge pages.
    options.bytes = 64 * kMiB;
    Result<std::unique_ptr<Backing>> backing = Backing::Open(options, &reason);
    ASSERT_TRUE(backing.ok()) << reason;
    EXPECT_LT(backing.value()->pages().page_bytes, kMiB);
    EXPECT_GE(backing.value()->pages().page_bytes, 4096U);
    EXPECT_FALSE(backing.value()->pages().is_reserved);
  }
}

}  // namespace
}  // namespace onetrip
