#include "memnode/memory_sums.h"

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/layout/shm_wire.h"

namespace onetrip {
namespace {

constexpr uint64_t kChunkBytesMin = 1 << 20;
static_assert(kChunkBytesMin % kBlockBytes == 0, "a chunk is whole blocks");
// The message names this many wrong ranges at most; a line has an end.
constexpr size_t kRangesMax = 8;

// How many bytes at the block's beginning mean something.
uint64_t LiveBytes(const RegionHeader& header, uint64_t block) {
  const bool is_free = BlockEntry(header.blocks[block]).use() == BlockEntry::Use::kFree;
  if (header.magic == kRegionMagic && !is_free) return kBlockBytes;
  return block == 0 ? kRegionHeaderBytes : 0;
}

uint64_t SumChunk(std::span<const std::byte> memory, uint64_t begin, uint64_t end) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (uint64_t at = begin; at < end; at += kBlockBytes) {
    const std::byte* region = memory.data() + at / kRegionBytes * kRegionBytes;
    const uint64_t block = at % kRegionBytes / kBlockBytes;
    const uint64_t live = LiveBytes(*reinterpret_cast<const RegionHeader*>(region), block);
    if (live != 0) XXH3_64bits_update(&state, memory.data() + at, live);
  }
  return XXH3_64bits_digest(&state);
}

uint64_t Checksum(const ImageSumsHeader& header, const std::vector<uint64_t>& sums) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &header, offsetof(ImageSumsHeader, checksum));
  XXH3_64bits_update(&state, sums.data(), sums.size() * sizeof(uint64_t));
  return XXH3_64bits_digest(&state);
}

bool WriteAt(int fd, const void* bytes, size_t count, uint64_t offset) {
  const auto* at = static_cast<const char*>(bytes);
  while (count != 0) {
    const ssize_t done = pwrite(fd, at, count, static_cast<off_t>(offset));
    if (done <= 0) return false;
    at += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<size_t>(done);
  }
  return true;
}

bool ReadAt(int fd, void* bytes, size_t count, uint64_t offset) {
  auto* at = static_cast<char*>(bytes);
  while (count != 0) {
    const ssize_t done = pread(fd, at, count, static_cast<off_t>(offset));
    if (done <= 0) return false;
    at += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<size_t>(done);
  }
  return true;
}

// Empty: they are no sums of this memory, or damaged themselves.
std::vector<uint64_t> ReadSums(int fd, const SumsName& name, uint64_t memory_bytes) {
  ImageSumsHeader header;
  if (!ReadAt(fd, &header, sizeof(header), kImageSumsOffset)) return {};
  const uint64_t chunk_bytes = SumChunkBytes(memory_bytes);
  const uint64_t count = (memory_bytes + chunk_bytes - 1) / chunk_bytes;
  if (header.magic != kImageSumsMagic || header.incarnation != name.incarnation ||
      header.life != name.life || header.chunk_bytes != chunk_bytes || header.count != count) {
    return {};
  }
  std::vector<uint64_t> sums(count);
  if (!ReadAt(fd, sums.data(), count * sizeof(uint64_t), kImageSumsOffset + sizeof(header)) ||
      header.checksum != Checksum(header, sums)) {
    return {};
  }
  return sums;
}

}  // namespace

uint64_t SumChunkBytes(uint64_t memory_bytes) {
  uint64_t chunk_bytes = kChunkBytesMin;
  while (memory_bytes / chunk_bytes >= kImageSumsMax) chunk_bytes *= 2;
  return chunk_bytes;
}

std::vector<uint64_t> SumMemory(std::span<const std::byte> memory) {
  const uint64_t chunk_bytes = SumChunkBytes(memory.size());
  std::vector<uint64_t> sums;
  sums.reserve(memory.size() / chunk_bytes + 1);
  for (uint64_t begin = 0; begin < memory.size(); begin += chunk_bytes) {
    sums.push_back(SumChunk(memory, begin, std::min<uint64_t>(begin + chunk_bytes, memory.size())));
  }
  return sums;
}

Status WriteSums(int fd, const SumsName& name, std::span<const std::byte> memory) {
  const std::vector<uint64_t> sums = SumMemory(memory);
  ImageSumsHeader header;
  header.incarnation = name.incarnation;
  header.life = name.life;
  header.chunk_bytes = SumChunkBytes(memory.size());
  header.count = sums.size();
  header.checksum = Checksum(header, sums);
  if (!WriteAt(fd, &header, sizeof(header), kImageSumsOffset) ||
      !WriteAt(fd, sums.data(), sums.size() * sizeof(uint64_t),
               kImageSumsOffset + sizeof(header)) ||
      fsync(fd) != 0) {
    return Status(StatusCode::kUnavailable, "the checksums cannot be written");
  }
  return Status::Ok();
}

std::string FindDamage(int fd, const SumsName& name, std::span<const std::byte> memory) {
  const std::vector<uint64_t> sums = ReadSums(fd, name, memory.size());
  if (sums.empty()) return "the checksums of its memory are missing or damaged";
  const uint64_t chunk_bytes = SumChunkBytes(memory.size());
  const std::vector<uint64_t> now = SumMemory(memory);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // chunks: first, end
  for (uint64_t chunk = 0; chunk < sums.size(); ++chunk) {
    if (sums[chunk] == now[chunk]) continue;
    if (!ranges.empty() && ranges.back().second == chunk) {
      ++ranges.back().second;
    } else {
      ranges.emplace_back(chunk, chunk + 1);
    }
  }
  if (ranges.empty()) return "";
  std::string text;
  for (size_t i = 0; i < std::min(ranges.size(), kRangesMax); ++i) {
    const uint64_t end = std::min<uint64_t>(ranges[i].second * chunk_bytes, memory.size());
    text += (i == 0 ? "bytes " : ", ") +
            std::to_string(kImageMemoryOffset + ranges[i].first * chunk_bytes) + " to " +
            std::to_string(kImageMemoryOffset + end - 1);
  }
  if (ranges.size() > kRangesMax) {
    text += " and " + std::to_string(ranges.size() - kRangesMax) + " more ranges";
  }
  return text + " are not what its node left there";
}

}  // namespace onetrip
