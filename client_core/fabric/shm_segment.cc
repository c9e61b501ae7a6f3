#include "client_core/fabric/shm_segment.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include "client_core/base/log.h"

namespace onetrip {
namespace {

using SteadyClock = std::chrono::steady_clock;

Status Refuse(std::string* reason, StatusCode code, std::string text) {
  *reason = std::move(text);
  return Status(code, "the memory node cannot be attached to");
}

// Returns the code that tells the caller what it can do about a refusal.
StatusCode CodeOf(ShmRefusal refusal) {
  switch (refusal) {
    case ShmRefusal::kStaleEpoch:
    case ShmRefusal::kFenced:
      return StatusCode::kFenced;
    case ShmRefusal::kFull:
    case ShmRefusal::kStopping:
    case ShmRefusal::kSilent:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInvalidArgument;
  }
}

// Waits for `events`; false once `end` has passed.
bool WaitFor(int fd, short events, SteadyClock::time_point end) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    pollfd waiting{.fd = fd, .events = events, .revents = 0};
    const int result = poll(&waiting, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (result > 0) return true;
    if (result == 0 || errno != EINTR) return false;
  }
}

// Takes the descriptors that came with a message: the first is kept, there should be no others.
void TakeDescriptors(msghdr* message, UniqueFd* first) {
  for (cmsghdr* at = CMSG_FIRSTHDR(message); at != nullptr; at = CMSG_NXTHDR(message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(fd));
      UniqueFd taken(fd);
      if (first != nullptr && !first->valid()) *first = std::move(taken);
    }
  }
}

}  // namespace

std::string ShmSegment::Name() const {
  return "memory node " + std::to_string(options_.node.value) + " at " + options_.path;
}

Result<std::unique_ptr<ShmSegment>> ShmSegment::Attach(const ShmAttachOptions& options,
                                                       std::string* reason) {
  std::unique_ptr<ShmSegment> segment(new ShmSegment(options));
  Status status = segment->Connect(reason);
  if (status.ok()) status = segment->SayHello(reason);
  if (!status.ok()) return status;
  segment->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!segment->wake_.valid()) {
    return Refuse(reason, StatusCode::kUnavailable,
                  segment->Name() + ": no descriptor to watch it with");
  }
  segment->watcher_ = std::thread([watched = segment.get()] { watched->Watch(); });
  return segment;
}

ShmSegment::~ShmSegment() {
  if (watcher_.joinable()) {
    ending_ = true;
    WakeWatcher();
    watcher_.join();
  }
  if (base_ != nullptr) munmap(base_, bytes_);
  // In this order: what the node is told is true.
  if (welcome_) Send(EncodeShm(ShmDetach{}));
}

Status ShmSegment::Connect(std::string* reason) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.path.size() >= sizeof(address.sun_path)) {
    return Refuse(reason, StatusCode::kInvalidArgument, Name() + ": the socket's path is too long");
  }
  std::memcpy(address.sun_path, options_.path.c_str(), options_.path.size() + 1);
  socket_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid() ||
      connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Refuse(reason, StatusCode::kUnavailable, Name() + ": " + std::strerror(errno));
  }
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      (peer.uid != geteuid() && peer.uid != 0)) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  Name() + ": refused: " + ShmRefusalText(ShmRefusal::kCredentials));
  }
  return Status::Ok();
}

Status ShmSegment::SayHello(std::string* reason) {
  const auto refused = [&](const char* by, ShmRefusal refusal) {
    return Refuse(reason, CodeOf(refusal), Name() + by + ShmRefusalText(refusal));
  };
  ShmFrame frame;
  ShmGreeting greeting;
  ShmVerdict verdict;
  if (!Receive(&frame, nullptr)) return refused(": ", ShmRefusal::kSilent);
  // A node that wants nothing of this process says so instead of greeting it.
  ShmRefusal wrong = DecodeShm(frame, &verdict);
  if (wrong != ShmRefusal::kNone) {
    wrong = DecodeShm(frame, &greeting);
    if (wrong != ShmRefusal::kNone) return refused(": refused: ", wrong);
    UniqueFd memory;
    if (!Send(EncodeShm(ShmHello{.nonce = greeting.nonce,
                                 .cluster = options_.cluster,
                                 .epoch = options_.epoch.value,
                                 .worker = options_.worker.value,
                                 .node = options_.node.value,
                                 .incarnation = options_.incarnation})) ||
        !Receive(&frame, &memory)) {
      return refused(": ", ShmRefusal::kSilent);
    }
    wrong = DecodeShm(frame, &verdict);
    if (wrong != ShmRefusal::kNone) return refused(": refused: ", wrong);
    welcome_ = verdict.refusal == 0;
    if (welcome_) return Map(verdict, memory, reason);
  }
  return refused(": refused by the node: ", static_cast<ShmRefusal>(verdict.refusal));
}

