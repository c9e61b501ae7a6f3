#include "client_core/fabric/memory_ops.h"

#include <cstring>

namespace onetrip {
namespace {

bool IsAligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % 8 == 0; }

uint64_t LoadWord(const std::byte* from) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_ACQUIRE);
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
  const uint64_t head = HeadBytes(from, bytes);
  CopyOutBytes(to, from, head);
  uint64_t at = head;
  for (; at + 8 <= bytes; at += 8) {
    const uint64_t word = LoadWord(from + at);
    std::memcpy(to + at, &word, 8);
  }
  CopyOutBytes(to + at, from + at, bytes - at);
}

void CopyIn(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 8 && IsAligned(to)) {
    uint64_t word = 0;
    std::memcpy(&word, from, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
  const uint64_t head = HeadBytes(to, bytes);
  CopyInBytes(to, from, head);
  uint64_t at = head;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, from + at, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to + at), word, __ATOMIC_RELAXED);
  }
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
  }
  op.ok = true;
}

}  // namespace onetrip
