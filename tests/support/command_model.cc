// The steps of the model; command_compile.cc turns words into what they take.
#include "tests/support/command_model.h"

#include <algorithm>
#include <charconv>

#include "client_core/base/check.h"
#include "tests/support/collection_model.h"

namespace onetrip {
namespace {

using Verb = CompiledOp::Verb;
using Expiry = CompiledOp::Expiry;
using Kind = ModelReply::Kind;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kForever = KeyState::kForever;

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a == kForever) return kForever;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? kForever : -kForever) : sum;
}

int64_t FloorMs(int64_t ns) {
  if (ns == kForever) return kForever;
  return ns / kNsPerMs - (ns % kNsPerMs < 0 ? 1 : 0);
}

// The part of a string of `size` bytes that GETRANGE start end asks for: first byte and how many.
std::pair<size_t, size_t> RangeOf(int64_t start, int64_t end, int64_t size) {
  if (start < 0 && end < 0 && start > end) return {0, 0};
  start = std::max<int64_t>(0, start < 0 ? start + size : start);
  end = std::max<int64_t>(0, end < 0 ? end + size : end);
  end = std::min(end, size - 1);
  if (size == 0 || start > end) return {0, 0};
  return {static_cast<size_t>(start), static_cast<size_t>(end - start + 1)};
}

// Puts the outcome among the others if it is what the client was answered.
void Offer(const CompiledOp& op, const ModelReply& reply, const KeyState& next,
           Outcomes* outcomes) {
  if (op.reply.kind == Kind::kAny || op.reply == reply) outcomes->Add(reply, next);
}

bool Agrees(const CompiledOp& op, const ModelReply& reply) {
  return op.reply.kind == Kind::kAny || op.reply == reply;
}

ModelReply Integer(int64_t number) { return {Kind::kInteger, number}; }
constexpr ModelReply kNil = {Kind::kNil, 0};
ModelReply Bulk(uint32_t value) { return {Kind::kBulk, value}; }

KeyState Missing(const KeyState& state, int64_t time_ns) {
  KeyState missing;
  missing.time_ns = time_ns;
  missing.away = state.away;
  return missing;
}
KeyState Missing(const KeyState& state) { return Missing(state, state.time_ns); }

KeyState Swapped(const KeyState& state) {
  KeyState swapped = state;
  swapped.value = state.away.value;
  swapped.deadline_earliest_ms = state.away.deadline_earliest_ms;
  swapped.deadline_latest_ms = state.away.deadline_latest_ms;
  swapped.away = {state.value, state.deadline_earliest_ms, state.deadline_latest_ms};
  return swapped;
}

}  // namespace

void Outcomes::Swap() {
  for (size_t i = 0; i < size_; ++i) items_[i].next = Swapped(items_[i].next);
}

CommandModel::CommandModel(const ModelOptions& options) : options_(options) {
  values_.emplace_back();  // the id of a missing key
  empty_ = Bulk(Intern(""));
  ok_ = {Kind::kSimple, Intern("OK")};
  type_none_ = {Kind::kSimple, Intern("none")};
  type_string_ = {Kind::kSimple, Intern("string")};
  not_integer_ = {Kind::kError, Intern("ERR value is not an integer or out of range")};
  wrong_type_ = {Kind::kError,
                 Intern("WRONGTYPE Operation against a key holding the wrong kind of value")};
  overflow_ = {Kind::kError, Intern("ERR increment or decrement would overflow")};
}

KeyState CommandModel::Initial(const InitialState& initial) {
  KeyState state;
  state.time_ns = -kForever;
  if (!initial.value.has_value()) return state;
  state.value = Intern(*initial.value);
  if (initial.deadline_ms.has_value()) {
    state.deadline_earliest_ms = *initial.deadline_ms;
    state.deadline_latest_ms = *initial.deadline_ms;
  }
  return state;
}

std::optional<int64_t> CommandModel::ReadInteger(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || read != end || std::to_string(number) != text) return std::nullopt;
  return number;
}

