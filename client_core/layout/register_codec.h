// Registers as bytes: encode buffers and in-place copies, look into what was read. What was read
// may be torn, recycled or rotten: nothing here trusts it.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_CODEC_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client_core/layout/register_layout.h"
#include "client_core/layout/types.h"

namespace onetrip {

// A value with the writer's name, borrowed.
struct WrittenValue {
  WorkerId worker;
  std::span<const std::byte> bytes;
};

// Bytes of the bulk WRITE of a buffer: all of it but the lock word.
constexpr uint32_t BufferBulkBytes(size_t value_bytes) {
  return kBufferHeaderBytes - kBufferBulkOffset + static_cast<uint32_t>(value_bytes);
}
// Encodes that bulk into `to`, which has room for BufferBulkBytes and is aligned to 8.
void EncodeBuffer(Ticks ticks, const WrittenValue& value, std::byte* to);
// The value of the buffer whose bulk of `available` bytes is at `bulk`, if it is whole and of the
// write at `ticks`. False otherwise.
bool DecodeBuffer(const std::byte* bulk, size_t available, Ticks ticks, WrittenValue* value);

constexpr uint32_t InPlaceBytes(size_t value_bytes) {
  return kInPlaceHeaderBytes + static_cast<uint32_t>(value_bytes);
}
// Encodes an in-place copy of the write `word` into `to`, which has room for InPlaceBytes and is
// aligned to 8. The copy does not tell whether the write is VERIFIED.
void EncodeInPlace(MetaWord word, const WrittenValue& value, std::byte* to);
// The value at `area`, `available` bytes, if it is whole and of the write `word` (VERIFIED or not).
bool DecodeInPlace(const std::byte* area, size_t available, MetaWord word, WrittenValue* value);

// Where the value of a word of a register lies, on each of its nodes, and how it is encoded there:
// in the buffer that the word names, from behind the lock on, or in the register itself.
struct ValuePlace {
  GlobalAddr addr;
  uint32_t bytes = 0;  // the longest value's, all that goes with it included
};
ValuePlace PlaceOfValue(GlobalAddr register_addr, const RegisterShape& shape, MetaWord word);
constexpr uint32_t PlacedBytes(MetaWord word, size_t value_bytes) {
  return word.is_in_register() ? InPlaceBytes(value_bytes) : BufferBulkBytes(value_bytes);
}
// Encodes into `to`, which has room for PlacedBytes and is aligned to 8. `birth` is the register's.
void EncodePlaced(Ticks birth, MetaWord word, const WrittenValue& value, std::byte* to);
// The value of that write in the bytes of its place, if it is whole there. False otherwise.
bool DecodePlaced(Ticks birth, MetaWord word, const std::byte* place, size_t available,
                  WrittenValue* value);

// A key's value as the value of a register: a word with type and deadline, then the bytes.
//
//   63..56 type   55..0 deadline, Unix milliseconds by the cluster clock; 0: never
struct KeyValue {
  std::string_view bytes;
  uint64_t deadline_ms = 0;
  uint8_t type = 0;
};
inline constexpr uint64_t kKeyValueHeadBytes = 8;
inline constexpr uint64_t kKeyValueDeadlineEnd = 1ULL << 56;
constexpr uint64_t KeyValueHead(uint64_t deadline_ms, uint8_t type) {
  return (uint64_t{type} << 56) | deadline_ms;
}
// False: it is too short for one.
bool DecodeKeyValue(std::span<const std::byte> value, KeyValue* decoded);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_CODEC_H_
