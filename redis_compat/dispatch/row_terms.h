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

inline constexpr CommandKeys OneKey(uint32_t flags) { return {1, 1, 1, flags, {}}; }
inline constexpr CommandKeys AllKeys(uint32_t flags) { return {1, -1, 1, flags, {}}; }

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_ROW_TERMS_H_
