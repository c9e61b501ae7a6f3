// The operations of the contract on memory of this process: what shm runs inline, what a sim node
// runs when a request reaches it, and what a tcp node will run for its channels.
//
// Bulk copies race with writers by design: every access is an atomic of at most 8 bytes, which is
// defined behaviour and clean under ThreadSanitizer. Loads acquire and stores of words release, so
// a reader that sees a word also sees what its writer wrote before it; bulk stores are relaxed and
// published by the CAS or word that follows. On x86 all of them are plain moves.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_MEMORY_OPS_H_
#define ONETRIP_CLIENT_CORE_FABRIC_MEMORY_OPS_H_

#include <cstddef>
#include <cstdint>

#include "client_core/fabric/round_trip.h"

namespace onetrip {

// True if [offset, offset + bytes) lies within a memory of `memory_bytes` and, for words, is
// aligned. Safe against overflow.
constexpr bool InBounds(const FabricOp& op, uint64_t memory_bytes) {
  if (op.bytes > memory_bytes || op.offset > memory_bytes - op.bytes) return false;
  const bool is_word = op.kind != FabricOpKind::kRead && op.kind != FabricOpKind::kWrite;
  return !is_word || (op.bytes == 8 && op.offset % 8 == 0);
}

// Copies remote memory out, by acquire loads of words (bytes at unaligned ends).
void CopyOut(std::byte* to, const std::byte* from, uint64_t bytes);
// Copies into remote memory, by relaxed stores of words (bytes at unaligned ends); a single aligned
// word is stored with release.
void CopyIn(std::byte* to, const std::byte* from, uint64_t bytes);

// Executes `op` on the memory at `base`. REQUIRES: InBounds.
void ExecuteOp(FabricOp& op, std::byte* base);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_MEMORY_OPS_H_
