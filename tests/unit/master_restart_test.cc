// The master's state machine finds its state again after a restart, and deals with members that
// come back and with those that do not.
#include <gtest/gtest.h>

#include "tests/unit/master_bench.h"

namespace onetrip {
namespace {

using Streams = std::vector<StreamId>;

const NodeJoined* Joined(const MasterBench& bench, StreamId stream) {
  const auto* reply = bench.Last<ReplyMessage>(stream);
  return reply == nullptr ? nullptr : std::get_if<NodeJoined>(&reply->body);
}

TEST(MasterRestartTest, EverythingIsFoundAgain) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const WorkerJoined worker = bench.AddWorker(a, {a});
  const View before = bench.coordinator.view();
  bench.Start();
  const View& after = bench.coordinator.view();
  EXPECT_EQ(after.cluster, before.cluster);
  EXPECT_EQ(after.epoch.value, before.epoch.value + 1) << "a life of a master, a view";
  EXPECT_EQ(after.keyspaces, before.keyspaces);
  EXPECT_EQ(after.nodes, before.nodes);
  EXPECT_EQ(after.live_seats, before.live_seats);
  EXPECT_EQ(after.worker_index_end, before.worker_index_end);
  ASSERT_EQ(after.regions.size(), before.regions.size());
  const StreamId back = bench.Attend(MemberKind::kAgent, member, before.epoch.value);
  EXPECT_TRUE(bench.attendance.welcome);
  EXPECT_EQ(bench.SentEpoch(back), after.epoch.value);
  bench.TakeOver(back);
  for (uint64_t node = 0; node < 3; ++node) {
    const StreamId stream = bench.JoinNode(100 + node);
    EXPECT_EQ(Joined(bench, stream)->node.value, node);
    bench.Ask(stream, MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.state, "serving");
  const WorkerJoined next = bench.AddWorker(back, {back});
  EXPECT_GT(next.worker, worker.worker);
  EXPECT_NE(next.index, worker.index);
  const StreamId fresh = bench.AddAgent();
  EXPECT_GT(bench.attendance.member, member);
  EXPECT_NE(fresh, back);
}

TEST(MasterRestartTest, WhatAMasterThatStoodStillSaysOfTheTimeIsDurableToo) {
  MasterBench bench;
  bench.Form();
  const StreamId agent = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  // It finds renewals before it has looked at the clock; then it dies, and it starts again with a
  // wall clock that is behind.
  bench.now_us += 10'000'000;
  bench.Say(agent, RenewMessage{});
  const auto* told = bench.Last<RenewedMessage>(agent);
  const uint64_t told_us = told == nullptr ? 0 : told->time_us;
  EXPECT_LE(told_us, bench.disk.cluster.time_us);
  bench.unix_us -= 60'000'000;
  bench.Start();
  const StreamId back = bench.Attend(MemberKind::kAgent, member);
  bench.Say(back, RenewMessage{});
  ASSERT_NE(bench.Last<RenewedMessage>(back), nullptr);
  EXPECT_GE(bench.Last<RenewedMessage>(back)->time_us, told_us);
}

TEST(MasterRestartTest, AgentsHaveAGraceToComeBack) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t a_member = bench.attendance.member;
  const StreamId b = bench.AddAgent();
  const uint64_t b_member = bench.attendance.member;
  const WorkerJoined a_worker = bench.AddWorker(a, {a, b});
  const WorkerJoined b_worker = bench.AddWorker(b, {a, b});
  bench.Start();
  Streams streams;
  for (uint16_t node = 0; node < 3; ++node) {
    streams.push_back(bench.JoinNode(100U + node));
    bench.Ask(streams.back(), MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  const StreamId back = bench.Attend(MemberKind::kAgent, b_member);
  bench.TakeOver(back);
  streams.push_back(back);
  const uint64_t join = bench.Ask(back, JoinWorkerRequest());
  bench.TakeOver(back);
  EXPECT_EQ(bench.ReplyTo(back, join), nullptr) << "a may be alive, under the older view";
  bench.Pass(bench.options.lease_ms + bench.options.grace_ms - 200, streams);
  EXPECT_FALSE(bench.disk.seats.at(a_worker.index.value).expelled);
  bench.Pass(400, streams);
  EXPECT_TRUE(bench.disk.seats.at(a_worker.index.value).expelled);
  EXPECT_FALSE(bench.disk.seats.at(b_worker.index.value).expelled);
  for (int node = 0; node < 3; ++node) bench.ConfirmFence(streams[node]);
  EXPECT_NE(bench.ReplyTo(back, join), nullptr);
  bench.Attend(MemberKind::kAgent, a_member);
  EXPECT_FALSE(bench.attendance.welcome);
}

TEST(MasterRestartTest, AnExpulsionGoesOnAfterARestart) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const WorkerJoined worker = bench.AddWorker(a, {a});
  bench.Break(a);
  bench.ConfirmFence(nodes[0]);
  bench.Start();
  bench.Attend(MemberKind::kAgent, member);
  EXPECT_FALSE(bench.attendance.welcome);
  for (uint16_t node = 0; node < 3; ++node) {
    EXPECT_TRUE(bench.coordinator.view().IsLive(worker.index));
    const StreamId stream = bench.JoinNode(100U + node);
    EXPECT_EQ(Joined(bench, stream)->expelled, std::vector<WorkerId>{worker.worker});
    bench.Ask(stream, MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
    bench.ConfirmFence(stream);
  }
  EXPECT_FALSE(bench.coordinator.view().IsLive(worker.index));
}

TEST(MasterRestartTest, AHoldEndsWithTheNextLifesView) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  bench.AddWorker(a, {a});
  const KeyspaceId before = bench.coordinator.view().keyspaces[0];
  bench.Ask(a, FlushRequest{});
  const uint64_t held = bench.Last<HoldForViewMessage>(a)->epoch.value;
  bench.Start();
  const StreamId back = bench.Attend(MemberKind::kAgent, member, held - 1);
  EXPECT_GE(bench.SentEpoch(back), held);
  EXPECT_EQ(bench.coordinator.view().keyspaces[0], before);
}

TEST(MasterRestartTest, ClusterTimeNeverGoesBack) {
  MasterBench bench;
  const StreamId node = bench.Attend(MemberKind::kMemoryNode);
  uint64_t last = 0;
  for (int life = 0; life < 6; ++life) {
    for (int i = 0; i < 50; ++i) {
      bench.Say(life == 0 ? node : StreamId{0}, RenewMessage{});
      bench.Attend(MemberKind::kOther);
      EXPECT_GE(bench.coordinator.TimeUs(bench.now_us), last);
      last = bench.coordinator.TimeUs(bench.now_us);
      EXPECT_LE(last, bench.disk.cluster.time_us) << "nothing is told beyond what is durable";
      bench.Advance(100);
    }
    // The wall clock falls behind, by more every time.
    bench.unix_us -= 3'600'000'000ULL;
    if (life == 4) {
      bench.coordinator.OnStop(bench.now_us);
      bench.Settle();
      last = bench.coordinator.TimeUs(bench.now_us);
      bench.Start();
      EXPECT_EQ(bench.coordinator.TimeUs(bench.now_us), last) << "an end in order wins no time";
    } else {
      bench.Start();
    }
  }
}

TEST(MasterRestartTest, AnOldCopyOfTheStateIsNoticed) {
  MasterBench bench;
  bench.Form();
  const uint64_t epoch = bench.coordinator.view().epoch.value;
  bench.Attend(MemberKind::kAgent, 0, epoch + 5);
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_NE(bench.attendance.reason.find("old copy"), std::string::npos);
  bench.Attend(MemberKind::kAgent, 4000);
  EXPECT_FALSE(bench.attendance.welcome);
  MemberHello foreign;
  foreign.cluster = 99;
  bench.Attend(foreign);
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_NE(bench.attendance.reason.find("another cluster"), std::string::npos);
}

TEST(MasterRestartTest, AStateThatMakesNoSenseIsRefused) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  const auto refused = [&](auto&& spoil) {
    DurableState state = bench.disk;
    spoil(state);
    std::string reason;
    const auto made = Coordinator::Create(bench.options, state, 1, 1, 0, 0, &reason);
    EXPECT_EQ(made.status().code(), StatusCode::kCorrupt);
    EXPECT_NE(reason.find("makes no sense"), std::string::npos);
  };
  refused([](DurableState& state) { state.nodes.pop_back(); });
  refused([](DurableState& state) { state.regions.clear(); });
  refused([](DurableState& state) { state.regions[0].nodes[1] = NodeId{9}; });
  refused([](DurableState& state) { state.regions[0].base[1] += kRegionBytes * 4; });
  refused([](DurableState& state) { state.regions[0].base[1] = -kRegionBytes; });
  refused([](DurableState& state) { state.regions[0].nodes[1] = state.regions[0].nodes[0]; });
  refused([](DurableState& state) { state.regions[1] = state.regions[0]; });
  refused([](DurableState& state) { state.cluster.cluster = 0; });
  refused([](DurableState& state) { state.seats[3] = {WorkerId{1}, 1, false}; });
  refused([](DurableState& state) { state.seats.begin()->second.worker = WorkerId{1000}; });
  refused([](DurableState& state) { state.agents.clear(); });
  refused([](DurableState& state) { state.cluster.replicas = 0; });
  std::string reason;
  CoordinatorOptions options;
  options.replicas = 4;
  EXPECT_FALSE(Coordinator::Create(options, {}, 1, 1, 0, 0, &reason).ok());
}

}  // namespace
}  // namespace onetrip
