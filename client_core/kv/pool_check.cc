#include "client_core/kv/pool_check.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/index/key_hash.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/register_codec.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // words per READ
constexpr size_t kExamplesMax = 20;
constexpr Status kMapChanged(StatusCode::kUnavailable,
                             "the cluster's map changed meanwhile; look again");

}  // namespace

std::string PoolCounts::ToText() const {
  std::string text;
  const auto line = [&text](const char* name, uint64_t value) {
    text += std::string(name) + ":" + std::to_string(value) + "\r\n";
  };
  line("wrong", wrong());
  line("records", records);
  line("registers", registers);
  line("extents", extents);
  line("pages", pages);
  line("subtables", subtables);
  line("owned_bytes", owned_bytes);
  line("named_bytes", named_bytes);
  line("unfinished", unfinished);
  line("differing", differing);
  line("misplaced", misplaced);
  line("duplicates", duplicates);
  line("damaged", damaged);
  line("unowned", unowned);
  line("named_twice", named_twice);
  for (const std::string& example : examples) text += "example:" + example + "\r\n";
  return text;
}

void PoolCheck::Wrong(uint64_t* count, std::string what, GlobalAddr at) {
  ++*count;
  if (counts_.examples.size() >= kExamplesMax) return;
  counts_.examples.push_back(std::move(what) + ": region " + std::to_string(at.region()) +
                             ", offset " + std::to_string(at.offset()));
}

void PoolCheck::Name(GlobalAddr addr, bool once) {
  const OrphanBlocks::Block* const block = blocks_.At(addr);
  if (block == nullptr) return unowned_.push_back(addr);
  const bool was = block->named[ObjectIndex(addr, block->start, block->size_class)];
  if (was && once) Wrong(&counts_.named_twice, "an object has two names", addr);
  if (!was) counts_.named_bytes += block->size_class.bytes();
  blocks_.Name(addr);
}

Task<Status> PoolCheck::ReadAll(Operation& operation, GlobalAddr at, uint32_t bytes, Images* images,
                                RoundTripPtr* holder) {
  *holder = context_.fabric.NewRoundTrip();
  const View& view = context_.view();
  if (!view.Contains(at)) co_return kMapChanged;
  images->count = view.LiveReplicas(at);
  if (images->count == 0) co_return kMapChanged;
  for (int i = 0; i < images->count; ++i) {
    images->at[i] = (*holder)->Read(view.Locate(at, i), bytes);
  }
  co_return co_await Post(context_, operation, *holder);
}

Task<Status> PoolCheck::Run() {
  Operation operation;
  const Epoch epoch = context_.view().epoch;
  Status status = co_await blocks_.Find(operation, OrphanBlocks::Any);
  if (!status.ok()) co_return status;
  for (const auto& [start, block] : blocks_.blocks()) {
    counts_.owned_bytes += uint64_t{block.size_class.blocks()} * kBlockBytes;
  }
  status = co_await NameRings(operation);
  std::vector<std::pair<uint32_t, DirectoryWord>> subtables;
  if (status.ok()) status = co_await CheckDirectory(&subtables);
  for (size_t i = 0; status.ok() && i < subtables.size(); ++i) {
    status = co_await CheckSubtable(subtables[i].first, subtables[i].second);
    if (status.ok() && context_.view().epoch != epoch) status = kMapChanged;
  }
  if (status.ok()) status = co_await CheckUnowned(operation);
  co_return status;
}

Task<Status> PoolCheck::CheckUnowned(Operation& operation) {
  if (unowned_.empty()) co_return Status::Ok();
  OrphanBlocks now(context_);
  const Status status = co_await now.Find(operation, OrphanBlocks::Any);
  if (!status.ok()) co_return status;
  for (const GlobalAddr addr : unowned_) {
    if (now.At(addr) == nullptr) {
      Wrong(&counts_.unowned, "memory is named that nobody owns", addr);
    }
  }
  co_return Status::Ok();
}

