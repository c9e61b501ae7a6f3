// A master's state made anew from what members keep: the copies, and what becomes of them.
#include <gmock/gmock.h>

#include "client_core/control/control.pb.h"
#include "client_core/control/kept_state.h"
#include "master/rebuild.h"
#include "master/state_copies.h"
#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

// A cluster of three memory nodes and two agents, whose master's disk is lost.
class MasterRebuildTest : public MasterRepairTest {
 protected:
  // The copy that a member keeps that has seen everything up to now.
  control::Recalled Copy() const { return CopyOf(bench.disk); }
  static control::Recalled CopyOf(const DurableState& disk) {
    StateCopies copies(disk);
    control::FromMaster message;
    copies.FillWhole(&message);
    KeptState kept;
    kept.Add(message.keep_state());
    control::Recalled recalled;
    kept.Fill(&recalled);
    return recalled;
  }
  ::onetrip::Status AddNode(Rebuild& rebuild, uint16_t node, control::Recalled recalled) {
    recalled.set_incarnation(100U + node);
    recalled.set_mark(40U + node);
    MemberHello hello;
    hello.kind = MemberKind::kMemoryNode;
    hello.cluster = MasterBench::kCluster;
    hello.member = 1U + node;
    hello.epoch = view().epoch.value;
    return rebuild.Add(hello, recalled, &reason);
  }
  void AddAgent(Rebuild& rebuild, uint64_t id, const control::Recalled& recalled) {
    MemberHello hello;
    hello.kind = MemberKind::kAgent;
    hello.member = id;
    EXPECT_TRUE(rebuild.Add(hello, recalled, &reason).ok()) << reason;
  }
  std::string reason;
};

TEST_F(MasterRebuildTest, WhatIsKeptIsWhatWasStored) {
  DurableState state;
  const control::Recalled copy = Copy();
  for (const std::string& bytes : copy.changes()) {
    const Result<DurableChange> change = DecodeChange(bytes);
    ASSERT_TRUE(change.ok());
    ApplyChange(*change, &state);
  }
  EXPECT_EQ(state.cluster, bench.disk.cluster);
  EXPECT_EQ(state.nodes, bench.disk.nodes);
  EXPECT_EQ(state.regions, bench.disk.regions);
  EXPECT_EQ(state.seats, bench.disk.seats);
  EXPECT_EQ(state.agents, bench.disk.agents);
}

TEST_F(MasterRebuildTest, AChangeIsSentAloneAndAddsUpToTheSame) {
  StateCopies copies(bench.disk);
  control::FromMaster message;
  copies.FillWhole(&message);
  KeptState kept;
  kept.Add(message.keep_state());
  const uint64_t before = kept.version();
  DurableChange change;
  change.seats[3] = SeatRecord{WorkerId{9}, member[a], true};
  change.seats[0] = std::nullopt;
  change.former[77] = true;
  message.Clear();
  ASSERT_TRUE(copies.OnStored(change, &message));
  EXPECT_FALSE(message.keep_state().whole());
  kept.Add(message.keep_state());
  EXPECT_GT(kept.version(), before);
  control::Recalled recalled;
  kept.Fill(&recalled);
  ASSERT_EQ(recalled.changes_size(), 2);
  DurableState state;
  for (const std::string& bytes : recalled.changes()) ApplyChange(*DecodeChange(bytes), &state);
  EXPECT_EQ(state.seats.at(3).worker, WorkerId{9});
  EXPECT_FALSE(state.seats.contains(0));
  EXPECT_TRUE(state.former.contains(77));
}

TEST_F(MasterRebuildTest, TimesAndMarksAreNotWorthACopy) {
  StateCopies copies(bench.disk);
  control::FromMaster message;
  DurableChange change;
  change.cluster = bench.disk.cluster;
  change.cluster->time_us += 5;
  change.nodes[1] = bench.disk.nodes[1];
  change.nodes[1].mark = 8;
  EXPECT_FALSE(copies.OnStored(change, &message));
}

