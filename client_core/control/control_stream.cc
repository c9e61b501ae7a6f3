#include "client_core/control/control_stream.h"

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/host_id.h"
#include "client_core/base/log.h"
#include "client_core/base/rng.h"
#include "client_core/base/version.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/control_call.h"
#include "client_core/control/control_mac.h"
#include "client_core/control/kept_state.h"

namespace onetrip {
namespace {

constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kAttemptNs = 3'000'000'000;  // of one call until its welcome
constexpr uint64_t kGoodbyeNs = 1'000'000'000;
// Of a call that has failed until gRPC says so of all its parts.
constexpr uint64_t kEndingNs = 3'000'000'000;
// A master that stands still keeps its connections; only one that is gone for longer than anybody
// would leave it standing is given up.
constexpr uint64_t kSilenceNs = 20'000'000'000;
constexpr uint64_t kFastRenewals = 8;
constexpr uint64_t kFastRenewNs = 2'000'000;
// Later ones are quiet but for one in so long, for the clock and to hear that the master is there.
constexpr uint64_t kLoudEveryNs = 2'000'000'000;
// However long the lease is: what is said of memory with a renewal is everywhere within a second.
constexpr uint64_t kRenewNsMax = 500'000'000;
static_assert(2 * (kLoudEveryNs + kRenewNsMax) < kSilenceNs);
constexpr size_t kAsksMax = 4096;

std::string Refused(StatusCode code) {
  return "the master says: " + std::string(StatusCodeName(code));
}

}  // namespace

class ControlStream::Impl final : public ControlCall::Owner {
 public:
  Impl(ControlOptions options, Role role, Handler* handler)
      : options_(std::move(options)),
        role_(role),
        handler_(handler),
        rng_(clock_.NowNs() ^ static_cast<uint64_t>(getpid())),
        backoff_ms_(options_.backoff_min_ms) {}
  ~Impl() override { Stop(false); }

