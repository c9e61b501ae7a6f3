// MasterDriver: runs the coordinator. One thread takes what the streams say, one event after the
// other: state machine, then store, then replies. Knows no gRPC: a stream is an interface.
//
// When the store cannot be written, the event has not happened: a request is refused, and what
// cannot be refused (an end of a stream, a fence) is tried again until the store is back.
#ifndef ONETRIP_MASTER_MASTER_DRIVER_H_
#define ONETRIP_MASTER_MASTER_DRIVER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/secret.h"
#include "master/admission.h"
#include "master/coordinator.h"
#include "master/event_journal.h"
#include "master/state_copies.h"
#include "master/store.h"

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
class Verdict;
}  // namespace control

struct DriverOptions {
  uint64_t handshake_timeout_ms = 2000;  // a stream that has not proved itself by then is ended
  uint64_t end_timeout_ms = 2000;        // to take the last messages of a stream that ends
  uint64_t tool_idle_ms = 60'000;        // a tool that asks nothing for so long is ended
  size_t unproved_max = 128;             // streams; beyond them the oldest is ended
  size_t retries_max = 16'384;           // events that wait for the store
};

// A process's stream, as the driver uses it. Calls come from the driver's thread and return at
// once.
class MemberStream {
 public:
  virtual ~MemberStream() = default;
  // False: the process does not read, and the stream is at its end.
  virtual bool Send(const control::FromMaster& message) = 0;
  // One more message may come; Said() follows. The first one comes without it.
  virtual void ReadNext() = 0;
  // Ends the stream once everything is sent; `reason` is for the process, empty when all is well.
  virtual void End(const std::string& reason) = 0;
  // Ends it now.
  virtual void Abort() = 0;
  // For people.
  [[nodiscard]] virtual std::string peer() const = 0;
};

// Whom streams belong to. Any thread. A stream is opened once and gone once.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Its id, or 0 when whom it belongs to has ended. Its first message is read at once.
  virtual StreamId Opened(std::shared_ptr<MemberStream> stream) = 0;
  // A message has come. True: the stream may say more at once, for this one needs no answer;
  // otherwise ReadNext() is called when it may.
  virtual bool Said(StreamId stream, std::unique_ptr<control::FromMember> message) = 0;
  // Nothing more will come: the process ended it, or is gone.
  virtual void Closed(StreamId stream) = 0;
  // Nothing will be called any more.
  virtual void Gone(StreamId stream) = 0;
};

class MasterDriver final : public StreamEvents {
 public:
  // `clock` and `store` outlive it.
  MasterDriver(const DriverOptions& options, Coordinator coordinator, Secret secret,
               const Clock& clock, Store& store);
  // Stops.
  ~MasterDriver() override;

  // Makes the coordinator's first effects durable and starts the thread. On failure *reason is one
  // line.
  Status Start(std::string* reason);
  // Ends all streams and the thread. More than once; not from the driver's thread.
  void Stop();

  StreamId Opened(std::shared_ptr<MemberStream> stream) override;
  bool Said(StreamId stream, std::unique_ptr<control::FromMember> message) override;
  void Closed(StreamId stream) override;
  void Gone(StreamId stream) override;

  [[nodiscard]] uint64_t cluster() const { return cluster_; }

 private:
  enum class Phase : uint8_t { kUnproved, kMember, kTool, kEnding };
  struct Entry {
    std::shared_ptr<MemberStream> stream;
    Phase phase = Phase::kUnproved;
    std::unique_ptr<Admission> admission;
    uint64_t deadline_us = 0;  // 0: none
    uint64_t pid = 0;          // a member's process, if its end can be told from here; else 0
  };
  struct OpenedEvent {
    StreamId id;
    std::shared_ptr<MemberStream> stream;
  };
  struct SaidEvent {
    StreamId id;
    std::unique_ptr<control::FromMember> message;
  };
  struct ClosedEvent {
    StreamId id;
  };
  struct GoneEvent {
    StreamId id;
  };
  using Event = std::variant<OpenedEvent, SaidEvent, ClosedEvent, GoneEvent>;

