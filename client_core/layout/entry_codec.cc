#include "client_core/layout/entry_codec.h"

#include <algorithm>
#include <cstring>

#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

RegisterHeader LoadRegisterHeader(const std::byte* bytes) {
  RegisterHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  return header;
}

// Bytes that a class of that size leaves for values in place.
uint32_t InPlaceRoom(uint64_t class_bytes, const RegisterShape& shape) {
  const uint64_t ahead = shape.in_place_offset() + kInPlaceHeaderBytes;
  if (class_bytes < ahead + 8) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>((class_bytes - ahead) / 8 * 8, kInPlaceValueMax));
}

}  // namespace

uint32_t EntryKeyEnd(SlotWord word, uint64_t key_bytes) {
  const uint64_t end =
      word.is_register() ? kRegisterHeaderBytes + key_bytes : RecordKeyEnd(key_bytes);
  return static_cast<uint32_t>(std::min(end, word.size_class().bytes()));
}

bool EntryKeyLength(SlotWord word, const std::byte* bytes, uint64_t available, uint64_t* length) {
  if (available < (word.is_register() ? kRegisterHeaderBytes : kRecordHeaderBytes)) return false;
  *length =
      word.is_register() ? LoadRegisterHeader(bytes).key_bytes : LoadRecordHeader(bytes).key_bytes;
  return true;
}

bool LoadEntryKey(SlotWord word, const std::byte* bytes, uint64_t available, EntryKey* key) {
  uint64_t length = 0;
  if (!EntryKeyLength(word, bytes, available, &length)) return false;
  uint64_t offset = kRegisterHeaderBytes;
  if (word.is_register()) {
    key->keyspace = KeyspaceId{LoadRegisterHeader(bytes).keyspace};
  } else {
    const RecordHeader header = LoadRecordHeader(bytes);
    key->keyspace = KeyspaceId{header.keyspace};
    offset = RecordKeyOffset(static_cast<LogOpcode>(header.opcode));
  }
  if (offset + length > available) return false;
  key->bytes = {reinterpret_cast<const char*>(bytes) + offset, length};
  return true;
}

bool RegisterHasKey(const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                    std::string_view key) {
  if (available < kRegisterHeaderBytes + key.size()) return false;
  const RegisterHeader header = LoadRegisterHeader(bytes);
  return header.key_bytes == key.size() && header.keyspace == keyspace.value &&
         (key.empty() || std::memcmp(bytes + kRegisterHeaderBytes, key.data(), key.size()) == 0);
}

bool EntryHasKey(SlotWord word, const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                 std::string_view key) {
  return word.is_register() ? RegisterHasKey(bytes, available, keyspace, key)
                            : RecordHasKey(bytes, available, keyspace, key);
}

bool EntryHasItsClass(SlotWord word, const std::byte* bytes) {
  if (!word.is_register()) {
    const RecordHeader header = LoadRecordHeader(bytes);
    const uint64_t record_bytes = RecordBytesOf(header);
    if (word.size_class().is_root()) return SizeClass::ForRoot(record_bytes) == word.size_class();
    // The memory for one that takes a register's place is taken before its value is known, and may
    // be a register's.
    const auto opcode = static_cast<LogOpcode>(header.opcode);
    return opcode == LogOpcode::kThawed || opcode == LogOpcode::kRestated
               ? record_bytes <= word.size_class().bytes()
               : SizeClass::For(record_bytes) == word.size_class();
  }
  RegisterHeader header;
  RegisterShape shape;
  return LoadRegisterShape(word, bytes, &header, &shape);
}

RegisterShape ShapeOfRegister(SizeClass size_class, uint32_t lanes, uint32_t key_bytes,
                              SizeClass buffer_class) {
  RegisterShape shape{.lanes = lanes,
                      .in_place_bytes = 0,
                      .buffer_bytes = static_cast<uint32_t>(buffer_class.bytes()),
                      .key_bytes = key_bytes};
  shape.in_place_bytes = InPlaceRoom(size_class.bytes(), shape);
  return shape;
}

bool LoadRegisterShape(SlotWord word, const std::byte* bytes, RegisterHeader* header,
                       RegisterShape* shape) {
  *header = LoadRegisterHeader(bytes);
  const SizeClass buffer_class(header->buffer_class);
  if (header->lanes == 0 || header->lanes > kLanesMax || header->incarnation == 0 ||
      !buffer_class.is_valid() || buffer_class.bytes() % kBufferAlignBytes != 0) {
    return false;
  }
  *shape = ShapeOfRegister(word.size_class(), header->lanes, header->key_bytes, buffer_class);
  return shape->in_place_offset() <= word.size_class().bytes();
}

RegisterPlan PlanRegister(uint64_t key_bytes, uint64_t value_bytes, uint32_t lanes) {
  RegisterPlan plan;
  plan.shape.lanes = lanes;
  plan.shape.key_bytes = static_cast<uint32_t>(key_bytes);
  plan.shape.in_place_bytes =
      value_bytes > kInPlaceValueMax ? 0 : static_cast<uint32_t>((value_bytes + 7) / 8 * 8);
  plan.buffer_class = BufferClass(value_bytes);
  plan.shape.buffer_bytes = static_cast<uint32_t>(plan.buffer_class.bytes());
  plan.size_class = SizeClass::For(plan.shape.register_bytes());
  plan.shape.in_place_bytes = InPlaceRoom(plan.size_class.bytes(), plan.shape);
  return plan;
}

}  // namespace onetrip
