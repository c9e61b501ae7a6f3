// The life of a memory node's process, with a master that does what the test says: what is refused
// and how, in which order things happen, which workers it fences, what a later life finds.
#include <filesystem>
#include <fstream>
#include <thread>

#include "client_core/base/host_id.h"
#include "tests/unit/memnode_node_process_fixture.h"

namespace onetrip {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST_F(MemnodeNodeProcessTest, ServesBothFabricsAndSaysWhoAndWhereItIs) {
  Start();
  EXPECT_THAT(script_.events, ElementsAre("join", "serve"));
  EXPECT_EQ(script_.offer.bytes, kOffered) << "whole regions";
  EXPECT_NE(script_.offer.incarnation, 0U);
  EXPECT_FALSE(script_.offer.adopted);
  const std::string tcp = "127.0.0.1:" + std::to_string(port());
  EXPECT_EQ(script_.told, tcp);
  const NodeAddress both{"127.0.0.1", port(), options_.socket, HostId()};
  EXPECT_EQ(script_.address, both);
  EXPECT_THAT(process_->ReadyLine(),
              testing::MatchesRegex("onetrip-memnode 0\\..* is ready: node 2 of cluster "
                                    "0000000000000015, 64 MiB \\(4 regions\\), tcp " +
                                    tcp + ", shm " + options_.socket + ", master 127.0.0.1:7400"));
  EXPECT_EQ(TcpAnswer(1), TcpRefusal::kNone);
  auto segment = Attach(2);
  ASSERT_TRUE(segment.ok()) << reason_;
  const ControlReply reply = (*segment)->Handle({.kind = ControlRequest::Kind::kAlloc,
                                                 .size_class = SizeClass(3),
                                                 .owner = WorkerId{2},
                                                 .block = {}});
  EXPECT_EQ(reply.outcome, Outcome::kDone);
  const NodeReport report = script_.duties->Report();
  EXPECT_EQ(report.blocks, 4 * kBlocksPerRegion - kRootBlocks);
  EXPECT_EQ(report.granted_blocks, 1U);
  segment->reset();
  process_->Stop();
  EXPECT_THAT(script_.events, ElementsAre("join", "serve", "leave"));
  EXPECT_FALSE(std::filesystem::exists(options_.socket));
}

TEST_F(MemnodeNodeProcessTest, ServesOnlyTheFabricItWasTold) {
  options_.fabric = "tcp";
  Start();
  const NodeAddress tcp_only{"127.0.0.1", port(), "", ""};
  EXPECT_EQ(script_.address, tcp_only);
  EXPECT_THAT(process_->ReadyLine(), Not(HasSubstr("shm")));
  EXPECT_EQ(TcpAnswer(1), TcpRefusal::kNone);
  EXPECT_FALSE(std::filesystem::exists(options_.socket));
  process_.reset();
  options_.fabric = "shm";
  // No process listens there, so no process needs a secret.
  options_.listen = "10.0.0.1:7500";
  Start();
  EXPECT_EQ(script_.told, options_.socket);
  const NodeAddress shm_only{"", 0, options_.socket, HostId()};
  EXPECT_EQ(script_.address, shm_only);
  EXPECT_THAT(process_->ReadyLine(), Not(HasSubstr("tcp")));
  EXPECT_TRUE(Attach(1).ok()) << reason_;
}

TEST_F(MemnodeNodeProcessTest, WhatIsWrongWithoutTheMasterIsFoundBeforeItIsAsked) {
  const MemnodeOptions good = options_;
  script_.join = [](const NodeOffer& /*offer*/, std::string* /*reason*/) -> Result<NodePlace> {
    ADD_FAILURE() << "asked";
    return Status(StatusCode::kUnavailable, "asked");
  };
  for (const char* listen : {"10.1.2.3:0", "0.0.0.0:0", "[::]:0", "localhost:0"}) {
    options_.listen = listen;
    ExpectRefused("will not listen on " + options_.listen +
                  " without a secret; give --secret-file");
  }
  secret_ = "sixteen bytes are enough";
  for (const char* listen : {"0.0.0.0:0", "[::]:0"}) {
    options_.listen = listen;
    ExpectRefused("--listen " + options_.listen + " is no address that agents could connect to");
  }
  options_.listen = "192.0.2.1:0";
  ExpectRefused("is not an address of this host");
  secret_ = "";
  options_ = good;

  const auto other = ListenTcp("127.0.0.1", 0, 1, &reason_);
  ASSERT_TRUE(other.ok());
  options_.listen = "127.0.0.1:" + std::to_string(LocalPort(other.value().get()));
  ExpectRefused("is taken by another process");
  options_ = good;

  options_.memory_bytes = uint64_t{64} << 40;
  ExpectRefused("a memory of 67108864 MiB is more than this host's");
  options_ = good;

  options_.socket = directory_ + "/" + std::string(100, 's');
  ExpectRefused("has more than 107 bytes");
  options_.socket = directory_ + "/open/node.sock";
  std::filesystem::create_directory(directory_ + "/open");
  std::filesystem::permissions(directory_ + "/open", std::filesystem::perms{0755});
  ExpectRefused("is open to others");
  options_ = good;
  options_.backing = directory_ + "/open/memory";
  ExpectRefused("is open to others");
  options_.backing = directory_ + "/other";
  const int fd = open(options_.backing.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  EXPECT_EQ(write(fd, "no memory", 9), 9);
  close(fd);
  ExpectRefused("is no memory image");
  EXPECT_THAT(script_.events, IsEmpty());
}

TEST_F(MemnodeNodeProcessTest, AMasterThatIsAwayOrSaysNoEndsTheNodeWithItsReason) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kInvalidArgument}) {
    script_.join = [code](const NodeOffer& /*offer*/, std::string* reason) -> Result<NodePlace> {
      *reason = "the master says why";
      return Status(code, "no");
    };
    ExpectRefused("the master says why");
  }
  Place(4);
  script_.serve = [](const NodeAddress& /*address*/, std::string* reason) {
    *reason = "the master has gone";
    return Status(StatusCode::kUnavailable, "gone");
  };
  ExpectRefused("the master has gone");
}

