// The tests of a memory node's process share these: a master that does what the test says, a map,
// and other processes that take the node's memory.
#ifndef ONETRIP_TESTS_UNIT_MEMNODE_NODE_PROCESS_FIXTURE_H_
#define ONETRIP_TESTS_UNIT_MEMNODE_NODE_PROCESS_FIXTURE_H_

#include <sys/prctl.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "memnode/node_process.h"
#include "tests/unit/memnode_shm_fixture.h"
#include "tests/unit/tcp_peer.h"

namespace onetrip {

inline constexpr uint64_t kOffered = 4 * kRegionBytes;
inline constexpr Epoch kEpoch{5};

// Questions that a session was asked, and its answers. Outlives the sessions.
struct Script {
  // Null: Join waits for Stop().
  std::function<Result<NodePlace>(const NodeOffer& offer, std::string* reason)> join;
  std::function<Status(const NodeAddress& address, std::string* reason)> serve;
  std::function<void()> stop;

  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;             // guarded by mutex, like the rest
  std::vector<std::string> events;  // in their order
  std::string told;                 // address, for people
  NodeOffer offer;
  NodeAddress address;
  NodeDuties* duties = nullptr;
  uint64_t mark = 0;  // that was noted last

  void Note(const std::string& event) {
    const std::lock_guard<std::mutex> lock(mutex);
    events.push_back(event);
    changed.notify_all();
  }
  void Await(const std::string& event) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock,
                 [&] { return std::find(events.begin(), events.end(), event) != events.end(); });
  }
};

class ScriptedSession final : public NodeMasterClient {
 public:
  explicit ScriptedSession(Script& script) : script_(script) {}

  Result<NodePlace> Join(const NodeOffer& offer, std::string* reason) override {
    script_.offer = offer;
    script_.Note("join");
    if (script_.join != nullptr) return script_.join(offer, reason);
    std::unique_lock<std::mutex> lock(script_.mutex);
    script_.changed.wait(lock, [this] { return script_.stopped; });
    *reason = "stopped";
    return Status(StatusCode::kUnavailable, "stopped");
  }
  Status NoteMark(uint64_t mark, uint64_t /*timeout_ms*/, std::string* /*reason*/) override {
    script_.mark = mark;
    return Status::Ok();
  }
  Status Serve(const NodeAddress& address, NodeDuties* duties, std::string* reason) override {
    script_.address = address;
    script_.duties = duties;
    script_.Note("serve");
    return script_.serve != nullptr ? script_.serve(address, reason) : Status::Ok();
  }
  void Stop(bool leave) override {
    if (script_.stop != nullptr) script_.stop();
    const std::lock_guard<std::mutex> lock(script_.mutex);
    if (!std::exchange(script_.stopped, true)) {
      script_.events.emplace_back(leave ? "leave" : "stop");
    }
    script_.changed.notify_all();
  }

 private:
  Script& script_;
};

// A map that places `regions` regions on kNode, and nothing elsewhere.
inline View MakeView(uint32_t regions) {
  View view;
  view.cluster = kCluster;
  view.epoch = kEpoch;
  view.replicas = 1;
  view.node_count = kNode.value + 1;
  for (uint32_t region = 0; region < regions; ++region) {
    RegionPlacement placement{};
    placement.nodes[0] = kNode;
    placement.base[0] = uint64_t{region} * kRegionBytes;
    view.regions.push_back(placement);
  }
  return view;
}