uint32_t CommandModel::Intern(std::string_view value) {
  const auto found = ids_.find(value);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(values_.size());
  values_.push_back({std::string(value), ReadInteger(value)});
  ids_.emplace(values_.back().bytes, id);
  return id;
}

bool CommandModel::SetsDeadline(const CompiledOp& op) {
  return op.expiry == Expiry::kAt || op.expiry == Expiry::kFromNow;
}

int64_t CommandModel::UnixNs(uint64_t true_ns) const {
  if (true_ns == HistoryOp::kNever) return kForever;
  return static_cast<int64_t>(true_ns) + options_.unix_offset_ns;
}

int64_t CommandModel::ClockMinMs(int64_t unix_ns) const {
  return FloorMs(SaturatingAdd(unix_ns, -static_cast<int64_t>(options_.clock_error_ns)));
}

int64_t CommandModel::ClockMaxMs(int64_t unix_ns) const {
  return FloorMs(SaturatingAdd(unix_ns, static_cast<int64_t>(options_.clock_error_ns)));
}

std::string CommandModel::Encode(const ModelReply& reply) const {
  switch (reply.kind) {
    case Kind::kNil:
      return std::string(kRespNil);
    case Kind::kInteger:
      return RespInteger(reply.number);
    case Kind::kBulk:
      return RespBulk(values_[static_cast<size_t>(reply.number)].bytes);
    case Kind::kSimple:
      return "+" + values_[static_cast<size_t>(reply.number)].bytes + "\r\n";
    case Kind::kError:
      return RespError(values_[static_cast<size_t>(reply.number)].bytes);
    case Kind::kArray:
      return values_[static_cast<size_t>(reply.number)].bytes;
    case Kind::kAny:
    case Kind::kMalformed:
      break;
  }
  CHECK(false);
}

std::string CommandModel::Describe(const KeyState& state) const {
  constexpr size_t kShownBytesMax = 48;
  if (state.away.value != KeyState::kAbsent) {
    KeyState here = state;
    here.away = {};
    return Describe(here) + ", in the other database " +
           Quote(values_[state.away.value].bytes, kShownBytesMax);
  }
  if (!state.present()) return "(missing)";
  std::string text = Quote(values_[state.value].bytes, kShownBytesMax);
  if (state.has_deadline()) {
    text += " until " + std::to_string(state.deadline_earliest_ms);
    if (state.deadline_latest_ms != state.deadline_earliest_ms) {
      text += ".." + std::to_string(state.deadline_latest_ms);
    }
    text += " ms";
  }
  return text;
}

CommandModel::Interval CommandModel::NewDeadline(const CompiledOp& op) const {
  if (op.expiry == Expiry::kAt) return {op.expiry_ms, op.expiry_ms};
  return {SaturatingAdd(ClockMinMs(op.start_ns), op.expiry_ms),
          SaturatingAdd(ClockMaxMs(op.clock_end_ns), op.expiry_ms)};
}

KeyState CommandModel::WithDeadlineOf(const CompiledOp& op, KeyState state) const {
  if (op.expiry == Expiry::kKeep) return state;
  const bool none = op.expiry == Expiry::kNone || op.expiry == Expiry::kRemove;
  const Interval deadline = none ? Interval{kForever, kForever} : NewDeadline(op);
  state.deadline_earliest_ms = deadline.earliest;
  state.deadline_latest_ms = deadline.latest;
  return state;
}

