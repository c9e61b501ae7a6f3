// The handshake of tcp channels: which peers are let in, which are not and why; and the secret that
// decides.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "client_core/base/address.h"
#include "client_core/base/rng.h"
#include "client_core/fabric/handshake.h"

namespace onetrip {
namespace {

using Bytes = std::vector<std::byte>;
using State = Handshake::State;

constexpr const char* kSecretText = "correct horse battery staple";

TcpNonce Nonce(uint8_t fill) {
  TcpNonce nonce;
  nonce.fill(std::byte{fill});
  return nonce;
}

// Both sides, and every byte that went either way.
struct Meeting {
  explicit Meeting(const char* worker_text = kSecretText, const char* node_text = kSecretText)
      : worker_secret(worker_text), node_secret(node_text) {}

  void Start(TcpHello given = {.cluster = 5, .incarnation = 1, .worker = 9, .node = 2}) {
    worker.emplace(given, worker_nonce, worker_secret);
    node.emplace(NodeHandshake::Policy{.cluster = 5, .node = NodeId{2}}, node_nonce, node_secret);
  }
  // Carries what one side has to say to the other, byte for byte in pieces of `piece`.
  static void Carry(Handshake& from, Handshake& to, Bytes* said, size_t piece) {
    const Bytes bytes(from.output().begin(), from.output().end());
    said->insert(said->end(), bytes.begin(), bytes.end());
    from.ClearOutput();
    Give(to, bytes, piece);
  }
  static void Give(Handshake& to, std::span<const std::byte> bytes, size_t piece = 1000) {
    for (size_t at = 0; at < bytes.size() && to.state() == State::kWaiting;) {
      at += to.Feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    }
  }
  // Until neither has anything to say.
  void Run(size_t piece = 1000) {
    for (int i = 0; i < 4; ++i) {
      Carry(*worker, *node, &worker_said, piece);
      if (node->state() == State::kProved) node->Welcome(4096, Epoch{17});
      Carry(*node, *worker, &node_said, piece);
    }
  }

