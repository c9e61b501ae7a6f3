// The master's state machine: which workers may join, in which order a view comes into force, what
// happens to members that vanish.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/master_bench.h"

namespace onetrip {
namespace {

using Streams = std::vector<StreamId>;

const NodeJoined* Joined(const MasterBench& bench, StreamId stream) {
  const auto* reply = bench.Last<ReplyMessage>(stream);
  return reply == nullptr ? nullptr : std::get_if<NodeJoined>(&reply->body);
}

TEST(MasterFormationTest, NodesWaitForEachOtherAndAgentsForAllOfThem) {
  MasterBench bench;
  const StreamId agent = bench.Attend(MemberKind::kAgent);
  const uint64_t join = bench.Ask(agent, JoinWorkerRequest());
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.state, "forming");
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).waiting_for, "0 of 3 memory nodes have joined");
  Streams nodes = {bench.JoinNode(100), bench.JoinNode(101)};
  EXPECT_EQ(Joined(bench, nodes[0]), nullptr);
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).waiting_for, "2 of 3 memory nodes have joined");
  EXPECT_EQ(std::count_if(bench.log.begin(), bench.log.end(),
                          [](const std::string& line) {
                            return line.find("0 of 3 memory") != std::string::npos;
                          }),
            1);
  nodes.push_back(bench.JoinNode(102));
  for (uint16_t i = 0; i < 3; ++i) {
    ASSERT_NE(Joined(bench, nodes[i]), nullptr);
    EXPECT_EQ(Joined(bench, nodes[i])->node.value, i);
    EXPECT_EQ(Joined(bench, nodes[i])->view->regions.size(), 4U);
    EXPECT_EQ(Joined(bench, nodes[i])->view->nodes[i].incarnation, 100U + i);
  }
  EXPECT_EQ(bench.SentEpoch(agent), 0U) << "no agent may see a map without addresses";
  for (uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.ReplyTo(agent, join), nullptr);
    bench.Ask(nodes[i], MasterBench::Serve(static_cast<uint16_t>(7000 + i)));
  }
  const auto* committed = bench.Last<ViewCommittedMessage>(agent);
  ASSERT_NE(committed, nullptr);
  for (uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(committed->view->nodes[i].address.tcp_port, 7000 + i);
  }
  bench.TakeOver(agent);
  ASSERT_NE(bench.ReplyTo(agent, join), nullptr);
  const StatusReply status = bench.coordinator.Status(bench.now_us);
  EXPECT_EQ(status.status.state, "serving");
  EXPECT_EQ(status.status.regions_fully_redundant, 4U);
  EXPECT_EQ(status.status.members.size(), 4U);
  EXPECT_EQ(status.waiting_for, "");
}

TEST(MasterFormationTest, ANodeThatGoesBeforeTheMapLeavesNoTrace) {
  MasterBench bench;
  const StreamId first = bench.JoinNode(100);
  bench.JoinNode(101);
  bench.Break(first);
  const StreamId third = bench.JoinNode(102);
  EXPECT_EQ(Joined(bench, third), nullptr);
  const StreamId fourth = bench.JoinNode(103);
  ASSERT_NE(Joined(bench, fourth), nullptr);
  EXPECT_EQ(Joined(bench, fourth)->node.value, 2);
  EXPECT_EQ(bench.disk.nodes.size(), 3U);
}

TEST(MasterFormationTest, OffersThatMakeNoSenseAreRefusedByName) {
  MasterBench bench;
  bench.JoinNode(100);
  struct Case {
    JoinNodeRequest offer;
    const char* why;
  };
  const Case cases[] = {
      {{.bytes = kRegionBytes - 1, .incarnation = 7}, "at least one region"},
      {{.bytes = kRegionBytes, .incarnation = 0}, "incarnation"},
      {{.bytes = kRegionBytes, .incarnation = 100}, "offered by process 4711"},
      {{.bytes = kRegionBytes, .incarnation = 8, .adopted = true, .owner_cluster = 5},
       "another cluster"},
      {{.bytes = kRegionBytes,
        .incarnation = 8,
        .adopted = true,
        .owner_cluster = MasterBench::kCluster,
        .owner_node = 2},
       "old copy"},
  };
  for (const Case& one : cases) {
    const StreamId stream = bench.Attend(MemberKind::kMemoryNode);
    const ReplyMessage* reply = bench.ReplyTo(stream, bench.Ask(stream, one.offer));
    ASSERT_NE(reply, nullptr) << one.why;
    EXPECT_EQ(reply->code, StatusCode::kInvalidArgument);
    EXPECT_NE(reply->reason.find(one.why), std::string::npos) << reply->reason;
  }
  EXPECT_EQ(bench.coordinator.has_map(), false);
}

