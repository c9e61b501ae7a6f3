#include "client_core/kv/forms/tree_pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

// Bytes of pages in one round trip: READs, or WRITEs to one replica.
constexpr size_t kTripBytes = size_t{64} * 1024;

constexpr Status kPageDamaged(StatusCode::kCorrupt, "a page of a collection fails its checksum");
constexpr Status kPageNowhere(StatusCode::kCorrupt, "a page of a collection lies nowhere");
constexpr Status kNoPages(StatusCode::kOutOfMemory, "no memory for a collection's pages");
constexpr Status kNodeLost(StatusCode::kUnavailable, "a memory node was lost");
constexpr Status kTreeHoldWaits(StatusCode::kUnavailable, "the cluster waits for a long read");

bool IsPage(const PageRef& page, std::string_view bytes) {
  return PageChecksum(bytes) == page.checksum || Planted(Bug::kPageUnchecked);
}

}  // namespace

const std::string_view* LoadedPages::Find(const PageRef& page) const {
  const auto found = pages_.find(page.addr.bits());
  if (found != pages_.end()) {
    return found->second.checksum == page.checksum ? &found->second.bytes : nullptr;
  }
  std::shared_ptr<const std::string> cached = cache_.Find(page);
  if (cached == nullptr) return nullptr;
  const std::string_view bytes(*cached);
  Page& kept = pages_[page.addr.bits()];
  kept = {page.checksum, bytes, RoundTripPtr(), std::move(cached)};
  return &kept.bytes;
}

bool LoadedPages::HasRoomFor(std::span<const PageRef> missing, uint64_t bytes_max) const {
  uint64_t bytes = bytes_;
  for (const PageRef& page : missing) bytes += page.bytes;
  return bytes <= bytes_max;
}

void LoadedPages::Add(const PageRef& page, std::string_view bytes, RoundTripPtr holder) {
  bytes_ += bytes.size();
  pages_.insert_or_assign(page.addr.bits(), Page{page.checksum, bytes, std::move(holder), nullptr});
}

Task<Status> TreePages::Load(Operation& operation, std::span<const PageRef> missing,
                             LoadedPages* pages, bool gives_way) {
  RetryAcrossViews retry(core_.context, operation);
  while (!missing.empty()) {
    const View& view = core_.context.view();
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    std::vector<const std::byte*> read;
    for (size_t bytes = 0; read.size() < missing.size() && round_trip->HasRoom(1);) {
      const PageRef& page = missing[read.size()];
      if (!view.Contains(page.addr)) co_return kPageNowhere;
      if (!read.empty() && bytes + page.bytes > kTripBytes) break;
      bytes += page.bytes;
      read.push_back(round_trip->Read(view.Locate(page.addr, 0), page.bytes));
    }
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) {
      // The pin keeps the pages, whatever the map becomes.
      const bool again = co_await core_.MayTryAgain(operation, status, &retry);
      if (again) continue;
      co_return status.code() == StatusCode::kUnknownOutcome ? kNodeLost : status;
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const std::string_view bytes(reinterpret_cast<const char*>(read[i]), missing[i].bytes);
      if (!IsPage(missing[i], bytes)) co_return kPageDamaged;
      pages->Add(missing[i], bytes, round_trip);
      core_.pages.Keep(missing[i], bytes);
    }
    missing = missing.subspan(read.size());
    if (missing.empty()) break;
    if (gives_way && core_.context.quiesce.is_impatient()) co_return kTreeHoldWaits;
    if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
  }
  co_return Status::Ok();
}

Task<Status> TreePages::ReadLeaves(Operation& operation, std::span<const PageRef> leaves,
                                   std::byte* into) {
  const View& view = core_.context.view();
  while (!leaves.empty()) {
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    size_t count = 0;
    size_t bytes = 0;
    while (count < leaves.size() && round_trip->HasRoom(1)) {
      const PageRef& page = leaves[count];
      if (!view.Contains(page.addr)) co_return kPageNowhere;
      if (count > 0 && bytes + page.bytes > kTripBytes) break;
      round_trip->ReadTo(view.Locate(page.addr, 0), into + bytes, page.bytes);
      bytes += page.bytes;
      ++count;
    }
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) co_return status;
    for (const PageRef& leaf : leaves.first(count)) {
      const std::string_view read(reinterpret_cast<const char*>(into), leaf.bytes);
      if (!IsPage(leaf, read)) co_return kPageDamaged;
      into += leaf.bytes;
    }
    leaves = leaves.subspan(count);
    if (leaves.empty()) break;
    if (core_.context.quiesce.is_impatient()) co_return kTreeHoldWaits;
    if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
  }
  co_return Status::Ok();
}

std::vector<NewPage> TreePages::Place(Tree& tree, std::span<const ExtentRef> places) {
  std::vector<PageRef> refs;
  refs.reserve(places.size());
  for (const ExtentRef& place : places) {
    refs.push_back({.addr = place.addr, .size_class = place.size_class});
  }
  std::vector<NewPage> pages;
  pages.reserve(places.size());
  tree.Place(refs, [&pages](const PageRef& ref, std::string_view bytes) {
    pages.push_back({ref, bytes});
  });
  return pages;
}

