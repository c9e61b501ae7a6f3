#include "redis_compat/dispatch/random_elements.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {
namespace {

constexpr int64_t kCountMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kKeptBytesMax = uint64_t{512} << 20;

struct RandomOptions {
  bool one = true;  // no count was given
  int64_t count = 1;
  bool values = false;
};

void ReadRandomOptions(ArgumentReader& arguments, size_t argc, std::string_view values_word,
                       RandomOptions* options) {
  if (argc < 3) return;
  arguments.Require(!values_word.empty() || argc == 3, kSyntaxError);
  options->one = false;
  options->count = arguments.TakeInteger(
      {.min = -kCountMax,
       .out_of_range = "ERR value is out of range, value must between -9223372036854775807 and "
                       "9223372036854775807"});
  if (!arguments.HasMore()) return;
  arguments.Require(argc == 4 && arguments.Flag(values_word, &options->values), kSyntaxError);
  arguments.Require(options->count >= -kCountMax / 2 && options->count <= kCountMax / 2,
                    "ERR value is out of range");
}

class RandomReply {
 public:
  RandomReply(CommandContext& context, const ReadResult& from, bool values,
              ReplyElementValue reply_value)
      : context_(context), values_(values), reply_value_(reply_value), pace_(from.holder()) {}

  void Begin(uint64_t count) {
    const bool flat = values_ && context_.out.protocol() == 2;
    context_.out.Array(flat ? count * 2 : count);
  }
  Task<void> Rest() { return pace_.Rest(context_); }
  // True: others should go on before the next one.
  bool Add(const PackedElement& element) {
    if (values_ && context_.out.protocol() == 3) context_.out.Array(2);
    context_.out.Bulk(element.key);
    if (values_) reply_value_(context_.out, element.value);
    return pace_.IsDue();
  }

 private:
  CommandContext& context_;
  const bool values_;
  const ReplyElementValue reply_value_;
  ReplyPace pace_;
};

// Answers `count` times with any element.
Task<void> ReplyAny(CommandContext& context, const PackedElements& elements, uint64_t count,
                    RandomReply* reply) {
  PackedElements all = elements;
  std::vector<PackedElement> found;
  PackedElement element;
  while (all.Next(&element)) found.push_back(element);
  if (found.empty()) co_return context.out.Array(0);
  reply->Begin(count);
  for (; count > 0 && !context.session.abandoned; --count) {
    const bool is_due = reply->Add(found[context.hooks.rng().Below(found.size())]);
    if (is_due) co_await reply->Rest();
  }
}

// Answers with `count` different elements.
Task<void> ReplyDifferent(CommandContext& context, PackedElements elements, uint64_t count,
                          RandomReply* reply) {
  const std::vector<uint64_t> chosen =
      ChoosePositions(context.hooks.rng(), std::min(count, elements.size()), elements.size());
  reply->Begin(chosen.size());
  PackedElement element;
  uint64_t next = 0;
  for (const uint64_t position : chosen) {
    for (; next <= position; ++next) {
      if (!elements.Next(&element)) co_return;
    }
    if (reply->Add(element)) co_await reply->Rest();
  }
}

// Reads the elements of a tree that are chosen, or all of them, where more are wanted than that.
class RandomReader final : public TreeReader {
 public:
  RandomReader(ValueType type, bool has_values, const RandomOptions& options, Rng& rng)
      : type_(type), has_values_(has_values), options_(options), rng_(rng) {}

  void Read(const RecordView& record, Tree& tree) override {
    entries_.clear();
    if (!IsOfType(&record, type_)) return;
    const uint64_t size = tree.elements(0);
    is_chosen_ = options_.count >= -kRepeatsMax;
    if (!is_chosen_) {
      JoinLeaves(tree, &packed_);
      return;
    }
    ChooseAmong(size);
    CopyElementsAt(tree, chosen_, has_values_, &entries_);
    packed_ = PackedHeaderBytes({0, static_cast<uint32_t>(chosen_.size())}) + entries_;
  }

  // The elements, as a packed collection.
  [[nodiscard]] std::string_view packed() const { return packed_; }
  // They are those to answer with, in their order.
  [[nodiscard]] bool is_chosen() const { return is_chosen_; }

 private:
  static constexpr int64_t kRepeatsMax = 1000;

  // A choice stays when pages have to be loaded for it.
  void ChooseAmong(uint64_t size) {
    if (chosen_among_ == size) return;
    chosen_among_ = size;
    chosen_.clear();
    if (options_.count > 0) {
      chosen_ = ChoosePositions(rng_, std::min(static_cast<uint64_t>(options_.count), size), size);
    }
    for (int64_t i = options_.count; i < 0; ++i) chosen_.push_back(rng_.Below(size));
  }

  const ValueType type_;
  const bool has_values_;
  const RandomOptions& options_;
  Rng& rng_;
  std::vector<uint64_t> chosen_;
  uint64_t chosen_among_ = 0;
  bool is_chosen_ = false;
  std::string entries_;
  std::string packed_;
};

}  // namespace

std::vector<uint64_t> ChoosePositions(Rng& rng, uint64_t count, uint64_t size) {
  std::vector<uint64_t> chosen;
  chosen.reserve(count);
  if (count == size) {
    for (uint64_t i = 0; i < size; ++i) chosen.push_back(i);
    return chosen;
  }
  // Floyd's algorithm.
  absl::flat_hash_set<uint64_t> taken;
  for (uint64_t i = size - count; i < size; ++i) {
    const uint64_t any = rng.Below(i + 1);
    chosen.push_back(taken.insert(any).second ? any : i);
    taken.insert(chosen.back());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Task<void> ReplyRandomElements(CommandContext& context, ValueType type,
                               std::string_view values_word, ReplyElementValue reply_value) {
  ArgumentReader arguments(context.argv, 2);
  RandomOptions options;
  ReadRandomOptions(arguments, context.argv.size(), values_word, &options);
  if (arguments.AnsweredError(context.out)) co_return;
  const bool has_values = !values_word.empty();
  ReadResult result;
  RandomReader reader(type, has_values, options, context.hooks.rng());
  const ValueRange wanted{.reader = &reader};
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), wanted, &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, type, &value)) co_return;
  const bool is_chosen = IsTree(result) && reader.is_chosen();
  if (IsTree(result)) value = reader.packed();
  const PackedElements elements(value, has_values);
  if (options.one) {
    if (!result.found()) co_return context.out.Null();
    const uint64_t chosen = context.hooks.rng().Below(elements.size());
    PackedElements all = elements;
    PackedElement element;
    for (uint64_t i = 0; i <= chosen; ++i) all.Next(&element);
    co_return context.out.Bulk(element.key);
  }
  if (!result.found() || options.count == 0) co_return context.out.Array(0);
  RandomReply reply(context, result, options.values, reply_value);
  const bool repeats = options.count < 0;
  const auto count = static_cast<uint64_t>(repeats ? -options.count : options.count);
  // The replies of a transaction are kept until all of them are there.
  const uint64_t element_bytes = value.size() / std::max<uint64_t>(elements.size(), 1) + 1;
  if (repeats && context.flow == nullptr && count > kKeptBytesMax / element_bytes) {
    co_return context.out.Error("ERR a transaction cannot answer with as many elements");
  }
  if (repeats && !is_chosen) {
    co_await ReplyAny(context, elements, count, &reply);
  } else {
    co_await ReplyDifferent(context, elements, count, &reply);
  }
}

}  // namespace onetrip
