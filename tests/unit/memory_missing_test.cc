// Memory of a pool where a node is lost, then out, then back.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 4, .replicas = 3, .node_bytes = 48ULL << 20};
constexpr SizeClass kSlab(3);
constexpr SizeClass kSpan(SizeClass::kSlabClasses + 5);  // six blocks

class MissingMemoryTest : public testing::Test {
 protected:
  explicit MissingMemoryTest(const ClusterShape& shape = kShape)
      : cluster_(executor_.clock(), shape) {
    DataPathOptions options;
    options.memory_wait_ms = 50;
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<MemoryWorker>(cluster_, executor_,
                                                        MakeSim(cluster_, executor_), options));
      workers_.back()->Join();
    }
  }
  ~MissingMemoryTest() override {
    for (auto& worker : workers_) worker->Leave();
  }

  MemoryWorker& worker(size_t i) { return *workers_[i]; }
  SimFabric& fabric(size_t i) { return static_cast<SimFabric&>(worker(i).fabric()); }
  View view() { return *cluster_.master().view(); }
  // It does not answer; no worker knows yet.
  void Lose(NodeId node) { cluster_.node(node.value).SetReachable(false); }
  void TakeOut(NodeId node) {
    for (auto& worker : workers_) worker->fabric().SetEvicted(node, true);
    cluster_.TakeOut(node);
  }
  void BringBack(NodeId node) {
    cluster_.node(node.value).SetReachable(true);
    for (auto& worker : workers_) worker->fabric().SetEvicted(node, false);
    cluster_.BringBack(node);
  }
  bool Holds(GlobalAddr addr, NodeId node) {
    const View now = view();
    for (int i = 0; i < now.LiveReplicas(addr); ++i) {
      if (now.Locate(addr, i).node == node) return true;
    }
    return false;
  }
  const RegionHeader& Header(GlobalAddr addr, int replica) {
    const RemoteAddr at = view().Locate(GlobalAddr(addr.region(), 0), replica);
    return *reinterpret_cast<const RegionHeader*>(cluster_.node(at.node.value).base() + at.offset);
  }
  uint64_t BitmapWord(GlobalAddr block, int replica) {
    const RemoteAddr at = view().Locate(block + BitmapOffset(block.block()), replica);
    return *reinterpret_cast<const uint64_t*>(cluster_.node(at.node.value).base() + at.offset);
  }
  // Both workers' epochs, in turn, until what is retired now may be used again.
  void PassEpochs() {
    for (int i = 0; i < 8; ++i) {
      for (auto& worker : workers_) worker->Maintain();
    }
  }

  SimExecutor executor_{1};
  TestCluster cluster_;
  std::vector<std::unique_ptr<MemoryWorker>> workers_;
};

TEST_F(MissingMemoryTest, GrantsAreMadeOnTheLiveReplicasOfEveryRegion) {
  const NodeId lost = view().Locate(GlobalAddr(0, 0), 0).node;
  Lose(lost);
  TakeOut(lost);
  std::vector<GlobalAddr> spans;
  while (true) {
    const Result<GlobalAddr> span = worker(0).Allocate(kSpan);
    if (!span.ok()) {
      EXPECT_EQ(span.status().code(), StatusCode::kOutOfMemory);
      break;
    }
    spans.push_back(span.value());
    for (int i = 0; i < view().LiveReplicas(spans.back()); ++i) {
      EXPECT_EQ(BlockEntry(Header(spans.back(), i).blocks[spans.back().block()]).use(),
                BlockEntry::Use::kOwned);
    }
    EXPECT_FALSE(Holds(spans.back(), lost));
  }
  // Also from the regions of which the lost node was the primary.
  std::vector<bool> granted(view().regions.size());
  for (const GlobalAddr span : spans) granted[span.region()] = true;
  EXPECT_EQ(std::count(granted.begin(), granted.end(), true),
            static_cast<std::ptrdiff_t>(granted.size()));
  for (const GlobalAddr span : spans) {
    worker(0).allocator().FreeUnpublished(span, kSpan);
  }
  BlockOn(executor_, worker(0).allocator().Drain());
  for (uint16_t node = 0; node < 4; ++node) {
    if (NodeId{node} != lost) {
      EXPECT_EQ(cluster_.node(node).status().granted_blocks, 0U);
    }
  }
  BringBack(lost);
  EXPECT_TRUE(worker(1).Allocate(kSlab).ok());
}

