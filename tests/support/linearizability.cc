// The search over one key; check_history.cc splits a history into keys.
#include "tests/support/linearizability.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "tests/support/configuration_set.h"

namespace onetrip {
namespace {

constexpr uint32_t kSlots = 64;  // operations in flight that end
constexpr uint32_t kNoSlot = ~uint32_t{0};

// How far the search looks for effects of open operations when one that ends needs them. Most of
// those never matter, and all their orders are too many. Explaining everything with little effort
// is proof enough; what little effort refutes is tried again from a while before, with more.
struct Effort {
  uint32_t open_effects_max;  // per end, one after the other
  bool only_if_needed;        // as few as this end can do with
  uint64_t visits_max;
};
constexpr Effort kLittle = {3, true, ~uint64_t{0}};
constexpr auto kMore = std::to_array<Effort>({{1, false, 100'000}, {2, false, 400'000}});
constexpr Effort kAll = {~uint32_t{0}, false, ~uint64_t{0}};
// The search can go back to every kCheckpointEvents-th event, by kCheckpointsBackMax of these at
// most.
constexpr size_t kCheckpointEvents = 12;
constexpr size_t kCheckpointsBackMax = 8;

// The search over the operations of one key.
class KeySearch {
 public:
  KeySearch(const std::vector<HistoryOp>& history, const CheckOptions& options)
      : history_(history), options_(options), model_(options.model) {}

  CheckResult Run(const InitialState& initial);

 private:
  struct Event {
    uint64_t position;
    bool is_end;
    uint32_t op;
  };
  struct Op {
    CompiledOp compiled;
    uint32_t slot = kNoSlot;
    bool open = false;
    uint32_t twin = kNoSlot;  // slot of an open operation that does the same and goes first
  };

  bool Prepare(const InitialState& initial);
  void Begin();
  // Goes through the events from `first` to before `last`. Returns the one that nothing explains,
  // or `last`; with the verdict and the message in the result.
  size_t Pass(size_t first, size_t last, const Effort& effort);
  // Gets over `failed` from some checkpoint before it, with more effort.
  bool GoBack(size_t failed);
  bool Start(uint32_t op);
  bool StartOpen(uint32_t op);
  // Lets `op` take effect in every configuration; false if it can in none, or over budget.
  bool End(uint32_t op);
  bool GiveUp(uint32_t op);
  void Expand(const Configuration& from, const Op& ending);
  void ExpandOpen(const Configuration& from, const Op& ending);
  void Settle(Configuration* configuration);
  void Reach(Configuration configuration, uint32_t ending_slot);
  void FreeOpenSlots();
  std::string Explain(const Event& event);

  static bool SameEffect(const CompiledOp& a, const CompiledOp& b);

  const std::vector<HistoryOp>& history_;
  const CheckOptions& options_;
  CommandModel model_;
  struct Checkpoint {
    size_t event;  // the next event
    ConfigurationSet current;
    uint64_t in_flight;
    uint64_t inert;
    std::array<uint32_t, kSlots> op_of_slot;
    std::vector<uint32_t> open_slots;
    std::array<uint32_t, OpenSet::kSlots> op_of_open_slot;
  };

  std::vector<Op> ops_;  // as in history_; those left out have no event
  std::vector<Event> events_;
  CheckResult result_;
  KeyState initial_;

  bool any_open_ = false;
  std::vector<Checkpoint> checkpoints_;
  Effort effort_ = kLittle;
  bool cut_ = false;  // something was left out
  uint64_t visits_left_ = 0;
  uint64_t in_flight_ = 0;  // slots in use
  uint64_t inert_ = 0;      // those of operations that change nothing
  std::array<uint32_t, kSlots> op_of_slot_ = {};
  std::vector<uint32_t> open_slots_;  // in use, in the order of their starts
  std::array<uint32_t, OpenSet::kSlots> op_of_open_slot_ = {};

