// Both ends of the control plane for real: the master's server, memory nodes' sessions, and agents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/grpc_master_client.h"
#include "client_core/control/node_master_client.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sync.h"
#include "master/master_server.h"
#include "master/sqlite_store.h"
#include "tests/unit/control_relay.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(20);
constexpr uint64_t kNodeBytes = 32ULL << 20;
constexpr char kSecret[] = "sixteen bytes or more";

// A memory node's process without its memory: notes what it is told to do.
class Node final : private NodeDuties {
 public:
  Node(ControlOptions options, uint64_t incarnation)
      : incarnation_(incarnation), session_(MakeNodeMasterClient(std::move(options))) {}
  ~Node() override { session_->Stop(false); }

  Status Join(std::string* reason) {
    NodeOffer offer;
    offer.bytes = kNodeBytes;
    offer.incarnation = incarnation_;
    Result<NodePlace> place = session_->Join(offer, reason);
    if (place.ok()) place_ = std::move(place.value());
    return place.status();
  }
  Status Serve(std::string* reason) {
    NodeAddress address;
    address.tcp_host = "127.0.0.1";
    address.tcp_port = static_cast<uint16_t>(7000 + incarnation_);
    return session_->Serve(address, this, reason);
  }
  const NodePlace& place() const { return place_; }
  NodeMasterClient& session() { return *session_; }

  bool AwaitFenced(WorkerId worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      return std::find(fenced_.begin(), fenced_.end(), worker) != fenced_.end();
    });
  }
  bool AwaitEpoch(uint64_t epoch) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return epoch_ >= epoch; });
  }

 private:
  Status Fence(const std::vector<WorkerId>& workers, Epoch /*epoch*/,
               std::string* reason) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    // The first time it cannot: it must be asked again.
    if (std::exchange(hesitates_, false)) {
      *reason = "not yet";
      return Status(StatusCode::kUnavailable, "not yet");
    }
    fenced_.insert(fenced_.end(), workers.begin(), workers.end());
    changed_.notify_all();
    return Status::Ok();
  }
  void OnView(const std::shared_ptr<const View>& view) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    epoch_ = view->epoch.value;
    changed_.notify_all();
  }
  void OnMarkStored(uint64_t /*mark*/) override {}
  NodeAge Age() override { return {}; }
  void OnState(const std::string& /*file*/) override {}
  NodeReport Report() override { return {.blocks = 100, .granted_blocks = 7, .operations = 3}; }

  const uint64_t incarnation_;
  NodePlace place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WorkerId> fenced_;
  uint64_t epoch_ = 0;
  bool hesitates_ = true;
  std::unique_ptr<NodeMasterClient> session_;
};

// An agent's process with one worker on a thread of its own.
class AgentProcess {
 public:
  explicit AgentProcess(ControlOptions options) : executor_(clock_, 1), hold_(executor_) {
    std::string reason;
    auto client = GrpcMasterClient::Connect(
        std::move(options), [](const std::string& why) { ADD_FAILURE() << "expelled: " << why; },
        &reason);
    CHECK(client.ok());
    client_ = std::move(client.value());
    const Result<Membership> joined = BlockOn(executor_, client_->Join(hold_));
    CHECK(joined.ok());
    membership_ = joined.value();
    thread_ = std::thread([this] { executor_.Run(); });
  }
  ~AgentProcess() { StopThread(); }

  GrpcMasterClient& client() { return *client_; }
  const Membership& membership() const { return membership_; }

  Status Flush(uint32_t database) {
    std::promise<Status> done;
    Gate gate(executor_);
    executor_.Post([&] { executor_.Spawn(gate, RunFlush(database, &done)); });
    const Status status = done.get_future().get();
    StopThread();
    BlockOn(executor_, CloseGate(&gate));
    thread_ = std::thread([this] { executor_.Run(); });
    return status;
  }
  void Leave() {
    StopThread();
    EXPECT_TRUE(BlockOn(executor_, client_->Leave(hold_, membership_)).ok());
    client_->Stop();
  }

 private:
  Task<void> RunFlush(uint32_t database, std::promise<Status>* done) {
    done->set_value(co_await client_->FlushKeyspaces(hold_, database));
  }
  static Task<void> CloseGate(Gate* gate) { co_await gate->Close(); }
  void StopThread() {
    if (!thread_.joinable()) return;
    executor_.Stop();
    thread_.join();
  }

  SystemClock clock_;
  LoopExecutor executor_;
  Quiesce hold_;
  std::unique_ptr<GrpcMasterClient> client_;
  Membership membership_;
  std::thread thread_;
};

