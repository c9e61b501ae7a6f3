// SORT and SORT_RO.
//
// The values that BY and GET name are read one after the other, each as it is at that moment.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/commands/sort/handlers.h"
#include "redis_compat/commands/sort/sort_elements.h"
#include "redis_compat/commands/sort/sort_options.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/values/hash_value.h"

namespace onetrip {
namespace {

constexpr uint64_t kLookupsPerTurn = 256;

// A value that a pattern names.
struct NamedValue {
  ReadResult result;
  std::optional<std::string_view> bytes;
  bool is_whole = false;  // all of the record's
};

// Puts a list in the place of the write that was sorted, unless that has changed.
class ReplaceSorted final : public CommandMutation {
 public:
  // Both outlive it; an empty list is none.
  ReplaceSorted(const RecordCopy& sorted, const NewRecord& list) : sorted_(sorted), list_(list) {}
  [[nodiscard]] bool replaced() const { return replaced_; }

 private:
  Change Apply(const RecordView* current) override {
    Begin();
    replaced_ =
        current == nullptr ? !sorted_.found : sorted_.found && sorted_.version == current->version;
    if (!replaced_ || (current == nullptr && list_.head.empty())) return Change::Keep();
    return list_.head.empty() ? Change::Delete() : Change::Write(list_);
  }
  [[nodiscard]] ValueRange wanted() const override { return kNoValue; }

  const RecordCopy& sorted_;
  const NewRecord& list_;
  bool replaced_ = false;
};

constexpr uint64_t kTextBytesMax = uint64_t{512} << 20;

// One run of the command.
class Sorting {
 public:
  // Both outlive it.
  Sorting(CommandContext& context, const SortOptions& options)
      : context_(context), options_(options) {}

  // Reads the key and finds what is to be told, in order. False: it has answered.
  Task<bool> Prepare();
  Task<void> Reply();
  // False: the key to sort is the target, too, and another client has changed it meanwhile.
  Task<bool> Store();

 private:
  Task<bool> ReadSource();
  // Reads what the elements are sorted by. False: it has answered.
  Task<bool> ReadOrder();
  // Looks up what the pattern names for an element.
  Task<Status> LookUp(const SortPattern& pattern, std::string_view element, NamedValue* value);
  // Makes the list that is to be stored. False: it has answered.
  Task<bool> MakeList(std::string* list);

