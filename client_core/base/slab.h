// Slab: objects of one type side by side in large pages, never given back before the end.
// Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_BASE_SLAB_H_
#define ONETRIP_CLIENT_CORE_BASE_SLAB_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/zeroed_memory.h"

namespace onetrip {

template <typename T>
class Slab {
 public:
  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  // REQUIRES: every object has been deleted.
  ~Slab() { CHECK(live_ == 0); }

  // True if New() has memory for one more; takes it from the host if need be.
  [[nodiscard]] bool HasRoom() { return !free_.empty() || Grow(); }

  // REQUIRES: HasRoom().
  template <typename... Args>
  T* New(Args&&... args) {
    CHECK(HasRoom());
    T* object = new (free_.back()) T(std::forward<Args>(args)...);
    free_.pop_back();
    ++live_;
    return object;
  }
  void Delete(T* object) {
    object->~T();
    free_.push_back(object);
    --live_;
  }

  // Bytes of the chunk behind `chunks` others: as many as all of those, so that few objects take
  // little memory; from kMostBytes on all are alike.
  static constexpr uint64_t ChunkBytes(size_t chunks) {
    return kFirstBytes << std::min(chunks, kDoublings);
  }

 private:
  static constexpr uint64_t kFirstBytes = 64 << 10;
  static constexpr size_t kDoublings = 9;
  static constexpr uint64_t kMostBytes = kFirstBytes << kDoublings;
  static_assert(sizeof(T) <= kFirstBytes);
  static_assert(alignof(T) <= 4096, "chunks are aligned to pages");

  [[nodiscard]] bool Grow() {
    const uint64_t bytes = ChunkBytes(chunks_.size());
    ZeroedMemory chunk = ZeroedMemory::TryMake(bytes, /*huge_from=*/uint64_t{2} << 20);
    if (chunk.start() == nullptr) return false;
    for (uint64_t i = bytes / sizeof(T); i-- > 0;) free_.push_back(chunk.start() + i * sizeof(T));
    chunks_.push_back(std::move(chunk));
    return true;
  }

  std::vector<ZeroedMemory> chunks_;
  std::vector<void*> free_;
  uint64_t live_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_SLAB_H_
