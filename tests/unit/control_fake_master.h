// A master that does as the test says, over real gRPC on a loopback port. It lives in
// control_stream_test.cc, which keeps gRPC out of here.
#ifndef ONETRIP_TESTS_UNIT_CONTROL_FAKE_MASTER_H_
#define ONETRIP_TESTS_UNIT_CONTROL_FAKE_MASTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client_core/control/control_options.h"

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
class Hello;
}  // namespace control

struct FakeMasterOptions {
  std::string secret{};    // at least 16 bytes, or empty: none
  bool wrong_mac = false;  // its own
  std::string refusal{};   // for every member that proves to know the secret; empty: welcome
  bool retry = false;      // ... and whether they may come again
  bool expelled = false;   // ... or that they were taken for dead
  bool proves_refusals = false;
  uint64_t cluster = 77;  // kCluster, but for the master of another one
  uint64_t epoch = 9;     // the epoch of its newest view
  bool answer = true;     // joins, leaves and status
  uint32_t lease_ms = 1000;
};

class FakeMaster {
 public:
  using Wanted = std::function<bool(const control::FromMember&)>;
  static constexpr uint64_t kCluster = 77;
  static constexpr uint64_t kMember = 5;

  explicit FakeMaster(FakeMasterOptions options = {});
  ~FakeMaster();

  // For streams that open from now on.
  void Set(const FakeMasterOptions& options);
  // Breaks every stream and listens no more; Start() listens at the same address again.
  void Stop();
  void Start();
  [[nodiscard]] std::string address() const;
  // Options of a client that reaches this master and knows its secret.
  [[nodiscard]] ControlOptions ClientOptions() const;

  // On the newest stream that was welcomed.
  void Send(const control::FromMaster& message);
  // Waits until such a message has come, on any stream; false if none does for long.
  bool Await(const Wanted& wanted);
  // How many have come.
  size_t Count(const Wanted& wanted);
  // Waits until `count` streams were welcomed.
  bool AwaitStreams(size_t count);
  size_t streams();
  // Waits until `count` streams have come to a verdict, whatever that was.
  bool AwaitAttempts(size_t count);
  // The HELLO of the newest stream.
  control::Hello LastHello();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_CONTROL_FAKE_MASTER_H_
