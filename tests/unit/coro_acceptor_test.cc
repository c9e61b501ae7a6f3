#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/coro/acceptor.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr uint64_t kRestNs = 100'000'000;

class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() {
    std::string reason;
    Result<UniqueFd> listener = ListenTcp("127.0.0.1", 0, 16, &reason);
    CHECK(listener.ok());
    port_ = LocalPort(listener->get());
    acceptor_ = std::make_unique<Acceptor>(executor_, std::move(*listener), [this](UniqueFd fd) {
      accepted_.push_back(std::move(fd));
      if (stops_) acceptor_->Stop();
    });
  }

  UniqueFd Dial() {
    UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Connect(client);
    return client;
  }
  void Connect(const UniqueFd& client) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  void RunFor(uint64_t time_ns) {
    bool over = false;
    executor_.At(
        executor_.NowNs() + time_ns, [](void* flag) { *static_cast<bool*>(flag) = true; }, &over);
    while (!over) executor_.RunOnce();
  }
  // The acceptor finds a connection and no descriptor for it. `client` has its own already.
  void Exhaust(const UniqueFd& client) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    none.rlim_cur = 0;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    Connect(client);
    RunFor(5'000'000);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_TRUE(accepted_.empty());
  }

  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
  bool stops_ = false;
  uint16_t port_ = 0;
  std::vector<UniqueFd> accepted_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, HandsOnEveryConnectionUntilItIsStopped) {
  const UniqueFd first = Dial();
  const UniqueFd second = Dial();
  RunFor(5'000'000);
  EXPECT_EQ(accepted_.size(), 2U);
  acceptor_->Stop();
  const UniqueFd third = Dial();
  RunFor(5'000'000);
  EXPECT_EQ(accepted_.size(), 2U);
}

TEST_F(AcceptorTest, IsStoppedByTheOneThatGetsAConnection) {
  const UniqueFd first = Dial();
  const UniqueFd second = Dial();
  stops_ = true;
  RunFor(5'000'000);
  EXPECT_EQ(accepted_.size(), 1U);
}

TEST_F(AcceptorTest, LooksAgainAfterARestWithoutDescriptors) {
  if (kSlowdown != 1) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Exhaust(client);
  RunFor(2 * kRestNs);
  EXPECT_EQ(accepted_.size(), 1U);
}

TEST_F(AcceptorTest, MayBeStoppedOrGoWhileItRests) {
  if (kSlowdown != 1) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Exhaust(client);
  acceptor_->Stop();
  RunFor(2 * kRestNs);
  EXPECT_TRUE(accepted_.empty());
  acceptor_.reset();
  RunFor(kRestNs);
}

TEST_F(AcceptorTest, LeavesNoTimerBehind) {
  if (kSlowdown != 1) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Exhaust(client);
  acceptor_.reset();
  RunFor(2 * kRestNs);
  EXPECT_TRUE(accepted_.empty());
}

}  // namespace
}  // namespace onetrip
