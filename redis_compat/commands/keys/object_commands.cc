// OBJECT tells facts about a key's value beside the value itself, MEMORY those about memory.
//
// The store keeps bytes and neither an encoding nor the time of a key's last use: the encoding told
// is the one that Redis would choose for such a value.
#include <algorithm>
#include <limits>
#include <string>

#include "client_core/layout/extent.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/size_class.h"
#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/encoding.h"

namespace onetrip {
namespace {

// Reads the key at argv[2], and of its value what could be a number, or what `reader` wants; true
// if it is there, else it has answered.
Task<bool> FindKey(CommandContext& context, ReadResult* result, TreeReader* reader = nullptr) {
  ValueRange part = kEncodingPart;
  part.reader = reader;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 2), part, result);
  if (AnsweredReadFailure(context, status)) co_return false;
  if (!result->found()) context.out.Null();
  co_return result->found();
}

constexpr uint64_t kSlotBytes = 8;

// Bytes of a record on one memory node, with its extents, and of its slot in the index.
uint64_t RecordUsage(size_t key_bytes, uint64_t value_bytes) {
  if (value_bytes <= kRecordValueBytesMax) {
    return SizeClass::For(RecordBytes(key_bytes, value_bytes)).bytes() + kSlotBytes;
  }
  const ExtentList list = PlanExtents(value_bytes, kExtentBytesMax);
  const uint64_t root_bytes = RecordBytes(key_bytes, ExtentListBytes(list.extents.size()));
  uint64_t bytes = SizeClass::ForRoot(root_bytes).bytes() + kSlotBytes;
  for (const ExtentRef& extent : list.extents) bytes += extent.size_class.bytes();
  return bytes;
}

// The header of a collection that is a tree, for which no page has to be read.
class HeaderReader final : public TreeReader {
 public:
  void Read(const RecordView& /*record*/, Tree& tree) override { header_ = tree.header(); }
  // The record with that in place of its value, if it is a tree.
  [[nodiscard]] RecordView View(const ReadResult& result) const {
    RecordView view = result.record();
    if (!header_.empty()) view.value = header_;
    return view;
  }

 private:
  std::string header_;
};

// Bytes of a collection that is a tree, with all its pages, and of its slot.
class PagesUsage final : public TreeReader {
 public:
  explicit PagesUsage(size_t key_bytes) : key_bytes_(key_bytes) {}

  void Read(const RecordView& /*record*/, Tree& tree) override {
    if (!tree.NeedAll(/*inner_only=*/true)) return;
    const uint64_t root_bytes = RecordBytes(key_bytes_, tree.RootBytes());
    bytes_ = SizeClass::ForRoot(root_bytes).bytes() + kSlotBytes;
    tree.ForEachPage(
        [this](const PageName& name, bool /*is_leaf*/) { bytes_ += name.page.size_class.bytes(); });
  }
  // 0: it is no tree.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  const size_t key_bytes_;
  uint64_t bytes_ = 0;
};

// The same of a register, with the buffer of its last write, if that has one. Those of other
// writers' earlier ones come and go.
uint64_t RegisterUsage(const RegisterShape& shape) {
  return SizeClass::For(shape.register_bytes()).bytes() + shape.buffer_bytes + kSlotBytes;
}

}  // namespace

Task<void> ObjectEncodingCommand(CommandContext& context) {
  ReadResult result;
  HeaderReader header;
  const bool found = co_await FindKey(context, &result, &header);
  if (found) context.out.Bulk(EncodingOf(header.View(result)));
}

Task<void> ObjectRefCountCommand(CommandContext& context) {
  ReadResult result;
  const bool found = co_await FindKey(context, &result);
  if (!found) co_return;
  // Redis shares the objects of small numbers among all keys.
  constexpr int64_t kShared = std::numeric_limits<int32_t>::max();
  constexpr int64_t kSharedNumbers = 10'000;
  const auto number = ParseInt64(result.record().value);
  const bool shared = IsOfType(&result.record(), ValueType::kString) && number && *number >= 0 &&
                      *number < kSharedNumbers;
  context.out.Integer(shared ? kShared : 1);
}

Task<void> ObjectIdleTimeCommand(CommandContext& context) {
  ReadResult result;
  const bool found = co_await FindKey(context, &result);
  if (found) context.out.Integer(0);
}

Task<void> ObjectFreqCommand(CommandContext& context) {
  ReadResult result;
  const bool found = co_await FindKey(context, &result);
  if (!found) co_return;
  context.out.Error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

Task<void> MemoryUsageCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  int64_t samples = 0;  // Nothing here has to be sampled.
  while (arguments.HasMore()) {
    const bool known =
        arguments.Integer("SAMPLES", &samples, {.min = 0, .out_of_range = kSyntaxError});
    if (!known) arguments.SyntaxError();
  }
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  ReadResult result;
  PagesUsage pages(context.argv[2].size());
  const bool found = co_await FindKey(context, &result, &pages);
  if (!found) co_return;
  uint64_t bytes = pages.bytes();
  if (bytes == 0) {
    bytes = result.shape().lanes > 0
                ? RegisterUsage(result.shape())
                : RecordUsage(context.argv[2].size(), result.record().value_bytes);
  }
  context.out.Integer(static_cast<int64_t>(bytes));
}

Task<void> MemoryStatsCommand(CommandContext& context) {
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  uint64_t keys = 0;
  for (uint32_t database = 0; database < context.hooks.config().databases(); ++database) {
    uint64_t of_database = 0;
    const Status status = co_await context.kv.CountKeys(database, &of_database);
    if (status.ok()) keys += of_database;
  }
  const uint64_t dataset = facts.used_memory_dataset;
  const auto line = [&context](std::string_view name, uint64_t value) {
    context.out.Bulk(name);
    context.out.Integer(static_cast<int64_t>(value));
  };
  context.out.Map(8);
  line("peak.allocated", std::max(facts.used_memory_peak, facts.used_memory));
  line("total.allocated", facts.used_memory);
  line("clients.normal", facts.mem_clients_normal);
  line("overhead.total", facts.used_memory_overhead);
  line("keys.count", keys);
  line("keys.bytes-per-key", keys == 0 ? 0 : facts.used_memory / keys);
  line("dataset.bytes", dataset);
  context.out.Bulk("dataset.percentage");
  context.out.Double(facts.used_memory == 0 ? 0
                                            : 100.0 * static_cast<double>(dataset) /
                                                  static_cast<double>(facts.used_memory));
}

void MemoryDoctorCommand(CommandContext& context) {
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  if (facts.maxmemory > 0 && facts.used_memory > facts.maxmemory / 10 * 9) {
    return context.out.Verbatim(
        "Sam, I detected an issue in this cluster's memory: more than nine tenths of the pool are "
        "in use. Writes will be refused with -OOM when it is full. Remove keys, or move to a "
        "cluster "
        "with more memory.\n",
        "txt");
  }
  context.out.Verbatim(
      "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs "
      "on this base.\n",
      "txt");
}

void MemoryMallocStatsCommand(CommandContext& context) {
  context.out.Verbatim("Stats not supported for the current allocator", "txt");
}

// Memory that is free is given back to the pool in the background; there is nothing to ask for.
void MemoryPurgeCommand(CommandContext& context) { context.out.Ok(); }

}  // namespace onetrip