// Regions have moved, and nodes know it before the worker does: what they grant it is not its own.
TEST_F(MissingMemoryTest, ABlockOfANodeThatIsAheadIsGivenBack) {
  View ahead = view();
  ahead.epoch = Epoch{ahead.epoch.value + 1};
  for (RegionPlacement& region : ahead.regions) {
    std::swap(region.nodes[0], region.nodes[1]);
    std::swap(region.base[0], region.base[1]);
  }
  const auto granted = [this] {
    uint64_t blocks = 0;
    for (uint16_t node = 0; node < 4; ++node) blocks += cluster_.node(node).status().granted_blocks;
    return blocks;
  };
  const uint64_t before = granted();
  for (uint16_t node = 0; node < 4; ++node) {
    std::string reason;
    ASSERT_TRUE(cluster_.node(node).UseView(ahead, &reason).ok()) << reason;
  }
  EXPECT_EQ(worker(0).Allocate(kSpan).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(granted(), before);
}

Task<void> AwaitAll(std::vector<Task<void>> tasks) { co_await WhenAll(std::move(tasks)); }
Task<void> TakeOutSoon(SimExecutor* executor, uint64_t after_ns, std::function<void()> then) {
  co_await executor->SleepFor(after_ns);
  then();
}
Task<void> AllocateInto(Allocator* allocator, SizeClass size_class, Result<GlobalAddr>* result) {
  *result = co_await allocator->Allocate(size_class);
}

// All four nodes, one after the other: with one lost, no region is left whose grant succeeds for
// long, for each node holds most regions.
TEST_F(MissingMemoryTest, AllocatingWaitsForAViewWithoutTheLostNode) {
  const NodeId lost{1};
  Lose(lost);
  Lose(NodeId{2});  // so that every region is on one of them
  Result<GlobalAddr> result = Status(StatusCode::kCorrupt, "never set");
  const uint64_t start_ns = executor_.NowNs();
  std::vector<Task<void>> tasks;
  tasks.push_back(AllocateInto(&worker(0).allocator(), kSlab, &result));
  tasks.push_back(TakeOutSoon(&executor_, 10'000'000, [&] {
    cluster_.node(2).SetReachable(true);
    TakeOut(lost);
  }));
  BlockOn(executor_, AwaitAll(std::move(tasks)));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GE(executor_.NowNs() - start_ns, 10'000'000U);
  EXPECT_FALSE(Holds(*result, lost));
  BringBack(lost);
}

TEST_F(MissingMemoryTest, AllocatingGivesUpAfterItsTimeOrWhileAllIsHeld) {
  Lose(NodeId{1});
  Lose(NodeId{2});
  const uint64_t start_ns = executor_.NowNs();
  EXPECT_EQ(worker(0).Allocate(kSlab).status().code(), StatusCode::kUnavailable);
  EXPECT_GE(executor_.NowNs() - start_ns, 50'000'000U);
  const uint64_t held_ns = executor_.NowNs();
  worker(0).context().quiesce.Hold(HoldKind::kAll);
  EXPECT_EQ(worker(0).Allocate(kSlab).status().code(), StatusCode::kUnavailable);
  EXPECT_LT(executor_.NowNs() - held_ns, 10'000'000U);
  worker(0).context().quiesce.Release();
  cluster_.node(1).SetReachable(true);
  cluster_.node(2).SetReachable(true);
  EXPECT_TRUE(worker(0).Allocate(kSlab).ok());
}

TEST_F(MissingMemoryTest, EpochsGoOnWithoutANodeThatIsOut) {
  const NodeId lost = view().Locate(GlobalAddr(0, 0), 0).node;  // the node of the epoch table
  const uint64_t before = worker(0).reclaimer().current_epoch();
  Lose(lost);
  PassEpochs();
  EXPECT_LE(worker(0).reclaimer().current_epoch(), before + 1) << "nobody can publish";
  TakeOut(lost);
  PassEpochs();
  EXPECT_GT(worker(0).reclaimer().current_epoch(), before + 3);
  BringBack(lost);
}

// Objects that worker 1 frees for worker 0, while the primary of their bitmap is lost.
TEST_F(MissingMemoryTest,
       WhatWasFreedForTheOwnerWhileThePrimaryWasLostIsCollectedFromItsSuccessor) {
  std::vector<GlobalAddr> objects;
  objects.reserve(70);
  for (int i = 0; i < 70; ++i) objects.push_back(worker(0).Allocate(kSlab).value());
  const GlobalAddr block = objects.front().block_start();
  const NodeId lost = view().Locate(block, 0).node;
  for (const GlobalAddr addr : objects) worker(1).allocator().Retire(addr, kSlab);
  Lose(lost);
  // The master is told at some moment within the flush, too.
  for (auto& worker : workers_) worker->fabric().SetEvicted(lost, true);
  cluster_.TakeOut(lost);
  const uint64_t live = worker(0).allocator().metrics().live_bytes.Value();
  PassEpochs();
  EXPECT_EQ(worker(0).allocator().metrics().live_bytes.Value(),
            live - objects.size() * kSlab.bytes());
  for (int i = 0; i < view().LiveReplicas(block); ++i) EXPECT_EQ(BitmapWord(block, i), 0U);
  BringBack(lost);
}

// The owner finds the bits, and the node is lost before it has taken them out: nothing is free that
// is not known to be out on all live replicas, and in the end everything is.
TEST_F(MissingMemoryTest, BitsThatCouldNotBeTakenOutAreTakenOutLaterAndOnce) {
  for (uint64_t after_ns = 0; after_ns < 12'000; after_ns += 500) {
    SCOPED_TRACE(after_ns);
    std::vector<GlobalAddr> objects;
    objects.reserve(10);
    for (int i = 0; i < 10; ++i) objects.push_back(worker(0).Allocate(kSlab).value());
    const GlobalAddr block = objects.front().block_start();
    ASSERT_EQ(objects.back().block_start(), block);
    const NodeId lost = view().Locate(block, after_ns % 1000 == 0 ? 0 : 1).node;
    const uint64_t live = worker(0).allocator().metrics().live_bytes.Value();
    for (const GlobalAddr addr : objects) worker(1).allocator().Retire(addr, kSlab);
    for (int i = 0; i < 8; ++i) {
      (void)BlockOn(executor_, worker(0).reclaimer().Tick({}));
      worker(1).Maintain();
    }
    ASSERT_NE(BitmapWord(block, 0), 0U);
    std::vector<Task<void>> tasks;
    tasks.push_back(worker(0).allocator().Maintain());
    tasks.push_back(TakeOutSoon(&executor_, after_ns, [&] { Lose(lost); }));
    BlockOn(executor_, AwaitAll(std::move(tasks)));
    TakeOut(lost);
    PassEpochs();
    EXPECT_EQ(worker(0).allocator().metrics().live_bytes.Value(),
              live - objects.size() * kSlab.bytes());
    for (int i = 0; i < view().LiveReplicas(block); ++i) EXPECT_EQ(BitmapWord(block, i), 0U);
    BringBack(lost);
  }
}

Task<void> TickAndMaintain(MemoryWorker* ticks, MemoryWorker* maintains) {
  for (int i = 0; i < 8; ++i) {
    (void)co_await ticks->reclaimer().Tick({});
    co_await maintains->allocator().Maintain();
  }
}

// A connection breaks amid a change to objects and blocks.
class BrokenAmidTest : public MissingMemoryTest {
 protected:
  static constexpr SizeClass kOneSpan{SizeClass::kSlabClasses};
  static constexpr uint64_t kClaimsNs = 1'000'000'000;  // rests between walks over block tables

  // The task, while worker i's connection to the node, which is slow, breaks after that time.
  template <typename Look>
  void RunAmid(Task<void> task, size_t i, NodeId node, uint64_t after_ns, Look look) {
    fabric(i).SetSlowness(node, 20);
    Gate gate(executor_);
    executor_.Spawn(gate, std::move(task));
    executor_.Spawn(gate, TakeOutSoon(&executor_, after_ns, [&] { fabric(i).BreakChannel(node); }));
    while (gate.inside() > 0 && executor_.RunOnce()) look();
    fabric(i).SetSlowness(node, 1);
  }

  // Worker 1 frees objects of worker 0's: whether the primary shows bits that may yet arrive at a
  // backup. In the end worker 0 has them all.
  bool ShowsLateBit(uint64_t after_ns) {
    std::vector<GlobalAddr> objects;
    objects.reserve(10);
    for (int i = 0; i < 10; ++i) objects.push_back(worker(0).Allocate(kSlab).value());
    const GlobalAddr block = objects.front().block_start();
    EXPECT_EQ(objects.back().block_start(), block);
    const uint64_t live = worker(0).allocator().metrics().live_bytes.Value();
    for (const GlobalAddr addr : objects) worker(1).allocator().Retire(addr, kSlab);
    bool shown = false;
    RunAmid(TickAndMaintain(&worker(0), &worker(1)), 1, view().Locate(block, 1).node, after_ns,
            [&] {
              const bool may_arrive = !fabric(1).settled() && BitmapWord(block, 1) == 0;
              shown = shown || (may_arrive && BitmapWord(block, 0) != 0);
            });
    PassEpochs();
    EXPECT_EQ(worker(0).allocator().metrics().live_bytes.Value(),
              live - objects.size() * kSlab.bytes());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(BitmapWord(block, i), 0U);
    return shown;
  }

  // Returns true if all replicas say that the block is the worker's, or that it is not, and the
  // worker says the same.
  bool AllAgree(size_t i, GlobalAddr start) {
    const bool owns = worker(i).allocator().Owns(start);
    for (int replica = 0; replica < view().LiveReplicas(start); ++replica) {
      const BlockEntry entry(Header(start, replica).blocks[start.block()]);
      const bool has = entry.use() == BlockEntry::Use::kOwned &&
                       entry.owner() == worker(i).context().membership.id;
      if (has != owns) return false;
    }
    return true;
  }

  // Worker 0 gives a block back: whether all agree about it in the end.
  bool ReturnsABlock(int replica, uint64_t after_ns) {
    const GlobalAddr start = worker(0).Allocate(kOneSpan).value().block_start();
    const GlobalAddr object = start + kBlockHeaderBytes;
    worker(0).allocator().FreeUnpublished(object, kOneSpan);
    RunAmid(worker(0).allocator().Maintain(), 0, view().Locate(start, replica).node, after_ns,
            [] {});
    PassEpochs();
    const bool agree = AllAgree(0, start);
    // It was not known whether the primary had it back: it counts as used, and nothing names it.
    if (worker(0).allocator().Owns(start)) {
      worker(0).allocator().FreeUnpublished(object, kOneSpan);
      PassEpochs();
    }
    return agree;
  }

  // Worker 0 is granted a block: whether it knows in the end of all that any primary says is its
  // own.
  bool IsGrantedABlock(NodeId node, uint64_t after_ns) {
    Result<GlobalAddr> result = Status(StatusCode::kCorrupt, "never set");
    RunAmid(AllocateInto(&worker(0).allocator(), kOneSpan, &result), 0, node, after_ns, [] {});
    PassEpochs();
    executor_.RunUntil(executor_.NowNs() + kClaimsNs);
    PassEpochs();
    bool knows = true;
    std::vector<GlobalAddr> spans;
    const View now = view();
    for (uint32_t region = 0; region < now.regions.size(); ++region) {
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        const GlobalAddr start(region, uint64_t{block} * kBlockBytes);
        const BlockEntry entry(Header(GlobalAddr(region, 0), 0).blocks[block]);
        if (entry.use() != BlockEntry::Use::kOwned || entry.size_class() != kOneSpan) continue;
        if (entry.owner() != worker(0).context().membership.id) continue;
        knows = knows && worker(0).allocator().Owns(start);
        spans.push_back(start);
      }
    }
    for (const GlobalAddr start : spans) {
      if (!worker(0).allocator().Owns(start)) continue;
      worker(0).allocator().FreeUnpublished(start + kBlockHeaderBytes, kOneSpan);
    }
    PassEpochs();
    return knows;
  }

  // Worker 0 takes over a block of worker 1, which is not heard of again: the same.
  bool TakesABlockOver(int replica, uint64_t after_ns) {
    const GlobalAddr start = worker(1).Allocate(kOneSpan).value().block_start();
    const std::vector<bool> named{true};
    std::vector<bool> freed;
    RunAmid(
        TakeOver(&worker(0).allocator(), start, worker(1).context().membership.id, &named, &freed),
        0, view().Locate(start, replica).node, after_ns, [] {});
    PassEpochs();
    return AllAgree(0, start);
  }
  static Task<void> TakeOver(Allocator* allocator, GlobalAddr start, WorkerId from,
                             const std::vector<bool>* named, std::vector<bool>* freed) {
    (void)co_await allocator->claims().TakeOver(start, kOneSpan, from, *named, freed);
  }
};

