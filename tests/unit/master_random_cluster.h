// Random agents, nodes, faults and restarts against the master's state machine; what must hold in
// every order is checked with every message that it sends.
//
// An agent here is a process that may hang: the master's word that it is expelled changes nothing
// for it. Its workers can act until every node that any agent asks has refused them.
#ifndef ONETRIP_TESTS_UNIT_MASTER_RANDOM_CLUSTER_H_
#define ONETRIP_TESTS_UNIT_MASTER_RANDOM_CLUSTER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/unit/master_bench.h"
#include "tests/unit/master_random_parts.h"
#include "tests/unit/master_view_checks.h"

namespace onetrip {

class RandomCluster : private RandomClusterParts {
 public:
  static constexpr int kNodes = 6;  // two more than the map is made of
  static constexpr int kReplicas = 3;

  explicit RandomCluster(uint64_t seed) : rng_(seed), calm_(seed % 4), bench_(Options()) {
    bench_.reaches_nodes = false;  // Hear() says it
    bench_.on_send = [this](StreamId stream, const MasterMessage& message) {
      OnSend(stream, message);
    };
  }

  // Calm ones get further between two faults.
  void Step() {
    for (uint64_t i = 0; i < 2 * calm_; ++i) DeliverOne();
    switch (rng_.Below(26)) {
      case 0:
        return AddAgent();
      case 1:
      case 2:
      case 3:
        return AskForWorker();
      case 4:
        return LeaveWorker();
      case 5:
        return Flush();
      case 6:
        if (rng_.Below(calm_ + 1) != 0) return;
        return BreakAgent();
      case 7:
        if (rng_.Below(2 * calm_ + 1) != 0) return;
        return rng_.Below(4) == 0 ? LeaveAgent() : HangAgent();
      case 8:
        return rng_.Below(2) == 0 ? BreakNode() : StartNode();
      case 9:
        if (!bench_.coordinator.has_map() || rng_.Below(2) == 0) StartNode();
        return;
      case 10:
        return rng_.Below(6 + 6 * calm_) == 0 ? RestartMaster() : DeliverOne();
      case 11:
      case 12:
        return PassTime();
      case 13:
      case 14:
        FinishRepair(rng_.Below(6));
        return;
      default:
        return DeliverOne();
    }
  }

  // No more faults: every member comes back, hears everything and answers.
  void Heal() {
    for (int round = 0; round < 200; ++round) {
      for (int node = 0; node < kNodes; ++node) {
        // All damaged nodes that wait for each other are accepted.
        if (round == 20) accept_one_in_ = 1;
        if (memories_[node].damaged && round == 20) BreakNode(nodes_[node]);
        if (nodes_[node].stream == 0) StartNode(node);
      }
      if (!SomebodyWorks()) {
        AddAgent();
        AskForWorker();
      }
      bool heard = true;
      while (heard) {
        heard = FinishRepair(1);
        for (auto& [stream, agent] : agents_) heard = Hear(stream) || heard;
        for (Node& node : nodes_) heard = Hear(node.stream) || heard;
      }
      PassTime();
    }
    for (const auto& [stream, agent] : agents_) {
      EXPECT_TRUE(agent.pending.empty() || agent.hung) << "a request was never answered";
    }
    const StatusReply status = bench_.coordinator.Status(bench_.now_us);
    EXPECT_EQ(status.status.state, "serving");
    EXPECT_EQ(status.waiting_for, "");
    EXPECT_EQ(status.status.regions_fully_redundant, status.status.regions);
    EXPECT_FALSE(bench_.disk.cluster.resolve_due || bench_.disk.cluster.scrub_due);
    EXPECT_TRUE(bench_.disk.former.empty());
    // Everything that lives is on the disk and in the view, and nothing else.
    std::set<uint32_t> live;
    for (const auto& [worker, owner] : acting_) live.insert(worker);
    std::set<uint32_t> seats;
    for (const auto& [index, seat] : bench_.disk.seats) {
      seats.insert(seat.worker.value);
      EXPECT_FALSE(seat.expelled);
      EXPECT_TRUE(bench_.coordinator.view().IsLive(WorkerIndex{index}));
    }
    for (const uint32_t worker : live) EXPECT_TRUE(seats.contains(worker)) << worker;
  }

