// Memory nodes that go out and come back, and what agents repair meanwhile (docs/MASTER.md).
//
// One repair at a time, and none whose agent could still be at it is followed by anything that it
// could spoil: whoever was asked and does not answer is fenced first.
#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/region_layout.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

bool Contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::string NodesText(const std::vector<NodeId>& nodes) {
  std::string text = nodes.size() == 1 ? "memory node" : "memory nodes";
  for (size_t i = 0; i < nodes.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(nodes[i].value);
  }
  return text;
}

}  // namespace

// ---- What is so ----

bool Coordinator::HoldsRegion(NodeId node) const {
  return node.value < held_.size() && held_[node.value] != 0;
}

std::vector<NodeId> Coordinator::Leaving(uint64_t now_us) const {
  std::vector<NodeId> leaving;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    if (!node.record.out && (node.cut_off || (!node.serving && now_us >= node.lost_at_us))) {
      leaving.push_back(NodeId{id});
    }
  }
  if (!leaving.empty() && RegionsWithoutMajority() != 0 && !LossIsAccepted(leaving)) return {};
  return leaving;
}

size_t Coordinator::RegionsWithoutMajority(const std::vector<uint16_t>& without) const {
  const View& view = membership_.view();
  const auto serves = [&](NodeId node) {
    return nodes_[node.value].serving && !nodes_[node.value].cut_off &&
           std::find(without.begin(), without.end(), node.value) == without.end();
  };
  return static_cast<size_t>(
      std::count_if(view.regions.begin(), view.regions.end(), [&](const RegionPlacement& region) {
        const auto live = std::count_if(
            region.nodes.begin(), region.nodes.begin() + view.replicas - region.missing, serves);
        // Fewer live only where the loss of the others was accepted.
        return live < std::min(Majority(view.replicas), view.replicas - region.missing);
      }));
}

std::vector<NodeId> Coordinator::DueOut(uint64_t now_us) const {
  std::vector<NodeId> leave = Leaving(now_us);
  // What has no region goes without a hold.
  std::erase_if(leave, [this](NodeId node) { return !HoldsRegion(node); });
  const bool long_enough = std::all_of(leave.begin(), leave.end(), [&](NodeId node) {
    return now_us >= nodes_[node.value].lost_at_us + options_.node_wait_ms * 1000;
  });
  if (SomebodyWorks() || (long_enough && HasQueued(ChangeKind::kJoin))) return leave;
  // Nobody needs to go on without the others, which may come back as they were.
  std::erase_if(leave, [this](NodeId node) {
    return nodes_[node.value].damage.empty() && !nodes_[node.value].cut_off;
  });
  return leave;
}

bool Coordinator::IsHarmless(const Member& member, const std::vector<NodeId>& leave) const {
  if (member.standing == Standing::kFenced) return true;
  if (member.standing != Standing::kExpelled) return false;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    if (node.record.out || Contains(leave, NodeId{id})) continue;
    for (const uint16_t index : member.seats) {
      if (!node.fenced.contains(seats_.at(index).worker.value)) return false;
    }
  }
  return true;
}

bool Coordinator::InForceEverywhere(uint64_t epoch) const {
  return std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const Member& member = entry.second;
    return !Counts(member) || member.in_force >= epoch || IsHarmless(member, {});
  });
}

bool Coordinator::HasFencedAll(uint16_t node) const {
  const std::vector<WorkerId> workers = ExpelledWorkers();
  return std::all_of(workers.begin(), workers.end(),
                     [&](WorkerId worker) { return nodes_[node].fenced.contains(worker.value); });
}

bool Coordinator::SomebodyWorks() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
    const Member& member = entry.second;
    return member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
           member.stream != 0 && member.sent != 0 && !member.seats.empty();
  });
}

void Coordinator::CountMissing() {
  const View& view = membership_.view();
  missing_regions_ = 0;
  held_.assign(view.nodes.size(), 0);
  lacking_.assign(view.nodes.size(), 0);
  for (const RegionPlacement& region : view.regions) {
    missing_regions_ += region.missing != 0 ? 1 : 0;
    for (int i = 0; i < view.replicas; ++i) {
      ++held_.at(region.nodes[i].value);
      if (i >= view.replicas - region.missing) ++lacking_.at(region.nodes[i].value);
    }
  }
}

