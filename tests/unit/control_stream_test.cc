// ControlStream against a master that misbehaves in every way that can be told from outside.
#include "client_core/control/control_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/control.grpc.pb.h"
#include "client_core/control/control_mac.h"
#include "tests/unit/control_fake_master.h"

namespace onetrip {

using testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(20);

struct FakeMaster::Impl final : control::Master::Service {
  using Stream = grpc::ServerReaderWriter<control::FromMaster, control::FromMember>;

  grpc::Status Attend(grpc::ServerContext*, Stream* stream) override {
    FakeMasterOptions now;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      now = options;
    }
    const Secret secret(now.secret);
    control::FromMember member;
    if (!stream->Read(&member) || !member.has_hello()) return grpc::Status::OK;
    const control::Hello said = member.hello();
    const std::string nonce = ControlNonce();
    control::FromMaster message;
    message.mutable_challenge()->set_nonce(nonce);
    stream->Write(message);
    if (!stream->Read(&member) || !member.has_proof()) return grpc::Status::OK;
    const bool proved = ControlMacMatches(member.proof().mac(), MemberMac(secret, nonce, said));
    control::Verdict& verdict = *message.mutable_verdict();
    verdict.set_retry(now.retry);
    verdict.set_cluster(now.cluster);
    verdict.set_epoch(now.epoch);
    if (!proved || !now.refusal.empty()) {
      verdict.set_reason(proved ? now.refusal : "the secret is another one");
      verdict.set_expelled(now.expelled);
      if (now.proves_refusals) verdict.set_mac(MasterMac(secret, nonce, said, verdict));
      stream->Write(message);
      const std::lock_guard<std::mutex> lock(mutex);
      ++refused;
      changed.notify_all();
      return grpc::Status::OK;
    }
    verdict.set_welcome(true);
    verdict.set_member(kMember);
    verdict.set_life(1);
    verdict.set_lease_ms(now.lease_ms);
    verdict.set_time_us(SystemClock().UnixUs());
    verdict.set_mac(now.wrong_mac ? std::string(32, 'x') : MasterMac(secret, nonce, said, verdict));
    {
      const std::lock_guard<std::mutex> lock(mutex);
      hello = said;
      ++welcomed;
      current = stream;
      stream->Write(message);
    }
    changed.notify_all();
    while (stream->Read(&member)) Hear(member, stream, now.answer);
    const std::lock_guard<std::mutex> lock(mutex);
    if (current == stream) current = nullptr;
    return grpc::Status::OK;
  }

  void Hear(const control::FromMember& member, Stream* stream, bool answers) {
    const std::lock_guard<std::mutex> lock(mutex);
    heard.push_back(member);
    changed.notify_all();
    control::FromMaster answer;
    if (member.has_renew()) {
      answer.mutable_renewed()->set_sequence(member.renew().sequence());
      answer.mutable_renewed()->set_time_us(SystemClock().UnixUs());
    } else if (member.has_request() && answers) {
      control::Reply& reply = *answer.mutable_reply();
      reply.set_id(member.request().id());
      if (member.request().has_flush()) return;
      if (member.request().has_join_worker()) {
        reply.mutable_worker_joined()->set_worker(++workers);
        reply.mutable_worker_joined()->set_index(workers - 1);
      }
      if (member.request().has_get_status()) reply.mutable_status()->set_cluster(kCluster);
    } else {
      return;
    }
    stream->Write(answer);
  }

  std::mutex mutex;
  std::condition_variable changed;
  FakeMasterOptions options;
  std::vector<control::FromMember> heard;
  control::Hello hello;
  size_t welcomed = 0;
  size_t refused = 0;
  uint32_t workers = 0;
  Stream* current = nullptr;
  std::string address = "127.0.0.1:0";
  std::unique_ptr<grpc::Server> server;
};

FakeMaster::FakeMaster(FakeMasterOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  Start();
}

FakeMaster::~FakeMaster() { Stop(); }