TEST_F(MemnodeNodeProcessTest, APlaceThatTheMemoryCannotHoldIsRefused) {
  Place(5);
  ExpectRefused("the map places 83886080 bytes on this memory node, which has 67108864");
  script_.join = [](const NodeOffer& /*offer*/, std::string* /*reason*/) {
    NodePlace place{.cluster = kCluster, .node = kNode, .view = MakeView(4), .expelled = {}};
    place.view.regions[3].base[0] = kRegionBytes;
    return place;
  };
  ExpectRefused("two regions in one place");
}

TEST_F(MemnodeNodeProcessTest, ANodeWhoseFileOrSocketAnotherUsesIsRefused) {
  options_.backing = directory_ + "/memory";
  Start();
  const auto first = std::move(process_);
  const std::string socket = options_.socket;
  options_.socket = directory_ + "/second.sock";
  script_.events.clear();
  ExpectRefused("backing file " + options_.backing + " is in use by another memory node");

  options_.backing.clear();
  options_.socket = socket;
  const auto second = Make();
  EXPECT_FALSE(second->Start(&reason_).ok());
  EXPECT_THAT(reason_, HasSubstr(socket + " is taken by another process"));
  EXPECT_TRUE(std::filesystem::exists(socket)) << "the other's";
  EXPECT_TRUE(Attach(1).ok()) << reason_;
}

TEST_F(MemnodeNodeProcessTest, ALaterLifeOffersTheSameMemoryAndHasItsData) {
  options_.backing = directory_ + "/memory";
  Start();
  const NodeOffer offer = script_.offer;
  EXPECT_FALSE(offer.adopted);
  GlobalAddr block;
  {
    auto segment = Attach(1);
    ASSERT_TRUE(segment.ok()) << reason_;
    block = (*segment)
                ->Handle({.kind = ControlRequest::Kind::kAlloc,
                          .size_class = SizeClass(3),
                          .owner = WorkerId{1},
                          .block = {}})
                .block;
    std::memset((*segment)->base() + block.bits() + 512, 0x5a, 64);
  }
  process_->Stop();

  Start();
  EXPECT_TRUE(script_.offer.adopted);
  EXPECT_EQ(script_.offer.bytes, offer.bytes);
  EXPECT_EQ(script_.offer.incarnation, offer.incarnation);
  EXPECT_EQ(script_.offer.owner_cluster, kCluster);
  EXPECT_EQ(script_.offer.owner_node, kNode);
  EXPECT_EQ(script_.duties->Report().granted_blocks, 1U);
  EXPECT_EQ(process_->node().base()[block.bits() + 512 + 63], std::byte{0x5a});
  process_.reset();

  // To another cluster, or as another node, it is of no use, and it stays what it is.
  for (const uint64_t cluster : {kCluster + 1, kCluster}) {
    script_.join = [cluster](const NodeOffer& /*offer*/, std::string* /*reason*/) {
      NodePlace place{.cluster = cluster, .node = NodeId{0}, .view = MakeView(4), .expelled = {}};
      for (RegionPlacement& region : place.view.regions) region.nodes[0] = NodeId{0};
      return place;
    };
    ExpectRefused(cluster == kCluster ? "belongs to memory node 2, not to 0"
                                      : "belongs to cluster 0000000000000015, not to");
  }
  Place(4);
  Start();
  EXPECT_EQ(script_.offer.incarnation, offer.incarnation);
  EXPECT_EQ(script_.duties->Report().granted_blocks, 1U);
}