void CommandModel::Step(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  if (op.elsewhere) {
    CompiledOp here = op;
    here.elsewhere = false;
    Step(here, Swapped(state), outcomes);
    return outcomes->Swap();
  }
  outcomes->Clear();
  KeyState now = state;
  now.time_ns = std::max(state.time_ns, op.start_ns);
  if (now.time_ns > op.latest_ns) return;
  if (op.verb == Verb::kRefused) return Offer(op, {Kind::kError, op.value}, now, outcomes);
  if (op.verb == Verb::kSwap) return Offer(op, ok_, Swapped(now), outcomes);
  if (op.verb == Verb::kFlushAll) {
    now.away = {};
    return Offer(op, ok_, Missing(now), outcomes);
  }
  if (!state.present()) {
    return op.verb == Verb::kCollection ? StepCollection(op, now, outcomes)
                                        : StepMissing(op, now, outcomes);
  }
  if (!state.has_deadline() || op.blind) return StepPresent(op, now, outcomes);
  const int64_t clock_min_ms = ClockMinMs(now.time_ns);
  if (clock_min_ms < state.deadline_latest_ms) {
    KeyState alive = now;
    alive.deadline_earliest_ms = std::max(state.deadline_earliest_ms, clock_min_ms + 1);
    StepPresent(op, alive, outcomes);
  }
  // A deadline beyond the range of nanoseconds is never met.
  if (state.deadline_earliest_ms <= std::min(ClockMaxMs(op.latest_ns), kForever / kNsPerMs)) {
    const int64_t gone_ns =
        state.deadline_earliest_ms * kNsPerMs - static_cast<int64_t>(options_.clock_error_ns);
    const KeyState missing = Missing(now, std::max(now.time_ns, gone_ns));
    op.verb == Verb::kCollection ? StepCollection(op, missing, outcomes)
                                 : StepMissing(op, missing, outcomes);
  }
}

void CommandModel::StepCollection(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  const auto [at, is_new] = collection_steps_.try_emplace({op.value, state.value});
  CollectionStep& step = at->second;
  if (is_new) {
    std::optional<std::string_view> value;
    if (state.present()) value = ValueOf(state.value);
    const CollectionOutcome outcome =
        onetrip::StepCollection(collection_commands_[op.value], value);
    step.reply = ReadReply(outcome.reply);
    if (outcome.next) step.next = Intern(*outcome.next);
  }
  if (step.next == KeyState::kAbsent) return Offer(op, step.reply, Missing(state), outcomes);
  KeyState next = state;
  next.value = step.next;
  Offer(op, step.reply, next, outcomes);
}

bool CommandModel::StepOverCollection(const CompiledOp& op, const KeyState& state,
                                      Outcomes* outcomes) {
  switch (op.verb) {
    case Verb::kGet:
    case Verb::kGetDel:
    case Verb::kGetEx:
    case Verb::kGetRange:
    case Verb::kStrLen:
    case Verb::kAppend:
    case Verb::kSetRange:
    case Verb::kAdd:
      Offer(op, op.overlooks_types ? kNil : wrong_type_, state, outcomes);
      return true;
    case Verb::kSet:
      if (op.answer_previous) Offer(op, wrong_type_, state, outcomes);
      return op.answer_previous;
    case Verb::kType:
      Offer(op, {Kind::kSimple, Intern(CollectionTypeName(ValueOf(state.value)))}, state, outcomes);
      return true;
    default:
      return false;
  }
}

void CommandModel::StepMissing(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  constexpr int64_t kNoKey = -2;
  KeyState next = state;
  switch (op.verb) {
    case Verb::kGet:
    case Verb::kGetDel:
    case Verb::kGetEx:
      return Offer(op, kNil, state, outcomes);
    case Verb::kGetRange:
      return Offer(op, empty_, state, outcomes);
    case Verb::kStrLen:
    case Verb::kExists:
    case Verb::kDel:
    case Verb::kExpire:
    case Verb::kPersist:
      return Offer(op, Integer(0), state, outcomes);
    case Verb::kType:
      return Offer(op, type_none_, state, outcomes);
    case Verb::kTtl:
    case Verb::kPttl:
      return Offer(op, Integer(kNoKey), state, outcomes);
    case Verb::kSet:
      if (op.only_if_present) return Offer(op, kNil, state, outcomes);
      next.value = op.value;
      return Offer(op, op.answer_integer ? Integer(1) : (op.answer_previous ? kNil : ok_),
                   WithDeadlineOf(op, next), outcomes);
    case Verb::kAppend:
      next.value = op.value;
      return Offer(op, Integer(static_cast<int64_t>(ValueOf(op.value).size())), next, outcomes);
    case Verb::kSetRange:
      return StepSetRange(op, state, outcomes);
    case Verb::kAdd:
      return StepAdd(op, state, outcomes);
    case Verb::kRefused:
    case Verb::kFlushAll:
    case Verb::kSwap:
    case Verb::kCollection:
      CHECK(false);
  }
}