// A host's clock whose wall is as wrong as the test says.
class WrongClock final : public Clock {
 public:
  [[nodiscard]] uint64_t NowNs() const override { return clock_.NowNs(); }
  [[nodiscard]] uint64_t UnixUs() const override {
    return clock_.UnixUs() + static_cast<uint64_t>(wrong_s.load()) * 1'000'000;
  }
  std::atomic<int64_t> wrong_s{0};

 private:
  SystemClock clock_;
};

class BothEndsTest : public testing::Test {
 protected:
  BothEndsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onetrip.XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
  }
  ~BothEndsTest() override { std::filesystem::remove_all(directory_); }

  void StartMaster() {
    std::string reason;
    Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(directory_ / "master", &reason);
    ASSERT_TRUE(store.ok()) << reason;
    store_ = std::move(store.value());
    MasterServerOptions options;
    options.listen = address_;
    options.coordinator.lease_ms = lease_ms_;
    Result<std::unique_ptr<MasterServer>> server =
        MasterServer::Start(options, Secret(kSecret), *store_, wall_, &reason);
    ASSERT_TRUE(server.ok()) << reason;
    server_ = std::move(server.value());
    address_ = server_->address();
  }
  void StopMaster() {
    server_.reset();
    store_.reset();
  }
  ControlOptions Options() const {
    ControlOptions options;
    options.master = address_;
    options.secret = Secret(kSecret);
    options.backoff_max_ms = 50;
    options.connect_timeout_ms = 20'000;
    options.request_timeout_ms = 20'000;
    return options;
  }
  // Three nodes that serve.
  void StartNodes() {
    std::vector<std::future<Status>> joins;
    for (uint64_t i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<Node>(Options(), 100 + i));
      joins.push_back(std::async(std::launch::async, [node = nodes_.back().get()] {
        std::string reason;
        return node->Join(&reason);
      }));
    }
    for (std::future<Status>& join : joins) ASSERT_TRUE(join.get().ok());
    std::string reason;
    for (const auto& node : nodes_) ASSERT_TRUE(node->Serve(&reason).ok()) << reason;
  }
  ClusterStatusInfo AskStatus() {
    std::string reason;
    Result<ClusterStatusInfo> status = QueryStatus(Options(), &reason);
    EXPECT_TRUE(status.ok()) << reason;
    return status.ok() ? status.value() : ClusterStatusInfo{};
  }

  std::filesystem::path directory_;
  std::string address_ = "127.0.0.1:0";
  // Tests are slow under sanitizers; only a broken stream is a death here.
  uint64_t lease_ms_ = 20'000;
  WrongClock wall_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<MasterServer> server_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(BothEndsTest, AClusterFormsFlushesAndIsSeen) {
  StartMaster();
  EXPECT_EQ(AskStatus().state, "forming");
  StartNodes();
  AgentProcess first(Options());
  AgentProcess second(Options());
  EXPECT_NE(first.membership().id, second.membership().id);
  // Both are under the view that has the second when its Join returns.
  EXPECT_TRUE(first.client().view()->IsLive(second.membership().index));
  const KeyspaceId before = first.client().view()->keyspaces[3];
  EXPECT_TRUE(second.Flush(3).ok());
  EXPECT_LT(before, first.client().view()->keyspaces[3]);
  EXPECT_EQ(first.client().view()->keyspaces[3], second.client().view()->keyspaces[3]);
  for (const auto& node : nodes_) {
    EXPECT_TRUE(node->AwaitEpoch(first.client().view_version()));
    EXPECT_EQ(node->place().cluster, first.client().view()->cluster);
  }
  const ClusterStatusInfo status = AskStatus();
  EXPECT_EQ(status.state, "serving");
  EXPECT_EQ(status.regions, first.client().view()->regions.size());
  EXPECT_EQ(status.cluster, nodes_[0]->place().cluster);
  first.Leave();
  second.Leave();
}

TEST_F(BothEndsTest, TheMasterComesBackAndNobodyIsDisturbed) {
  StartMaster();
  StartNodes();
  AgentProcess agent(Options());
  const uint64_t before = agent.client().view_version();
  StopMaster();
  std::future<Status> flush = std::async(std::launch::async, [&] { return agent.Flush(0); });
  StartMaster();
  // It waited for the master, or was under way when that ended: never lost.
  const Status status = flush.get();
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnknownOutcome);
  EXPECT_TRUE(agent.Flush(0).ok());
  EXPECT_GT(agent.client().view_version(), before);
  for (const auto& node : nodes_) {
    EXPECT_TRUE(node->AwaitEpoch(agent.client().view_version()));
  }
  AgentProcess another(Options());
  EXPECT_NE(another.membership().id, agent.membership().id);
  another.Leave();
  agent.Leave();
}

