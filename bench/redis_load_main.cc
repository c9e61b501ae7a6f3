// A client that loads a RESP server with one command, for what redis-benchmark has no option for:
// every key once, in order (inserts, deletes), and keys drawn by Zipf's law.
//
//   redis_load --port 6379 --command "SET {key} {value}" --order sequential --first 0 --keys
//   1000000 redis_load --port 6379 --command "GET {key}" --order zipf --keys 1000000 --seconds 2
//
// {key} is key:%012llu of a number in [first, first + keys), {value} is --value-bytes long. Orders:
// sequential (ends behind the last key), uniform and zipf (--theta, .99; popular keys lie
// anywhere). One thread, --clients connections, each of which sends --pipeline commands and then
// waits for all of their replies. Prints one line of JSON. A reply's latency counts from the
// sending of its pipeline. Exit code 1 at the first error reply, and when the connection is lost.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"

namespace onetrip {
namespace {

constexpr std::string_view kKeyHole = "{key}";
constexpr std::string_view kValueHole = "{value}";
constexpr size_t kDigits = 12;

[[noreturn]] void Fail(const std::string& message) {
  fprintf(stderr, "redis_load: %s\n", message.c_str());
  exit(1);
}

uint64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

// As printf takes it.
unsigned long long Number(uint64_t value) { return value; }

struct Options {
  uint16_t port = 6379;
  std::string command = "GET {key}";
  std::string order = "uniform";
  uint64_t first = 0;
  uint64_t keys = 100'000;
  double seconds = 1;
  double theta = 0.99;
  uint32_t clients = 50;
  uint32_t pipeline = 1;
  size_t value_bytes = 64;
  uint64_t seed = 1;
};

// Counts by logarithm, 64 steps to the double: within 1.6 % of the truth.
class Latencies {
 public:
  void Add(uint64_t ns, uint64_t replies) {
    counts_[IndexOf(ns)] += replies;
    total_ += replies;
    most_ns_ = std::max(most_ns_, ns);
  }
  // REQUIRES: 0 < share <= 1.
  [[nodiscard]] double AtUs(double share) const {
    const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(total_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) return static_cast<double>(LeastOf(i)) / 1000;
    }
    return 0;
  }
  [[nodiscard]] uint64_t total() const { return total_; }
  [[nodiscard]] double MostUs() const { return static_cast<double>(most_ns_) / 1000; }

 private:
  static constexpr uint32_t kStepBits = 6;
  static size_t IndexOf(uint64_t ns) {
    if (ns < (1U << kStepBits)) return ns;
    const auto shift = static_cast<uint32_t>(std::bit_width(ns)) - kStepBits - 1;
    return (size_t{shift + 1} << kStepBits) + ((ns >> shift) - (1U << kStepBits));
  }
  static uint64_t LeastOf(size_t index) {
    const size_t octave = index >> kStepBits;
    const uint64_t step = index & ((1U << kStepBits) - 1);
    return octave == 0 ? step : (step + (1U << kStepBits)) << (octave - 1);
  }

  std::array<uint64_t, size_t{64} << kStepBits> counts_{};
  uint64_t total_ = 0;
  uint64_t most_ns_ = 0;
};

// The numbers of the keys to come, from 0.
class KeyOrder {
 public:
  explicit KeyOrder(const Options& options)
      : kind_(options.order == "sequential" ? Kind::kSequential
              : options.order == "zipf"     ? Kind::kZipf
                                            : Kind::kUniform),
        keys_(options.keys),
        theta_(options.theta),
        rng_(options.seed) {
    if (kind_ != Kind::kZipf) return;
    // Gray et al., "Quickly generating billion-record synthetic databases", as YCSB.
    for (uint64_t i = 1; i <= keys_; ++i) zeta_ += 1 / std::pow(static_cast<double>(i), theta_);
    alpha_ = 1 / (1 - theta_);
    half_ = 1 + std::pow(0.5, theta_);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(keys_), 1 - theta_)) / (1 - half_ / zeta_);
  }

  [[nodiscard]] bool ends() const { return kind_ == Kind::kSequential; }
  [[nodiscard]] uint64_t left() const { return keys_ - next_; }  // REQUIRES: ends()
  uint64_t Next() {
    switch (kind_) {
      case Kind::kSequential:
        return next_++;
      case Kind::kUniform:
        return rng_.Below(keys_);
      case Kind::kZipf:
        // A prime above the number of keys: each rank has a key of its own.
        return DrawRank() * 2'654'435'761 % keys_;
    }
    return 0;
  }

 private:
  enum class Kind : uint8_t { kSequential, kUniform, kZipf };
  uint64_t DrawRank() {
    const double u = rng_.NextDouble();
    const double uz = u * zeta_;
    if (uz < 1) return 0;
    if (uz < half_) return 1;
    const double rank = static_cast<double>(keys_) * std::pow(eta_ * u - eta_ + 1, alpha_);
    return std::min(static_cast<uint64_t>(rank), keys_ - 1);
  }

  const Kind kind_;
  const uint64_t keys_;
  const double theta_;
  Rng rng_;
  uint64_t next_ = 0;
  double zeta_ = 0;
  double alpha_ = 0;
  double half_ = 0;
  double eta_ = 0;
};