void FakeMaster::Set(const FakeMasterOptions& options) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->options = options;
}

void FakeMaster::Start() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(impl_->address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
  CHECK(impl_->server != nullptr);
  impl_->address = "127.0.0.1:" + std::to_string(port);
}

void FakeMaster::Stop() {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
  impl_->server.reset();
}

std::string FakeMaster::address() const { return impl_->address; }

ControlOptions FakeMaster::ClientOptions() const {
  ControlOptions options;
  options.master = impl_->address;
  options.secret = Secret(impl_->options.secret);
  options.backoff_max_ms = 50;
  return options;
}

void FakeMaster::Send(const control::FromMaster& message) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  CHECK(impl_->current != nullptr);
  impl_->current->Write(message);
}

bool FakeMaster::Await(const Wanted& wanted) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kPatience, [&] {
    return std::any_of(impl_->heard.begin(), impl_->heard.end(), wanted);
  });
}

size_t FakeMaster::Count(const Wanted& wanted) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return static_cast<size_t>(std::count_if(impl_->heard.begin(), impl_->heard.end(), wanted));
}

bool FakeMaster::AwaitStreams(size_t count) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kPatience, [&] { return impl_->welcomed >= count; });
}

bool FakeMaster::AwaitAttempts(size_t count) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kPatience,
                                 [&] { return impl_->welcomed + impl_->refused >= count; });
}

size_t FakeMaster::streams() {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->welcomed;
}

control::Hello FakeMaster::LastHello() {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->hello;
}

namespace {

constexpr char kSecret[] = "sixteen bytes or more";

// Notes what the stream tells.
class Listener final : public ControlStream::Handler {
 public:
  void OnWelcome(const ControlWelcome& welcome) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    welcomes_.push_back(welcome);
    if (on_welcome) on_welcome();
  }
  void OnBroken(const std::string& /*reason*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++broken_;
    changed_.notify_all();
  }
  void OnExpelled(const std::string& reason) override {
    if (++expulsions_ == 1) expelled_.set_value(reason);
  }
  void OnTime(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) override {
    EXPECT_LE(sent_ns, received_ns);
    EXPECT_GT(time_us, 0U);
  }
  uint64_t KnownEpoch() override { return 9; }

  std::function<void()> on_welcome;  // before anything else of the stream

  [[nodiscard]] int expulsions() const { return expulsions_; }

  bool AwaitBroken(int times) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return broken_ >= times; });
  }
  std::vector<ControlWelcome> welcomes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return welcomes_;
  }
  // Why it was expelled; empty if it was not, for long.
  std::string AwaitExpelled() {
    std::future<std::string> reason = expelled_.get_future();
    return reason.wait_for(kPatience) == std::future_status::ready ? reason.get() : "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ControlWelcome> welcomes_;
  int broken_ = 0;
  std::atomic<int> expulsions_{0};
  std::promise<std::string> expelled_;
};

struct Answered {
  Status status;
  std::string reason;
};

std::future<Answered> Ask(ControlStream& stream, const control::Request& request,
                          uint64_t timeout_ms) {
  auto promise = std::make_shared<std::promise<Answered>>();
  std::future<Answered> future = promise->get_future();
  stream.Ask(request, timeout_ms,
             [promise](Status status, const std::string& reason, const control::Reply*) {
               promise->set_value({status, reason});
             });
  return future;
}

control::Request StatusRequest() {
  control::Request request;
  request.mutable_get_status();
  return request;
}
control::Request FlushRequest() {
  control::Request request;
  request.mutable_flush()->set_all(true);
  return request;
}

// Connects and expects to be refused.
Status Refused(ControlOptions options, std::string* reason) {
  Listener listener;
  ControlStream stream(std::move(options), ControlStream::Role::kAgent, &listener);
  const Status status = stream.Connect(reason);
  EXPECT_FALSE(status.ok());
  return status;
}

TEST(ControlStreamTest, AMemberIsWelcomedRenewsAndIsAnswered) {
  FakeMaster master({.secret = kSecret, .lease_ms = 100});
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  EXPECT_TRUE(stream.attending());
  ASSERT_EQ(listener.welcomes().size(), 1U);
  EXPECT_FALSE(listener.welcomes()[0].again);
  EXPECT_EQ(listener.welcomes()[0].cluster, FakeMaster::kCluster);
  EXPECT_EQ(listener.welcomes()[0].member, FakeMaster::kMember);
  EXPECT_EQ(master.LastHello().epoch(), 9U);
  EXPECT_EQ(master.LastHello().member(), 0U);
  // More than those that come fast at first.
  EXPECT_TRUE(master.Await([](const auto& m) { return m.renew().sequence() >= 12; }));
  // Those at first want an answer, for the clock; then most do not, but not none.
  EXPECT_EQ(master.Count([](const auto& m) {
    return m.has_renew() && m.renew().quiet() && m.renew().sequence() < 8;
  }),
            0U);
  EXPECT_TRUE(master.Await([](const auto& m) { return m.renew().quiet(); }));
  EXPECT_TRUE(
      master.Await([](const auto& m) { return m.renew().sequence() > 12 && !m.renew().quiet(); }));
  EXPECT_TRUE(Ask(stream, StatusRequest(), 20'000).get().status.ok());
  stream.Stop(/*leave=*/true);
  EXPECT_EQ(master.Count([](const auto& m) { return m.request().has_leave(); }), 1U);
}

