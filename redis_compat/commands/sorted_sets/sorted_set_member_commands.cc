// Commands on members of a sorted set that name them.
#include <optional>
#include <string_view>
#include <vector>

#include "redis_compat/commands/sorted_sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/element_scan.h"
#include "redis_compat/dispatch/random_elements.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// Reads the options in front of the scores; returns where those begin.
size_t ReadAddOptions(std::span<const std::string_view> argv, AddOptions* options) {
  const struct {
    std::string_view word;
    bool* option;
  } words[] = {{"NX", &options->if_new},        {"XX", &options->if_there},
               {"CH", &options->count_changed}, {"INCR", &options->increment},
               {"GT", &options->if_greater},    {"LT", &options->if_less}};
  for (size_t i = 2; i < argv.size(); ++i) {
    bool is_option = false;
    for (const auto& [word, option] : words) {
      if (!EqualsIgnoreCase(argv[i], word)) continue;
      is_option = *option = true;
    }
    if (!is_option) return i;
  }
  return argv.size();
}

// ZADD, and ZINCRBY, which is one with INCR.
Task<void> Add(CommandContext& context, AddOptions options) {
  const auto argv = context.argv;
  const size_t first = ReadAddOptions(argv, &options);
  ArgumentReader arguments(argv, first);
  arguments.Require(first < argv.size() && (argv.size() - first) % 2 == 0, kSyntaxError);
  arguments.Require(!options.if_new || !options.if_there,
                    "ERR XX and NX options at the same time are not compatible");
  const int exclusive = int{options.if_greater} + int{options.if_less} + int{options.if_new};
  arguments.Require(exclusive <= 1,
                    "ERR GT, LT, and/or NX options at the same time are not compatible");
  arguments.Require(!options.increment || argv.size() - first == 2,
                    "ERR INCR option supports a single increment-element pair");
  std::vector<ScoredMember> members;
  members.reserve((argv.size() - first) / 2);
  while (arguments.HasMore()) {
    const double score = ReadDouble(arguments, arguments.Take());
    members.push_back({arguments.Take(), score});
  }
  if (arguments.AnsweredError(context.out)) co_return;
  co_await AddMembers(context, options, members);
}

class RemoveMembers final : public SortedSetMutation {
 public:
  explicit RemoveMembers(CommandContext& context)
      : SortedSetMutation(context), members_(context.argv.subspan(2)) {}
  [[nodiscard]] int64_t removed() const { return removed_; }

 private:
  Change ApplyTo(SortedSetEdit& set) override {
    removed_ = 0;
    for (const std::string_view member : members_) removed_ += set.Remove(member) ? 1 : 0;
    return removed_ == 0 ? Change::Keep() : Replace(set);
  }

  const std::span<const std::string_view> members_;
  int64_t removed_ = 0;
};

// Where a member stands.
class RankOf final : public SortedSetLook {
 public:
  explicit RankOf(std::string_view member) : member_(member) {}
  // Counted from the lowest one; nothing: it is not there.
  [[nodiscard]] std::optional<uint64_t> rank() const { return rank_; }
  [[nodiscard]] uint64_t size() const { return size_; }

  void LookAt(std::string_view value) override {
    rank_.reset();
    PackedElements members = SortedSetMembers(value);
    size_ = members.size();
    PackedElement member;
    for (uint64_t i = 0; !rank_ && members.Next(&member); ++i) {
      if (member.key == member_) rank_ = i;
    }
  }
  void LookAt(Tree& tree) override {
    uint64_t rank = 0;
    rank_.reset();
    size_ = tree.elements(kByScore);
    if (FindRank(tree, member_, &rank)) rank_ = rank;
  }

 private:
  const std::string_view member_;
  std::optional<uint64_t> rank_;
  uint64_t size_ = 0;
};

Task<void> ReplyRank(CommandContext& context, bool from_highest) {
  RankOf look(context.argv[2]);
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (!has_looked) co_return;
  if (!look.rank()) co_return context.out.Null();
  const uint64_t rank = from_highest ? look.size() - 1 - *look.rank() : *look.rank();
  context.out.Integer(static_cast<int64_t>(rank));
}

void ReplyElement(ReplyWriter& out, const PackedElement& element, std::string_view score) {
  out.Bulk(element.key);
  out.Bulk(score);
}

// As Redis shows a member of a skiplist.
void ReplyInTable(ReplyWriter& out, const PackedElement& element) {
  char text[kDoubleTextMax];
  ReplyElement(out, element, {text, FormatDouble(LoadScore(element.value), text)});
}

// As Redis shows one of a listpack, which keeps whole numbers as integers.
void ReplyCompact(ReplyWriter& out, const PackedElement& element) {
  constexpr double kIntegersMax = 0x1p62;
  const double score = LoadScore(element.value);
  const bool is_small = score >= -kIntegersMax && score <= kIntegersMax;
  const int64_t integer = is_small ? static_cast<int64_t>(score) : 0;
  if (!is_small || static_cast<double>(integer) != score) return ReplyInTable(out, element);
  char text[kInt64TextMax];
  const char* const end = FormatInt64(integer, text);
  ReplyElement(out, element, {text, static_cast<size_t>(end - text)});
}

}  // namespace

Task<void> ZAddCommand(CommandContext& context) { return Add(context, {}); }
Task<void> ZIncrByCommand(CommandContext& context) { return Add(context, {.increment = true}); }

Task<void> ZRemCommand(CommandContext& context) {
  RemoveMembers mutation(context);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.removed());
}

Task<void> ZScoreCommand(CommandContext& context) {
  ScoresOf look(context.argv.subspan(2));
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (!has_looked) co_return;
  const std::optional<double> score = look.scores().front();
  score ? context.out.Double(*score) : context.out.Null();
}

Task<void> ZRankCommand(CommandContext& context) {
  return ReplyRank(context, /*from_highest=*/false);
}
Task<void> ZRevRankCommand(CommandContext& context) {
  return ReplyRank(context, /*from_highest=*/true);
}

Task<void> ZMScoreCommand(CommandContext& context) {
  ScoresOf look(context.argv.subspan(2));
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (!has_looked) co_return;
  context.out.Array(look.scores().size());
  ReplyPace pace;
  for (const std::optional<double>& score : look.scores()) {
    score ? context.out.Double(*score) : context.out.Null();
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> ZCardCommand(CommandContext& context) {
  return ReplySize(context, ValueType::kSortedSet);
}

Task<void> ZRandMemberCommand(CommandContext& context) {
  return ReplyRandomElements(
      context, ValueType::kSortedSet, "WITHSCORES",
      [](ReplyWriter& out, std::string_view value) { out.Double(LoadScore(value)); });
}

Task<void> ZScanCommand(CommandContext& context) {
  return ScanElements(context, ValueType::kSortedSet, /*values=*/true, ReplyCompact, ReplyInTable);
}

}  // namespace onetrip
