#include "tests/sim/control_link.h"

#include <vector>

#include "client_core/control/refusal.h"

namespace onetrip {
namespace {

constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint64_t kNsPerMs = 1'000'000;
// Until the next dial, at most.
constexpr uint64_t kDialAgainNs = 100'000;

}  // namespace

void ControlLink::Open() { Dial(); }

void ControlLink::Dial() {
  connection_ = &master_.Dial(name_, *this);
  state_ = State::kGreeting;
  due_ns_ = executor_.NowNs() + settings_.request_ms * kNsPerMs;
  CallAt(due_ns_);
  MemberHello hello;
  hello.kind = kind_;
  hello.cluster = cluster_;
  hello.member = member_;
  hello.epoch = hello_epoch_ = owner_.KnownEpoch();
  hello.life = life_;
  hello.wall_us = world_.clock().UnixUs();
  // The cluster's time exactly, as agents know it here.
  if (member_ != 0) hello.time_us = world_.clock().UnixUs();
  hello.version = "simulated";
  hello.host = name_;
  connection_->SendToMaster(hello);
}

void ControlLink::Lost() {
  state_ = State::kClosed;
  connection_ = nullptr;
  due_ns_ = executor_.NowNs() + 1 + world_.rng().Below(kDialAgainNs);
  CallAt(due_ns_);
  // Requests that were not sent yet go on the next one.
  std::vector<Answer> unknown;
  std::erase_if(asked_, [&](auto& asked) {
    if (asked.second.sent) unknown.push_back(std::move(asked.second.answer));
    return asked.second.sent;
  });
  for (const Answer& answer : unknown) {
    answer(Status(StatusCode::kUnknownOutcome, "the connection to the master broke"), nullptr);
  }
}

void ControlLink::Die() {
  dead_ = true;
  heard_.clear();
  if (connection_ != nullptr)
    connection_->CloseMember(name_ + " is gone", settings_.sees_ends != 0);
}

void ControlLink::OpenAnother() {
  if (connection_ == nullptr) return;
  connection_->CloseMember("");
  Lost();
}

void ControlLink::Break() {
  if (connection_ != nullptr) connection_->Break();
}

void ControlLink::SetPaused(bool paused) {
  paused_ = paused;
  if (paused || dead_) return;
  OnHeard(this);
  DoWhatIsDue();
}

void ControlLink::Heard(ControlConnection& connection, FromMasterMessage message) {
  heard_.emplace_back(&connection, std::move(message));
  executor_.At(executor_.NowNs(), OnHeard, this);
}

void ControlLink::OnHeard(void* arg) {
  ControlLink& link = *static_cast<ControlLink*>(arg);
  while (!link.heard_.empty() && !link.paused_) {
    const auto [connection, message] = std::move(link.heard_.front());
    link.heard_.pop_front();
    if (connection == link.connection_) link.Handle(message);
  }
}

void ControlLink::Handle(const FromMasterMessage& message) {
  if (const auto* verdict = std::get_if<SimVerdict>(&message)) return OnVerdict(*verdict);
  if (std::holds_alternative<ConnectionEnd>(message)) {
    connection_->CloseMember("");
    return Lost();
  }
  const auto& said = std::get<MasterMessage>(message);
  if (const auto* reply = std::get_if<ReplyMessage>(&said)) return OnReply(*reply);
  if (const auto* expelled = std::get_if<ExpelledMessage>(&said)) {
    return kind_ == MemberKind::kMemoryNode ? OpenAnother() : End(expelled->reason);
  }
  if (!std::holds_alternative<RenewedMessage>(said)) owner_.OnMessage(said);
}

// As ControlCall::OnVerdict().
void ControlLink::OnVerdict(const SimVerdict& verdict) {
  const Attendance& attendance = verdict.attendance;
  RefusalFacts facts;
  facts.was_member = member_ != 0;
  facts.is_node = kind_ == MemberKind::kMemoryNode;
  facts.is_proved = verdict.is_proved;
  facts.is_cluster = verdict.cluster == cluster_;
  facts.is_older = verdict.epoch < hello_epoch_;
  const bool is_believed =
      facts.is_proved && !facts.is_older && (cluster_ == 0 || facts.is_cluster);
  if (!attendance.welcome || !is_believed) {
    facts.is_expelled = !attendance.welcome && attendance.expelled;
    facts.may_retry = !attendance.welcome && attendance.retry;
    return EndsProcess(facts) ? End(attendance.reason) : OpenAnother();
  }
  member_ = attendance.member;
  cluster_ = verdict.cluster;
  life_ = verdict.life;
  state_ = State::kUp;
  owner_.OnWelcome();
  for (auto& [id, asked] : asked_) {
    if (!asked.sent) SendAsked(id, asked);
  }
  Renew();
}

void ControlLink::End(const std::string& reason) {
  state_ = State::kDone;
  due_ns_ = kNever;
  owner_.OnExpelled(reason);
}

void ControlLink::OnReply(const ReplyMessage& reply) {
  const auto found = asked_.find(reply.id);
  if (found == asked_.end()) return;  // it came too late
  const Answer answer = std::move(found->second.answer);
  asked_.erase(found);
  if (reply.code == StatusCode::kOk) return answer(Status::Ok(), &reply);
  answer(Status(reply.code, "refused by the master"), nullptr);
}

void ControlLink::OnTime(void* arg) {
  ControlLink& link = *static_cast<ControlLink*>(arg);
  if (!link.paused_ && !link.dead_) link.DoWhatIsDue();
}

void ControlLink::DoWhatIsDue() {
  const uint64_t now_ns = executor_.NowNs();
  if (now_ns >= due_ns_) {
    due_ns_ = kNever;
    if (state_ == State::kClosed) {
      Dial();
    } else if (state_ == State::kUp) {
      Renew();
    } else if (state_ == State::kGreeting) {
      connection_->CloseMember("no answer in time");
      Lost();
    }
  }
  std::vector<std::pair<Answer, bool>> late;
  std::erase_if(asked_, [&](auto& asked) {
    if (now_ns < asked.second.deadline_ns) return false;
    late.emplace_back(std::move(asked.second.answer), asked.second.sent);
    return true;
  });
  for (const auto& [answer, sent] : late) {
    answer(Status(sent ? StatusCode::kUnknownOutcome : StatusCode::kUnavailable,
                  "the master does not answer"),
           nullptr);
  }
}

void ControlLink::Renew() {
  due_ns_ = executor_.NowNs() + settings_.lease_ms * kNsPerMs / 4;
  CallAt(due_ns_);
  RenewMessage renew;
  renew.sequence = ++renewals_;
  owner_.Report(&renew.report);
  Send(renew);
}

void ControlLink::Send(MemberMessage message) {
  if (state_ == State::kUp && !dead_) connection_->SendToMaster(std::move(message));
}

void ControlLink::SendAsked(uint64_t id, Asked& asked) {
  asked.sent = true;
  Send(RequestMessage{id, asked.body});
}

void ControlLink::Ask(RequestBody body, uint64_t timeout_ms, Answer answer) {
  if (state_ == State::kDone) {
    return answer(Status(StatusCode::kUnavailable, "the connection is closed"), nullptr);
  }
  const uint64_t id = next_request_++;
  Asked& asked = asked_[id];
  asked.body = std::move(body);
  asked.answer = std::move(answer);
  if (timeout_ms != 0) {
    asked.deadline_ns = executor_.NowNs() + timeout_ms * kNsPerMs;
    CallAt(asked.deadline_ns);
  }
  if (state_ == State::kUp) SendAsked(id, asked);
}

}  // namespace onetrip
