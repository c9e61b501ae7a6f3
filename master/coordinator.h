// Coordinator: the master as a pure state machine. Who is a member, who was
// expelled and must be fenced, which view is in force, and in which order everybody learns of it.
//
// No clock, no I/O, no thread: events go in with the time, effects come out. Whoever drives it
// makes the effects' change durable first and sends afterwards; when that fails, it goes back to a
// copy from before the event. docs/MASTER.md tells the states; the parts are in coordinator*.cc.
#ifndef ONETRIP_MASTER_COORDINATOR_H_
#define ONETRIP_MASTER_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/status.h"
#include "master/coordinator_effects.h"
#include "master/durable_state.h"
#include "master/membership.h"
#include "master/messages.h"
#include "master/reach_verdict.h"
#include "master/usage_watch.h"

namespace onetrip {

// How people read and write a cluster's name.
std::string ClusterText(uint64_t cluster);

// Copyable. One thread. Every `now_us` is steady time in microseconds and never decreases.
class Coordinator {
 public:
  // A member whose stream ended has this part of a lease to come back: a member renews three times
  // in a lease, and may hear of the end only by that.
  static constexpr uint64_t kAwayPerLease = 2;

  // Goes on from `durable`. A new cluster gets the name `fresh_cluster`, this life of its master
  // the name `fresh_life`, which is no other's and not 0. `unix_us` is the wall clock's time.
  // kCorrupt: `durable` makes no sense; kInvalidArgument: so do the options; *reason is one line.
  // The effects of the start are waiting in TakeEffects().
  static Result<Coordinator> Create(const CoordinatorOptions& options, const DurableState& durable,
                                    uint64_t fresh_cluster, uint64_t fresh_life, uint64_t now_us,
                                    uint64_t unix_us, std::string* reason);
  Coordinator() = default;

  // A process has proved itself on `stream`. The verdict goes out before the effects' messages.
  Attendance Attend(uint64_t now_us, StreamId stream, const MemberHello& hello);
  // Something was said on a stream that was welcomed; what ended in between is ignored.
  void OnMessage(uint64_t now_us, StreamId stream, const MemberMessage& message);
  // The stream has ended, whoever ended it. `has_ended`: so has the process, for certain.
  void OnStreamClosed(uint64_t now_us, StreamId stream, bool has_ended = false);
  // Time passes: leases, timeouts, retries. To be called every TickMs() while HasDeadlines().
  void OnTick(uint64_t now_us);
  // The master ends in order: the next one goes on with this time exactly.
  void OnStop(uint64_t now_us);

  [[nodiscard]] CoordinatorEffects TakeEffects() { return std::exchange(effects_, {}); }

  [[nodiscard]] uint64_t TickMs() const;
  [[nodiscard]] bool HasDeadlines() const { return !members_.empty(); }
  [[nodiscard]] uint64_t lease_ms() const { return options_.lease_ms; }
  [[nodiscard]] uint64_t cluster() const { return record_.cluster; }
  [[nodiscard]] bool has_map() const { return record_.epoch != 0; }
  // The newest view; without regions before there is a map.
  [[nodiscard]] const View& view() const { return membership_.view(); }
  // Cluster time, in microseconds since the Unix epoch.
  [[nodiscard]] uint64_t TimeUs(uint64_t now_us) const;
  // This life's name, of those that a master of the cluster has had.
  [[nodiscard]] uint64_t life() const { return record_.life; }
  // For people; the fields that only the process knows are left alone.
  [[nodiscard]] StatusReply Status(uint64_t now_us) const;

 private:
  enum class Standing : uint8_t {
    kUp,
    kAway,      // an agent of before a restart, or whose stream ended: it may come back for a while
    kExpelled,  // must be fenced on every node that is not out
    kFenced,    // was; its seats will be free in the next view
  };

  struct ReachQuestion {
    uint64_t id = 0;
    bool reached = false;
  };

