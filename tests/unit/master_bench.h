// A coordinator on a bench: its effects are applied to a disk in memory and sorted by stream, and
// it can be started again from that disk at any time.
#ifndef ONETRIP_TESTS_UNIT_MASTER_BENCH_H_
#define ONETRIP_TESTS_UNIT_MASTER_BENCH_H_

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/coordinator.h"
#include "master/store.h"
#include "tests/support/durable_change.h"

namespace onetrip {

// A store in memory that can be told to fail. Any thread.
class MemoryStore final : public Store {
 public:
  Result<DurableState> Load(std::string* /*reason*/) override { return disk(); }
  Status Write(const DurableChange& change, std::string* reason) override {
    if (failing) {
      *reason = "the test's disk is full";
      return Status(StatusCode::kUnavailable, "full");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ApplyChange(change, &disk_);
    return Status::Ok();
  }
  DurableState disk() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return disk_;
  }
  std::atomic<bool> failing = false;

 private:
  mutable std::mutex mutex_;
  DurableState disk_;
};

class MasterBench {
 public:
  static constexpr uint64_t kCluster = 0xc0ffee;

  explicit MasterBench(const CoordinatorOptions& with = {}) : options(with) { Start(); }

  // As after a kill: what is not on the disk is gone, and so are all streams.
  void Start() {
    std::string reason;
    Result<Coordinator> made =
        Coordinator::Create(options, disk, kCluster, ++lives, now_us, unix_us + now_us, &reason);
    ASSERT_TRUE(made.ok()) << reason;
    coordinator = std::move(made.value());
    inbox.clear();
    closed.clear();
    Settle();
  }

  // The effects, in their order: disk first, then messages.
  void Settle() {
    CoordinatorEffects effects = coordinator.TakeEffects();
    ApplyChange(effects.change, &disk);
    EXPECT_EQ(master::WhatDoesNotHold(coordinator.state()), "");
    for (CoordinatorEffects::Send& send : effects.sends) {
      CheckDurable(send.message);
      if (on_send) on_send(send.stream, send.message);
      const auto* reach = std::get_if<ReachMessage>(&send.message);
      if (reach != nullptr && reaches_nodes) questions_.emplace_back(send.stream, reach->id);
      inbox[send.stream].push_back(std::move(send.message));
    }
    for (const auto& [stream, id] : std::exchange(questions_, {})) {
      coordinator.OnMessage(now_us, stream, ReachedMessage{id});
      Settle();
    }
    for (const CoordinatorEffects::Close& close : effects.closes) closed.insert(close.stream);
    for (CoordinatorEffects::LogLine& line : effects.logs) log.push_back(std::move(line.text));
  }

  StreamId Attend(const MemberHello& hello) {
    const StreamId stream = next_stream_++;
    attendance = coordinator.Attend(now_us, stream, hello);
    Settle();
    return stream;
  }
  StreamId Attend(MemberKind kind, uint64_t member = 0, uint64_t epoch = 0) {
    MemberHello hello;
    hello.kind = kind;
    hello.member = member;
    hello.epoch = epoch;
    // A member that comes back knows the cluster's time.
    if (member != 0) {
      hello.cluster = kCluster;
      hello.time_us = coordinator.TimeUs(now_us);
    }
    hello.pid = 4711;
    hello.host = "testhost";
    return Attend(hello);
  }
  void Say(StreamId stream, const MemberMessage& message) {
    coordinator.OnMessage(now_us, stream, message);
    Settle();
  }
  template <typename Body>
  uint64_t Ask(StreamId stream, Body body) {
    const uint64_t id = next_request_++;
    Say(stream, RequestMessage{id, std::move(body)});
    return id;
  }
  // The process has ended, and with it its stream.
  void Break(StreamId stream) {
    coordinator.OnStreamClosed(now_us, stream, /*has_ended=*/true);
    Settle();
  }
  // The stream has ended; of the process nothing is known.
  void Reset(StreamId stream) {
    coordinator.OnStreamClosed(now_us, stream);
    Settle();
  }
  void Advance(uint64_t ms) {
    now_us += ms * 1000;
    coordinator.OnTick(now_us);
    Settle();
  }
  // In steps that a driver makes, with renewals from `streams`.
  void Pass(uint64_t ms, const std::vector<StreamId>& streams) {
    for (uint64_t passed = 0; passed < ms; passed += 100) {
      for (const StreamId stream : streams) Say(stream, RenewMessage{});
      Advance(100);
    }
  }