// A bit that was sent may arrive later, and by then the owner must not have used the object anew.
TEST_F(BrokenAmidTest, ThePrimaryDoesNotShowABitThatMayYetArriveAtABackup) {
  for (uint64_t after_ns = 0; after_ns < 200'000; after_ns += 1'000) {
    EXPECT_FALSE(ShowsLateBit(after_ns)) << after_ns;
  }
}

// Else the primary would grant a block that a backup takes for a worker's, or a node would keep one
// that no worker knows.
TEST_F(BrokenAmidTest, ABlockThatIsGivenBackIsFreeOnAllReplicasInTheEnd) {
  for (int replica = 0; replica < 3; ++replica) {
    for (uint64_t after_ns = 0; after_ns < 400'000; after_ns += 2'000) {
      EXPECT_TRUE(ReturnsABlock(replica, after_ns)) << replica << " " << after_ns;
    }
  }
}

TEST_F(BrokenAmidTest, ABlockWhoseGrantIsNotHeardIsKnownToItsOwnerInTheEnd) {
  for (uint16_t node = 0; node < 4; ++node) {
    for (uint64_t after_ns = 0; after_ns < 80'000; after_ns += 4'000) {
      EXPECT_TRUE(IsGrantedABlock(NodeId{node}, after_ns)) << node << " " << after_ns;
    }
  }
}