  Status Connect(std::string* reason);
  void Send(const control::FromMember& message) {
    if (up()) call_->Send(message);
  }
  void Ask(const control::Request& request, uint64_t timeout_ms, Answer answer);
  void OpenAnother(const std::string& reason) {
    is_refused_ = true;
    if (up()) call_->Cancel(false, reason);
  }
  void Run(std::function<void()> fn);
  void Stop(bool leave);
  [[nodiscard]] bool attending() const { return attending_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t away_since_ns() const { return away_since_ns_.load(); }
  void Restore(const control::Recalled& kept) { kept_.Restore(kept); }

 private:
  struct Asked {
    control::FromMember message;
    Answer answer;
    uint64_t deadline_ns = kNever;
    bool sent = false;
  };
  struct FirstWelcome {
    Status status;
    std::string reason;
  };

  void OnCallUp(const control::Verdict& verdict, uint64_t asked_ns) override;
  void OnCallMessage(const control::FromMaster& message) override;

  [[nodiscard]] bool up() const {
    return call_ != nullptr && call_->state() == ControlCall::State::kUp;
  }
  void Main();
  void WaitForEvent();
  void RunPosted();
  void OnTime();
  [[nodiscard]] uint64_t NextTimeNs() const;
  void StartCall();
  void OnCallEnded();
  void EndCall(const ControlCall& call);
  // Goes on without a call that does not come to its end.
  void AbandonCall();
  void EndEvents();
  void Renew();
  control::FromMember Recall();
  void OnReply(const control::Reply& reply);
  void FailAsked(bool sent_only, const char* why);
  void ReportFirst(Status status, std::string reason);
  void WakeUp();
  void StartGoodbye();

  const SystemClock clock_;
  const ControlOptions options_;
  const Role role_;
  Handler* const handler_;

  // Session thread.
  Rng rng_;
  std::unique_ptr<grpc::CompletionQueue> events_ = std::make_unique<grpc::CompletionQueue>();
  std::unique_ptr<ControlCall> call_;
  // Of which an event is still to come, or never will (seen of gRPC 1.51: Finish() of a stream
  // whose connection was reset while this process stood still).
  std::vector<std::unique_ptr<ControlCall>> abandoned_;
  uint64_t attempt_end_ns_ = kNever;  // of call_'s handshake, or of its end
  uint64_t retry_ns_ = 0;             // when to dial, while there is no call
  uint64_t backoff_ms_;
  uint64_t attempts_ = 0;
  std::string last_error_;
  uint64_t connect_end_ns_ = kNever;  // for the first welcome
  bool done_ = false;                 // refused or expelled: no further call
  bool is_refused_ = false;           // on the newest stream that was up
  KeptState kept_;
  uint64_t cluster_ = 0;
  uint64_t member_ = 0;
  uint64_t life_ = 0;  // of the master that welcomed this process last
  uint64_t lease_ms_ = 0;
  uint64_t renew_ns_ = kNever;
  uint64_t heard_ns_ = 0;
  uint64_t renewals_ = 0;
  uint64_t loud_ns_ = 0;                        // the last one that wanted an answer
  std::map<uint64_t, uint64_t> renewed_at_ns_;  // by sequence; unanswered ones
  uint64_t next_request_ = 1;
  std::map<uint64_t, Asked> asked_;
  bool stopping_ = false;
  uint64_t goodbye_end_ns_ = kNever;

  std::atomic<bool> attending_{false};
  std::atomic<uint64_t> away_since_ns_{0};

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::function<void()>> posted_;
  bool closed_ = false;  // nothing is taken any more
  // Wakes the session thread. Set again, or given up, only when its event has been taken: one that
  // is given up while it goes off takes gRPC's count of it below zero.
  grpc::Alarm alarm_;
  bool alarm_set_ = false;

  std::optional<std::promise<FirstWelcome>> first_;
  std::mutex stop_mutex_;
  bool stopped_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

// ---- Any thread ----

Status ControlStream::Impl::Connect(std::string* reason) {
  const Status sound = CheckControlOptions(options_, reason);
  if (!sound.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    return sound;
  }
  connect_end_ns_ = clock_.NowNs() + options_.connect_timeout_ms * kNsPerMs;
  away_since_ns_ = clock_.NowNs();
  std::future<FirstWelcome> welcome = first_.emplace().get_future();
  {
    const std::lock_guard<std::mutex> lock(stop_mutex_);
    if (stopped_) {
      *reason = "stopped";
      return Status(StatusCode::kUnavailable, "stopped");
    }
    thread_ = std::thread([this] { Main(); });
  }
  FirstWelcome first = welcome.get();
  if (first.status.ok()) return first.status;
  Stop(false);
  *reason = std::move(first.reason);
  return first.status;
}

void ControlStream::Impl::Run(std::function<void()> fn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return;
  posted_.push_back(std::move(fn));
  if (posted_.size() == 1) WakeUp();
}

void ControlStream::Impl::Ask(const control::Request& request, uint64_t timeout_ms, Answer answer) {
  Asked asked;
  *asked.message.mutable_request() = request;
  if (timeout_ms != 0) asked.deadline_ns = clock_.NowNs() + timeout_ms * kNsPerMs;
  auto shared = std::make_shared<Asked>(std::move(asked));
  shared->answer = std::move(answer);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_) {
      posted_.emplace_back([this, shared] {
        if (stopping_ || done_ || asked_.size() >= kAsksMax) {
          const Status status(StatusCode::kUnavailable, "the connection to the master is closed");
          return shared->answer(status, status.message(), nullptr);
        }
        const uint64_t id = next_request_++;
        shared->message.mutable_request()->set_id(id);
        Asked& kept = asked_[id] = std::move(*shared);
        kept.sent = up();
        Send(kept.message);
      });
      if (posted_.size() == 1) WakeUp();
      return;
    }
  }
  const Status status(StatusCode::kUnavailable, "the connection to the master is closed");
  shared->answer(status, status.message(), nullptr);
}

void ControlStream::Impl::WakeUp() {
  if (alarm_set_) return;
  alarm_set_ = true;
  alarm_.Set(events_.get(), std::chrono::system_clock::now(), nullptr);
}

void ControlStream::Impl::Stop(bool leave) {
  const std::lock_guard<std::mutex> one_at_a_time(stop_mutex_);
  stopped_ = true;
  if (!thread_.joinable()) return;
  Run([this, leave] {
    stopping_ = true;
    goodbye_end_ns_ = clock_.NowNs();
    if (leave) StartGoodbye();
  });
  thread_.join();
}

// ---- The session thread ----

void ControlStream::Impl::StartGoodbye() {
  if (!up()) return;
  goodbye_end_ns_ = clock_.NowNs() + kGoodbyeNs;
  const uint64_t id = next_request_++;
  Asked& asked = asked_[id];
  asked.message.mutable_request()->set_id(id);
  asked.message.mutable_request()->mutable_leave();
  asked.deadline_ns = goodbye_end_ns_;
  asked.sent = true;
  asked.answer = [this](Status, const std::string&, const control::Reply*) { goodbye_end_ns_ = 0; };
  Send(asked.message);
}

void ControlStream::Impl::Main() {
  while (true) {
    RunPosted();
    OnTime();
    if (stopping_ && call_ == nullptr) break;
    WaitForEvent();
  }
  FailAsked(/*sent_only=*/false, "this process is ending");
  ReportFirst(Status(StatusCode::kUnavailable, "stopped"), "stopped");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  RunPosted();
  EndEvents();
}

// The queue ends when the last event, the alarm's, has been taken. What gRPC does not give back
// stays its own.
void ControlStream::Impl::EndEvents() {
  events_->Shutdown();
  const gpr_timespec until =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(static_cast<int64_t>(kEndingNs), GPR_TIMESPAN));
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    switch (events_->AsyncNext(&tag, &ok, until)) {
      case grpc::CompletionQueue::GOT_EVENT:
        if (!abandoned_.empty() && tag != nullptr) ControlCall::OnEvent(tag, ok);
        continue;
      case grpc::CompletionQueue::SHUTDOWN:
        return;
      case grpc::CompletionQueue::TIMEOUT:
        for (auto& call : abandoned_) {
          if (call->state() != ControlCall::State::kEnded) (void)call.release();
        }
        (void)events_.release();
        return;
    }
  }
}