  Secret worker_secret;
  Secret node_secret;
  TcpNonce worker_nonce = Nonce(1);
  TcpNonce node_nonce = Nonce(2);
  std::optional<WorkerHandshake> worker;
  std::optional<NodeHandshake> node;
  Bytes worker_said;
  Bytes node_said;
};

TEST(FabricHandshakeTest, PartnersWithOneSecretWelcomeEachOtherHoweverTheirBytesAreCut) {
  for (const size_t piece : {1, 2, 7, 15, 16, 17, 48, 1000}) {
    Meeting meeting;
    meeting.Start();
    meeting.Run(piece);
    ASSERT_EQ(meeting.worker->state(), State::kWelcome) << piece;
    ASSERT_EQ(meeting.node->state(), State::kWelcome) << piece;
    EXPECT_EQ(meeting.worker->memory_bytes(), 4096U);
    EXPECT_EQ(meeting.worker->epoch(), Epoch{17});
    EXPECT_EQ(meeting.node->hello().worker, 9U);
    EXPECT_EQ(meeting.worker->sequences().request, meeting.node->sequences().request);
    EXPECT_EQ(meeting.worker->sequences().reply, meeting.node->sequences().reply);
  }
}

TEST(FabricHandshakeTest, NoTwoConnectionsCountTheirFramesFromTheSameNumber) {
  Meeting first;
  first.Start();
  first.Run();
  Meeting second;
  second.node_nonce = Nonce(3);
  second.Start();
  second.Run();
  EXPECT_NE(first.node->sequences().request, second.node->sequences().request);
  EXPECT_NE(first.node->sequences().reply, second.node->sequences().reply);
  EXPECT_NE(first.node->sequences().request, first.node->sequences().reply);
}

TEST(FabricHandshakeTest, EveryMismatchHasAReasonThatBothSidesKnow) {
  struct Case {
    TcpHello hello;
    const char* worker_secret;
    TcpRefusal refusal;
  };
  const Case cases[] = {
      {{.cluster = 6, .worker = 9, .node = 2}, kSecretText, TcpRefusal::kCluster},
      {{.cluster = 5, .worker = 9, .node = 3}, kSecretText, TcpRefusal::kNode},
      {{.cluster = 5, .worker = 9, .node = 2}, "another secret than that", TcpRefusal::kSecret},
      {{.cluster = 5, .worker = 9, .node = 2}, "", TcpRefusal::kSecret},
  };
  for (const Case& c : cases) {
    Meeting meeting(c.worker_secret);
    meeting.Start(c.hello);
    meeting.Run();
    EXPECT_EQ(meeting.node->state(), State::kRefused);
    EXPECT_EQ(meeting.node->refusal(), c.refusal);
    EXPECT_EQ(meeting.worker->state(), State::kRefused);
    EXPECT_EQ(meeting.worker->refusal(), c.refusal);
    EXPECT_TRUE(meeting.worker->refused_by_peer());
  }
}

TEST(FabricHandshakeTest, ANodeMayRefuseAWorkerThatHasProvedItself) {
  for (const TcpRefusal refusal :
       {TcpRefusal::kStaleEpoch, TcpRefusal::kStaleIncarnation, TcpRefusal::kFenced}) {
    Meeting meeting;
    meeting.Start();
    meeting.Carry(*meeting.worker, *meeting.node, &meeting.worker_said, 1000);
    meeting.Carry(*meeting.node, *meeting.worker, &meeting.node_said, 1000);
    meeting.Carry(*meeting.worker, *meeting.node, &meeting.worker_said, 1000);
    ASSERT_EQ(meeting.node->state(), State::kProved);
    meeting.node->Refuse(refusal);
    meeting.Carry(*meeting.node, *meeting.worker, &meeting.node_said, 1000);
    EXPECT_EQ(meeting.worker->refusal(), refusal);
  }
}

TEST(FabricHandshakeTest, ARecordedWorkerIsRefusedByAFreshNonceOfTheNode) {
  Meeting recorded;
  recorded.Start();
  recorded.Run();
  ASSERT_EQ(recorded.node->state(), State::kWelcome);
  Meeting replay;
  replay.node_nonce = Nonce(77);
  replay.Start();
  Meeting::Give(*replay.node, recorded.worker_said);
  EXPECT_EQ(replay.node->state(), State::kRefused);
  EXPECT_EQ(replay.node->refusal(), TcpRefusal::kSecret);
}

TEST(FabricHandshakeTest, ARecordedNodeIsRefusedByAFreshNonceOfTheWorker) {
  Meeting recorded;
  recorded.Start();
  recorded.Run();
  ASSERT_EQ(recorded.worker->state(), State::kWelcome);
  Meeting replay;
  replay.worker_nonce = Nonce(78);
  replay.Start();
  Meeting::Give(*replay.worker, recorded.node_said);
  EXPECT_EQ(replay.worker->state(), State::kRefused);
  EXPECT_EQ(replay.worker->refusal(), TcpRefusal::kSecret);
  EXPECT_FALSE(replay.worker->refused_by_peer());
}

TEST(FabricHandshakeTest, AWelcomeBeforeTheProofIsNone) {
  Meeting meeting;
  meeting.Start();
  Meeting::Give(*meeting.worker, EncodeTcpMessage(TcpVerdict{.memory_bytes = 1 << 20}));
  EXPECT_EQ(meeting.worker->state(), State::kRefused);
  EXPECT_EQ(meeting.worker->refusal(), TcpRefusal::kMalformed);
}

// One bit of one message is changed under way: the side that trusted it must not be welcomed.
TEST(FabricHandshakeTest, EveryFlippedBitEndsTheHandshake) {
  Meeting model;
  model.Start();
  model.Run();
  const size_t worker_bits = model.worker_said.size() * 8;
  const size_t node_bits = model.node_said.size() * 8;
  for (size_t bit = 0; bit < worker_bits + node_bits; ++bit) {
    Meeting meeting;
    meeting.Start();
    size_t worker_done = 0;
    size_t node_done = 0;
    for (int i = 0; i < 4; ++i) {
      Bytes bytes(meeting.worker->output().begin(), meeting.worker->output().end());
      meeting.worker->ClearOutput();
      if (bit / 8 >= worker_done && bit / 8 < worker_done + bytes.size()) {
        bytes[bit / 8 - worker_done] ^= static_cast<std::byte>(1U << (bit % 8));
      }
      worker_done += bytes.size();
      Meeting::Give(*meeting.node, bytes);
      if (meeting.node->state() == State::kProved) meeting.node->Welcome(4096, Epoch{17});
      bytes.assign(meeting.node->output().begin(), meeting.node->output().end());
      meeting.node->ClearOutput();
      const size_t at = bit / 8 - worker_bits / 8;
      if (bit >= worker_bits && at >= node_done && at < node_done + bytes.size()) {
        bytes[at - node_done] ^= static_cast<std::byte>(1U << (bit % 8));
      }
      node_done += bytes.size();
      Meeting::Give(*meeting.worker, bytes);
    }
    EXPECT_NE(meeting.worker->state(), State::kWelcome) << "bit " << bit;
    if (bit < worker_bits) {
      EXPECT_NE(meeting.node->state(), State::kWelcome) << "bit " << bit;
    }
  }
}

TEST(FabricHandshakeTest, RandomBytesAreRefusedOrWaitedForAndNeverWelcomed) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    Meeting meeting;
    meeting.Start();
    Bytes bytes(rng.Below(300));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
    // Half of them get past the prefix.
    const auto prefix = EncodeTcpMessage(TcpHello());
    if (rng.Below(2) == 0 && bytes.size() >= sizeof(TcpPrefix)) {
      std::memcpy(bytes.data(), prefix.data(), sizeof(TcpPrefix));
    }
    Meeting::Give(*meeting.node, bytes, 1 + rng.Below(50));
    EXPECT_TRUE(meeting.node->state() == State::kWaiting ||
                meeting.node->state() == State::kRefused)
        << "seed " << seed;
    Meeting::Give(*meeting.worker, bytes, 1 + rng.Below(50));
    EXPECT_NE(meeting.worker->state(), State::kWelcome) << "seed " << seed;
  }
}

