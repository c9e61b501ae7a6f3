// The master over real gRPC on loopback: which members get in, what a broken stream means, and that
// the state on the disk comes before every word.
#include "master/master_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "client_core/base/host_id.h"
#include "client_core/control/control.grpc.pb.h"
#include "client_core/control/control_mac.h"
#include "client_core/control/view_codec.h"
#include "tests/unit/master_bench.h"
#include "tests/unit/master_raw_client.h"

namespace onetrip {

struct RawClient::Impl {
  explicit Impl(const std::string& address)
      : stub(control::Master::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    stream = stub->Attend(&context);
  }
  std::unique_ptr<control::Master::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<control::FromMember, control::FromMaster>> stream;
  bool finished = false;
};

RawClient::RawClient(const std::string& address) : impl_(std::make_unique<Impl>(address)) {}

RawClient::~RawClient() {
  Cut();
  EndReason();
}

bool RawClient::Write(const control::FromMember& message) { return impl_->stream->Write(message); }

bool RawClient::Read(control::FromMaster* message) { return impl_->stream->Read(message); }

bool RawClient::ReadUntil(const std::function<bool(const control::FromMaster&)>& wanted,
                          control::FromMaster* message) {
  while (Read(message)) {
    if (message->has_view_committed()) {
      control::FromMember taken;
      taken.mutable_view_in_force()->set_epoch(message->view_committed().view().epoch());
      Write(taken);
    }
    if (wanted(*message)) return true;
  }
  return false;
}

void RawClient::Cut() {
  if (!impl_->finished) impl_->context.TryCancel();
}

std::string RawClient::EndReason() {
  if (impl_->finished) return "";
  impl_->finished = true;
  control::FromMaster rest;
  while (Read(&rest)) {
  }
  return impl_->stream->Finish().error_message();
}

bool RawClient::Handshake(const Secret& secret, control::Hello hello,
                          control::FromMaster* message) {
  if (hello.nonce().empty()) hello.set_nonce(ControlNonce());
  control::FromMember first;
  *first.mutable_hello() = hello;
  if (!Write(first) || !Read(message)) return false;
  if (!message->has_challenge()) return true;
  control::FromMember second;
  second.mutable_proof()->set_mac(MemberMac(secret, message->challenge().nonce(), hello));
  const std::string master_nonce = message->challenge().nonce();
  if (!Write(second) || !Read(message)) return false;
  if (message->verdict().welcome() || !message->verdict().mac().empty()) {
    EXPECT_TRUE(ControlMacMatches(message->verdict().mac(),
                                  MasterMac(secret, master_nonce, hello, message->verdict())));
  }
  return true;
}

uint64_t RawClient::Join(const Secret& secret, int role, uint64_t member) {
  control::Hello hello;
  hello.set_protocol(kControlProtocol);
  hello.set_role(static_cast<control::Role>(role));
  hello.set_member(member);
  // A member that comes back knows the time.
  if (member != 0) hello.set_time_us(SystemClock().UnixUs());
  // A process of this host, which has ended whenever the master looks.
  hello.set_pid(INT32_MAX);
  hello.set_host_id(ProcessSpace());
  hello.set_host("testhost");
  control::FromMaster message;
  EXPECT_TRUE(Handshake(secret, hello, &message)) << EndReason();
  EXPECT_TRUE(message.verdict().welcome()) << message.verdict().reason();
  return message.verdict().member();
}

namespace {

class MasterServerTest : public testing::Test {
 protected:
  MasterServerTest() {
    options_.listen = "127.0.0.1:0";
    // No client renews here unless a test is about leases.
    options_.coordinator.lease_ms = 60'000;
    options_.driver.handshake_timeout_ms = 60'000;
  }

  void Start() {
    std::string reason;
    Result<std::unique_ptr<MasterServer>> server =
        MasterServer::Start(options_, secret_.Copy(), store_, clock_, &reason);
    ASSERT_TRUE(server.ok()) << reason;
    server_ = std::move(server.value());
  }
  std::string address() const { return server_->address(); }