// A file that was stopped in order, and lost a bit of its first block table since.
class MemnodeDamagedFileTest : public MemnodeNodeProcessTest {
 protected:
  MemnodeDamagedFileTest() {
    options_.backing = directory_ + "/memory";
    Start();
    incarnation_ = script_.offer.incarnation;
    process_->Stop();
    process_.reset();
    FlipBit();
    before_ = Content();
    script_.events.clear();
  }
  void FlipBit() const {
    std::fstream file(options_.backing, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kImageMemoryOffset + 64 + 8 * 40));
    file.put(1);
  }
  std::string Content() const {
    std::ifstream file(options_.backing, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The place of a node that is out: nothing is counted on.
  void PlaceOut() {
    script_.join = [this](const NodeOffer& offer, std::string* /*reason*/) {
      offers_.push_back(offer);
      NodePlace place{.cluster = kCluster, .node = kNode, .view = MakeView(4), .expelled = {}};
      // Another node has what this one lacks.
      place.view.replicas = 2;
      place.view.nodes.resize(place.view.node_count);
      place.view.nodes[kNode.value].out = true;
      for (RegionPlacement& region : place.view.regions) {
        region.missing = 1;
        region.nodes = {NodeId{0}, kNode};
        region.base[1] = region.base[0];
      }
      return place;
    };
  }

  uint64_t incarnation_ = 0;
  std::string before_;
  std::vector<NodeOffer> offers_;
};

TEST_F(MemnodeDamagedFileTest, ItIsOfferedAsDamagedUntilThePlaceDoesNotCountOnIt) {
  // The master waits; the process is told to end.
  script_.join = nullptr;
  process_ = Make();
  std::thread caller([this] {
    script_.Await("join");
    process_->Interrupt();
  });
  EXPECT_FALSE(process_->Start(&reason_).ok());
  caller.join();
  process_.reset();
  EXPECT_THAT(script_.offer.damage, HasSubstr("bytes 2097152 to 3145727 are not what"));
  EXPECT_TRUE(Content() == before_) << "left as it is";

  PlaceOut();
  Start();
  ASSERT_EQ(offers_.size(), 1U);
  EXPECT_TRUE(offers_[0].adopted);
  EXPECT_EQ(offers_[0].incarnation, incarnation_);
  EXPECT_EQ(offers_[0].owner_node, kNode);
  EXPECT_THAT(offers_[0].damage, HasSubstr("bytes 2097152 to 3145727"));
  EXPECT_FALSE(offers_[0].accepted);
  EXPECT_EQ(script_.duties->Report().blocks, 0U) << "all is missing";
  process_.reset();
  Start();
  EXPECT_EQ(offers_.back().damage, "") << "a new life has begun on it";
}

TEST_F(MemnodeDamagedFileTest, APlaceThatCountsOnItIsRefused) {
  ExpectRefused("cannot be adopted: bytes 2097152 to 3145727");
  EXPECT_TRUE(Content() == before_);
}

TEST_F(MemnodeDamagedFileTest, ItIsAcceptedOnlyIfItsHeadersAreSound) {
  options_.accept_damaged = "yes";
  ExpectRefused("cannot be accepted as it is: region 0 has a damaged block table");
  EXPECT_EQ(script_.offer.damage, "");
  EXPECT_TRUE(script_.offer.accepted);
  EXPECT_TRUE(Content() == before_);
  {
    std::fstream file(options_.backing, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kImageMemoryOffset + 64 + 8 * 40));
    file.put(0);
    file.seekp(static_cast<std::streamoff>(kImageMemoryOffset + kRegionHeaderBytes + 4));
    file.put(1);
  }
  Start();
  EXPECT_TRUE(script_.offer.accepted);
  EXPECT_EQ(script_.offer.incarnation, incarnation_);
  EXPECT_EQ(process_->node().base()[kRegionHeaderBytes + 4], std::byte{1});
  process_.reset();
  Start();
  EXPECT_FALSE(script_.offer.accepted) << "it is as its node left it";
}

