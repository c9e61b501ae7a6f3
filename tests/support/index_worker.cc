#include "tests/support/index_worker.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "client_core/layout/entry_codec.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/record_codec.h"
#include "client_core/tree/page.h"

namespace onetrip {
namespace {

constexpr size_t kValueBytes = sizeof(uint64_t);
constexpr Status kStaysBusy(StatusCode::kUnavailable, "the key's subtable stays busy");

uint64_t ValueOf(const std::byte* record) {
  uint64_t value = 0;
  const std::string_view bytes = RecordValue(record);
  CHECK(bytes.size() == kValueBytes);
  std::memcpy(&value, bytes.data(), kValueBytes);
  return value;
}

}  // namespace

IndexWorker::IndexWorker(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
                         const DataPathOptions& options, EngineKind engine)
    : MemoryWorker(cluster, executor, std::move(fabric), options),
      engine_(MakeEngine(engine, *context_)),
      index_(std::make_unique<Index>(*context_, reclaimer(), allocator(), *engine_)) {}

Task<Status> IndexWorker::Open() {
  const Status status = co_await reclaimer().Join();
  if (!status.ok()) co_return status;
  co_return co_await index_->Open();
}

Task<void> IndexWorker::MaintainIfDue() {
  if (allocator().wants_maintenance()) co_await allocator().Maintain();
}

Task<Status> IndexWorker::NewRecord(Operation& operation, const std::string& key, uint64_t value,
                                    Draft* draft) {
  operation.pin.Release();
  draft->size_class = SizeClass::For(RecordBytes(key.size(), kValueBytes));
  draft->addr = allocator().TryAllocate(draft->size_class);
  if (draft->addr.is_null()) {
    const Result<GlobalAddr> addr = co_await allocator().Allocate(draft->size_class);
    if (!addr.ok()) co_return addr.status();
    draft->addr = addr.value();
  }
  operation.pin = reclaimer().Pin();
  co_return co_await WriteRecord(operation, key, value, *draft);
}

Task<Status> IndexWorker::WriteRecord(Operation& operation, const std::string& key, uint64_t value,
                                      const Draft& draft) {
  const uint64_t bytes = RecordBytes(key.size(), kValueBytes);
  RoundTripPtr round_trip = context_->fabric.NewRoundTrip();
  std::byte* record = round_trip->Reserve(bytes);
  RecordFields fields;
  fields.keyspace = KeyspaceId{1};
  fields.key = key;
  fields.value_head = {reinterpret_cast<const char*>(&value), kValueBytes};
  fields.version = (uint64_t{context_->membership.id.value} << 40) | ++version_;
  fields.opcode = LogOpcode::kUpdate;
  EncodeRecord(fields, record);
  const View& view = context_->view();
  for (int replica = 0; replica < engine_->Replicas(view, draft.addr); ++replica) {
    round_trip->Write(view.Locate(draft.addr, replica), record, static_cast<uint32_t>(bytes));
  }
  co_return co_await Post(*context_, operation, round_trip);
}

Task<Result<bool>> IndexWorker::Insert(std::string key, uint64_t value) {
  const IndexKey index_key = MakeKey(key);
  Operation operation;
  Backoff backoff(*context_, operation);
  Draft draft;
  Status status = co_await NewRecord(operation, key, value, &draft);
  if (!status.ok()) co_return status;
  while (true) {
    SearchResult search;
    status = co_await index_->Find(operation, index_key, ReadExtent::kKey,
                                   context_->fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return status;
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      co_return kStaysBusy;
    }
    if (search.found) {
      allocator().FreeUnpublished(draft.addr, draft.size_class);
      operation.pin.Release();
      co_await MaintainIfDue();
      co_return false;
    }
    const SlotWord word = SlotWord::Make(SlotKind::kObject, index_key.hash.fingerprint(),
                                         draft.size_class, draft.addr, /*blind=*/false);
    Entry entry;
    const Result<InsertOutcome> outcome =
        co_await index_->Insert(operation, index_key, search, word, RoundTripPtr(), &entry);
    if (!outcome.ok()) co_return outcome.status();
    if (outcome.value() == InsertOutcome::kInserted) {
      operation.pin.Release();
      co_await MaintainIfDue();
      co_return true;
    }
    if (outcome.value() == InsertOutcome::kRenew) {
      allocator().Retire(draft.addr, draft.size_class);
      status = co_await NewRecord(operation, key, value, &draft);
      if (!status.ok()) co_return status;
    }
    if (outcome.value() == InsertOutcome::kFull) {
      operation.pin.Release();
      status = co_await Split(search.table, index_key.hash);
      operation.pin = reclaimer().Pin();
      if (!status.ok()) co_return status;
    }
  }
}

Task<Status> IndexWorker::Split(Subtable table, KeyHash hash) {
  const Quiesce::InFlightGuard in_flight(hold_);
  Gate gate(context_->executor);
  const Status status = co_await index_->MakeRoom(gate, in_flight, table, hash);
  co_await gate.Close();
  co_return status;
}

Task<Status> IndexWorker::Claim(std::string key) {
  const IndexKey index_key = MakeKey(key);
  Operation operation;
  Draft draft;
  Status status = co_await NewRecord(operation, key, 0, &draft);
  if (!status.ok()) co_return status;
  SearchResult search;
  status = co_await index_->Find(operation, index_key, ReadExtent::kKey,
                                 context_->fabric.NewRoundTrip(), &search);
  if (!status.ok()) co_return status;
  CHECK(search.has_empty);
  const SlotWord word = SlotWord::Make(SlotKind::kObject, index_key.hash.fingerprint(),
                                       draft.size_class, draft.addr, /*blind=*/false);
  const Result<SlotOutcome> outcome =
      co_await engine_->Write(operation, {.slot = search.empty.slot,
                                          .v_old = search.empty.word.bits(),
                                          .v_new = ClaimOf(word.bits()),
                                          .log = GlobalAddr(),
                                          .step = SlotStep::kClaim});
  co_return outcome.status();
}

Task<Result<bool>> IndexWorker::Add(std::string key, uint64_t delta) {
  const IndexKey index_key = MakeKey(key);
  Operation operation;
  Backoff backoff(*context_, operation);
  Draft draft;
  Status status = co_await NewRecord(operation, key, 0, &draft);
  if (!status.ok()) co_return status;
  while (true) {
    SearchResult search;
    status = co_await index_->Find(operation, index_key, ReadExtent::kWhole,
                                   context_->fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return status;
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      co_return kStaysBusy;
    }
    if (!search.found) {
      allocator().FreeUnpublished(draft.addr, draft.size_class);
      co_return false;
    }
    status = co_await WriteRecord(operation, key, ValueOf(search.record) + delta, draft);
    if (!status.ok()) co_return status;
    const SlotWord v_old = search.entry.word;
    const SlotWord v_new = SlotWord::Make(SlotKind::kObject, index_key.hash.fingerprint(),
                                          draft.size_class, draft.addr, /*blind=*/false);
    const Result<SlotOutcome> outcome = co_await engine_->Write(
        operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft.addr});
    if (!outcome.ok()) co_return outcome.status();
    if (!outcome.value().won) continue;
    index_->CacheLocation(index_key.hash, {search.entry.slot, v_new});
    allocator().Retire(v_old.addr(), v_old.size_class());
    operation.pin.Release();
    co_await MaintainIfDue();
    co_return true;
  }
}