TEST_F(BothEndsTest, AConnectionThatIsResetIsNobodysDeath) {
  StartMaster();
  Relay relay(server_->port());
  const std::string direct = std::exchange(address_, relay.address());
  StartNodes();
  AgentProcess agent(Options());
  const uint64_t member = agent.client().member();
  const uint64_t epoch = agent.client().view_version();
  address_ = direct;
  for (int cut = 0; cut < 5; ++cut) {
    relay.Cut();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const auto all_up = [this] {
      const ClusterStatusInfo status = AskStatus();
      return status.members.size() == 4 &&
             std::all_of(status.members.begin(), status.members.end(),
                         [](const MemberStatusInfo& info) { return info.state == "up"; });
    };
    while (!all_up() && std::chrono::steady_clock::now() < end) {
    }
    EXPECT_TRUE(all_up());
  }
  EXPECT_TRUE(agent.client().attending());
  EXPECT_EQ(agent.client().member(), member);
  EXPECT_EQ(agent.client().view_version(), epoch) << "nothing happened";
  EXPECT_TRUE(agent.Flush(0).ok());
  agent.Leave();
}

TEST_F(BothEndsTest, AMasterWhoseWallClockIsAheadMovesNoDeadline) {
  StartMaster();
  StartNodes();
  AgentProcess agent(Options());
  const auto offset_us = [](AgentProcess& of) { return of.client().clock_offset_us().load(); };
  const int64_t before_us = offset_us(agent);
  // A tenth of the wall clock's error: a loaded host takes its time, too.
  constexpr double kFarUs = 60e6;
  for (const int64_t wrong_s : {600, -600}) {
    StopMaster();
    wall_.wrong_s = wrong_s;
    StartMaster();
    EXPECT_TRUE(agent.Flush(0).ok());
    // One that has just come goes by the same time.
    AgentProcess fresh(Options());
    EXPECT_NEAR(static_cast<double>(offset_us(fresh)), static_cast<double>(before_us), kFarUs);
    EXPECT_NEAR(static_cast<double>(offset_us(agent)), static_cast<double>(before_us), kFarUs);
    fresh.Leave();
  }
  agent.Leave();
}

TEST_F(BothEndsTest, AMemoryNodeThatIsRefusedItsPlaceKeepsItAndAsksAgain) {
  StartMaster();
  StartNodes();
  AgentProcess agent(Options());
  agent.Leave();
  StopMaster();
  // A master that has never heard of these memories, as on an empty directory: no process ends.
  const std::filesystem::path own = std::exchange(directory_, directory_ / "other");
  StartMaster();
  EXPECT_EQ(AskStatus().members.size(), 0U);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(AskStatus().members.size(), 0U);
  StopMaster();
  directory_ = own;
  StartMaster();
  AgentProcess again(Options());
  EXPECT_EQ(again.client().view()->node_count, 3);
  again.Leave();
}

TEST_F(BothEndsTest, AnAgentThatDiesIsFencedOnEveryNode) {
  lease_ms_ = 4000;
  StartMaster();
  StartNodes();
  AgentProcess stays(Options());
  WorkerId dead;
  WorkerIndex seat;
  {
    AgentProcess dies(Options());
    dead = dies.membership().id;
    seat = dies.membership().index;
  }
  for (const auto& node : nodes_) EXPECT_TRUE(node->AwaitFenced(dead));
  // The seat is free once every node has said so.
  AgentProcess heir(Options());
  EXPECT_NE(heir.membership().id, dead);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (stays.client().view()->IsLive(seat) && heir.membership().index != seat &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(!stays.client().view()->IsLive(seat) || heir.membership().index == seat);
  heir.Leave();
  stays.Leave();
}

TEST_F(BothEndsTest, WhoKnowsAnotherSecretGetsNoPlace) {
  StartMaster();
  ControlOptions options = Options();
  options.secret = Secret("another secret of enough bytes");
  Node node(std::move(options), 1);
  std::string reason;
  EXPECT_EQ(node.Join(&reason).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason, HasSubstr("secret"));
  EXPECT_THAT(reason, HasSubstr(address_));
}

TEST_F(BothEndsTest, ANodeThatWaitsForAMapCanBeStopped) {
  StartMaster();
  Node node(Options(), 1);
  std::string reason;
  std::future<Status> join = std::async(std::launch::async, [&] { return node.Join(&reason); });
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (AskStatus().members.empty() && std::chrono::steady_clock::now() < end) {
  }
  node.session().Stop(/*leave=*/true);
  EXPECT_EQ(join.get().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace onetrip