// Trusted until the map says that there is a region.
TEST_F(MemnodeDamagedFileTest, HeadersThatCannotBeAdoptedAreDamageThatIsToldInASecondJoin) {
  options_.accept_damaged = "yes";
  {
    std::fstream file(options_.backing, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kImageMemoryOffset + 64 + 8 * 40));
    file.put(0);
  }
  Start();
  // Killed.
  {
    const std::string killed = directory_ + "/killed";
    std::filesystem::copy_file(options_.backing, killed);
    options_.backing = killed;
  }
  process_.reset();
  options_.accept_damaged = "no";
  FlipBit();
  PlaceOut();
  const auto out = script_.join;
  script_.join = [this, out](const NodeOffer& offer, std::string* reason) -> Result<NodePlace> {
    if (!offer.damage.empty()) return out(offer, reason);
    offers_.push_back(offer);
    return NodePlace{.cluster = kCluster, .node = kNode, .view = MakeView(4), .expelled = {}};
  };
  script_.events.clear();
  Start();
  ASSERT_EQ(offers_.size(), 2U);
  EXPECT_EQ(offers_[0].damage, "");
  EXPECT_EQ(offers_[1].damage, "region 0 has a damaged block table");
  EXPECT_THAT(script_.events, ElementsAre("join", "leave", "join", "serve"));
}

TEST_F(MemnodeNodeProcessTest, AProcessThatStillMapsTheFileIsEndedBeforeTheNextLifeServes) {
  options_.backing = directory_ + "/memory";
  OtherProcess holder(options_.socket, 1);
  options_.detach_timeout_ms = 0;
  Start();
  ASSERT_TRUE(holder.Map());
  process_->Stop();
  // Not for a cluster that this node is no part of.
  script_.join = [](const NodeOffer& /*offer*/, std::string* /*reason*/) {
    return NodePlace{.cluster = kCluster + 1, .node = kNode, .view = MakeView(4), .expelled = {}};
  };
  ExpectRefused("belongs to cluster");
  Place(4);
  script_.serve = [&holder](const NodeAddress& /*address*/, std::string* /*reason*/) {
    EXPECT_EQ(holder.Wait(), SIGKILL);
    return Status::Ok();
  };
  options_.former_grace_ms = 0;
  Start();
  EXPECT_TRUE(script_.offer.adopted);
}

TEST_F(MemnodeNodeProcessTest, ASpareServesAndReportsAndGrantsNothing) {
  Place(0);
  Start();
  EXPECT_THAT(process_->ReadyLine(), HasSubstr("64 MiB (0 regions)"));
  EXPECT_EQ(script_.duties->Report().blocks, 0U);
  auto segment = Attach(1);
  ASSERT_TRUE(segment.ok()) << reason_;
  EXPECT_EQ((*segment)
                ->Handle({.kind = ControlRequest::Kind::kAlloc,
                          .size_class = SizeClass(3),
                          .owner = WorkerId{1},
                          .block = {}})
                .outcome,
            Outcome::kFull);
  RawWorker worker(port(), Hello(2));
  ASSERT_TRUE(worker.welcome());
  worker.Send(worker.Frame({{.kind = TcpOpKind::kRead, .bytes = 8, .offset = kOffered}}));
  const auto answers = worker.Answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error, TcpError::kOutOfBounds);
}

TEST_F(MemnodeNodeProcessTest, AllMemoryIsWithinReachForRegionsToCome) {
  Place(2);
  Start();
  EXPECT_THAT(process_->ReadyLine(), HasSubstr("64 MiB (2 regions)"));
  RawWorker worker(port(), Hello(2));
  ASSERT_TRUE(worker.welcome());
  worker.Send(worker.Frame({{.kind = TcpOpKind::kRead, .bytes = 8, .offset = kOffered - 8}}));
  worker.Send(worker.Frame({{.kind = TcpOpKind::kRead, .bytes = 8, .offset = kOffered}}));
  const auto answers = worker.Answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].kind, TcpFrameKind::kBatch);
  EXPECT_EQ(answers[1].error, TcpError::kOutOfBounds);
  EXPECT_EQ(script_.duties->Report().operations, 1U);
}

