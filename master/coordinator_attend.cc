// Who may attend, on which stream; which engines may work together; and what the cluster's time is.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "master/coordinator.h"

namespace onetrip {
namespace {

constexpr uint64_t kUsPerMs = 1000;
// How far the time may be from the wall clock before that is worth a line.
constexpr uint64_t kNoticedUs = 1'000'000;

}  // namespace

// ---- Cluster time ----

void Coordinator::StartTime(uint64_t now_us, uint64_t unix_us, bool is_first) {
  wall_origin_us_ = unix_us - now_us;
  const bool from_wall = is_first || Planted(Bug::kTimeFromWallClock);
  time_origin_us_ = (from_wall ? std::max(unix_us, record_.time_us) : record_.time_us) - now_us;
  time_is_known_ = is_first;
  const uint64_t wait_us = record_.nobody_stayed ? 0 : options_.lease_ms + options_.grace_ms;
  wall_decides_us_ = now_us + wait_us * kUsPerMs;
  record_.nobody_stayed = false;
}

uint64_t Coordinator::TimeUs(uint64_t now_us) const {
  const uint64_t slowed_us = std::min(time_ahead_us_, (now_us - ahead_since_us_) / 2);
  return time_origin_us_ + now_us - slowed_us;
}

void Coordinator::HearTime(uint64_t now_us, const MemberHello& hello) {
  if (hello.time_us == 0 || hello.member == 0) return;
  const uint64_t time_us = TimeUs(now_us);
  // The stored time runs ahead of what was told; nothing else may slow the clock. Who comes back
  // later and knows a later time is as right as the first one.
  uint64_t ahead_us = options_.time_lead_ms * kUsPerMs;
  if (std::exchange(time_is_known_, true)) {
    ahead_us = time_ahead_us_ - (time_origin_us_ + now_us - time_us);
  }
  ahead_us = std::min(ahead_us, time_us > hello.time_us ? time_us - hello.time_us : uint64_t{0});
  time_origin_us_ = std::max(time_us, hello.time_us) - now_us;
  time_ahead_us_ = ahead_us;
  ahead_since_us_ = now_us;
}

void Coordinator::LetWallClockDecide(uint64_t now_us) {
  if (time_is_known_ || now_us < wall_decides_us_) return;
  uint64_t wall_us = wall_origin_us_ + now_us;
  bool attends = false;
  for (const auto& [id, member] : members_) {
    if (member.stream == 0) continue;
    attends = true;
    if (member.wall_origin_us != 0) wall_us = std::min(wall_us, member.wall_origin_us + now_us);
  }
  // Before somebody is there nobody can be told.
  if (!attends) return;
  time_is_known_ = true;
  const uint64_t time_us = TimeUs(now_us);
  if (wall_us <= time_us) return;
  time_origin_us_ = wall_us - now_us;
  time_ahead_us_ = 0;
  AdvanceDurableTime(now_us);
  if (wall_us - time_us < kNoticedUs) return;
  Log(LogLevel::kInfo,
      "no member is left that knows the cluster's time: it goes on from the wall "
      "clock, " +
          std::to_string((wall_us - time_us) / 1'000'000) + " s after what is stored");
}

void Coordinator::AdvanceDurableTime(uint64_t now_us) {
  const uint64_t time_us = TimeUs(now_us);
  const uint64_t lead_us = options_.time_lead_ms * kUsPerMs;
  if (time_us + lead_us / 2 <= record_.time_us) return;
  record_.time_us = time_us + lead_us;
  SaveMarks();
  SaveCluster();
}

// ---- Engines ----

std::optional<std::string> Coordinator::RefuseEngine(const std::string& engine) const {
  const EngineFamily family = EngineFamilyOf(engine);
  if (family == EngineFamily::kSingleCopy && record_.replicas != 1) {
    return "engine raw writes one copy of everything, and this cluster keeps " +
           std::to_string(record_.replicas) +
           " replicas; start the agent with --engine swarm or snapshot, or make a cluster of "
           "--replicas 1";
  }
  if (record_.engines == EngineFamily::kNone || record_.engines == family) return std::nullopt;
  return family == EngineFamily::kSingleCopy
             ? "engine raw shares a cluster with no other, and this one's keys were written by "
               "swarm, snapshot or abd; start the agent with one of these, or make a cluster for it"
             : "engine " + engine +
                   " shares no cluster with raw, which wrote this one's keys; start the agent with "
                   "--engine raw, or make a cluster for it";
}

// ---- Attending ----

uint64_t Coordinator::NewestEpochOf(uint64_t life) const {
  if (life == 0 || life == record_.life) return membership_.view().epoch.value;
  auto known = lives_->find(life);
  if (known == lives_->end()) known = lives_->find(0);
  return known == lives_->end() ? 0 : known->second;
}

bool Coordinator::IsOutvoted() const {
  const auto counted = std::count_if(nodes_.begin(), nodes_.begin() + NodesInView(),
                                     [](const Node& node) { return !node.record.out; });
  return knows_newer_.size() * 2 > static_cast<size_t>(counted);
}

std::optional<std::string> Coordinator::RefuseHello(const MemberHello& hello, bool* retry) const {
  *retry = false;
  if (hello.cluster != 0 && hello.cluster != record_.cluster) {
    return "this is the master of another cluster (" + ClusterText(record_.cluster) + ", not " +
           ClusterText(hello.cluster) +
           "); check the master's address and its data directory, which may be empty or not its "
           "own";
  }
  if (KnowsNewer(hello) && !Planted(Bug::kOldStateWelcomes)) {
    return "it has the cluster map of epoch " + std::to_string(hello.epoch) +
           ", but this master knows only " + std::to_string(NewestEpochOf(hello.life)) +
           " of what it was told then: " +
           "the master's data directory is an old copy; restore the newest one, or make one by "
           "`onetrip master rebuild`";
  }
  if (hello.kind == MemberKind::kAgent) {
    if (auto refusal = RefuseEngine(hello.engine)) return refusal;
  }
  if (hello.kind != MemberKind::kOther && hello.member == 0 &&
      members_.size() >= options_.members_max) {
    *retry = true;
    return "the cluster has " + std::to_string(members_.size()) + " members, as many as can be";
  }
  return std::nullopt;
}

Attendance Coordinator::Attend(uint64_t now_us, StreamId stream, const MemberHello& hello) {
  Attendance attendance;
  if (auto refusal = RefuseHello(hello, &attendance.retry)) {
    attendance.reason = std::move(*refusal);
    if (hello.kind == MemberKind::kMemoryNode && hello.member != 0 && KnowsNewer(hello)) {
      const bool was_outvoted = IsOutvoted();
      knows_newer_.insert(hello.member);
      if (IsOutvoted() && !was_outvoted) {
        Log(LogLevel::kWarning,
            "more than half of the memory nodes know a newer state of the cluster: the data "
            "directory is an old copy, and nobody is taken for dead on its account; restore the "
            "newest one, or make one by `onetrip master rebuild`");
      }
    }
    return attendance;
  }
  knows_newer_.erase(hello.member);
  // Tools are told no time: nothing of them is durable, so that they are welcome on a full disk.
  if (hello.kind == MemberKind::kOther) {
    streams_[stream] = 0;
    attendance.welcome = true;
    return attendance;
  }
  HearTime(now_us, hello);
  AdvanceDurableTime(now_us);
  if (hello.member != 0) {
    attendance = AttendAgain(now_us, stream, hello);
  } else {
    attendance.welcome = true;
    attendance.member = record_.next_member++;
    SaveCluster();
    Member& member = members_[attendance.member];
    member.id = attendance.member;
    StartAttending(member, now_us, stream, hello);
  }
  Pump(now_us);
  return attendance;
}

Attendance Coordinator::AttendAgain(uint64_t now_us, StreamId stream, const MemberHello& hello) {
  Attendance attendance;
  const auto found = members_.find(hello.member);
  const std::string name = "member " + std::to_string(hello.member);
  if (hello.member >= record_.next_member) {
    attendance.reason = name + " is not known: that number was never given out";
    return attendance;
  }
  if (found == members_.end() && hello.kind == MemberKind::kAgent) {
    attendance.expelled = true;
    attendance.reason = name + " was taken for dead and expelled; start the process again";
    return attendance;
  }
  if (found != members_.end()) {
    Member& member = found->second;
    if (member.kind != hello.kind) {
      attendance.reason = name + " is a process of another kind";
      return attendance;
    }
    if (member.standing == Standing::kExpelled || member.standing == Standing::kFenced) {
      attendance.expelled = true;
      attendance.reason = name + " was taken for dead and expelled; start the process again";
      return attendance;
    }
    // The process has noticed sooner than the master that its earlier stream is broken.
    if (member.stream != 0) {
      Close(member.stream, "the process has opened a newer stream");
      if (member.kind == MemberKind::kMemoryNode) {
        NodeAway(member, now_us, "its stream was replaced", Away::kMayReturn);
      } else {
        FreeUnclaimedSeats(member);
        DropRequests(member);
      }
    }
  }
  Member& member = members_[hello.member];
  member.id = hello.member;
  StartAttending(member, now_us, stream, hello);
  attendance.welcome = true;
  attendance.member = hello.member;
  return attendance;
}

void Coordinator::StartAttending(Member& member, uint64_t now_us, StreamId stream,
                                 const MemberHello& hello) {
  member.kind = hello.kind;
  member.info = {hello.pid, hello.host, hello.address, hello.version};
  member.stream = stream;
  member.standing = Standing::kUp;
  member.lease_end_us = now_us + options_.lease_ms * kUsPerMs;
  member.renewed_us = now_us;
  member.engine = hello.engine;
  member.wall_origin_us = hello.wall_us == 0 ? 0 : hello.wall_us - now_us;
  if (members_.size() == 1) last_tick_us_ = now_us;  // without members there were no ticks
  streams_[stream] = member.id;
  if (member.kind != MemberKind::kAgent) return;
  effects_.change.agents[member.id] = member.info;
  member.sent = 0;
  member.told_usage = 0;
  member.late_since_us = 0;
  member.reaches.clear();
  // A process says so anew on every stream.
  for (auto& [node, unreached] : member.unreached) {
    if (unreached.over_us == 0) unreached.over_us = now_us;
  }
  if (AddressesKnown() && MaySendView(member)) SendView(member, now_us);
  if (hold_.has_value() && member.sent != 0) Send(stream, HoldMessage());
  // It may not have got it; the id tells.
  if (repair_.has_value() && repair_->member == member.id && member.sent != 0) {
    Send(stream, repair_->message);
  }
}

}  // namespace onetrip