  // A node that an agent does not reach.
  struct Unreached {
    uint32_t worker = 0;     // that noticed; 0: none, it has not joined yet
    uint64_t since_us = 0;   // for people
    uint64_t counts_us = 0;  // the report counts as of then
    uint64_t over_us = 0;    // it is reached again since; 0: it is not
  };

  struct Member {
    uint64_t id = 0;
    MemberKind kind = MemberKind::kAgent;
    AgentRecord info;
    StreamId stream = 0;  // 0: does not attend
    uint64_t lease_end_us = 0;
    uint64_t renewed_us = 0;
    MemberReport report;
    uint64_t told_usage = 0;      // UsageWatch::version() of what it was told
    uint64_t wall_origin_us = 0;  // its host's wall clock less this one's steady clock; 0: unknown
    // Agents.
    std::string engine;
    Standing standing = Standing::kUp;
    bool left = false;
    std::set<uint16_t> seats;  // worker indices
    uint64_t sent = 0;         // epoch of the newest view that it was sent; 0: none
    uint64_t in_force = 0;
    uint64_t held = 0;
    uint64_t late_since_us = 0;  // it owes a ViewInForce since; 0: it owes none
    // By node: the question whether it reaches the node as that is now, and whether it has said so.
    std::map<uint16_t, ReachQuestion> reaches;
    std::map<uint16_t, Unreached> unreached;  // by node
    // Memory nodes.
    std::optional<uint16_t> node;
    std::optional<uint64_t> join_request;  // waits for the map, or until its node is out
    JoinNodeRequest offer;
  };

  struct Node {
    NodeRecord record;
    uint64_t member = 0;  // that attends for it; 0: none
    bool serving = false;
    std::string damage;  // of the memory that `member` brings, until the node is out; empty: none
    bool left = false;   // in order, when it does not attend
    AgentRecord info;    // of the process that was there last
    MemberReport report;
    std::set<uint32_t> fenced;  // expelled workers that it has confirmed
    uint64_t fence = 0;         // the one it has not answered; 0: none
    std::vector<WorkerId> fence_workers;
    uint64_t fence_retry_us = 0;  // 0: nothing to repeat
    bool fence_complained = false;
    uint64_t lost_at_us = 0;  // it counts as lost then, unless it serves
    uint64_t out_epoch = 0;   // of the view, or a later one, in which it went out
    uint64_t mark = 0;        // the newest one of its memory; the record has what is stored
    // It serves, and yet is to be put out: too many agents do not reach it.
    bool cut_off = false;
    uint64_t reach_since_us = 0;  // agents may have a channel to it since
    uint32_t cuts = 0;            // for which it was put out, one soon after the other
    uint64_t last_cut_us = 0;
    uint64_t not_back_before_us = 0;
  };