// One copy of their bytes serves all replicas.
size_t TreePages::AddSome(RoundTrip& round_trip, std::span<const NewPage> pages) const {
  const View& view = core_.context.view();
  size_t count = 0;
  size_t ops = 0;
  size_t bytes = 0;
  for (const NewPage& page : pages) {
    ops += static_cast<size_t>(core_.engine.Replicas(view, page.ref.addr));
    if (count > 0 && (ops > RoundTrip::kMaxOps || bytes + page.bytes.size() > kTripBytes)) break;
    bytes += page.bytes.size();
    ++count;
  }
  std::byte* copy = round_trip.Reserve(bytes);
  for (const NewPage& page : pages.first(count)) {
    std::memcpy(copy, page.bytes.data(), page.bytes.size());
    for (int replica = 0; replica < core_.engine.Replicas(view, page.ref.addr); ++replica) {
      round_trip.Write(view.Locate(page.ref.addr, replica), copy,
                       static_cast<uint32_t>(page.bytes.size()));
    }
    copy += page.bytes.size();
  }
  return count;
}

// No slot names any of them: whatever becomes of a WRITE, nothing was applied.
Task<Status> TreePages::Write(Operation& operation, std::span<const NewPage> pages) {
  RetryAcrossViews retry(core_.context, operation);
  while (!pages.empty()) {
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    const size_t count = AddSome(*round_trip, pages);
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (status.ok()) {
      pages = pages.subspan(count);
      continue;
    }
    const bool again = co_await core_.MayTryAgain(operation, status, &retry);
    if (!again) co_return status.code() == StatusCode::kUnknownOutcome ? kNodeLost : status;
  }
  co_return Status::Ok();
}

Task<Status> TreePages::WriteSoon(Operation& operation, Tree& tree, SizeClass* in_place,
                                  std::optional<WrittenExtents>* written) {
  const std::vector<uint32_t> sizes = tree.NewPageBytes();
  size_t total = 0;
  for (const uint32_t bytes : sizes) total += bytes;
  if (total > tree.limits().pinned_bytes) co_return kNoPages;
  WrittenExtents made;
  Status status = co_await TakeSoon(sizes, in_place, &made.list.extents);
  if (!status.ok()) {
    for (const ExtentRef& place : made.list.extents) {
      core_.allocator.FreeUnpublished(place.addr, place.size_class);
    }
    co_return status;
  }
  made.new_pages = Place(tree, made.list.extents);
  made.tree_root = tree.EncodeRoot();
  status = co_await Write(operation, made.new_pages);
  if (status.ok()) {
    *written = std::move(made);
  } else {
    drafts_.RetireAll(made.list);
  }
  co_return status;
}

Task<Status> TreePages::TakeSoon(std::span<const uint32_t> bytes, SizeClass* in_place,
                                 std::vector<ExtentRef>* places) {
  for (const uint32_t page_bytes : bytes) {
    const SizeClass size_class = SizeClass::For(page_bytes);
    Allocator::Object object{core_.allocator.TryAllocate(size_class), size_class};
    if (object.addr.is_null()) {
      if (in_place == nullptr) co_return kNoPages;
      const Result<Allocator::Object> taken =
          co_await core_.allocator.AllocateInPlaceOf(size_class, size_class);
      if (!taken.ok()) *in_place = size_class;
      if (!taken.ok()) co_return taken.status();
      object = taken.value();
    }
    places->push_back({.addr = object.addr, .size_class = object.size_class});
  }
  co_return Status::Ok();
}

Task<Status> TreePages::TakeInTurns(std::span<const uint32_t> bytes,
                                    std::vector<ExtentRef>* places) {
  constexpr size_t kAtOnce = 32;
  for (size_t next = 0; next < bytes.size();) {
    const uint64_t patience_ns = core_.context.options.op_timeout_ms * 1'000'000;
    const bool released =
        co_await core_.context.quiesce.Wait(core_.context.executor.NowNs() + patience_ns);
    if (!released) co_return kHeld;
    const Quiesce::InFlightGuard in_flight(core_.context.quiesce);
    for (size_t i = 0; i < kAtOnce && next < bytes.size(); ++i, ++next) {
      const SizeClass size_class = SizeClass::For(bytes[next]);
      GlobalAddr addr = core_.allocator.TryAllocate(size_class);
      if (addr.is_null()) {
        const Result<GlobalAddr> waited = co_await core_.allocator.Allocate(size_class);
        if (!waited.ok()) co_return waited.status();
        addr = waited.value();
      }
      places->push_back({.addr = addr, .size_class = size_class});
    }
    if (next < bytes.size()) co_await core_.context.executor.Yield();
  }
  co_return Status::Ok();
}

