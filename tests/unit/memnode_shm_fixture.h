// The tests of the socket between an agent and its host's memory node share these: a node on a path
// of its own, and frames sent by hand.
#ifndef ONETRIP_TESTS_UNIT_MEMNODE_SHM_FIXTURE_H_
#define ONETRIP_TESTS_UNIT_MEMNODE_SHM_FIXTURE_H_

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "client_core/base/rng.h"
#include "client_core/fabric/shm_segment.h"
#include "memnode/shm_server.h"
#include "tests/support/scale.h"

namespace onetrip {

using testing::HasSubstr;
using Outcome = ControlReply::Outcome;

inline constexpr uint64_t kCluster = 21;
inline constexpr NodeId kNode{2};

class Memory final : public MemoryEndpoint {
 public:
  explicit Memory(Backing& backing) : backing_(backing) {}
  [[nodiscard]] std::byte* base() const override { return backing_.base(); }
  [[nodiscard]] uint64_t bytes() const override { return backing_.bytes(); }
  // Answers with what was asked, so that an exchange that lost a field shows it.
  ControlReply Handle(const ControlRequest& request) override {
    const auto kind = static_cast<uint64_t>(request.kind);
    return {static_cast<Outcome>(request.owner.value % 3),
            GlobalAddr(request.block.bits() ^ kind << 40 ^
                       uint64_t{request.size_class.index()} << 32 ^ request.owner.value)};
  }

 private:
  Backing& backing_;
};

inline UniqueFd ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}
// False at the end of the stream.
inline bool ReadFrame(const UniqueFd& fd, ShmFrame* frame) {
  return recv(fd.get(), frame->data(), frame->size(), MSG_WAITALL) ==
         static_cast<ssize_t>(frame->size());
}
inline void SendFrame(const UniqueFd& fd, const ShmFrame& frame) {
  (void)!send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
}

// Sends `bytes` with a descriptor beside them, if there is room for them now.
inline void SendWithDescriptor(const UniqueFd& fd, std::span<const std::byte> bytes, int given) {
  iovec io{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &given, sizeof(given));
  (void)!sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

class MemnodeShmServerTest : public testing::Test {
 protected:
  MemnodeShmServerTest() {
    std::string name = testing::TempDir() + "shm-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    path_ = directory_ + "/node.sock";
    auto backing =
        Backing::Open({.kind = BackingOptions::Kind::kSegment, .bytes = kRegionBytes}, &reason_);
    CHECK(backing.ok());
    backing_ = std::move(*backing);
    memory_ = std::make_unique<Memory>(*backing_);
  }
  ~MemnodeShmServerTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  ShmServerOptions ServerOptions() const {
    return {.path = path_, .cluster = kCluster, .node = kNode, .epoch = Epoch{5}};
  }
  void StartServer() { StartServer(ServerOptions()); }
  void StartServer(const ShmServerOptions& options) {
    auto server = ShmServer::Start(
        *memory_, *backing_, options,
        [this](const ShmDeparture& departure) {
          const std::lock_guard<std::mutex> lock(mutex_);
          departures_.push_back(departure);
        },
        &reason_);
    ASSERT_TRUE(server.ok()) << reason_;
    server_ = std::move(*server);
  }
  ShmAttachOptions AttachOptions(uint32_t worker = 1) const {
    return {.path = path_,
            .cluster = kCluster,
            .node = kNode,
            .worker = WorkerId{worker},
            .epoch = Epoch{5},
            .timeout_ms = 20'000};
  }
  // Attaches, or says why not.
  std::unique_ptr<ShmSegment> Attach(const ShmAttachOptions& options, StatusCode wanted) {
    reason_.clear();
    auto segment = ShmSegment::Attach(options, &reason_);
    EXPECT_EQ(segment.ok() ? StatusCode::kOk : segment.status().code(), wanted) << reason_;
    return segment.ok() ? std::move(*segment) : nullptr;
  }
  static ShmHello Hello(uint64_t nonce) {
    return {.nonce = nonce, .cluster = kCluster, .epoch = 5, .worker = 1, .node = kNode.value};
  }
  // A connection that has been greeted.
  UniqueFd Greeted(uint64_t* nonce) {
    UniqueFd fd = ConnectTo(path_);
    ShmFrame frame;
    ShmGreeting greeting;
    CHECK(ReadFrame(fd, &frame));
    CHECK(DecodeShm(frame, &greeting) == ShmRefusal::kNone);
    *nonce = greeting.nonce;
    return fd;
  }
  // The node's answer to `frame` as the first of a connection.
  ShmRefusal Answer(const std::function<ShmFrame(uint64_t nonce)>& frame) {
    uint64_t nonce = 0;
    const UniqueFd fd = Greeted(&nonce);
    SendFrame(fd, frame(nonce));
    ShmFrame answer;
    ShmVerdict verdict;
    if (!ReadFrame(fd, &answer) || DecodeShm(answer, &verdict) != ShmRefusal::kNone) {
      ADD_FAILURE() << "no verdict";
    }
    return static_cast<ShmRefusal>(verdict.refusal);
  }
  template <typename Condition>
  static void Await(Condition condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  size_t Departures() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return departures_.size();
  }

  std::string directory_;
  std::string path_;
  std::string reason_;
  std::unique_ptr<Backing> backing_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<ShmServer> server_;
  std::mutex mutex_;
  std::vector<ShmDeparture> departures_;  // guarded by mutex_
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MEMNODE_SHM_FIXTURE_H_
