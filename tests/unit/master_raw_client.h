// A member of the control plane made by hand: says what the test wants it to say, right or wrong.
#ifndef ONETRIP_TESTS_UNIT_MASTER_RAW_CLIENT_H_
#define ONETRIP_TESTS_UNIT_MASTER_RAW_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "client_core/base/secret.h"

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
class Hello;
}  // namespace control

class RawClient {
 public:
  // A stream to the master at `address`. Every wait on it ends after 20 s.
  explicit RawClient(const std::string& address);
  ~RawClient();

  bool Write(const control::FromMember& message);
  // False: the stream has ended.
  bool Read(control::FromMaster* message);
  // Reads up to the first message that `wanted` likes, and takes over every view on the way.
  bool ReadUntil(const std::function<bool(const control::FromMaster&)>& wanted,
                 control::FromMaster* message);
  // Ends the stream as a killed process would.
  void Cut();
  // The reason that the master gave, once the stream has ended.
  std::string EndReason();

  // Goes through the handshake; the verdict is in *message. False: the stream ended before.
  bool Handshake(const Secret& secret, control::Hello hello, control::FromMaster* message);
  // As `role`, as `member`; the verdict must be a welcome whose proof is right. Its member id.
  uint64_t Join(const Secret& secret, int role, uint64_t member = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_RAW_CLIENT_H_
