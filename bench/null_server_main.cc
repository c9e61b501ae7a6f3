// The floor of every RESP benchmark on one thread: a bare epoll loop that answers canned bytes.
//
// Why it exists: redis-benchmark, the kernel's loopback and the RESP framing cost the same for
// every server. What remains of a server's time after subtracting this program's is the server's
// own work. It keeps nothing, so it proves nothing about correctness; compare_redis.py uses it as
// the floor.
//
// Per readiness event and connection: one read, a scan that counts whole commands, one write.
// Usage: null_server PORT (TCP on 127.0.0.1; ends on SIGTERM or SIGINT). One thread.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace onetrip {
namespace {

constexpr size_t kInputBytes = size_t{256} << 10;
constexpr int kEventsMax = 256;
constexpr size_t kValueBytes = 64;

constexpr std::string_view kOk = "+OK\r\n";
constexpr std::string_view kPong = "+PONG\r\n";
constexpr std::string_view kOne = ":1\r\n";
constexpr std::string_view kNil = "$-1\r\n";
// redis-benchmark asks for `save` and `appendonly` and only looks at the shape of the answer.
constexpr std::string_view kConfig = "*2\r\n$4\r\nsave\r\n$0\r\n\r\n";

std::string ValueReply() {
  return "$" + std::to_string(kValueBytes) + "\r\n" + std::string(kValueBytes, 'x') + "\r\n";
}

// One command in the input: its first word and its length in bytes.
struct Frame {
  std::string_view verb;
  size_t size_bytes = 0;
};

enum class Scan { kFrame, kIncomplete, kBroken };

// Reads the decimal number that ends at the next CRLF. `cursor` moves behind the CRLF.
Scan ReadNumber(std::string_view input, size_t* cursor, long* number) {
  const size_t end = input.find('\r', *cursor);
  if (end == std::string_view::npos || end + 1 >= input.size()) return Scan::kIncomplete;
  const auto [last, error] = std::from_chars(input.data() + *cursor, input.data() + end, *number);
  if (error != std::errc() || last != input.data() + end) return Scan::kBroken;
  *cursor = end + 2;
  return Scan::kFrame;
}

// Recognises one command at the start of `input`: an array of bulks, or an inline line.
Scan NextFrame(std::string_view input, Frame* frame) {
  if (input.empty()) return Scan::kIncomplete;
  if (input[0] != '*') {
    const size_t end = input.find('\n');
    if (end == std::string_view::npos) return Scan::kIncomplete;
    *frame = {input.substr(0, input.find_first_of(" \r\n")), end + 1};
    return Scan::kFrame;
  }
  size_t cursor = 1;
  long bulks = 0;
  if (const Scan scan = ReadNumber(input, &cursor, &bulks); scan != Scan::kFrame) return scan;
  for (long i = 0; i < bulks; ++i) {
    if (cursor >= input.size()) return Scan::kIncomplete;
    if (input[cursor] != '$') return Scan::kBroken;
    ++cursor;
    long bulk_bytes = 0;
    if (const Scan scan = ReadNumber(input, &cursor, &bulk_bytes); scan != Scan::kFrame) {
      return scan;
    }
    if (bulk_bytes < 0 || static_cast<size_t>(bulk_bytes) > kInputBytes) return Scan::kBroken;
    if (cursor + bulk_bytes + 2 > input.size()) return Scan::kIncomplete;
    if (i == 0) frame->verb = input.substr(cursor, bulk_bytes);
    cursor += bulk_bytes + 2;
  }
  frame->size_bytes = cursor;
  return Scan::kFrame;
}

// The canned answer, by the verb's first letters: this is the cheapest test that tells apart what
// redis-benchmark and the preload send.
std::string_view CannedReply(std::string_view verb) {
  static const std::string value_reply = ValueReply();
  if (verb.size() < 3) return kNil;
  switch (verb[0] | 0x20) {
    case 'g':
      return value_reply;
    case 'a':
    case 'd':
    case 'i':
      return kOne;
    case 's':
      return verb.size() == std::string_view("SETNX").size() ? kOne : kOk;
    case 'p':
      return kPong;
    case 'c':
      return kConfig;
    default:
      return kOk;
  }
}

struct Connection {
  explicit Connection(int fd) : fd(fd) {}
  ~Connection() { close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd;
  size_t filled_bytes = 0;
  std::array<char, kInputBytes> input;
  std::string output;
};

// One turn of a connection. False when it is to be closed.
bool Serve(Connection* connection) {
  const ssize_t got = read(connection->fd, connection->input.data() + connection->filled_bytes,
                           kInputBytes - connection->filled_bytes);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  connection->filled_bytes += static_cast<size_t>(got);

  std::string_view rest(connection->input.data(), connection->filled_bytes);
  connection->output.clear();
  for (;;) {
    Frame frame;
    const Scan scan = NextFrame(rest, &frame);
    if (scan == Scan::kBroken) return false;
    if (scan == Scan::kIncomplete) break;
    connection->output += CannedReply(frame.verb);
    rest.remove_prefix(frame.size_bytes);
  }
  if (rest.size() == kInputBytes) return false;  // One command larger than the buffer.
  memmove(connection->input.data(), rest.data(), rest.size());
  connection->filled_bytes = rest.size();

  if (connection->output.empty()) return true;
  // Replies are far smaller than the socket buffer; a peer that lets them pile up is dropped.
  const ssize_t sent =
      send(connection->fd, connection->output.data(), connection->output.size(), MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(connection->output.size());
}

volatile sig_atomic_t stop_requested = 0;

void RequestStop(int /*signal*/) { stop_requested = 1; }

std::optional<int> Listen(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return std::nullopt;
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener, 511) != 0) {
    close(listener);
    return std::nullopt;
  }
  return listener;
}

void Accept(int epoll, int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto connection = std::make_unique<Connection>(fd);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = connection.get();
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) (void)connection.release();
}

// Serves until a signal asks to stop. The event's pointer owns its connection.
void Run(int epoll, int listener) {
  std::array<epoll_event, kEventsMax> events;
  while (!stop_requested) {
    const int ready = epoll_wait(epoll, events.data(), kEventsMax, -1);
    for (int i = 0; i < ready; ++i) {
      if (events[i].data.ptr == nullptr) {
        Accept(epoll, listener);
        continue;
      }
      auto* connection = static_cast<Connection*>(events[i].data.ptr);
      if (!Serve(connection)) delete connection;
    }
  }
}

int Main(int argc, char** argv) {
  long port = 0;
  if (argc == 2) std::from_chars(argv[1], argv[1] + strlen(argv[1]), port);
  if (port < 1 || port > 65535) {
    fprintf(stderr, "usage: null_server PORT (1..65535, on 127.0.0.1)\n");
    return 1;
  }
  const std::optional<int> listener = Listen(static_cast<uint16_t>(port));
  if (!listener) {
    fprintf(stderr, "null_server: cannot listen on 127.0.0.1:%ld: %s\n", port, strerror(errno));
    return 1;
  }
  // No SA_RESTART: epoll_wait must return so that the loop sees the request.
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  epoll_ctl(epoll, EPOLL_CTL_ADD, *listener, &event);
  Run(epoll, *listener);
  close(epoll);
  close(*listener);
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Main(argc, argv); }