// The command's bytes, with a hole for the digits of its key.
class Request {
 public:
  explicit Request(const Options& options) : first_(options.first) {
    std::vector<std::string> words;
    std::string_view left = options.command;
    while (!left.empty()) {
      const std::string_view word = left.substr(0, left.find(' '));
      left.remove_prefix(std::min(left.size(), word.size() + 1));
      words.push_back(word == kKeyHole     ? "key:" + std::string(kDigits, '0')
                      : word == kValueHole ? std::string(options.value_bytes, 'x')
                                           : std::string(word));
    }
    bytes_ = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      bytes_ += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    hole_ = bytes_.find("key:" + std::string(kDigits, '0'));
    if (hole_ == std::string::npos) Fail("--command has no {key}");
    hole_ += std::strlen("key:");
  }

  void AppendTo(uint64_t key, std::string* out) const {
    const size_t at = out->size() + hole_;
    out->append(bytes_);
    uint64_t left = first_ + key;
    for (size_t i = kDigits; i-- > 0; left /= 10) {
      (*out)[at + i] = static_cast<char>('0' + left % 10);
    }
  }

 private:
  const uint64_t first_;
  std::string bytes_;
  size_t hole_;
};

// Counts whole replies in a stream of them: statuses, integers, bulks, and flat arrays of these.
class ReplyCounter {
 public:
  // The whole replies that `bytes`, which follow those of the last call, bring to their end.
  uint64_t Feed(std::string_view bytes) {
    const uint64_t before = replies_;
    input_.append(bytes);
    size_t at = 0;
    while (TakeOne(&at)) {
    }
    input_.erase(0, at);
    return replies_ - before;
  }
  // Nil replies and zeros so far: keys that were missing, for GET, DEL and SETNX.
  [[nodiscard]] uint64_t misses() const { return misses_; }

 private:
  bool TakeOne(size_t* at) {
    const size_t end = input_.find("\r\n", *at);
    if (end == std::string::npos) return false;
    const std::string_view line(input_.data() + *at, end - *at);
    size_t behind = end + 2;
    if (line[0] == '-') Fail("error reply: " + std::string(line));
    if (line == "$-1" || line == ":0") ++misses_;
    if (line[0] == '*') {
      elements_left_ += static_cast<uint64_t>(std::atoll(line.data() + 1));
      *at = behind;
      if (elements_left_ == 0) ++replies_;
      return true;
    }
    if (line[0] == '$' && line[1] != '-') {
      behind += static_cast<size_t>(std::atoll(line.data() + 1)) + 2;
      if (behind > input_.size()) return false;
    }
    *at = behind;
    if (elements_left_ <= 1) ++replies_;
    if (elements_left_ > 0) --elements_left_;
    return true;
  }

  std::string input_;
  uint64_t elements_left_ = 0;
  uint64_t replies_ = 0;
  uint64_t misses_ = 0;
};

