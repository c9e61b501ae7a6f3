// A connection's commands that are under way together: which ones may be, how they begin and end.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "frontend/connection.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/dispatch/observation.h"

namespace onetrip {
namespace {

bool HasOneKey(const CommandRow& row, size_t argc) {
  const bool names_one = argc == 2 && row.keys.first == 1 && row.more_keys.first == 0;
  return (row.has_one_key() || names_one) && row.AcceptsArgumentCount(argc);
}

bool MutatesFirst(const CommandRow* row) {
  return row != nullptr && (row->flags & kMutatesFirst) != 0;
}

}  // namespace

bool Connection::MayOverlap(const BatchCommand& command) const {
  if (batch_size_ == 1 || command.row == nullptr) return false;
  const CommandRow& row = *command.row;
  if ((row.flags & kOverlaps) == 0 || !HasOneKey(row, command.argument_count)) return false;
  const bool is_queued = session_.transaction != nullptr && session_.transaction->open;
  if (is_queued || session_.monitors || session_.reply_mode != ReplyMode::kOn) return false;
  // Monitors are shown commands in their order.
  const Observation& observation = host_.hooks.observation();
  return host_.config.pipeline_overlap() && !observation.pause.was_begun() &&
         observation.monitors.load(std::memory_order_relaxed) == 0;
}

bool Connection::GainsByOverlap(size_t index) const {
  if (waits_for_network_) return true;
  const BatchCommand& command = batch_[index];
  if (!MutatesFirst(command.row)) return false;
  const std::string_view key = ArgumentsOf(command)[1];
  if (overlap_ != nullptr && !overlap_->empty()) return overlap_->Has(key);
  if (index + 1 == batch_size_) return false;
  const BatchCommand& next = batch_[index + 1];
  return MutatesFirst(next.row) && next.argument_count > 1 && ArgumentsOf(next)[1] == key;
}

bool Connection::MustAwaitKey(const BatchCommand& command) const {
  if (overlap_ == nullptr) return false;
  const std::string_view key = ArgumentsOf(command)[1];
  return MutatesFirst(command.row) ? overlap_->MustAwait(key) : overlap_->Has(key);
}

void Connection::BeginOverlapped(const BatchCommand& command) {
  if (overlap_ == nullptr) overlap_ = std::make_unique<Overlap>(host_.executor);
  if (!overlap_->empty()) host_.traffic.overlapped.Add();
  const std::span<const std::string_view> argv = ArgumentsOf(command);
  Overlap::Call& call = overlap_->Add(argv[1], session_.protocol);
  CommandContext& context = call.context.emplace(
      CommandContext{session_, host_.hooks, host_.kv, host_.stats, call.out(), argv, command.row});
  context.first_key = &command.key;
  context.flow = this;
  context.turn = &call;
  if (MutatesFirst(command.row)) context.in_order = &call.in_order();
  executing_ = true;
  host_.traffic.commands.Add();
  if (BeginCommand(context) == CommandStart::kAwait) {
    host_.executor.Spawn(overlap_->gate(), EndOverlapped(call));
  } else {
    overlap_->End(call, output_);
  }
}

Task<void> Connection::EndOverlapped(Overlap::Call& call) {
  CommandContext& context = *call.context;
  const uint64_t begun_ns = host_.executor.TurnNs();
  co_await context.command->awaited(context);
  // The commands before it have taken the rest.
  const uint64_t took_ns = host_.executor.TurnNs() - begun_ns;
  context.waited_ns = took_ns - std::min(took_ns, call.awaited_ns());
  if (context.started_ns != 0) context.started_ns += call.awaited_ns();
  EndCommand(context);
  overlap_->End(call, output_);
  // A reply may keep memory that others wait for.
  if (state_ == State::kDropped) output_.Clear();
  host_.flush_queue.Add(this);
}

Task<void> Connection::AwaitOverlapped() {
  while (!overlap_->empty()) co_await overlap_->AwaitEnd();
  executing_ = false;
  if (!pushed_.empty()) Push(std::exchange(pushed_, {}));
  co_await Relieve();
}

}  // namespace onetrip
