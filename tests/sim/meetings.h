// Meetings: which mechanisms and faults of a run were at work at the same time.
//
// Bugs live where two meet. A table over many seeds tells which two have, and `meetings_test.cc`
// that every two did which can.
#ifndef ONETRIP_TESTS_SIM_MEETINGS_H_
#define ONETRIP_TESTS_SIM_MEETINGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "client_core/base/clock.h"
#include "client_core/memory/mechanism.h"
#include "tests/sim/plan.h"

namespace onetrip {

// The mechanisms of workers, those that a world sees by itself, and what breaks.
enum class Happening : uint8_t {
  kSplit,
  kTakeOver,
  kExpiryWalk,
  kSweep,
  kResolve,
  kScrub,
  kCopy,
  kMove,
  kGrow,
  kLeave,
  kEndRegisters,
  kExtents,
  kLargeTree,
  kExhaustion,
  kEpochAdvance,
  kOpenBlocks,
  kAccount,
  kCompaction,
  kFlush,
  kSwap,
  kHotWrite,
  kViewChange,
  kRecycling,  // an object is allocated that was in use before
  kShrink,     // as long as regions leave: kLeave is what workers do about it
  // A command of an agent whose operations complete inline: it reads, writes a register if its key
  // has one, or writes a record.
  kInlineRead,
  kInlineWrite,
  kInlineCommit,
  // Faults. An agent that dies is dead until another one takes its place.
  kAgentDies,
  kAgentLeaves,
  kAgentStands,
  kNodeAway,  // or stands still, and comes back
  kNodeLost,
  kNodeSlow,  // or a link to it
  kChannelBreaks,
  kLinkCut,
  kMasterAway,  // or stands still, or is another one, or its disk fails
  kControlBreaks,
  kClockWrong,
  kPoolFull,
  kCount,
};
inline constexpr auto kHappenings = static_cast<size_t>(Happening::kCount);
inline constexpr auto kFirstFault = static_cast<size_t>(Happening::kAgentDies);

std::string_view HappeningName(Happening happening);
// The happening of a fault that a plan can have.
Happening HappeningOf(FaultKind kind);

// How often a happening began while another one (or another one of its kind) was at work.
class MeetingTable {
 public:
  void Count(Happening began, Happening at_work) {
    ++counts_[static_cast<size_t>(began)][static_cast<size_t>(at_work)];
  }
  [[nodiscard]] uint64_t Of(Happening one, Happening other) const {
    const auto a = static_cast<size_t>(one);
    const auto b = static_cast<size_t>(other);
    return a == b ? counts_[a][a] : counts_[a][b] + counts_[b][a];
  }
  void Add(const MeetingTable& other);
  // A line for each mechanism: what it has met how often, and what it has not.
  [[nodiscard]] std::string ToText() const;

 private:
  std::array<std::array<uint64_t, kHappenings>, kHappenings> counts_{};
};

// The mechanisms at work in a world right now, or a round trip ago.
class Meetings {
 public:
  explicit Meetings(const Clock& clock) : clock_(clock) {}
  void Began(Happening happening);
  void Ended(Happening happening);
  // A happening that is over at once, or after `duration_ns`, or only with the run.
  void Happened(Happening happening, uint64_t duration_ns = 0);
  static constexpr uint64_t kForGood = UINT64_MAX / 2;
  [[nodiscard]] const MeetingTable& table() const { return table_; }

 private:
  static constexpr uint64_t kRoundTripNs = 5000;
  const Clock& clock_;
  std::array<uint32_t, kHappenings> at_work_{};
  std::array<uint64_t, kHappenings> until_ns_{};  // 0: never yet
  MeetingTable table_;
};

// The mechanisms and inline commands that one worker is at. Outlives the worker, whose death ends
// it.
class WorkerMeetings final : public MechanismObserver {
 public:
  explicit WorkerMeetings(Meetings& meetings) : meetings_(meetings) {}
  void Began(Mechanism mechanism) override;
  void Ended(Mechanism mechanism) override;
  void Began(Happening happening);
  void Ended(Happening happening);
  void Die();

 private:
  Meetings& meetings_;
  std::array<uint32_t, kHappenings> at_work_{};
  bool dead_ = false;
};

// One of the inline commands at work, as long as it lives. `worker`, which outlives it, may be
// null: then there is nothing to count. A flush and a swap are mechanisms themselves.
class CommandScope {
 public:
  CommandScope(WorkerMeetings* worker, const Command& command, EngineKind engine);
  CommandScope(const CommandScope&) = delete;
  CommandScope& operator=(const CommandScope&) = delete;
  ~CommandScope();

 private:
  WorkerMeetings* worker_;
  Happening happening_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_MEETINGS_H_