TEST(ControlStreamTest, WhoeverHasAnotherSecretIsRefused) {
  FakeMaster master({.secret = kSecret});
  ControlOptions options = master.ClientOptions();
  options.secret = Secret("another secret of enough bytes");
  std::string reason;
  EXPECT_EQ(Refused(std::move(options), &reason).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason, HasSubstr(master.address()));
  EXPECT_THAT(reason, HasSubstr("refused by the master: the secret is another one"));
}

TEST(ControlStreamTest, AMasterThatDoesNotKnowTheSecretIsNotBelieved) {
  FakeMaster master({.secret = kSecret, .wrong_mac = true});
  std::string reason;
  EXPECT_EQ(Refused(master.ClientOptions(), &reason).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason, HasSubstr("the master does not know the cluster's secret"));
}

TEST(ControlStreamTest, WithoutASecretOnlyALoopbackMasterIsDialled) {
  for (const char* address : {"10.1.2.3:7400", "master.example:7400", "0.0.0.0:7400"}) {
    ControlOptions options;
    options.master = address;
    std::string reason;
    EXPECT_EQ(Refused(options.Copy(), &reason).code(), StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(reason, HasSubstr("--secret-file")) << address;
    options.secret = Secret(kSecret);
    EXPECT_TRUE(CheckControlOptions(options, &reason).ok()) << address;
  }
  for (const char* address : {"", "localhost", ":7400", "localhost:", "localhost:0", "::1:99999"}) {
    ControlOptions options;
    options.master = address;
    std::string reason;
    EXPECT_FALSE(CheckControlOptions(options, &reason).ok()) << address;
  }
  for (const char* address : {"127.0.0.1:1", "localhost:7400", "[::1]:7400"}) {
    ControlOptions options;
    options.master = address;
    std::string reason;
    EXPECT_TRUE(CheckControlOptions(options, &reason).ok()) << address;
  }
}

TEST(ControlStreamTest, AMasterThatIsNotThereIsTriedAgainAndGivenUpInTime) {
  FakeMaster master;
  ControlOptions options = master.ClientOptions();
  master.Stop();
  options.connect_timeout_ms = 300;
  std::string reason;
  EXPECT_EQ(Refused(std::move(options), &reason).code(), StatusCode::kUnavailable);
  EXPECT_THAT(reason, HasSubstr(master.address()));
  EXPECT_THAT(reason, HasSubstr("Connection refused"));
  EXPECT_THAT(reason, HasSubstr("attempts in 300 ms"));
}

TEST(ControlStreamTest, AMasterThatSaysComeAgainIsAskedAgain) {
  FakeMaster master({.refusal = "not yet", .retry = true});
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  std::future<Status> connected =
      std::async(std::launch::async, [&] { return stream.Connect(&reason); });
  master.Set({});
  EXPECT_TRUE(connected.get().ok()) << reason;
}

TEST(ControlStreamTest, AMemberComesBackAsWhoItWas) {
  FakeMaster master;
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  master.Stop();
  ASSERT_TRUE(listener.AwaitBroken(1));
  EXPECT_FALSE(stream.attending());
  // A request that is made meanwhile waits for the next stream; one that waits too long was surely
  // not done.
  std::future<Answered> waits = Ask(stream, StatusRequest(), 20'000);
  const Answered late = Ask(stream, StatusRequest(), 20).get();
  EXPECT_EQ(late.status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(late.reason, HasSubstr("is away"));
  master.Start();
  EXPECT_TRUE(waits.get().status.ok());
  EXPECT_EQ(master.LastHello().member(), FakeMaster::kMember);
  EXPECT_EQ(master.LastHello().cluster(), FakeMaster::kCluster);
  ASSERT_EQ(listener.welcomes().size(), 2U);
  EXPECT_TRUE(listener.welcomes()[1].again);
}

TEST(ControlStreamTest, WhatWasSentAndNotAnsweredHasAnUnknownOutcome) {
  FakeMaster master;
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  EXPECT_EQ(Ask(stream, FlushRequest(), 20).get().status.code(), StatusCode::kUnknownOutcome);
  std::future<Answered> broken = Ask(stream, FlushRequest(), 0);
  ASSERT_TRUE(master.Await([](const auto& m) { return m.request().id() == 2; }));
  master.Stop();
  EXPECT_EQ(broken.get().status.code(), StatusCode::kUnknownOutcome);
  // After the end no caller waits for an answer.
  std::future<Answered> unsent = Ask(stream, FlushRequest(), 0);
  stream.Stop(/*leave=*/true);
  EXPECT_EQ(unsent.get().status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(Ask(stream, FlushRequest(), 0).get().status.code(), StatusCode::kUnavailable);
}

TEST(ControlStreamTest, WhoIsExpelledDoesNotComeBack) {
  FakeMaster master;
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  control::FromMaster message;
  message.mutable_expelled()->set_reason("its lease ran out");
  master.Send(message);
  EXPECT_EQ(listener.AwaitExpelled(), "its lease ran out");
  EXPECT_EQ(Ask(stream, StatusRequest(), 0).get().status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(master.streams(), 1U);
}

// Each process that may sit at a master's address for a while; none of them ends a member.
struct Impostor {
  const char* name;
  FakeMasterOptions master;
  ControlStream::Role role = ControlStream::Role::kAgent;
};

std::vector<Impostor> Impostors() {
  const std::string other = "another secret of enough bytes";
  return {
      {"a master whose proof is wrong", {.secret = kSecret, .wrong_mac = true}},
      {"a master with another secret", {.secret = other}},
      {"... that says who was expelled", {.secret = other, .expelled = true}},
      {"... and proves it with its own",
       {.secret = other, .expelled = true, .proves_refusals = true}},
      {"a refusal without proof", {.secret = kSecret, .refusal = "go away"}},
      {"an expulsion without proof", {.secret = kSecret, .refusal = "dead", .expelled = true}},
      {"an empty data directory",
       {.secret = kSecret, .refusal = "another cluster", .proves_refusals = true, .cluster = 78}},
      {"... that expels",
       {.secret = kSecret,
        .refusal = "x",
        .expelled = true,
        .proves_refusals = true,
        .cluster = 78}},
      {"an old copy of the state",
       {.secret = kSecret, .refusal = "an old copy", .proves_refusals = true, .epoch = 8}},
      {"... that expels",
       {.secret = kSecret, .refusal = "x", .expelled = true, .proves_refusals = true, .epoch = 8}},
      {"a proved refusal that is no expulsion",
       {.secret = kSecret, .refusal = "speaks another version", .proves_refusals = true}},
      {"a proved expulsion of a memory node",
       {.secret = kSecret, .refusal = "dead", .expelled = true, .proves_refusals = true},
       ControlStream::Role::kMemoryNode},
      {"a welcome of another cluster", {.secret = kSecret, .cluster = 78}},
      {"a welcome by an old copy", {.secret = kSecret, .epoch = 8}},
  };
}

TEST(ControlStreamTest, MembersOutliveEveryImpostor) {
  for (const Impostor& impostor : Impostors()) {
    SCOPED_TRACE(impostor.name);
    FakeMaster master({.secret = kSecret});
    Listener listener;
    ControlStream stream(master.ClientOptions(), impostor.role, &listener);
    std::string reason;
    ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
    master.Stop();
    master.Set(impostor.master);
    master.Start();
    ASSERT_TRUE(master.AwaitAttempts(4));
    EXPECT_EQ(listener.expulsions(), 0);
    EXPECT_EQ(listener.welcomes().size(), 1U);
    EXPECT_FALSE(stream.attending());
    // The true one is back.
    master.Stop();
    master.Set({.secret = kSecret});
    master.Start();
    EXPECT_TRUE(Ask(stream, StatusRequest(), 20'000).get().status.ok());
    EXPECT_EQ(listener.expulsions(), 0);
    EXPECT_EQ(master.LastHello().member(), FakeMaster::kMember);
    EXPECT_EQ(master.LastHello().life(), 1U);
  }
}

TEST(ControlStreamTest, WhoIsExpelledByItsOwnMasterEnds) {
  FakeMaster master({.secret = kSecret});
  Listener listener;
  ControlStream stream(master.ClientOptions(), ControlStream::Role::kAgent, &listener);
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  master.Stop();
  master.Set({.secret = kSecret,
              .refusal = "it was taken for dead",
              .expelled = true,
              .proves_refusals = true});
  master.Start();
  EXPECT_THAT(listener.AwaitExpelled(), HasSubstr("it was taken for dead"));
}

TEST(ControlStreamTest, AStreamIsOpenedEverMoreSlowlyByWhoeverIsRefusedOnIt) {
  FakeMaster master;
  Listener listener;
  ControlOptions options = master.ClientOptions();
  options.backoff_min_ms = 8;
  options.backoff_max_ms = 10'000;
  ControlStream stream(std::move(options), ControlStream::Role::kMemoryNode, &listener);
  listener.on_welcome = [&] { stream.OpenAnother("it was refused its place"); };
  std::string reason;
  ASSERT_TRUE(stream.Connect(&reason).ok()) << reason;
  ASSERT_TRUE(master.AwaitStreams(4));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // 4 + 8 + 16 + 32 + 64 ms at least: without it there would be dozens.
  EXPECT_LE(master.streams(), 8U);
  EXPECT_EQ(listener.expulsions(), 0);
  stream.Stop(/*leave=*/false);
}

TEST(ControlStreamTest, AToolAsksForTheStatusAndLeavesNoTrace) {
  FakeMaster master({.secret = kSecret});
  std::string reason;
  const Result<ClusterStatusInfo> status = QueryStatus(master.ClientOptions(), &reason);
  ASSERT_TRUE(status.ok()) << reason;
  EXPECT_EQ(status.value().cluster, FakeMaster::kCluster);
  EXPECT_EQ(master.LastHello().role(), control::ROLE_TOOL);
  EXPECT_EQ(master.Count([](const auto& m) { return m.has_renew(); }), 0U);
}

}  // namespace
}  // namespace onetrip