  ConfigurationSet current_;
  ConfigurationSet visited_;  // while an operation ends: it has not taken effect
  ConfigurationSet ended_;    // it has
  Outcomes outcomes_;
  Outcomes settling_;
};

bool KeySearch::Prepare(const InitialState& initial) {
  ops_.resize(history_.size());
  bool timed = initial.deadline_ms.has_value();
  for (uint32_t i = 0; i < history_.size(); ++i) {
    const HistoryOp& op = history_[i];
    const bool unknown = op.ending == Ending::kUnknown;
    if (op.ending == Ending::kNotApplied || (unknown && IsReadOnly(op.argv))) continue;
    if (op.ending == Ending::kFault) {
      result_.verdict = CheckVerdict::kNot;
      result_.message = "a reply that no fault excuses\n" + DescribeOp(op) + "\n";
      return false;
    }
    std::string error;
    if (!model_.Compile(op, &ops_[i].compiled, &error)) {
      result_.verdict = CheckVerdict::kGaveUp;
      result_.message = error + "\n" + DescribeOp(op) + "\n";
      return false;
    }
    ops_[i].open = unknown;
    any_open_ |= unknown;
    timed |= CommandModel::SetsDeadline(ops_[i].compiled);
    events_.push_back({op.start, false, i});
    if (!unknown) events_.push_back({op.end, true, i});
  }
  // No write to a key wipes out what the key of that name is in the other database.
  const bool has_two = std::any_of(ops_.begin(), ops_.end(), [](const Op& op) {
    return op.compiled.elsewhere || op.compiled.verb == CompiledOp::Verb::kSwap;
  });
  if (has_two) {
    for (Op& op : ops_) op.compiled.blind = false;
  }
  if (!timed) {
    for (Op& op : ops_) {
      op.compiled.start_ns = 0;
      op.compiled.latest_ns = KeyState::kForever;
    }
  }
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.position, a.is_end, a.op) < std::tie(b.position, b.is_end, b.op);
  });
  initial_ = model_.Initial(initial);
  if (!timed) initial_.time_ns = 0;
  return true;
}

CheckResult KeySearch::Run(const InitialState& initial) {
  if (!Prepare(initial)) return std::move(result_);
  Begin();
  size_t next = 0;
  for (;;) {
    next = Pass(next, events_.size(), kLittle);
    if (next == events_.size()) return std::move(result_);
    if (!cut_) return std::move(result_);
    if (!GoBack(next)) break;
    ++next;
  }
  Begin();
  const std::string refutation = result_.message;
  Pass(0, events_.size(), kAll);
  if (result_.verdict == CheckVerdict::kGaveUp) {
    result_.message += "With few operations of unknown outcome in effect: " + refutation;
  }
  return std::move(result_);
}

void KeySearch::Begin() {
  cut_ = false;
  in_flight_ = 0;
  inert_ = 0;
  open_slots_.clear();
  checkpoints_.clear();
  current_.Clear();
  current_.Add({initial_, 0, {}});
}

size_t KeySearch::Pass(size_t first, size_t last, const Effort& effort) {
  effort_ = effort;
  visits_left_ = std::min(options_.configurations_max, effort.visits_max);
  result_.verdict = CheckVerdict::kLinearizable;
  result_.message.clear();
  for (size_t i = first; i < last; ++i) {
    const Event& event = events_[i];
    if (any_open_ && effort.only_if_needed && i % kCheckpointEvents == 0) {
      checkpoints_.push_back(
          {i, current_, in_flight_, inert_, op_of_slot_, open_slots_, op_of_open_slot_});
    }
    if (event.is_end ? End(event.op) : Start(event.op)) continue;
    if (result_.message.empty()) {
      result_.verdict = CheckVerdict::kNot;
      result_.message = Explain(event);
    }
    return i;
  }
  return last;
}

bool KeySearch::GoBack(size_t failed) {
  std::string refutation = result_.message;
  for (size_t back = 1; back <= std::min(kCheckpointsBackMax, checkpoints_.size()); back *= 2) {
    for (const Effort& effort : kMore) {
      const Checkpoint& from = checkpoints_[checkpoints_.size() - back];
      current_ = from.current;
      in_flight_ = from.in_flight;
      inert_ = from.inert;
      op_of_slot_ = from.op_of_slot;
      open_slots_ = from.open_slots;
      op_of_open_slot_ = from.op_of_open_slot;
      if (Pass(from.event, failed + 1, effort) == failed + 1) return true;
    }
  }
  result_.message = std::move(refutation);
  return false;
}

bool KeySearch::Start(uint32_t op) {
  if (ops_[op].open) return StartOpen(op);
  const auto slot = static_cast<uint32_t>(std::countr_one(in_flight_));
  if (slot == kSlots) {
    result_.verdict = CheckVerdict::kGaveUp;
    result_.message = "more than 64 operations in flight\n";
    return false;
  }
  ops_[op].slot = slot;
  op_of_slot_[slot] = op;
  in_flight_ |= uint64_t{1} << slot;
  if (!ops_[op].compiled.inert) return true;
  inert_ |= uint64_t{1} << slot;
  for (Configuration& configuration : current_.items()) Settle(&configuration);
  return true;
}

