#include "master/master_driver.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client_core/base/host_id.h"
#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "master/message_codec.h"

namespace onetrip {
namespace {

constexpr uint64_t kUsPerMs = 1000;
constexpr uint64_t kUsPerSecond = 1'000'000;

void LogAt(LogLevel level, const std::string& text) {
  switch (level) {
    case LogLevel::kDebug:
      return LogDebug(text);
    case LogLevel::kInfo:
      return LogInfo(text);
    case LogLevel::kWarning:
      return LogWarning(text);
    case LogLevel::kError:
      return LogError(text);
    case LogLevel::kOff:
      return;
  }
}

}  // namespace

MasterDriver::MasterDriver(const DriverOptions& options, Coordinator coordinator, Secret secret,
                           const Clock& clock, Store& store)
    : options_(options),
      secret_(std::move(secret)),
      clock_(clock),
      store_(store),
      cluster_(coordinator.cluster()),
      started_us_(clock.NowNs() / 1000),
      process_space_(ProcessSpace()),
      journal_(std::move(coordinator)) {}

MasterDriver::~MasterDriver() { Stop(); }

Status MasterDriver::Start(std::string* reason) {
  CoordinatorEffects effects = journal_.TakeStartEffects();
  const Status status = store_.Write(effects.change, reason);
  if (!status.ok()) return status;
  Result<DurableState> stored = store_.Load(reason);
  if (!stored.ok()) return stored.status();
  copies_ = StateCopies(std::move(*stored));
  effects.change = {};
  Perform(std::move(effects));
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "master");
    Run();
  });
  return Status::Ok();
}

void MasterDriver::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  // The thread takes no events any more; streams that it has not looked at must end, too.
  for (Event& event : events_) {
    if (auto* opened = std::get_if<OpenedEvent>(&event)) opened->stream->End("the master ends");
  }
  events_.clear();
}

StreamId MasterDriver::Opened(std::shared_ptr<MemberStream> stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return 0;
  const StreamId id = next_stream_++;
  events_.emplace_back(OpenedEvent{id, std::move(stream)});
  wake_.notify_one();
  return id;
}

bool MasterDriver::Post(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  events_.push_back(std::move(event));
  wake_.notify_one();
  return true;
}

bool MasterDriver::Said(StreamId stream, std::unique_ptr<control::FromMember> message) {
  if (message->has_renew() && message->renew().quiet()) {
    const uint64_t now_us = NowUs();
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = quiet_.find(stream);
    if (found != quiet_.end()) {
      found->second = {std::move(message), now_us};
      return true;
    }
  }
  Post(SaidEvent{stream, std::move(message)});
  return false;
}

void MasterDriver::Closed(StreamId stream) { Post(ClosedEvent{stream}); }

void MasterDriver::Gone(StreamId stream) { Post(GoneEvent{stream}); }

bool MasterDriver::NeedsTicks() const {
  return coordinator().HasDeadlines() || !streams_.empty() || !retries_.empty();
}

// Just after the members' renewals, which come at multiples of a third of the lease: what runs
// together wakes the processor once.
uint64_t MasterDriver::NextTickUs() const {
  constexpr uint64_t kBehindUs = 3000;
  const uint64_t tick_us = coordinator().TickMs() * kUsPerMs;
  return (NowUs() / tick_us + 1) * tick_us + kBehindUs;
}

void MasterDriver::Run() {
  std::deque<Event> events;
  std::vector<std::pair<StreamId, QuietRenewal>> quiet;
  uint64_t next_tick_us = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [this] { return stopping_ || !events_.empty(); };
      if (!NeedsTicks()) {
        next_tick_us = 0;
        wake_.wait(lock, ready);
      } else {
        const uint64_t now_us = NowUs();
        if (next_tick_us == 0) next_tick_us = NextTickUs();
        if (now_us < next_tick_us) {
          wake_.wait_for(lock, std::chrono::microseconds(next_tick_us - now_us), ready);
        }
      }
      if (stopping_) break;
      events.swap(events_);
      TakeQuiet(&quiet);
    }
    for (const auto& [id, renewal] : quiet) HandleQuiet(id, renewal);
    quiet.clear();
    for (Event& event : events) Handle(event);
    events.clear();
    if (next_tick_us != 0 && NowUs() >= next_tick_us) {
      HearAll();
      Tick();
      next_tick_us = 0;
    }
  }
  Drive(CoordinatorEvent::Stop());
  for (auto& [id, entry] : streams_) entry.stream->End("the master ends");
  streams_.clear();
}