TEST(MasterFormationTest, ANodeThatComesBackIsTheSameNode) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  bench.Break(nodes[1]);
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.state, "degraded");
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.regions_fully_redundant, 0U);
  JoinNodeRequest offer = MasterBench::Offer(101);
  offer.adopted = true;
  offer.owner_cluster = MasterBench::kCluster;
  offer.owner_node = 1;
  const StreamId back = bench.Attend(MemberKind::kMemoryNode);
  const uint64_t epoch = bench.coordinator.view().epoch.value;
  bench.Ask(back, offer);
  ASSERT_NE(Joined(bench, back), nullptr);
  EXPECT_EQ(Joined(bench, back)->node.value, 1);
  bench.Ask(back, MasterBench::Serve(9999));
  EXPECT_EQ(bench.coordinator.view().epoch.value, epoch + 1);
  EXPECT_EQ(bench.coordinator.view().nodes[1].address.tcp_port, 9999);
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.state, "serving");
}

TEST(MasterFormationTest, LostMemoryForeignMemoryAndSecondNodesAreRefused) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const auto refusal = [&](const JoinNodeRequest& offer) {
    const StreamId stream = bench.Attend(MemberKind::kMemoryNode);
    const ReplyMessage* reply = bench.ReplyTo(stream, bench.Ask(stream, offer));
    EXPECT_NE(reply, nullptr);
    EXPECT_EQ(reply->code, StatusCode::kInvalidArgument);
    return reply->reason;
  };
  JoinNodeRequest offer = MasterBench::Offer(101);
  EXPECT_NE(refusal(offer).find("memory node 1 is served by process"), std::string::npos);
  offer.adopted = true;
  offer.owner_cluster = MasterBench::kCluster;
  offer.owner_node = 2;
  EXPECT_NE(refusal(offer).find("which is not so"), std::string::npos);
  offer.incarnation = 555;
  EXPECT_NE(refusal(offer).find("the memory of memory node 2 was lost"), std::string::npos);
  offer.owner_node = 77;
  EXPECT_NE(refusal(offer).find("which is not so"), std::string::npos);
  offer.owner_cluster = 1;
  EXPECT_NE(refusal(offer).find("another cluster"), std::string::npos);
  bench.Break(nodes[1]);
  offer = MasterBench::Offer(101);
  offer.bytes = kRegionBytes;
  EXPECT_NE(refusal(offer).find("give it the memory that it had"), std::string::npos);
}

// An agent takes one fabric for all of them.
TEST(MasterFormationTest, AllNodesServeRdmaOrNoneDoes) {
  MasterBench bench;
  std::vector<StreamId> nodes;
  for (uint64_t node = 0; node < 3; ++node) nodes.push_back(bench.JoinNode(100 + node));
  ServeNodeRequest over_rdma = MasterBench::Serve(7001);
  over_rdma.address->rdma = "rxe0, port 1";
  bench.Ask(nodes[0], MasterBench::Serve(7000));
  const ReplyMessage* reply = bench.ReplyTo(nodes[1], bench.Ask(nodes[1], over_rdma));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kInvalidArgument);
  EXPECT_EQ(reply->reason,
            "memory node 0 does not serve RDMA, and this one serves nothing else; give another "
            "--fabric");
  reply = bench.ReplyTo(nodes[1], bench.Ask(nodes[1], MasterBench::Serve(7001)));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kOk);
}

TEST(MasterFormationTest, LaterNodesAreSparesAndKeepTheirNumbers) {
  MasterBench bench;
  bench.Form();
  const uint64_t regions = bench.coordinator.view().regions.size();
  const StreamId spare = bench.JoinNode(200);
  ASSERT_NE(Joined(bench, spare), nullptr);
  EXPECT_EQ(Joined(bench, spare)->node.value, 3);
  EXPECT_EQ(Joined(bench, spare)->view->node_count, 3);
  bench.Ask(spare, MasterBench::Serve(7200));
  EXPECT_EQ(bench.coordinator.view().regions.size(), regions);
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.members[3].state, "spare");
  bench.Start();
  const StreamId back = bench.JoinNode(200);
  EXPECT_EQ(Joined(bench, back)->node.value, 3);
  EXPECT_EQ(Joined(bench, bench.JoinNode(201))->node.value, 4);
}

