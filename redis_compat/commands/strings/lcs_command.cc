// LCS: the longest common subsequence of two strings, as Redis 7.0 finds it (of several longest
// ones the same, and the same ranges).
#include <algorithm>
#include <string>
#include <vector>

#include "client_core/base/large_memory.h"
#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_copy.h"

namespace onetrip {
namespace {

// Cells between two looks at others.
constexpr size_t kCellsAtOnce = kTurnBytes / sizeof(uint32_t);

struct LcsOptions {
  bool length_only = false;
  bool ranges = false;
  bool with_match_length = false;
  int64_t shortest_match = 0;
};

void ReadLcsOptions(ArgumentReader& arguments, LcsOptions* options) {
  while (arguments.HasMore()) {
    const bool known = arguments.Flag("IDX", &options->ranges) ||
                       arguments.Flag("LEN", &options->length_only) ||
                       arguments.Flag("WITHMATCHLEN", &options->with_match_length) ||
                       arguments.Integer("MINMATCHLEN", &options->shortest_match);
    if (!known) arguments.SyntaxError();
  }
  arguments.Require(!options->ranges || !options->length_only,
                    "ERR If you want both the length and indexes, please just use IDX.");
}

// Lengths of the longest common subsequences of all beginnings of `a` and `b`.
class LcsTable {
 public:
  LcsTable(std::string_view a, std::string_view b)
      : a_(a), b_(b), memory_((a.size() + 1) * (b.size() + 1) * sizeof(uint32_t)) {}

  // Cells [begin, end) of the row of `a`'s beginning of `size` bytes, for `b`'s beginnings of so
  // many. REQUIRES: the row before and the cells before are filled.
  void Fill(size_t size, size_t begin, size_t end) {
    for (size_t j = begin; j < end; ++j) {
      if (size == 0 || j == 0) {
        Cell(size, j) = 0;
      } else {
        Cell(size, j) = a_[size - 1] == b_[j - 1] ? Cell(size - 1, j - 1) + 1
                                                  : std::max(Cell(size - 1, j), Cell(size, j - 1));
      }
    }
  }
  [[nodiscard]] uint32_t At(size_t i, size_t j) const { return cells()[i * (b_.size() + 1) + j]; }
  [[nodiscard]] uint32_t length() const { return At(a_.size(), b_.size()); }

 private:
  [[nodiscard]] uint32_t* cells() const { return reinterpret_cast<uint32_t*>(memory_.start()); }
  uint32_t& Cell(size_t i, size_t j) { return cells()[i * (b_.size() + 1) + j]; }

  std::string_view a_;
  std::string_view b_;
  // Some hundred megabytes perhaps, which are paid for row by row.
  const LargeMemory memory_;
};

// A part that the strings have in common; both ends belong to it.
struct Match {
  size_t a_first = 0;
  size_t a_last = 0;
  size_t b_first = 0;
  size_t b_last = 0;
  [[nodiscard]] size_t length() const { return a_last - a_first + 1; }
};

// Walks from the ends to the beginnings, as Redis does, which decides what is found.
class LcsWalk {
 public:
  // All of them outlive it. REQUIRES: the table is filled.
  LcsWalk(const LcsTable& table, std::string_view a, std::string_view b)
      : table_(table), a_(a), b_(b), i_(a.size()), j_(b.size()), left_(table.length()) {
    common_.resize(left_);
  }

  // Takes `steps` steps, or all that are left. False: the walk has arrived.
  bool Advance(size_t steps) {
    for (; i_ > 0 && j_ > 0 && steps > 0; --steps) TakeStep();
    return i_ > 0 && j_ > 0;
  }
  [[nodiscard]] const std::string& common() const { return common_; }
  [[nodiscard]] std::vector<Match>& matches() { return matches_; }