void MasterDriver::TakeQuiet(std::vector<std::pair<StreamId, QuietRenewal>>* renewals) {
  for (auto& [id, renewal] : quiet_) {
    if (renewal.message != nullptr) renewals->emplace_back(id, std::move(renewal));
  }
}

// Whoever has said something lives, however late this thread is with it. Events write to the disk:
// renewals come meanwhile; and behind a message that waits for its turn its stream is not read, so
// that renewals may lie there unseen for as long as several events take.
void MasterDriver::HearAll() {
  std::vector<std::pair<StreamId, QuietRenewal>> quiet;
  std::set<uint64_t> in_handshake;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    TakeQuiet(&quiet);
    in_handshake = MembersInHandshake();
    for (const Event& event : events_) {
      if (const auto* said = std::get_if<SaidEvent>(&event)) heard_.insert(said->id);
    }
  }
  for (const auto& [id, renewal] : quiet) HandleQuiet(id, renewal);
  for (const StreamId id : std::exchange(heard_, {})) {
    CoordinatorEffects effects;
    handled_us_ = NowUs();
    journal_.Apply({handled_us_, CoordinatorEvent::Heard{id}}, &effects);
    CHECK(effects.change.empty());
  }
  for (const uint64_t member : in_handshake) {
    CoordinatorEffects effects;
    journal_.Apply({handled_us_, CoordinatorEvent::InHandshake{member}}, &effects);
    CHECK(effects.change.empty());
  }
}

std::set<uint64_t> MasterDriver::MembersInHandshake() {
  std::set<uint64_t> members;
  for (const Event& event : events_) {
    const auto* said = std::get_if<SaidEvent>(&event);
    if (said == nullptr) continue;
    const auto found = streams_.find(said->id);
    if (found != streams_.end() && found->second.phase == Phase::kUnproved) {
      found->second.deadline_us = NowUs() + options_.handshake_timeout_ms * kUsPerMs;
    }
    const bool is_open = found == streams_.end() || found->second.phase == Phase::kUnproved;
    if (is_open && said->message->has_hello()) members.insert(said->message->hello().member());
  }
  for (const auto& [id, entry] : streams_) {
    if (entry.phase == Phase::kUnproved) members.insert(entry.admission->hello().member);
  }
  members.erase(0);  // they are new
  return members;
}

void MasterDriver::Handle(Event& event) {
  if (auto* opened = std::get_if<OpenedEvent>(&event)) return OnOpened(*opened);
  if (auto* said = std::get_if<SaidEvent>(&event)) return OnSaid(*said);
  if (const auto* closed = std::get_if<ClosedEvent>(&event)) return OnClosed(closed->id);
  const StreamId id = std::get<GoneEvent>(event).id;
  OnClosed(id);
  streams_.erase(id);
}

void MasterDriver::OnOpened(OpenedEvent& event) {
  if (unproved_ >= options_.unproved_max) DropOldestUnproved();
  Entry& entry = streams_[event.id];
  entry.stream = std::move(event.stream);
  entry.admission = std::make_unique<Admission>(secret_);
  entry.deadline_us = NowUs() + options_.handshake_timeout_ms * kUsPerMs;
  ++unproved_;
}

void MasterDriver::EndStream(StreamId id, Entry& entry, const std::string& reason) {
  if (entry.phase == Phase::kEnding) return;
  if (entry.phase == Phase::kMember) {
    const std::lock_guard<std::mutex> lock(mutex_);
    quiet_.erase(id);
  }
  const bool known = entry.phase != Phase::kUnproved;
  if (!known) --unproved_;
  entry.phase = Phase::kEnding;
  entry.admission.reset();
  entry.deadline_us = NowUs() + options_.end_timeout_ms * kUsPerMs;
  entry.stream->End(reason);
  if (!known) return;
  // A process of this host whose stream has ended with it need not be waited for.
  const bool has_ended = entry.pid != 0 && HasEnded(entry.pid);
  const auto close = [this, id, has_ended] {
    return Drive(CoordinatorEvent::Closed{id, has_ended});
  };
  if (!close()) retries_.emplace_back(close);
}

