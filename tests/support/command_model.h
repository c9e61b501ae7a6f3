// The meaning of commands on one key, one after the other: the sequential specification.
//
// Written from the documentation of Redis, not with the code under test. A command is compiled
// once; a step then compares numbers. Values are interned: a state is a few words.
//
// There are two databases: a key's state is what it holds in the one, and what the key of that name
// holds in the other one. SWAPDB exchanges the two.
//
// Expiry. A command takes effect at some true time between its start and its end, and along one
// order these times do not decrease. A clock of the cluster is wrong by `clock_error_ns` at most:
// a key with deadline d is alive before d - error, gone from d + error on, and in between whatever
// is observed; gone is for ever. Each step takes the earliest time that its outcome allows, which
// is exact: whatever is possible later is possible from an earlier time too.
//
// A deadline counted from now (EX, PX) comes from a clock read between the command's start and its
// end: an interval. The state carries the interval of deadlines that agree with every answer so
// far; each answer that depends on the deadline cuts it. The true deadline never leaves it, so
// nothing that happened is refused; and no answer is accepted without some deadline inside it.
#ifndef ONETRIP_TESTS_SUPPORT_COMMAND_MODEL_H_
#define ONETRIP_TESTS_SUPPORT_COMMAND_MODEL_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/history.h"

namespace onetrip {

struct ModelOptions {
  uint64_t clock_error_ns = 0;
  // Unix time less the true time of the history; whole microseconds.
  int64_t unix_offset_ns = 0;
};

// The value and deadline that a key holds before the first operation.
struct InitialState {
  std::optional<std::string> value;
  std::optional<int64_t> deadline_ms = std::nullopt;  // unix time
};

struct KeyState {
  static constexpr uint32_t kAbsent = 0;
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  uint32_t value = kAbsent;  // an interned value
  // The deadline lies in here, both ends included; earliest == kForever: it has none.
  int64_t deadline_earliest_ms = kForever;
  int64_t deadline_latest_ms = kForever;
  int64_t time_ns = 0;  // unix time at which the last step took effect, at the earliest
  // Value and deadline of the key of that name in the other database.
  struct Away {
    uint32_t value = kAbsent;
    int64_t deadline_earliest_ms = kForever;
    int64_t deadline_latest_ms = kForever;
    friend bool operator==(const Away&, const Away&) = default;
  };
  Away away;

  [[nodiscard]] bool present() const { return value != kAbsent; }
  [[nodiscard]] bool has_deadline() const { return deadline_earliest_ms != kForever; }
  friend bool operator==(const KeyState&, const KeyState&) = default;
};

struct ModelReply {
  enum class Kind : uint8_t {
    kAny,        // nothing is known of it
    kMalformed,  // not what a server sends: equals nothing
    kNil,
    kInteger,
    kBulk,    // `number` is an interned value
    kSimple,  // the same
    kError,   // the same, without the dash
    kArray,   // the same, all of it
  };
  Kind kind = Kind::kAny;
  int64_t number = 0;
  friend bool operator==(const ModelReply&, const ModelReply&) = default;
};

struct CompiledOp {
  enum class Verb : uint8_t {
    kRefused,  // an error in its arguments; leaves everything as it is
    kGet,
    kGetDel,
    kGetEx,
    kGetRange,
    kStrLen,
    kExists,
    kType,
    kTtl,
    kPttl,
    kSet,
    kDel,
    kAppend,
    kSetRange,
    kAdd,
    kExpire,
    kPersist,
    kFlushAll,
    kSwap,
    kCollection,  // `value`: which command
  };
  enum class Expiry : uint8_t { kNone, kAt, kFromNow, kKeep, kRemove };

  Verb verb = Verb::kRefused;
  Expiry expiry = Expiry::kNone;
  bool only_if_missing = false;        // NX
  bool only_if_present = false;        // XX
  bool only_if_greater = false;        // GT
  bool only_if_less = false;           // LT
  bool answer_previous = false;        // SET GET, GETSET
  bool answer_integer = false;         // SETNX
  bool overlooks_types = false;        // MGET
  bool inert = false;                  // by its reply, it has changed nothing
  bool blind = false;                  // it leaves the same whatever it found
  bool elsewhere = false;              // it is on the other database
  uint32_t value = KeyState::kAbsent;  // the argument; of kRefused, the error
  int64_t amount = 0;                  // addend, offset, or start of a range
  int64_t range_end = 0;
  int64_t expiry_ms = 0;  // unix time or from now
  ModelReply reply;
  // Unix time; kForever: no end is known.
  int64_t start_ns = 0;
  int64_t latest_ns = KeyState::kForever;     // its effect comes no later
  int64_t clock_end_ns = KeyState::kForever;  // it reads its clock no later
};

struct Outcome {
  ModelReply reply;
  KeyState next;
};

// The outcomes of one step: few, since only expiry and deadlines from now leave a choice.
class Outcomes {
 public:
  void Add(const ModelReply& reply, const KeyState& next) { items_[size_++] = {reply, next}; }
  void Clear() { size_ = 0; }
  // As if the databases had been swapped.
  void Swap();
  [[nodiscard]] const Outcome* begin() const { return items_.data(); }
  [[nodiscard]] const Outcome* end() const { return items_.data() + size_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  std::array<Outcome, 6> items_;
  size_t size_ = 0;
};

// The commands and values of one key. Not thread-safe.
class CommandModel {
 public:
  explicit CommandModel(const ModelOptions& options = {});

