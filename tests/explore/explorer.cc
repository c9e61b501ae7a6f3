#include "tests/explore/explorer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <utility>

#include "tests/explore/system.h"
#include "tests/explore/visited_set.h"

namespace onetrip {
namespace {

// In a state's byte of notes: some schedule completes all from here; and, with a bound, the fewest
// preemptions that have led here.
constexpr uint8_t kCompletes = 0x80;
constexpr uint8_t kPreemptionsMask = 0x7f;

class Search {
 public:
  Search(const Scope& scope, CellTable& cells, const ExploreOptions& options, ExploreResult* result)
      : cells_(cells), options_(options), result_(*result), system_(scope, cells) {
    system_.CountPreemptions(IsBounded());
    system_.Reduce(options.reduces);
    system_.KeepResults(options.keeps_results);
    has_faults_ = scope.faults().worker_crashes + scope.faults().node_crashes > 0;
  }

  // False: the reduction has turned out too coarse, explore again.
  bool Run() {
    const SystemState initial = system_.Initial();
    const uint64_t fingerprint = system_.FingerprintOf(initial);
    visited_.Insert(fingerprint);
    Push(initial, fingerprint);
    bool goes_on = true;
    while (depth_ > 0 && goes_on) goes_on = Step();
    result_.states = visited_.size();
    result_.executed = system_.executed();
    if (cells_.stale()) return false;
    if (result_.violation.empty() && depth_ == 0) {
      result_.complete = true;
      if (ChecksProgress()) CheckProgress();
    }
    return true;
  }

 private:
  struct Frame {
    SystemState state;
    uint64_t fingerprint = 0;
    std::vector<Choice> choices;
    size_t next = 0;
    bool completes = false;
    bool moves = false;  // some choice leads to another state
    std::vector<uint64_t> successors;
  };
  // A state without a completing successor by the time it was left: one on the stack may yet turn
  // out to complete.
  struct Unresolved {
    uint64_t fingerprint;
    std::vector<uint64_t> successors;
    std::string path;
  };

  [[nodiscard]] bool IsBounded() const {
    return options_.preemptions_max != ExploreOptions::kNoBound;
  }
  [[nodiscard]] bool ChecksProgress() const { return !IsBounded() && !has_faults_; }

  void Push(const SystemState& state, uint64_t fingerprint) {
    if (stack_.size() == depth_) stack_.emplace_back();
    Frame& frame = stack_[depth_++];
    frame.state = state;
    frame.fingerprint = fingerprint;
    frame.next = 0;
    frame.completes = false;
    frame.moves = false;
    frame.successors.clear();
    system_.Choices(state, &frame.choices);
    result_.depth = std::max<uint64_t>(result_.depth, depth_ - 1);
  }

  // One choice of the newest frame, or back. False: the search ends.
  bool Step() {
    Frame& frame = stack_[depth_ - 1];
    if (cells_.stale()) return false;
    if (frame.next == frame.choices.size()) return Leave();
    const Choice choice = frame.choices[frame.next++];
    next_ = frame.state;
    ++result_.transitions;
    if (!system_.Apply(&next_, choice)) {
      if (!cells_.stale()) Violated();
      return false;
    }
    if (IsBounded() && next_.preemptions > options_.preemptions_max) {
      frame.moves = true;
      return true;
    }
    if (system_.IsCut(next_)) {
      ++result_.cut;
      frame.moves = frame.completes = true;
      return true;
    }
    const uint64_t fingerprint = system_.FingerprintOf(next_);
    if (fingerprint == frame.fingerprint) return true;  // a poll
    frame.moves = true;
    if (ChecksProgress()) frame.successors.push_back(fingerprint);
    const auto [notes, is_new] = visited_.Insert(fingerprint);
    const bool is_cheaper = IsBounded() && next_.preemptions < (*notes & kPreemptionsMask);
    if (!is_new && !is_cheaper) {
      frame.completes |= (*notes & kCompletes) != 0;
      return true;
    }
    *notes = next_.preemptions;
    if (visited_.size() >= options_.states_max) return false;
    Push(next_, fingerprint);
    return true;
  }

  bool Leave() {
    Frame& frame = stack_[depth_ - 1];
    // Nothing but polls left: as quiet as it gets.
    if (!frame.moves) {
      frame.completes = system_.AllDone(frame.state);
      result_.endings.insert(system_.EndingOf(frame.state));
      if (!system_.CheckEnd(frame.state)) {
        result_.violation = system_.violation();
        KeepPath(depth_ - 1);
        return false;
      }
    }
    if (frame.completes) {
      *visited_.Insert(frame.fingerprint).first |= kCompletes;
    } else if (ChecksProgress()) {
      unresolved_.push_back({frame.fingerprint, frame.successors, PathOf(depth_ - 1)});
    }
    --depth_;
    if (depth_ > 0) stack_[depth_ - 1].completes |= frame.completes;
    return true;
  }

  void Violated() {
    result_.violation = system_.violation();
    KeepPath(depth_);
  }
  // The choices that led to the state in frame `frame`, or beyond the last.
  [[nodiscard]] std::string PathOf(size_t frame) const {
    std::vector<Choice> path;
    for (size_t i = 0; i < frame; ++i) path.push_back(stack_[i].choices[stack_[i].next - 1]);
    return PathText(cells_, path);
  }
  void KeepPath(size_t frame) { result_.path = PathOf(frame); }

