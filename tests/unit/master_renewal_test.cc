// Renewals over real gRPC: quiet ones count and are not answered, and a member that renews in time
// is not expelled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client_core/control/control.pb.h"
#include "client_core/control/control_mac.h"
#include "client_core/layout/region_layout.h"
#include "master/master_server.h"
#include "tests/unit/master_bench.h"
#include "tests/unit/master_raw_client.h"

namespace onetrip {
namespace {

// A master of a cluster of one memory node, which serves.
class MasterRenewalTest : public testing::Test {
 protected:
  MasterRenewalTest() {
    options_.listen = "127.0.0.1:0";
    options_.coordinator.replicas = 1;
    options_.coordinator.nodes = 1;
    options_.coordinator.lease_ms = 60'000;
  }
  virtual Store& store() { return store_; }

  void SetUp() override {
    std::string reason;
    Result<std::unique_ptr<MasterServer>> server =
        MasterServer::Start(options_, secret_.Copy(), store(), clock_, &reason);
    ASSERT_TRUE(server.ok()) << reason;
    server_ = std::move(server.value());
    node_ = NewNode(0);
  }

  std::unique_ptr<RawClient> NewNode(uint32_t number) {
    auto node = std::make_unique<RawClient>(server_->address());
    node->Join(secret_, control::ROLE_MEMORY_NODE);
    control::FromMember message;
    control::Request& request = *message.mutable_request();
    request.set_id(1);
    request.mutable_join_node()->set_bytes(4 * kRegionBytes);
    request.mutable_join_node()->set_incarnation(100 + number);
    EXPECT_EQ(Ask(*node, message).code(), 0U);
    request.set_id(2);
    request.mutable_serve_node()->mutable_address()->set_tcp_host("127.0.0.1");
    request.mutable_serve_node()->mutable_address()->set_tcp_port(7000 + number);
    EXPECT_EQ(Ask(*node, message).code(), 0U);
    return node;
  }

  static control::Reply Ask(RawClient& client, const control::FromMember& message) {
    EXPECT_TRUE(client.Write(message));
    control::FromMaster reply;
    EXPECT_TRUE(client.ReadUntil([](const auto& m) { return m.has_reply(); }, &reply));
    return reply.reply();
  }
  static control::ClusterStatus StatusOver(RawClient& client) {
    control::FromMember message;
    message.mutable_request()->set_id(99);
    message.mutable_request()->mutable_get_status();
    return Ask(client, message).status();
  }
  static control::FromMember Renewal(uint64_t sequence, bool quiet) {
    control::FromMember message;
    control::Renew& renew = *message.mutable_renew();
    renew.set_sequence(sequence);
    renew.set_quiet(quiet);
    renew.mutable_report()->set_blocks(40 + sequence);
    renew.mutable_report()->set_granted_blocks(sequence);
    renew.mutable_report()->set_page_bytes(4096);
    return message;
  }

  MasterServerOptions options_;
  const SystemClock clock_{};
  const Secret secret_ = Secret("a secret of this test");
  MemoryStore store_;
  std::unique_ptr<MasterServer> server_;
  std::unique_ptr<RawClient> node_;
};

TEST_F(MasterRenewalTest, AQuietOneCountsAndIsNotAnswered) {
  // More than the master would queue for a stream, and a request behind them.
  for (uint64_t i = 1; i <= 3000; ++i) ASSERT_TRUE(node_->Write(Renewal(i, /*quiet=*/true)));
  const control::ClusterStatus status = StatusOver(*node_);
  ASSERT_EQ(status.members_size(), 1);
  EXPECT_EQ(status.members(0).report().blocks(), 3040U);
  EXPECT_EQ(status.members(0).report().page_bytes(), 4096U);
  ASSERT_TRUE(node_->Write(Renewal(3001, /*quiet=*/false)));
  control::FromMaster answer;
  // The first answer to a renewal at all.
  ASSERT_TRUE(node_->ReadUntil([](const auto& m) { return m.has_renewed(); }, &answer));
  EXPECT_EQ(answer.renewed().sequence(), 3001U);
  EXPECT_GT(answer.renewed().time_us(), 0U);
}

TEST_F(MasterRenewalTest, AToolsIsNothing) {
  RawClient tool(server_->address());
  tool.Join(secret_, control::ROLE_TOOL);
  ASSERT_TRUE(tool.Write(Renewal(1, /*quiet=*/true)));
  EXPECT_EQ(StatusOver(tool).members(0).report().blocks(), 0U);
}

// Every write takes `write`.
class SlowStore final : public Store {
 public:
  Result<DurableState> Load(std::string* reason) override { return store_.Load(reason); }
  Status Write(const DurableChange& change, std::string* reason) override {
    std::this_thread::sleep_for(write.load());
    return store_.Write(change, reason);
  }
  Result<std::string> Copy(std::string* reason) override { return store_.Copy(reason); }
  std::atomic<std::chrono::milliseconds> write{std::chrono::milliseconds(0)};

 private:
  MemoryStore store_;
};

// A master whose disk is slow, and never so slow that the master takes itself to have stood still.
class SlowMasterTest : public MasterRenewalTest {
 protected:
  static constexpr uint64_t kLeaseMs = 600;
  static constexpr std::chrono::milliseconds kWrite{150};

  void SetUp() override {
    options_.coordinator.lease_ms = kLeaseMs;
    options_.coordinator.time_lead_ms = 600'000;  // the time is stored once
    MasterRenewalTest::SetUp();
  }
  void TearDown() override {
    node_.reset();
    server_.reset();
  }
  Store& store() override { return slow_store_; }

