// Flags, categories and key positions that many rows of the command table have in common.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_ROW_TERMS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_ROW_TERMS_H_

#include "redis_compat/dispatch/command_table.h"

namespace onetrip {

inline constexpr uint32_t kAnyState = kLoading | kStale;
inline constexpr uint32_t kSession = kNoScript | kAnyState;
inline constexpr uint32_t kSessionFast = kSession | kFast | kNoAuth | kAllowBusy;
inline constexpr uint32_t kAdminSession = kAdmin | kSession;
inline constexpr uint32_t kCatHandshake = kCatFast | kCatConnection;
inline constexpr uint32_t kCatClient = kCatSlow | kCatConnection;
inline constexpr uint32_t kCatOperator = kCatAdmin | kCatSlow | kCatDangerous;
inline constexpr uint32_t kCatFlush = kCatKeyspace | kCatWrite | kCatSlow | kCatDangerous;
inline constexpr uint32_t kCatInspect = kCatKeyspace | kCatRead | kCatFast;
inline constexpr uint32_t kCatReadString = kCatRead | kCatString;
inline constexpr uint32_t kCatReadBitmap = kCatRead | kCatBitmap;
inline constexpr uint32_t kCatWriteBitmap = kCatWrite | kCatBitmap;
inline constexpr uint32_t kCatReadKeyspace = kCatKeyspace | kCatRead | kCatSlow;
inline constexpr uint32_t kCatWriteString = kCatWrite | kCatString;

inline constexpr uint32_t kCatReadHash = kCatRead | kCatHash;
inline constexpr uint32_t kCatWriteHash = kCatWrite | kCatHash;
inline constexpr uint32_t kCatReadList = kCatRead | kCatList;
inline constexpr uint32_t kCatWriteList = kCatWrite | kCatList;
inline constexpr uint32_t kCatReadSet = kCatRead | kCatSet;
inline constexpr uint32_t kCatWriteSet = kCatWrite | kCatSet;
inline constexpr uint32_t kCatReadSortedSet = kCatRead | kCatSortedSet;
inline constexpr uint32_t kCatWriteSortedSet = kCatWrite | kCatSortedSet;
inline constexpr uint32_t kCatReadGeo = kCatRead | kCatGeo;
inline constexpr uint32_t kCatWriteGeo = kCatWrite | kCatGeo;
inline constexpr uint32_t kCatReadStream = kCatRead | kCatStream;
inline constexpr uint32_t kCatWriteStream = kCatWrite | kCatStream;

inline constexpr CommandKeys OneKey(uint32_t flags) { return {1, 1, 1, flags, {}}; }
// The argument before `first` says how many keys there are.
inline constexpr CommandKeys CountedKeys(int16_t first, uint32_t flags) {
  return {first, 1, 1, flags, {}, /*is_counted=*/true};
}
// It is to be found in the call, at `first` or behind.
inline constexpr CommandKeys KeyToFind(int16_t first, uint32_t flags, std::string_view notes,
                                       size_t (*find)(std::span<const std::string_view>)) {
  CommandKeys keys{first, first, 1, flags, notes};
  keys.find = find;
  return keys;
}
// The arguments behind STORE and STOREDIST, of those from `first` on.
inline constexpr CommandKeys StoreKey(int16_t first, uint32_t flags) {
  CommandKeys keys{first, first, 1, flags, {}};
  keys.is_option = true;
  return keys;
}
// The first half of what stands behind STREAMS, which comes at `first` at the earliest.
inline constexpr CommandKeys StreamKeys(int16_t first, uint32_t flags) {
  CommandKeys keys{first, -1, 1, flags, {}};
  keys.is_streams = true;
  return keys;
}
inline constexpr CommandKeys AllKeys(uint32_t flags) { return {1, -1, 1, flags, {}}; }

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_ROW_TERMS_H_