Task<Result<bool>> IndexWorker::Remove(std::string key) {
  const IndexKey index_key = MakeKey(key);
  Operation operation;
  operation.pin = reclaimer().Pin();
  Backoff backoff(*context_, operation);
  while (true) {
    SearchResult search;
    const Status status = co_await index_->Find(operation, index_key, ReadExtent::kKey,
                                                context_->fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return status;
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      co_return kStaysBusy;
    }
    if (!search.found) co_return false;
    const SlotWord v_old = search.entry.word;
    const Result<SlotOutcome> outcome = co_await engine_->Write(
        operation, {search.entry.slot, v_old.bits(), index_->NewEmptyWord().bits(), GlobalAddr()});
    if (!outcome.ok()) co_return outcome.status();
    if (!outcome.value().won) continue;
    allocator().Retire(v_old.addr(), v_old.size_class());
    operation.pin.Release();
    co_await MaintainIfDue();
    co_return true;
  }
}

Task<Result<uint64_t>> IndexWorker::Lookup(std::string key) {
  const IndexKey index_key = MakeKey(key);
  Operation operation;
  operation.pin = reclaimer().Pin();
  SearchResult search;
  const Status status = co_await index_->Find(operation, index_key, ReadExtent::kWhole,
                                              context_->fabric.NewRoundTrip(), &search);
  lookup_round_trips_ = operation.round_trips;
  if (!status.ok()) co_return status;
  if (!search.found) co_return kMissing;
  if (!RecordIsIntact(search.record, search.entry.word.size_class().bytes())) {
    co_return Status(StatusCode::kCorrupt, "a record that a pinned lookup found is damaged");
  }
  co_return ValueOf(search.record);
}

namespace {

using PageImage = std::function<std::string_view(const PageRef& page, int replica)>;

// The pages of a tree that `names` lead to.
void LookAtPages(const View& view, const std::vector<PageName>& names, int height,
                 const PageImage& image, IndexPicture* picture) {
  for (const PageName& name : names) {
    ++picture->pages;
    picture->named.push_back(name.page.addr);
    for (int replica = 0; replica < view.LiveReplicas(name.page.addr); ++replica) {
      picture->damaged += PageChecksum(image(name.page, replica)) != name.page.checksum ? 1 : 0;
    }
    std::vector<PageName> below;
    if (height == 0) continue;
    picture->misplaced += LoadInnerPage(image(name.page, 0), &below) ? 0 : 1;
    LookAtPages(view, below, height - 1, image, picture);
  }
}

}  // namespace

