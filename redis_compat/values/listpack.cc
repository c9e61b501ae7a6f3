#include "redis_compat/values/listpack.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr uint8_t kListpackEnd = 0xff;

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// Little-endian. REQUIRES: they are there.
uint64_t UnsignedAt(std::string_view bytes, size_t at, size_t count) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) number |= uint64_t{ByteAt(bytes, at + i)} << (8 * i);
  return number;
}
int64_t SignedAt(std::string_view bytes, size_t at, size_t count) {
  const size_t unused = 64 - 8 * count;
  return static_cast<int64_t>(UnsignedAt(bytes, at, count) << unused) >> unused;
}

// Where the bytes of an entry begin, and how many there are. Numbers of 7 bits lie in the first
// byte, those of 13 in the first and the next one.
struct EntryHead {
  size_t begin = 0;
  size_t size = 0;
  bool is_number = false;
};

// REQUIRES: at < last, where the listpack's last byte is.
bool ReadEntryHead(std::string_view bytes, size_t at, size_t last, EntryHead* head) {
  const uint8_t first = ByteAt(bytes, at);
  const bool is_short_text = first >> 6 == 2;
  const bool is_middle_text = first >> 4 == 0xe;
  const bool is_long_text = first == 0xf0;
  head->is_number = !is_short_text && !is_middle_text && !is_long_text;
  const size_t head_bytes = is_long_text ? 5 : is_middle_text ? 2 : 1;
  if (head_bytes > last - at) return false;
  head->begin = at + head_bytes;
  if (is_short_text) {
    head->size = first & 0x3f;
  } else if (is_middle_text) {
    head->size = (first & 0xfU) << 8 | ByteAt(bytes, at + 1);
  } else if (is_long_text) {
    head->size = UnsignedAt(bytes, at + 1, 4);
  } else if (first < 0x80) {
    head->size = 0;
  } else if (first >> 5 == 6) {
    head->size = 1;
  } else if (first >= 0xf1 && first <= 0xf3) {
    head->size = first - 0xf1U + 2;
  } else {
    head->size = 8;
    return first == 0xf4;
  }
  return true;
}

int64_t NumberAt(std::string_view bytes, const EntryHead& head) {
  const int64_t first = ByteAt(bytes, head.begin - 1);
  if (head.size == 0) return first;
  if (head.size > 1) return SignedAt(bytes, head.begin, head.size);
  const int64_t bits = (first & 0x1f) << 8 | ByteAt(bytes, head.begin);
  return bits < 1 << 12 ? bits : bits - (1 << 13);
}

// Bytes of the size behind an entry of that many. Redis's limits are one less than they could be.
size_t BackBytes(uint64_t bytes) {
  if (bytes <= 127) return 1;
  if (bytes < 16383) return 2;
  if (bytes < 2097151) return 3;
  return bytes < 268435455 ? 4 : 5;
}

// True if the size that ends at `at` is `bytes`, in as many bytes as it takes.
bool IsBack(std::string_view listpack, size_t at, uint64_t bytes) {
  uint64_t size = 0;
  for (size_t shift = 0; shift <= 28; shift += 7, --at) {
    size |= static_cast<uint64_t>(ByteAt(listpack, at) & 0x7f) << shift;
    if ((ByteAt(listpack, at) & 0x80) == 0) return size == bytes;
  }
  return false;
}

// Appends the size of the entry that begins at `begin`.
void AppendBack(size_t begin, std::string* listpack) {
  const uint64_t bytes = listpack->size() - begin;
  for (size_t left = BackBytes(bytes); left > 0; --left) {
    const bool is_first = left == BackBytes(bytes);
    const uint64_t bits = bytes >> (7 * (left - 1)) & 0x7f;
    listpack->push_back(static_cast<char>(is_first ? bits : bits | 0x80));
  }
}

void AppendBytes(uint64_t number, size_t bytes, std::string* listpack) {
  for (size_t i = 0; i < bytes; ++i) listpack->push_back(static_cast<char>(number >> (8 * i)));
}

}  // namespace