TEST(MasterViewTest, AWorkerHasJoinedOnlyWhenEverybodyKnows) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const StreamId c = bench.AddAgent();
  const uint64_t join = bench.Ask(a, JoinWorkerRequest());
  EXPECT_EQ(bench.SentEpoch(b), bench.SentEpoch(a));
  bench.TakeOver(a);
  bench.TakeOver(c);
  EXPECT_EQ(bench.ReplyTo(a, join), nullptr);
  bench.Say(b, ViewInForceMessage{Epoch{bench.SentEpoch(b) - 1}});
  EXPECT_EQ(bench.ReplyTo(a, join), nullptr) << "an older view is not enough";
  bench.TakeOver(b);
  ASSERT_NE(bench.ReplyTo(a, join), nullptr);
  EXPECT_TRUE(bench.coordinator.view().IsLive(WorkerIndex{0}));
}

TEST(MasterViewTest, ThoseWhoWaitTogetherGetOneView) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const uint64_t epoch = bench.coordinator.view().epoch.value;
  Streams requests;
  for (int i = 0; i < 20; ++i) requests.push_back(bench.Ask(a, JoinWorkerRequest()));
  EXPECT_EQ(bench.coordinator.view().epoch.value, epoch + 1) << "the rest waits for the first";
  for (int turn = 0; turn < 2; ++turn) {
    bench.TakeOver(a);
    bench.TakeOver(b);
  }
  EXPECT_EQ(bench.coordinator.view().epoch.value, epoch + 2);
  std::set<uint32_t> ids;
  for (const uint64_t request : requests) {
    ASSERT_NE(bench.ReplyTo(a, request), nullptr);
    ids.insert(std::get<WorkerJoined>(bench.ReplyTo(a, request)->body).worker.value);
  }
  EXPECT_EQ(ids.size(), requests.size());
}

TEST(MasterViewTest, WorkersLeaveOnceAndOnlyTheirOwn) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const WorkerJoined worker = bench.AddWorker(a, {a, b});
  const LeaveWorkerRequest leave{worker.worker, worker.index.value};
  EXPECT_EQ(bench.ReplyTo(b, bench.Ask(b, leave))->code, StatusCode::kInvalidArgument);
  bench.TakeOver(a);
  bench.TakeOver(b);
  const uint64_t request = bench.Ask(a, leave);
  EXPECT_FALSE(bench.coordinator.view().IsLive(worker.index));
  EXPECT_EQ(bench.ReplyTo(a, request), nullptr);
  bench.TakeOver(b);
  bench.TakeOver(a);
  ASSERT_NE(bench.ReplyTo(a, request), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, request)->code, StatusCode::kOk);
  const uint64_t again = bench.Ask(a, leave);
  EXPECT_EQ(bench.ReplyTo(a, again)->code, StatusCode::kInvalidArgument);
  for (const StreamId agent : {a, b}) bench.TakeOver(agent);
  const WorkerJoined next = bench.AddWorker(b, {a, b});
  EXPECT_EQ(next.index, worker.index);
  EXPECT_NE(next.worker, worker.worker);
}

TEST(MasterViewTest, AFlushIsCommittedWhenAllHoldAndAnsweredWhenItIsInForce) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const KeyspaceId before = bench.coordinator.view().keyspaces[3];
  const uint64_t flush = bench.Ask(a, FlushRequest{3});
  const auto* hold = bench.Last<HoldForViewMessage>(b);
  ASSERT_NE(hold, nullptr);
  const uint64_t epoch = hold->epoch.value;
  bench.Say(a, ViewHeldMessage{Epoch{epoch}});
  bench.Say(b, ViewHeldMessage{Epoch{epoch - 1}});
  // Changes that come meanwhile travel in the same view.
  const uint64_t join = bench.Ask(b, JoinWorkerRequest());
  EXPECT_EQ(bench.coordinator.view().keyspaces[3], before) << "b does not hold yet";
  EXPECT_LT(bench.SentEpoch(a), epoch);
  bench.Say(b, ViewHeldMessage{Epoch{epoch}});
  EXPECT_NE(bench.coordinator.view().keyspaces[3], before);
  EXPECT_EQ(bench.SentEpoch(a), epoch);
  bench.TakeOver(a);
  EXPECT_EQ(bench.ReplyTo(a, flush), nullptr);
  bench.TakeOver(b);
  ASSERT_NE(bench.ReplyTo(a, flush), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, flush)->code, StatusCode::kOk);
  EXPECT_NE(bench.ReplyTo(b, join), nullptr);
}