Status ShmSegment::Map(const ShmVerdict& verdict, const UniqueFd& memory, std::string* reason) {
  struct stat info {};
  const bool has_size = memory.valid() && fstat(memory.get(), &info) == 0;
  const auto file_bytes = has_size ? static_cast<uint64_t>(info.st_size) : 0;
  // Beyond the file's end an access would end the process.
  if (verdict.memory_bytes == 0 || verdict.memory_bytes > file_bytes ||
      verdict.memory_offset > file_bytes - verdict.memory_bytes) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  Name() + ": refused: it hands over less memory than it says");
  }
  void* mapped = mmap(nullptr, verdict.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      memory.get(), static_cast<off_t>(verdict.memory_offset));
  if (mapped == MAP_FAILED) {
    return Refuse(reason, StatusCode::kUnavailable,
                  Name() + ": its memory cannot be mapped: " + std::strerror(errno));
  }
  base_ = static_cast<std::byte*>(mapped);
  bytes_ = verdict.memory_bytes;
  incarnation_ = verdict.incarnation;
  // A child would keep the memory when this process is ended for it.
  if (madvise(mapped, bytes_, MADV_DONTFORK) != 0) {
    return Refuse(reason, StatusCode::kUnavailable,
                  Name() + ": its memory cannot be kept from children: " + std::strerror(errno));
  }
  // Speed only, and a dump of this process needs none of it.
  (void)madvise(mapped, bytes_, MADV_HUGEPAGE);
  (void)madvise(mapped, bytes_, MADV_DONTDUMP);
  return Status::Ok();
}

Status ShmSegment::AddWorker(WorkerId worker, Epoch epoch, std::string* reason) {
  const ShmHello hello{.cluster = options_.cluster,
                       .epoch = epoch.value,
                       .worker = worker.value,
                       .node = options_.node.value,
                       .incarnation = incarnation_};
  // Shared: the watcher may still be in set_value() when the answer is here.
  const auto told = std::make_shared<std::promise<std::optional<ShmVerdict>>>();
  Ask(EncodeShm(hello, ShmFrameKind::kWorker), [told](const ShmFrame* answer) {
    ShmVerdict verdict;
    const bool ok = answer != nullptr && DecodeShm(*answer, &verdict) == ShmRefusal::kNone;
    told->set_value(ok ? std::optional(verdict) : std::nullopt);
  });
  const std::optional<ShmVerdict> verdict = told->get_future().get();
  if (!verdict.has_value()) {
    return Refuse(reason, StatusCode::kUnavailable, Name() + ": the node is lost");
  }
  if (verdict->refusal == 0) return Status::Ok();
  const auto refusal = static_cast<ShmRefusal>(verdict->refusal);
  return Refuse(reason, CodeOf(refusal),
                Name() + ": worker " + std::to_string(worker.value) +
                    " refused by the node: " + ShmRefusalText(refusal));
}

ControlReply ShmSegment::Handle(const ControlRequest& request) {
  const std::shared_ptr<const PendingControl> pending = Start(request);
  pending->done.wait(false, std::memory_order_acquire);
  return pending->reply.value_or(ControlReply{ControlReply::Outcome::kConflict, request.block});
}

std::shared_ptr<const PendingControl> ShmSegment::Start(const ControlRequest& request) {
  const ShmControl control{.kind = static_cast<uint8_t>(request.kind),
                           .size_class = request.size_class.index(),
                           .owner = request.owner.value,
                           .block = request.block.bits(),
                           .from = request.from.value};
  auto pending = std::make_shared<PendingControl>();
  Ask(EncodeShm(control), [this, pending](const ShmFrame* answer) {
    ShmReply reply;
    if (answer == nullptr) {
    } else if (DecodeShm(*answer, &reply) != ShmRefusal::kNone ||
               reply.outcome > static_cast<uint8_t>(ControlReply::kLastOutcome)) {
      Lose(reply.outcome == kShmUnavailable ? "the node is lost to itself" : "a malformed answer");
    } else {
      pending->reply = {static_cast<ControlReply::Outcome>(reply.outcome), GlobalAddr(reply.block),
                        SizeClass(reply.size_class), reply.is_tight != 0};
    }
    pending->done.store(true, std::memory_order_release);
    pending->done.notify_all();
  });
  return pending;
}