TEST(FabricHandshakeTest, OnlyNumericAddressesOfThisHostAreLoopback) {
  for (const char* address : {"127.0.0.1", "127.0.0.1:80", "127.255.1.2:1", "::1", "[::1]:80",
                              "[::1]", "::ffff:127.0.0.1", "[::ffff:127.9.9.9]:7"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  }
  for (const char* address :
       {"", "localhost", "localhost:80", "0.0.0.0", "0.0.0.0:80", "10.0.0.1:80", "128.0.0.1",
        "1.127.0.1", "::", "[::]:80", "::2", "fe80::1", "::ffff:10.0.0.1", "127.0.0.1.evil.org",
        "[::1", "127.0.0.1 ", "127.1", "unix", "?:0"}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  }
}

TEST(FabricHandshakeTest, WithoutASecretOnlyLoopbackMayTalk) {
  EXPECT_TRUE(MayTalk(/*has_secret=*/true, /*is_loopback=*/true));
  EXPECT_TRUE(MayTalk(true, false));
  EXPECT_TRUE(MayTalk(false, true));
  EXPECT_FALSE(MayTalk(false, false));
}

class FabricSecretTest : public testing::Test {
 protected:
  FabricSecretTest() {
    std::string path = testing::TempDir() + "onetrip_secret_XXXXX" + "X";
    const int fd = mkstemp(path.data());
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = path;
  }
  ~FabricSecretTest() override { unlink(path_.c_str()); }

  void Write(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  Result<Secret> Load() { return LoadSecretFile(path_, &reason_); }

  std::string path_;
  std::string reason_;
};

std::string_view Text(const Secret& secret) {
  return {reinterpret_cast<const char*>(secret.bytes().data()), secret.bytes().size()};
}

TEST_F(FabricSecretTest, ASecretIsReadWithoutTheWhiteSpaceBehindIt) {
  for (const mode_t mode : {0600, 0400}) {
    Write("  a secret of some length \r\n\n", mode);
    Result<Secret> secret = Load();
    ASSERT_TRUE(secret.ok()) << reason_;
    EXPECT_EQ(Text(*secret), "  a secret of some length");
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  Write(std::string(Secret::kMaxBytes, 'x') + "\n", 0600);
  EXPECT_EQ(Load()->bytes().size(), Secret::kMaxBytes);
}

TEST_F(FabricSecretTest, AFileThatOthersMayTouchIsRefused) {
  for (const mode_t mode : {0640, 0604, 0660, 0610, 0601, 0602, 0644, 0777}) {
    Write("a secret of some length", mode);
    EXPECT_FALSE(Load().ok()) << std::oct << mode;
    EXPECT_NE(reason_.find("chmod 600"), std::string::npos) << reason_;
  }
}

TEST_F(FabricSecretTest, SecretsTooShortTooLongOrMissingAreRefused) {
  for (const std::string& text :
       {std::string(), std::string("short"), std::string(15, 'x') + "\n\n\n",
        std::string(Secret::kMaxBytes + 1, 'x'), std::string(1 << 20, 'x')}) {
    Write(text, 0600);
    EXPECT_FALSE(Load().ok()) << text.size();
    EXPECT_NE(reason_.find("must hold 16 to 4096 bytes"), std::string::npos) << reason_;
  }
  EXPECT_FALSE(LoadSecretFile(path_ + ".missing", &reason_).ok());
  EXPECT_FALSE(LoadSecretFile(testing::TempDir(), &reason_).ok());
}

TEST_F(FabricSecretTest, MovingASecretLeavesNothingBehind) {
  Secret from("a secret of some length");
  const Secret to = std::move(from);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(Text(to), "a secret of some length");
}

// RFC 4231, test cases 2 and 6.
TEST_F(FabricSecretTest, MacsAreThoseOfTheStandard) {
  const auto hex = [](const Mac& mac) {
    std::string text;
    for (const std::byte byte : mac) {
      text += "0123456789abcdef"[static_cast<int>(byte) >> 4];
      text += "0123456789abcdef"[static_cast<int>(byte) & 15];
    }
    return text;
  };
  const auto mac = [&](const std::string& key, std::string_view message) {
    return hex(HmacSha256(Secret(key), std::as_bytes(std::span(message))));
  };
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(mac("", ""), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_F(FabricSecretTest, EqualityHoldsForEqualBytesOnly) {
  const Mac a = HmacSha256(Secret("x"), {});
  Mac b = a;
  EXPECT_TRUE(EqualInConstantTime(a, b));
  for (std::byte& byte : b) {
    byte ^= std::byte{1};
    EXPECT_FALSE(EqualInConstantTime(a, b));
    byte ^= std::byte{1};
  }
  EXPECT_FALSE(EqualInConstantTime(a, std::span(b).first(31)));
}

}  // namespace
}  // namespace onetrip