  [[nodiscard]] uint64_t flushes() const { return flushes_; }
  [[nodiscard]] uint64_t joins() const { return given_.size(); }
  [[nodiscard]] uint64_t fenced() const { return fenced_workers_; }
  [[nodiscard]] uint64_t outs() const { return outs_; }
  [[nodiscard]] uint64_t copies() const { return copies_; }
  [[nodiscard]] uint64_t replaced() const { return replicas_.replaced(); }
  [[nodiscard]] uint64_t damaged() const { return damaged_; }

 private:
  static CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.hold_timeout_ms = 1500;
    options.ack_timeout_ms = 3000;
    options.nodes = kNodes - 2;
    options.replace_after_ms = 1000;
    options.replicas = kReplicas;
    return options;
  }

  // ---- What must hold ----

  void OnSend(StreamId stream, const MasterMessage& message) {
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      OnView(*committed->view);
      OnRelease(stream, *committed->view);
    }
    if (const auto* repair = std::get_if<RepairMessage>(&message)) OnRepair(stream, *repair);
    if (const auto* reply = std::get_if<ReplyMessage>(&message)) OnReply(stream, *reply);
    if (const auto agent = agents_.find(stream); agent != agents_.end()) {
      agent->second.unheard.push_back(message);
    }
    for (Node& node : nodes_) {
      if (node.stream == stream && stream != 0) node.unheard.push_back(message);
    }
    // Messages that a process is sent before it knows that it is welcome.
    if (stream != 0 && !agents_.contains(stream)) early_[stream].push_back(message);
  }

  void OnView(const View& view) {
    const auto [known, fresh] = views_.emplace(view.epoch.value, view);
    if (!fresh) {
      EXPECT_EQ(known->second.keyspaces, view.keyspaces) << "two views of one epoch";
      EXPECT_EQ(known->second.live_seats, view.live_seats);
      EXPECT_EQ(known->second.nodes, view.nodes);
      return;
    }
    EXPECT_EQ(std::prev(views_.end())->first, view.epoch.value) << "views go forward";
    SettleZombies();
    CheckReplicas(view, known == views_.begin() ? view : std::prev(known)->second);
    for (const auto& [worker, acting] : acting_) {
      EXPECT_TRUE(view.IsLive(WorkerIndex{acting.index})) << "a worker that may act is ignored";
    }
    if (known != views_.begin() && std::prev(known)->second.keyspaces != view.keyspaces) {
      for (const auto& [worker, acting] : acting_) {
        EXPECT_GE(processes_[acting.process].held, view.epoch.value) << "not all hold";
      }
      EXPECT_TRUE(!Swaps(std::prev(known)->second, view) || AllHold({}, /*all=*/true))
          << "swapped under work";
    }
  }

  void OnReply(StreamId stream, const ReplyMessage& reply) {
    if (reply.code != StatusCode::kOk) return;
    SettleZombies();
    const auto flush = flush_epoch_.find({stream, reply.id});
    if (flush != flush_epoch_.end()) {
      ++flushes_;
      // The keyspaces changed after the request, unless two swaps have come to nothing; every agent
      // is under that view.
      const uint64_t changed = FirstChangeAfter(flush->second);
      EXPECT_TRUE(changed != 0U || swaps_.contains(flush->first));
      for (const auto& [worker, acting] : acting_) {
        EXPECT_GE(processes_[acting.process].in_force, changed) << "answered before in force";
      }
    }
    const auto* joined = std::get_if<WorkerJoined>(&reply.body);
    if (joined == nullptr) return;
    EXPECT_TRUE(given_.insert(joined->worker.value).second) << "a worker id was reused";
    for (const auto& [worker, acting] : acting_) {
      EXPECT_NE(acting.index, joined->index.value) << "a seat was reused under its worker";
      EXPECT_TRUE(views_.at(processes_[acting.process].in_force).IsLive(joined->index))
          << "somebody who may act does not know the new worker";
    }
    const int process = agents_.at(stream).process;
    acting_[joined->worker.value] = {process, joined->index.value, {}};
  }

  uint64_t FirstChangeAfter(uint64_t epoch) const {
    for (auto view = views_.upper_bound(epoch); view != views_.end(); ++view) {
      if (view == views_.begin()) continue;
      if (std::prev(view)->second.keyspaces != view->second.keyspaces) return view->first;
    }
    return 0;
  }

  void Refused(int node, const std::vector<WorkerId>& workers) {
    for (const WorkerId worker : workers) {
      for (auto* const some : {&acting_, &zombies_}) {
        const auto found = some->find(worker.value);
        if (found != some->end()) found->second.refused_by.insert(node);
      }
    }
    SettleZombies();
  }

  // ---- Nodes that are out ----

  // Returns true if the worker can reach no node that the newest view names, but those of
  // `spare_me`.
  bool IsRefused(const Acting& acting, const std::set<int>& spare_me) const {
    const View& newest = std::prev(views_.end())->second;
    for (int node = 0; node < kNodes; ++node) {
      if (!IsAsked(newest, node) || spare_me.contains(node)) continue;
      if (!acting.refused_by.contains(node)) return false;
    }
    return true;
  }
  // Workers that can act only on nodes that no agent asks any more count no longer.
  void SettleZombies() {
    if (views_.empty()) return;
    std::set<int> gone;
    for (int node = 0; node < kNodes; ++node) {
      const bool out = std::all_of(acting_.begin(), acting_.end(), [&](const auto& entry) {
        return IsRefused(entry.second, {}) ||
               !IsAsked(views_.at(processes_.at(entry.second.process).in_force), node);
      });
      if (out && !IsAsked(std::prev(views_.end())->second, node)) gone.insert(node);
    }
    for (auto acting = acting_.begin(); acting != acting_.end();) {
      const std::set<int>& by = acting->second.refused_by;
      bool over = !by.empty();
      for (int node = 0; node < kNodes; ++node) {
        over = over && (by.contains(node) || gone.contains(node));
      }
      if (over) {
        acting->second.known_nodes = std::prev(views_.end())->second.nodes.size();
        zombies_.insert(*acting);
        acting = acting_.erase(acting);
        ++fenced_workers_;
      } else {
        ++acting;
      }
    }
  }
  void CheckReplicas(const View& view, const View& before) {
    std::set<int> newly_out;
    for (int node = 0; node < kNodes; ++node) {
      if (IsAsked(before, node) && !IsAsked(view, node)) newly_out.insert(node);
      if (IsAsked(before, node) || !IsAsked(view, node)) continue;
      for (const auto& [worker, zombie] : zombies_) {
        EXPECT_TRUE(static_cast<size_t>(node) >= zombie.known_nodes ||
                    zombie.refused_by.contains(node))
            << "a node is in and does not refuse " << worker;
      }
    }
    if (!newly_out.empty()) {
      ++outs_;
      EXPECT_TRUE(bench_.disk.cluster.resolve_due && bench_.disk.cluster.scrub_due);
      EXPECT_TRUE(AllHold(newly_out, /*all=*/false)) << "out before all hold";
    }
    const size_t more = replicas_.OnView(view, before, newly_out);
    copies_ += more;
    EXPECT_TRUE(more == 0 || AllHold({}, /*all=*/true)) << "copied under work";
  }
  // Returns true if all that may act, on nodes other than `spare_me`, have been quiescent since
  // some message and have seen no view since then.
  bool AllHold(const std::set<int>& spare_me, bool all) const {
    return std::all_of(acting_.begin(), acting_.end(), [&](const auto& entry) {
      const Process& process = processes_.at(entry.second.process);
      const bool enough =
          all ? process.held_how == HoldKind::kAll : process.held_how != HoldKind::kStart;
      return (enough && process.held > process.in_force) || IsRefused(entry.second, spare_me);
    });
  }
  // Returns true if the process may still be at the repair, on a node of `view`.
  bool MayRepair(int process, const View& view) const {
    std::set<int> away;
    for (int node = 0; node < kNodes; ++node) {
      if (!IsAsked(view, node)) away.insert(node);
    }
    return std::any_of(acting_.begin(), acting_.end(), [&](const auto& entry) {
      return entry.second.process == process && !IsRefused(entry.second, away);
    });
  }
  void OnRepair(StreamId stream, const RepairMessage& message) {
    const int process = agents_.contains(stream) ? agents_.at(stream).process : attending_process_;
    if (running_.has_value() && running_->id == message.id) return;
    EXPECT_TRUE(!running_.has_value() || !MayRepair(running_process_, *message.order.view))
        << "two repairs at once";
    running_ = {message.id, message.order.kind, message.order.view, message.order.region};
    running_process_ = process;
    if (message.order.kind == RepairKind::kResolveSlots) {
      EXPECT_TRUE(AllHold({}, /*all=*/false)) << "resolved under work";
    } else {
      EXPECT_FALSE(replicas_.MustResolve()) << "repaired before slots are resolved";
      EXPECT_TRUE(message.order.kind == RepairKind::kScrubRegisters || !replicas_.MustScrub())
          << "copied before registers are scrubbed";
    }
  }
  void OnRelease(StreamId stream, const View& view) {
    const int process = agents_.contains(stream) ? agents_.at(stream).process : attending_process_;
    if (!running_.has_value() || process == 0 || process == running_process_) return;
    if (!IsUnderHold(running_->kind) || view.epoch < running_->view->epoch) {
      return;
    }
    EXPECT_FALSE(MayRepair(running_process_, view)) << "released beside a repair";
  }
  bool FinishRepair(uint64_t luck) {
    for (const StreamId stream : Talking()) {
      Process& process = processes_[agents_.at(stream).process];
      if (!process.task.has_value()) continue;
      if (luck == 0 && rng_.Below(2) == 0) {
        agents_.erase(stream);
        bench_.Break(stream);
      } else {
        AnswerRepair(stream, luck != 0);
      }
      return true;
    }
    return false;
  }
  void AnswerRepair(StreamId stream, bool done) {
    Process& process = processes_[agents_.at(stream).process];
    const Task task = *std::exchange(process.task, std::nullopt);
    if (done && task.kind == RepairKind::kResolveSlots) replicas_.OnResolved(*task.view);
    if (done && task.kind == RepairKind::kScrubRegisters) replicas_.OnScrubbed(*task.view);
    if (done && task.kind == RepairKind::kCopyRegion) replicas_.OnCopied(*task.view, task.region);
    if (running_.has_value() && running_->id == task.id) running_.reset();
    bench_.Say(stream, RepairedMessage{task.id, done, done ? "" : "not today"});
  }
  [[nodiscard]] bool SomebodyWorks() const {
    const std::vector<StreamId> talking = Talking();
    return std::any_of(talking.begin(), talking.end(), [this](StreamId stream) {
      return !processes_.at(agents_.at(stream).process).workers.empty();
    });
  }

  // ---- What happens ----

  std::vector<StreamId> Talking() const {
    std::vector<StreamId> streams;
    for (const auto& [stream, agent] : agents_) {
      if (!agent.hung) streams.push_back(stream);
    }
    return streams;
  }
  StreamId Pick() {
    const std::vector<StreamId> streams = Talking();
    return streams.empty() ? 0 : streams[rng_.Below(streams.size())];
  }

  void Attend(int process, uint64_t member) {
    early_.clear();
    attending_process_ = process;
    const StreamId stream = bench_.Attend(MemberKind::kAgent, member);
    attending_process_ = 0;
    if (!bench_.attendance.welcome) return;
    processes_[process].member = bench_.attendance.member;
    Agent& agent = agents_[stream];
    agent.process = process;
    agent.unheard = early_[stream];
  }
  void AddAgent() {
    if (Talking().size() >= 4) return;
    const int process = next_process_++;
    processes_[process] = {};
    Attend(process, 0);
  }
  void AskForWorker() {
    const StreamId stream = Pick();
    if (stream == 0) return;
    AskPending(stream, JoinWorkerRequest());
  }
  template <typename Body>
  void AskPending(StreamId stream, Body body) {
    const uint64_t id = next_request_++;
    agents_.at(stream).pending.insert(id);
    constexpr bool kSwaps = std::is_same_v<Body, SwapRequest>;
    if constexpr (std::is_same_v<Body, FlushRequest> || kSwaps) {
      flush_epoch_[{stream, id}] = bench_.coordinator.view().epoch.value;
    }
    if (kSwaps) swaps_.insert({stream, id});
    bench_.Say(stream, RequestMessage{id, std::move(body)});
  }
  void LeaveWorker() {
    const StreamId stream = Pick();
    if (stream == 0) return;
    Process& process = processes_[agents_.at(stream).process];
    if (process.workers.empty()) return;
    const uint32_t worker = *process.workers.begin();
    const uint16_t index = acting_.at(worker).index;
    process.workers.erase(worker);
    acting_.erase(worker);  // it has stopped by itself
    AskPending(stream, LeaveWorkerRequest{WorkerId{worker}, index});
  }
  void Flush() {
    const StreamId stream = Pick();
    if (stream == 0) return;
    const auto first = static_cast<uint32_t>(rng_.Below(kMaxDatabases));
    if (rng_.Below(3) == 0) return AskPending(stream, SwapRequest{first, (first + 1) % 16});
    FlushRequest flush;
    if (rng_.Below(2) == 0) flush.database = static_cast<uint32_t>(rng_.Below(kMaxDatabases));
    AskPending(stream, flush);
  }
  void BreakAgent() {
    const StreamId stream = Pick();
    if (stream == 0 || rng_.Below(3) != 0) return;
    agents_.erase(stream);
    bench_.Break(stream);
  }
  void HangAgent() {
    const StreamId stream = Pick();
    if (stream == 0 || rng_.Below(3) != 0) return;
    agents_.at(stream).hung = true;
  }
  void LeaveAgent() {
    const StreamId stream = Pick();
    if (stream == 0) return;
    bench_.Ask(stream, LeaveRequest());
    agents_.erase(stream);
  }
  void BreakNode() { BreakNode(nodes_[rng_.Below(kNodes)]); }
  void BreakNode(Node& node) {
    if (node.stream == 0) return;
    const StreamId stream = node.stream;
    node = {};
    bench_.Break(stream);
  }
  void StartNode() { StartNode(static_cast<int>(rng_.Below(kNodes))); }
  void StartNode(int id) {
    Node& node = nodes_[id];
    if (node.stream != 0) return;
    early_.clear();
    node.stream = bench_.Attend(MemberKind::kMemoryNode);
    JoinNodeRequest offer = MasterBench::Offer(100U + static_cast<uint64_t>(id));
    NodeMemory& memory = memories_[id];
    // Damage lasts until it is of no account, or the operator takes the memory for sound.
    if (memory.number >= 0 && rng_.Below(4 + 4 * calm_) == 0) memory.damaged = true;
    if (memory.damaged && rng_.Below(accept_one_in_) != 0) {
      offer.damage = "its file was cut";
    } else {
      offer.accepted = std::exchange(memory.damaged, false);
    }
    bench_.Ask(node.stream, offer);
  }
  void RestartMaster() {
    // Two scrubs at once do no harm.
    if (running_.has_value() && !IsUnderHold(running_->kind)) running_.reset();
    bench_.Start();
    std::vector<Agent> agents;
    for (const auto& [stream, agent] : agents_) agents.push_back(agent);
    agents_.clear();
    for (Node& node : nodes_) node = {};
    for (const Agent& agent : agents) {
      // One that hangs does not come back.
      if (!agent.hung && rng_.Below(8) != 0) {
        Attend(agent.process, processes_[agent.process].member);
      }
    }
  }
  void PassTime() {
    for (int i = 0; i < 2; ++i) {
      for (const StreamId stream : Talking()) bench_.Say(stream, RenewMessage{});
      for (const Node& node : nodes_) {
        if (node.stream != 0) bench_.Say(node.stream, RenewMessage{});
      }
      bench_.Advance(100);
      std::erase_if(agents_,
                    [&](const auto& agent) { return bench_.closed.contains(agent.first); });
      for (Node& node : nodes_) {
        if (bench_.closed.contains(node.stream)) node = {};
      }
    }
  }
  void DeliverOne() {
    const uint64_t which = rng_.Below(kNodes + 4);
    if (which < kNodes) {
      Hear(nodes_[which].stream);
    } else if (const StreamId stream = Pick(); stream != 0) {
      Hear(stream);
    }
  }

  // Takes the next message of the stream and answers as the process would.
  bool Hear(StreamId stream) {
    for (int id = 0; id < kNodes; ++id) {
      if (nodes_[id].stream == stream && stream != 0) return HearNode(id);
    }
    const auto found = agents_.find(stream);
    if (found == agents_.end() || found->second.hung || found->second.unheard.empty()) return false;
    Agent& agent = found->second;
    Process& process = processes_[agent.process];
    const MasterMessage message = agent.unheard.front();
    agent.unheard.pop_front();
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      const uint64_t epoch = committed->view->epoch.value;
      const bool mine = running_.has_value() && running_process_ == agent.process;
      if (mine && IsUnderHold(running_->kind) && committed->view->epoch >= running_->view->epoch) {
        // The end of a repair comes before the view.
        running_.reset();
        process.task.reset();
      }
      process.in_force = std::max(process.in_force, epoch);
      bench_.Say(stream, ViewInForceMessage{committed->view->epoch});
    } else if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
      if (process.task.has_value() && !IsUnderHold(process.task->kind)) {
        AnswerRepair(stream, /*done=*/false);
      }
      process.held = std::max(process.held, hold->epoch.value);
      process.held_how = hold->kind;
      bench_.Say(stream, ViewHeldMessage{hold->epoch});
    } else if (const auto* reach = std::get_if<ReachMessage>(&message)) {
      bench_.Say(stream, ReachedMessage{reach->id});
    } else if (const auto* repair = std::get_if<RepairMessage>(&message)) {
      process.task = {repair->id, repair->order.kind, repair->order.view, repair->order.region};
    } else if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
      agent.pending.erase(reply->id);
      if (const auto* joined = std::get_if<WorkerJoined>(&reply->body)) {
        if (acting_.contains(joined->worker.value)) process.workers.insert(joined->worker.value);
      }
    }
    return true;
  }

  bool HearNode(int id) {
    Node& node = nodes_[id];
    if (node.unheard.empty()) return false;
    const MasterMessage message = node.unheard.front();
    node.unheard.pop_front();
    if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
      if (const auto* joined = std::get_if<NodeJoined>(&reply->body)) {
        EXPECT_LT(joined->node.value, kNodes);
        if (std::exchange(memories_[id].damaged, false)) {
          ExpectNotCountedOn(*joined->view, joined->node);
          ++damaged_;
        }
        memories_[id].number = joined->node.value;
        Refused(memories_[id].number, joined->expelled);
        node.serving = true;
        bench_.Ask(node.stream, MasterBench::Serve(static_cast<uint16_t>(1 + rng_.Below(60'000))));
      }
    } else if (const auto* fence = std::get_if<FenceMessage>(&message)) {
      const bool done = rng_.Below(5) != 0;
      if (done) Refused(memories_[id].number, fence->workers);
      bench_.Say(node.stream, FencedMessage{fence->id, done, done ? "" : "not yet"});
    }
    return true;
  }

  Rng rng_;
  uint64_t calm_;
  std::map<int, Process> processes_;
  std::map<StreamId, Agent> agents_;
  Node nodes_[kNodes];
  NodeMemory memories_[kNodes];
  std::map<uint32_t, Acting> acting_;   // workers that may act, as nodes and agents know it
  std::map<uint32_t, Acting> zombies_;  // may act, on nodes that are out and that no agent asks
  std::optional<Task> running_;
  int running_process_ = 0;
  int attending_process_ = 0;
  ReplicaModel replicas_;
  uint64_t outs_ = 0;
  uint64_t copies_ = 0;
  uint64_t damaged_ = 0;
  uint64_t accept_one_in_ = 8;  // nodes that start with damaged memory
  std::map<uint64_t, View> views_;
  std::map<StreamId, std::deque<MasterMessage>> early_;
  std::map<std::pair<StreamId, uint64_t>, uint64_t> flush_epoch_;  // swaps, too
  std::set<std::pair<StreamId, uint64_t>> swaps_;
  std::set<uint32_t> given_;
  int next_process_ = 1;
  uint64_t next_request_ = 1'000'000;
  uint64_t flushes_ = 0;
  uint64_t fenced_workers_ = 0;
  MasterBench bench_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_RANDOM_CLUSTER_H_
