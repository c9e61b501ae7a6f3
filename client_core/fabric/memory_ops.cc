#include "client_core/fabric/memory_ops.h"

#include <cstring>

namespace onetrip {
namespace {

bool IsAligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % 8 == 0; }

// Words that a copy moves in one turn of its loop: the compiler does not unroll loops of atomics.
constexpr uint64_t kStride = 4;

void CopyWordOut(std::byte* to, const std::byte* from, uint64_t word) {
  const uint64_t value =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(from) + word, __ATOMIC_ACQUIRE);
  std::memcpy(to + 8 * word, &value, 8);
}

void CopyWordIn(std::byte* to, const std::byte* from, uint64_t word) {
  uint64_t value = 0;
  std::memcpy(&value, from + 8 * word, 8);
  __atomic_store_n(reinterpret_cast<uint64_t*>(to) + word, value, __ATOMIC_RELAXED);
}

template <void (*kCopyWord)(std::byte*, const std::byte*, uint64_t)>
void CopyWords(std::byte* to, const std::byte* from, uint64_t words) {
  for (; words >= kStride; words -= kStride, to += 8 * kStride, from += 8 * kStride) {
    kCopyWord(to, from, 0);
    kCopyWord(to, from, 1);
    kCopyWord(to, from, 2);
    kCopyWord(to, from, 3);
  }
  for (; words > 0; --words, to += 8, from += 8) kCopyWord(to, from, 0);
}

// Bytes up to the next word of remote memory, at most `bytes`.
uint64_t HeadBytes(const std::byte* remote, uint64_t bytes) {
  const uint64_t head = (8 - reinterpret_cast<uintptr_t>(remote) % 8) % 8;
  return head < bytes ? head : bytes;
}

void CopyOutBytes(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    const auto byte =
        __atomic_load_n(reinterpret_cast<const unsigned char*>(from + i), __ATOMIC_ACQUIRE);
    to[i] = static_cast<std::byte>(byte);
  }
}

void CopyInBytes(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    __atomic_store_n(reinterpret_cast<unsigned char*>(to + i), static_cast<unsigned char>(from[i]),
                     __ATOMIC_RELAXED);
  }
}

}  // namespace

void CopyOut(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 8 && IsAligned(from)) return CopyWordOut(to, from, 0);
  const uint64_t head = IsAligned(from) ? 0 : HeadBytes(from, bytes);
  if (head != 0) [[unlikely]]
    CopyOutBytes(to, from, head);
  const uint64_t words = (bytes - head) / 8;
  CopyWords<CopyWordOut>(to + head, from + head, words);
  const uint64_t at = head + 8 * words;
  if (at != bytes) [[unlikely]]
    CopyOutBytes(to + at, from + at, bytes - at);
}

void CopyIn(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 8 && IsAligned(to)) {
    uint64_t word = 0;
    std::memcpy(&word, from, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
  const uint64_t head = IsAligned(to) ? 0 : HeadBytes(to, bytes);
  if (head != 0) [[unlikely]]
    CopyInBytes(to, from, head);
  const uint64_t words = (bytes - head) / 8;
  CopyWords<CopyWordIn>(to + head, from + head, words);
  const uint64_t at = head + 8 * words;
  if (at != bytes) [[unlikely]]
    CopyInBytes(to + at, from + at, bytes - at);
}

void ExecuteOp(FabricOp& op, std::byte* base) {
  std::byte* remote = base + op.offset;
  switch (op.kind) {
    case FabricOpKind::kRead:
      CopyOut(op.local, remote, op.bytes);
      break;
    case FabricOpKind::kWrite:
      CopyIn(remote, op.local, op.bytes);
      break;
    case FabricOpKind::kCas: {
      uint64_t found = op.expected;
      __atomic_compare_exchange_n(reinterpret_cast<uint64_t*>(remote), &found, op.operand, false,
                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      op.result = found;
      break;
    }
    case FabricOpKind::kFaa:
      op.result =
          __atomic_fetch_add(reinterpret_cast<uint64_t*>(remote), op.operand, __ATOMIC_SEQ_CST);
      break;
    case FabricOpKind::kMax: {
      auto* word = reinterpret_cast<uint64_t*>(remote);
      uint64_t found = __atomic_load_n(word, __ATOMIC_SEQ_CST);
      while (TakesMax(found, op.operand) &&
             !__atomic_compare_exchange_n(word, &found, op.operand, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST)) {
      }
      op.result = found;
      break;
    }
  }
  op.ok = true;
}

}  // namespace onetrip