void CommandModel::StepPresent(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  const std::string_view value = ValueOf(state.value);
  if (op.verb == Verb::kCollection) return StepCollection(op, state, outcomes);
  if (IsCollection(value) && StepOverCollection(op, state, outcomes)) return;
  const auto size = static_cast<int64_t>(value.size());
  KeyState next = state;
  switch (op.verb) {
    case Verb::kGet:
      return Offer(op, Bulk(state.value), state, outcomes);
    case Verb::kGetDel:
      return Offer(op, Bulk(state.value), Missing(state), outcomes);
    case Verb::kGetEx:
      return Offer(op, Bulk(state.value), WithDeadlineOf(op, state), outcomes);
    case Verb::kGetRange: {
      const auto [first, count] = RangeOf(op.amount, op.range_end, size);
      return Offer(op, Bulk(Intern(value.substr(first, count))), state, outcomes);
    }
    case Verb::kStrLen:
      return Offer(op, Integer(size), state, outcomes);
    case Verb::kExists:
      return Offer(op, Integer(1), state, outcomes);
    case Verb::kType:
      return Offer(op, type_string_, state, outcomes);
    case Verb::kTtl:
    case Verb::kPttl:
      return StepTimeLeft(op, state, outcomes);
    case Verb::kSet: {
      const ModelReply previous = Bulk(state.value);
      if (op.only_if_missing) {
        const ModelReply refusal = op.answer_integer ? Integer(0) : kNil;
        return Offer(op, op.answer_previous ? previous : refusal, state, outcomes);
      }
      next.value = op.value;
      return Offer(op, op.answer_previous ? previous : ok_, WithDeadlineOf(op, next), outcomes);
    }
    case Verb::kDel:
      return Offer(op, Integer(1), Missing(state), outcomes);
    case Verb::kAppend:
      return StepAppend(op, state, outcomes);
    case Verb::kSetRange:
      return StepSetRange(op, state, outcomes);
    case Verb::kAdd:
      return StepAdd(op, state, outcomes);
    case Verb::kExpire:
      return StepExpire(op, state, outcomes);
    case Verb::kPersist:
      next.deadline_earliest_ms = next.deadline_latest_ms = kForever;
      return Offer(op, Integer(state.has_deadline() ? 1 : 0), next, outcomes);
    case Verb::kRefused:
    case Verb::kFlushAll:
    case Verb::kSwap:
    case Verb::kCollection:
      CHECK(false);
  }
}

void CommandModel::StepAppend(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  const std::string_view value = ValueOf(state.value);
  const std::string_view tail = ValueOf(op.value);
  const ModelReply reply = Integer(static_cast<int64_t>(value.size() + tail.size()));
  // Most orders are refuted by the length: then there is nothing to put together.
  if (!Agrees(op, reply)) return;
  KeyState next = state;
  next.value = Intern(std::string(value).append(tail));
  outcomes->Add(reply, next);
}

void CommandModel::StepSetRange(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  const std::string_view value = ValueOf(state.value);  // empty for a missing key
  const std::string_view bytes = ValueOf(op.value);
  if (bytes.empty()) {
    return Offer(op, Integer(static_cast<int64_t>(value.size())), state, outcomes);
  }
  const size_t end = static_cast<size_t>(op.amount) + bytes.size();
  const ModelReply reply = Integer(static_cast<int64_t>(std::max(value.size(), end)));
  if (!Agrees(op, reply)) return;
  std::string changed(value);
  if (changed.size() < end) changed.resize(end, '\0');
  changed.replace(static_cast<size_t>(op.amount), bytes.size(), bytes);
  KeyState next = state;
  next.value = Intern(changed);
  outcomes->Add(reply, next);
}

