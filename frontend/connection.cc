#include "frontend/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "redis_compat/command_context.h"
#include "redis_compat/command_table.h"
#include "redis_compat/dispatch.h"
#include "redis_compat/reply_status.h"
#include "redis_compat/resp_writer.h"

namespace onetrip {
namespace {

uint64_t QueuedBytes(const Session& session) {
  return session.transaction == nullptr ? 0 : session.transaction->queued_bytes;
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void FlushQueue::Add(Connection* connection) {
  if (std::exchange(connection->flush_queued_, true)) return;
  waiting_.push_back(connection);
}

void FlushQueue::Remove(Connection* connection) {
  if (connection->flush_queued_) std::erase(waiting_, connection);
}

void FlushQueue::FlushAll() {
  // A flush runs nothing else, so nobody comes or goes meanwhile.
  for (Connection* connection : waiting_) {
    connection->flush_queued_ = false;
    connection->Flush();
  }
  waiting_.clear();
}

Connection::Connection(ConnectionHost& host, UniqueFd fd, uint64_t id, std::string_view unix_path)
    : host_(host),
      fd_(std::move(fd)),
      unix_path_(unix_path),
      watcher_(
          host.executor, fd_.get(),
          [](void* self) { static_cast<Connection*>(self)->OnReadable(); },
          [](void* self) { static_cast<Connection*>(self)->OnWritable(); }, this) {
  InitializeSession(session_, id, host.executor.TurnNs(), host.config);
  if (unix_path_.empty()) {
    TuneTcp(fd_.get(),
            static_cast<uint32_t>(host.limits.keepalive_s.load(std::memory_order_relaxed)));
  }
}

Connection::~Connection() {
  host_.flush_queue.Remove(this);
  if (session_.monitors) {
    host_.hooks.observation().monitors.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Connection::Wake() {
  wait_for_ = WaitFor::kNothing;
  const std::coroutine_handle<> waiter = std::exchange(waiter_, nullptr);
  if (waiter) waiter.resume();
}

void Connection::WakeLater() {
  wait_for_ = WaitFor::kNothing;
  const std::coroutine_handle<> waiter = std::exchange(waiter_, nullptr);
  if (waiter) host_.executor.Schedule(waiter);
}

void Connection::Kill() {
  Drop();
  host_.flush_queue.Add(this);
}

void Connection::Finish() {
  if (state_ != State::kOpen) return;
  state_ = State::kFinishing;
  host_.flush_queue.Add(this);
}

Task<void> Connection::Run() {
  while (state_ == State::kOpen) {
    ParseBatch();
    if (batch_size_ > 1) PrefetchBatch();
    if (batch_size_ > 0) {
      co_await ExecuteBatch();
      input_.Consume(batch_bytes_);
      input_.Shrink();
      CountQueued();
    }
    if (state_ != State::kOpen) break;
    if (batch_end_ == RespResult::kError) {
      ReplyWriter out(output_, session_.protocol);
      AnswerProtocolError(parser_, session_, host_.stats, out);
      break;
    }
    if (!output_.empty()) host_.flush_queue.Add(this);
    if (batch_end_ == RespResult::kNeedMore) {
      input_needed_ = parser_.wanted_bytes();
      if (input_.size() + input_needed_ > kLargeRequestBytes) [[unlikely]] {
        co_await PrepareLargeInput();
        if (state_ != State::kOpen) break;
      }
      watcher_.WatchReads(true);
      co_await Waiting{*this, WaitFor::kInput};
    }
  }
  if (state_ == State::kOpen) state_ = State::kFinishing;
  watcher_.WatchReads(false);
  co_await SendRest();
}

// Arguments are views into the input, which must not move until the batch has run.
void Connection::ParseBatch() {
  arguments_.clear();
  batch_size_ = 0;
  batch_bytes_ = 0;
  batch_end_ = RespResult::kCommand;
  const RespLimits limits = LimitsOf(session_, host_.config);
  // AUTH changes what the parser must enforce behind it.
  const size_t most = limits.must_authenticate ? 1 : kBatchMax;
  const std::string_view data = input_.data();
  while (batch_size_ < most) {
    batch_end_ = parser_.Next(data.substr(batch_bytes_), limits);
    batch_bytes_ += parser_.consumed();
    if (batch_end_ != RespResult::kCommand) break;
    const std::span<const std::string_view> argv = parser_.argv();
    batch_[batch_size_++] = {arguments_.size(), argv.size(), nullptr};
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
                    PrefetchStage::kLocation);
  }
  for (const BatchCommand& command : commands) {
    PrefetchCommand(host_.kv, session_.database, command.row, ArgumentsOf(command),
                    PrefetchStage::kRecord);
  }
}

Task<void> Connection::ExecuteBatch() {
  for (size_t i = 0; i < batch_size_ && state_ == State::kOpen; ++i) {
    ReplyWriter out(output_, session_.protocol);
    CommandContext context{
        session_, host_.hooks, host_.kv, host_.stats, out, ArgumentsOf(batch_[i]), batch_[i].row};
    context.flow = this;
    if (host_.hooks.observation().pause.was_begun()) [[unlikely]] {
      co_await WaitForPause(context.argv);
      if (state_ != State::kOpen) co_return;
    }
    executing_ = true;
    const CommandStart start = BeginCommand(context);
    if (start == CommandStart::kAwait) {
      const uint64_t begun_ns = host_.executor.TurnNs();
      co_await context.command->awaited(context);
      context.waited_ns = host_.executor.TurnNs() - begun_ns;
      EndCommand(context);
    }
    if (start == CommandStart::kQueue) [[unlikely]]
      co_await QueueCommand(context);
    executing_ = false;
    if (!pushed_.empty()) [[unlikely]] {
      Push(std::exchange(pushed_, {}));
    }
    host_.traffic.commands.Add();
    if (session_.close_after_reply) [[unlikely]] {
      Finish();
      co_return;
    }
    if (output_.size() > kFlushEarlyBytes) [[unlikely]] {
      co_await RelieveOutput();
    }
  }
}

void Connection::Push(std::string_view bytes) {
  if (state_ != State::kOpen) return;
  if (executing_) {
    pushed_.append(bytes);
    if (pushed_.size() > kMonitorOutputMaxBytes) {
      pushed_ = {};
      CloseForOutput();
      Kill();
    }
    return;
  }
  output_.Append(bytes);
  host_.flush_queue.Add(this);
}

// The room is that of the whole request, once there is proof that it comes: its pages cost nothing
// before they are written to, and what is there need not be moved again.
Task<void> Connection::PrepareLargeInput() {
  const uint64_t held = input_.size();
  if (held < kProofBytes && input_share_.bytes() == 0) {
    input_needed_ = std::min(input_needed_, kProofBytes - held);
    co_return;
  }
  const uint64_t step = std::min(held + input_needed_, std::max(kLargeRequestBytes, 2 * held));
  co_await TakeRequestMemory(step + QueuedBytes(session_));
  if (state_ != State::kOpen) co_return;
  const bool has_room = co_await MakeInputRoom();
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

Task<void> Connection::TakeRequestMemory(uint64_t bytes) {
  if (bytes <= input_share_.bytes()) co_return;
  if (input_share_.bytes() > 0) {
    MemoryBudget::Growth growth(input_share_, bytes - input_share_.bytes());
    while (!growth.Take() && state_ == State::kOpen) {
      co_await host_.executor.SleepFor(kBudgetLookNs);
    }
  } else {
    MemoryBudget::Turn turn(host_.large_values.requests, bytes);
    while (!turn.Take(&input_share_) && state_ == State::kOpen) {
      co_await host_.executor.SleepFor(kBudgetLookNs);
    }
  }
  // It was us who did not read.
  session_.last_activity_ns = host_.executor.TurnNs();
}

void Connection::CountQueued() {
  const uint64_t queued = QueuedBytes(session_);
  const uint64_t input = input_.capacity() > kLargeRequestBytes ? input_.capacity() : 0;
  if (input == 0 && queued <= kLargeRequestBytes) {
    input_share_ = {};
  } else if (input_share_.bytes() == 0) {
    input_share_ = MemoryBudget::Share::TakeNow(host_.large_values.requests, input + queued);
  } else if (input + queued > input_share_.bytes()) {
    input_share_.Grow(input + queued - input_share_.bytes());
  }
}

Task<bool> Connection::MakeInputRoom() {
  if (input_.Fits(input_needed_)) co_return true;
  LargeMemory larger = LargeMemory::TryMake(input_.BytesFor(input_needed_));
  if (larger.start() == nullptr) co_return false;
  const std::string_view held = input_.data();
  for (size_t from = 0; from < held.size(); from += kTurnBytes) {
    if (from > 0) co_await host_.executor.Yield();
    std::memcpy(larger.start() + from, held.data() + from,
                std::min<size_t>(kTurnBytes, held.size() - from));
  }
  input_.TakeCopy(std::move(larger));
  co_return true;
}

Task<void> Connection::WaitForPause(std::span<const std::string_view> argv) {
  // What will be refused does not wait for it.
  const CommandRow* const row = LookUpCommand(argv);
  if (row == nullptr || !row->AcceptsArgumentCount(argv.size())) co_return;
  const bool is_write = WritesSomething(session_, argv);
  Observation& observation = host_.hooks.observation();
  const auto held = [this, is_write, &observation] {
    return state_ == State::kOpen && observation.pause.Holds(is_write, host_.executor.NowNs());
  };
  if (!held()) co_return;
  // What was answered before.
  host_.flush_queue.Add(this);
  paused_ = true;
  observation.paused.fetch_add(1, std::memory_order_relaxed);
  while (held()) co_await host_.executor.SleepFor(kPauseLookNs);
  observation.paused.fetch_sub(1, std::memory_order_relaxed);
  paused_ = false;
}

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

void Connection::OnReadable() {
  if (wait_for_ != WaitFor::kInput) {
    // A command is running: let the bytes wait in the kernel, and do not ask again before it ended.
    watcher_.WatchReads(false);
    return;
  }
  const std::span<char> room = input_.Room(input_needed_);
  const size_t most =
      std::min({room.size(), std::max(kReadMaxBytes, input_needed_), kMoveMaxBytes});
  const ssize_t received = recv(fd_.get(), room.data(), most, 0);
  if (received <= 0) {
    if (received < 0 && WouldBlock(errno)) return;
    // The client has gone. What it was owed was sent in the turn that produced it.
    Drop();
    Wake();
    return;
  }
  const auto bytes = static_cast<size_t>(received);
  host_.traffic.reads.Add();
  host_.traffic.input_bytes.Add(bytes);
  moved_bytes_ += bytes;
  session_.last_activity_ns = host_.executor.TurnNs();
  input_.Commit(bytes);
  // Queued commands have not been executed either.
  if (input_.size() + QueuedBytes(session_) > host_.config.query_buffer_max_bytes()) [[unlikely]] {
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

bool Connection::Send() {
  // What stood before it in the output may be gone: it would be taken for that.
  CHECK(state_ != State::kDropped);
  constexpr size_t kViews = 64;
  // More rounds only while the socket takes everything, and the turn stays short.
  size_t left = kMoveMaxBytes;
  for (int round = 0; round < 16 && !output_.empty() && left > 0; ++round) {
    std::array<std::string_view, kViews> views;
    size_t count = output_.Views(views);
    size_t fits = left;
    for (size_t i = 0; i < count; ++i) {
      views[i] = views[i].substr(0, fits);
      fits -= views[i].size();
      if (fits == 0) count = i + 1;
    }
    size_t offered = 0;
    ssize_t sent = 0;
    if (count == 1) {
      offered = views[0].size();
      sent = send(fd_.get(), views[0].data(), offered, MSG_NOSIGNAL);
    } else {
      std::array<iovec, kViews> pieces;
      for (size_t i = 0; i < count; ++i) {
        // sendmsg only reads through it.
        pieces[i] = {const_cast<char*>(views[i].data()), views[i].size()};
        offered += views[i].size();
      }
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = count;
      sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    }
    if (sent < 0) return WouldBlock(errno);
    last_sent_ns_ = host_.executor.TurnNs();
    host_.traffic.writes.Add();
    host_.traffic.output_bytes.Add(static_cast<uint64_t>(sent));
    moved_bytes_ += static_cast<uint64_t>(sent);
    output_.Consume(static_cast<size_t>(sent));
    if (static_cast<size_t>(sent) < offered) break;
    left -= offered;
  }
  return true;
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

bool Connection::OverSoftLimit(uint64_t now_ns) {
  const uint64_t soft_bytes = host_.limits.output_soft_bytes.load(std::memory_order_relaxed);
  const uint64_t soft_s = host_.limits.output_soft_s.load(std::memory_order_relaxed);
  if (soft_bytes == 0 || soft_s == 0 || output_.size() <= soft_bytes) {
    over_soft_since_ns_ = 0;
    return false;
  }
  if (over_soft_since_ns_ == 0) over_soft_since_ns_ = now_ns;
  return now_ns - over_soft_since_ns_ > soft_s * 1'000'000'000;
}

void Connection::Tend(uint64_t now_ns) {
  const uint64_t idle_ns =
      now_ns > session_.last_activity_ns ? now_ns - session_.last_activity_ns : 0;
  const uint64_t timeout_ns = host_.config.timeout_s() * 1'000'000'000;
  if (timeout_ns != 0 && idle_ns > timeout_ns && wait_for_ == WaitFor::kInput) Kill();
  if (OverSoftLimit(now_ns)) {
    CloseForOutput();
    Kill();
  }
  if (finishing_since_ns_ != 0 && now_ns > finishing_since_ns_ + kLingerNs) Kill();
  if (wait_for_ == WaitFor::kOutput && resume_bytes_ == 0 && TakesNothing(now_ns)) WakeLater();
  const bool is_paused =
      wait_for_ == WaitFor::kOutput && (resume_bytes_ > 0 || output_.size() > kMostBytes);
  if (is_paused && now_ns > last_sent_ns_ + kStalledNs) {
    CloseForOutput();
    Kill();
  }
  if (IsInTheWay(now_ns)) {
    LogWarning("client " + std::to_string(session_.id) +
               " closed: it keeps memory for large values that others wait for, and has sent and "
               "taken less than 128 KiB a second for half a minute");
    Kill();
  }
  if (wait_for_ == WaitFor::kInput) input_.ShrinkToRecent();
  if (idle_ns > kReleaseAfterNs && wait_for_ == WaitFor::kInput) {
    if (input_.size() == 0 && input_.capacity() > 0) {
      input_.Release();
      arguments_ = {};
      if (!parser_.in_command()) parser_.Shrink();
    }
    if (output_.empty()) output_.Release();
  }
}

// A byte now and then is no progress.
bool Connection::IsInTheWay(uint64_t now_ns) {
  if (!KeepsOthersWaiting()) {
    way_since_ns_ = 0;
    return false;
  }
  const uint64_t waited_ns = now_ns > way_since_ns_ ? now_ns - way_since_ns_ : 0;
  if (way_since_ns_ != 0 && waited_ns < kInTheWayNs) return false;
  const uint64_t moved = moved_bytes_ - std::exchange(way_bytes_, moved_bytes_);
  const bool watched = std::exchange(way_since_ns_, now_ns) != 0;
  return watched && moved < waited_ns / 1'000'000'000 * kLeastBytesPerS;
}

bool Connection::KeepsOthersWaiting() const {
  // What executes will be done.
  const bool keeps_request = wait_for_ != WaitFor::kNothing && input_share_.bytes() > 0 &&
                             host_.large_values.requests->waiting() > 0;
  // But perhaps not before its client has taken the replies to what went before.
  // These are of both budgets: transactions answer with what they have made, too.
  const bool keeps_value =
      output_.LargestShared() > 0 &&
      (host_.large_values.values->waiting() > 0 || host_.large_values.requests->waiting() > 0);
  return keeps_request || keeps_value;
}

size_t Connection::memory_bytes() const {
  return sizeof(*this) + input_.capacity() + output_.memory_bytes() +
         arguments_.capacity() * sizeof(std::string_view);
}

void Connection::Describe(uint64_t now_ns, ClientSnapshot* snapshot) const {
  FillFromSession(session_, now_ns, snapshot);
  snapshot->fd = fd_.get();
  snapshot->unix_socket = !unix_path_.empty();
  if (snapshot->unix_socket) {
    snapshot->address = std::string(unix_path_) + ":0";
    snapshot->local_address = snapshot->address;
  } else {
    snapshot->address = PeerAddress(fd_.get());
    snapshot->local_address = LocalAddress(fd_.get());
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
