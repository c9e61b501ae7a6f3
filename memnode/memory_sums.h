// Checksums of a node's memory: taken when the node stops in order and kept in its image, compared
// when it starts again, so that what a disk lost or changed in between is found.
//
// Bytes that mean nothing do not count: a free block is zeroed before a worker gets it, so the sum
// of a chunk is over region headers and blocks that are not free. An empty pool costs little.
// The image says whether there are sums that hold (Backing); they are written before it says so.
#ifndef ONETRIP_MEMNODE_MEMORY_SUMS_H_
#define ONETRIP_MEMNODE_MEMORY_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client_core/base/status.h"

namespace onetrip {

// Which memory, and at the end of which of its lives.
struct SumsName {
  uint64_t incarnation = 0;
  uint64_t life = 0;
};

// How much memory one sum is for: 1 MiB, or more where the sums would not fit into an image.
uint64_t SumChunkBytes(uint64_t memory_bytes);

// One sum for each chunk. REQUIRES: the memory is whole regions, and no process writes it.
std::vector<uint64_t> SumMemory(std::span<const std::byte> memory);

// Puts the sums into the image `fd`, and waits until the disk has them. kUnavailable: it could not.
Status WriteSums(int fd, const SumsName& name, std::span<const std::byte> memory);

// Tells people in one line, with offsets in the file, which parts of `memory` are not as the sums
// in the image `fd` say; empty: none. Sums that cannot be read or are another memory's are a fault
// as well.
std::string FindDamage(int fd, const SumsName& name, std::span<const std::byte> memory);

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_MEMORY_SUMS_H_