class Connection {
 public:
  explicit Connection(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      Fail(std::string("connect: ") + std::strerror(errno));
    }
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  // A pipeline of at most `most` commands. False: there is no key left.
  bool Send(const Request& request, KeyOrder& order, uint64_t most) {
    const uint64_t count = order.ends() ? std::min(most, order.left()) : most;
    if (count == 0) return false;
    output_.clear();
    for (uint64_t i = 0; i < count; ++i) request.AppendTo(order.Next(), &output_);
    awaited_ = count;
    sent_ns_ = NowNs();
    // A server that does not read ahead of its replies is waited for: they fit into the buffers.
    for (size_t sent = 0; sent < output_.size();) {
      const ssize_t n = send(fd_, output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) Fail(std::string("send: ") + std::strerror(errno));
      sent += static_cast<size_t>(n);
    }
    return true;
  }

  // Takes what has come; true when nothing is awaited any more.
  bool Receive(Latencies* latencies) {
    static std::array<char, size_t{256} << 10> buffer;
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
    if (n <= 0) Fail("the server closed the connection");
    const uint64_t replies = counter_.Feed({buffer.data(), static_cast<size_t>(n)});
    if (replies > awaited_) Fail("more replies than commands");
    if (replies > 0) latencies->Add(NowNs() - sent_ns_, replies);
    awaited_ -= replies;
    return awaited_ == 0;
  }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] uint64_t misses() const { return counter_.misses(); }

 private:
  const int fd_;
  std::string output_;
  ReplyCounter counter_;
  uint64_t awaited_ = 0;
  uint64_t sent_ns_ = 0;
};

int Run(const Options& options) {
  KeyOrder order(options);
  const Request request(options);
  std::vector<std::unique_ptr<Connection>> connections;
  const int poller = epoll_create1(0);
  for (uint32_t i = 0; i < options.clients; ++i) {
    connections.push_back(std::make_unique<Connection>(options.port));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connections.back().get();
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connections.back()->fd(), &event) != 0) Fail("epoll_ctl");
  }
  Latencies latencies;
  const uint64_t start_ns = NowNs();
  const uint64_t end_ns =
      order.ends() ? ~uint64_t{0} : start_ns + static_cast<uint64_t>(options.seconds * 1e9);
  uint64_t busy = 0;
  for (auto& connection : connections) {
    busy += connection->Send(request, order, options.pipeline) ? 1 : 0;
  }
  std::array<epoll_event, 64> events;
  while (busy > 0) {
    const int ready = epoll_wait(poller, events.data(), static_cast<int>(events.size()), 30'000);
    if (ready == 0) Fail("no reply within 30 s");
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr);
      if (!connection.Receive(&latencies)) continue;
      const bool goes_on = NowNs() < end_ns && connection.Send(request, order, options.pipeline);
      if (!goes_on) --busy;
    }
  }
  const double seconds = static_cast<double>(NowNs() - start_ns) / 1e9;
  uint64_t misses = 0;
  for (const auto& connection : connections) misses += connection->misses();
  close(poller);
  printf("{\"requests\": %llu, \"seconds\": %.6f, \"rps\": %.1f, \"misses\": %llu, ",
         Number(latencies.total()), seconds, static_cast<double>(latencies.total()) / seconds,
         Number(misses));
  printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
         latencies.AtUs(.5), latencies.AtUs(.99), latencies.AtUs(.999), latencies.MostUs());
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Loads a RESP server on 127.0.0.1 with one command");
  Options options;
  app.add_option("--port", options.port);
  app.add_option("--command", options.command, "with {key}, and perhaps {value}");
  app.add_option("--order", options.order)->check(CLI::IsMember({"sequential", "uniform", "zipf"}));
  app.add_option("--first", options.first, "number of the first key");
  app.add_option("--keys", options.keys)->check(CLI::Range(uint64_t{2}, uint64_t{1'000'000'000}));
  app.add_option("--seconds", options.seconds, "of uniform and zipf");
  app.add_option("--theta", options.theta)->check(CLI::Range(0.01, 0.999));
  app.add_option("--clients", options.clients)->check(CLI::Range(1U, 10'000U));
  app.add_option("--pipeline", options.pipeline)->check(CLI::Range(1U, 4096U));
  app.add_option("--value-bytes", options.value_bytes)
      ->check(CLI::Range(size_t{0}, size_t{1} << 20));
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Main(argc, argv); }