  enum class ChangeKind : uint8_t {
    kJoin,
    kLeave,
    kFlush,
    kSwap,
    kAddress,
    kFenced,
    kNodeIn,
    kReplace,
    kNameNodes,
    kIdleOut,
    kMovesOver,
    kRefresh
  };
  // A change of the view that waits for its turn.
  struct Change {
    ChangeKind kind = ChangeKind::kRefresh;
    uint64_t member = 0;  // who asked, or was fenced
    StreamId stream = 0;  // where the reply goes; 0: nobody waits
    uint64_t request = 0;
    LeaveWorkerRequest leave;
    std::optional<uint32_t> database;
    SwapRequest swap;
    uint16_t node = 0;
    uint64_t since_us = 0;
  };
  // A reply that goes out once everybody is under the view of `epoch`.
  struct Due {
    uint64_t epoch = 0;
    uint64_t member = 0;
    StreamId stream = 0;
    ReplyMessage reply;
  };
  // What a hold is for. A flush lets go on what has started: nobody looks into the old keyspace. A
  // swap waits for it: its other database would see it come.
  enum class Work : uint8_t {
    kFlush,
    kSwap,
    kNodeOut,
    kResolve,
    kCopy,
    kRecordsOnly,
    kMove,
    kGrow,
    kLeave,      // regions leave, others than before
    kMoveIndex,  // ... and the index leaves them
    kCut         // ... and are gone
  };
  // All stand still for one region's sake, which could as well wait.
  static bool IsOfRegion(Work work) {
    return work == Work::kCopy || work == Work::kRecordsOnly || work == Work::kMove ||
           work == Work::kGrow || work == Work::kLeave || work == Work::kMoveIndex ||
           work == Work::kCut;
  }
  struct Hold {
    uint64_t epoch = 0;
    uint64_t end_us = 0;
    uint64_t since_us = 0;
    Work work = Work::kFlush;
    std::vector<NodeId> leave = {};  // of kNodeOut
    uint32_t region = 0;             // of kCopy
    NodeId target{};
    RegionMove move = {};                     // of kMove
    std::vector<RegionPlacement> grown = {};  // of kGrow: behind the regions that there are
    uint16_t leaving = 0;                     // of kLeave
    bool repaired = false;
    bool failed = false;
  };
  // What an agent was asked to do and has not answered; at most one.
  struct Repair {
    uint64_t id = 0;
    RepairKind kind = RepairKind::kResolveSlots;
    uint64_t member = 0;
    uint64_t since_us = 0;
    // A scrub of before a node went out, or a look for blocks of before a worker's end: done, it
    // counts for nothing.
    bool overtaken = false;
    RepairMessage message;
  };

  // How a memory node went, or whether it has gone at all.
  enum class Away : uint8_t { kLeft, kLost, kMayReturn };

  // coordinator_attend.cc: who attends; engines; time.
  // From what the master's first life knows, or the stored time: who comes back knows better.
  void StartTime(uint64_t now_us, uint64_t unix_us, bool is_first);
  // A member that was away has gone on counting.
  void HearTime(uint64_t now_us, const MemberHello& hello);
  // When nobody is left who could know better.
  void LetWallClockDecide(uint64_t now_us);
  void AdvanceDurableTime(uint64_t now_us);
  // Why an agent of this engine may not work on this cluster's memory.
  [[nodiscard]] std::optional<std::string> RefuseEngine(const std::string& engine) const;
  // That a member which was welcomed by that life may have heard of.
  [[nodiscard]] uint64_t NewestEpochOf(uint64_t life) const;
  std::optional<std::string> RefuseHello(const MemberHello& hello, bool* retry) const;
  // Whether the member has seen a newer state of the cluster than this master's.
  [[nodiscard]] bool KnowsNewer(const MemberHello& hello) const {
    return hello.epoch > NewestEpochOf(hello.life);
  }
  // Whether more than half of the memory nodes have shown that the data directory is an older copy.
  // Then whoever does not come is not taken for dead: it refuses this master, and works on.
  [[nodiscard]] bool IsOutvoted() const;
  Attendance AttendAgain(uint64_t now_us, StreamId stream, const MemberHello& hello);
  void StartAttending(Member& member, uint64_t now_us, StreamId stream, const MemberHello& hello);

  // coordinator.cc: lives, leases, requests.
  void StartLife(const DurableState& durable, uint64_t fresh_life);
  Member* MemberOn(StreamId stream);
  // Of joins whose reply the process can no longer get.
  void FreeUnclaimedSeats(const Member& member);
  void DropRequests(const Member& member);
  void OnRenew(Member& member, uint64_t now_us, const RenewMessage& message);
  void OnRequest(Member* member, uint64_t now_us, StreamId stream, const RequestMessage& message);
  void OnLeave(Member& member, uint64_t now_us);
  // Until when a member whose stream ended may come back.
  uint64_t AwayUntil(uint64_t now_us);
  void AgentAway(Member& member, uint64_t now_us);
  void OnMemberTick(Member& member, uint64_t now_us);
  // To be called before time or a stream's end is judged: this process may have stood still.
  void NoticeStall(uint64_t now_us);
  void Send(StreamId stream, MasterMessage message);
  void Reply(StreamId stream, uint64_t request, StatusCode code, std::string reason = {});
  void Close(StreamId stream, std::string reason);
  void Log(LogLevel level, std::string text);
  void SaveCluster();