  KeyState Initial(const InitialState& initial);

  // Compiles `op`, a command on one key. False, with a reason, if the model does not know it.
  bool Compile(const HistoryOp& op, CompiledOp* compiled, std::string* error);

  // Every way in which `op` may take effect on `state` and answer what it did answer.
  void Step(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);

  // Returns true if `op` sets a deadline. While no key has one, time decides nothing.
  static bool SetsDeadline(const CompiledOp& op);

  // An integer in its one canonical spelling, as values and arguments must have it.
  static std::optional<int64_t> ReadInteger(std::string_view text);

  uint32_t Intern(std::string_view value);
  [[nodiscard]] std::string_view ValueOf(uint32_t id) const { return values_[id].bytes; }
  // RESP2 of `reply`. REQUIRES: neither kAny nor kMalformed.
  [[nodiscard]] std::string Encode(const ModelReply& reply) const;
  [[nodiscard]] std::string Describe(const KeyState& state) const;

 private:
  struct Value {
    std::string bytes;
    std::optional<int64_t> number;
  };
  struct Interval {
    int64_t earliest;
    int64_t latest;
  };

  ModelReply ReadReply(std::string_view reply);
  void CompileArguments(const Command& argv, CompiledOp* compiled);
  void CompileDeadline(const Command& argv, std::string_view unit_word,
                       const std::string& amount_text, CompiledOp* compiled);
  void CompileSet(const Command& argv, CompiledOp* compiled);
  void CompileGetEx(const Command& argv, CompiledOp* compiled);
  void CompileExpire(const Command& argv, std::string_view name, CompiledOp* compiled);
  void Refuse(std::string_view error, CompiledOp* compiled);
  // Reads `text` as a number, or makes a refusal of the command.
  bool ReadNumber(const std::string& text, int64_t* number, CompiledOp* compiled);

  void StepMissing(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  void StepPresent(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  void StepAppend(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  void StepSetRange(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  void StepAdd(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  void StepTimeLeft(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) const;
  void StepExpire(const CompiledOp& op, const KeyState& state, Outcomes* outcomes) const;
  void StepCollection(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  // A command on strings meets a collection. False: it does not care.
  bool StepOverCollection(const CompiledOp& op, const KeyState& state, Outcomes* outcomes);
  [[nodiscard]] KeyState WithDeadlineOf(const CompiledOp& op, KeyState state) const;
  [[nodiscard]] Interval NewDeadline(const CompiledOp& op) const;
  // The times that a clock that may be wrong shows at a time, at the least and at the most.
  [[nodiscard]] int64_t ClockMinMs(int64_t unix_ns) const;
  [[nodiscard]] int64_t ClockMaxMs(int64_t unix_ns) const;
  [[nodiscard]] int64_t UnixNs(uint64_t true_ns) const;

  ModelOptions options_;
  std::deque<Value> values_;  // elements never move
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  // Replies that steps answer, interned once.
  ModelReply ok_;
  ModelReply empty_;
  ModelReply type_none_;
  ModelReply type_string_;
  ModelReply not_integer_;
  ModelReply overflow_;
  ModelReply wrong_type_;

  // Steps of collections that were computed before, by command and value.
  struct CollectionStep {
    ModelReply reply;
    uint32_t next = KeyState::kAbsent;
  };
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, CollectionStep> collection_steps_;
  std::deque<Command> collection_commands_;  // CompiledOp::value: the index
};

// Splits a command on several keys (MGET, MSET, DEL, UNLINK, EXISTS) into the steps per key that it
// is documented to be, and appends them; a command on one key is appended as it is. A count over
// several keys says what each of them answered only if it is none or all of them; else the step's
// reply is left empty, which stands for any. A count that no keys add up to becomes a step whose
// reply nothing explains. A flush or a swap becomes one step that belongs to every key, and says of
// none what it held. Operations without effect and reads without an answer are dropped.
void SplitByKey(const HistoryOp& op, std::vector<HistoryOp>* steps);

// Returns true if the command empties or swaps whole databases: a step of it belongs to every key.
bool IsOfAllKeys(const Command& argv);

// The place of the first key among the arguments of a command that has one.
size_t KeyPlace(const Command& argv);

// The key of a command on one key; empty if it has none.
std::string_view KeyOf(const Command& argv);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_COMMAND_MODEL_H_