  // A state completes if a successor does, whatever the order in which they were left.
  void CheckProgress() {
    bool changed = true;
    while (changed) {
      changed = false;
      std::vector<Unresolved> rest;
      for (Unresolved& state : unresolved_) {
        bool completes = false;
        for (const uint64_t successor : state.successors) {
          completes |= (*visited_.Insert(successor).first & kCompletes) != 0;
        }
        if (completes) *visited_.Insert(state.fingerprint).first |= kCompletes;
        changed |= completes;
        if (!completes) rest.push_back(std::move(state));
      }
      unresolved_.swap(rest);
    }
    if (unresolved_.empty()) return;
    result_.violation = "from here on no schedule completes all operations";
    result_.path = unresolved_.back().path;
  }

  CellTable& cells_;
  const ExploreOptions options_;
  ExploreResult& result_;
  System system_;
  bool has_faults_ = false;
  VisitedSet visited_;
  std::deque<Frame> stack_;
  size_t depth_ = 0;
  SystemState next_;
  std::vector<Unresolved> unresolved_;
};

std::string Follow(const Scope& scope, CellTable& cells, const std::vector<Choice>& path,
                   bool* again) {
  *again = false;
  cells.Freeze();
  System system(scope, cells);
  std::vector<std::string> lines;
  system.TraceTo(&lines);
  SystemState state = system.Initial();
  std::vector<Choice> choices;
  bool good = true;
  for (size_t i = 0; good && i < path.size(); ++i) {
    system.Choices(state, &choices);
    bool is_possible = false;
    for (const Choice& choice : choices) is_possible |= ChoiceText(choice) == ChoiceText(path[i]);
    if (cells.stale()) break;
    if (!is_possible) return "no path of this scope from " + ChoiceText(path[i]);
    good = system.Apply(&state, path[i]);
  }
  *again = cells.stale();
  if (good && !*again) {
    system.Choices(state, &choices);
    bool moves = false;
    for (const Choice& choice : choices) {
      SystemState next = state;
      system.TraceTo(nullptr);
      moves |=
          !system.Apply(&next, choice) || system.FingerprintOf(next) != system.FingerprintOf(state);
    }
    system.TraceTo(&lines);
    if (!moves) system.CheckEnd(state);
  }
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

ExploreResult ExploreQuietly(const Scope& scope, const ExploreOptions& options, CellTable& cells) {
  const auto begin = std::chrono::steady_clock::now();
  ExploreResult result;
  bool done = false;
  while (!done) {
    result = ExploreResult();
    cells.Freeze();
    done = Search(scope, cells, options, &result).Run();
  }
  if (!result.ok()) result.timeline = TimelineOf(scope, result.path);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void Print(const Scope& scope, const ExploreOptions& options, const ExploreResult& result) {
  std::string faults;
  if (scope.faults().worker_crashes > 0) {
    faults += std::to_string(scope.faults().worker_crashes) + " worker crash ";
  }
  if (scope.faults().node_crashes > 0) {
    faults += std::to_string(scope.faults().node_crashes) + " node crash ";
  }
  const std::string bound = options.preemptions_max == ExploreOptions::kNoBound
                                ? "all schedules"
                                : std::to_string(options.preemptions_max) + " preemptions";
  std::printf(
      "explore %-18s r=%zu  %-28s %-15s %9llu states %10llu transitions  depth %3llu  "
      "%6llu executed  %.2f s  %s%s\n",
      scope.name().c_str(), scope.nodes(), faults.empty() ? "no faults" : faults.c_str(),
      bound.c_str(), static_cast<unsigned long long>(result.states),
      static_cast<unsigned long long>(result.transitions),
      static_cast<unsigned long long>(result.depth),
      static_cast<unsigned long long>(result.executed), result.seconds,
      !result.ok()      ? "VIOLATION"
      : result.complete ? "complete"
                        : "cut short",
      result.cut == 0 ? ""
                      : (", but for " + std::to_string(result.cut) + " steps of operations " +
                         "with too many answers")
                            .c_str());
  std::fflush(stdout);
}

}  // namespace

ExploreResult Explore(const Scope& scope, const ExploreOptions& options) {
  CellTable cells(scope);
  ExploreResult result = ExploreQuietly(scope, options, cells);
  Print(scope, options, result);
  return result;
}

ExploreResult ExploreBounds(const Scope& scope, int preemptions_max, uint64_t states_max) {
  CellTable cells(scope);
  ExploreOptions options;
  options.states_max = states_max;
  ExploreResult result;
  for (int bound = 0; bound <= preemptions_max; ++bound) {
    options.preemptions_max = bound;
    result = ExploreQuietly(scope, options, cells);
    if (!result.ok() || !result.complete) break;
  }
  Print(scope, options, result);
  return result;
}

std::string TimelineOf(const Scope& scope, const std::string& path) {
  CellTable cells(scope);
  const std::optional<std::vector<Choice>> choices = ParsePath(path, &cells);
  if (!choices.has_value()) return "no path";
  bool again = true;
  std::string text;
  while (again) text = Follow(scope, cells, *choices, &again);
  return text;
}

}  // namespace onetrip
