// Frame pool: where coroutine frames and other short-lived objects of the data path come from.
//
// A thread-local free list per 64-byte size class, so that an operation allocates nothing after
// warm-up. A frame may be freed on another thread than the one that allocated it; it then joins the
// list of the thread that freed it. Under ASan and TSan every frame is a plain malloc, so that the
// tools see each life of it.
#ifndef ONETRIP_CLIENT_CORE_CORO_FRAME_POOL_H_
#define ONETRIP_CLIENT_CORE_CORO_FRAME_POOL_H_

#include <cstddef>
#include <cstdlib>

#include "client_core/base/check.h"

namespace onetrip {

inline constexpr size_t kFrameClassBytes = 64;
inline constexpr size_t kFrameClassCount = 64;  // Pooled up to 4 KiB; larger frames are malloc'ed.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoolFrames = false;
#else
inline constexpr bool kPoolFrames = true;
#endif

struct FreeFrame {
  FreeFrame* next;
};

// Trivially destructible on purpose: an access is then one TLS-relative load, without a guard.
struct FrameFreeLists {
  FreeFrame* heads[kFrameClassCount + 1];
};
inline constinit thread_local FrameFreeLists tls_frame_lists{};

inline size_t FrameClass(size_t bytes) { return (bytes + kFrameClassBytes - 1) / kFrameClassBytes; }

// Returns at least `bytes` bytes aligned as malloc does. Never null: memory that the process cannot
// do without is a CHECK.
inline void* AllocateFrame(size_t bytes) {
  const size_t size_class = FrameClass(bytes);
  if (kPoolFrames && size_class <= kFrameClassCount) {
    FreeFrame*& head = tls_frame_lists.heads[size_class];
    if (head != nullptr) {
      FreeFrame* frame = head;
      head = frame->next;
      return frame;
    }
    bytes = size_class * kFrameClassBytes;
  }
  void* memory = std::malloc(bytes);
  CHECK(memory != nullptr);
  return memory;
}

// Gives back what AllocateFrame(bytes) returned, with the same `bytes`.
inline void ReleaseFrame(void* memory, size_t bytes) {
  const size_t size_class = FrameClass(bytes);
  if (kPoolFrames && size_class <= kFrameClassCount) {
    auto* frame = static_cast<FreeFrame*>(memory);
    frame->next = tls_frame_lists.heads[size_class];
    tls_frame_lists.heads[size_class] = frame;
    return;
  }
  std::free(memory);
}

// Frees what the calling thread keeps in its lists; a thread calls it before it ends.
inline void TrimThreadFrames() {
  for (FreeFrame*& head : tls_frame_lists.heads) {
    while (head != nullptr) {
      FreeFrame* frame = head;
      head = frame->next;
      std::free(frame);
    }
  }
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_FRAME_POOL_H_
