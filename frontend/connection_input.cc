// A connection's input: receiving it, parsing it into batches, and memory for what is large.
#include <algorithm>
#include <functional>
#include <string>

#include "client_core/base/log.h"
#include "frontend/connection.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

// Arguments are views into the input, which must not move until the batch has run.
void Connection::ParseBatch() {
  arguments_.clear();
  batch_size_ = 0;
  batch_bytes_ = 0;
  batch_end_ = RespResult::kCommand;
  const RespLimits limits = LimitsOf(session_, host_.config);
  // AUTH changes what the parser must enforce behind it.
  const size_t most = limits.must_authenticate ? 1 : batch_.size();
  const std::string_view data = input_.data();
  while (batch_size_ < most) {
    batch_end_ = parser_.Next(data.substr(batch_bytes_), limits);
    batch_bytes_ += parser_.consumed();
    if (batch_end_ != RespResult::kCommand) break;
    const std::span<const std::string_view> argv = parser_.argv();
    batch_[batch_size_++] = {arguments_.size(), argv.size()};
    arguments_.insert(arguments_.end(), argv.begin(), argv.end());
    // Quoted arguments of an inline command lie in the parser until it is called again.
    const std::less<const char*> before;
    const char* const first = argv.front().data();
    if (before(first, data.data()) || !before(first, data.data() + data.size())) break;
  }
  if (batch_size_ == 0) input_.Consume(batch_bytes_);
}

// The record's address is known only when the location has arrived, hence two passes: by the second
// the first command's line is there.
void Connection::PrefetchBatch() {
  const std::span<BatchCommand> commands(batch_.data(), batch_size_);
  for (BatchCommand& command : commands) {
    command.row = LookUpCommand(ArgumentsOf(command));
    PrefetchCommand(host_.kv, session_.database, command.row, ArgumentsOf(command),
                    PrefetchStage::kLocation, &command.key);
  }
  for (BatchCommand& command : commands) {
    PrefetchCommand(host_.kv, session_.database, command.row, ArgumentsOf(command),
                    PrefetchStage::kRecord, &command.key);
  }
}

// The room is that of the whole request, once there is proof that it comes: its pages cost nothing
// before they are written to, and what is there need not be moved again.
Task<void> Connection::PrepareLargeInput() {
  const uint64_t held = input_.size();
  if (held < RequestMemory::kProofBytes && request_memory_.bytes() == 0) {
    input_needed_ = std::min(input_needed_, RequestMemory::kProofBytes - held);
    co_return;
  }
  const uint64_t step =
      std::min(held + input_needed_, std::max(RequestMemory::kLargeBytes, 2 * held));
  const uint64_t bytes = step + QueuedBytes();
  if (bytes > request_memory_.bytes()) {
    co_await request_memory_.Take(bytes, &open_);
    // It was the agent that did not read.
    session_.last_activity_ns = host_.executor.TurnNs();
  }
  if (state_ != State::kOpen) co_return;
  const bool has_room = co_await request_memory_.MakeRoom(input_, input_needed_);
  if (state_ != State::kOpen) co_return;
  if (!has_room) {
    LogWarning("client " + std::to_string(session_.id) +
               " closed: the host has no memory for its request");
    ReplyWriter(output_, session_.protocol).Error(kOomError);
    Finish();
    co_return;
  }
  input_needed_ = std::min(input_needed_, step - held);
}

void Connection::OnReadable() {
  if (wait_for_ != WaitFor::kInput) {
    // A command is running: let the bytes wait in the kernel, and do not ask again before it ended.
    watcher_.WatchReads(false);
    return;
  }
  const std::span<char> room = input_.Room(input_needed_);
  const size_t most =
      std::min({room.size(), std::max(kReadMaxBytes, input_needed_), ClientSocket::kMoveMaxBytes});
  size_t bytes = 0;
  const ClientSocket::Received received = socket_.Receive(room.first(most), &bytes);
  if (received == ClientSocket::Received::kNothing) return;
  if (received == ClientSocket::Received::kGone) {
    // Its replies were sent in the turn that produced them.
    Drop();
    Wake();
    return;
  }
  session_.last_activity_ns = host_.executor.TurnNs();
  input_.Commit(bytes);
  // Queued commands have not been executed either.
  if (input_.size() + QueuedBytes() > host_.config.query_buffer_max_bytes()) [[unlikely]] {
    host_.traffic.query_limit_closes.Add();
    LogWarning("client " + std::to_string(session_.id) +
               " closed: its unfinished request exceeds client-query-buffer-limit");
    Drop();
  } else if (bytes < input_needed_) {
    input_needed_ -= bytes;
    return;
  }
  Wake();
}

}  // namespace onetrip
