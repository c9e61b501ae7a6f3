#include "client_core/base/zeroed_memory.h"

#include <sys/mman.h>

#include "client_core/base/check.h"

namespace onetrip {

namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

std::byte* MapPages(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

ZeroedMemory::ZeroedMemory(uint64_t bytes, uint64_t huge_from)
    : ZeroedMemory(TryMake(bytes, huge_from)) {
  CHECK(start_ != nullptr);
}

ZeroedMemory ZeroedMemory::TryMake(uint64_t bytes, uint64_t huge_from) {
  const bool huge = bytes >= huge_from;
  // Not every kernel aligns large mappings: take more, and give the ends back.
  std::byte* const memory = MapPages(huge ? bytes + kHugePageBytes : bytes);
  ZeroedMemory made;
  if (memory == nullptr) return made;
  made.start_ = memory;
  made.bytes_ = bytes;
  if (!huge) return made;
  const uint64_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePageBytes;
  made.start_ += before;
  if (before > 0) munmap(memory, before);
  const uint64_t used = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  munmap(made.start_ + used, bytes + kHugePageBytes - before - used);
  (void)madvise(made.start_, bytes, MADV_HUGEPAGE);
  return made;
}

ZeroedMemory::~ZeroedMemory() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

}  // namespace onetrip
