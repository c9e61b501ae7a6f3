// Huge pages: which ones this host gives to a node's memory, and what to change for larger ones.
//
// Without them almost every access of an agent over shm misses the TLB. A shared segment gets them
// from the host's reserve (vm.nr_hugepages), or as it is touched where the kernel is told so
// (transparent huge pages). The parts that read text are pure.
#ifndef ONETRIP_MEMNODE_HUGE_PAGES_H_
#define ONETRIP_MEMNODE_HUGE_PAGES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace onetrip {

// Smaller memories are fast with any pages.
inline constexpr uint64_t kHugePagesFromBytes = 128ULL << 20;

enum class MemoryKind : uint8_t { kPrivate, kSegment, kFile };

// The pages of a memory.
struct MemoryPages {
  uint64_t page_bytes = 0;
  bool is_reserved = false;  // from the reserve, all of them; else as far as the host has them
};

// The host's reserve of huge pages, as /proc/meminfo shows it.
struct HugePageReserve {
  uint64_t page_bytes = 0;  // 0: this kernel has none
  uint64_t total = 0;
  uint64_t free = 0;      // not in use ...
  uint64_t promised = 0;  // ... of which this many are mapped already
};

HugePageReserve ParseHugePageReserve(std::string_view meminfo);
HugePageReserve ReadHugePageReserve();

// True if a switch such as "always [madvise] never" gives huge pages to memory that asks for them.
bool IsGivenOnAdvice(std::string_view setting);
// The switch for a memory of this kind, as the kernel shows it now; empty: none.
std::string ReadTransparentSetting(MemoryKind kind);

// The reserve (pages) that lets `bytes` more be mapped from it.
uint64_t ReserveFor(uint64_t bytes, const HugePageReserve& reserve);

// One line for the log: which pages, and how to get larger ones.
std::string PagesText(MemoryKind kind, uint64_t bytes, const MemoryPages& pages,
                      const HugePageReserve& reserve);

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_HUGE_PAGES_H_