// The master gave the node up while it was away: what was sent to it before must come to nothing.
TEST_F(MemnodeNodeProcessTest, ANodeThatFindsItselfOutClosesItsChannels) {
  Place(2);
  Start();
  RawWorker worker(port(), Hello(2));
  ASSERT_TRUE(worker.welcome());
  auto view = std::make_shared<View>(MakeView(2));
  view->nodes.resize(view->node_count);
  script_.duties->OnView(view);
  EXPECT_EQ(TcpAnswer(3), TcpRefusal::kNone) << "as long as it is in";
  view = std::make_shared<View>(*view);
  view->nodes[kNode.value].out = true;
  for (RegionPlacement& region : view->regions) {
    region.missing = 1;
    region.nodes[1] = kNode;
    region.base[1] = region.base[0];
    region.nodes[0] = NodeId{0};
  }
  view->replicas = 2;
  ++view->epoch.value;
  script_.duties->OnView(view);
  worker.Send(worker.Frame({{.kind = TcpOpKind::kRead, .bytes = 8}}));
  const auto answers = worker.Answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].kind, TcpFrameKind::kGoodbye);
  EXPECT_EQ(script_.duties->Report().operations, 0U);
  EXPECT_EQ(script_.duties->Report().blocks, 0U) << "all its regions are missing";
  TcpHello again = Hello(2);
  again.incarnation = 2;
  EXPECT_TRUE(RawWorker(port(), again, secret_).welcome());
}

TEST_F(MemnodeNodeProcessTest, WhoWasExpelledIsRefusedBeforeAnybodyHearsOfTheNode) {
  Place(4, {WorkerId{7}, WorkerId{8}});
  script_.serve = [this](const NodeAddress& /*address*/, std::string* /*reason*/) {
    EXPECT_EQ(TcpAnswer(7), TcpRefusal::kFenced);
    EXPECT_EQ(Attach(8).status().code(), StatusCode::kFenced);
    EXPECT_EQ(TcpAnswer(9, Epoch{kEpoch.value - 1}), TcpRefusal::kStaleEpoch);
    EXPECT_EQ(TcpAnswer(9), TcpRefusal::kNone);
    return Status::Ok();
  };
  Start();
}

TEST_F(MemnodeNodeProcessTest, AFenceEndsProcessesAndChannelsAndRefusesOlderMaps) {
  OtherProcess killed(options_.socket, 1);
  OtherProcess spared(options_.socket, 2);
  Start();
  ASSERT_TRUE(killed.Map());
  ASSERT_TRUE(spared.Map());
  RawWorker worker(port(), Hello(3));
  ASSERT_TRUE(worker.welcome());

  EXPECT_TRUE(Fence({WorkerId{1}, WorkerId{3}, WorkerId{99}}, Epoch{9}).ok()) << reason_;
  EXPECT_EQ(killed.Wait(), SIGKILL);
  const auto answers = worker.Answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error, TcpError::kFenced);
  for (const uint32_t fenced : {1U, 3U, 99U}) {
    EXPECT_EQ(TcpAnswer(fenced, Epoch{9}), TcpRefusal::kFenced);
    EXPECT_EQ(Attach(fenced, Epoch{9}).status().code(), StatusCode::kFenced);
  }
  EXPECT_TRUE(Fence({WorkerId{1}}, Epoch{9}).ok()) << "again";
  EXPECT_EQ(waitpid(spared.pid(), nullptr, WNOHANG), 0);

  EXPECT_EQ(TcpAnswer(4, Epoch{8}), TcpRefusal::kStaleEpoch);
  EXPECT_TRUE(Fence({}, Epoch{7}).ok());
  EXPECT_EQ(TcpAnswer(4, Epoch{8}), TcpRefusal::kStaleEpoch) << "an epoch never goes back";
  EXPECT_EQ(Attach(4, Epoch{8}).status().code(), StatusCode::kFenced);
  EXPECT_EQ(TcpAnswer(4, Epoch{9}), TcpRefusal::kNone);
}