TEST_F(BrokenAmidTest, ABlockThatIsTakenOverIsKnownToItsOwnerInTheEnd) {
  for (int replica = 0; replica < 3; ++replica) {
    for (uint64_t after_ns = 0; after_ns < 80'000; after_ns += 4'000) {
      EXPECT_TRUE(TakesABlockOver(replica, after_ns)) << replica << " " << after_ns;
    }
  }
}

class GrantAmidTest : public MissingMemoryTest {
 protected:
  // A block that its primary alone has granted.
  std::optional<NodeId> PrimaryAlone(WorkerId owner) {
    const View now = view();
    for (uint32_t region = 0; region < now.regions.size(); ++region) {
      const GlobalAddr at(region, 0);
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        const BlockEntry first(Header(at, 0).blocks[block]);
        if (first.use() != BlockEntry::Use::kOwned || first.owner() != owner) continue;
        if (Header(at, 1).blocks[block] == 0) return now.Locate(at, 0).node;
      }
    }
    return std::nullopt;
  }

  // The primary has granted, a backup is asked, and the primary goes out: the node that was the
  // second backup is the first one then. Returns true if all live replicas know whose the block is.
  bool AllReplicasKnow() {
    const WorkerId owner = worker(0).context().membership.id;
    Result<GlobalAddr> result = Status(StatusCode::kCorrupt, "never set");
    std::optional<NodeId> lost;
    Gate gate(executor_);
    executor_.Spawn(gate, AllocateInto(&worker(0).allocator(), kSpan, &result));
    while (gate.inside() > 0 && executor_.RunOnce()) {
      if (lost.has_value()) continue;
      lost = PrimaryAlone(owner);
      if (!lost.has_value()) continue;
      // When its answer has come, and no backup's.
      executor_.Spawn(gate, TakeOutSoon(&executor_, 1'300, [&] {
                        Lose(*lost);
                        TakeOut(*lost);
                      }));
    }
    EXPECT_TRUE(lost.has_value());
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!lost.has_value() || !result.ok()) return false;
    bool all = true;
    for (int i = 0; i < view().LiveReplicas(*result); ++i) {
      const BlockEntry entry(Header(*result, i).blocks[result->block()]);
      all = all && entry.use() == BlockEntry::Use::kOwned && entry.owner() == owner;
    }
    BringBack(*lost);
    return all;
  }
};