TEST(MasterViewTest, AHoldThatNobodyAnswersEndsWithoutTheFlush) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const KeyspaceId before = bench.coordinator.view().keyspaces[0];
  const uint64_t flush = bench.Ask(a, FlushRequest{});
  const uint64_t epoch = bench.Last<HoldForViewMessage>(a)->epoch.value;
  bench.Say(a, ViewHeldMessage{Epoch{epoch}});
  Streams all = nodes;
  all.insert(all.end(), {a, b});
  bench.Pass(bench.options.hold_timeout_ms + 200, all);
  ASSERT_NE(bench.ReplyTo(a, flush), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, flush)->code, StatusCode::kUnavailable);
  EXPECT_NE(bench.ReplyTo(a, flush)->reason.find("agent "), std::string::npos);
  EXPECT_EQ(bench.coordinator.view().keyspaces[0], before);
  EXPECT_EQ(bench.SentEpoch(a), epoch) << "a is held until there is a view";
  // b takes no view at all: in the end it is expelled.
  bench.TakeOver(a);
  bench.Pass(bench.options.ack_timeout_ms + 200, all);
  ASSERT_NE(bench.Last<ExpelledMessage>(b), nullptr);
  EXPECT_EQ(bench.Last<ExpelledMessage>(a), nullptr);
}

TEST(MasterViewTest, TooManyRequestsAreRefused) {
  CoordinatorOptions options;
  options.requests_max = 10;
  MasterBench bench(options);
  const StreamId agent = bench.Attend(MemberKind::kAgent);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(bench.ReplyTo(agent, bench.Ask(agent, JoinWorkerRequest())), nullptr);
  }
  const ReplyMessage* reply = bench.ReplyTo(agent, bench.Ask(agent, JoinWorkerRequest()));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kUnavailable);
}

TEST(MasterViewTest, ThereAreAsManyWorkersAsSeats) {
  MasterBench bench;
  bench.Form();
  const StreamId agent = bench.AddAgent();
  for (uint32_t i = 0; i < kMaxWorkers; ++i) bench.AddWorker(agent, {agent});
  const uint64_t request = bench.Ask(agent, JoinWorkerRequest());
  ASSERT_NE(bench.ReplyTo(agent, request), nullptr);
  EXPECT_EQ(bench.ReplyTo(agent, request)->code, StatusCode::kUnavailable);
}

TEST(MasterViewTest, RequestsOfTheWrongKindOfProcessAreRefused) {
  MasterBench bench;
  bench.Form();
  const StreamId tool = bench.Attend(MemberKind::kOther);
  EXPECT_EQ(bench.attendance.member, 0U);
  const StreamId agent = bench.AddAgent();
  const auto code = [&](StreamId stream, auto body) {
    return bench.ReplyTo(stream, bench.Ask(stream, body))->code;
  };
  EXPECT_EQ(code(tool, StatusRequest()), StatusCode::kOk);
  EXPECT_EQ(code(tool, JoinWorkerRequest()), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(tool, FlushRequest()), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(agent, MasterBench::Offer(9)), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(agent, std::monostate()), StatusCode::kInvalidArgument);
  const StreamId node = bench.Attend(MemberKind::kMemoryNode);
  EXPECT_EQ(code(node, MasterBench::Serve(7000)), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(node, JoinWorkerRequest()), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(tool, LeaveRequest()), StatusCode::kOk);
  EXPECT_TRUE(bench.closed.contains(tool));
}

