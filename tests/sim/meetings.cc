#include "tests/sim/meetings.h"

#include <algorithm>
#include <iterator>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr std::string_view kNames[] = {
    "split",         "take-over",      "expiry walk", "sweep",          "resolve",
    "scrub",         "copy",           "move",        "grow",           "leave",
    "end registers", "extents",        "large tree",  "exhaustion",     "epoch advance",
    "open blocks",   "account",        "compaction",  "flush",          "swap",
    "hot write",     "view change",    "recycling",   "shrink",         "inline read",
    "inline write",  "inline commit",  "agent dies",  "agent leaves",   "agent stands",
    "node away",     "node lost",      "node slow",   "channel breaks", "link cut",
    "master away",   "control breaks", "clock wrong", "pool full"};
static_assert(std::size(kNames) == kHappenings);

// The mechanisms of workers come first, in the same order.
static_assert(static_cast<size_t>(Mechanism::kCount) ==
              static_cast<size_t>(Happening::kViewChange));
static_assert(static_cast<size_t>(Mechanism::kSwap) == static_cast<size_t>(Happening::kSwap));
Happening HappeningOf(Mechanism mechanism) { return static_cast<Happening>(mechanism); }

Happening InlineCommand(const Command& command, EngineKind engine) {
  constexpr std::string_view kReads[] = {"GET",      "MGET", "STRLEN", "EXISTS",
                                         "GETRANGE", "TTL",  "PTTL"};
  const std::string& name = command.front();
  if (std::find(std::begin(kReads), std::end(kReads), name) != std::end(kReads)) {
    return Happening::kInlineRead;
  }
  const bool has_registers = engine != EngineKind::kSnapshot;
  return name == "SET" && has_registers ? Happening::kInlineWrite : Happening::kInlineCommit;
}

}  // namespace

std::string_view HappeningName(Happening happening) {
  return kNames[static_cast<size_t>(happening)];
}

Happening HappeningOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCrashAgent:
      return Happening::kAgentDies;
    case FaultKind::kLeaveAgent:
      return Happening::kAgentLeaves;
    case FaultKind::kPauseAgent:
    case FaultKind::kFreezeAgent:
      return Happening::kAgentStands;
    case FaultKind::kPauseNode:
    case FaultKind::kRestartNode:
      return Happening::kNodeAway;
    case FaultKind::kLoseNode:
      return Happening::kNodeLost;
    case FaultKind::kSlowNode:
    case FaultKind::kSlowLink:
      return Happening::kNodeSlow;
    case FaultKind::kBreakChannel:
      return Happening::kChannelBreaks;
    case FaultKind::kCutLink:
      return Happening::kLinkCut;
    case FaultKind::kMasterDown:
    case FaultKind::kPauseMaster:
    case FaultKind::kStoreFails:
    case FaultKind::kImpostor:
      return Happening::kMasterAway;
    case FaultKind::kBreakControl:
    case FaultKind::kBreakNodeControl:
      return Happening::kControlBreaks;
    case FaultKind::kStepClock:
    case FaultKind::kDriftClock:
      return Happening::kClockWrong;
    case FaultKind::kDrainNode:
    case FaultKind::kFillNode:
      break;  // an order: the move is what meets others
  }
  return Happening::kCount;
}

void MeetingTable::Add(const MeetingTable& other) {
  for (size_t a = 0; a < kHappenings; ++a) {
    for (size_t b = 0; b < kHappenings; ++b) counts_[a][b] += other.counts_[a][b];
  }
}

std::string MeetingTable::ToText() const {
  std::string text;
  for (size_t a = 0; a < kFirstFault; ++a) {
    text += std::string(kNames[a]) + ":";
    for (size_t b = a; b < kHappenings; ++b) {
      text += std::string(b == a ? " " : ", ") + std::string(kNames[b]) + " " +
              std::to_string(Of(static_cast<Happening>(a), static_cast<Happening>(b)));
    }
    text += "\n";
  }
  return text;
}

void Meetings::Began(Happening happening) {
  const uint64_t now_ns = clock_.NowNs();
  for (size_t other = 0; other < kHappenings; ++other) {
    const bool was = until_ns_[other] != 0 && now_ns <= until_ns_[other] + kRoundTripNs;
    if (at_work_[other] > 0 || was) table_.Count(happening, static_cast<Happening>(other));
  }
  ++at_work_[static_cast<size_t>(happening)];
}

void Meetings::Ended(Happening happening) {
  const auto index = static_cast<size_t>(happening);
  --at_work_[index];
  until_ns_[index] = std::max(until_ns_[index], clock_.NowNs());
}

void Meetings::Happened(Happening happening, uint64_t duration_ns) {
  Began(happening);
  Ended(happening);
  const auto index = static_cast<size_t>(happening);
  until_ns_[index] = std::max(until_ns_[index], clock_.NowNs() + duration_ns);
}

void WorkerMeetings::Began(Mechanism mechanism) { Began(HappeningOf(mechanism)); }

void WorkerMeetings::Ended(Mechanism mechanism) { Ended(HappeningOf(mechanism)); }

void WorkerMeetings::Began(Happening happening) {
  if (dead_) return;
  ++at_work_[static_cast<size_t>(happening)];
  meetings_.Began(happening);
}

void WorkerMeetings::Ended(Happening happening) {
  if (dead_) return;
  CHECK(at_work_[static_cast<size_t>(happening)]-- > 0);
  meetings_.Ended(happening);
}

void WorkerMeetings::Die() {
  dead_ = true;
  for (size_t i = 0; i < kHappenings; ++i) {
    for (; at_work_[i] > 0; --at_work_[i]) meetings_.Ended(static_cast<Happening>(i));
  }
}

CommandScope::CommandScope(WorkerMeetings* worker, const Command& command, EngineKind engine)
    : worker_(worker), happening_(InlineCommand(command, engine)) {
  if (command.front().starts_with("FLUSH") || command.front() == "SWAPDB") worker_ = nullptr;
  if (worker_ != nullptr) worker_->Began(happening_);
}

CommandScope::~CommandScope() {
  if (worker_ != nullptr) worker_->Ended(happening_);
}

}  // namespace onetrip
