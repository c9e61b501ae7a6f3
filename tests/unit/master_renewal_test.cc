// Renewals over real gRPC: quiet ones count and are not answered, and a member that renews in time
// is not expelled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "client_core/control/control.pb.h"
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
    node_ = std::make_unique<RawClient>(server_->address());
    node_->Join(secret_, control::ROLE_MEMORY_NODE);
    control::FromMember message;
    control::Request& request = *message.mutable_request();
    request.set_id(1);
    request.mutable_join_node()->set_bytes(4 * kRegionBytes);
    request.mutable_join_node()->set_incarnation(100);
    ASSERT_EQ(Ask(*node_, message).code(), 0U);
    request.set_id(2);
    request.mutable_serve_node()->mutable_address()->set_tcp_host("127.0.0.1");
    request.mutable_serve_node()->mutable_address()->set_tcp_port(7000);
    ASSERT_EQ(Ask(*node_, message).code(), 0U);
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
    options_.coordinator.time_lead_ms = 600'000;  // what is stored of time is stored once
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

}  // namespace
}  // namespace onetrip
