// Listpacks: Redis's own encoding of strings and integers one behind the other, in which RDB holds
// small collections, and streams their entries.
//
//   0..3   bytes, all of it, little-endian
//   4..5   entries; 65535: that many or more
//   6..    entries: encoding and length, the bytes, and the size of both, by which they are read
//          backwards
//   last   255
//
// Pure; any thread. They come from clients and from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_LISTPACK_H_
#define ONETRIP_REDIS_COMPAT_VALUES_LISTPACK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {

inline constexpr size_t kListpackHeadBytes = 6;
inline constexpr uint64_t kListpackMany = 0xffff;

struct ListpackEntry {
  std::string_view text;  // unless it is a number
  int64_t number = 0;
  bool is_number = false;
};
using ListpackNumberText = char[kInt64TextMax];
// The string that an entry is. `number` has room for one that is a number.
std::string_view TextOf(const ListpackEntry& entry, ListpackNumberText& number);

// The bytes of the listpack that `bytes` begin with, by its head; 0: there is none.
size_t ListpackBytes(std::string_view bytes);
// False: `bytes` are no listpack, by its two ends.
bool LoadListpackHead(std::string_view bytes, uint64_t* entries);

// Goes through entries.
class ListpackCursor {
 public:
  // `listpack`, which outlives it, has passed LoadListpackHead(), or it finds no entry. It stands
  // before the one at byte `at`.
  explicit ListpackCursor(std::string_view listpack, size_t at = kListpackHeadBytes)
      : listpack_(listpack), at_(at) {}

  // Steps over the next entry and gives it. False: there is none, or it is damaged.
  bool Next(ListpackEntry* entry);
  // The same of an entry that is a number; false if it is none, too.
  bool NextNumber(int64_t* number);
  // Steps over entries.
  bool Skip(uint64_t entries);
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] bool is_at_end() const { return at_ + 1 == listpack_.size(); }

 private:
  std::string_view listpack_;
  size_t at_;
};

// The bytes before the first entry, to be completed by EndListpack().
std::string BeginListpack();
// Appends an entry, behind the last one. Text that is an integer becomes a number.
void AppendListpackText(std::string_view text, std::string* listpack);
void AppendListpackNumber(int64_t number, std::string* listpack);
// Appends the end, and completes the head: there are `entries`.
void EndListpack(uint64_t entries, std::string* listpack);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_LISTPACK_H_