void Coordinator::SaveRegions(const std::vector<uint32_t>& regions) {
  for (const uint32_t region : regions) {
    effects_.change.regions[region] = membership_.view().regions[region];
  }
  CountMissing();
}

// ---- What is due ----

std::optional<Coordinator::Hold> Coordinator::NextRepairHold(uint64_t now_us) const {
  if (now_us < repair_not_before_us_) return std::nullopt;
  Hold hold;
  hold.leave = DueOut(now_us);
  if (!hold.leave.empty()) {
    hold.work = Work::kNodeOut;
    return hold;
  }
  if (!Leaving(now_us).empty()) return std::nullopt;
  if (!record_.resolve_due || !SomebodyWorks() || !AllServe()) return std::nullopt;
  hold.work = Work::kResolve;
  return hold;
}

std::optional<Coordinator::Hold> Coordinator::NextCopy(uint64_t now_us) const {
  const bool too_early = now_us < copy_not_before_us_ || now_us < repair_not_before_us_;
  return too_early || repair_.has_value() ? std::nullopt : DueCopy();
}

std::optional<Coordinator::Hold> Coordinator::DueCopy() const {
  if (missing_regions_ == 0 || record_.scrub_due || record_.resolve_due || !SomebodyWorks() ||
      !AllServe() || !InForceEverywhere(placement_epoch_)) {
    return std::nullopt;
  }
  const View& view = membership_.view();
  std::vector<bool> may_copy;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    may_copy.push_back(!nodes_[id].record.out && WhoDoesNotReach(NodeId{id}).empty());
  }
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    const RegionPlacement& placement = view.regions[region];
    for (int i = view.replicas - placement.missing; i < view.replicas; ++i) {
      if (!may_copy[placement.nodes[i].value]) continue;
      Hold hold;
      hold.work = Work::kCopy;
      hold.region = region;
      hold.target = placement.nodes[i];
      return hold;
    }
  }
  return std::nullopt;
}

bool Coordinator::StillDue(const Hold& hold, uint64_t now_us) const {
  if (hold.work == Work::kNodeOut) return DueOut(now_us) == hold.leave;
  // Whoever ended amid a write may have left words whose bytes the target does not have: that is
  // scrubbed first.
  const bool ended_in_between =
      std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
        const Member& member = entry.second;
        const bool ended =
            member.standing == Standing::kExpelled || member.standing == Standing::kFenced;
        return ended && !member.seats.empty() && member.held < hold.epoch;
      });
  if (hold.work == Work::kCopy && ended_in_between) return false;
  const bool leaves =
      hold.work == Work::kLeave || hold.work == Work::kMoveIndex || hold.work == Work::kCut;
  if (leaves && (!MovesAreWanted() || !AwaitsNoCopy())) return false;
  if (hold.work == Work::kCut && !LeavingAreEmpty()) return false;
  return AllServe() && SomebodyWorks();
}

// ---- Holds for a repair ----

Coordinator::Member* Coordinator::Repairer() {
  Member* first = nullptr;
  for (auto& [id, member] : members_) {
    const bool works = member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
                       member.stream != 0 && member.sent != 0 && !member.seats.empty();
    if (!works) continue;
    if (id > failed_repairer_) return &member;
    if (first == nullptr) first = &member;
  }
  return first;
}