void ShmSegment::Ask(ShmFrame frame, AnswerFn done) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_ && reachable()) {
      questions_.push_back({frame, std::move(done)});
      if (questions_.size() == 1) SendFirst();
      return;
    }
  }
  done(nullptr);
}

void ShmSegment::SendFirst() {
  ShmFrame& frame = questions_.front().frame;
  ShmPrefix prefix = DecodeShmPrefix(frame);
  prefix.sequence = ++sequence_;
  std::memcpy(frame.data(), &prefix, sizeof(prefix));
  answer_end_ = SteadyClock::now() + std::chrono::milliseconds(options_.timeout_ms);
  if (!Send(frame)) Lose("it takes no question");
  WakeWatcher();
}

bool ShmSegment::Send(const ShmFrame& frame) {
  // One frame at a time is under way: a socket without room for it is of no use.
  return send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(frame.size());
}

bool ShmSegment::Receive(ShmFrame* frame, UniqueFd* memory) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(options_.timeout_ms);
  size_t have = 0;
  while (have < frame->size()) {
    iovec into{.iov_base = frame->data() + have, .iov_len = frame->size() - have};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) TakeDescriptors(&message, memory);
    if (got > 0) have += static_cast<size_t>(got);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    if (!WaitFor(socket_.get(), POLLIN, end)) return false;
  }
  return true;
}

void ShmSegment::Lose(const char* why) {
  if (lost_.exchange(true)) return;
  // First: a worker that meets the other memory finds the segment unreachable afterwards.
  SetReachable(false);
  if (options_.release_when_lost) {
    // In one step, for others may be in the middle of an access: by the bare system call, since
    // sanitizers take mmap() for a write of all that memory. A refusal keeps the old mapping.
    syscall(SYS_mmap, base_, bytes_, PROT_READ | PROT_WRITE,
            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  LogWarning("shm: " + Name() + " lost: " + why);
}

// ---- The watcher's thread ----

void ShmSegment::WakeWatcher() const {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

int ShmSegment::AnswerWithinMs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (questions_.empty()) return -1;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(answer_end_ - SteadyClock::now());
  // Rounded up: it must be over then.
  return left.count() < 0 ? 0 : static_cast<int>(left.count()) + 1;
}

void ShmSegment::Watch() {
  ShmFrame answer;
  size_t have = 0;
  while (!lost_ && !ending_) {
    std::array<pollfd, 2> watched{
        {{.fd = socket_.get(), .events = POLLIN | POLLRDHUP, .revents = 0},
         {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(watched.data(), watched.size(), AnswerWithinMs());
    uint64_t woken = 0;
    if (ready > 0 && watched[1].revents != 0) (void)!read(wake_.get(), &woken, sizeof(woken));
    if (ready > 0 && (watched[0].revents & ~POLLIN) != 0) {
      Lose("it has ended or closed the connection");
    } else if (ready > 0 && watched[0].revents != 0) {
      if (!ReadSome(&answer, &have)) Lose("it has ended or closed the connection");
      if (have == answer.size()) {
        have = 0;
        OnAnswer(answer);
      }
    } else if (AnswerWithinMs() == 0) {
      Lose("no answer in time");
    }
  }
  std::deque<Question> left;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    left.swap(questions_);
  }
  for (const Question& question : left) question.done(nullptr);
}

bool ShmSegment::ReadSome(ShmFrame* answer, size_t* have) const {
  const ssize_t got =
      recv(socket_.get(), answer->data() + *have, answer->size() - *have, MSG_DONTWAIT);
  if (got > 0) *have += static_cast<size_t>(got);
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

void ShmSegment::OnAnswer(const ShmFrame& answer) {
  AnswerFn done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (questions_.empty() || DecodeShmPrefix(answer).sequence != sequence_) {
      return Lose("an answer to another question");
    }
    done = std::move(questions_.front().done);
    questions_.pop_front();
    if (!questions_.empty()) SendFirst();
  }
  done(&answer);
}

}  // namespace onetrip