  // coordinator_nodes.cc: memory nodes, the map, expulsion and fences.
  void OnJoinNode(Member& member, uint64_t now_us, uint64_t request, const JoinNodeRequest& offer);
  // Why the node may not join; *code tells whether that will last.
  std::optional<std::string> RefuseNode(const Member& member, uint64_t now_us,
                                        const JoinNodeRequest& offer, StatusCode* code) const;
  std::optional<std::string> RefuseOwner(const JoinNodeRequest& offer) const;
  std::optional<uint16_t> FindNode(uint64_t incarnation) const;
  // For one that nobody has heard of.
  std::optional<uint16_t> FreeNumber(uint64_t now_us) const;
  // Whether nobody waits any more for a node that holds nothing: it is not shown, and the next one
  // that is new gets its number.
  static constexpr uint64_t kForgetNodeAfterUs = 600'000'000;
  [[nodiscard]] bool IsGoneForGood(uint16_t id, uint64_t now_us) const;
  void TryMakeMap();
  void PlaceNode(Member& member, uint16_t node, uint64_t request);
  // The node's memory counts for nothing: it waits until it is out.
  void AwaitOut(Member& member, uint64_t now_us, uint16_t node, uint64_t request);
  void RepairAll(const std::string& node);
  // Gives those that are out now their places.
  void PlaceDamaged();
  void OnServeNode(Member& member, uint64_t request, const ServeNodeRequest& message);
  void NodeAway(Member& member, uint64_t now_us, const std::string& why, Away away);
  void Expel(Member& member, const std::string& why);
  void ForgetAgent(uint64_t member);
  void SendFences(uint16_t node);
  void OnFenced(Member& member, uint64_t now_us, const FencedMessage& message);
  void CheckFenced();
  void ForgetFormer(WorkerId worker);
  [[nodiscard]] std::vector<WorkerId> ExpelledWorkers() const;
  [[nodiscard]] bool AllServe() const;
  [[nodiscard]] bool AddressesKnown() const;

  // coordinator_age.cc: memory and a master's state that are older than what was known of them.
  [[nodiscard]] std::optional<std::string> RefuseOlderState(const JoinNodeRequest& offer) const;
  // Why the memory counts for nothing as an older copy of what it was; empty: it is none.
  [[nodiscard]] std::string WhyOutdated(uint16_t node, const JoinNodeRequest& offer) const;
  // Ids that the node has seen are given to nobody else.
  void RaiseIds(const JoinNodeRequest& offer);
  void SaveMark(uint16_t node, uint64_t mark);
  void SaveMarks();