bool KeySearch::StartOpen(uint32_t op) {
  OpenSet used;
  ops_[op].twin = kNoSlot;
  for (const uint32_t slot : open_slots_) {
    used.Insert(slot);
    // The latest of those that do the same: it has one before it in its turn.
    if (SameEffect(ops_[op_of_open_slot_[slot]].compiled, ops_[op].compiled)) ops_[op].twin = slot;
  }
  uint32_t slot = 0;
  while (slot < OpenSet::kSlots && used.Has(slot)) ++slot;
  if (slot == OpenSet::kSlots) {
    result_.verdict = CheckVerdict::kGaveUp;
    result_.message = "more than 256 operations whose outcome is still unknown\n";
    return false;
  }
  ops_[op].slot = slot;
  op_of_open_slot_[slot] = op;
  open_slots_.push_back(slot);
  return true;
}

bool KeySearch::SameEffect(const CompiledOp& a, const CompiledOp& b) {
  const auto effect = [](const CompiledOp& op) {
    return std::tie(op.verb, op.elsewhere, op.expiry, op.only_if_missing, op.only_if_present,
                    op.only_if_greater, op.only_if_less, op.value, op.amount, op.expiry_ms);
  };
  // A deadline counted from now depends on when now was.
  return a.expiry != CompiledOp::Expiry::kFromNow && effect(a) == effect(b);
}

bool KeySearch::End(uint32_t op) {
  const Op& ending = ops_[op];
  const uint64_t bit = uint64_t{1} << ending.slot;
  visited_.Clear();
  ended_.Clear();
  for (const Configuration& configuration : current_.items()) {
    if ((configuration.done & bit) != 0) {
      Reach(configuration, ending.slot);
    } else {
      visited_.Add(configuration);
    }
  }
  size_t expanded = 0;
  size_t round_begin = 0;
  for (uint32_t round = 0;; ++round) {
    for (; expanded < visited_.size(); ++expanded) {
      ++result_.configurations;
      if (visits_left_-- == 0) return GiveUp(op);
      const Configuration from = visited_[expanded];
      Expand(from, ending);
    }
    if (open_slots_.empty() || round_begin == visited_.size()) break;
    if (round == effort_.open_effects_max || (effort_.only_if_needed && ended_.size() > 0)) {
      cut_ = true;
      break;
    }
    const size_t round_end = visited_.size();
    for (; round_begin < round_end; ++round_begin) {
      const Configuration from = visited_[round_begin];
      ExpandOpen(from, ending);
    }
  }
  if (ended_.size() == 0) return false;
  std::swap(current_, ended_);
  in_flight_ &= ~bit;
  inert_ &= ~bit;
  if (!open_slots_.empty()) FreeOpenSlots();
  return true;
}

bool KeySearch::GiveUp(uint32_t op) {
  result_.verdict = CheckVerdict::kGaveUp;
  result_.message = "more than " + std::to_string(options_.configurations_max) +
                    " configurations at\n" + DescribeOp(history_[op]) + "\n";
  return false;
}

// Everything that may take effect next, until what ends has done so.
void KeySearch::Expand(const Configuration& from, const Op& ending) {
  const uint64_t bit = uint64_t{1} << ending.slot;
  model_.Step(ending.compiled, from.state, &outcomes_);
  for (const Outcome& outcome : outcomes_) {
    Reach({outcome.next, from.done | bit, from.open_done}, ending.slot);
  }
  const uint64_t others = in_flight_ & ~from.done & ~bit;
  for (uint64_t left = others; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    model_.Step(ops_[op_of_slot_[slot]].compiled, from.state, &outcomes_);
    for (const Outcome& outcome : outcomes_) {
      Reach({outcome.next, from.done | (uint64_t{1} << slot), from.open_done}, ending.slot);
    }
  }
}

