#include "client_core/layout/register_codec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

// The bulk of a buffer begins with these bytes: hash, ticks, value_bytes, worker; then the value.
constexpr size_t kBulkHeaderBytes = kBufferHeaderBytes - kBufferBulkOffset;
constexpr size_t kHashBytes = sizeof(uint64_t);

// The hash of everything behind it. One that leaves out the word in the second place accepts an old
// value under a new word.
uint64_t HashBehind(const std::byte* start, size_t bytes) {
  const size_t skip = Planted(Bug::kInPlaceHashWithoutWord) ? 2 * kHashBytes : kHashBytes;
  return XXH3_64bits(start + skip, bytes - skip);
}

}  // namespace

void EncodeBuffer(Ticks ticks, const WrittenValue& value, std::byte* to) {
  CHECK(value.bytes.size() <= UINT32_MAX - kBufferHeaderBytes);
  const BufferHeader header{.lock = 0,
                            .hash = 0,
                            .ticks = ticks.value,
                            .value_bytes = static_cast<uint32_t>(value.bytes.size()),
                            .worker = value.worker.value};
  std::memcpy(to, reinterpret_cast<const std::byte*>(&header) + kBufferBulkOffset,
              kBulkHeaderBytes);
  if (!value.bytes.empty()) {
    std::memcpy(to + kBulkHeaderBytes, value.bytes.data(), value.bytes.size());
  }
  const uint64_t hash = HashBehind(to, kBulkHeaderBytes + value.bytes.size());
  std::memcpy(to, &hash, sizeof(hash));
}

bool DecodeBuffer(const std::byte* bulk, size_t available, Ticks ticks, WrittenValue* value) {
  if (available < kBulkHeaderBytes) return false;
  BufferHeader header{};
  std::memcpy(reinterpret_cast<std::byte*>(&header) + kBufferBulkOffset, bulk, kBulkHeaderBytes);
  if (header.ticks != ticks.value || header.value_bytes > available - kBulkHeaderBytes) {
    return false;
  }
  if (HashBehind(bulk, kBulkHeaderBytes + header.value_bytes) != header.hash) return false;
  value->worker = WorkerId{header.worker};
  value->bytes = {bulk + kBulkHeaderBytes, header.value_bytes};
  return true;
}

void EncodeInPlace(MetaWord word, const WrittenValue& value, std::byte* to) {
  const InPlaceHeader header{.hash = 0,
                             .word = word.AsVerified().bits(),
                             .value_bytes = static_cast<uint32_t>(value.bytes.size()),
                             .worker = value.worker.value};
  std::memcpy(to, &header, sizeof(header));
  if (!value.bytes.empty()) {
    std::memcpy(to + sizeof(header), value.bytes.data(), value.bytes.size());
  }
  const uint64_t hash = HashBehind(to, sizeof(header) + value.bytes.size());
  std::memcpy(to, &hash, sizeof(hash));
}

bool DecodeInPlace(const std::byte* area, size_t available, MetaWord word, WrittenValue* value) {
  if (available < kInPlaceHeaderBytes) return false;
  InPlaceHeader header;
  std::memcpy(&header, area, sizeof(header));
  if (MetaWord(header.word) != word.AsVerified() ||
      header.value_bytes > available - kInPlaceHeaderBytes) {
    return false;
  }
  if (HashBehind(area, sizeof(header) + header.value_bytes) != header.hash) return false;
  value->worker = WorkerId{header.worker};
  value->bytes = {area + sizeof(header), header.value_bytes};
  return true;
}

ValuePlace PlaceOfValue(GlobalAddr register_addr, const RegisterShape& shape, MetaWord word) {
  if (word.is_in_register()) {
    const uint32_t bytes = shape.in_place_bytes == 0 ? 0 : InPlaceBytes(shape.in_place_bytes);
    return {register_addr + shape.in_place_offset(), bytes};
  }
  return {word.buffer(register_addr) + kBufferBulkOffset, shape.buffer_bytes - kBufferBulkOffset};
}

void EncodePlaced(Ticks birth, MetaWord word, const WrittenValue& value, std::byte* to) {
  if (word.is_in_register()) return EncodeInPlace(word, value, to);
  EncodeBuffer({birth.value + word.time()}, value, to);
}

bool DecodePlaced(Ticks birth, MetaWord word, const std::byte* place, size_t available,
                  WrittenValue* value) {
  return word.is_in_register() ? DecodeInPlace(place, available, word, value)
                               : DecodeBuffer(place, available, {birth.value + word.time()}, value);
}

bool DecodeKeyValue(std::span<const std::byte> value, KeyValue* decoded) {
  if (value.size() < kKeyValueHeadBytes) return false;
  uint64_t head;
  std::memcpy(&head, value.data(), sizeof(head));
  decoded->type = static_cast<uint8_t>(head >> 56);
  decoded->deadline_ms = head & (kKeyValueDeadlineEnd - 1);
  decoded->bytes = {reinterpret_cast<const char*>(value.data()) + kKeyValueHeadBytes,
                    value.size() - kKeyValueHeadBytes};
  return true;
}

}  // namespace onetrip