  // coordinator_views.cc: changes of the view.
  void Enqueue(const Member& member, uint64_t now_us, Change change);
  void EnqueueOwn(Change change);
  // Does whatever the queue and the members' answers allow now.
  void Pump(uint64_t now_us);
  void SettleHold(uint64_t now_us);
  void TryStartHold(uint64_t now_us);
  [[nodiscard]] bool MaySwap(uint64_t now_us) const;
  void StartHold(uint64_t now_us, Hold hold);
  [[nodiscard]] uint64_t HoldTimeoutMs(Work work) const;
  [[nodiscard]] HoldForViewMessage HoldMessage() const;
  // Makes the next view of everything queued that may be in it. Changes of keyspaces are only after
  // a hold for them, `held`.
  void Commit(uint64_t now_us, std::optional<Work> held = std::nullopt);
  [[nodiscard]] bool MayCommit(const Change& change, std::optional<Work> held) const;
  void OnViewInForce(Member& member, uint64_t now_us, Epoch epoch);
  void Apply(const Change& change, std::vector<Due>* due);
  [[nodiscard]] bool HasQueuedOfKeyspaces() const {
    return HasQueued(ChangeKind::kFlush) || HasQueued(ChangeKind::kSwap);
  }
  // Those that have waited since `since_us` or longer.
  void FailChangesOfKeyspaces(uint64_t since_us, const std::string& why);
  void SendDueReplies(uint64_t now_us);
  // Whether the agent may be released into the newest view.
  [[nodiscard]] bool MaySendView(const Member& member) const;
  void SendView(Member& member, uint64_t now_us);
  void TellWhatJoinsWaitFor();
  void TellWhatDamagedWaitFor();
  [[nodiscard]] static std::string AgentText(const Member& member);
  // Whether the agent could still act under an older view.
  [[nodiscard]] static bool Counts(const Member& member);
  [[nodiscard]] bool SomebodyAttendingIsLate() const;
  [[nodiscard]] bool HasQueued(ChangeKind kind) const;
  // Who keeps a hold from starting or ending; empty: nobody. Agents that could do harm only on the
  // nodes `leave` do not.
  [[nodiscard]] std::string WhoIsAway(const std::vector<NodeId>& leave) const;
  [[nodiscard]] std::string WhoDoesNotHold(const Hold& hold) const;

  // coordinator_repairs.cc: nodes that go out and come back, and what agents repair.
  // The nodes that are lost and could be put out now; none if one region did not keep its majority.
  [[nodiscard]] std::vector<NodeId> Leaving(uint64_t now_us) const;
  // Those of them that somebody needs to be out: a worker, or the node itself to be of use again.
  [[nodiscard]] std::vector<NodeId> DueOut(uint64_t now_us) const;
  [[nodiscard]] std::optional<Hold> NextRepairHold(uint64_t now_us) const;
  [[nodiscard]] std::optional<Hold> NextCopy(uint64_t now_us) const;
  // The same, whether or not its time has come.
  [[nodiscard]] std::optional<Hold> DueCopy() const;
  [[nodiscard]] bool StillDue(const Hold& hold, uint64_t now_us) const;
  void SettleRepairHold(uint64_t now_us);
  // Does what the hold was for, in the next view.
  void CommitRepaired(uint64_t now_us);
  void EndHold(uint64_t now_us, const std::string& why);
  // In the next view, which the caller commits. REQUIRES: all hold.
  void PutOut(const std::vector<NodeId>& nodes, uint64_t now_us);
  // Regions of which fewer than a majority of replicas, or of those whose loss was not accepted, is
  // on nodes that serve, and neither are to be put out nor are among `without`.
  [[nodiscard]] size_t RegionsWithoutMajority(const std::vector<uint16_t>& without = {}) const;
  // Whether some have none, and nobody who could change that is about to be back.
  [[nodiscard]] bool LacksMajority(uint64_t now_us) const;
  // Null: no agent has workers.
  Member* Repairer();
  [[nodiscard]] bool SomebodyWorks() const;
  void SendRepair(Member& agent, uint64_t now_us, RepairOrder order);
  void OnRepaired(Member& member, uint64_t now_us, const RepairedMessage& message);
  // Of repairs whose agent is gone or takes too long.
  void CheckRepairer(uint64_t now_us);
  void CheckFormerRepairer(uint64_t now_us);
  // Registers are to be scrubbed, whatever a scrub that is under way comes to.
  void ScrubAnew();
  // What nobody holds for: registers are scrubbed, then blocks taken over.
  void StartBackgroundRepair(uint64_t now_us);
  // There are blocks, or may be, whose owner is gone.
  void OrphanBlocks();
  [[nodiscard]] LivingWorkers Living() const;
  void EnqueueNodesIn(uint64_t now_us);
  void NodeIn(uint16_t node);
  // Whether the node has been out for so long that others take its places, if they have room.
  [[nodiscard]] bool IsToBeReplaced(uint16_t node, uint64_t now_us) const;
  // By node id: the bytes of those that may take regions.
  [[nodiscard]] std::vector<uint64_t> BytesToTake() const;
  // Whether a node that may take regions has room for one that is missing on `lost`.
  [[nodiscard]] bool HasRoomFor(NodeId lost) const;
  void EnqueueReplacements(uint64_t now_us);
  void ReplaceNode(uint16_t lost);
  void SaveRegions(const std::vector<uint32_t>& regions);
  void CountMissing();
  // Whether nobody acts under a view older than the one of `epoch`.
  [[nodiscard]] bool InForceEverywhere(uint64_t epoch) const;
  // Whether every node that is not out, nor among `leave`, refuses the expelled agent.
  [[nodiscard]] bool IsHarmless(const Member& member, const std::vector<NodeId>& leave) const;
  // Whether the node refuses all who were expelled.
  [[nodiscard]] bool HasFencedAll(uint16_t node) const;
  [[nodiscard]] bool HoldsRegion(NodeId node) const;
  // Nodes that the view names; spares may have higher ids.
  [[nodiscard]] uint16_t NodesInView() const {
    return static_cast<uint16_t>(membership_.view().nodes.size());
  }