// Written once more, a page is the same bytes at the same place, which no other object has.
Task<Status> TreePages::WriteSome(std::span<const NewPage> pages, size_t* written) {
  Operation waiting;
  waiting.deadline_ns =
      core_.context.executor.NowNs() + core_.context.options.op_timeout_ms * 1'000'000;
  RetryAcrossViews retry(core_.context, waiting);
  while (true) {
    const bool released = co_await core_.context.quiesce.Wait(waiting.deadline_ns);
    if (!released) co_return kHeld;
    Status status;
    {
      Operation operation;
      operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
      RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
      *written = AddSome(*round_trip, pages);
      status = co_await Post(core_.context, operation, round_trip);
    }
    if (!retry.IsWorth(status)) co_return status;
    co_await retry.Wait();
  }
}

Task<Status> TreePages::WriteInTurns(Tree& tree, std::optional<WrittenExtents>* written) {
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kLargeTree);
  const std::vector<uint32_t> sizes = tree.NewPageBytes();
  WrittenExtents& made = written->emplace();
  Status status = co_await TakeInTurns(sizes, &made.list.extents);
  if (status.ok()) {
    made.new_pages = Place(tree, made.list.extents);
    made.tree_root = tree.EncodeRoot();
    std::span<const NewPage> rest(made.new_pages);
    while (!rest.empty() && status.ok()) {
      size_t count = 0;
      status = co_await WriteSome(rest, &count);
      rest = rest.subspan(count);
      if (!rest.empty()) co_await core_.context.executor.Yield();
    }
  }
  if (status.ok()) co_return status;
  drafts_.RetireAll(made.list);
  written->reset();
  core_.AfterWrite();
  co_return status.code() == StatusCode::kUnknownOutcome ? kNodeLost : status;
}

Task<Status> TreePages::ForEach(Operation& operation, const TreeRoot& root, size_t orders,
                                Visit visit, bool gives_way) {
  absl::flat_hash_set<uint64_t> read;
  for (size_t order = 0; order < std::min(orders, root.tops.size()); ++order) {
    const TreeTop& top = root.tops[order];
    for (const PageName& name : top.names) visit(name, top.height == 0);
    std::vector<PageName> names = top.names;
    for (size_t level = top.height; level > 0; --level) {
      std::vector<PageName> below;
      const Status status =
          co_await VisitBelow(operation, names, level, visit, gives_way, &read, &below);
      if (!status.ok()) co_return status;
      names = std::move(below);
    }
  }
  co_return Status::Ok();
}

Task<Status> TreePages::VisitBelow(Operation& operation, std::span<const PageName> names,
                                   size_t level, const Visit& visit, bool gives_way,
                                   absl::flat_hash_set<uint64_t>* read,
                                   std::vector<PageName>* below) {
  while (!names.empty()) {
    LoadedPages pages(core_.pages);
    std::vector<PageRef> missing;
    size_t count = 0;
    for (size_t bytes = 0; count < names.size() && bytes < kTripBytes; ++count) {
      const PageRef& page = names[count].page;
      bytes += page.bytes;
      if (pages.Find(page) == nullptr) missing.push_back(page);
    }
    if (!missing.empty()) {
      const Status status = co_await Load(operation, missing, &pages, gives_way);
      if (!status.ok()) co_return status;
    }
    for (const PageName& name : names.first(count)) {
      TreeTop inner;
      // Null: two names have its address.
      const std::string_view* const bytes = pages.Find(name.page);
      const bool is_sound = bytes != nullptr && LoadInnerBelow(name, *bytes, level, &inner) &&
                            read->insert(name.page.addr.bits()).second;
      if (!is_sound) co_return kPageDamaged;
      for (PageName& one : inner.names) {
        visit(one, level == 1);
        if (level > 1) below->push_back(std::move(one));
      }
    }
    names = names.subspan(count);
    if (names.empty()) break;
    if (gives_way && core_.context.quiesce.is_impatient()) co_return kTreeHoldWaits;
    if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
  }
  co_return Status::Ok();
}

Task<Status> TreePages::Retire(Operation& operation, const TreeRoot& root) {
  std::vector<PageRef> pages;
  // A walk that is not ended leaves the whole tree behind: it does not give way.
  const Status status = co_await ForEach(
      operation, root, root.tops.size(),
      [&pages](const PageName& name, bool /*is_leaf*/) { pages.push_back(name.page); },
      /*gives_way=*/false);
  if (!status.ok()) co_return status;
  constexpr size_t kInATurn = 2000;
  for (std::span<const PageRef> rest(pages); !rest.empty();) {
    const size_t count = std::min(rest.size(), kInATurn);
    RetireAll(rest.first(count));
    rest = rest.subspan(count);
    if (!rest.empty()) co_await core_.context.executor.Yield();
  }
  co_return status;
}

void TreePages::Keep(const std::optional<WrittenExtents>& written) {
  if (!written) return;
  for (const NewPage& page : written->new_pages) core_.pages.Keep(page.ref, page.bytes);
}

void TreePages::RetireAll(std::span<const PageRef> pages) {
  if (Planted(Bug::kPagesKept)) return;
  for (const PageRef& page : pages) core_.allocator.Retire(page.addr, page.size_class);
}

void TreePages::FreeDropped(const Tree& changed) {
  for (const PageRef& page : changed.dropped()) {
    core_.allocator.FreeUnpublished(page.addr, page.size_class);
  }
}

}  // namespace onetrip