TEST_F(MasterRebuildTest, TheNewestCopyCountsAndItsIdsAreRaised) {
  const control::Recalled old = Copy();
  bench.AddWorker(a, {a, b});
  Rebuild rebuild;
  EXPECT_EQ(rebuild.MissingText(), "nobody who keeps a copy has answered yet");
  ASSERT_TRUE(AddNode(rebuild, 0, old).ok());
  ASSERT_TRUE(AddNode(rebuild, 1, Copy()).ok());
  EXPECT_THAT(rebuild.MissingText(), HasSubstr("memory nodes 2, and from agents"));
  AddAgent(rebuild, member[a], old);
  AddAgent(rebuild, member[b], old);
  EXPECT_EQ(rebuild.MissingText(), "no answer yet from memory nodes 2");
  const Result<DurableState> made = rebuild.Make(5, /*force=*/false, &reason);
  ASSERT_TRUE(made.ok()) << reason;
  EXPECT_EQ(made->seats, bench.disk.seats);
  EXPECT_EQ(made->cluster.engines, EngineFamily::kReplicated);
  EXPECT_GT(made->cluster.epoch, view().epoch.value);
  EXPECT_GT(made->cluster.next_worker, bench.disk.cluster.next_worker);
  EXPECT_GT(made->cluster.next_keyspace, bench.disk.cluster.next_keyspace);
  EXPECT_TRUE(made->cluster.resolve_due);
  EXPECT_TRUE(made->cluster.scrub_due);
  EXPECT_EQ(made->nodes[1].mark, 41U);
  EXPECT_EQ(made->nodes[2].mark, 0U) << "it is not known, so any is taken";
  // Workers that may have come after the newest copy are refused by all.
  EXPECT_TRUE(made->former.contains(bench.disk.cluster.next_worker));
}

TEST_F(MasterRebuildTest, MembersGoOnUnderTheStateThatWasMadeAnew) {
  Rebuild rebuild;
  for (uint16_t node = 0; node < 3; ++node) ASSERT_TRUE(AddNode(rebuild, node, Copy()).ok());
  AddAgent(rebuild, member[a], Copy());
  AddAgent(rebuild, member[b], Copy());
  EXPECT_EQ(rebuild.MissingText(), "");
  const uint64_t epoch = view().epoch.value;
  const uint32_t next_worker = bench.disk.cluster.next_worker;
  bench.disk = *rebuild.Make(5, /*force=*/false, &reason);
  bench.Start();
  for (const StreamId agent : {a, b}) {
    const StreamId again = bench.Attend(MemberKind::kAgent, member[agent], epoch);
    EXPECT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
    (agent == a ? a : b) = again;
    break;
  }
  for (uint16_t node = 0; node < 3; ++node) {
    nodes[node] = bench.Attend(MemberKind::kMemoryNode, 1U + node, epoch);
    EXPECT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
    JoinNodeRequest offer = MasterBench::Offer(100U + node);
    offer.adopted = true;
    offer.owner_cluster = MasterBench::kCluster;
    offer.owner_node = node;
    offer.mark = offer.told = 40U + node;
    const ReplyMessage* reply = bench.ReplyTo(nodes[node], bench.Ask(nodes[node], offer));
    ASSERT_NE(reply, nullptr);
    ASSERT_EQ(reply->code, StatusCode::kOk) << reply->reason;
    EXPECT_THAT(std::get<NodeJoined>(reply->body).expelled,
                testing::Contains(WorkerId{next_worker}));
  }
}