  // coordinator_reach.cc: which agents reach the nodes that regions come to.
  [[nodiscard]] bool IsToBeGiven(uint16_t node) const;
  // Asks those who have not been asked.
  void AskWhoReaches();
  void OnReached(Member& member, const ReachedMessage& message);
  // What was said of the node was of a life of it, or of a channel, that is over.
  void ForgetWhoReaches(uint16_t node);
  void OnUnreached(Member& member, uint64_t now_us, const UnreachedMessage& message);
  // Decides who has to go for what is not reached, and expels agents; nodes are cut_off from then
  // on, as long as that is so.
  void JudgeWhoIsReached(uint64_t now_us);
  [[nodiscard]] ReachVerdict VerdictOfReach(uint64_t now_us) const;
  // The agents that have a say: those with workers, or all if there are none. Of their reports
  // those on nodes that hold something.
  [[nodiscard]] std::vector<ReachReport> ReachReports() const;
  // Whether `unreached` of `member` counts, and for how long it has.
  [[nodiscard]] uint64_t CountsForMs(const Member& member, uint16_t node, uint64_t now_us) const;
  // Whether an agent says that it does not reach the node.
  [[nodiscard]] bool IsUnreached(uint16_t node) const;
  // Whether a node that was put out may come in: everybody reaches it again, as far as is known.
  [[nodiscard]] bool MayComeIn(uint16_t node, uint64_t now_us) const;
  void NoteCut(uint16_t node, uint64_t now_us);
  // One line of who does not reach what; empty: all is reached.
  [[nodiscard]] std::string WhatIsUnreached(uint64_t now_us) const;
  // One line about an agent that does not reach the node, or has not said so; empty: all do.
  [[nodiscard]] std::string WhoDoesNotReach(NodeId node) const;

  // coordinator_loss.cc: more nodes are lost than regions can do without.
  void OnAcceptLoss(StreamId stream, uint64_t now_us, uint64_t request,
                    const AcceptLossRequest& wanted);
  // Nodes of the map that do not serve and are not expected back at once.
  [[nodiscard]] std::vector<NodeId> LostNodes(uint64_t now_us) const;
  // Regions without a live replica on a node that serves.
  [[nodiscard]] size_t RegionsWithoutAny() const;
  // Whether they may be put out without a majority being left.
  [[nodiscard]] bool LossIsAccepted(const std::vector<NodeId>& leaving) const;