IndexPicture LookAtIndex(const std::vector<MemoryEndpoint*>& nodes, const View& view) {
  IndexPicture picture;
  const auto at = [&](GlobalAddr addr, int replica) {
    const RemoteAddr remote = view.Locate(addr, replica);
    return nodes.at(remote.node.value)->base() + remote.offset;
  };
  const auto word_at = [&](GlobalAddr addr) {
    uint64_t word = 0;
    std::memcpy(&word, at(addr, 0), 8);
    for (int replica = 1; replica < view.LiveReplicas(addr); ++replica) {
      picture.replicas_agree &= std::memcmp(&word, at(addr, replica), 8) == 0;
    }
    return word;
  };
  std::set<std::pair<uint32_t, std::string>> keys;  // with their keyspaces
  for (uint32_t entry = 0; entry < kDirectoryEntries; ++entry) {
    const DirectoryWord directory(word_at(DirectoryAddr(entry, view.directory)));
    if (!directory.is_used()) continue;
    ++picture.subtables;
    picture.named.push_back(directory.subtable());
    picture.unfinished += directory.locked();
    for (uint32_t i = 0; i < kSubtableGroups * kGroupWords; ++i) {
      const uint64_t bits = word_at(directory.subtable() + i * 8);
      if (i % kGroupWords == kGroupHeaderWord) {
        const GroupHeader header(bits);
        picture.unfinished += header.filling();
        picture.misplaced +=
            !header.is_valid() || header.depth() != directory.depth() || header.suffix() != entry;
        continue;
      }
      const SlotWord slot(bits);
      if (slot.is_dropped()) {
        ++picture.unfinished;
        picture.named.push_back(slot.addr());
      }
      if (slot.is_empty()) continue;
      picture.unfinished += slot.kind() != SlotKind::kObject;
      picture.claims += slot.kind() == SlotKind::kTentative ? 1 : 0;
      ++picture.objects;
      picture.named.push_back(slot.addr());
      const std::byte* record = at(slot.addr(), 0);
      EntryKey entry_key;
      if (!LoadEntryKey(slot, record, slot.size_class().bytes(), &entry_key)) {
        ++picture.misplaced;
        continue;
      }
      const bool is_meant = std::find(view.keyspaces.begin(), view.keyspaces.end(),
                                      entry_key.keyspace) != view.keyspaces.end();
      // An insert that has begun is none.
      picture.flushed += is_meant || slot.kind() != SlotKind::kObject ? 0 : 1;
      const std::string key(entry_key.bytes);
      const KeyHash hash(HashKey(entry_key.keyspace, key));
      RecordOrigin origin;
      if (slot.is_register()) {
        RegisterHeader header;
        RegisterShape shape;
        picture.misplaced += LoadRegisterShape(slot, record, &header, &shape) ? 0 : 1;
        MetaWord largest;
        for (int replica = 0; replica < view.LiveReplicas(slot.addr()); ++replica) {
          for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
            uint64_t lane_bits = 0;
            std::memcpy(&lane_bits, at(slot.addr() + shape.lane_offset(lane), replica), 8);
            if (lane_bits == 0) continue;
            largest = std::max(largest, MetaWord(lane_bits));
          }
        }
        ++picture.registers;
        if (!largest.is_in_register()) picture.buffers.push_back(largest.buffer(slot.addr()));
      } else if (TreeRoot tree;
                 slot.size_class().is_root() && LoadTreeRoot(RecordValue(record), &tree)) {
        const auto image = [&at](const PageRef& page, int replica) {
          return std::string_view(reinterpret_cast<const char*>(at(page.addr, replica)),
                                  page.bytes);
        };
        for (const TreeTop& top : tree.tops)
          LookAtPages(view, top.names, top.height, image, &picture);
      } else if (slot.size_class().is_root()) {
        ExtentList list;
        picture.misplaced += LoadExtentList(RecordValue(record), &list) ? 0 : 1;
        const uint64_t version = LoadRecordHeader(record).version;
        for (uint32_t number = 0; number < list.extents.size(); ++number) {
          const GlobalAddr addr = list.extents[number].addr;
          picture.named.push_back(addr);
          for (int replica = 0; replica < view.LiveReplicas(addr); ++replica) {
            ExtentHeader header;
            std::memcpy(&header, at(addr, replica), sizeof(header));
            const std::byte* piece = at(addr, replica) + sizeof(header);
            picture.damaged +=
                !ExtentIsIntact(header, version, number, piece, list.BytesOf(number));
          }
        }
      } else if (RecordHasOrigin(record, slot.size_class().bytes(), &origin)) {
        picture.named.push_back(SlotWord(origin.register_word).addr());
      }
      const uint32_t group = i / kGroupWords;
      picture.misplaced += hash.suffix(directory.depth()) != entry ||
                           (hash.group(0) != group && hash.group(1) != group) ||
                           hash.fingerprint() != slot.fingerprint();
      picture.duplicates += keys.emplace(entry_key.keyspace.value, key).second ? 0 : 1;
    }
  }
  return picture;
}

}  // namespace onetrip