TEST_F(MemnodeNodeProcessTest, AFenceIsDoneOnlyIfItIsOnBothFabrics) {
  options_.fence_timeout_ms = 20;
  Start();
  // A worker in the node's own process cannot be ended.
  auto segment = Attach(1);
  ASSERT_TRUE(segment.ok()) << reason_;
  RawWorker worker(port(), Hello(1));
  ASSERT_TRUE(worker.welcome());
  EXPECT_FALSE(Fence({WorkerId{1}}, Epoch{6}).ok());
  EXPECT_THAT(reason_, HasSubstr("worker 1 is not fenced"));
  EXPECT_THAT(reason_, Not(HasSubstr("\n")));
  EXPECT_EQ(worker.Answers().back().error, TcpError::kFenced);
  // The master asks again; in between the worker has given the memory up.
  segment->reset();
  while (!Fence({WorkerId{1}}, Epoch{6}).ok()) std::this_thread::yield();
}

TEST_F(MemnodeNodeProcessTest, AnInterruptEndsAWaitForTheMapAndLaterTheService) {
  const auto place = std::exchange(script_.join, nullptr);
  process_ = Make();
  std::thread caller([this] {
    script_.Await("join");
    process_->Interrupt();
  });
  EXPECT_FALSE(process_->Start(&reason_).ok());
  caller.join();
  EXPECT_TRUE(process_->is_interrupted());
  EXPECT_THAT(script_.events, ElementsAre("join", "leave"));
  EXPECT_FALSE(std::filesystem::exists(options_.socket));

  // Before it began at all.
  script_.events.clear();
  process_ = Make();
  process_->Interrupt();
  EXPECT_FALSE(process_->Start(&reason_).ok());
  EXPECT_THAT(script_.events, ElementsAre("leave"));

  script_.events.clear();
  script_.join = place;
  Start();
  std::thread second([this] { process_->Interrupt(); });
  process_->Wait();
  second.join();
  process_->Stop();
  EXPECT_THAT(script_.events, ElementsAre("join", "serve", "leave"));
}

TEST_F(MemnodeNodeProcessTest, TheMasterHearsOfTheEndBeforeAnAgentDoes) {
  options_.backing = directory_ + "/memory";
  Start();
  bool asked = false;
  script_.stop = [&] {
    asked = true;
    EXPECT_EQ(TcpAnswer(1), TcpRefusal::kNone);
    EXPECT_TRUE(Attach(2).ok());
  };
  process_->Stop();
  script_.stop = nullptr;
  EXPECT_TRUE(asked);
  const auto backing = Backing::Open(
      {.kind = BackingOptions::Kind::kFile, .bytes = kOffered, .path = options_.backing}, &reason_);
  ASSERT_TRUE(backing.ok()) << reason_;
  EXPECT_TRUE(backing.value()->was_clean());
}

TEST_F(MemnodeNodeProcessTest, ASocketsPlaceIsGivenOrInTheRuntimeDirectory) {
  const std::string runtime = directory_ + "/runtime";
  ASSERT_EQ(setenv("RUNTIME_DIRECTORY", (runtime + ":/elsewhere").c_str(), 1), 0);
  const auto derived = SocketPlace::Choose("", 0xabc, &reason_);
  unsetenv("RUNTIME_DIRECTORY");
  ASSERT_TRUE(derived.ok()) << reason_;
  EXPECT_EQ(derived.value().path(), runtime + "/memory-0000000000000abc.sock");
  derived.value().Leave();
  EXPECT_TRUE(std::filesystem::exists(runtime)) << "whoever made the service removes it";

  const std::string made = directory_ + "/made";
  const auto given = SocketPlace::Choose(made + "/node.sock", 1, &reason_);
  ASSERT_TRUE(given.ok()) << reason_;
  EXPECT_EQ(given.value().path(), made + "/node.sock");
  const auto beside = SocketPlace::Choose(made + "/beside.sock", 1, &reason_);
  ASSERT_TRUE(beside.ok());
  beside.value().Leave();
  EXPECT_TRUE(std::filesystem::exists(made)) << "was there before";
  std::filesystem::create_directory(made + "/used");
  given.value().Leave();
  EXPECT_TRUE(std::filesystem::exists(made)) << "is used";
  std::filesystem::remove(made + "/used");
  given.value().Leave();
  EXPECT_FALSE(std::filesystem::exists(made));

  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const auto relative = SocketPlace::Choose("node.sock", 1, &reason_);
  std::filesystem::current_path(before);
  ASSERT_TRUE(relative.ok()) << reason_;
  EXPECT_EQ(relative.value().path(), directory_ + "/node.sock");
}

}  // namespace
}  // namespace onetrip