void Coordinator::SettleRepairHold(uint64_t now_us) {
  if (hold_->repaired) return CommitRepaired(now_us);
  if (hold_->failed) {
    // There is no memory for it, perhaps; all would stand still again and again.
    if (hold_->work == Work::kMoveIndex) {
      move_not_before_us_ = now_us + options_.leave_again_ms * 1000;
    }
    return EndHold(now_us, "");
  }
  // What was asked for is waited for, whatever has changed meanwhile: it may be half done.
  if (repair_.has_value() && IsUnderHold(repair_->kind)) return;
  if (!StillDue(*hold_, now_us)) return EndHold(now_us, "");
  const std::string missing = WhoDoesNotHold(*hold_);
  if (!missing.empty()) {
    if (now_us < hold_->end_us) return;
    // What waits for a copy need not be waited for by what is more urgent.
    const bool of_region = IsOfRegion(hold_->work);
    (of_region ? copy_not_before_us_ : repair_not_before_us_) =
        now_us + options_.repair_retry_ms * 1000;
    const uint64_t timeout_ms = HoldTimeoutMs(hold_->work);
    if (of_region) ++copies_given_up_;
    return EndHold(now_us, missing + " did not stop its operations within " +
                               std::to_string(timeout_ms) + " ms");
  }
  // Nobody is amid a slot write: from here on the lost replicas have no say.
  if (hold_->work == Work::kNodeOut || hold_->work == Work::kRecordsOnly ||
      hold_->work == Work::kLeave || hold_->work == Work::kCut ||
      (hold_->work == Work::kMove && Planted(Bug::kMoveUncopied))) {
    return CommitRepaired(now_us);
  }
  // One at a time.
  if (repair_.has_value()) return;
  Member* const agent = Repairer();
  CHECK(agent != nullptr);
  MembershipState proposed = membership_;
  proposed.NextEpoch();
  RepairOrder order;
  if (hold_->work == Work::kCopy) {
    order.kind = RepairKind::kCopyRegion;
    order.region = hold_->region;
    proposed.CopyNext(hold_->region, hold_->target);
  } else if (hold_->work == Work::kMove) {
    const RegionMove& move = hold_->move;
    order.kind = RepairKind::kMoveRegion;
    order.region = move.region;
    order.source = move.from;
    order.target = {move.to, move.base};
  } else if (hold_->work == Work::kGrow) {
    order.kind = RepairKind::kFormatRegions;
    order.region = static_cast<uint32_t>(proposed.view().regions.size());
    proposed.AddRegions(hold_->grown);
  } else if (hold_->work == Work::kMoveIndex) {
    order.kind = RepairKind::kMoveSubtables;
    proposed.SetDirectory(OtherDirectory(record_.directory));
  }
  order.view = std::make_shared<const View>(proposed.view());
  SendRepair(*agent, now_us, std::move(order));
}

void Coordinator::CommitRepaired(uint64_t now_us) {
  const Hold hold = *std::exchange(hold_, std::nullopt);
  if (IsOfRegion(hold.work)) copies_given_up_ = 0;
  if (hold.work == Work::kCopy) {
    membership_.CopyDone(hold.region, hold.target);
    SaveRegions({hold.region});
    PauseCopies(hold, now_us);
    if (missing_regions_ == 0) {
      Log(LogLevel::kInfo, "every region has all its replicas again");
    }
  } else if (hold.work == Work::kResolve) {
    record_.resolve_due = false;
    record_.heal_due = false;
    registers_ended_ = false;  // one may be back that only a backup named
    BeginWalkAnew();
    Log(LogLevel::kInfo, "slots are resolved; agents held theirs for " +
                             std::to_string((now_us - hold.since_us + 500) / 1000) + " ms");
  } else if (hold.work == Work::kMove || hold.work == Work::kRecordsOnly) {
    CommitMove(hold, now_us);
  } else if (hold.work == Work::kGrow) {
    CommitGrowth(hold, now_us);
  } else if (hold.work == Work::kLeave || hold.work == Work::kMoveIndex ||
             hold.work == Work::kCut) {
    CommitLeave(hold, now_us);
  } else {
    PutOut(hold.leave, now_us);
  }
  Commit(now_us);
}

void Coordinator::ScrubAnew() {
  record_.scrub_due = true;
  BeginWalkAnew();
  if (repair_.has_value()) repair_->overtaken = true;
}

// There is no way back: what is resolved without a node, now or after a restart, it has missed.
void Coordinator::PutOut(const std::vector<NodeId>& nodes, uint64_t now_us) {
  const uint64_t epoch = membership_.view().epoch.value + 1;
  for (const NodeId id : nodes) {
    Node& node = nodes_[id.value];
    node.record.out = true;
    node.out_epoch = epoch;
    // From now on it may come back, and others are to take its places only if it does not.
    if (!node.damage.empty()) node.lost_at_us = now_us;
    if (node.cut_off) NoteCut(id.value, now_us);
    effects_.change.nodes[id.value] = node.record;
    SaveRegions(membership_.LoseNode(id));
  }
  if (!accepted_loss_.empty()) {
    // What is left may name what only they had.
    record_.heal_due = true;
    accepted_loss_.clear();
  }
  record_.resolve_due = !Planted(Bug::kOutUnresolved);
  // One that is under way may have counted on what these nodes hold.
  ScrubAnew();
  // Another node's word counts now, of an owner whose end it may not have heard of.
  if (record_.leaving != 0) OrphanBlocks();
  placement_epoch_ = epoch;
  Log(LogLevel::kWarning, NodesText(nodes) + " is put out: " + std::to_string(missing_regions_) +
                              " of " + std::to_string(membership_.view().regions.size()) +
                              " regions lack a replica, the cluster goes on without");
}