std::string_view TextOf(const ListpackEntry& entry, ListpackNumberText& number) {
  if (!entry.is_number) return entry.text;
  return {number, static_cast<size_t>(FormatInt64(entry.number, number) - number)};
}

size_t ListpackBytes(std::string_view bytes) {
  return bytes.size() < kListpackHeadBytes + 1 ? 0 : UnsignedAt(bytes, 0, 4);
}

bool LoadListpackHead(std::string_view bytes, uint64_t* entries) {
  if (bytes.size() < kListpackHeadBytes + 1 || ListpackBytes(bytes) != bytes.size()) return false;
  *entries = UnsignedAt(bytes, 4, 2);
  return ByteAt(bytes, bytes.size() - 1) == kListpackEnd;
}

bool ListpackCursor::Next(ListpackEntry* entry) {
  const size_t last = listpack_.empty() ? 0 : listpack_.size() - 1;
  EntryHead head;
  if (at_ >= last || !ReadEntryHead(listpack_, at_, last, &head) || head.size > last - head.begin) {
    return false;
  }
  const size_t bytes = head.begin + head.size - at_;
  const size_t back = BackBytes(bytes);
  if (back > last - at_ - bytes || !IsBack(listpack_, at_ + bytes + back - 1, bytes)) return false;
  entry->is_number = head.is_number;
  if (head.is_number) {
    entry->number = NumberAt(listpack_, head);
  } else {
    entry->text = listpack_.substr(head.begin, head.size);
  }
  at_ += bytes + back;
  return true;
}

bool ListpackCursor::NextNumber(int64_t* number) {
  ListpackEntry entry;
  if (!Next(&entry) || !entry.is_number) return false;
  *number = entry.number;
  return true;
}

bool ListpackCursor::Skip(uint64_t entries) {
  ListpackEntry entry;
  for (; entries > 0; --entries) {
    if (!Next(&entry)) return false;
  }
  return true;
}

std::string BeginListpack() { return std::string(kListpackHeadBytes, '\0'); }

void AppendListpackText(std::string_view text, std::string* listpack) {
  if (const auto number = ParseInt64(text)) return AppendListpackNumber(*number, listpack);
  CHECK(text.size() <= UINT32_MAX);
  const size_t begin = listpack->size();
  const size_t size = text.size();
  if (size < 64) {
    listpack->push_back(static_cast<char>(0x80 | size));
  } else if (size < 4096) {
    listpack->push_back(static_cast<char>(0xe0 | size >> 8));
    listpack->push_back(static_cast<char>(size));
  } else {
    listpack->push_back(static_cast<char>(0xf0));
    AppendBytes(size, 4, listpack);
  }
  listpack->append(text);
  AppendBack(begin, listpack);
}

void AppendListpackNumber(int64_t number, std::string* listpack) {
  const size_t begin = listpack->size();
  const auto bits = static_cast<uint64_t>(number);
  const auto fits = [number](unsigned in_bits) {
    const int64_t limit = int64_t{1} << (in_bits - 1);
    return number >= -limit && number < limit;
  };
  if (number >= 0 && number < 128) {
    listpack->push_back(static_cast<char>(number));
  } else if (fits(13)) {
    listpack->push_back(static_cast<char>(0xc0 | (bits >> 8 & 0x1f)));
    listpack->push_back(static_cast<char>(bits));
  } else {
    const size_t bytes = fits(16) ? 2 : fits(24) ? 3 : fits(32) ? 4 : 8;
    listpack->push_back(static_cast<char>(bytes == 8 ? 0xf4 : 0xf1 + bytes - 2));
    AppendBytes(bits, bytes, listpack);
  }
  AppendBack(begin, listpack);
}

void EndListpack(uint64_t entries, std::string* listpack) {
  listpack->push_back(static_cast<char>(kListpackEnd));
  const uint64_t bytes = listpack->size();
  CHECK(bytes <= UINT32_MAX);
  for (size_t i = 0; i < 4; ++i) (*listpack)[i] = static_cast<char>(bytes >> (8 * i));
  const uint64_t told = std::min(entries, kListpackMany);
  (*listpack)[4] = static_cast<char>(told);
  (*listpack)[5] = static_cast<char>(told >> 8);
}

}  // namespace onetrip
