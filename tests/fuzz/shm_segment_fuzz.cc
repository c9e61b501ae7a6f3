// Fuzz target: whatever sits at a memory node's socket, an agent that attaches to it gets memory
// that it can touch or a reason, each question to it ends, and no descriptor stays behind.
//
// Records of what the other end says: a byte that names it (Word), one that chooses the descriptor
// beside it and whether a frame of the agent is waited for first, and what belongs to the word.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/fabric/shm_segment.h"
#include "tests/fuzz/fuzz_input.h"

namespace onetrip {
namespace {

enum Word : uint8_t {
  kBytes,     // a byte that counts, and bytes
  kGreeting,  // nothing
  kVerdict,   // 64 bytes; it is made a verdict, and the next answer's if an answer is due
  kReply,     // the same, a reply
  kWords,
};
constexpr size_t kRecordsMax = 16;
constexpr uint64_t kMemoryBytes = 64 << 10;
constexpr int kWaitMs = 20;

struct Record {
  bool waits = false;
  int descriptor = -1;
  std::string bytes;
};

template <typename Frame>
std::string TextOf(const Frame& frame) {
  const ShmFrame bytes = EncodeShm(frame);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The descriptors that a node, or something else, may hand over.
const std::array<UniqueFd, 4>& Descriptors() {
  static const std::array<UniqueFd, 4> descriptors = [] {
    std::array<UniqueFd, 4> made = {UniqueFd(), UniqueFd(memfd_create("onetrip-fuzz", MFD_CLOEXEC)),
                                    UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)),
                                    UniqueFd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
    CHECK(ftruncate(made[1].get(), kMemoryBytes) == 0);
    return made;
  }();
  return descriptors;
}

std::vector<Record> ReadScript(FuzzInput* input) {
  std::vector<Record> script;
  uint32_t answers = 0;
  while (!input->empty() && script.size() < kRecordsMax) {
    const uint8_t word = input->TakeByte() % kWords;
    const uint8_t how = input->TakeByte();
    Record& record = script.emplace_back();
    record.descriptor = Descriptors()[how % 4].get();
    record.waits = (how & 4) != 0;
    // A fault in what would be right: the answer to another question.
    const bool is_odd = (how & 8) != 0;
    if (word == kBytes) record.bytes = input->TakeText(input->TakeByte());
    if (word == kGreeting) record.bytes = TextOf(ShmGreeting{.nonce = 5});
    if (word == kVerdict) {
      auto verdict = input->Take<ShmVerdict>();
      if (verdict.refusal == 0 && verdict.memory_bytes == 0) verdict.memory_bytes = kMemoryBytes;
      // The first one ends the handshake.
      verdict.prefix = {.sequence = is_odd ? verdict.prefix.sequence : answers++};
      record.bytes = TextOf(verdict);
    } else if (word == kReply) {
      auto reply = input->Take<ShmReply>();
      reply.prefix = {.sequence = is_odd ? reply.prefix.sequence : answers++};
      record.bytes = TextOf(reply);
    }
  }
  return script;
}

// Where agents look for the node, for the life of the process.
class Place {
 public:
  Place() {
    std::string name = "/dev/shm/onetrip-fuzz-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    std::string reason;
    Result<UniqueFd> listener = ListenUnix(path(), 0600, 4, &reason);
    CHECK(listener.ok());
    listener_ = std::move(*listener);
  }
  ~Place() {
    unlink(path().c_str());
    rmdir(directory_.c_str());
  }
  [[nodiscard]] std::string path() const { return directory_ + "/node.sock"; }
  [[nodiscard]] int listener() const { return listener_.get(); }

 private:
  std::string directory_;
  UniqueFd listener_;
};

const Place& ThePlace() {
  static const Place place;
  return place;
}

void Send(int fd, const Record& record) {
  if (record.bytes.empty()) return;
  iovec io{.iov_base = const_cast<char*>(record.bytes.data()), .iov_len = record.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (record.descriptor >= 0) {
    // Twice: there should be one, and what is too much is not kept either.
    const std::array<int, 2> both = {record.descriptor, record.descriptor};
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(both));
    std::memcpy(CMSG_DATA(rights), both.data(), sizeof(both));
  }
  (void)sendmsg(fd, &message, MSG_NOSIGNAL);
}

// Plays the process at the socket.
void Play(const std::vector<Record>& script) {
  bool exhausted = false;
  const UniqueFd fd = Accept(ThePlace().listener(), &exhausted);
  if (!fd.valid()) return;
  for (const Record& record : script) {
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    ShmFrame frame;
    if (record.waits && poll(&waiting, 1, kWaitMs) > 0) {
      (void)!recv(fd.get(), frame.data(), frame.size(), MSG_DONTWAIT);
    }
    Send(fd.get(), record);
  }
}

void Use(ShmSegment* segment) {
  CHECK(segment->bytes() != 0 && segment->bytes() <= kMemoryBytes);
  auto* const bytes = reinterpret_cast<volatile char*>(segment->base());
  bytes[0] = bytes[segment->bytes() - 1];
  const ControlRequest request{.size_class = SizeClass(4), .owner = WorkerId{7}};
  const auto pending = segment->Start(request);
  const ControlReply reply = segment->Handle(request);
  CHECK(reply.outcome <= ControlReply::kLastOutcome);
  pending->done.wait(false, std::memory_order_acquire);
  std::string reason;
  const Status added = segment->AddWorker(WorkerId{8}, Epoch{3}, &reason);
  CHECK(added.ok() || !reason.empty());
}

int LowestFreeDescriptor() {
  const UniqueFd lowest(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return lowest.get();
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  onetrip::SetLogLevel(onetrip::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  FuzzInput input(data, size);
  const std::vector<Record> script = ReadScript(&input);
  const std::string path = ThePlace().path();
  const int lowest = LowestFreeDescriptor();
  {
    std::thread node([&] {
      pollfd waiting{.fd = ThePlace().listener(), .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, /*timeout=*/10'000) > 0) Play(script);
    });
    std::string reason;
    auto segment = ShmSegment::Attach({.path = path,
                                       .cluster = 21,
                                       .node = NodeId{2},
                                       .worker = WorkerId{7},
                                       .epoch = Epoch{3},
                                       .release_when_lost = size % 2 == 0,
                                       .timeout_ms = kWaitMs},
                                      &reason);
    CHECK(segment.ok() || (!reason.empty() && reason.find('\n') == std::string::npos));
    if (segment.ok()) Use(segment->get());
    if (segment.ok()) segment->reset();
    node.join();
  }
  CHECK(LowestFreeDescriptor() == lowest);
  return 0;
}
