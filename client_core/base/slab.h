// Slab: objects of one type side by side in large pages, never given back before the end.
// Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_BASE_SLAB_H_
#define ONETRIP_CLIENT_CORE_BASE_SLAB_H_

#include <algorithm>
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

  template <typename... Args>
  T* New(Args&&... args) {
    if (free_.empty()) Grow();
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

 private:
  static constexpr uint64_t kFirstBytes = 64 << 10;
  static constexpr uint64_t kMostBytes = 32 << 20;
  static_assert(sizeof(T) <= kFirstBytes);
  static_assert(alignof(T) <= 4096, "chunks are aligned to pages");

  // Each chunk as large as all before it together, so that few objects take little memory.
  void Grow() {
    const uint64_t bytes = std::min(kFirstBytes << chunks_.size(), kMostBytes);
    chunks_.emplace_back(bytes, /*huge_from=*/uint64_t{2} << 20);
    const uint64_t count = bytes / sizeof(T);
    for (uint64_t i = count; i-- > 0;) free_.push_back(chunks_.back().start() + i * sizeof(T));
  }

  std::vector<ZeroedMemory> chunks_;
  std::vector<void*> free_;
  uint64_t live_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_SLAB_H_