void ControlStream::Impl::WaitForEvent() {
  void* tag = nullptr;
  bool ok = false;
  const uint64_t next_ns = NextTimeNs();
  const uint64_t now_ns = clock_.NowNs();
  // Some way off even when nothing is due: a clock of another kind decides when it is over.
  const uint64_t wait_ns = next_ns <= now_ns ? 0 : std::min(next_ns - now_ns, kSilenceNs);
  const gpr_timespec until =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(static_cast<int64_t>(wait_ns), GPR_TIMESPAN));
  if (events_->AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return;
  if (tag == nullptr) {  // the alarm
    const std::lock_guard<std::mutex> lock(mutex_);
    alarm_set_ = false;
    return;
  }
  ControlCall::OnEvent(tag, ok);
  std::erase_if(abandoned_,
                [](const auto& call) { return call->state() == ControlCall::State::kEnded; });
  if (call_ != nullptr && call_->state() == ControlCall::State::kEnded) OnCallEnded();
}

void ControlStream::Impl::RunPosted() {
  std::vector<std::function<void()>> running;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(running, posted_);
  }
  for (const std::function<void()>& fn : running) fn();
}

uint64_t ControlStream::Impl::NextTimeNs() const {
  uint64_t next_ns = std::min({attempt_end_ns_, connect_end_ns_, goodbye_end_ns_});
  if (call_ == nullptr && !done_) next_ns = std::min(next_ns, retry_ns_);
  if (up()) next_ns = std::min({next_ns, renew_ns_, heard_ns_ + kSilenceNs});
  for (const auto& [id, asked] : asked_) next_ns = std::min(next_ns, asked.deadline_ns);
  return next_ns;
}

