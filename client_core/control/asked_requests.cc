#include "client_core/control/asked_requests.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client_core/control/control.pb.h"

namespace onetrip {
namespace {

std::string Refused(StatusCode code) {
  return "the master says: " + std::string(StatusCodeName(code));
}

}  // namespace

struct AskedRequests::Asked {
  control::FromMember message;
  ControlStream::Answer answer;
  uint64_t deadline_ns = kNever;
  bool sent = false;
};

AskedRequests::AskedRequests() = default;
AskedRequests::~AskedRequests() = default;

void AskedRequests::Add(const control::Request& request, uint64_t deadline_ns,
                        ControlStream::Answer answer) {
  const uint64_t id = next_++;
  std::unique_ptr<Asked>& asked = asked_[id];
  asked = std::make_unique<Asked>();
  *asked->message.mutable_request() = request;
  asked->message.mutable_request()->set_id(id);
  asked->answer = std::move(answer);
  asked->deadline_ns = deadline_ns;
}

void AskedRequests::TakeUnsent(const std::function<void(const control::FromMember&)>& send) {
  for (const auto& [id, asked] : asked_) {
    if (std::exchange(asked->sent, true)) continue;
    send(asked->message);
  }
}

void AskedRequests::OnReply(const control::Reply& reply) {
  const auto found = asked_.find(reply.id());
  if (found == asked_.end()) return;
  const std::unique_ptr<Asked> asked = std::move(found->second);
  asked_.erase(found);
  if (reply.code() == 0) return asked->answer(Status::Ok(), "", &reply);
  const auto code = reply.code() <= static_cast<uint32_t>(StatusCode::kInternal)
                        ? static_cast<StatusCode>(reply.code())
                        : StatusCode::kInternal;
  asked->answer(Status(code, "refused by the master"),
                reply.reason().empty() ? Refused(code) : reply.reason(), nullptr);
}

void AskedRequests::OnTime(uint64_t now_ns, const std::string& master,
                           const std::string& last_error) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    if (now_ns < at->second->deadline_ns) {
      ++at;
      continue;
    }
    const std::unique_ptr<Asked> asked = std::move(at->second);
    at = asked_.erase(at);
    if (asked->sent) {
      asked->answer(Status(StatusCode::kUnknownOutcome, "the master did not answer in time"),
                    "the master at " + master + " did not answer in time", nullptr);
    } else {
      std::string why = "the master at ";
      why.append(master).append(" is away: ").append(last_error);
      asked->answer(Status(StatusCode::kUnavailable, "the master is away"), why, nullptr);
    }
  }
}

void AskedRequests::Fail(bool sent_only, const char* why) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    if (sent_only && !at->second->sent) {
      ++at;
      continue;
    }
    const std::unique_ptr<Asked> asked = std::move(at->second);
    at = asked_.erase(at);
    const auto code = asked->sent ? StatusCode::kUnknownOutcome : StatusCode::kUnavailable;
    asked->answer(Status(code, why), why, nullptr);
  }
}

uint64_t AskedRequests::NextTimeNs() const {
  uint64_t next_ns = kNever;
  for (const auto& [id, asked] : asked_) next_ns = std::min(next_ns, asked->deadline_ns);
  return next_ns;
}

}  // namespace onetrip
