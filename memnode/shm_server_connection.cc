#include "memnode/shm_server_connection.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "client_core/base/secret.h"

namespace onetrip {
namespace {

constexpr int kFramesPerTurn = 16;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Sends one frame, with `descriptor` unless it is -1. A socket that does not take 64 bytes belongs
// to a peer that reads nothing.
bool SendFrame(int fd, const ShmFrame& frame, int descriptor = -1) {
  iovec bytes{.iov_base = const_cast<std::byte*>(frame.data()), .iov_len = frame.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(frame.size());
}

// Reads up to `bytes` and the sender's process id; there is no room for anything else, so
// descriptors that a peer sends are never taken.
ssize_t ReceiveFrom(int fd, std::byte* to, size_t bytes, pid_t* sender) {
  iovec into{.iov_base = to, .iov_len = bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
    ucred credentials{};
    std::memcpy(&credentials, CMSG_DATA(header), sizeof(credentials));
    *sender = credentials.pid;
  }
  return got;
}

}  // namespace

bool ShmConnection::Open() {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  pid_ = peer.pid;
  if (peer.uid != geteuid() && peer.uid != 0) return Refuse(ShmRefusal::kCredentials, 0);
  if (core_.connections.size() > core_.options.agents_max) return Refuse(ShmRefusal::kFull, 0);
  const int on = 1;
  descriptor_ = UniqueFd(pid_ > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)) : -1);
  if (!descriptor_.valid() ||
      setsockopt(fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
    return Refuse(ShmRefusal::kUnfenceable, 0);
  }
  // A process that answers with this number lived when its descriptor was opened, which is thus not
  // that of a later process with the same id.
  FillRandom(std::as_writable_bytes(std::span(&nonce_, 1)));
  if (!SendFrame(fd_.get(), EncodeShm(ShmGreeting{.nonce = nonce_}))) return false;
  core_.executor.timers().Add(
      &alarm_, core_.executor.NowNs() + core_.options.handshake_timeout_ms * 1'000'000);
  watcher_.WatchReads(true);
  return true;
}

void ShmConnection::LogRefusal(ShmRefusal refusal, uint32_t worker) {
  core_.refused.Add();
  core_.log.Warn(uint64_t{worker} << 8 | static_cast<uint8_t>(refusal), core_.executor.NowNs(),
                 "shm: " + Name() + ", worker " + std::to_string(worker) +
                     " refused: " + ShmRefusalText(refusal));
}

bool ShmConnection::Refuse(ShmRefusal refusal, uint32_t worker) {
  LogRefusal(refusal, worker);
  SendFrame(fd_.get(), EncodeShm(ShmVerdict{.refusal = static_cast<uint8_t>(refusal),
                                            .epoch = core_.epoch.value}));
  return false;
}

void ShmConnection::OnReadable() {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const ssize_t got = ReceiveFrom(fd_.get(), input_.data() + input_bytes_,
                                    input_.size() - input_bytes_, &sender_);
    if (got < 0 && WouldBlock()) return;
    if (got <= 0) return core_.Remove(this);
    input_bytes_ += static_cast<size_t>(got);
    if (input_bytes_ < input_.size()) continue;
    input_bytes_ = 0;
    if (!OnFrame()) return core_.Remove(this);
  }
}

bool ShmConnection::OnFrame() {
  if (process_ == nullptr) {
    ShmHello hello;
    const ShmRefusal refusal = DecodeShm(input_, &hello);
    return refusal == ShmRefusal::kNone ? OnHello(hello) : Refuse(refusal, 0);
  }
  ShmControl control;
  if (DecodeShm(input_, &control) == ShmRefusal::kNone) return OnControl(control);
  ShmHello hello;
  if (DecodeShm(input_, &hello, ShmFrameKind::kWorker) == ShmRefusal::kNone) return OnWorker(hello);
  ShmDetach detach;
  if (DecodeShm(input_, &detach) == ShmRefusal::kNone) return OnDetach();
  return Malformed();
}

bool ShmConnection::Malformed() {
  core_.errors.Add();
  core_.log.Warn(uint64_t{static_cast<uint32_t>(pid_)} << 8 | 0xffU, core_.executor.NowNs(),
                 "shm: connection of " + Name() + " closed: a frame is malformed");
  return false;
}

bool ShmConnection::OnHello(const ShmHello& hello) {
  if (hello.nonce != nonce_) return Refuse(ShmRefusal::kMalformed, hello.worker);
  // A socket that went to another process does not tell which process will have the mapping.
  if (sender_ != pid_) return Refuse(ShmRefusal::kUnfenceable, hello.worker);
  Result<UniqueFd> memory = core_.backing.Share();
  if (!memory.ok()) return Refuse(ShmRefusal::kFull, hello.worker);
  const ShmRefusal refusal = core_.Admit(hello, pid_, &descriptor_, &process_);
  if (refusal != ShmRefusal::kNone) return Refuse(refusal, hello.worker);
  alarm_.Cancel();
  core_.welcomed.Add();
  return SendFrame(fd_.get(),
                   EncodeShm(ShmVerdict{.prefix = {.sequence = hello.prefix.sequence},
                                        .memory_bytes = core_.backing.bytes(),
                                        .memory_offset = core_.backing.share_offset(),
                                        .incarnation = core_.backing.incarnation(),
                                        .epoch = core_.epoch.value}),
                   memory->get());
}

bool ShmConnection::OnWorker(const ShmHello& hello) {
  const ShmRefusal refusal = core_.CheckWorker(hello, process_);
  if (refusal == ShmRefusal::kNone) {
    core_.EnterWorker(WorkerId{hello.worker}, process_);
  } else {
    LogRefusal(refusal, hello.worker);
  }
  return SendFrame(fd_.get(), EncodeShm(ShmVerdict{.prefix = {.sequence = hello.prefix.sequence},
                                                   .refusal = static_cast<uint8_t>(refusal),
                                                   .epoch = core_.epoch.value}));
}

bool ShmConnection::OnControl(const ShmControl& control) {
  core_.requests.Add();
  if (control.kind > static_cast<uint8_t>(ControlRequest::kLastKind)) return Malformed();
  ShmReply reply{.prefix = {.sequence = control.prefix.sequence}, .outcome = kShmUnavailable};
  if (core_.endpoint.reachable()) {
    const ControlReply done =
        core_.endpoint.Handle({.kind = static_cast<ControlRequest::Kind>(control.kind),
                               .size_class = SizeClass(control.size_class),
                               .owner = WorkerId{control.owner},
                               .block = GlobalAddr(control.block),
                               .from = WorkerId{control.from}});
    reply.outcome = static_cast<uint8_t>(done.outcome);
    reply.size_class = done.size_class.index();
    reply.is_tight = done.is_tight ? 1 : 0;
    reply.block = done.block.bits();
  }
  return SendFrame(fd_.get(), EncodeShm(reply));
}

bool ShmConnection::OnDetach() {
  if (process_->mappings > 0) --process_->mappings;
  return false;
}

}  // namespace onetrip