void Coordinator::EndHold(uint64_t now_us, const std::string& why) {
  if (!why.empty()) Log(LogLevel::kWarning, "a repair is put off: " + why);
  // The others are held until there is a view.
  hold_.reset();
  EnqueueOwn(Change());
  Commit(now_us);
}

// ---- Nodes that come back ----

void Coordinator::EnqueueNodesIn(uint64_t now_us) {
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    Node& node = nodes_[id];
    if (!node.record.out || !node.serving || !HasFencedAll(id) || !MayComeIn(id, now_us)) continue;
    const bool queued = std::any_of(queue_.begin(), queue_.end(), [id](const Change& change) {
      return change.kind == ChangeKind::kNodeIn && change.node == id;
    });
    if (queued || !(HoldsRegion(NodeId{id}) || TakesRegions(id))) continue;
    Change change;
    change.kind = ChangeKind::kNodeIn;
    change.node = id;
    EnqueueOwn(change);
    node.reach_since_us = now_us;
  }
}

void Coordinator::NodeIn(uint16_t id) {
  Node& node = nodes_[id];
  if (!node.record.out || !node.serving || !HasFencedAll(id)) return;
  node.record.out = false;
  ForgetWhoReaches(id);
  effects_.change.nodes[id] = node.record;
  membership_.SetNodeOut(NodeId{id}, false);
  placement_epoch_ = membership_.view().epoch.value + 1;
  Log(LogLevel::kInfo, "memory node " + std::to_string(id) +
                           (HoldsRegion(NodeId{id}) ? " is back; what it has missed is copied to it"
                                                    : " is in, to be given regions"));
}

// ---- Nodes that others take the place of ----

bool Coordinator::IsToBeReplaced(uint16_t id, uint64_t now_us) const {
  const Node& node = nodes_[id];
  return node.record.out && (!node.serving || IsUnreached(id)) &&
         now_us >= node.lost_at_us + options_.replace_after_ms * 1000 && HoldsRegion(NodeId{id});
}

std::vector<uint64_t> Coordinator::BytesToTake() const {
  std::vector<uint64_t> bytes;
  bytes.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    const auto id = static_cast<uint16_t>(bytes.size());
    const bool takes = node.serving && node.record.wish != NodeWish::kDrain && !IsUnreached(id);
    bytes.push_back(takes ? node.record.bytes : 0);
  }
  return bytes;
}

bool Coordinator::HasRoomFor(NodeId lost) const {
  std::vector<RegionPlacement> regions = membership_.view().regions;
  return !::onetrip::ReplaceNode(lost, membership_.view().replicas, BytesToTake(), &regions)
              .empty();
}

void Coordinator::EnqueueReplacements(uint64_t now_us) {
  if (missing_regions_ == 0 || HasQueued(ChangeKind::kReplace)) return;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    if (!IsToBeReplaced(id, now_us) || !HasRoomFor(NodeId{id})) continue;
    Change change;
    change.kind = ChangeKind::kReplace;
    change.node = id;
    EnqueueOwn(change);
  }
}

// What is missing stays missing until it is copied, so nobody need wait.
void Coordinator::ReplaceNode(uint16_t lost) {
  if (!nodes_[lost].record.out || (nodes_[lost].serving && !IsUnreached(lost))) return;
  std::vector<NodeInfo> infos;
  infos.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    infos.push_back({node.record.incarnation, node.record.address, node.record.out});
  }
  const uint16_t known = NodesInView();
  const std::vector<uint32_t> changed = membership_.ReplaceNode(NodeId{lost}, BytesToTake(), infos);
  SaveRegions(changed);
  placement_epoch_ = membership_.view().epoch.value + 1;
  for (uint16_t id = known; id < NodesInView(); ++id) SendFences(id);
  Log(LogLevel::kInfo, "memory node " + std::to_string(lost) + " is replaced: other nodes take " +
                           std::to_string(changed.size()) + " of its regions, which are copied");
}

}  // namespace onetrip