void ControlStream::Impl::OnTime() {
  const uint64_t now_ns = clock_.NowNs();
  if (now_ns >= goodbye_end_ns_) {
    goodbye_end_ns_ = kNever;
    if (call_ != nullptr) call_->Cancel(false, "this process is ending");
  }
  if (now_ns >= connect_end_ns_) {
    ReportFirst(Status(StatusCode::kUnavailable, "the master cannot be reached"),
                "the master at " + options_.master +
                    " cannot be reached: " + (last_error_.empty() ? "no answer" : last_error_) +
                    " (" + std::to_string(attempts_) + " attempts in " +
                    std::to_string(options_.connect_timeout_ms) + " ms)");
  }
  if (now_ns >= attempt_end_ns_) {
    attempt_end_ns_ = kNever;
    if (call_ != nullptr && call_->state() == ControlCall::State::kEnding) AbandonCall();
    if (call_ != nullptr) call_->Cancel(false, "no answer in time");
  }
  if (call_ == nullptr && !done_ && !stopping_ && now_ns >= retry_ns_) StartCall();
  if (up() && now_ns >= heard_ns_ + kSilenceNs) {
    call_->Cancel(false,
                  "it has said nothing for " + std::to_string(kSilenceNs / 1'000'000'000) + " s");
  }
  if (up() && now_ns >= renew_ns_) Renew();
  const bool ending = call_ != nullptr && call_->state() == ControlCall::State::kEnding;
  if (ending && attempt_end_ns_ == kNever) attempt_end_ns_ = now_ns + kEndingNs;
  for (auto at = asked_.begin(); at != asked_.end();) {
    if (now_ns < at->second.deadline_ns) {
      ++at;
      continue;
    }
    Asked asked = std::move(at->second);
    at = asked_.erase(at);
    if (asked.sent) {
      asked.answer(Status(StatusCode::kUnknownOutcome, "the master did not answer in time"),
                   "the master at " + options_.master + " did not answer in time", nullptr);
    } else {
      asked.answer(Status(StatusCode::kUnavailable, "the master is away"),
                   "the master at " + options_.master + " is away: " + last_error_, nullptr);
    }
  }
}

void ControlStream::Impl::StartCall() {
  ++attempts_;
  control::Hello hello;
  hello.set_protocol(kControlProtocol);
  hello.set_role(static_cast<control::Role>(role_));
  hello.set_cluster(cluster_);
  hello.set_member(member_);
  hello.set_epoch(handler_->KnownEpoch());
  hello.set_life(life_);
  hello.set_time_us(handler_->KnownTimeUs());
  hello.set_wall_us(clock_.UnixUs());
  hello.set_engine(options_.engine);
  hello.set_version(ONETRIP_VERSION);
  hello.set_pid(static_cast<uint64_t>(getpid()));
  hello.set_host(options_.host.empty() ? HostName() : options_.host);
  hello.set_host_id(ProcessSpace());
  hello.set_address(options_.address);
  attempt_end_ns_ = clock_.NowNs() + kAttemptNs;
  call_ =
      std::make_unique<ControlCall>(options_.master, hello, options_.secret, events_.get(), this);
}

void ControlStream::Impl::OnCallUp(const control::Verdict& verdict, uint64_t asked_ns) {
  if (done_) return call_->Cancel(false, "too late");
  const uint64_t now_ns = clock_.NowNs();
  attempt_end_ns_ = kNever;
  heard_ns_ = now_ns;
  ControlWelcome welcome;
  welcome.again = connect_end_ns_ == kNever;
  welcome.cluster = cluster_ = verdict.cluster();
  welcome.member = member_ = verdict.member();
  life_ = verdict.life();
  welcome.lease_ms = lease_ms_ = std::clamp<uint64_t>(verdict.lease_ms(), 40, 3'600'000);
  renewed_at_ns_.clear();
  renew_ns_ = role_ == Role::kTool ? kNever : now_ns;
  last_error_.clear();
  attending_.store(true, std::memory_order_release);
  if (welcome.again) {
    LogInfo("control: the master at " + options_.master + " is back, after " +
            std::to_string((now_ns - away_since_ns_.load()) / kNsPerMs) + " ms");
  }
  // Who rebuilds a master's state knows no time.
  if (verdict.time_us() != 0) handler_->OnTime(verdict.time_us(), asked_ns, now_ns);
  handler_->OnWelcome(welcome);
  for (auto& [id, asked] : asked_) {
    if (asked.sent) continue;
    asked.sent = true;
    Send(asked.message);
  }
  ReportFirst(Status::Ok(), "");
}

void ControlStream::Impl::ReportFirst(Status status, std::string reason) {
  connect_end_ns_ = kNever;
  if (!first_.has_value()) return;
  if (!status.ok()) done_ = true;
  first_->set_value({status, std::move(reason)});
  first_.reset();
}

void ControlStream::Impl::AbandonCall() {
  LogWarning("control: the connection to the master at " + options_.master +
             " has failed and does not come to an end; it is given up");
  abandoned_.push_back(std::move(call_));
  EndCall(*abandoned_.back());
}

void ControlStream::Impl::OnCallEnded() {
  const std::unique_ptr<ControlCall> call = std::move(call_);
  EndCall(*call);
}

void ControlStream::Impl::EndCall(const ControlCall& call) {
  const bool was_up = call.was_up();
  ControlCall::Refusal refusal = call.refusal();
  if (refusal.reason.empty()) refusal.reason = "the connection broke";
  attempt_end_ns_ = kNever;
  attending_.store(false, std::memory_order_release);
  const uint64_t now_ns = clock_.NowNs();
  if (was_up) away_since_ns_ = now_ns;
  if (was_up && !std::exchange(is_refused_, false)) backoff_ms_ = options_.backoff_min_ms;
  FailAsked(/*sent_only=*/true, "the connection to the master broke");
  if (stopping_ || done_) return;
  if (refusal.final) {
    done_ = true;
    FailAsked(/*sent_only=*/false, "the master has expelled this process");
    if (first_.has_value()) {
      return ReportFirst(Status(StatusCode::kInvalidArgument, "refused by the master"),
                         "the master at " + options_.master + ": " + refusal.reason);
    }
    // What the master said when it ended the stream before tells why; its last message may not
    // have come.
    if (!last_error_.empty()) refusal.reason += "; before that: " + last_error_;
    return handler_->OnExpelled(refusal.reason);
  }
  if (refusal.said && member_ != 0 && refusal.reason != last_error_) {
    LogError("control: the master at " + options_.master + ": " + refusal.reason +
             "; this process keeps all it has, goes on without a master and tries again");
  } else if (was_up || refusal.reason != last_error_) {
    LogWarning("control: the master at " + options_.master + ": " + refusal.reason +
               "; trying again");
  }
  last_error_ = refusal.reason;
  // Members that lost the master together do not all come back to it at once.
  const uint64_t delay_ns = backoff_ms_ * kNsPerMs;
  retry_ns_ = now_ns + delay_ns / 2 + rng_.Below(delay_ns / 2 + 1);
  backoff_ms_ = std::min(2 * backoff_ms_, options_.backoff_max_ms);
  if (was_up) handler_->OnBroken(refusal.reason);
}

void ControlStream::Impl::Renew() {
  const uint64_t now_ns = clock_.NowNs();
  // The first ones come fast, for the clock: the best of several is good enough to start with.
  ++renewals_;
  const bool fast = renewals_ < kFastRenewals;
  // Three in a lease, at multiples of a third of it: what renews on one host does so together,
  // which wakes the processor once. The master looks at that moment, too.
  const uint64_t every_ns = std::min(lease_ms_ / 6 * 2 * kNsPerMs, kRenewNsMax);
  renew_ns_ = fast ? now_ns + kFastRenewNs : (now_ns / every_ns + 1) * every_ns;
  control::FromMember message;
  control::Renew& renew = *message.mutable_renew();
  renew.set_sequence(renewals_);
  renew.set_quiet(!fast && now_ns < loud_ns_ + kLoudEveryNs);
  handler_->FillReport(renew.mutable_report());
  if (!renew.quiet()) {
    loud_ns_ = now_ns;
    renewed_at_ns_[renewals_] = now_ns;
  }
  call_->Send(message);
}

void ControlStream::Impl::OnCallMessage(const control::FromMaster& message) {
  heard_ns_ = clock_.NowNs();
  switch (message.kind_case()) {
    case control::FromMaster::kRenewed: {
      const auto sent = renewed_at_ns_.find(message.renewed().sequence());
      if (sent == renewed_at_ns_.end()) return;
      handler_->OnTime(message.renewed().time_us(), sent->second, heard_ns_);
      handler_->OnMarkStored(message.renewed().mark());
      renewed_at_ns_.erase(renewed_at_ns_.begin(), std::next(sent));
      return;
    }
    case control::FromMaster::kReply:
      return OnReply(message.reply());
    case control::FromMaster::kKeepState:
      kept_.Add(message.keep_state());
      return handler_->OnState(Recall().recalled());
    case control::FromMaster::kRecall:
      return call_->Send(Recall());
    case control::FromMaster::kExpelled:
      return call_->Cancel(role_ != Role::kMemoryNode, message.expelled().reason());
    default:
      handler_->OnMessage(message);
  }
}

control::FromMember ControlStream::Impl::Recall() {
  control::FromMember message;
  kept_.Fill(message.mutable_recalled());
  handler_->FillRecalled(message.mutable_recalled());
  return message;
}

void ControlStream::Impl::OnReply(const control::Reply& reply) {
  const auto found = asked_.find(reply.id());
  if (found == asked_.end()) return;  // it came too late
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  if (reply.code() == 0) return asked.answer(Status::Ok(), "", &reply);
  const auto code = reply.code() <= static_cast<uint32_t>(StatusCode::kInternal)
                        ? static_cast<StatusCode>(reply.code())
                        : StatusCode::kInternal;
  asked.answer(Status(code, "refused by the master"),
               reply.reason().empty() ? Refused(code) : reply.reason(), nullptr);
}

void ControlStream::Impl::FailAsked(bool sent_only, const char* why) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    if (sent_only && !at->second.sent) {
      ++at;
      continue;
    }
    const Asked asked = std::move(at->second);
    at = asked_.erase(at);
    const auto code = asked.sent ? StatusCode::kUnknownOutcome : StatusCode::kUnavailable;
    asked.answer(Status(code, why), why, nullptr);
  }
}

// ---- ControlStream ----

ControlStream::ControlStream(ControlOptions options, Role role, Handler* handler)
    : impl_(std::make_unique<Impl>(std::move(options), role, handler)) {}
ControlStream::~ControlStream() = default;
Status ControlStream::Connect(std::string* reason) { return impl_->Connect(reason); }
void ControlStream::Restore(const control::Recalled& kept) { impl_->Restore(kept); }
void ControlStream::Send(const control::FromMember& message) { impl_->Send(message); }
void ControlStream::Ask(const control::Request& request, uint64_t timeout_ms, Answer answer) {
  impl_->Ask(request, timeout_ms, std::move(answer));
}
void ControlStream::OpenAnother(const std::string& reason) { impl_->OpenAnother(reason); }
void ControlStream::Run(std::function<void()> fn) { impl_->Run(std::move(fn)); }
void ControlStream::Stop(bool leave) { impl_->Stop(leave); }
bool ControlStream::attending() const { return impl_->attending(); }
uint64_t ControlStream::away_since_ns() const { return impl_->away_since_ns(); }

}  // namespace onetrip