  // A quiet renewal. It does not wake the thread: it is looked at in the next tick or with the next
  // event, and counts from when it came.
  struct QuietRenewal {
    std::unique_ptr<control::FromMember> message;  // null: none
    uint64_t came_us = 0;
  };

  using EventKind = decltype(CoordinatorEvent::what);

  void Run();
  bool Post(Event event);
  // When the first tick after now is due: every member of this host renews at such times, too.
  [[nodiscard]] uint64_t NextTickUs() const;
  void ReplyStatus(StreamId id, uint64_t request);
  // Takes the quiet renewals that have come. REQUIRES: mutex_ is held.
  void TakeQuiet(std::vector<std::pair<StreamId, QuietRenewal>>* renewals);
  void HandleQuiet(StreamId id, const QuietRenewal& renewal);
  // Before members are judged: lets all count as alive of which something has come, handled or not.
  void HearAll();
  // Members whose numbers are claimed in handshakes that have begun, HELLOs that wait included; the
  // time for a handshake does not pass while its message waits. REQUIRES: mutex_ is held.
  [[nodiscard]] std::set<uint64_t> MembersInHandshake();
  void Renew(StreamId id, MemberMessage message, uint64_t now_us);
  void Handle(Event& event);
  void OnOpened(OpenedEvent& event);
  void OnSaid(SaidEvent& event);
  void OnClosed(StreamId id);
  void OnHandshake(StreamId id, Entry& entry, const control::FromMember& message);
  void OnProved(StreamId id, Entry& entry);
  void Refuse(StreamId id, Entry& entry, const std::string& why, bool retry, bool expelled = false);
  // Completes a verdict on a process that has proved itself.
  void Prove(const Admission& admission, control::Verdict* verdict) const;
  void SendBackup(StreamId id, uint64_t request);
  void OnMemberMessage(StreamId id, MemberMessage message);
  void Tick();
  void RetryForStore();
  void DropOldestUnproved();
  [[nodiscard]] bool NeedsTicks() const;

  // True if the event happened: its change is durable, and its effects are under way. Then
  // *attendance is the verdict on who attends, and `before_sends` is called in between.
  bool Drive(EventKind what, Attendance* attendance = nullptr,
             const std::function<void()>& before_sends = nullptr);
  bool WriteChange(const DurableChange& change);
  // Members keep what was stored, and have it before anything that depends on it.
  void ShareState(const DurableChange& change);
  void Perform(CoordinatorEffects effects);
  void SendTo(StreamId id, const control::FromMaster& message);
  void EndStream(StreamId id, Entry& entry, const std::string& reason);
  void LogRefusal(const std::string& line);
  [[nodiscard]] const Coordinator& coordinator() const { return journal_.coordinator(); }
  [[nodiscard]] uint64_t NowUs() const { return clock_.NowNs() / 1000; }

  const DriverOptions options_;
  const Secret secret_;
  const Clock& clock_;
  Store& store_;
  const uint64_t cluster_;
  const uint64_t started_us_;
  const std::string process_space_;

  // The driver's thread only.
  EventJournal journal_;
  StateCopies copies_;
  std::map<StreamId, Entry> streams_;
  std::deque<std::function<bool()>> retries_;
  bool store_failed_ = false;
  size_t unproved_ = 0;
  uint64_t handled_us_ = 0;   // the coordinator has been told of this time
  std::set<StreamId> heard_;  // members that have said something since the last tick
  uint64_t refusals_second_ = 0;
  uint64_t refusals_logged_ = 0;
  uint64_t refusals_dropped_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> events_;  // at most a few per stream: the next message is asked for
  std::map<StreamId, QuietRenewal> quiet_;  // by member's stream, the newest
  StreamId next_stream_ = 1;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MASTER_DRIVER_H_
