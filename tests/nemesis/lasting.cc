#include "tests/nemesis/lasting.h"

#include <charconv>
#include <utility>

namespace onetrip {
namespace {

// The number in a reply: an integer, or a bulk string that spells one; 0 for nil.
std::optional<uint64_t> NumberIn(std::string_view reply) {
  if (reply == kRespNil) return 0;
  if (reply.starts_with("$")) {
    const size_t line = reply.find("\r\n");
    if (line == std::string_view::npos) return std::nullopt;
    reply.remove_prefix(line + 2);
  } else if (reply.starts_with(":")) {
    reply.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  uint64_t number = 0;
  const char* const end = reply.data() + reply.size();
  const auto [read, error] = std::from_chars(reply.data(), end, number);
  if (error != std::errc() || std::string_view(read, end) != "\r\n") return std::nullopt;
  return number;
}

// Without its line end.
std::string Shown(std::string_view reply) { return Quote(reply, 64); }

bool IsAnswer(const Command& command, std::string_view reply) {
  return ClassifyReply(command, reply) == Ending::kAnswered;
}

}  // namespace

Lasting::Lasting(size_t counters, size_t registers) : counters_(counters), registers_(registers) {}

std::string Lasting::OnceKey(size_t writer, uint64_t number) {
  return "once:" + std::to_string(writer) + ":" + std::to_string(number);
}

std::string Lasting::OnceValue(std::string_view key) {
  return "value of " + std::string(key) + ", written once";
}

void Lasting::Incremented(size_t counter, std::string_view reply, Ending ending) {
  const std::lock_guard lock(mutex_);
  Counter& at = counters_[counter];
  if (ending == Ending::kUnknown) ++at.unknown;
  if (ending == Ending::kUnknown || ending == Ending::kNotApplied) return;
  const std::optional<uint64_t> value = NumberIn(reply);
  if (ending == Ending::kFault || !value || *value == 0) {
    return Fail("INCR " + CounterKey(counter) + " answered " + Shown(reply));
  }
  ++at.acknowledged;
  // Far from what it can be; the vector need not grow to hold it.
  if (*value > 1'000'000'000) {
    return Fail("INCR " + CounterKey(counter) + " answered " + std::to_string(*value) + " after " +
                std::to_string(at.acknowledged) + " acknowledged ones");
  }
  if (at.answers.size() <= *value) at.answers.resize(*value * 2);
  if (at.answers[*value]) {
    Fail("INCR " + CounterKey(counter) + " answered " + std::to_string(*value) + " twice");
  }
  at.answers[*value] = true;
}

void Lasting::WrittenOnce(const std::string& key, Ending ending) {
  const std::lock_guard lock(mutex_);
  if (ending == Ending::kAnswered) once_.push_back(key);
  if (ending == Ending::kUnknown) ++once_unknown_;
  if (ending == Ending::kFault) Fail("SET " + key + " ended in a reply that no fault excuses");
}

std::string Lasting::AnyOnce(Rng& rng) const {
  const std::lock_guard lock(mutex_);
  return once_.empty() ? "" : once_[rng.Below(once_.size())];
}

uint64_t Lasting::NextValue(size_t index) {
  const std::lock_guard lock(mutex_);
  return ++registers_[index].sent;
}

void Lasting::RegisterWritten(size_t index, uint64_t value, Ending ending) {
  const std::lock_guard lock(mutex_);
  Register& at = registers_[index];
  if (ending == Ending::kAnswered) at.acknowledged = value;
  if (ending == Ending::kUnknown) at.unknown.insert(value);
  if (ending == Ending::kFault) {
    Fail("SET " + RegisterKey(index) + " ended in a reply that no fault excuses");
  }
}

uint64_t Lasting::Acknowledged(size_t index) const {
  const std::lock_guard lock(mutex_);
  return registers_[index].acknowledged;
}

void Lasting::OnceRead(std::string_view agent, const std::string& key, std::string_view reply) {
  const Command command = {"GET", key};
  const Ending ending = ClassifyReply(command, reply);
  if (ending != Ending::kAnswered && ending != Ending::kFault) return;
  if (reply == RespBulk(OnceValue(key))) return;
  const std::lock_guard lock(mutex_);
  Fail("the acknowledged SET " + key + " is lost: GET by " + std::string(agent) + " answers " +
       Shown(reply));
}

void Lasting::RegisterRead(std::string_view agent, size_t index, uint64_t acknowledged,
                           std::string_view reply) {
  const Command command = {"GET", RegisterKey(index)};
  const Ending ending = ClassifyReply(command, reply);
  if (ending != Ending::kAnswered && ending != Ending::kFault) return;
  const std::optional<uint64_t> value = NumberIn(reply);
  const std::lock_guard lock(mutex_);
  const Register& at = registers_[index];
  if (value && (*value >= acknowledged || at.unknown.contains(*value)) && *value <= at.sent) return;
  Fail("GET " + RegisterKey(index) + " by " + std::string(agent) + " answers " + Shown(reply) +
       " though the SET of " + std::to_string(acknowledged) +
       " was acknowledged before it, and none later than that of " + std::to_string(at.sent) +
       " was sent");
}

void Lasting::CounterRead(std::string_view agent, size_t counter, std::string_view reply) {
  if (!IsAnswer({"GET", CounterKey(counter)}, reply)) return;
  const std::optional<uint64_t> value = NumberIn(reply);
  const std::lock_guard lock(mutex_);
  Counter& at = counters_[counter];
  if (!value || *value < at.acknowledged || *value > at.acknowledged + at.unknown ||
      *value < at.last_read) {
    return Fail("GET " + CounterKey(counter) + " by " + std::string(agent) + " answers " +
                Shown(reply) + " after " + std::to_string(at.acknowledged) +
                " acknowledged INCRs and " + std::to_string(at.unknown) +
                " of unknown outcome; read before: " + std::to_string(at.last_read));
  }
  at.last_read = *value;
}

std::vector<std::string> Lasting::once_acknowledged() const {
  const std::lock_guard lock(mutex_);
  return once_;
}

uint64_t Lasting::once_unknown() const {
  const std::lock_guard lock(mutex_);
  return once_unknown_;
}

std::vector<Lasting::Counter> Lasting::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::vector<std::string> Lasting::failures() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = failures_;
  if (failures_left_out_ > 0) {
    all.push_back("and " + std::to_string(failures_left_out_) + " more failures like these");
  }
  return all;
}

void Lasting::Fail(std::string message) {
  if (failures_.size() < kFailuresMax) {
    failures_.push_back(std::move(message));
  } else {
    ++failures_left_out_;
  }
}

}  // namespace onetrip