  CommandContext& context_;
  SortOptions options_;
  RecordCopy source_;
  std::vector<SortedElement> elements_;
  MemoryBudget::Share share_;  // counts `elements_`
  uint64_t lookups_ = 0;
  uint64_t text_bytes_ = 0;  // in the texts of `elements_`
};

Task<bool> Sorting::ReadSource() {
  const Status status = co_await ReadCopy(context_.kv, KeyAt(context_, 1), &source_);
  if (AnsweredReadFailure(context_, status)) co_return false;
  CountLookup(context_, source_.found);
  // The command must not keep a share for values that are read while it reads others.
  if (source_.holder != nullptr) {
    source_.holder->share = CountMemory(context_, source_.holder->memory.bytes());
  }
  if (source_.found && !IsSortable(source_.type)) {
    context_.out.Error(kWrongTypeError);
    co_return false;
  }
  if (source_.found) elements_ = ElementsOf(source_.type, source_.bytes());
  share_ = CountMemory(context_, elements_.size() * sizeof(SortedElement));
  co_return true;
}

Task<Status> Sorting::LookUp(const SortPattern& pattern, std::string_view element,
                             NamedValue* value) {
  *value = {};
  if (pattern.is_element()) value->bytes = element;
  if (!pattern.has_asterisk()) co_return Status::Ok();
  if (++lookups_ % kLookupsPerTurn == 0) co_await context_.kv.Yield();
  const std::string name = pattern.KeyOf(element);
  ReadResult& result = value->result;
  const Key key{context_.session.database, name};
  const Status status = co_await context_.kv.Get(key, &result);
  // A key too long to be stored is not there.
  if (!status.ok() && status.code() != StatusCode::kTooLarge) co_return status;
  CountLookup(context_, result.found());
  if (!result.found()) co_return Status::Ok();
  if (!pattern.field()) {
    value->is_whole = true;
    if (IsOfType(&result.record(), ValueType::kString)) value->bytes = result.record().value;
  } else if (IsOfType(&result.record(), ValueType::kHash)) {
    std::string_view found;
    PackedMap fields(result.record().value, /*has_values=*/true);
    if (fields.Find(*pattern.field(), &found)) value->bytes = found;
  }
  co_return Status::Ok();
}

Task<bool> Sorting::ReadOrder() {
  bool are_numbers = true;
  for (SortedElement& element : elements_) {
    NamedValue value;
    value.bytes = element.bytes;
    if (options_.by) {
      const Status status = co_await LookUp(*options_.by, element.bytes, &value);
      if (AnsweredReadFailure(context_, status)) co_return false;
    }
    if (!value.bytes) continue;
    if (!options_.is_alphabetic) {
      are_numbers = SetSortNumber(*value.bytes, &element) && are_numbers;
    } else if (options_.by) {
      text_bytes_ += value.bytes->size();
      if (text_bytes_ > kTextBytesMax) {
        context_.out.Error("ERR the values by which to sort are more than 512 MiB");
        co_return false;
      }
      element.text = *value.bytes;
    }
  }
  if (!are_numbers) context_.out.Error("ERR One or more scores can't be converted into double");
  co_return are_numbers;
}

Task<bool> Sorting::Prepare() {
  const bool is_read = co_await ReadSource();
  if (!is_read) co_return false;
  const bool is_set = source_.type == static_cast<uint8_t>(ValueType::kSet);
  if (!options_.is_sorted && is_set && options_.target) {
    // The order in which a set is stored must not be by chance.
    options_.is_sorted = true;
    options_.is_alphabetic = true;
    options_.by.reset();
  }
  if (options_.is_sorted) {
    const bool is_ordered = co_await ReadOrder();
    if (!is_ordered) co_return false;
    SortElements(options_, &elements_);
  } else if (options_.is_descending && !is_set) {
    std::reverse(elements_.begin(), elements_.end());
  }
  CropElements(options_, &elements_);
  co_return true;
}

Task<void> Sorting::Reply() {
  const uint64_t begin = context_.out.buffer().position();
  ReplyPace pace;
  context_.out.Array(elements_.size() * std::max<size_t>(options_.get.size(), 1));
  for (const SortedElement& element : elements_) {
    if (options_.get.empty()) context_.out.Bulk(element.bytes);
    for (const SortPattern& pattern : options_.get) {
      NamedValue value;
      const Status status = co_await LookUp(pattern, element.bytes, &value);
      if (!status.ok()) {
        // As MGET: an error for all, unless a part of the reply is on its way.
        const bool is_taken_back = context_.out.buffer().RollBackTo(begin);
        ReplyStatus(context_.out, status, StorageStep::kRead);
        if (is_taken_back) co_return;
      } else if (!value.bytes) {
        context_.out.Null();
      } else if (value.is_whole) {
        ReplyValue(context_, *value.bytes, value.result.holder());
      } else {
        context_.out.Bulk(*value.bytes);
      }
      value = {};
      if (MustAwaitTaken(context_)) co_await AwaitTaken(context_);
      if (context_.session.abandoned) co_return;
    }
    if (pace.IsDue()) co_await pace.Rest(context_);
  }
}

Task<bool> Sorting::MakeList(std::string* list) {
  const uint64_t entries = elements_.size() * std::max<size_t>(options_.get.size(), 1);
  if (entries == 0) co_return true;
  *list = PackedHeaderBytes({0, static_cast<uint32_t>(entries)});
  for (const SortedElement& element : elements_) {
    if (options_.get.empty()) AppendPackedEntry(element.bytes, list);
    for (const SortPattern& pattern : options_.get) {
      NamedValue value;
      const Status status = co_await LookUp(pattern, element.bytes, &value);
      if (AnsweredReadFailure(context_, status)) co_return false;
      AppendPackedEntry(value.bytes.value_or(std::string_view()), list);
      if (list->size() > kMaxValueBytes) {
        context_.out.Error("ERR the list would be larger than a value may be (512 MiB)");
        co_return false;
      }
    }
  }
  co_return true;
}

Task<bool> Sorting::Store() {
  std::string list;
  const bool is_made = co_await MakeList(&list);
  if (!is_made) co_return true;
  const Key target{context_.session.database, *options_.target};
  const MemoryBudget::Share share = CountMemory(context_, list.size());
  NewRecord record;
  record.head = list;
  record.type = static_cast<uint8_t>(ValueType::kList);
  Status status;
  if (target.bytes == context_.argv[1]) {
    ReplaceSorted replace(source_, record);
    status = co_await context_.kv.ReadModifyWrite(target, replace);
    if (status.ok() && !replace.replaced()) co_return false;
  } else if (list.empty()) {
    bool existed = false;
    status = co_await context_.kv.Delete(target, &existed);
  } else {
    status = co_await context_.kv.Set(target, record);
  }
  if (AnsweredWriteFailure(context_, target, status)) co_return true;
  PackedHeader header;
  LoadPackedHeader(list, &header);
  context_.out.Integer(header.elements);
  co_return true;
}

Task<void> Sort(CommandContext& context, bool may_store) {
  ArgumentReader arguments(context.argv, 2);
  SortOptions options;
  ReadSortOptions(arguments, may_store, &options);
  if (arguments.AnsweredError(context.out)) co_return;
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Too large for a pooled frame.
    const auto sorting = std::make_unique<Sorting>(context, options);
    const bool is_prepared = co_await sorting->Prepare();
    if (!is_prepared) co_return;
    if (!options.target) co_return co_await sorting->Reply();
    const bool is_stored = co_await sorting->Store();
    if (is_stored) co_return;
  }
  constexpr Status kBusy(StatusCode::kUnavailable, "the key changes all the time");
  ReplyStatus(context.out, kBusy, StorageStep::kWrite);
}

}  // namespace

Task<void> SortCommand(CommandContext& context) { return Sort(context, /*may_store=*/true); }
Task<void> SortRoCommand(CommandContext& context) { return Sort(context, /*may_store=*/false); }

}  // namespace onetrip