  control::Hello Hello(control::Role role = control::ROLE_AGENT) {
    control::Hello hello;
    hello.set_protocol(kControlProtocol);
    hello.set_role(role);
    hello.set_pid(4711);
    hello.set_host("testhost");
    return hello;
  }
  // The verdict on `hello`, which must be a refusal.
  control::Verdict Refused(const control::Hello& hello, const Secret& secret) {
    RawClient client(address());
    control::FromMaster message;
    EXPECT_TRUE(client.Handshake(secret, hello, &message)) << client.EndReason();
    EXPECT_TRUE(message.has_verdict());
    EXPECT_FALSE(message.verdict().welcome());
    EXPECT_NE(client.EndReason(), "");
    return message.verdict();
  }
  control::FromMember Request(uint64_t id) {
    control::FromMember message;
    message.mutable_request()->set_id(id);
    return message;
  }
  // Sends `message` and reads up to its reply, taking over views on the way.
  control::Reply Ask(RawClient& client, const control::FromMember& message) {
    EXPECT_TRUE(client.Write(message));
    return ReplyTo(client, message.request().id());
  }
  control::Reply ReplyTo(RawClient& client, uint64_t id) {
    control::FromMaster reply;
    EXPECT_TRUE(client.ReadUntil(
        [id](const control::FromMaster& m) { return m.has_reply() && m.reply().id() == id; },
        &reply))
        << client.EndReason();
    return reply.reply();
  }
  // Three nodes that serve.
  void Form() {
    for (int i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<RawClient>(address()));
      nodes_[i]->Join(secret_, control::ROLE_MEMORY_NODE);
      control::FromMember join = Request(1);
      join.mutable_request()->mutable_join_node()->set_bytes(4 * kRegionBytes);
      join.mutable_request()->mutable_join_node()->set_incarnation(100U + static_cast<uint64_t>(i));
      ASSERT_TRUE(nodes_[i]->Write(join));
    }
    for (int i = 0; i < 3; ++i) {
      const control::Reply joined = ReplyTo(*nodes_[i], 1);
      ASSERT_TRUE(joined.has_node_joined()) << joined.reason();
      std::string reason;
      EXPECT_TRUE(DecodeView(joined.node_joined().view(), &reason).ok()) << reason;
      control::FromMember serve = Request(2);
      control::NodeAddress* at = serve.mutable_request()->mutable_serve_node()->mutable_address();
      at->set_tcp_host("127.0.0.1");
      at->set_tcp_port(7000U + static_cast<uint32_t>(i));
      EXPECT_EQ(Ask(*nodes_[i], serve).code(), 0U);
    }
  }
  control::FromMember JoinWorkerRequest(uint64_t id) {
    control::FromMember message = Request(id);
    message.mutable_request()->mutable_join_worker();
    return message;
  }
  // Every node is asked to fence `worker` alone, and has done it.
  void ConfirmFences(uint32_t worker) {
    for (const auto& node : nodes_) {
      control::FromMaster message;
      ASSERT_TRUE(node->ReadUntil([](const auto& m) { return m.has_fence(); }, &message));
      ASSERT_EQ(message.fence().workers_size(), 1);
      EXPECT_EQ(message.fence().workers(0), worker);
      control::FromMember fenced;
      fenced.mutable_fenced()->set_id(message.fence().id());
      fenced.mutable_fenced()->set_done(true);
      ASSERT_TRUE(node->Write(fenced));
    }
  }
  control::ClusterStatus GetStatusOver(RawClient& client) {
    control::FromMember message = Request(999);
    message.mutable_request()->mutable_get_status();
    return Ask(client, message).status();
  }
  control::ClusterStatus GetStatus() {
    RawClient tool(address());
    tool.Join(secret_, control::ROLE_TOOL);
    return GetStatusOver(tool);
  }