TEST_F(GrantAmidTest, ABlockIsGrantedOnAllReplicasWhateverBecomesOfTheMapMeanwhile) {
  for (int turn = 0; turn < 12; ++turn) EXPECT_TRUE(AllReplicasKnow()) << turn;
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(BrokenAmidTest, PlantedBugLateBitShownIsFound) {
  TEST_planted_bug = Bug::kLateBitShown;
  bool shown = false;
  for (uint64_t after_ns = 0; after_ns < 200'000 && !shown; after_ns += 1'000) {
    shown = ShowsLateBit(after_ns);
  }
  TEST_planted_bug = Bug::kNone;
  EXPECT_TRUE(shown);
}

TEST_F(BrokenAmidTest, PlantedBugReturnForgottenIsFound) {
  TEST_planted_bug = Bug::kReturnForgotten;
  bool agree = true;
  for (uint64_t after_ns = 0; after_ns < 400'000 && agree; after_ns += 2'000) {
    agree = ReturnsABlock(1, after_ns);
  }
  TEST_planted_bug = Bug::kNone;
  EXPECT_FALSE(agree);
}

TEST_F(BrokenAmidTest, PlantedBugHalfTakenForgottenIsFound) {
  TEST_planted_bug = Bug::kHalfTakenForgotten;
  bool agree = true;
  for (uint64_t after_ns = 0; after_ns < 80'000 && agree; after_ns += 4'000) {
    agree = TakesABlockOver(1, after_ns);
  }
  bool knows = true;
  for (uint64_t after_ns = 0; after_ns < 80'000 && knows; after_ns += 4'000) {
    knows = IsGrantedABlock(NodeId{0}, after_ns);
  }
  TEST_planted_bug = Bug::kNone;
  EXPECT_FALSE(agree);
  EXPECT_FALSE(knows);
}

TEST_F(GrantAmidTest, PlantedBugReplicaNotAskedIsFound) {
  TEST_planted_bug = Bug::kReplicaNotAsked;
  bool all = true;
  for (int turn = 0; turn < 12 && all; ++turn) all = AllReplicasKnow();
  TEST_planted_bug = Bug::kNone;
  EXPECT_FALSE(all);
}
#endif

// Regions of one set of nodes stay together, whatever their order is and whatever is missing.
TEST_F(MissingMemoryTest, BuffersGoOnToComeFromBlocksOnTheirRegistersNodes) {
  const GlobalAddr near = worker(0).Allocate(kSlab).value();
  Allocator& allocator = worker(0).allocator();
  const GlobalAddr first = BlockOn(executor_, allocator.AllocateBuffer(kSlab, near)).value();
  const NodeId lost = view().Locate(near, 0).node;
  Lose(lost);
  TakeOut(lost);
  const GlobalAddr second = allocator.TryAllocateBuffer(kSlab, near);
  ASSERT_FALSE(second.is_null()) << "the block that it has still serves";
  EXPECT_EQ(second.block_start(), first.block_start());
  for (int i = 0; i < view().LiveReplicas(near); ++i) {
    EXPECT_TRUE(Holds(second, view().Locate(near, i).node));
  }
  BringBack(lost);
  // The register's region is given to another node: its blocks of buffers are others from now on.
  const NodeId spare = [&] {
    for (uint16_t i = 0; i < 4; ++i) {
      if (!Holds(near, NodeId{i})) return NodeId{i};
    }
    return NodeId{0};
  }();
  cluster_.master().AddEdit([region = near.region(), spare](View& view) {
    view.regions[region].nodes[2] = spare;
    view.regions[region].missing = 1;
  });
  const auto third = BlockOn(executor_, allocator.AllocateBuffer(kSlab, near));
  if (third.ok()) {
    const View now = view();
    std::vector<NodeId> mine(now.regions[third->region()].nodes.begin(),
                             now.regions[third->region()].nodes.begin() + 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(std::find(mine.begin(), mine.end(), now.regions[near.region()].nodes[i]),
                mine.end());
    }
  }
}

// The worker that freed an object of worker 0's died between the backups and the primary. Worker 0
// finds it and uses it again: whether it loses it once more when a backup takes the primary's
// place.
class FoundObjectTest : public MissingMemoryTest {
 protected:
  bool IsFreedTwice() {
    Allocator& owner = worker(0).allocator();
    const GlobalAddr object = worker(0).Allocate(kSlab).value();
    const GlobalAddr block = object.block_start();
    const uint16_t index = ObjectIndex(object, block, kSlab);
    EXPECT_LT(index, 64U);
    for (int i = 1; i < view().LiveReplicas(block); ++i) {
      const RemoteAddr at = view().Locate(block + BitmapOffset(block.block()), i);
      std::byte* const base = cluster_.node(at.node.value).base();
      *reinterpret_cast<uint64_t*>(base + at.offset) |= 1ULL << index;
    }
    owner.accounting().Begin();
    std::vector<bool> unused(ObjectsPerBlock(kSlab, block.block()));
    unused[index] = true;
    EXPECT_TRUE(BlockOn(executor_, owner.accounting().CollectFreed(block, unused)).ok());
    if (owner.accounting().IsSuspect(object)) owner.accounting().FreeLost(object);
    owner.accounting().End();
    GlobalAddr again;
    while (again != object) again = worker(0).Allocate(kSlab).value();
    const uint64_t live = owner.metrics().live_bytes.Value();
    const NodeId lost = view().Locate(block, 0).node;
    Lose(lost);
    TakeOut(lost);
    PassEpochs();
    return owner.metrics().live_bytes.Value() < live;
  }
};

TEST_F(FoundObjectTest, WhatABackupAloneShowsIsTakenOutWhenItIsFound) {
  EXPECT_FALSE(IsFreedTwice());
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(FoundObjectTest, PlantedBugBackupBitsIgnoredIsFound) {
  TEST_planted_bug = Bug::kBackupBitsIgnored;
  EXPECT_TRUE(IsFreedTwice());
  TEST_planted_bug = Bug::kNone;
}
#endif

class ManyRegionsTest : public MissingMemoryTest {
 protected:
  ManyRegionsTest() : MissingMemoryTest({.nodes = 4, .replicas = 3, .node_bytes = 192ULL << 20}) {}
};

// A memory node that is the first of regions of several sets of nodes fills one after the other.
TEST_F(ManyRegionsTest, BuffersAreFoundOnEveryRegistersNodesWhoeverIsFirstThere) {
  for (const uint16_t lost : {0, 1}) {
    Lose(NodeId{lost});
    TakeOut(NodeId{lost});
    BringBack(NodeId{lost});
  }
  const View now = view();
  for (uint32_t region = 0; region < now.regions.size(); ++region) {
    const GlobalAddr near(region, kBlockBytes);
    const auto buffer = BlockOn(executor_, worker(0).allocator().AllocateBuffer(kSlab, near));
    ASSERT_TRUE(buffer.ok()) << "region " << region;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Holds(*buffer, view().Locate(near, i).node));
  }
}

}  // namespace
}  // namespace onetrip
