// A connection's replies to its client: sends them, waits for the client to take them, and looks
// at clients that do not.
#include <string>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "frontend/connection.h"

namespace onetrip {

Task<void> Connection::RelieveOutput() {
  if (state_ == State::kDropped || !Send()) Drop();
  DropIfOverHardLimit();
  if (state_ == State::kDropped || output_.size() <= kFlushEarlyBytes) co_return;
  host_.flush_queue.Add(this);
  resume_bytes_ = kPauseBytes / 2;
  while (state_ == State::kOpen && output_.size() > kPauseBytes) {
    co_await Waiting{*this, WaitFor::kOutput};
  }
}

Task<bool> Connection::AwaitTaken() {
  if (state_ == State::kDropped || !Send()) Drop();
  DropIfOverHardLimit();
  resume_bytes_ = 0;
  while (!output_.empty() && !TakesNothing(host_.executor.TurnNs())) {
    host_.flush_queue.Add(this);
    co_await Waiting{*this, WaitFor::kOutput};
  }
  co_return output_.empty();
}

Task<void> Connection::SendRest() {
  if (state_ != State::kDropped && !Send()) Drop();
  finishing_since_ns_ = host_.executor.TurnNs();
  resume_bytes_ = 0;
  while (state_ != State::kDropped && !output_.empty()) {
    watcher_.WatchWrites(true);
    co_await Waiting{*this, WaitFor::kOutput};
  }
}

void Connection::Flush() {
  if (state_ != State::kDropped && !Send()) Drop();
  DropIfOverHardLimit();
  if (state_ == State::kDropped) {
    WakeLater();
    return;
  }
  watcher_.WatchWrites(!output_.empty());
  const bool finishing = state_ == State::kFinishing;
  if ((wait_for_ == WaitFor::kInput && finishing) ||
      (wait_for_ == WaitFor::kOutput && output_.size() <= resume_bytes_)) {
    WakeLater();
  }
}

void Connection::DropIfOverHardLimit() {
  const uint64_t hard_bytes = session_.monitors
                                  ? kMonitorOutputMaxBytes
                                  : host_.limits.output_hard_bytes.load(std::memory_order_relaxed);
  if (hard_bytes == 0 || output_.size() <= hard_bytes) return;
  // A value in extents may be larger than any limit: one of them does not count.
  if (output_.size() - output_.LargestShared() <= hard_bytes) return;
  CloseForOutput();
  Drop();
}

void Connection::CloseForOutput() {
  host_.traffic.output_limit_closes.Add();
  LogWarning("client " + std::to_string(session_.id) +
             " closed: unsent replies exceed client-output-buffer-limit");
}

// Sends as much as the socket takes. False when the connection is broken.
bool Connection::Send() {
  // Earlier replies may be gone: the client would take this one for them.
  CHECK(state_ != State::kDropped);
  return socket_.Send(output_, host_.executor.TurnNs());
}

void Connection::Tend(uint64_t now_ns) {
  const bool awaits_output = wait_for_ == WaitFor::kOutput;
  if (awaits_output && resume_bytes_ == 0 && TakesNothing(now_ns)) WakeLater();
  const ClientSigns signs{
      .now_ns = now_ns,
      .last_activity_ns = session_.last_activity_ns,
      .last_sent_ns = socket_.last_sent_ns(),
      .finishing_since_ns = finishing_since_ns_,
      .moved_bytes = socket_.moved_bytes(),
      .output_bytes = output_.size(),
      .awaits_input = wait_for_ == WaitFor::kInput,
      .is_paused = awaits_output && (resume_bytes_ > 0 || output_.size() > kMostBytes),
      .keeps_others_waiting = KeepsOthersWaiting()};
  const ClientBounds bounds{
      .timeout_s = host_.config.timeout_s(),
      .output_soft_bytes = host_.limits.output_soft_bytes.load(std::memory_order_relaxed),
      .output_soft_s = host_.limits.output_soft_s.load(std::memory_order_relaxed)};
  switch (watch_.Judge(signs, bounds)) {
    case ClientVerdict::kStays:
      break;
    case ClientVerdict::kOverLimit:
      CloseForOutput();
      Kill();
      break;
    case ClientVerdict::kInTheWay:
      LogWarning("client " + std::to_string(session_.id) +
                 " closed: it keeps memory for large values that others wait for, and has sent and "
                 "taken less than 128 KiB a second for half a minute");
      Kill();
      break;
    case ClientVerdict::kIdle:
    case ClientVerdict::kLingers:
      Kill();
      break;
  }
  const uint64_t idle_ns =
      now_ns > session_.last_activity_ns ? now_ns - session_.last_activity_ns : 0;
  ReleaseIdleBuffers(idle_ns);
}

// Memory that an idle client does not need.
void Connection::ReleaseIdleBuffers(uint64_t idle_ns) {
  if (wait_for_ != WaitFor::kInput) return;
  input_.ShrinkToRecent();
  if (idle_ns <= kReleaseAfterNs) return;
  if (input_.size() == 0 && input_.capacity() > 0) {
    input_.Release();
    arguments_ = {};
    if (!parser_.in_command()) parser_.Shrink();
  }
  if (output_.empty()) output_.Release();
  overlap_.reset();
}

bool Connection::KeepsOthersWaiting() const {
  // A command that executes will be done.
  const bool keeps_request = wait_for_ != WaitFor::kNothing && request_memory_.is_wanted();
  // But perhaps not before its client has taken the replies to what went before.
  // These are of both budgets: transactions answer with what they have made, too.
  const bool keeps_value =
      output_.LargestShared() > 0 &&
      (host_.large_values.values->waiting() > 0 || host_.large_values.requests->waiting() > 0);
  return keeps_request || keeps_value;
}

size_t Connection::memory_bytes() const {
  return sizeof(*this) + input_.capacity() + output_.memory_bytes() +
         arguments_.capacity() * sizeof(std::string_view) + batch_.size() * sizeof(BatchCommand) +
         (overlap_ == nullptr ? 0 : overlap_->memory_bytes());
}

void Connection::Describe(uint64_t now_ns, ClientSnapshot* snapshot) const {
  FillFromSession(session_, now_ns, snapshot);
  snapshot->fd = socket_.fd();
  snapshot->unix_socket = !unix_path_.empty();
  if (snapshot->unix_socket) {
    snapshot->address = std::string(unix_path_) + ":0";
    snapshot->local_address = snapshot->address;
  } else {
    snapshot->address = PeerAddress(socket_.fd());
    snapshot->local_address = LocalAddress(socket_.fd());
  }
  snapshot->paused = paused_;
  snapshot->closing = state_ != State::kOpen;
  snapshot->query_buffer_bytes = input_.size();
  snapshot->query_buffer_free_bytes = input_.capacity() - input_.size();
  snapshot->output_bytes = output_.size();
  snapshot->total_bytes = memory_bytes();
  snapshot->wants_write = wait_for_ == WaitFor::kOutput;
}

}  // namespace onetrip
