// Fuzz target: whatever the agents of a host say on the sockets of a memory node's shm server, each
// request has one answer, in order, no process without the greeting's nonce gets the memory, and
// what the server knows of processes and workers stays whole.
//
// Records: a byte that names the event (Event), one that chooses the connection, and what belongs
// to the event.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/layout/worker_id.h"
#include "memnode/memory_node.h"
#include "memnode/shm_server_connection.h"
#include "tests/fuzz/fuzz_input.h"

namespace onetrip {
namespace {

enum Event : uint8_t {
  kConnect,
  kBytes,      // a byte that counts, and bytes
  kHello,      // 64 bytes; what a member of the cluster knows is made true in them
  kWorker,     // the same
  kControl,    // 64 bytes; it is made a request
  kDetach,     // nothing
  kClose,      // nothing
  kWithFile,   // as kBytes, and a descriptor comes along
  kFence,      // a byte: the worker
  kEpoch,      // a byte: what the node accepts from now on, if that is more
  kReachable,  // the node is reachable or not, by the connection's byte
  kEvents,
};
constexpr int kEventsMax = 200;
constexpr size_t kConnectionsMax = 16;
constexpr uint64_t kCluster = 21;
constexpr NodeId kNode{2};

View TheView() {
  View view;
  view.epoch = Epoch{3};
  view.replicas = 1;
  view.node_count = 3;
  view.regions.emplace_back();
  view.regions[0].nodes[0] = kNode;
  return view;
}

std::unique_ptr<MemoryNode> MakeNode() {
  std::string reason;
  auto backing =
      Backing::Open({.kind = BackingOptions::Kind::kSegment, .bytes = kRegionBytes}, &reason);
  CHECK(backing.ok());
  auto node = MemoryNode::Create(kNode, TheView(), std::move(*backing), &reason);
  CHECK(node.ok());
  return std::move(*node);
}

// An agent's end of a connection.
struct Peer {
  UniqueFd fd;
  ShmConnection* connection = nullptr;
  uint64_t nonce = 0;
  bool knew_nonce = false;  // has said a HELLO that is right as far as this
  size_t welcomes = 0;      // verdicts with a descriptor
};

class Bench {
 public:
  Bench()
      : node_(MakeNode()),
        core_(clock_, *node_, node_->backing(),
              {.cluster = kCluster, .node = kNode, .epoch = Epoch{3}, .agents_max = 8},
              [this](const ShmDeparture& departure) { departed_ += departure.workers.size(); }) {}

  void Run(FuzzInput* input) {
    const uint8_t event = input->TakeByte() % kEvents;
    const uint8_t chosen = input->TakeByte();
    if (event == kConnect) Connect();
    if (event == kFence) {
      UniqueFd process;
      (void)core_.Fence(WorkerId{input->TakeByte()}, &process);
    }
    if (event == kEpoch) core_.epoch = std::max(core_.epoch, Epoch{input->TakeByte()});
    if (event == kReachable) node_->SetReachable(chosen % 2 == 0);
    if (!peers_.empty()) Say(event, peers_[chosen % peers_.size()], input);
    Check();
  }

  void End() {
    for (Peer& peer : peers_) peer.fd.Reset();
    for (Peer& peer : peers_) Read(&peer);
    CHECK(core_.connections.empty());
    Check();
  }

 private:
  void Connect() {
    if (peers_.size() >= kConnectionsMax) return;
    std::array<int, 2> ends{};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    Peer& peer = peers_.emplace_back();
    peer.fd = UniqueFd(ends[0]);
    const size_t before = core_.connections.size();
    core_.Accept(UniqueFd(ends[1]));
    if (core_.connections.size() != before) peer.connection = core_.connections.back().get();
    Listen(&peer);
  }

  [[nodiscard]] bool IsOpen(const Peer& peer) const {
    return std::any_of(core_.connections.begin(), core_.connections.end(),
                       [&](const auto& open) { return open.get() == peer.connection; });
  }

  // The server reads as its loop would make it.
  void Read(Peer* peer) {
    if (IsOpen(*peer)) peer->connection->OnReadable();
    if (!IsOpen(*peer)) peer->connection = nullptr;
  }

