// Payloads of RESTORE as servers of all ages have made them: writers of the encodings that only
// Redis writes.
#ifndef ONETRIP_TESTS_UNIT_REDIS_RDB_PAYLOADS_H_
#define ONETRIP_TESTS_UNIT_REDIS_RDB_PAYLOADS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/packed.h"
#include "redis_compat/values/rdb_collection.h"
#include "redis_compat/values/rdb_string.h"
#include "redis_compat/values/rdb_wire.h"

namespace onetrip {

using Texts = std::vector<std::string>;

inline std::string Little(uint64_t number, size_t bytes) {
  std::string made;
  for (size_t i = 0; i < bytes; ++i) made.push_back(static_cast<char>(number >> (8 * i)));
  return made;
}
inline std::string Big(uint64_t number, size_t bytes) {
  const std::string made = Little(number, bytes);
  return {made.rbegin(), made.rend()};
}
inline bool Fits(int64_t number, int bits) {
  return number >= -(int64_t{1} << (bits - 1)) && number < int64_t{1} << (bits - 1);
}

// The footer of a body, with a checksum that is right.
inline std::string Payload(const std::string& body) { return body + DumpFooter(Crc64(body)); }
inline std::string RdbString(std::string_view text) {
  std::string made;
  const std::string_view plain = AppendRdbHead(text, &made);
  return made.append(plain);
}
inline std::string RdbLength(uint64_t length) {
  std::string made(kRdbLength32Bytes, '\0');
  StoreRdbLength32(static_cast<uint32_t>(length), made.data());
  return made;
}
// As LZF, but of literal runs alone.
inline std::string RdbCompressed(std::string_view text) {
  std::string runs;
  for (size_t at = 0; at < text.size(); at += 32) {
    const std::string_view run = text.substr(at, 32);
    runs.push_back(static_cast<char>(run.size() - 1));
    runs.append(run);
  }
  return "\xc3" + RdbLength(runs.size()) + RdbLength(text.size()) + runs;
}

inline std::string ListpackEntry(std::string_view text) {
  std::string entry;
  const auto number = ParseInt64(text);
  const size_t size = text.size();
  if (number && *number >= 0 && *number < 128) {
    entry = Little(*number, 1);
  } else if (number && Fits(*number, 13)) {
    entry = Big(0xc000 | (*number & 0x1fff), 2);
  } else if (number && Fits(*number, 32)) {
    const int bytes = Fits(*number, 16) ? 2 : Fits(*number, 24) ? 3 : 4;
    entry = static_cast<char>(0xf1 + bytes - 2) + Little(*number, bytes);
  } else if (number) {
    entry = '\xf4' + Little(*number, 8);
  } else if (size < 64) {
    entry = static_cast<char>(0x80 | size) + std::string(text);
  } else if (size < 4096) {
    entry = Big(0xe000 | size, 2).append(text);
  } else {
    entry = '\xf0' + Little(size, 4).append(text);
  }
  const uint64_t bytes = entry.size();
  const int back = bytes <= 127 ? 1 : bytes < 16383 ? 2 : bytes < 2097151 ? 3 : 4;
  for (int i = back - 1; i >= 0; --i) {
    const uint64_t more = i < back - 1 ? 0x80 : 0;
    entry.push_back(static_cast<char>((bytes >> (7 * i) & 0x7f) | more));
  }
  return entry;
}
inline std::string Listpack(const Texts& texts) {
  std::string entries;
  for (const std::string& text : texts) entries += ListpackEntry(text);
  const uint64_t count = std::min<uint64_t>(texts.size(), UINT16_MAX);
  return Little(entries.size() + 7, 4) + Little(count, 2) + entries + '\xff';
}

inline std::string ZiplistEntry(std::string_view text, size_t size_before) {
  std::string entry = size_before < 254 ? Little(size_before, 1) : '\xfe' + Little(size_before, 4);
  const auto number = ParseInt64(text);
  if (number && *number >= 0 && *number <= 12) return entry + static_cast<char>(0xf1 + *number);
  if (number && Fits(*number, 8)) return entry + '\xfe' + Little(*number, 1);
  if (number && Fits(*number, 16)) return entry + '\xc0' + Little(*number, 2);
  if (number && Fits(*number, 24)) return entry + '\xf0' + Little(*number, 3);
  if (number && Fits(*number, 32)) return entry + '\xd0' + Little(*number, 4);
  if (number) return entry + '\xe0' + Little(*number, 8);
  if (text.size() < 64) {
    entry += Little(text.size(), 1);
  } else if (text.size() < 16384) {
    entry += Big(0x4000 | text.size(), 2);
  } else {
    entry += '\x80' + Big(text.size(), 4);
  }
  return entry.append(text);
}
inline std::string Ziplist(const Texts& texts) {
  std::string entries;
  size_t last = 0;
  for (const std::string& text : texts) {
    const std::string entry = ZiplistEntry(text, last);
    last = entry.size();
    entries += entry;
  }
  const uint64_t count = std::min<uint64_t>(texts.size(), UINT16_MAX);
  return Little(entries.size() + 11, 4) + Little(10 + entries.size() - last, 4) + Little(count, 2) +
         entries + '\xff';
}

// `free`: unused bytes behind each value.
inline std::string Zipmap(const Texts& texts, size_t free = 0) {
  std::string made = Little(std::min<size_t>(texts.size() / 2, 254), 1);
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t size = texts[i].size();
    made += size < 254 ? Little(size, 1) : '\xfe' + Little(size, 4);
    if (i % 2 == 1) made += Little(free, 1);
    made += texts[i];
    if (i % 2 == 1) made += std::string(free, 'f');
  }
  return made + '\xff';
}