 private:
  void TakeStep() {
    if (a_[i_ - 1] != b_[j_ - 1]) {
      table_.At(i_ - 1, j_) > table_.At(i_, j_ - 1) ? --i_ : --j_;
      open_ = false;
      return;
    }
    common_[--left_] = a_[i_ - 1];
    --i_;
    --j_;
    if (open_) {
      matches_.back().a_first = i_;
      matches_.back().b_first = j_;
    } else {
      matches_.push_back({i_, i_, j_, j_});
      open_ = true;
    }
  }

  const LcsTable& table_;
  const std::string_view a_;
  const std::string_view b_;
  size_t i_;
  size_t j_;
  size_t left_;
  std::string common_;
  std::vector<Match> matches_;
  bool open_ = false;
};

void ReplyMatches(ReplyWriter& out, const LcsOptions& options, std::vector<Match> matches,
                  uint32_t length) {
  std::erase_if(matches, [&](const Match& match) {
    return static_cast<int64_t>(match.length()) < options.shortest_match;
  });
  out.Map(2);
  out.Bulk("matches");
  out.Array(matches.size());
  for (const Match& match : matches) {
    out.Array(options.with_match_length ? 3 : 2);
    out.Array(2);
    out.Integer(static_cast<int64_t>(match.a_first));
    out.Integer(static_cast<int64_t>(match.a_last));
    out.Array(2);
    out.Integer(static_cast<int64_t>(match.b_first));
    out.Integer(static_cast<int64_t>(match.b_last));
    if (options.with_match_length) out.Integer(static_cast<int64_t>(match.length()));
  }
  out.Bulk("len");
  out.Integer(length);
}

bool IsStringOrNothing(const RecordCopy& copy) {
  return !copy.found || copy.type == static_cast<uint8_t>(ValueType::kString);
}

}  // namespace

Task<void> LcsCommand(CommandContext& context) {
  RecordCopy a;
  RecordCopy b;
  for (RecordCopy* copy : {&a, &b}) {
    const Status status = co_await ReadCopy(context.kv, KeyAt(context, copy == &a ? 1 : 2), copy);
    if (AnsweredReadFailure(context, status)) {
      co_return;
    }
    CountLookup(context, copy->found);
    // The command must not keep a share for values that are read while it reads the other one.
    if (copy->holder != nullptr) {
      copy->holder->share = CountMemory(context, copy->holder->memory.bytes());
    }
  }
  if (!IsStringOrNothing(a) || !IsStringOrNothing(b)) {
    context.out.Error("ERR The specified keys must contain string values");
    co_return;
  }
  LcsOptions options;
  ArgumentReader arguments(context.argv, 3);
  ReadLcsOptions(arguments, &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const uint64_t cells = (a.bytes().size() + 1) * (b.bytes().size() + 1);
  if (cells * sizeof(uint32_t) > static_cast<uint64_t>(context.hooks.config().bulk_max_bytes())) {
    context.out.Error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    co_return;
  }
  const MemoryBudget::Share share = CountMemory(context, cells * sizeof(uint32_t));
  LcsTable table(a.bytes(), b.bytes());
  const size_t row_cells = b.bytes().size() + 1;
  size_t filled = 0;
  for (size_t row = 0; row <= a.bytes().size(); ++row) {
    for (size_t begin = 0; begin < row_cells; begin += kCellsAtOnce) {
      const size_t end = std::min(row_cells, begin + kCellsAtOnce);
      table.Fill(row, begin, end);
      filled += end - begin;
      if (filled < kCellsAtOnce) continue;
      filled = 0;
      co_await context.kv.Yield();
    }
  }
  if (options.length_only) {
    context.out.Integer(table.length());
    co_return;
  }
  LcsWalk walk(table, a.bytes(), b.bytes());
  while (walk.Advance(kCellsAtOnce)) co_await context.kv.Yield();
  options.ranges ? ReplyMatches(context.out, options, std::move(walk.matches()), table.length())
                 : context.out.Bulk(walk.common());
}

}  // namespace onetrip
