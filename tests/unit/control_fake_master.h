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
  std::string secret{};    // of at least 16 bytes, or none
  bool wrong_mac = false;  // its own
  std::string refusal{};   // of everybody who proves to know the secret; empty: welcome
  bool retry = false;      // ... and whether they may come again
  bool expelled = false;   // ... or that they were taken for dead
  bool proves_refusals = false;
  uint64_t cluster = 77;  // kCluster, but for the master of another one
  uint64_t epoch = 9;     // of its newest view
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
  // What reaches it, with the secret it has.
  [[nodiscard]] ControlOptions ClientOptions() const;

  // On the newest stream that was welcomed.
  void Send(const control::FromMaster& message);
  // Waits until such a message has come, on any stream; false if none does for long.
  bool Await(const Wanted& wanted);
  // How many have come.
  size_t Count(const Wanted& wanted);
  // Waits until so many streams were welcomed.
  bool AwaitStreams(size_t count);
  size_t streams();
  // Waits until so many streams have come to a verdict, whatever that was.
  bool AwaitAttempts(size_t count);
  // Of the newest stream.
  control::Hello LastHello();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_CONTROL_FAKE_MASTER_H_