// `numbers` in ascending order.
inline std::string Intset(std::span<const int64_t> numbers) {
  size_t bytes = 2;
  for (const int64_t number : numbers) {
    bytes = std::max<size_t>(bytes, Fits(number, 16) ? 2 : Fits(number, 32) ? 4 : 8);
  }
  std::string made = Little(bytes, 4) + Little(numbers.size(), 4);
  for (const int64_t number : numbers) made += Little(number, bytes);
  return made;
}

inline std::string DoubleBytes(double score) {
  return {reinterpret_cast<const char*>(&score), sizeof(score)};
}

// A packed collection of these entries.
inline std::string Packed(uint8_t flags, const Texts& entries, size_t entries_an_element) {
  const auto elements = static_cast<uint32_t>(entries.size() / entries_an_element);
  std::string made = PackedHeaderBytes({flags, elements});
  for (const std::string& entry : entries) AppendPackedEntry(entry, &made);
  return made;
}

// In pieces of about `piece` bytes.
inline std::string DumpPayload(ValueType type, std::string_view value, size_t piece = 1 << 20) {
  std::string made(CollectionDumper::BytesMax(value), '\0');
  CollectionDumper dumper(type, value, made);
  while (dumper.Advance(piece)) {
  }
  made.resize(dumper.made());
  return Payload(made);
}

inline constexpr CollectionLimits kTestLimits = {
    .hash = {128, 64}, .sorted_set = {128, 64}, .integer_set_members = 512};

// kDone: `type` and `value` are what was loaded.
inline CollectionLoader::State LoadPayload(std::string_view payload, ValueType* type,
                                           std::string* value, size_t piece = 1 << 20,
                                           uint64_t bytes_max = 1 << 28) {
  CollectionLoader loader(payload, kTestLimits, bytes_max);
  CollectionLoader::State state = CollectionLoader::State::kMore;
  while (state == CollectionLoader::State::kMore) state = loader.Advance(piece);
  if (state != CollectionLoader::State::kDone) return state;
  *type = loader.type();
  *value = loader.TakeValue();
  return state;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_REDIS_RDB_PAYLOADS_H_