  MasterServerOptions options_;
  const SystemClock clock_;
  Secret secret_ = Secret("a secret of this test");
  MemoryStore store_;
  std::unique_ptr<MasterServer> server_;
  std::vector<std::unique_ptr<RawClient>> nodes_;
};

TEST_F(MasterServerTest, WhoKnowsTheSecretIsWelcomeAndNumbered) {
  Start();
  RawClient a(address());
  RawClient b(address());
  const uint64_t first = a.Join(secret_, control::ROLE_AGENT);
  const uint64_t second = b.Join(secret_, control::ROLE_AGENT);
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  RawClient tool(address());
  EXPECT_EQ(tool.Join(secret_, control::ROLE_TOOL), 0U);
  control::FromMember renew;
  renew.mutable_renew()->set_sequence(77);
  ASSERT_TRUE(a.Write(renew));
  control::FromMaster renewed;
  ASSERT_TRUE(a.Read(&renewed));
  EXPECT_EQ(renewed.renewed().sequence(), 77U);
  EXPECT_GT(renewed.renewed().time_us(), 1'600'000'000'000'000U);
}

TEST_F(MasterServerTest, WrongSecretsProtocolsClustersAndRolesAreRefusedWithAReason) {
  Start();
  EXPECT_NE(Refused(Hello(), Secret("some other secret")).reason().find("--secret-file"),
            std::string::npos);
  EXPECT_NE(Refused(Hello(), Secret()).reason().find("--secret-file"), std::string::npos);
  control::Hello hello = Hello();
  hello.set_protocol(kControlProtocol + 1);
  EXPECT_NE(Refused(hello, secret_).reason().find("version"), std::string::npos);
  hello = Hello();
  hello.set_cluster(server_->cluster() + 1);
  const control::Verdict foreign = Refused(hello, secret_);
  EXPECT_NE(foreign.reason().find("another cluster"), std::string::npos);
  EXPECT_FALSE(foreign.retry());
  // Proved: it is from a master that knows the secret, whatever else it is.
  EXPECT_FALSE(foreign.mac().empty());
  EXPECT_EQ(foreign.cluster(), server_->cluster());
  EXPECT_FALSE(foreign.expelled());
  EXPECT_TRUE(Refused(Hello(), Secret("some other secret")).mac().empty());
  hello = Hello();
  hello.set_epoch(1000);
  EXPECT_NE(Refused(hello, secret_).reason().find("epoch 1000"), std::string::npos);
  EXPECT_NE(Refused(Hello(control::ROLE_UNSPECIFIED), secret_).reason().find("role"),
            std::string::npos);
  hello = Hello();
  hello.set_nonce("short");
  EXPECT_NE(Refused(hello, secret_).reason().find("nonce"), std::string::npos);
  hello = Hello();
  hello.set_member(12345);
  EXPECT_NE(Refused(hello, secret_).reason().find("never given out"), std::string::npos);
}

TEST_F(MasterServerTest, ARecordedHandshakeIsWorthNothing) {
  Start();
  control::Hello hello = Hello();
  hello.set_nonce(ControlNonce());
  // A listener has heard this HELLO and the proof that was right for it.
  RawClient heard(address());
  control::FromMember first;
  *first.mutable_hello() = hello;
  control::FromMaster message;
  ASSERT_TRUE(heard.Write(first) && heard.Read(&message));
  control::FromMember proof;
  proof.mutable_proof()->set_mac(MemberMac(secret_, message.challenge().nonce(), hello));
  ASSERT_TRUE(heard.Write(proof) && heard.Read(&message));
  ASSERT_TRUE(message.verdict().welcome());

  RawClient thief(address());
  ASSERT_TRUE(thief.Write(first) && thief.Read(&message));
  ASSERT_TRUE(thief.Write(proof) && thief.Read(&message));
  EXPECT_TRUE(message.has_verdict());
  EXPECT_FALSE(message.verdict().welcome());
  // Nor does it prove another claim.
  control::FromMember other = first;
  other.mutable_hello()->set_role(control::ROLE_TOOL);
  RawClient changed(address());
  ASSERT_TRUE(changed.Write(other) && changed.Read(&message));
  proof.mutable_proof()->set_mac(MemberMac(secret_, message.challenge().nonce(), hello));
  ASSERT_TRUE(changed.Write(proof) && changed.Read(&message));
  EXPECT_FALSE(message.verdict().welcome());
}

TEST_F(MasterServerTest, BeforeTheProofNothingElseIsHeard) {
  Start();
  RawClient rude(address());
  ASSERT_TRUE(rude.Write(JoinWorkerRequest(1)));
  control::FromMaster message;
  ASSERT_TRUE(rude.Read(&message));
  EXPECT_FALSE(message.verdict().welcome());
  RawClient twice(address());
  control::FromMember hello;
  *hello.mutable_hello() = Hello();
  hello.mutable_hello()->set_nonce(ControlNonce());
  ASSERT_TRUE(twice.Write(hello) && twice.Read(&message));
  ASSERT_TRUE(twice.Write(hello) && twice.Read(&message));
  EXPECT_FALSE(message.verdict().welcome());
  EXPECT_TRUE(store_.disk().agents.empty());
}

TEST_F(MasterServerTest, AnOversizeHelloEndsTheStream) {
  Start();
  RawClient client(address());
  control::FromMember hello;
  *hello.mutable_hello() = Hello();
  hello.mutable_hello()->set_version(std::string(5000, 'x'));
  client.Write(hello);
  control::FromMaster message;
  EXPECT_FALSE(client.Read(&message));
  EXPECT_NE(client.EndReason(), "");
  RawClient next(address());
  next.Join(secret_, control::ROLE_AGENT);
}

TEST_F(MasterServerTest, ASilentPeerIsDropped) {
  options_.driver.handshake_timeout_ms = 50;
  Start();
  RawClient silent(address());
  control::FromMaster message;
  ASSERT_TRUE(silent.Read(&message));
  EXPECT_FALSE(message.verdict().welcome());
  EXPECT_TRUE(message.verdict().retry());
  EXPECT_NE(silent.EndReason(), "");
}

TEST_F(MasterServerTest, StrangersCannotCrowdOutMembers) {
  options_.driver.unproved_max = 4;
  Start();
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 12; ++i) {
    strangers.push_back(std::make_unique<RawClient>(address()));
    control::FromMember hello;
    *hello.mutable_hello() = Hello();
    hello.mutable_hello()->set_nonce(ControlNonce());
    // Challenged: the master knows of it.
    control::FromMaster message;
    ASSERT_TRUE(strangers.back()->Write(hello));
    ASSERT_TRUE(strangers.back()->Read(&message));
  }
  EXPECT_NE(strangers[0]->EndReason(), "");
  RawClient member(address());
  member.Join(secret_, control::ROLE_AGENT);
}

TEST_F(MasterServerTest, WithoutASecretOnlyLoopbackIsServed) {
  options_.listen = "0.0.0.0:0";
  std::string reason;
  EXPECT_EQ(MasterServer::Start(options_, Secret(), store_, clock_, &reason).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_NE(reason.find("--secret-file"), std::string::npos);
  Result<std::unique_ptr<MasterServer>> with =
      MasterServer::Start(options_, secret_.Copy(), store_, clock_, &reason);
  EXPECT_TRUE(with.ok()) << reason;
  options_.listen = "127.0.0.1:0";
  secret_ = Secret();
  Start();
  RawClient client(address());
  client.Join(secret_, control::ROLE_AGENT);
}

TEST_F(MasterServerTest, ARegionWithoutMajorityIsNotServed) {
  Start();
  Form();
  nodes_[0]->Cut();
  while (GetStatus().state() == "serving") std::this_thread::yield();
  nodes_[1]->Cut();
  while (GetStatus().state() == "degraded") std::this_thread::yield();
  EXPECT_EQ(GetStatus().state(), "not serving");
}

TEST_F(MasterServerTest, AnAddressInUseIsNamed) {
  Start();
  MasterServerOptions options = options_;
  options.listen = address();
  MemoryStore store;
  std::string reason;
  EXPECT_EQ(MasterServer::Start(options, secret_.Copy(), store, clock_, &reason).status().code(),
            StatusCode::kUnavailable);
  EXPECT_NE(reason.find(address()), std::string::npos);
  EXPECT_NE(reason.find("in use"), std::string::npos) << reason;
}

TEST_F(MasterServerTest, AClusterFormsAndTellsItsStatus) {
  Start();
  EXPECT_EQ(GetStatus().state(), "forming");
  EXPECT_EQ(GetStatus().waiting_for(), "0 of 3 memory nodes have joined");
  Form();
  RawClient agent(address());
  agent.Join(secret_, control::ROLE_AGENT);
  const control::Reply joined = Ask(agent, JoinWorkerRequest(1));
  ASSERT_TRUE(joined.has_worker_joined()) << joined.reason();
  const control::ClusterStatus status = GetStatus();
  EXPECT_EQ(status.cluster(), server_->cluster());
  EXPECT_EQ(status.state(), "serving");
  EXPECT_EQ(status.regions(), 4U);
  EXPECT_EQ(status.regions_fully_redundant(), 4U);
  EXPECT_EQ(status.pid(), static_cast<uint64_t>(getpid()));
  ASSERT_EQ(status.members_size(), 4);
  EXPECT_EQ(status.members(0).bytes(), 4 * kRegionBytes);
  EXPECT_EQ(status.members(0).regions(), 4U);
  EXPECT_EQ(status.members(3).role(), control::ROLE_AGENT);
  EXPECT_EQ(status.members(3).host(), "testhost");
  EXPECT_EQ(status.members(3).report().workers(), 1U);
}

TEST_F(MasterServerTest, AFlushHoldsEverybody) {
  Start();
  Form();
  RawClient a(address());
  RawClient b(address());
  a.Join(secret_, control::ROLE_AGENT);
  b.Join(secret_, control::ROLE_AGENT);
  control::FromMaster message;
  const auto view = [](const control::FromMaster& m) { return m.has_view_committed(); };
  const auto hold = [](const control::FromMaster& m) { return m.has_hold_for_view(); };
  ASSERT_TRUE(a.ReadUntil(view, &message));
  ASSERT_TRUE(b.ReadUntil(view, &message));
  const uint32_t before = message.view_committed().view().keyspaces(5);
  control::FromMember flush = Request(1);
  flush.mutable_request()->mutable_flush()->set_database(5);
  ASSERT_TRUE(a.Write(flush));
  ASSERT_TRUE(a.ReadUntil(hold, &message));
  control::FromMember held;
  held.mutable_view_held()->set_epoch(message.hold_for_view().epoch());
  ASSERT_TRUE(a.Write(held));
  ASSERT_TRUE(b.ReadUntil(hold, &message));
  EXPECT_EQ(store_.disk().cluster.keyspaces[5].value, before);
  ASSERT_TRUE(b.Write(held));
  ASSERT_TRUE(b.ReadUntil(view, &message));
  EXPECT_NE(message.view_committed().view().keyspaces(5), before);
  EXPECT_EQ(ReplyTo(a, 1).code(), 0U);
}

TEST_F(MasterServerTest, AStreamThatEndsWithItsProcessExpelsTheAgentAtOnce) {
  Start();
  Form();
  auto victim = std::make_unique<RawClient>(address());
  const uint64_t member = victim->Join(secret_, control::ROLE_AGENT);
  const uint32_t worker = Ask(*victim, JoinWorkerRequest(1)).worker_joined().worker();
  ASSERT_NE(worker, 0U);
  // A minute of the lease is left.
  victim->Cut();
  ConfirmFences(worker);
  control::FromMaster message;
  ASSERT_TRUE(nodes_[0]->ReadUntil(
      [](const auto& m) {
        return m.has_view_committed() && m.view_committed().view().live_seats(0) == 0;
      },
      &message));
  control::Hello hello = Hello();
  hello.set_member(member);
  const control::Verdict verdict = Refused(hello, secret_);
  EXPECT_FALSE(verdict.retry());
  EXPECT_TRUE(verdict.expelled());
  EXPECT_FALSE(verdict.mac().empty());
}

TEST_F(MasterServerTest, AnAgentThatDoesNotRenewIsTold) {
  options_.coordinator.lease_ms = 100;
  Start();
  RawClient agent(address());
  agent.Join(secret_, control::ROLE_AGENT);
  control::FromMaster message;
  ASSERT_TRUE(agent.ReadUntil([](const auto& m) { return m.has_expelled(); }, &message));
  EXPECT_NE(message.expelled().reason().find("lease"), std::string::npos);
}

TEST_F(MasterServerTest, AMasterThatIsReplacedKnowsItsMembers) {
  Start();
  Form();
  uint64_t member = 0;
  uint64_t cluster = server_->cluster();
  uint32_t worker = 0;
  {
    RawClient agent(address());
    member = agent.Join(secret_, control::ROLE_AGENT);
    worker = Ask(agent, JoinWorkerRequest(1)).worker_joined().worker();
    // Ended under its members, as by a signal.
    server_->Stop();
    EXPECT_NE(agent.EndReason(), "");
  }
  nodes_.clear();
  Start();
  EXPECT_EQ(server_->cluster(), cluster);
  RawClient agent(address());
  EXPECT_EQ(agent.Join(secret_, control::ROLE_AGENT, member), member);
  control::FromMaster message;
  ASSERT_TRUE(agent.ReadUntil([](const auto& m) { return m.has_view_committed(); }, &message));
  EXPECT_EQ(message.view_committed().view().live_seats(0), 1U);
  Form();
  EXPECT_GT(Ask(agent, JoinWorkerRequest(2)).worker_joined().worker(), worker);
}

TEST_F(MasterServerTest, AFullDiskRefusesChangesAndLosesNothing) {
  Start();
  Form();
  RawClient agent(address());
  agent.Join(secret_, control::ROLE_AGENT);
  ASSERT_TRUE(Ask(agent, JoinWorkerRequest(1)).has_worker_joined());
  RawClient crashed(address());
  crashed.Join(secret_, control::ROLE_AGENT);
  // Both take over every view on the way.
  control::FromMaster message;
  ASSERT_TRUE(crashed.ReadUntil([](const auto& m) { return m.has_view_committed(); }, &message));
  ASSERT_TRUE(crashed.Write(JoinWorkerRequest(1)));
  ASSERT_TRUE(agent.ReadUntil(
      [](const auto& m) {
        return m.has_view_committed() && m.view_committed().view().live_seats(0) == 3;
      },
      &message));
  const uint32_t worker = ReplyTo(crashed, 1).worker_joined().worker();
  ASSERT_NE(worker, 0U);

  store_.failing = true;
  const control::Reply refused = Ask(agent, JoinWorkerRequest(2));
  EXPECT_EQ(refused.code(), static_cast<uint32_t>(StatusCode::kUnavailable));
  EXPECT_NE(refused.reason().find("cannot write"), std::string::npos);
  const control::Verdict verdict = Refused(Hello(), secret_);
  EXPECT_TRUE(verdict.retry());
  EXPECT_EQ(GetStatusOver(agent).members_size(), 5);
  // Tools are welcome all the same.
  EXPECT_NE(GetStatus().waiting_for().find("cannot be written"), std::string::npos);
  // An end of a stream cannot be refused: it counts as soon as it can be written.
  crashed.Cut();
  crashed.EndReason();
  store_.failing = false;
  ConfirmFences(worker);
  EXPECT_TRUE(Ask(agent, JoinWorkerRequest(3)).has_worker_joined());
}

TEST_F(MasterServerTest, AMemberThatDoesNotReadIsDropped) {
  options_.queue_messages_max = 8;
  Start();
  RawClient deaf(address());
  deaf.Join(secret_, control::ROLE_AGENT);
  // Asks and never listens, until the master has had enough: the transport's windows fill up first.
  control::FromMember ask = Request(1);
  ask.mutable_request()->mutable_get_status();
  int asked = 0;
  while (asked < 5'000'000 && deaf.Write(ask)) ++asked;
  EXPECT_LT(asked, 5'000'000) << "nobody minded";
  RawClient other(address());
  other.Join(secret_, control::ROLE_AGENT);
}

TEST_F(MasterServerTest, SixtyFourAgentsJoinAtOnce) {
  Start();
  Form();
  constexpr int kAgents = 64;
  std::vector<uint32_t> workers(kAgents);
  std::vector<std::unique_ptr<RawClient>> agents(kAgents);
  std::vector<std::thread> threads;
  threads.reserve(kAgents);
  for (int i = 0; i < kAgents; ++i) {
    threads.emplace_back([&, i] {
      agents[i] = std::make_unique<RawClient>(address());
      agents[i]->Join(secret_, control::ROLE_AGENT);
      agents[i]->Write(JoinWorkerRequest(1));
      // Until it has its worker and knows every agent's.
      bool all = false;
      control::FromMaster message;
      const bool done = agents[i]->ReadUntil(
          [&](const control::FromMaster& m) {
            if (m.has_reply()) workers[i] = m.reply().worker_joined().worker();
            all = all || (m.has_view_committed() &&
                          m.view_committed().view().live_seats(0) == ~uint64_t{0});
            return all && workers[i] != 0;
          },
          &message);
      EXPECT_TRUE(done);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<uint32_t>(workers.begin(), workers.end()).size(), size_t{kAgents});
  EXPECT_EQ(std::count(workers.begin(), workers.end(), 0U), 0);
}

}  // namespace
}  // namespace onetrip