// The rings of retired registers: each worker's is an object, when it could get one.
Task<Status> PoolCheck::NameRings(Operation& operation) {
  const uint16_t count = context_.view().worker_index_end;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* rings = reinterpret_cast<const RetiredRing*>(
      round_trip->Read(context_.view().Locate(RetiredRingAddr(WorkerIndex{0}), 0),
                       count * uint32_t{sizeof(RetiredRing)}));
  const Status status = co_await Post(context_, operation, round_trip);
  for (uint16_t i = 0; i < count && status.ok(); ++i) {
    const GlobalAddr ring(rings[i].ring);
    const bool is_object =
        !ring.is_null() && context_.view().Contains(ring) && blocks_.At(ring) != nullptr;
    if (is_object && context_.view().IsLive(WorkerIndex{i})) Name(ring, /*once=*/false);
  }
  co_return status;
}

Task<Status> PoolCheck::CheckDirectory(std::vector<std::pair<uint32_t, DirectoryWord>>* subtables) {
  // Every subtable tells how far the directory reaches.
  uint32_t end = 2;
  uint32_t count = 0;
  const uint8_t directory = context_.view().directory;
  for (uint32_t first = 0; first < end; first += count) {
    count = std::min(end - first, kDirectoryStretch);
    Operation operation;
    Images images{};
    RoundTripPtr holder;
    const Status status =
        co_await ReadAll(operation, DirectoryAddr(first, directory), count * 8, &images, &holder);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, images[0] + i * 8, 8);
      for (int replica = 1; replica < images.count; ++replica) {
        if (std::memcmp(images[replica] + i * 8, &bits, 8) == 0) continue;
        Wrong(&counts_.differing, "replicas of a directory entry differ",
              DirectoryAddr(first + i, directory));
      }
      const DirectoryWord word(bits);
      if (!word.is_used()) continue;
      if (!context_.view().Contains(word.subtable())) {
        Wrong(&counts_.misplaced, "a directory entry names nothing",
              DirectoryAddr(first + i, directory));
        continue;
      }
      counts_.unfinished += word.locked() ? 1 : 0;
      end = std::max(end, std::min(kDirectoryEntries, 2U << std::min(word.depth(), kMaxDepth)));
      subtables->emplace_back(first + i, word);
    }
  }
  co_return Status::Ok();
}

Task<Status> PoolCheck::CheckSubtable(uint32_t entry, DirectoryWord directory) {
  ++counts_.subtables;
  keys_.clear();
  const GlobalAddr start = directory.subtable();
  Name(start, /*once=*/true);
  for (uint32_t group = 0; group < kSubtableGroups; ++group) {
    Operation operation;
    operation.pin = reclaimer_.Pin();
    Images images{};
    RoundTripPtr holder;
    const GlobalAddr at = start + group * kGroupBytes;
    Status status = co_await ReadAll(operation, at, kGroupBytes, &images, &holder);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < kGroupWords; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, images[0] + i * 8, 8);
      for (int replica = 1; replica < images.count; ++replica) {
        if (std::memcmp(images[replica] + i * 8, &bits, 8) == 0) continue;
        Wrong(&counts_.differing, "replicas of a word of the index differ", at + i * 8);
      }
      if (i == kGroupHeaderWord) {
        const GroupHeader header(bits);
        counts_.unfinished += header.filling() ? 1 : 0;
        if (!header.is_valid() || header.depth() != directory.depth() || header.suffix() != entry) {
          Wrong(&counts_.misplaced, "a group is of another subtable", at);
        }
        continue;
      }
      const SlotWord slot(bits);
      if (slot.is_empty()) continue;
      if (slot.kind() != SlotKind::kObject) ++counts_.unfinished;
      status = co_await CheckEntry(operation, entry, directory.depth(), group, slot);
      if (!status.ok()) co_return status;
    }
    operation.pin.Release();
    co_await context_.executor.Yield();
  }
  co_return Status::Ok();
}

