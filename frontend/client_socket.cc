#include "frontend/client_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace onetrip {
namespace {

constexpr size_t kViews = 64;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Cuts `views` after `most` bytes; how many of them are left.
size_t CutAfter(size_t most, std::span<std::string_view> views) {
  for (size_t i = 0; i < views.size(); ++i) {
    views[i] = views[i].substr(0, most);
    most -= views[i].size();
    if (most == 0) return i + 1;
  }
  return views.size();
}

// As send(); `*offered` is how much there was to send.
ssize_t SendViews(int fd, std::span<const std::string_view> views, size_t* offered) {
  if (views.size() == 1) {
    *offered = views[0].size();
    return send(fd, views[0].data(), views[0].size(), MSG_NOSIGNAL);
  }
  std::array<iovec, kViews> pieces;
  *offered = 0;
  for (size_t i = 0; i < views.size(); ++i) {
    // sendmsg only reads through it.
    pieces[i] = {const_cast<char*>(views[i].data()), views[i].size()};
    *offered += views[i].size();
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = views.size();
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace

ClientSocket::Received ClientSocket::Receive(std::span<char> room, size_t* bytes) {
  const ssize_t received = recv(fd_.get(), room.data(), room.size(), 0);
  if (received < 0 && WouldBlock(errno)) return Received::kNothing;
  if (received <= 0) return Received::kGone;
  *bytes = static_cast<size_t>(received);
  traffic_.reads.Add();
  traffic_.input_bytes.Add(*bytes);
  moved_bytes_ += *bytes;
  return Received::kBytes;
}

bool ClientSocket::Send(OutputBuffer& output, uint64_t now_ns) {
  // More rounds only while the socket takes everything, and the turn stays short.
  size_t left = kMoveMaxBytes;
  for (int round = 0; round < 16 && !output.empty() && left > 0; ++round) {
    std::array<std::string_view, kViews> views;
    const size_t count = CutAfter(left, {views.data(), output.Views(views)});
    size_t offered = 0;
    const ssize_t sent = SendViews(fd_.get(), {views.data(), count}, &offered);
    if (sent < 0) return WouldBlock(errno);
    const auto bytes = static_cast<size_t>(sent);
    last_sent_ns_ = now_ns;
    traffic_.writes.Add();
    traffic_.output_bytes.Add(bytes);
    moved_bytes_ += bytes;
    output.Consume(bytes);
    if (bytes < offered) break;
    left -= offered;
  }
  return true;
}

}  // namespace onetrip
