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
  Change ApplyTo(std::string_view current) override {
    SortedSetEdit set(current, limits());
    removed_ = 0;
    for (const std::string_view member : members_) removed_ += set.Remove(member) ? 1 : 0;
    return removed_ == 0 ? Change::Keep() : Replace(set.Finish());
  }

  const std::span<const std::string_view> members_;
  int64_t removed_ = 0;
};

// Where the member at argv[2] stands, and its score.
struct Found {
  uint64_t position = 0;
  uint64_t size = 0;
  double score = 0;
};

// Reads that member; nothing: it is not there. False: it has answered.
Task<bool> ReadMember(CommandContext& context, std::optional<Found>* found) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSortedSet, &value)) co_return false;
  PackedElements members = SortedSetMembers(value);
  PackedElement member;
  for (uint64_t i = 0; members.Next(&member); ++i) {
    if (member.key != context.argv[2]) continue;
    *found = Found{i, members.size(), LoadScore(member.value)};
    break;
  }
  co_return true;
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
  std::optional<Found> found;
  const bool read = co_await ReadMember(context, &found);
  if (!read) co_return;
  found ? context.out.Double(found->score) : context.out.Null();
}

Task<void> ZRankCommand(CommandContext& context) {
  std::optional<Found> found;
  const bool read = co_await ReadMember(context, &found);
  if (!read) co_return;
  found ? context.out.Integer(static_cast<int64_t>(found->position)) : context.out.Null();
}

Task<void> ZRevRankCommand(CommandContext& context) {
  std::optional<Found> found;
  const bool read = co_await ReadMember(context, &found);
  if (!read) co_return;
  found ? context.out.Integer(static_cast<int64_t>(found->size - 1 - found->position))
        : context.out.Null();
}

Task<void> ZMScoreCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSortedSet, &value)) co_return;
  PackedMap members(value, /*has_values=*/true);
  context.out.Array(context.argv.size() - 2);
  ReplyPace pace(result.holder());
  for (const std::string_view member : context.argv.subspan(2)) {
    std::string_view score;
    members.Find(member, &score) ? context.out.Double(LoadScore(score)) : context.out.Null();
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