  void Say(uint8_t event, Peer& peer, FuzzInput* input) {
    if (event == kBytes || event == kWithFile) {
      const std::string bytes = input->TakeText(input->TakeByte());
      Send(peer, bytes.data(), bytes.size(), event == kWithFile ? 0 : -1);
    } else if (event == kHello || event == kWorker) {
      auto hello = input->Take<ShmHello>();
      hello.prefix = {.sequence = hello.prefix.sequence};
      // Three bits of what is no field keep a fault in what would be right.
      const auto faults = static_cast<uint8_t>(hello.zeros[0]);
      if ((faults & 1) == 0) hello.nonce = peer.nonce;
      if ((faults & 2) == 0) hello.cluster = kCluster;
      if ((faults & 4) == 0) hello.node = kNode.value;
      if ((faults & 8) == 0) hello.incarnation = node_->backing().incarnation();
      peer.knew_nonce = peer.knew_nonce || hello.nonce == peer.nonce;
      SendFrame(peer,
                EncodeShm(hello, event == kHello ? ShmFrameKind::kHello : ShmFrameKind::kWorker));
    } else if (event == kControl) {
      auto control = input->Take<ShmControl>();
      control.prefix = {.sequence = control.prefix.sequence};
      SendFrame(peer, EncodeShm(control));
    } else if (event == kDetach) {
      SendFrame(peer, EncodeShm(ShmDetach{}));
    } else if (event == kClose) {
      peer.fd.Reset();
    }
    Read(&peer);
    Listen(&peer);
  }

  static void SendFrame(const Peer& peer, const ShmFrame& frame) {
    Send(peer, frame.data(), frame.size(), -1);
  }
  static void Send(const Peer& peer, const void* bytes, size_t count, int descriptor) {
    if (!peer.fd.valid() || count == 0) return;
    iovec io{.iov_base = const_cast<void*>(bytes), .iov_len = count};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = room.data();
      message.msg_controllen = room.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
    }
    (void)sendmsg(peer.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Takes what the server has said: whole frames of its own, none of which names what cannot be.
  void Listen(Peer* peer) {
    while (peer->fd.valid()) {
      ShmFrame frame;
      iovec io{.iov_base = frame.data(), .iov_len = frame.size()};
      alignas(cmsghdr) std::array<char, 64> room{};
      msghdr message{};
      message.msg_iov = &io;
      message.msg_iovlen = 1;
      message.msg_control = room.data();
      message.msg_controllen = room.size();
      const ssize_t got = recvmsg(peer->fd.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (got <= 0) return;
      CHECK(got == static_cast<ssize_t>(frame.size()));
      UniqueFd memory;
      const cmsghdr* const header = CMSG_FIRSTHDR(&message);
      if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        memory = UniqueFd(fd);
      }
      Hear(peer, frame, memory.valid());
    }
  }
  static void Hear(Peer* peer, const ShmFrame& frame, bool has_memory) {
    ShmGreeting greeting;
    ShmVerdict verdict;
    ShmReply reply;
    if (DecodeShm(frame, &greeting) == ShmRefusal::kNone) {
      peer->nonce = greeting.nonce;
      CHECK(!has_memory);
    } else if (DecodeShm(frame, &verdict) == ShmRefusal::kNone) {
      CHECK(verdict.refusal < kShmRefusalCount);
      CHECK(!has_memory || (verdict.refusal == 0 && peer->knew_nonce && ++peer->welcomes == 1));
      CHECK(has_memory == (verdict.memory_bytes == kRegionBytes));
    } else {
      CHECK(DecodeShm(frame, &reply) == ShmRefusal::kNone && !has_memory && peer->welcomes == 1);
      CHECK(reply.outcome <= static_cast<uint8_t>(ControlReply::kLastOutcome) ||
            reply.outcome == kShmUnavailable);
    }
  }

  void Check() {
    uint64_t attached = 0;
    uint64_t of_processes = 0;
    for (const auto& connection : core_.connections) {
      attached += connection->process() != nullptr ? 1 : 0;
    }
    for (const auto& process : core_.processes) {
      of_processes += process->connections;
      CHECK(process->connections != 0 || process->mappings != 0);
      for (const WorkerId worker : process->workers) {
        CHECK(core_.workers.at(worker.value).process == process.get());
        CHECK(core_.next_worker.Value() > worker.value && worker.value <= kMaxWorkerId);
      }
    }
    CHECK(attached == of_processes);
    CHECK(core_.connection_count.Value() == core_.connections.size());
    CHECK(core_.next_worker.Value() <= kMaxWorkerId + 1);
    for (const auto& [id, worker] : core_.workers) {
      if (worker.process == nullptr) continue;
      const auto& workers = worker.process->workers;
      CHECK(std::count(workers.begin(), workers.end(), WorkerId{id}) == 1);
    }
    const MemoryNodeStatus status = node_->status();
    CHECK(status.granted_blocks <= status.blocks);
  }

  const SystemClock clock_;
  std::unique_ptr<MemoryNode> node_;
  uint64_t departed_ = 0;
  ShmServerCore core_;
  std::deque<Peer> peers_;
};

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  onetrip::SetLogLevel(onetrip::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::FuzzInput input(data, size);
  onetrip::Bench bench;
  for (int event = 0; event < onetrip::kEventsMax && !input.empty(); ++event) bench.Run(&input);
  bench.End();
  return 0;
}
