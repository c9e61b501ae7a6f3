// ControlLink: a process's end of the control plane in a simulated world; what
// client_core/control/control_stream.cc is over gRPC. Dials the master, says who it is, renews its
// lease, asks, and dials again when the connection breaks.
#ifndef ONETRIP_TESTS_SIM_CONTROL_LINK_H_
#define ONETRIP_TESTS_SIM_CONTROL_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "client_core/base/status.h"
#include "client_core/coro/executor.h"
#include "tests/sim/control_connection.h"
#include "tests/sim/sim_master.h"

namespace onetrip {

class ControlLink final : private ControlConnection::MemberEnd {
 public:
  // Called on the process's executor, one at a time.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A stream is up. What is sent from here goes before anything else on it.
    virtual void OnWelcome() {}
    // Views, quiesces and fences.
    virtual void OnMessage(const MasterMessage& message) = 0;
    // The process is no member any more and is not let in again.
    virtual void OnExpelled(const std::string& reason) = 0;
    [[nodiscard]] virtual uint64_t KnownEpoch() const = 0;
    // Fills in what it says of memory with every renewal.
    virtual void Report(MemberReport* /*report*/) {}
  };
  // The outcome of a request; `reply` is null unless the status is ok.
  using Answer = std::function<void(Status status, const ReplyMessage* reply)>;
  using RequestBody = decltype(RequestMessage::body);

  // `executor`: the process's; everything outlives the link, and the link outlives every event of
  // the executor.
  ControlLink(Executor& executor, SimExecutor& world, SimMaster& master,
              const ControlSettings& settings, MemberKind kind, std::string name, Owner& owner)
      : executor_(executor),
        world_(world),
        master_(master),
        settings_(settings),
        kind_(kind),
        name_(std::move(name)),
        owner_(owner) {}

  void Open();
  // Drops the message if no stream is up.
  void Send(MemberMessage message);
  // `timeout_ms` 0: waits for as long as the stream lasts that it was sent on.
  // kUnavailable: surely not done. kUnknownOutcome: sent, and no answer came.
  void Ask(RequestBody body, uint64_t timeout_ms, Answer answer);

  [[nodiscard]] bool attending() const { return state_ == State::kUp; }
  // The process has been welcomed: before that it believes whoever refuses it.
  [[nodiscard]] bool was_member() const { return member_ != 0; }

  // Breaks the stream that is up, because of what the master said on it.
  void OpenAnother();
  // The process is dead: its end closes, and nothing is called any more.
  void Die();
  // The connection breaks, if there is one.
  void Break();
  // For a process without an executor of its own: what it hears waits meanwhile.
  void SetPaused(bool paused);

 private:
  enum class State : uint8_t { kClosed, kGreeting, kUp, kDone };
  struct Asked {
    RequestBody body;
    Answer answer;
    uint64_t deadline_ns = ~uint64_t{0};
    bool sent = false;
  };

  void Heard(ControlConnection& connection, FromMasterMessage message) override;
  static void OnHeard(void* link);
  static void OnTime(void* link);
  void CallAt(uint64_t time_ns) { executor_.At(time_ns, OnTime, this); }
  void Handle(const FromMasterMessage& message);
  void OnVerdict(const SimVerdict& verdict);
  void OnReply(const ReplyMessage& reply);
  void DoWhatIsDue();
  void Dial();
  void Lost();
  void Renew();
  void SendAsked(uint64_t id, Asked& asked);
  void End(const std::string& reason);

  Executor& executor_;
  SimExecutor& world_;
  SimMaster& master_;
  const ControlSettings& settings_;
  const MemberKind kind_;
  const std::string name_;
  Owner& owner_;

  State state_ = State::kClosed;
  bool dead_ = false;
  bool paused_ = false;
  ControlConnection* connection_ = nullptr;  // the newest
  std::deque<std::pair<ControlConnection*, FromMasterMessage>> heard_;
  uint64_t member_ = 0;
  uint64_t cluster_ = 0;
  uint64_t life_ = 0;               // the life of the master that welcomed it last
  uint64_t hello_epoch_ = 0;        // the epoch that it said it knows
  uint64_t due_ns_ = ~uint64_t{0};  // to dial, to give up a greeting, or to renew, by the state
  uint64_t renewals_ = 0;
  uint64_t next_request_ = 1;
  std::map<uint64_t, Asked> asked_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_CONTROL_LINK_H_