  // coordinator_moves.cc: regions that go from living nodes to others.
  void OnMoveRegions(StreamId stream, uint64_t request, const MoveRegionsRequest& wanted);
  // `shrinks`: there is no room but by giving up regions.
  [[nodiscard]] std::optional<std::string> RefuseDrain(uint16_t node, bool* shrinks) const;
  [[nodiscard]] bool MovesAreWanted() const;
  // Whether the node may be given regions of others; for that it comes into the view.
  [[nodiscard]] bool TakesRegions(uint16_t node) const;
  [[nodiscard]] MovePlanner PlanMoves() const;
  // Whether nothing else is to be done before.
  [[nodiscard]] bool MayMove(uint64_t now_us) const;
  [[nodiscard]] std::optional<Hold> NextMove(uint64_t now_us) const;
  [[nodiscard]] bool RegistersAreToEnd() const {
    return record_.records_only && !registers_ended_ && MovesAreWanted();
  }
  void CommitMove(const Hold& hold, uint64_t now_us);
  // Until as long as it says after what all stood still for, in `hold`, nothing of its kind begins.
  void PauseCopies(const Hold& hold, uint64_t now_us);
  void EnqueueMoveChanges(uint64_t now_us);
  void NameNodes(uint16_t last);
  void IdleOut(uint16_t node);
  void MovesOver();

  // coordinator_usage.cc. Nothing: not all who know have told since this master's start.
  [[nodiscard]] std::optional<PoolUsage> Usage() const;
  void TellUsage();  // adds up anew; tells agents, and the log, if it has become another
  [[nodiscard]] std::string WhyShortOfMemory() const;  // one line; empty: there is room

  // coordinator_growth.cc: regions that are added.
  // Those that there is room for as it is, whether or not their time has come.
  [[nodiscard]] std::optional<Hold> NextGrowth(MovePlanner* planner) const;
  [[nodiscard]] bool AllReach(const std::vector<RegionPlacement>& regions) const;
  void CommitGrowth(const Hold& hold, uint64_t now_us);

  // coordinator_shrink.cc: regions that are given up for nodes that drain.
  // How many at the end, so that nodes that drain can give the others away; all: that is no use.
  [[nodiscard]] size_t RegionsToGiveUp(const std::vector<MovePart>& parts) const;
  [[nodiscard]] std::vector<MovePart> MoveParts() const;
  // Why what is in use does not fit into the regions that would be left; empty: it does.
  [[nodiscard]] std::string WhyNotWithout(size_t given_up) const;
  // The next step on the way, if it is due. REQUIRES: MayMove().
  [[nodiscard]] std::optional<Hold> NextLeave() const;
  // Blocks that are still granted in regions that leave; nothing: not all who know have told.
  [[nodiscard]] std::optional<uint64_t> LeavingBlocks() const;
  // Whether nothing that moves need wait until every region has all its replicas.
  [[nodiscard]] bool AwaitsNoCopy() const;
  [[nodiscard]] bool LeavingAreEmpty() const;
  void CommitLeave(const Hold& hold, uint64_t now_us);
  // What was written there behind the last walk has to be met by another one.
  void WalkAgainForLeaving(uint64_t now_us);
  void EndLeaving();
  [[nodiscard]] std::string Shrinking() const;

  // coordinator_status.cc.
  [[nodiscard]] std::string WaitingFor() const;
  // What keeps nodes with damaged memory from being put out, and which; empty: there are none.
  [[nodiscard]] std::string WhatDamagedWaitFor() const;
  [[nodiscard]] std::string WhatLossWaitsFor() const;
  [[nodiscard]] std::string WhatRepairsWaitFor() const;
  [[nodiscard]] std::string Moving() const;
  // `missing` of the node's `regions` replicas do not count.
  [[nodiscard]] std::string NodeStateName(uint16_t node, uint32_t regions, uint32_t missing) const;
  // By node: what it offers and no region can lie in.
  [[nodiscard]] std::vector<uint64_t> Unusable() const;
  void AddNodeStatus(uint64_t now_us, StatusReply* status) const;
  void AddAgentStatus(uint64_t now_us, StatusReply* status) const;

