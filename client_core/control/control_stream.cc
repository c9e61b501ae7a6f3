#include "client_core/control/control_stream.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
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
#include "client_core/control/asked_requests.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/control_call.h"
#include "client_core/control/control_mac.h"
#include "client_core/control/kept_state.h"
#include "client_core/control/session_loop.h"

namespace onetrip {
namespace {

constexpr uint64_t kNever = AskedRequests::kNever;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kAttemptNs = 3'000'000'000;  // for one call until its welcome
constexpr uint64_t kGoodbyeNs = 1'000'000'000;
// A call that has failed is given this long until gRPC says so of all its parts.
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
  void Run(std::function<void()> fn) { (void)loop_.Post(std::move(fn)); }
  void Stop(bool leave);
  [[nodiscard]] bool attending() const { return attending_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t away_since_ns() const { return away_since_ns_.load(); }
  void Restore(const control::Recalled& kept) { kept_.Restore(kept); }

 private:
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
  void OnEvent(void* tag, bool ok);
  void OnTime();
  // An answer that has just come says so, to what was sent then.
  void TellTime(uint64_t time_us, uint64_t asked_ns) {
    // Who rebuilds a master's state knows no time, nor does a master that has just started.
    if (time_us != 0) handler_->OnTime(time_us, asked_ns, heard_ns_);
  }
  [[nodiscard]] uint64_t NextTimeNs() const;
  void StartCall();
  void OnCallEnded();
  void EndCall(const ControlCall& call);
  // Goes on without a call that does not come to its end.
  void AbandonCall();
  void EndEvents();
  void Renew();
  control::FromMember Recall();
  void SendAsked() {
    if (up()) asked_.TakeUnsent([this](const control::FromMember& message) { Send(message); });
  }
  void ReportFirst(Status status, std::string reason);
  void StartGoodbye();

  const SystemClock clock_;
  const ControlOptions options_;
  const Role role_;
  Handler* const handler_;

  // Session thread.
  Rng rng_;
  SessionLoop loop_;
  std::unique_ptr<ControlCall> call_;
  // Calls of which an event is still to come, or never will (seen of gRPC 1.51: Finish() of a
  // stream whose connection was reset while this process stood still).
  std::vector<std::unique_ptr<ControlCall>> abandoned_;
  uint64_t attempt_end_ns_ = kNever;  // for call_'s handshake, or for its end
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
  uint64_t life_ = 0;  // names the master that welcomed this process last
  uint64_t lease_ms_ = 0;
  uint64_t renew_ns_ = kNever;
  uint64_t heard_ns_ = 0;
  uint64_t renewals_ = 0;
  uint64_t loud_ns_ = 0;                        // the last one that wanted an answer
  std::map<uint64_t, uint64_t> renewed_at_ns_;  // by sequence; unanswered ones
  AskedRequests asked_;
  bool stopping_ = false;
  uint64_t goodbye_end_ns_ = kNever;

  std::atomic<bool> attending_{false};
  std::atomic<uint64_t> away_since_ns_{0};

  std::optional<std::promise<FirstWelcome>> first_;
  std::mutex stop_mutex_;
  bool stopped_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

// ---- Any thread ----

Status ControlStream::Impl::Connect(std::string* reason) {
  const Status sound = CheckControlOptions(options_, reason);
  if (!sound.ok()) {
    loop_.Close();
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

void ControlStream::Impl::Ask(const control::Request& request, uint64_t timeout_ms, Answer answer) {
  struct Question {
    control::Request request;
    uint64_t deadline_ns;
    Answer answer;
    void Refuse() const {
      const Status status(StatusCode::kUnavailable, "the connection to the master is closed");
      answer(status, status.message(), nullptr);
    }
  };
  const uint64_t deadline_ns = timeout_ms == 0 ? kNever : clock_.NowNs() + timeout_ms * kNsPerMs;
  const auto shared = std::make_shared<Question>(Question{request, deadline_ns, std::move(answer)});
  const bool is_taken = loop_.Post([this, shared] {
    if (stopping_ || done_ || asked_.size() >= kAsksMax) return shared->Refuse();
    asked_.Add(shared->request, shared->deadline_ns, std::move(shared->answer));
    SendAsked();
  });
  if (!is_taken) shared->Refuse();
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
  control::Request request;
  request.mutable_leave();
  asked_.Add(request, goodbye_end_ns_,
             [this](Status, const std::string&, const control::Reply*) { goodbye_end_ns_ = 0; });
  SendAsked();
}

void ControlStream::Impl::Main() {
  while (true) {
    loop_.RunPosted();
    OnTime();
    if (stopping_ && call_ == nullptr) break;
    const uint64_t next_ns = NextTimeNs();
    const uint64_t now_ns = clock_.NowNs();
    // Some way off even when nothing is due: a clock of another kind decides when it is over.
    const uint64_t wait_ns = next_ns <= now_ns ? 0 : std::min(next_ns - now_ns, kSilenceNs);
    loop_.Wait(wait_ns, [this](void* tag, bool ok) { OnEvent(tag, ok); });
  }
  asked_.Fail(/*sent_only=*/false, "this process is ending");
  ReportFirst(Status(StatusCode::kUnavailable, "stopped"), "stopped");
  loop_.Close();
  loop_.RunPosted();
  EndEvents();
}

// Parts of a call that gRPC does not give back stay its own.
void ControlStream::Impl::EndEvents() {
  const bool all_came = loop_.End(kEndingNs, [this](void* tag, bool ok) {
    if (!abandoned_.empty()) ControlCall::OnEvent(tag, ok);
  });
  if (all_came) return;
  for (auto& call : abandoned_) {
    if (call->state() != ControlCall::State::kEnded) (void)call.release();
  }
}

void ControlStream::Impl::OnEvent(void* tag, bool ok) {
  ControlCall::OnEvent(tag, ok);
  std::erase_if(abandoned_,
                [](const auto& call) { return call->state() == ControlCall::State::kEnded; });
  if (call_ != nullptr && call_->state() == ControlCall::State::kEnded) OnCallEnded();
}

uint64_t ControlStream::Impl::NextTimeNs() const {
  uint64_t next_ns = std::min({attempt_end_ns_, connect_end_ns_, goodbye_end_ns_});
  if (call_ == nullptr && !done_) next_ns = std::min(next_ns, retry_ns_);
  if (up()) next_ns = std::min({next_ns, renew_ns_, heard_ns_ + kSilenceNs});
  return std::min(next_ns, asked_.NextTimeNs());
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
  asked_.OnTime(now_ns, options_.master, last_error_);
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
      std::make_unique<ControlCall>(options_.master, hello, options_.secret, loop_.queue(), this);
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
  TellTime(verdict.time_us(), asked_ns);
  handler_->OnWelcome(welcome);
  SendAsked();
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
  asked_.Fail(/*sent_only=*/true, "the connection to the master broke");
  if (stopping_ || done_) return;
  if (refusal.final) {
    done_ = true;
    asked_.Fail(/*sent_only=*/false, "the master has expelled this process");
    if (first_.has_value()) {
      return ReportFirst(Status(StatusCode::kInvalidArgument, "refused by the master"),
                         "the master at " + options_.master + ": " + refusal.reason);
    }
    // The master's reason for ending the stream before tells why; its last message may not have
    // come.
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
      TellTime(message.renewed().time_us(), sent->second);
      handler_->OnMarkStored(message.renewed().mark());
      renewed_at_ns_.erase(renewed_at_ns_.begin(), std::next(sent));
      return;
    }
    case control::FromMaster::kReply:
      return asked_.OnReply(message.reply());
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