TEST(MasterExpulsionTest, ASeatIsFreeOnlyWhenEveryNodeHasFencedItsWorker) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const WorkerJoined worker = bench.AddWorker(a, {a, b});
  bench.Break(a);
  EXPECT_TRUE(bench.disk.seats.at(worker.index.value).expelled);
  for (int node = 0; node < 3; ++node) {
    EXPECT_TRUE(bench.coordinator.view().IsLive(worker.index)) << "node " << node;
    const auto* fence = bench.Last<FenceMessage>(nodes[node]);
    ASSERT_NE(fence, nullptr);
    EXPECT_EQ(fence->workers, std::vector<WorkerId>{worker.worker});
    if (node == 1) {
      // "Not yet" is not done, and is asked again.
      const uint64_t id = fence->id;
      bench.Say(nodes[1], FencedMessage{id, false, "a process does not die"});
      bench.Say(nodes[1], FencedMessage{id, true, ""});
      EXPECT_TRUE(bench.coordinator.view().IsLive(worker.index));
      bench.Pass(300, {nodes[0], nodes[1], nodes[2], b});
      EXPECT_GT(bench.Last<FenceMessage>(nodes[1])->id, id);
    }
    bench.ConfirmFence(nodes[node]);
  }
  EXPECT_FALSE(bench.coordinator.view().IsLive(worker.index));
  EXPECT_FALSE(bench.disk.seats.contains(worker.index.value));
  bench.TakeOver(b);
  const WorkerJoined next = bench.AddWorker(b, {b});
  EXPECT_EQ(next.index, worker.index);
  EXPECT_NE(next.worker, worker.worker);
}

TEST(MasterExpulsionTest, ANodeThatIsAwayFencesBeforeItServes) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const WorkerJoined worker = bench.AddWorker(a, {a, b});
  // Without workers a node is not put out as long as no request needs that.
  bench.Break(a);
  bench.Break(nodes[2]);
  bench.ConfirmFence(nodes[0]);
  bench.ConfirmFence(nodes[1]);
  EXPECT_TRUE(bench.coordinator.view().IsLive(worker.index));
  // No member may rely on the expelled one being gone.
  const uint64_t flush = bench.Ask(b, FlushRequest{});
  EXPECT_EQ(bench.Last<HoldForViewMessage>(b), nullptr);
  bench.Pass(bench.options.flush_wait_ms + 200, {nodes[0], nodes[1], b});
  ASSERT_NE(bench.ReplyTo(b, flush), nullptr);
  EXPECT_NE(bench.ReplyTo(b, flush)->reason.find("not fenced"), std::string::npos);
  const StreamId back = bench.JoinNode(102);
  ASSERT_NE(Joined(bench, back), nullptr);
  EXPECT_EQ(Joined(bench, back)->expelled, std::vector<WorkerId>{worker.worker});
  EXPECT_EQ(bench.Last<FenceMessage>(back), nullptr) << "it does not serve yet";
  bench.Ask(back, MasterBench::Serve(7002));
  bench.ConfirmFence(back);
  EXPECT_FALSE(bench.coordinator.view().IsLive(worker.index));
}

TEST(MasterExpulsionTest, WhoIsWaitedForIsWaitedForUntilItIsFenced) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  bench.AddWorker(a, {a, b});
  const uint64_t join = bench.Ask(b, JoinWorkerRequest());
  bench.TakeOver(b);
  bench.Break(a);
  EXPECT_EQ(bench.ReplyTo(b, join), nullptr) << "a could still work under the older view";
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  EXPECT_NE(bench.ReplyTo(b, join), nullptr);
}

TEST(MasterExpulsionTest, AHoldGoesOnWithoutTheDead) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  bench.AddWorker(a, {a, b});
  const uint64_t flush = bench.Ask(b, FlushRequest{});
  bench.Say(b, ViewHeldMessage{bench.Last<HoldForViewMessage>(b)->epoch});
  const KeyspaceId before = bench.coordinator.view().keyspaces[0];
  bench.Break(a);
  EXPECT_EQ(bench.coordinator.view().keyspaces[0], before);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  EXPECT_NE(bench.coordinator.view().keyspaces[0], before);
  bench.TakeOver(b);
  ASSERT_NE(bench.ReplyTo(b, flush), nullptr);
  EXPECT_EQ(bench.ReplyTo(b, flush)->code, StatusCode::kOk);
}