  CoordinatorOptions options_;
  ClusterRecord record_;
  std::vector<Node> nodes_;  // by id; empty before there is a map
  MembershipState membership_;
  std::shared_ptr<const View> view_;      // what members were sent last
  std::map<uint16_t, SeatRecord> seats_;  // by worker index
  std::map<uint64_t, Member> members_;
  std::map<StreamId, uint64_t> streams_;  // to the member; 0: a tool
  std::vector<uint64_t> forming_;         // members that wait for the map, in the order they joined
  std::deque<Change> queue_;
  std::vector<Due> due_;
  std::optional<Hold> hold_;
  std::optional<Repair> repair_;
  std::set<uint32_t> former_;      // DurableState::former
  size_t missing_regions_ = 0;     // regions that lack a replica
  std::vector<uint32_t> held_;     // by node: replicas that are there, or missing there
  std::vector<uint32_t> lacking_;  // by node: those that are missing there
  // Nodes that somebody has given up, until they are out. Not durable: it is asked for again.
  std::vector<NodeId> accepted_loss_;
  uint64_t placement_epoch_ = 0;  // of the view, or a later one, that changed places last
  uint64_t repair_not_before_us_ = 0;
  uint64_t copy_not_before_us_ = 0;
  uint32_t copies_given_up_ = 0;  // in a row: somebody did not hold in time
  uint64_t move_not_before_us_ = 0;
  uint64_t leave_again_us_ = 0;
  // Since the view says records_only, and slots were last resolved; not durable.
  bool registers_ended_ = false;
  // RepairOrder::walk of scrubs and of ends of registers: a new one whenever there is more to be
  // walked than an agent may know of that has begun. Larger than in any life before.
  void BeginWalkAnew() {
    walk_ = std::max(walk_ + 1, (membership_.view().epoch.value + 1) << kWalksPerEpochBits);
  }
  static constexpr uint32_t kWalksPerEpochBits = 16;
  uint64_t walk_ = 0;
  uint32_t walk_tries_ = 0;            // of the agent that was asked last, cut short by holds
  bool ended_registers_last_ = false;  // of what is done beside other work
  uint64_t failed_repairer_ = 0;       // whose turn is over; 0: nobody's
  uint64_t former_repairer_ = 0;       // of the life before: released before all others; 0: none
  uint64_t next_repair_ = 1;
  uint64_t next_reach_ = 1;
  bool take_over_due_ = false;  // not durable: a restarted master has it done once
  bool take_over_cut_ = false;  // whoever was asked last came to no end
  std::shared_ptr<const std::map<uint64_t, uint64_t>> lives_;  // DurableState::lives
  std::set<uint64_t> knows_newer_;  // memory nodes, by member, that were refused for that
  uint64_t time_origin_us_ = 0;     // cluster time less steady time
  // It is as much ahead of what members know, by the lead of the stored time: since then it runs at
  // half speed until it is not.
  uint64_t time_ahead_us_ = 0;
  uint64_t ahead_since_us_ = 0;
  bool time_is_known_ = false;    // from somebody; nobody joins before
  uint64_t wall_decides_us_ = 0;  // then nobody is waited for who might know it
  uint64_t wall_origin_us_ = 0;   // this host's wall clock less steady time
  uint64_t last_tick_us_ = 0;
  // Until then a stream may have ended because this process stood still, not the one behind it.
  uint64_t stall_over_us_ = 0;
  uint64_t away_until_us_ = 0;  // somebody whose stream ended may come back until then
  uint64_t next_fence_ = 1;
  std::string told_waiting_for_;
  std::string told_unreached_;  // of what nobody can help
  std::string told_damaged_;
  std::string told_not_done_;  // of a repair; empty since one was done
  UsageWatch usage_watch_;
  CoordinatorEffects effects_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_COORDINATOR_H_