TEST_F(MasterRebuildTest, TooFewMemoryNodesMayKeepAnOldState) {
  Rebuild rebuild;
  ASSERT_TRUE(AddNode(rebuild, 2, Copy()).ok());
  EXPECT_EQ(rebuild.Make(5, /*force=*/false, &reason).status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(reason, HasSubstr("only 1 of 3 memory nodes have answered"));
  EXPECT_TRUE(rebuild.Make(5, /*force=*/true, &reason).ok());
}

TEST_F(MasterRebuildTest, WhatIsNoCopyCountsForNothing) {
  Rebuild rebuild;
  control::Recalled odd = Copy();
  odd.set_changes(0, "odd");
  EXPECT_EQ(AddNode(rebuild, 0, odd).code(), StatusCode::kCorrupt);
  ASSERT_TRUE(AddNode(rebuild, 1, Copy()).ok());
  DurableState other = bench.disk;
  other.cluster.cluster = 5;
  EXPECT_EQ(AddNode(rebuild, 0, CopyOf(other)).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(rebuild.Make(5, /*force=*/false, &reason).ok());
}

TEST_F(MasterRebuildTest, AChangeOfWhatIsNotThereIsNoCopy) {
  control::Recalled gap = Copy();
  DurableChange change;
  change.regions[UINT32_MAX] = bench.disk.regions[0];
  gap.add_changes(EncodeChange(change));
  Rebuild rebuild;
  EXPECT_EQ(AddNode(rebuild, 0, gap).code(), StatusCode::kCorrupt);
  change = DurableChange();
  change.nodes[UINT16_MAX] = bench.disk.nodes[0];
  gap.set_changes(1, EncodeChange(change));
  EXPECT_EQ(AddNode(rebuild, 0, gap).code(), StatusCode::kCorrupt);
  // A row that comes behind the last one is a new one.
  change = DurableChange();
  const auto regions = static_cast<uint32_t>(bench.disk.regions.size());
  change.regions[regions] = change.regions[regions + 1] = bench.disk.regions[0];
  gap.set_changes(1, EncodeChange(change));
  EXPECT_TRUE(AddNode(rebuild, 0, gap).ok()) << reason;
}

TEST_F(MasterRebuildTest, ACopyOfNoClusterIsNoCopy) {
  control::Recalled odd = Copy();
  DurableChange change;
  change.former[7] = true;
  odd.set_changes(0, EncodeChange(change));
  Rebuild rebuild;
  EXPECT_EQ(AddNode(rebuild, 0, odd).code(), StatusCode::kCorrupt);
}

TEST_F(MasterRebuildTest, NobodyHasSeenAWorkerThatCannotBe) {
  Rebuild rebuild;
  control::Recalled odd = Copy();
  odd.set_next_worker(UINT32_MAX);
  EXPECT_EQ(AddNode(rebuild, 0, odd).code(), StatusCode::kCorrupt);
  EXPECT_EQ(rebuild.AddFile(odd, &reason).code(), StatusCode::kCorrupt);
  EXPECT_THAT(reason, HasSubstr("worker"));
  DurableState state = bench.disk;
  state.cluster.next_worker = UINT32_MAX;
  EXPECT_EQ(AddNode(rebuild, 0, CopyOf(state)).code(), StatusCode::kCorrupt);
}

TEST_F(MasterRebuildTest, AFileIsWholeOrRefused) {
  const std::string path = testing::TempDir() + "kept.state";
  const std::string bytes = EncodeStateFile(Copy());
  ASSERT_TRUE(WriteFileWhole(path, bytes, &reason).ok()) << reason;
  control::Recalled read;
  ASSERT_TRUE(ReadStateFile(path, &read, &reason).ok()) << reason;
  EXPECT_EQ(read.version(), Copy().version());
  for (const size_t at : {size_t{0}, size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_EQ(DecodeStateFile(damaged, &read).code(), StatusCode::kCorrupt);
    EXPECT_EQ(DecodeStateFile(bytes.substr(0, at), &read).code(), StatusCode::kCorrupt);
  }
}

TEST_F(MasterRebuildTest, AgentsSayWhichEnginesWhereTheCopyDoesNot) {
  DurableState disk = bench.disk;
  disk.cluster.engines = EngineFamily::kNone;
  Rebuild rebuild;
  for (uint16_t node = 0; node < 3; ++node) ASSERT_TRUE(AddNode(rebuild, node, CopyOf(disk)).ok());
  MemberHello hello;
  hello.kind = MemberKind::kAgent;
  hello.member = member[a];
  hello.engine = "raw";
  ASSERT_TRUE(rebuild.Add(hello, control::Recalled(), &reason).ok()) << reason;
  const Result<DurableState> made = rebuild.Make(5, /*force=*/false, &reason);
  ASSERT_TRUE(made.ok()) << reason;
  EXPECT_EQ(made->cluster.engines, EngineFamily::kSingleCopy);
}

}  // namespace
}  // namespace onetrip