void CommandModel::StepAdd(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) {
  const std::optional<int64_t> number =
      state.present() ? values_[state.value].number : std::optional<int64_t>(0);
  if (!number.has_value()) return Offer(op, not_integer_, state, outcomes);
  int64_t sum = 0;
  if (__builtin_add_overflow(*number, op.amount, &sum)) {
    return Offer(op, overflow_, state, outcomes);
  }
  if (!Agrees(op, Integer(sum))) return;
  KeyState next = state;
  next.value = Intern(std::to_string(sum));
  outcomes->Add(Integer(sum), next);
}

void CommandModel::StepTimeLeft(const CompiledOp& op, const KeyState& state,
                                Outcomes* outcomes) const {
  constexpr int64_t kNoDeadline = -1;
  constexpr int64_t kMsPerSecond = 1000;
  if (!state.has_deadline()) return Offer(op, Integer(kNoDeadline), state, outcomes);
  const bool seconds = op.verb == Verb::kTtl;
  const int64_t clock_min_ms = ClockMinMs(state.time_ns);
  if (op.reply.kind == Kind::kAny) {
    const int64_t left = std::max<int64_t>(0, state.deadline_earliest_ms - clock_min_ms);
    const int64_t answer = seconds ? (left + kMsPerSecond / 2) / kMsPerSecond : left;
    return outcomes->Add(Integer(answer), state);
  }
  const int64_t answer = op.reply.number;
  if (op.reply.kind != Kind::kInteger || answer < 0 || answer > kForever / kMsPerSecond / 2) return;
  // TTL rounds to the nearest second.
  const int64_t left_min = seconds ? answer * kMsPerSecond - kMsPerSecond / 2 : answer;
  const int64_t left_max = seconds ? left_min + kMsPerSecond - 1 : answer;
  KeyState next = state;
  // Nothing left may also mean that the deadline has just passed.
  if (left_min > 0) {
    next.deadline_earliest_ms =
        std::max(state.deadline_earliest_ms, SaturatingAdd(clock_min_ms, left_min));
  }
  next.deadline_latest_ms =
      std::min(state.deadline_latest_ms, SaturatingAdd(ClockMaxMs(op.clock_end_ns), left_max));
  if (next.deadline_earliest_ms <= next.deadline_latest_ms) outcomes->Add(op.reply, next);
}

void CommandModel::StepExpire(const CompiledOp& op, const KeyState& state,
                              Outcomes* outcomes) const {
  const bool has_deadline = state.has_deadline();
  const Interval given = NewDeadline(op);
  const int64_t earliest = state.deadline_earliest_ms;
  const int64_t latest = state.deadline_latest_ms;
  KeyState refused = state;
  KeyState accepted = WithDeadlineOf(op, state);
  bool may_refuse = (op.only_if_missing && has_deadline) || (op.only_if_present && !has_deadline);
  bool may_accept = !may_refuse;
  if (op.only_if_greater && has_deadline) {
    may_refuse |= given.earliest <= latest;
    may_accept &= given.latest > earliest;
    refused.deadline_earliest_ms = std::max(earliest, given.earliest);
    accepted.deadline_earliest_ms = std::max(given.earliest, earliest + 1);
  } else if (op.only_if_greater) {
    may_refuse = true;  // no deadline is the latest of all
    may_accept = false;
  } else if (op.only_if_less && has_deadline) {
    may_refuse |= given.latest >= earliest;
    may_accept &= given.earliest < latest;
    refused.deadline_latest_ms = std::min(latest, given.latest);
    accepted.deadline_latest_ms = std::min(given.latest, latest - 1);
  }
  if (may_refuse) Offer(op, Integer(0), refused, outcomes);
  if (!may_accept) return;
  // A deadline in the past removes the key at once.
  const bool past =
      op.expiry == Expiry::kFromNow ? op.expiry_ms <= 0 : op.expiry_ms <= ClockMinMs(op.start_ns);
  Offer(op, Integer(1), past ? Missing(state) : accepted, outcomes);
}

}  // namespace onetrip
