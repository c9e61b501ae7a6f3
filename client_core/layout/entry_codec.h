// An entry is the record or register that a slot word names, as bytes; these functions find its
// key. The bytes read may be recycled or rotten: nothing here trusts them.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_ENTRY_CODEC_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_ENTRY_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Bytes from the beginning of what `word` names to the end of a key of that length, at most.
uint32_t EntryKeyEnd(SlotWord word, uint64_t key_bytes);

struct EntryKey {
  KeyspaceId keyspace;
  std::string_view bytes;  // borrowed from what was read
};
// The length of the key, if its header is within the first `available` bytes.
bool EntryKeyLength(SlotWord word, const std::byte* bytes, uint64_t available, uint64_t* length);
// The key, if it is within them.
bool LoadEntryKey(SlotWord word, const std::byte* bytes, uint64_t available, EntryKey* key);
// True if they hold that key, wholly; the first takes a register without its slot word.
bool RegisterHasKey(const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                    std::string_view key);
bool EntryHasKey(SlotWord word, const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                 std::string_view key);
// True if the entry they hold, a key included, is of the word's size class.
bool EntryHasItsClass(SlotWord word, const std::byte* bytes);

// The shape of the register that `word` names, by its header. False: no register has such a header.
bool LoadRegisterShape(SlotWord word, const std::byte* bytes, RegisterHeader* header,
                       RegisterShape* shape);
// The shape of a register of that class, key and lanes, with buffers of that class.
RegisterShape ShapeOfRegister(SizeClass size_class, uint32_t lanes, uint32_t key_bytes,
                              SizeClass buffer_class);
// The shape of a new register for values of up to `value_bytes`, and its size class: what the class
// has left over makes room in place.
struct RegisterPlan {
  RegisterShape shape;
  SizeClass size_class;
  SizeClass buffer_class;
};
RegisterPlan PlanRegister(uint64_t key_bytes, uint64_t value_bytes, uint32_t lanes);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_ENTRY_CODEC_H_
