// AccountState: a worker's memory between its looks for lost objects (lost_memory.cc).
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_ACCOUNT_STATE_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_ACCOUNT_STATE_H_

#include <array>
#include <cstdint>

#include "client_core/layout/types.h"

namespace onetrip {

struct AccountState {
  bool may_have_lost = false;
  bool has_lost = false;            // for sure: it is looked for though memory is not short
  bool has_lost_elsewhere = false;  // than in own blocks: open ones are looked at, too
  bool anew = false;                // suspects are noted once more, though there is a note
  // The counts at the last tick of what tells that something is lost.
  uint64_t acquired_before = 0;    // open blocks
  uint64_t departures_before = 0;  // RetiredRegisters::departures()
  uint64_t unknown_before = 0;     // outcomes
  std::array<uint64_t, kMaxWorkers / 64> seats_before{};
  bool was_scarce = false;
  uint64_t turn_ns = 0;  // when it looks though memory is not short; 0: it does not
  uint64_t next_ns = 0;  // not before
  uint32_t rests = 1;    // times account_rest_us, from one look to the next
  // Before a look though memory is not short.
  enum class OpenBlocks : uint8_t { kOthers, kAcquiring, kAcquired } open_blocks{};
  uint32_t failures = 0;   // to get those, in a row
  bool looks = false;      // right now
  bool gives_way = false;  // to a take-over, which waits for its end

  void BeginTurn(uint64_t at_ns, bool elsewhere) {
    if (turn_ns != 0) return;
    turn_ns = at_ns;
    open_blocks = elsewhere ? OpenBlocks::kOthers : OpenBlocks::kAcquired;
  }
  void EndTurn() {
    turn_ns = 0;
    open_blocks = OpenBlocks::kOthers;
  }
  [[nodiscard]] bool HasTurn(uint64_t now_ns) const { return turn_ns != 0 && now_ns >= turn_ns; }
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_ACCOUNT_STATE_H_
