// Reading a group of a subtable as a whole: what each of its words names, for splits and walks.
#include <algorithm>

#include "client_core/index/index.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {

Task<Status> Index::ReadGroupKeys(Operation& operation, Subtable table, uint32_t group,
                                  const GroupWords& words, GroupKeys* keys) {
  return ReadGroupEntries(operation, table, group, words,
                          [keys](uint32_t word, const EntryKey& key, const std::byte* /*record*/) {
                            keys->keyspace[word] = key.keyspace;
                            keys->hash[word] = KeyHash(HashKey(key.keyspace, key.bytes));
                          });
}

Task<Status> Index::ReadGroupEntries(Operation& operation, Subtable table, uint32_t group,
                                     const GroupWords& words, EntryVisitor visit) {
  constexpr uint64_t kPeekBytes = 128;  // holds the keys of most records
  const View& view = context_.view();
  const NodeId node = view.Locate(table.Word(group, 0), 0).node;
  std::array<const std::byte*, kGroupWords> records{};
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    const SlotWord word(words[i]);
    if (i == kGroupHeaderWord || word.is_empty()) continue;
    if (!word.size_class().is_valid() || !view.Contains(word.addr())) {
      co_return Status(StatusCode::kCorrupt, "a slot points outside the pool");
    }
    const uint64_t bytes = std::min(kPeekBytes, word.size_class().bytes());
    records[i] =
        round_trip->Read(RecordReplica(view, word.addr(), node), static_cast<uint32_t>(bytes));
  }
  if (round_trip->empty()) co_return Status::Ok();
  Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    if (records[i] == nullptr) continue;
    const SlotWord word(words[i]);
    const std::byte* record = records[i];
    uint64_t available = std::min(kPeekBytes, word.size_class().bytes());
    RoundTripPtr longer = context_.fabric.NewRoundTrip();
    EntryKey key;
    uint64_t key_bytes = 0;
    if (EntryKeyLength(word, record, available, &key_bytes) &&
        EntryKeyEnd(word, key_bytes) > available) {
      const View& now = context_.view();
      available = EntryKeyEnd(word, key_bytes);
      record =
          longer->Read(RecordReplica(now, word.addr(), node), static_cast<uint32_t>(available));
      status = co_await Post(context_, operation, longer);
      if (!status.ok()) co_return status;
    }
    if (!LoadEntryKey(word, record, available, &key)) {
      co_return Status(StatusCode::kCorrupt, "a key outgrows its object");
    }
    visit(i, key, record);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