void MasterDriver::OnClosed(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (found->second.phase == Phase::kUnproved) {
    LogRefusal("the process at " + found->second.stream->peer() +
               " went before it had proved that it belongs to the cluster");
  }
  EndStream(id, found->second, "");
}

void MasterDriver::OnSaid(SaidEvent& event) {
  const auto found = streams_.find(event.id);
  if (found == streams_.end()) return;
  Entry& entry = found->second;
  if (entry.phase == Phase::kEnding) return;
  if (entry.phase == Phase::kUnproved) {
    OnHandshake(event.id, entry, *event.message);
  } else if (auto message = DecodeMemberMessage(*event.message)) {
    if (entry.phase == Phase::kTool) {
      entry.deadline_us = NowUs() + options_.tool_idle_ms * kUsPerMs;
    }
    heard_.insert(event.id);
    OnMemberMessage(event.id, std::move(*message));
  } else {
    LogRefusal("ended the stream of " + entry.stream->peer() +
               ": it said what no member may say, or this master does not know");
    EndStream(event.id, entry, "that is no message that this master knows");
  }
  // The handler may have ended the stream.
  const auto still = streams_.find(event.id);
  if (still != streams_.end() && still->second.phase != Phase::kEnding) {
    still->second.stream->ReadNext();
  }
}

void MasterDriver::SendBackup(StreamId id, uint64_t request) {
  std::string reason;
  Result<std::string> copy = store_.Copy(&reason);
  ReplyMessage reply{request, copy.status().code(), reason, {}};
  if (copy.ok()) reply.body = BackupReply{std::move(*copy)};
  LogInfo(copy.ok() ? "a tool was given a copy of the master's state" : reason);
  control::FromMaster out;
  EncodeMasterMessage(reply, &out);
  SendTo(id, out);
}

void MasterDriver::OnMemberMessage(StreamId id, MemberMessage message) {
  if (std::holds_alternative<RequestMessage>(message)) {
    const uint64_t request = std::get<RequestMessage>(message).id;
    if (std::holds_alternative<BackupRequest>(std::get<RequestMessage>(message).body)) {
      return SendBackup(id, request);
    }
    // Changes nothing, so it needs no store.
    if (std::holds_alternative<StatusRequest>(std::get<RequestMessage>(message).body)) {
      return ReplyStatus(id, request);
    }
    if (Drive(CoordinatorEvent::Says{id, std::move(message)})) return;
    control::FromMaster refused;
    EncodeMasterMessage(ReplyMessage{request,
                                     StatusCode::kUnavailable,
                                     "the master cannot write its state now; nothing was changed",
                                     {}},
                        &refused);
    SendTo(id, refused);
    return;
  }
  if (std::holds_alternative<RenewMessage>(message)) {
    return Renew(id, std::move(message), NowUs());
  }
  const auto again = [this, id, message = std::move(message)] {
    return Drive(CoordinatorEvent::Says{id, message});
  };
  if (again()) return;
  if (retries_.size() < options_.retries_max) {
    retries_.emplace_back(again);
  } else if (const auto found = streams_.find(id); found != streams_.end()) {
    EndStream(id, found->second, "the master cannot write its state");
  }
}

void MasterDriver::ReplyStatus(StreamId id, uint64_t request) {
  StatusReply status = coordinator().Status(NowUs());
  status.status.master_pid = static_cast<uint64_t>(getpid());
  status.status.master_uptime_s = (NowUs() - started_us_) / kUsPerSecond;
  if (store_failed_) {
    status.waiting_for = "the master's state cannot be written, see its log" +
                         (status.waiting_for.empty() ? "" : "; " + status.waiting_for);
  }
  control::FromMaster reply;
  EncodeMasterMessage(ReplyMessage{request, StatusCode::kOk, {}, std::move(status)}, &reply);
  SendTo(id, reply);
}