  // The newest message of this type on the stream; nullptr: there is none.
  template <typename Message>
  const Message* Last(StreamId stream) const {
    const auto found = inbox.find(stream);
    if (found == inbox.end()) return nullptr;
    for (auto message = found->second.rbegin(); message != found->second.rend(); ++message) {
      if (const auto* match = std::get_if<Message>(&*message)) return match;
    }
    return nullptr;
  }
  const ReplyMessage* ReplyTo(StreamId stream, uint64_t request) const {
    const auto found = inbox.find(stream);
    if (found == inbox.end()) return nullptr;
    for (const MasterMessage& message : found->second) {
      const auto* reply = std::get_if<ReplyMessage>(&message);
      if (reply != nullptr && reply->id == request) return reply;
    }
    return nullptr;
  }
  uint64_t SentEpoch(StreamId stream) const {
    const auto* committed = Last<ViewCommittedMessage>(stream);
    return committed == nullptr ? 0 : committed->view->epoch.value;
  }
  // Puts in force what it was sent.
  void TakeOver(StreamId stream) { Say(stream, ViewInForceMessage{Epoch{SentEpoch(stream)}}); }

  static JoinNodeRequest Offer(uint64_t incarnation) {
    return {.bytes = 4 * kRegionBytes, .incarnation = incarnation};
  }
  static ServeNodeRequest Serve(uint16_t port) {
    return {NodeAddress{.tcp_host = "127.0.0.1", .tcp_port = port, .shm_path = {}, .host_id = {}}};
  }
  // A memory node that has asked to join.
  StreamId JoinNode(uint64_t incarnation) {
    const StreamId stream = Attend(MemberKind::kMemoryNode);
    Ask(stream, Offer(incarnation));
    return stream;
  }
  // All nodes of the map, up and serving.
  std::vector<StreamId> Form(uint16_t nodes = 3) {
    std::vector<StreamId> streams;
    for (uint16_t node = 0; node < nodes; ++node) streams.push_back(JoinNode(100U + node));
    for (uint16_t node = 0; node < nodes; ++node) {
      Ask(streams[node], Serve(static_cast<uint16_t>(7000 + node)));
    }
    return streams;
  }
  // An agent that has taken over the map; member() is its number.
  StreamId AddAgent() {
    const StreamId stream = Attend(MemberKind::kAgent);
    TakeOver(stream);
    return stream;
  }
  // A worker of the only agents in `all`, which all take over the view.
  WorkerJoined AddWorker(StreamId stream, const std::vector<StreamId>& all) {
    const uint64_t request = Ask(stream, JoinWorkerRequest());
    for (const StreamId agent : all) TakeOver(agent);
    const ReplyMessage* reply = ReplyTo(stream, request);
    if (reply == nullptr || !std::holds_alternative<WorkerJoined>(reply->body)) {
      ADD_FAILURE() << "no worker joined: " << (reply == nullptr ? "no reply" : reply->reason);
      return {};
    }
    return std::get<WorkerJoined>(reply->body);
  }
  // Answers the fence that the node was sent last.
  void ConfirmFence(StreamId node) {
    const auto* fence = Last<FenceMessage>(node);
    ASSERT_NE(fence, nullptr);
    Say(node, FencedMessage{fence->id, true, ""});
  }

  CoordinatorOptions options;
  DurableState disk;
  Coordinator coordinator;
  Attendance attendance;  // the verdict of the last Attend()
  uint64_t now_us = 1'000'000;
  uint64_t lives = 0;
  uint64_t unix_us = 1'700'000'000'000'000;
  std::map<StreamId, std::deque<MasterMessage>> inbox;
  std::set<StreamId> closed;
  std::vector<std::string> log;
  std::function<void(StreamId, const MasterMessage&)> on_send;
  bool reaches_nodes = true;  // agents say at once that they reach the node they are asked about

 private:
  // Nothing is said that a restart would not know.
  void CheckDurable(const MasterMessage& message) const {
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      EXPECT_LE(committed->view->epoch.value, disk.cluster.epoch);
    }
    const auto* reply = std::get_if<ReplyMessage>(&message);
    if (reply == nullptr) return;
    if (const auto* worker = std::get_if<WorkerJoined>(&reply->body)) {
      ASSERT_TRUE(disk.seats.contains(worker->index.value));
      EXPECT_EQ(disk.seats.at(worker->index.value).worker, worker->worker);
      EXPECT_LT(worker->worker.value, disk.cluster.next_worker);
    }
    if (const auto* node = std::get_if<NodeJoined>(&reply->body)) {
      EXPECT_LT(node->node.value, disk.nodes.size());
      EXPECT_FALSE(disk.regions.empty());
    }
  }

  std::vector<std::pair<StreamId, uint64_t>> questions_;
  StreamId next_stream_ = 1;
  uint64_t next_request_ = 1;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_BENCH_H_
