// ControlCall: one stream to the master, from dialling to its end, with its handshake. Private to
// control/. ControlStream drives it and makes another when it has ended.
//
// All on the session thread, which polls the completion queue and hands every event to OnEvent.
// gRPC stays in control_call.cc.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CONTROL_CALL_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CONTROL_CALL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "client_core/base/secret.h"

namespace grpc {
class CompletionQueue;
}  // namespace grpc

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
class Hello;
class Verdict;
}  // namespace control

class ControlCall {
 public:
  // The limit of messages that wait to be sent; a master that reads none of them is lost.
  static constexpr size_t kQueueMax = 4096;

  enum class State : uint8_t {
    kHandshake,
    kUp,      // welcome; messages go to the owner
    kEnding,  // cancelled; events still arrive
    kEnded,   // no event refers to it any more
  };
  // Why it ended.
  struct Refusal {
    bool final = false;  // the process is not let in (again), and gives up
    std::string reason;  // one line; empty: it was cancelled by its owner
    bool said = false;   // by whoever answers at the master's address, or it is not believed
  };

  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnCallUp(const control::Verdict& verdict, uint64_t asked_ns) = 0;
    virtual void OnCallMessage(const control::FromMaster& message) = 0;
  };

  // Dials `address`, numeric or a name. `hello` without its nonce; it names a member if this
  // process was one before. `secret` and `owner` outlive it.
  ControlCall(const std::string& address, const control::Hello& hello, const Secret& secret,
              grpc::CompletionQueue* events, Owner* owner);
  ControlCall(const ControlCall&) = delete;
  ControlCall& operator=(const ControlCall&) = delete;
  // REQUIRES: kEnded.
  ~ControlCall();

  // Handles an event whose tag was one of this call's.
  static void OnEvent(void* tag, bool ok);

  void Send(const control::FromMember& message);
  // Ends it; `reason` empty: as the owner wishes. Events follow until it is kEnded.
  void Cancel(bool final, const std::string& reason);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }
  [[nodiscard]] bool was_up() const { return was_up_; }
  // Everything that was to be sent is on its way.
  [[nodiscard]] bool flushed() const;

 private:
  enum class Kind : uint8_t { kStart, kRead, kWrite, kFinish };
  struct Tag {
    ControlCall* call;
    Kind kind;
  };
  struct Grpc;

  void Handle(Kind kind, bool ok);
  void Read();
  void WriteNext();
  void Handshake(const control::FromMaster& message);
  void OnVerdict(const control::Verdict& verdict);
  // Says what is wrong with a welcome; empty: nothing.
  [[nodiscard]] std::string WhyNotBelieved(const control::Verdict& verdict, bool is_proved) const;
  void Refused(bool final, const std::string& reason);
  void FinishIfIdle();

  const Secret& secret_;
  Owner* const owner_;
  State state_ = State::kHandshake;
  Refusal refusal_;
  bool was_up_ = false;
  bool challenged_ = false;
  std::string master_nonce_;
  uint64_t asked_ns_ = 0;  // when PROOF was sent
  int under_way_ = 0;      // events to come
  bool writing_ = false;
  bool can_write_ = true;
  bool finishing_ = false;
  Tag start_{this, Kind::kStart};
  Tag read_{this, Kind::kRead};
  Tag write_{this, Kind::kWrite};
  Tag finish_{this, Kind::kFinish};
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CONTROL_CALL_H_