void KeySearch::ExpandOpen(const Configuration& from, const Op& ending) {
  const uint64_t others = in_flight_ & ~from.done & ~(uint64_t{1} << ending.slot);
  // Right before a blind write no operation sees what an open operation did.
  if (others == 0 && ending.compiled.blind) return;
  for (const uint32_t slot : open_slots_) {
    const Op& op = ops_[op_of_open_slot_[slot]];
    if (from.open_done.Has(slot)) continue;
    // If two do the same, the one that started first is taken.
    if (op.twin != kNoSlot && !from.open_done.Has(op.twin)) continue;
    model_.Step(op.compiled, from.state, &outcomes_);
    for (const Outcome& outcome : outcomes_) {
      Configuration reached = {outcome.next, from.done, from.open_done};
      reached.open_done.Insert(slot);
      Reach(reached, ending.slot);
    }
  }
}

// Files a configuration by whether the operation that ends has taken effect in it.
void KeySearch::Reach(Configuration configuration, uint32_t ending_slot) {
  Settle(&configuration);
  const uint64_t bit = uint64_t{1} << ending_slot;
  if ((configuration.done & bit) == 0) {
    visited_.Add(configuration);
    return;
  }
  configuration.done &= ~bit;
  ended_.Add(configuration, true);
}

// An operation that changes nothing, and that agrees with the state as it is, may as well take
// effect here: having it done takes nothing away from what else may happen.
void KeySearch::Settle(Configuration* configuration) {
  for (uint64_t left = inert_ & ~configuration->done; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    model_.Step(ops_[op_of_slot_[slot]].compiled, configuration->state, &settling_);
    for (const Outcome& outcome : settling_) {
      if (outcome.next == configuration->state) configuration->done |= uint64_t{1} << slot;
    }
  }
}

// An operation that has taken effect in every configuration is open no longer.
void KeySearch::FreeOpenSlots() {
  OpenSet everywhere = current_[0].open_done;
  for (const Configuration& configuration : current_.items()) {
    everywhere.Intersect(configuration.open_done);
  }
  const auto is_done = [&everywhere](uint32_t slot) { return everywhere.Has(slot); };
  if (std::none_of(open_slots_.begin(), open_slots_.end(), is_done)) return;
  for (Configuration& configuration : current_.items()) {
    for (const uint32_t slot : open_slots_) {
      if (is_done(slot)) configuration.open_done.Erase(slot);
    }
  }
  std::erase_if(open_slots_, is_done);
  for (const uint32_t slot : open_slots_) {
    uint32_t& twin = ops_[op_of_open_slot_[slot]].twin;
    if (twin != kNoSlot && is_done(twin)) twin = kNoSlot;
  }
}

std::string KeySearch::Explain(const Event& event) {
  constexpr size_t kLinesMax = 60;
  constexpr size_t kStatesMax = 12;
  std::vector<HistoryOp> prefix;
  for (const Event& other : events_) {
    if (!other.is_end && other.position <= event.position) prefix.push_back(history_[other.op]);
  }
  result_.prefix_ops = prefix.size();
  std::string text = "not linearizable: nothing explains the answer of\n" +
                     DescribeOp(history_[event.op]) + "\nafter these " +
                     std::to_string(prefix.size()) + " operations";
  if (prefix.size() > kLinesMax) {
    // Operations in flight stay in sight.
    const auto begin = prefix.end() - kLinesMax;
    const auto old = std::stable_partition(prefix.begin(), begin, [&event](const HistoryOp& op) {
      return op.ending == Ending::kAnswered && op.end < event.position;
    });
    prefix.erase(prefix.begin(), old);
    text += ", of which are shown the last " + std::to_string(kLinesMax) + " and those in flight";
  }
  text += ":\n" + DescribeHistory(prefix) + "States before it:\n";
  std::set<std::string> states;
  for (const Configuration& configuration : current_.items()) {
    std::string line = "  " + model_.Describe(configuration.state);
    for (uint64_t left = in_flight_; left != 0; left &= left - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(left));
      const HistoryOp& op = history_[op_of_slot_[slot]];
      line += ((configuration.done >> slot) & 1) != 0 ? "; done: " : "; to come: ";
      line += "client " + std::to_string(op.client) + "'s " + op.argv[0];
    }
    states.insert(std::move(line));
  }
  size_t shown = 0;
  for (const std::string& line : states) {
    if (shown++ == kStatesMax) {
      return text + "  ... " + std::to_string(states.size()) + " in all\n";
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace

CheckResult CheckKey(const std::vector<HistoryOp>& ops, const InitialState& initial,
                     const CheckOptions& options) {
  CheckResult result = KeySearch(ops, options).Run(initial);
  if (!ops.empty()) result.key = KeyOf(ops[0].argv);
  return result;
}

}  // namespace onetrip