  SlowStore slow_store_;
};

// When memory nodes come or go, agents say much, and the master writes much. It takes one message
// of each from its stream and writes before it takes the next: renewals wait behind.
TEST_F(SlowMasterTest, AMemberThatSaysMuchIsNotTakenForSilent) {
  RawClient agent(server_->address());
  agent.Join(secret_, control::ROLE_AGENT);
  slow_store_.write = kWrite;
  // Each of these is written, which takes three leases together.
  for (uint64_t mark = 1; mark <= 3 * kLeaseMs / kWrite.count(); ++mark) {
    control::FromMember message;
    message.mutable_request()->set_id(100 + mark);
    message.mutable_request()->mutable_note_mark()->set_mark(mark);
    ASSERT_TRUE(node_->Write(message));
  }
  control::FromMember message;
  message.mutable_view_held()->set_epoch(1);
  for (int i = 0; i < 24; ++i) ASSERT_TRUE(agent.Write(message));
  ASSERT_TRUE(agent.Write(Renewal(1, /*quiet=*/true)));
  EXPECT_EQ(StatusOver(agent).members_size(), 2) << agent.EndReason();
}

TEST_F(SlowMasterTest, AMemberThatSaysNothingIs) {
  RawClient agent(server_->address());
  agent.Join(secret_, control::ROLE_AGENT);
  control::FromMaster expelled;
  EXPECT_TRUE(agent.ReadUntil([](const auto& m) { return m.has_expelled(); }, &expelled));
}

// A master that nodes keep busy: it takes an event of each, writes after each, and takes the next.
class BusyMasterTest : public SlowMasterTest {
 protected:
  // A turn takes two of them, less than half a lease: the master must not take itself to have stood
  // still.
  static constexpr std::chrono::milliseconds kLongWrite{130};

  void SetUp() override {
    SlowMasterTest::SetUp();
    other_node_ = NewNode(1);
  }
  void TearDown() override {
    other_node_.reset();
    SlowMasterTest::TearDown();
  }
  // For this number of turns.
  void KeepBusy(uint64_t turns) {
    slow_store_.write = kLongWrite;
    for (uint64_t mark = 1; mark <= turns; ++mark) {
      control::FromMember message;
      message.mutable_request()->set_id(100 + mark);
      message.mutable_request()->mutable_note_mark()->set_mark(mark);
      ASSERT_TRUE(node_->Write(message));
      ASSERT_TRUE(other_node_->Write(message));
    }
  }
  // An agent of another host, whose end the master cannot see.
  static control::Hello HelloOf(uint64_t member) {
    control::Hello hello;
    hello.set_protocol(kControlProtocol);
    hello.set_role(control::ROLE_AGENT);
    hello.set_member(member);
    if (member != 0) hello.set_time_us(SystemClock().UnixUs());
    hello.set_pid(4711);
    hello.set_host("farhost");
    hello.set_nonce(ControlNonce());
    return hello;
  }
  uint64_t JoinAgent(RawClient& client) {
    control::FromMaster message;
    EXPECT_TRUE(client.Handshake(secret_, HelloOf(0), &message));
    EXPECT_TRUE(message.verdict().welcome());
    return message.verdict().member();
  }

  std::unique_ptr<RawClient> other_node_;
};

// Its HELLO and its proof each wait behind a write, and so do the ticks: together longer than what
// an agent that is away has left of its lease.
TEST_F(BusyMasterTest, AnAgentThatComesBackAtOnceIsNotTakenForDead) {
  auto agent = std::make_unique<RawClient>(server_->address());
  const uint64_t member = JoinAgent(*agent);
  ASSERT_NE(member, 0U);
  KeepBusy(8);
  std::this_thread::sleep_for(kLongWrite / 2);
  agent->Cut();
  RawClient again(server_->address());
  control::FromMaster message;
  ASSERT_TRUE(again.Handshake(secret_, HelloOf(member), &message)) << again.EndReason();
  EXPECT_TRUE(message.verdict().welcome()) << message.verdict().reason();
  EXPECT_EQ(message.verdict().member(), member);
}

// A process that says whose it is and proves nothing keeps no dead agent among the members.
TEST_F(BusyMasterTest, AStrangerThatSaysItIsTheAgentDoesNotKeepItForLong) {
  auto agent = std::make_unique<RawClient>(server_->address());
  const uint64_t member = JoinAgent(*agent);
  agent->Cut();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(6 * kLeaseMs);
  std::vector<std::unique_ptr<RawClient>> strangers;
  while (std::chrono::steady_clock::now() < until) {
    strangers.push_back(std::make_unique<RawClient>(server_->address()));
    control::FromMember hello;
    *hello.mutable_hello() = HelloOf(member);
    (void)strangers.back()->Write(hello);
    for (RawClient* node : {node_.get(), other_node_.get()}) {
      ASSERT_TRUE(node->Write(Renewal(1, /*quiet=*/true)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kLeaseMs / 6));
  }
  RawClient again(server_->address());
  control::FromMaster message;
  ASSERT_TRUE(again.Handshake(secret_, HelloOf(member), &message)) << again.EndReason();
  EXPECT_FALSE(message.verdict().welcome());
  EXPECT_TRUE(message.verdict().expelled());
}

}  // namespace
}  // namespace onetrip
