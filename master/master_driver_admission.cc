// Streams whose process has not proved itself yet, and those that are refused.
#include <algorithm>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "master/master_driver.h"

namespace onetrip {
namespace {

constexpr uint64_t kUsPerMs = 1000;
constexpr uint64_t kUsPerSecond = 1'000'000;
// A peer that is refused again and again must not fill the disk with lines.
constexpr uint64_t kRefusalsPerSecond = 5;

const char* KindText(MemberKind kind) {
  switch (kind) {
    case MemberKind::kAgent:
      return "an agent";
    case MemberKind::kMemoryNode:
      return "a memory node";
    case MemberKind::kOther:
      break;
  }
  return "a tool";
}

}  // namespace

void MasterDriver::DropOldestUnproved() {
  for (auto& [id, entry] : streams_) {
    if (entry.phase != Phase::kUnproved) continue;
    LogRefusal("dropped " + entry.stream->peer() + ": " + std::to_string(unproved_) +
               " processes are being admitted at once");
    EndStream(id, entry, "too many processes are being admitted at once");
    return;
  }
}

void MasterDriver::LogRefusal(const std::string& line) {
  const uint64_t second = NowUs() / kUsPerSecond;
  if (second != refusals_second_) {
    if (refusals_dropped_ != 0) {
      LogWarning(std::to_string(refusals_dropped_) + " more processes were refused");
    }
    refusals_second_ = second;
    refusals_logged_ = 0;
    refusals_dropped_ = 0;
  }
  if (refusals_logged_++ < kRefusalsPerSecond) {
    LogWarning(line);
  } else {
    ++refusals_dropped_;
  }
}

void MasterDriver::OnHandshake(StreamId id, Entry& entry, const control::FromMember& message) {
  if (const auto refusal = entry.admission->OnMessage(message)) {
    Refuse(id, entry, *refusal, /*retry=*/false);
  } else if (entry.admission->state() == Admission::State::kProof) {
    control::FromMaster challenge;
    challenge.mutable_challenge()->set_nonce(entry.admission->nonce());
    SendTo(id, challenge);
  } else {
    OnProved(id, entry);
  }
}

void MasterDriver::OnProved(StreamId id, Entry& entry) {
  const MemberHello hello = entry.admission->hello();
  Attendance attendance;
  const bool happened = Drive(CoordinatorEvent::Attends{id, hello}, &attendance, [&] {
    if (!attendance.welcome) return;
    control::FromMaster message;
    control::Verdict* const verdict = message.mutable_verdict();
    verdict->set_welcome(true);
    verdict->set_member(attendance.member);
    verdict->set_lease_ms(static_cast<uint32_t>(coordinator().lease_ms()));
    if (hello.kind != MemberKind::kOther) {
      verdict->set_time_us(std::min(coordinator().TimeUs(NowUs()), attendance.time_us_max));
    }
    Prove(*entry.admission, verdict);
    --unproved_;
    entry.admission.reset();
    const bool tool = hello.kind == MemberKind::kOther;
    entry.phase = tool ? Phase::kTool : Phase::kMember;
    const bool is_near = !hello.host_id.empty() && hello.host_id == process_space_;
    if (!tool && is_near) entry.pid = hello.pid;
    entry.deadline_us = tool ? NowUs() + options_.tool_idle_ms * kUsPerMs : 0;
    if (!tool) {
      const std::lock_guard<std::mutex> lock(mutex_);
      quiet_.emplace(id, QuietRenewal());
    }
    SendTo(id, message);
    if (tool || !copies_.has_state()) return;
    control::FromMaster state;
    copies_.FillWhole(&state);
    SendTo(id, state);
  });
  if (!happened) {
    Refuse(id, entry, "the master cannot write its state now", /*retry=*/true);
  } else if (!attendance.welcome) {
    Refuse(id, entry, attendance.reason, attendance.retry, attendance.expelled);
  }
}

void MasterDriver::Prove(const Admission& admission, control::Verdict* verdict) const {
  verdict->set_cluster(cluster_);
  verdict->set_epoch(coordinator().view().epoch.value);
  verdict->set_life(coordinator().life());
  verdict->set_mac(admission.MasterProof(*verdict));
}

void MasterDriver::Refuse(StreamId id, Entry& entry, const std::string& why, bool retry,
                          bool expelled) {
  std::string who = "a process";
  if (entry.admission->hello().pid != 0) {
    const MemberHello& hello = entry.admission->hello();
    who = std::string(KindText(hello.kind)) + " (process " + std::to_string(hello.pid) + " on " +
          hello.host + ")";
  }
  LogRefusal("refused " + who + " at " + entry.stream->peer() + ": " + why);
  control::FromMaster message;
  message.mutable_verdict()->set_reason("the master refused this process: " + why);
  message.mutable_verdict()->set_retry(retry);
  message.mutable_verdict()->set_expelled(expelled);
  if (entry.admission->state() == Admission::State::kProved) {
    Prove(*entry.admission, message.mutable_verdict());
  }
  SendTo(id, message);
  EndStream(id, entry, why);
}

}  // namespace onetrip