TEST(MasterExpulsionTest, ALeaseCatchesWhatHangs) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t a_member = bench.attendance.member;
  const StreamId b = bench.AddAgent();
  bench.AddWorker(a, {a, b});
  bench.Pass(bench.options.lease_ms + 300, {nodes[0], nodes[1], b});
  ASSERT_NE(bench.Last<ExpelledMessage>(a), nullptr);
  EXPECT_NE(bench.Last<ExpelledMessage>(a)->reason.find("lease"), std::string::npos);
  EXPECT_TRUE(bench.closed.contains(a));
  EXPECT_TRUE(bench.closed.contains(nodes[2])) << "a memory node that hangs is lost";
  EXPECT_EQ(bench.Last<ExpelledMessage>(nodes[2]), nullptr) << "but keeps its place";
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.members[2].state, "lost");
  EXPECT_EQ(bench.Last<ExpelledMessage>(b), nullptr);
  bench.Attend(MemberKind::kAgent, a_member);
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_FALSE(bench.attendance.retry);
  EXPECT_NE(bench.attendance.reason.find("expelled"), std::string::npos);
}

TEST(MasterExpulsionTest, AMasterThatStoodStillExpelsNobody) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  bench.Advance(100);
  bench.Advance(60'000);
  EXPECT_EQ(bench.Last<ExpelledMessage>(a), nullptr);
  bench.Pass(bench.options.lease_ms + 300, {});
  EXPECT_NE(bench.Last<ExpelledMessage>(a), nullptr) << "from then on it is judged";
}

// Connections that break while the master stands still are no proof of anything: it hears of all of
// them when it wakes, before or after its next tick.
TEST(MasterExpulsionTest, AStreamThatEndedWhileTheMasterStoodStillMayComeBack) {
  for (const bool tick_first : {false, true}) {
    MasterBench bench;
    const Streams nodes = bench.Form();
    const StreamId a = bench.AddAgent();
    const uint64_t a_member = bench.attendance.member;
    const StreamId b = bench.AddAgent();
    const uint64_t b_member = bench.attendance.member;
    const WorkerJoined a_worker = bench.AddWorker(a, {a, b});
    const WorkerJoined b_worker = bench.AddWorker(b, {a, b});
    const uint64_t join = bench.Ask(b, JoinWorkerRequest());
    bench.Pass(500, {nodes[0], nodes[1], nodes[2], a, b});
    bench.now_us += bench.options.lease_ms * 1000;
    if (tick_first) bench.Advance(1);
    bench.Reset(a);
    bench.Reset(b);
    EXPECT_FALSE(bench.disk.seats.at(a_worker.index.value).expelled);
    EXPECT_FALSE(bench.disk.seats.at(b_worker.index.value).expelled);
    const StreamId back = bench.Attend(MemberKind::kAgent, b_member, bench.SentEpoch(b));
    EXPECT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
    bench.TakeOver(back);
    // The other one has its lease, and is waited for until then.
    const uint64_t flush = bench.Ask(back, FlushRequest{});
    EXPECT_EQ(bench.Last<HoldForViewMessage>(back), nullptr) << "a may act under the older view";
    bench.Pass(bench.options.lease_ms - 200, {nodes[0], nodes[1], nodes[2], back});
    EXPECT_FALSE(bench.disk.seats.at(a_worker.index.value).expelled);
    bench.Pass(400, {nodes[0], nodes[1], nodes[2], back});
    EXPECT_TRUE(bench.disk.seats.at(a_worker.index.value).expelled);
    bench.Attend(MemberKind::kAgent, a_member);
    EXPECT_FALSE(bench.attendance.welcome);
    for (const StreamId node : nodes) bench.ConfirmFence(node);
    ASSERT_NE(bench.Last<HoldForViewMessage>(back), nullptr);
    bench.Say(back, ViewHeldMessage{bench.Last<HoldForViewMessage>(back)->epoch});
    bench.TakeOver(back);
    ASSERT_NE(bench.ReplyTo(back, flush), nullptr);
    EXPECT_EQ(bench.ReplyTo(back, flush)->code, StatusCode::kOk);
    EXPECT_EQ(bench.ReplyTo(b, join), nullptr);
    EXPECT_EQ(bench.disk.seats.size(), 1U) << "the worker whose reply was lost is no worker";
  }
}

