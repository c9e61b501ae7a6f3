// ControlStream: this process's end of the control plane (control.proto): dials the master, proves
// itself, keeps the stream open for as long as the process lives and opens another when it breaks.
//
// One session thread does everything and makes all calls to the handler and to those who asked.
// gRPC stays in control_stream.cc.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CONTROL_STREAM_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CONTROL_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client_core/base/status.h"
#include "client_core/control/control_options.h"

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
class Recalled;
class Reply;
class Report;
class Request;
}  // namespace control

// The master's welcome to this process.
struct ControlWelcome {
  bool again = false;  // not the first one of this process
  uint64_t cluster = 0;
  uint64_t member = 0;
  uint64_t lease_ms = 0;
};

class ControlStream {
 public:
  enum class Role : uint8_t { kAgent = 1, kMemoryNode = 2, kTool = 3 };  // control.proto's Role

  // Calls come on the session thread, one at a time, and must not block: it renews the lease.
  class Handler {
   public:
    virtual ~Handler() = default;
    // A stream is up. What is sent from here goes before anything else on it.
    virtual void OnWelcome(const ControlWelcome& /*welcome*/) {}
    // The stream has ended, why in one line; another is being opened.
    virtual void OnBroken(const std::string& /*reason*/) {}
    // Views, holds, fences, and how much memory is used.
    virtual void OnMessage(const control::FromMaster& /*message*/) {}
    // The process is no member any more and is not let in again; the stream is closed for good. Of
    // what is said, only that (refusal.h); never called in a memory node that was welcomed once.
    virtual void OnExpelled(const std::string& reason) = 0;
    // The cluster's time, told in answer to something sent at `sent_ns`, by CLOCK_MONOTONIC.
    virtual void OnTime(uint64_t /*time_us*/, uint64_t /*sent_ns*/, uint64_t /*received_ns*/) {}
    // A memory node's mark that the master has stored; 0: none.
    virtual void OnMarkStored(uint64_t /*mark*/) {}
    // The copy of the master's state that this process keeps has changed; what FillRecalled() says
    // of the process is in it.
    virtual void OnState(const control::Recalled& /*kept*/) {}
    // Says what this process knows of itself, to the process that rebuilds the master's state.
    virtual void FillRecalled(control::Recalled* /*recalled*/) {}
    // Says what the next renewal tells.
    virtual void FillReport(control::Report* /*report*/) {}
    // The newest view this process has; 0: none.
    [[nodiscard]] virtual uint64_t KnownEpoch() { return 0; }
    // The cluster's time as this process knows it, in microseconds; 0: it has never been told.
    [[nodiscard]] virtual uint64_t KnownTimeUs() { return 0; }
  };

  // The outcome of a request; `reply` is null unless the status is ok.
  using Answer =
      std::function<void(Status status, const std::string& reason, const control::Reply* reply)>;

  // `handler` outlives it, or Stop().
  ControlStream(ControlOptions options, Role role, Handler* handler);
  ControlStream(const ControlStream&) = delete;
  ControlStream& operator=(const ControlStream&) = delete;
  // Stops, without a goodbye.
  ~ControlStream();

  // Starts, and blocks until the master has welcomed this process. On failure *reason is one line,
  // and nothing runs any more. kUnavailable: not within connect_timeout_ms; kInvalidArgument: no
  // retry will help. Once.
  Status Connect(std::string* reason);

  // Takes what an earlier process kept of the master's state, and goes on there. Before Connect().
  void Restore(const control::Recalled& kept);

  // Sends on the stream that is up, else drops it. Session thread.
  void Send(const control::FromMember& message);
  // Asks the master; `answer` is called once. Waits for a stream if there is none. `timeout_ms` 0:
  // waits without a bound, but not beyond the stream it was sent on. Any thread.
  // kUnavailable: surely not done. kUnknownOutcome: sent, and the answer did not come. Other codes
  // are the master's.
  void Ask(const control::Request& request, uint64_t timeout_ms, Answer answer);
  // Breaks the stream that is up, because of what the master has said on it, and opens another;
  // when that is done again and again, ever more slowly. Session thread.
  void OpenAnother(const std::string& reason);
  // Runs `fn` on the session thread; drops it once the stream was stopped. Any thread.
  void Run(std::function<void()> fn);

  // Says goodbye if `leave` and a stream is up, then ends the session thread; whoever still waits
  // for an answer gets kUnavailable or kUnknownOutcome first. More than once; any thread but the
  // session's.
  void Stop(bool leave);

  // True if a stream is up. Any thread.
  [[nodiscard]] bool attending() const;
  // Since when the master is away, by CLOCK_MONOTONIC; meaningless while attending(). Any thread.
  [[nodiscard]] uint64_t away_since_ns() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CONTROL_STREAM_H_
