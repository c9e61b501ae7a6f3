#include "frontend/connection.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/kv/kv.h"
#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

Connection::Connection(ConnectionHost& host, UniqueFd fd, uint64_t id, std::string_view unix_path)
    : host_(host),
      socket_(std::move(fd), host.traffic),
      unix_path_(unix_path),
      watcher_(
          host.executor, socket_.fd(),
          [](void* self) { static_cast<Connection*>(self)->OnReadable(); },
          [](void* self) { static_cast<Connection*>(self)->OnWritable(); }, this),
      request_memory_(host.executor, host.large_values.requests),
      batch_(host.kv.keys_at_once() > 1 ? kNetworkBatchMax : kBatchMax),
      waits_for_network_(host.kv.keys_at_once() > 1) {
  InitializeSession(session_, id, host.executor.TurnNs(), host.config);
  if (unix_path_.empty()) {
    TuneTcp(socket_.fd(),
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
  open_ = false;
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
      request_memory_.Count(input_.capacity(), QueuedBytes());
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
      if (input_.size() + input_needed_ > RequestMemory::kLargeBytes) [[unlikely]] {
        co_await PrepareLargeInput();
        if (state_ != State::kOpen) break;
      }
      watcher_.WatchReads(true);
      co_await Waiting{*this, WaitFor::kInput};
    }
  }
  if (state_ == State::kOpen) state_ = State::kFinishing;
  open_ = false;
  watcher_.WatchReads(false);
  co_await SendRest();
}

Task<void> Connection::ExecuteBatch() {
  for (size_t i = 0; i < batch_size_ && state_ == State::kOpen; ++i) {
    if (MayOverlap(batch_[i]) && GainsByOverlap(i)) [[unlikely]] {
      while (MustAwaitKey(batch_[i])) co_await overlap_->AwaitEnd();
      if (state_ != State::kOpen) break;
      if (MayOverlap(batch_[i])) {
        BeginOverlapped(batch_[i]);
        continue;
      }
    }
    if (executing_) [[unlikely]] {
      co_await AwaitOverlapped();
      if (state_ != State::kOpen) co_return;
    }
    ReplyWriter out(output_, session_.protocol);
    CommandContext context{
        session_, host_.hooks, host_.kv, host_.stats, out, ArgumentsOf(batch_[i]), batch_[i].row};
    context.first_key = &batch_[i].key;
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
  if (executing_) [[unlikely]]
    co_await AwaitOverlapped();
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

Task<void> Connection::WaitForPause(std::span<const std::string_view> argv) {
  // A command that will be refused does not wait for it.
  const CommandRow* const row = LookUpCommand(argv);
  if (row == nullptr || !row->AcceptsArgumentCount(argv.size())) co_return;
  const bool is_write = WritesSomething(session_, argv);
  Observation& observation = host_.hooks.observation();
  const auto held = [this, is_write, &observation] {
    return state_ == State::kOpen && observation.pause.Holds(is_write, host_.executor.NowNs());
  };
  if (!held()) co_return;
  // Sends the replies to earlier commands.
  host_.flush_queue.Add(this);
  paused_ = true;
  observation.paused.fetch_add(1, std::memory_order_relaxed);
  while (held()) co_await host_.executor.SleepFor(kPauseLookNs);
  observation.paused.fetch_sub(1, std::memory_order_relaxed);
  paused_ = false;
}

}  // namespace onetrip