class MemnodeNodeProcessTest : public testing::Test {
 protected:
  MemnodeNodeProcessTest() {
    std::string name = testing::TempDir() + "node-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    options_ = DefaultMemnodeOptions();
    options_.master = "127.0.0.1:7400";
    options_.memory_bytes = kOffered + kRegionBytes - 1;
    options_.socket = directory_ + "/node.sock";
    Place(4);
  }
  ~MemnodeNodeProcessTest() override {
    process_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Place(uint32_t regions, const std::vector<WorkerId>& expelled = {}) {
    script_.join = [regions, expelled](const NodeOffer& /*offer*/, std::string* /*reason*/) {
      return NodePlace{
          .cluster = kCluster, .node = kNode, .view = MakeView(regions), .expelled = expelled};
    };
  }
  std::unique_ptr<NodeProcess> Make() {
    return std::make_unique<NodeProcess>(options_, Secret(secret_),
                                         [this](const std::string& address) {
                                           script_.told = address;
                                           script_.stopped = false;
                                           return std::make_unique<ScriptedSession>(script_);
                                         });
  }
  void Start() {
    process_ = Make();
    ASSERT_TRUE(process_->Start(&reason_).ok()) << reason_;
  }
  // Starts a process that must be refused for `why`, and leave nothing behind.
  void ExpectRefused(const std::string& why) {
    SCOPED_TRACE(why);
    reason_.clear();
    const auto process = Make();
    EXPECT_FALSE(process->Start(&reason_).ok());
    EXPECT_THAT(reason_, HasSubstr(why));
    EXPECT_THAT(reason_, testing::Not(HasSubstr("\n")));
    EXPECT_FALSE(process->is_interrupted());
    EXPECT_FALSE(std::filesystem::exists(options_.socket));
    if (!script_.events.empty()) {
      EXPECT_EQ(script_.events.back(), "leave");
    }
    script_.events.clear();
  }

  uint16_t port() const { return script_.address.tcp_port; }
  static TcpHello Hello(uint32_t worker, Epoch epoch = kEpoch) {
    TcpHello hello;
    hello.cluster = kCluster;
    hello.node = kNode.value;
    hello.worker = worker;
    hello.incarnation = 1;
    hello.epoch = epoch.value;
    return hello;
  }
  // The answer that a worker gets over tcp; kNone: welcome.
  TcpRefusal TcpAnswer(uint32_t worker, Epoch epoch = kEpoch) {
    const RawWorker raw(port(), Hello(worker, epoch), secret_);
    return raw.welcome() ? TcpRefusal::kNone : raw.refusal();
  }
  Result<std::unique_ptr<ShmSegment>> Attach(uint32_t worker, Epoch epoch = kEpoch) {
    return ShmSegment::Attach({.path = script_.address.shm_path,
                               .cluster = kCluster,
                               .node = kNode,
                               .worker = WorkerId{worker},
                               .epoch = epoch,
                               .timeout_ms = 20'000},
                              &reason_);
  }
  Status Fence(const std::vector<WorkerId>& workers, Epoch epoch) {
    reason_.clear();
    return script_.duties->Fence(workers, epoch, &reason_);
  }

  std::string directory_;
  std::string reason_;
  const char* secret_ = "";
  MemnodeOptions options_;
  Script script_;
  std::unique_ptr<NodeProcess> process_;
};

// Another process, which maps the memory, as `worker`, once it is told to, until it is killed. Made
// before there is a node: a child has what its parent has open and mapped, locks included.
class OtherProcess {
 public:
  OtherProcess(const std::string& path, uint32_t worker) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    talk_ = UniqueFd(ends[0]);
    const UniqueFd other_end(ends[1]);
    pid_ = fork();
    if (pid_ == 0) Live(path, worker, other_end.get());
  }
  ~OtherProcess() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
  }
  // Returns true if the node gave it the memory.
  bool Map() {
    char answer = 0;
    return write(talk_.get(), "m", 1) == 1 && read(talk_.get(), &answer, 1) == 1 && answer == 'y';
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // The signal that ended it.
  int Wait() {
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  [[noreturn]] static void Live(const std::string& path, uint32_t worker, int talk) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char word = 0;
    CHECK(read(talk, &word, 1) == 1);
    const UniqueFd fd = ConnectTo(path);
    ShmFrame frame;
    ShmGreeting greeting;
    CHECK(ReadFrame(fd, &frame));
    CHECK(DecodeShm(frame, &greeting) == ShmRefusal::kNone);
    SendFrame(fd, EncodeShm(ShmHello{.nonce = greeting.nonce,
                                     .cluster = kCluster,
                                     .epoch = kEpoch.value,
                                     .worker = worker,
                                     .node = kNode.value}));
    (void)!write(talk, Receive(fd) ? "y" : "n", 1);
    for (;;) pause();
  }
  static bool Receive(const UniqueFd& fd) {
    ShmFrame frame;
    iovec io{.iov_base = frame.data(), .iov_len = frame.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd.get(), &message, MSG_WAITALL) != static_cast<ssize_t>(frame.size()))
      return false;
    ShmVerdict verdict;
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    if (DecodeShm(frame, &verdict) != ShmRefusal::kNone || rights == nullptr) return false;
    int memory = -1;
    std::memcpy(&memory, CMSG_DATA(rights), sizeof(memory));
    return mmap(nullptr, verdict.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory,
                static_cast<off_t>(verdict.memory_offset)) != MAP_FAILED;
  }

  pid_t pid_ = 0;
  UniqueFd talk_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MEMNODE_NODE_PROCESS_FIXTURE_H_