TEST(MasterExpulsionTest, AMasterThatRunsActsOnTheEndOfAStreamAtOnce) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const StreamId b = bench.AddAgent();
  const WorkerJoined worker = bench.AddWorker(a, {a, b});
  bench.Advance(100);
  bench.Advance(2 * bench.options.lease_ms);
  bench.Pass(bench.options.lease_ms + 100, {nodes[0], nodes[1], nodes[2], a, b});
  bench.Break(a);
  EXPECT_TRUE(bench.disk.seats.at(worker.index.value).expelled) << "a lease after it stood still";
  EXPECT_NE(bench.Last<FenceMessage>(nodes[0]), nullptr);
}

TEST(MasterExpulsionTest, NodesWhoseStreamsEndedWhileTheMasterStoodStillAreWaitedFor) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  bench.Pass(500, {nodes[0], nodes[1], nodes[2], a});
  bench.now_us += bench.options.lease_ms * 1000;
  bench.Reset(nodes[0]);
  bench.Pass(bench.options.lease_ms - 200, {nodes[1], nodes[2], a});
  EXPECT_EQ(bench.Last<HoldForViewMessage>(a), nullptr) << "it is not lost yet";
  bench.Pass(400, {nodes[1], nodes[2], a});
  ASSERT_NE(bench.Last<HoldForViewMessage>(a), nullptr);
  EXPECT_EQ(bench.Last<HoldForViewMessage>(a)->leave, std::vector<NodeId>{NodeId{0}});
}

TEST(MasterExpulsionTest, WhoLeavesInOrderLeavesNothingBehind) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  EXPECT_EQ(bench.ReplyTo(a, bench.Ask(a, LeaveRequest()))->code, StatusCode::kOk);
  EXPECT_TRUE(bench.closed.contains(a));
  EXPECT_TRUE(bench.disk.agents.empty());
  EXPECT_EQ(bench.Last<FenceMessage>(nodes[0]), nullptr);
  bench.Ask(nodes[0], LeaveRequest());
  EXPECT_EQ(bench.coordinator.Status(bench.now_us).status.members[0].state, "left");
  // With workers that have not left, it is fenced as if it had died.
  const StreamId b = bench.AddAgent();
  const uint64_t join = bench.Ask(b, JoinWorkerRequest());
  EXPECT_EQ(bench.ReplyTo(b, join), nullptr) << "a node of the map is not there";
  const StreamId back = bench.JoinNode(100);
  bench.Ask(back, MasterBench::Serve(7000));
  bench.TakeOver(b);
  ASSERT_NE(bench.ReplyTo(b, join), nullptr);
  bench.Ask(b, LeaveRequest());
  EXPECT_EQ(bench.disk.agents.size(), 1U);
  for (const StreamId node : {back, nodes[1], nodes[2]}) bench.ConfirmFence(node);
  EXPECT_TRUE(bench.disk.agents.empty());
}

TEST(MasterExpulsionTest, AProcessThatOpensANewStreamIsNotDead) {
  MasterBench bench;
  const Streams nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const WorkerJoined worker = bench.AddWorker(a, {a});
  const uint64_t join = bench.Ask(a, JoinWorkerRequest());
  const StreamId again = bench.Attend(MemberKind::kAgent, member, bench.SentEpoch(a));
  EXPECT_TRUE(bench.attendance.welcome);
  EXPECT_EQ(bench.attendance.member, member);
  EXPECT_TRUE(bench.closed.contains(a));
  bench.Break(a);
  EXPECT_EQ(bench.Last<ExpelledMessage>(again), nullptr);
  bench.TakeOver(again);
  bench.TakeOver(again);
  EXPECT_TRUE(bench.coordinator.view().IsLive(worker.index));
  EXPECT_EQ(bench.ReplyTo(again, join), nullptr);
  EXPECT_EQ(bench.disk.seats.size(), 1U) << "the worker whose reply was lost is no worker";
  // A memory node, likewise.
  const StreamId node = bench.Attend(MemberKind::kMemoryNode, 1);
  EXPECT_TRUE(bench.attendance.welcome);
  bench.Ask(node, MasterBench::Offer(100));
  ASSERT_NE(Joined(bench, node), nullptr);
  EXPECT_TRUE(bench.closed.contains(nodes[0]));
}

}  // namespace
}  // namespace onetrip