Task<Status> PoolCheck::CheckEntry(Operation& operation, uint32_t entry, uint32_t depth,
                                   uint32_t group, SlotWord slot) {
  const GlobalAddr at = slot.addr();
  if (!slot.size_class().is_valid() || !context_.view().Contains(at)) {
    Wrong(&counts_.unowned, "a slot names nothing", at);
    co_return Status::Ok();
  }
  Name(at, /*once=*/true);
  const auto bytes = static_cast<uint32_t>(slot.size_class().bytes());
  Images images{};
  RoundTripPtr holder;
  Status status = co_await ReadAll(operation, at, bytes, &images, &holder);
  if (!status.ok()) co_return status;
  EntryKey key;
  if (!LoadEntryKey(slot, images[0], bytes, &key)) {
    Wrong(&counts_.damaged, "what a slot names has no key", at);
    co_return Status::Ok();
  }
  const KeyHash hash(HashKey(key.keyspace, key.bytes));
  if (hash.suffix(depth) != entry || (hash.group(0) != group && hash.group(1) != group) ||
      hash.fingerprint() != slot.fingerprint()) {
    Wrong(&counts_.misplaced, "an entry is not where its key belongs", at);
  }
  std::string name(sizeof(key.keyspace.value), '\0');
  std::memcpy(name.data(), &key.keyspace.value, sizeof(key.keyspace.value));
  if (!keys_.insert(name + std::string(key.bytes)).second) {
    Wrong(&counts_.duplicates, "a key has two entries", at);
  }
  if (slot.is_register()) {
    ++counts_.registers;
    co_return co_await CheckRegister(operation, slot, images);
  }
  ++counts_.records;
  ExtentList list;
  TreeRoot tree;
  uint64_t version = 0;
  CheckRecord(slot, images, &list, &tree, &version);
  status = co_await CheckPages(operation, tree);
  if (!status.ok()) co_return status;
  co_return co_await CheckExtents(operation, std::move(list), version);
}

void PoolCheck::CheckRecord(SlotWord slot, const Images& images, ExtentList* list, TreeRoot* tree,
                            uint64_t* version) {
  const uint64_t bytes = slot.size_class().bytes();
  for (int i = 0; i < images.count; ++i) {
    if (RecordIsIntact(images[i], bytes)) continue;
    Wrong(&counts_.damaged, "a record is damaged on replica " + std::to_string(i), slot.addr());
    if (i == 0) return;
  }
  *version = LoadRecordHeader(images[0]).version;
  RecordOrigin origin;
  if (slot.size_class().is_root()) {
    if (LoadExtentList(RecordValue(images[0]), list)) return;
    list->extents.clear();
    if (LoadTreeRoot(RecordValue(images[0]), tree)) return;
    tree->tops.clear();
    Wrong(&counts_.damaged, "a list of extents is damaged", slot.addr());
  } else if (RecordHasOrigin(images[0], bytes, &origin)) {
    // The register whose place the record took.
    Name(SlotWord(origin.register_word).addr(), /*once=*/true);
  }
}

Task<Status> PoolCheck::CheckExtents(Operation& operation, ExtentList list, uint64_t version) {
  for (uint32_t number = 0; number < list.extents.size(); ++number) {
    ++counts_.extents;
    const GlobalAddr at = list.extents[number].addr;
    if (!context_.view().Contains(at)) {
      Wrong(&counts_.unowned, "a list of extents names nothing", at);
      continue;
    }
    Name(at, /*once=*/true);
    const uint32_t bytes = list.BytesOf(number);
    Images images{};
    RoundTripPtr holder;
    const Status status =
        co_await ReadAll(operation, at, kExtentHeaderBytes + bytes, &images, &holder);
    if (!status.ok()) co_return status;
    for (int i = 0; i < images.count; ++i) {
      ExtentHeader header;
      std::memcpy(&header, images[i], sizeof(header));
      if (ExtentIsIntact(header, version, number, images[i] + kExtentHeaderBytes, bytes)) continue;
      Wrong(&counts_.damaged, "an extent is damaged on replica " + std::to_string(i), at);
    }
    co_await context_.executor.Yield();
  }
  co_return Status::Ok();
}

