// Replies that tell a client that the storage could not do what a command asked.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_STATUS_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_STATUS_H_

#include <cstddef>
#include <cstdint>

#include "client_core/base/status.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

inline constexpr Status kNoHostMemory(StatusCode::kOutOfMemory, "the host has no memory");

// Replies that say the same in many places.
inline constexpr char kOomError[] = "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr char kSyntaxError[] = "ERR syntax error";
inline constexpr char kWrongTypeError[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr char kNotIntegerError[] = "ERR value is not an integer or out of range";
inline constexpr char kNotFloatError[] = "ERR value is not a valid float";
inline constexpr char kOverflowError[] = "ERR increment or decrement would overflow";
inline constexpr char kNanOrInfinityError[] = "ERR increment would produce NaN or Infinity";
inline constexpr char kTooLongError[] =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

enum class StorageStep : uint8_t {
  kRead,        // Changes nothing: whatever went wrong, trying again is safe.
  kWrite,       // One atomic step.
  kLaterWrite,  // A step of a command that has already changed something.
};

// Writes the error reply for `status`. Client libraries repeat a command by themselves when they
// see TRYAGAIN, so that word goes out only if nothing was or will be changed; an outcome that is
// not known has a word of its own. REQUIRES: !status.ok().
void ReplyStatus(ReplyWriter& out, Status status, StorageStep step);

// The same for a write to a key of `key_bytes` bytes, which may be what was too large.
void ReplyWriteFailure(ReplyWriter& out, size_t key_bytes, Status status, StorageStep step);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_STATUS_H_