void MasterDriver::HandleQuiet(StreamId id, const QuietRenewal& renewal) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.phase != Phase::kMember) return;
  auto message = DecodeMemberMessage(*renewal.message);
  // Time does not go back for the coordinator, even if it was told of something later already.
  if (message.has_value()) {
    Renew(id, std::move(*message), std::max(renewal.came_us, handled_us_));
  }
}

// By far the most frequent event, and nothing of it is durable: the store has no say.
void MasterDriver::Renew(StreamId id, MemberMessage message, uint64_t now_us) {
  CoordinatorEffects effects;
  journal_.Apply({now_us, CoordinatorEvent::Says{id, std::move(message)}}, &effects);
  handled_us_ = now_us;
  CHECK(effects.change.empty());
  Perform(std::move(effects));
}

void MasterDriver::RetryForStore() {
  while (!retries_.empty() && retries_.front()()) retries_.pop_front();
}

void MasterDriver::Tick() {
  RetryForStore();
  const uint64_t now_us = NowUs();
  Drive(CoordinatorEvent::Tick());
  std::vector<StreamId> late;
  for (const auto& [id, entry] : streams_) {
    if (entry.deadline_us != 0 && now_us >= entry.deadline_us) late.push_back(id);
  }
  for (const StreamId id : late) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    Entry& entry = found->second;
    switch (entry.phase) {
      case Phase::kUnproved:
        Refuse(id, entry,
               "it did not finish the handshake within " +
                   std::to_string(options_.handshake_timeout_ms) + " ms",
               /*retry=*/true);
        break;
      case Phase::kTool:
        EndStream(id, entry, "it asked for nothing for a long time");
        break;
      case Phase::kEnding:
        entry.stream->Abort();
        entry.deadline_us = 0;
        break;
      case Phase::kMember:
        break;
    }
  }
}

bool MasterDriver::WriteChange(const DurableChange& change) {
  if (change.empty()) return true;
  std::string reason;
  if (store_.Write(change, &reason).ok()) {
    if (std::exchange(store_failed_, false)) LogInfo("the master's state can be written again");
    return true;
  }
  if (!std::exchange(store_failed_, true)) {
    LogError(reason + "; members cannot join, leave or flush until that is mended");
  }
  return false;
}

bool MasterDriver::Drive(EventKind what, Attendance* attendance,
                         const std::function<void()>& before_sends) {
  CoordinatorEffects effects;
  Attendance verdict = journal_.Apply({NowUs(), std::move(what)}, &effects);
  handled_us_ = NowUs();
  if (!WriteChange(effects.change)) {
    journal_.Revert();
    return false;
  }
  if (attendance != nullptr) *attendance = std::move(verdict);
  ShareState(effects.change);
  if (before_sends) before_sends();
  Perform(std::move(effects));
  return true;
}

void MasterDriver::ShareState(const DurableChange& change) {
  control::FromMaster message;
  if (change.empty() || !copies_.OnStored(change, &message)) return;
  for (const auto& [id, entry] : streams_) {
    if (entry.phase == Phase::kMember) SendTo(id, message);
  }
}

void MasterDriver::Perform(CoordinatorEffects effects) {
  for (const CoordinatorEffects::LogLine& line : effects.logs) LogAt(line.level, line.text);
  control::FromMaster out;
  // A view goes to everybody; it is encoded once.
  const View* encoded = nullptr;
  for (CoordinatorEffects::Send& send : effects.sends) {
    const auto* committed = std::get_if<ViewCommittedMessage>(&send.message);
    if (committed == nullptr || committed->view.get() != encoded) {
      out.Clear();
      EncodeMasterMessage(send.message, &out);
      encoded = committed == nullptr ? nullptr : committed->view.get();
    }
    SendTo(send.stream, out);
  }
  for (const CoordinatorEffects::Close& close : effects.closes) {
    const auto found = streams_.find(close.stream);
    if (found != streams_.end()) EndStream(close.stream, found->second, close.reason);
  }
}

void MasterDriver::SendTo(StreamId id, const control::FromMaster& message) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.phase == Phase::kEnding) return;
  Entry& entry = found->second;
  if (entry.stream->Send(message)) return;
  // Its end comes as an event of its own, once the transport has given it up.
  LogRefusal("dropped " + entry.stream->peer() + ": it does not read what the master sends");
  entry.stream->Abort();
}

}  // namespace onetrip