Task<Status> PoolCheck::CheckPages(Operation& operation, const TreeRoot& tree) {
  std::vector<std::pair<PageName, int>> names;  // and their heights
  for (const TreeTop& top : tree.tops) {
    for (const PageName& name : top.names) names.emplace_back(name, top.height);
  }
  while (!names.empty()) {
    const auto [name, height] = std::move(names.back());
    names.pop_back();
    ++counts_.pages;
    const GlobalAddr at = name.page.addr;
    if (!context_.view().Contains(at)) {
      Wrong(&counts_.unowned, "a collection's tree names nothing", at);
      continue;
    }
    Name(at, /*once=*/true);
    Images images{};
    RoundTripPtr holder;
    const Status status = co_await ReadAll(operation, at, name.page.bytes, &images, &holder);
    if (!status.ok()) co_return status;
    for (int i = 0; i < images.count; ++i) {
      const std::string_view page(reinterpret_cast<const char*>(images[i]), name.page.bytes);
      std::vector<PageName> below;
      const bool is_intact =
          PageChecksum(page) == name.page.checksum && (height == 0 || LoadInnerPage(page, &below));
      if (!is_intact) {
        Wrong(&counts_.damaged, "a page is damaged on replica " + std::to_string(i), at);
      } else if (i == 0) {
        for (PageName& one : below) names.emplace_back(std::move(one), height - 1);
      }
    }
    if (counts_.pages % 64 == 0) co_await context_.executor.Yield();
  }
  co_return Status::Ok();
}

// Replicas of a register may differ: a majority has the last word, and some the value beside it.
// But where the first word is the last the first value is.
Task<Status> PoolCheck::CheckRegister(Operation& operation, SlotWord slot, Images images) {
  RegisterHeader header;
  RegisterShape shape;
  MetaWord largest;
  std::vector<MetaWord> words;
  for (int i = 0; i < images.count; ++i) {
    if (!LoadRegisterShape(slot, images[i], &header, &shape)) {
      Wrong(&counts_.damaged, "a register is damaged on replica " + std::to_string(i), slot.addr());
      co_return Status::Ok();
    }
    MetaWord last;
    for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
      uint64_t bits = 0;
      std::memcpy(&bits, images[i] + shape.lane_offset(lane), 8);
      if (bits == 0) continue;
      last = std::max(last, MetaWord(bits));
      const MetaWord word = MetaWord(bits).AsGuess();
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    largest = std::max(largest, last);
    WrittenValue first{};
    if (last.is_in_register() &&
        !DecodePlaced({header.birth_ticks}, last, images[i] + shape.in_place_offset(),
                      PlaceOfValue(slot.addr(), shape, last).bytes, &first)) {
      Wrong(&counts_.damaged, "a register's first value is damaged on replica " + std::to_string(i),
            slot.addr());
    }
  }
  if (largest.is_empty()) {
    Wrong(&counts_.damaged, "a register has no value", slot.addr());
    co_return Status::Ok();
  }
  if (!largest.is_in_register()) Name(largest.buffer(slot.addr()), /*once=*/true);
  const ValuePlace place = PlaceOfValue(slot.addr(), shape, largest);
  if (!context_.view().Contains(place.addr)) co_return Status::Ok();
  RoundTripPtr holder;
  const Status status = co_await ReadAll(operation, place.addr, place.bytes, &images, &holder);
  if (!status.ok()) co_return status;
  bool is_there = false;
  for (int i = 0; i < images.count; ++i) {
    WrittenValue value{};
    is_there |= DecodePlaced({header.birth_ticks}, largest, images[i], place.bytes, &value);
  }
  if (!is_there) Wrong(&counts_.damaged, "no replica has the value of a register", place.addr);
  std::erase(words, largest.AsGuess());
  co_return co_await NameKept(operation, slot, header, words);
}

// A worker keeps the buffer of its last word in a register until it learns that another one has
// overtaken it.
Task<Status> PoolCheck::NameKept(Operation& operation, SlotWord slot, RegisterHeader header,
                                 std::vector<MetaWord> words) {
  for (const MetaWord word : words) {
    if (word.is_in_register()) continue;
    const GlobalAddr buffer = word.buffer(slot.addr());
    if (!context_.view().Contains(buffer) || blocks_.At(buffer) == nullptr) continue;
    Images images{};
    RoundTripPtr holder;
    const Status status = co_await ReadAll(operation, buffer, kBufferHeaderBytes, &images, &holder);
    if (!status.ok()) co_return status;
    // Else it has been used for something else since.
    BufferHeader kept{};
    std::memcpy(&kept, images[0], sizeof(kept));
    if (kept.ticks == header.birth_ticks + word.time()) Name(buffer, /*once=*/false);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
