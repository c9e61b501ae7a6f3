// ClientWatch: which clients are to be closed though they have done nothing wrong: idle for too
// long, over a limit, or in the way of others. Verdicts only; the connection carries them out.
// Pure.
#ifndef ONETRIP_FRONTEND_CLIENT_WATCH_H_
#define ONETRIP_FRONTEND_CLIENT_WATCH_H_

#include <cstdint>

namespace onetrip {

// The signs that a client gives now. Times are nanoseconds of the worker's executor.
struct ClientSigns {
  uint64_t now_ns = 0;
  uint64_t last_activity_ns = 0;      // it sent something
  uint64_t last_sent_ns = 0;          // it took something
  uint64_t finishing_since_ns = 0;    // its last replies are being sent; 0: not yet
  uint64_t moved_bytes = 0;           // received and sent since it connected
  uint64_t output_bytes = 0;          // unsent
  bool awaits_input = false;          // no command of its runs
  bool is_paused = false;             // nothing is executed until it takes replies
  bool keeps_others_waiting = false;  // for memory for large values
};

// Limits that CONFIG sets; 0: there is none.
struct ClientBounds {
  uint64_t timeout_s = 0;
  uint64_t output_soft_bytes = 0;
  uint64_t output_soft_s = 0;
};

enum class ClientVerdict : uint8_t {
  kStays,
  kIdle,       // closed silently
  kOverLimit,  // unsent replies: over the soft limit for too long, or none taken for too long
  kLingers,    // it does not take its last replies
  kInTheWay,
};

class ClientWatch {
 public:
  // A paused client that takes nothing for so long is closed.
  static constexpr uint64_t kStalledNs = 60'000'000'000;
  // So is one that keeps memory that others wait for, so long, and moves less than so much.
  static constexpr uint64_t kInTheWayNs = 30'000'000'000;
  static constexpr uint64_t kLeastBytesPerS = 128 << 10;
  // A client that is to be closed has so long to take its last replies.
  static constexpr uint64_t kLingerNs = 10'000'000'000;

  // About once a second.
  ClientVerdict Judge(const ClientSigns& signs, const ClientBounds& bounds);

 private:
  bool IsOverSoftLimit(const ClientSigns& signs, const ClientBounds& bounds);
  bool IsInTheWay(const ClientSigns& signs);

  uint64_t over_soft_since_ns_ = 0;  // 0: is not
  uint64_t way_since_ns_ = 0;        // keeps others waiting since then; 0: does not
  uint64_t way_bytes_ = 0;           // moved_bytes then
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_CLIENT_WATCH_H_
