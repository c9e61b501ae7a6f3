#include "client_core/memory/allocator.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_layout.h"

namespace onetrip {
namespace {

uint32_t BlockKey(GlobalAddr addr) { return addr.region() * kBlocksPerRegion + addr.block(); }

}  // namespace

Allocator::Allocator(WorkerContext& context, Reclaimer& reclaimer)
    : context_(context),
      reclaimer_(reclaimer),
      partial_(SizeClass::kCount),
      retired_registers_(context, reclaimer) {
  next_grant_node_ = context.membership.index.value;  // workers start at different nodes
}

Allocator::~Allocator() { CHECK(!maintaining_); }

Allocator::Block* Allocator::FindOwn(GlobalAddr addr) {
  const uint32_t key = BlockKey(addr);
  if (key >= block_position_.size() || block_position_[key] == 0) return nullptr;
  return blocks_[block_position_[key] - 1].get();
}

void Allocator::AddFree(Block& block, uint16_t index) {
  if (block.free.empty()) Enlist(block);
#ifndef NDEBUG
  CHECK(!block.is_free.at(index));  // an object freed twice
  block.is_free[index] = true;
#endif
  block.free.push_back(index);
  CHECK(block.free.size() <= block.objects);
  if (block.free.size() == block.objects && !block.queued_for_return) {
    block.queued_for_return = true;
    wholly_free_.push_back(block.start);
  }
}

void Allocator::ListAgain(Block& block, uint16_t index) {
  if (!block.suspect.empty()) block.suspect[index] = false;
  if (IsBuffers(block) && !block.stale_lock.empty() && block.stale_lock[index]) [[unlikely]] {
    ++block.clearing;
    return to_clear_.push_back({block.start, index});
  }
  metrics_.live_bytes.Sub(block.size_class.bytes());
  metrics_.free_bytes.Add(block.size_class, block.size_class.bytes());
  AddFree(block, index);
  if (context_.memory_observer != nullptr) {
    context_.memory_observer->Listed(ObjectAddr(block.start, block.size_class, index));
  }
}

void Allocator::Enlist(Block& block) {
  if (block.closing || block.emptying || block.leaving) return;
  auto& list = partial_[block.list];
  block.list_position = static_cast<uint32_t>(list.size());
  list.push_back(&block);
}

void Allocator::Unlist(Block& block) {
  if (block.closing || block.emptying || block.leaving) return;
  auto& list = partial_[block.list];
  CHECK(list[block.list_position] == &block);
  list[block.list_position] = list.back();
  list[block.list_position]->list_position = block.list_position;
  list.pop_back();
}

uint32_t Allocator::BufferList(SizeClass size_class, GlobalAddr at) {
  if (node_sets_view_ != context_.view().epoch) [[unlikely]]
    RelistBuffers();
  CHECK(at.region() < node_set_of_.size());
  return node_set_of_[at.region()] * SizeClass::kCount + size_class.index();
}

void Allocator::RelistBuffers() {
  const View& view = context_.view();
  node_sets_view_ = view.epoch;
  node_set_of_.resize(view.regions.size());
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    node_set_of_[region] = 1 + FindNodeSet(GlobalAddr(region, 0));
  }
  has_elsewhere_ = std::any_of(node_set_of_.begin(), node_set_of_.end(),
                               [&](uint32_t set) { return set != node_set_of_.front(); });
  for (const std::unique_ptr<Block>& block : blocks_) {
    if (block->list < SizeClass::kCount || !view.Contains(block->start)) continue;
    const uint32_t set = node_set_of_[block->start.region()];
    const uint32_t list = set * SizeClass::kCount + block->size_class.index();
    if (list == block->list) continue;
    if (!block->free.empty()) Unlist(*block);
    block->list = list;
    if (!block->free.empty()) Enlist(*block);
  }
}

uint32_t Allocator::FindNodeSet(GlobalAddr at) {
  const View& view = context_.view();
  NodeSet set{{}, at.region() >> kReachRegionBits};
  for (int i = 0; i < view.replicas; ++i) {
    NodeId node = view.regions[at.region()].nodes[i];
    for (int j = 0; j < i; ++j) {
      if (node < set.nodes[j]) std::swap(node, set.nodes[j]);
    }
    set.nodes[i] = node;
  }
  const auto found = std::find(node_sets_.begin(), node_sets_.end(), set);
  const auto index = static_cast<uint32_t>(found - node_sets_.begin());
  if (found == node_sets_.end()) {
    node_sets_.push_back(set);
    partial_.resize(size_t{2 + index} * SizeClass::kCount);
  }
  return index;
}

GlobalAddr Allocator::TryAllocate(SizeClass size_class) {
  return TakeFrom(size_class.index(), size_class);
}

GlobalAddr Allocator::TryAllocateBuffer(SizeClass size_class, GlobalAddr near) {
  const uint32_t list = BufferList(size_class, near);
  const GlobalAddr addr = TakeFrom(list, size_class);
  if (context_.fabric.completes_inline()) PrefetchNext(list, size_class);
  return addr;
}

void Allocator::PrefetchNext(uint32_t list_index, SizeClass size_class) const {
  constexpr uint64_t kBytesMax = 256;  // hardware follows by itself
  const auto& list = partial_[list_index];
  if (list.empty()) return;
  const Block& block = *list.back();
  const GlobalAddr addr = ObjectAddr(block.start, size_class, block.free.back());
  const auto bytes = static_cast<uint32_t>(std::min(size_class.bytes(), kBytesMax));
  const View& view = context_.view();
  for (int i = 0; i < view.LiveReplicas(addr); ++i) {
    context_.fabric.PrefetchForWrite(view.Locate(addr, i), bytes);
  }
}

GlobalAddr Allocator::TakeFrom(uint32_t list_index, SizeClass size_class) {
  auto& list = partial_[list_index];
  if (list.empty()) return GlobalAddr();
  Block& block = *list.back();
  const uint16_t index = block.free.back();
  block.free.pop_back();
#ifndef NDEBUG
  block.is_free.at(index) = false;
#endif
  if (block.free.empty()) list.pop_back();
  metrics_.free_bytes.Sub(size_class, size_class.bytes());
  metrics_.live_bytes.Add(size_class.bytes());
  const GlobalAddr addr = ObjectAddr(block.start, size_class, index);
  if (context_.memory_observer != nullptr) {
    CHECK(holders_.any());
    const bool is_buffer = list_index >= SizeClass::kCount;
    context_.memory_observer->Allocated(addr, size_class,
                                        is_buffer ? MemoryUse::kBuffer : MemoryUse::kObject);
  }
  return addr;
}

void Allocator::Release(GlobalAddr addr, SizeClass size_class) {
  const uint16_t index = ObjectIndex(addr, addr.block_start(), size_class);
  Block* block = FindOwn(addr);
  if (context_.memory_observer != nullptr) {
    const bool is_buffer = block != nullptr && block->list >= SizeClass::kCount;
    context_.memory_observer->Released(addr, size_class,
                                       is_buffer ? MemoryUse::kBuffer : MemoryUse::kObject);
  }
  if (block != nullptr) {
    CHECK(block->size_class == size_class);
    ListAgain(*block, index);
    return;
  }
  const GlobalAddr word = addr.block_start() + BitmapOffset(addr.block()) + index / 64 * 8;
  foreign_.push_back({word, 1ULL << (index % 64)});
}

void Allocator::FreeUnpublished(GlobalAddr addr, SizeClass size_class) {
  Release(addr, size_class);
}

void Allocator::Retire(GlobalAddr addr, SizeClass size_class) {
  if (accounting_) KnowOf(addr);
  retired_.push_back({addr, size_class, reclaimer_.current_epoch(), NoteUnlinked()});
  if (context_.memory_observer != nullptr) context_.memory_observer->Retired(addr, size_class);
  metrics_.retired_bytes.Add(size_class.bytes());
  ++retired_since_tick_;
  retired_bytes_since_tick_ += size_class.bytes();
}

void Allocator::RetireRegister(GlobalAddr addr, SizeClass size_class) {
  if (accounting_) KnowOf(addr);
  retired_registers_.Add({addr, size_class, NoteUnlinked()});
  if (context_.memory_observer != nullptr) context_.memory_observer->Retired(addr, size_class);
  metrics_.retired_bytes.Add(size_class.bytes());
  ++retired_since_tick_;
  retired_bytes_since_tick_ += size_class.bytes();
}

Task<void> Allocator::ReserveRetiredRing(bool may_use_reserve) {
  if (!retired_registers_.needs_ring() ||
      retired_registers_.added() < context_.options.retired_ring_after) {
    co_return;
  }
  constexpr SizeClass kRing = SizeClass::For(kRetiredRingBytes);
  const Holder holder(*this);
  Result<GlobalAddr> ring = co_await AllocatePinned(kRing);
  if (!ring.ok() && may_use_reserve) {
    const Status granted =
        co_await GrantBlock({.size_class = kRing, .near = GlobalAddr(), .may_use_reserve = true});
    if (granted.ok()) ring = co_await AllocatePinned(kRing);
  }
  if (!ring.ok()) co_return;
  // Somebody else may have got one meanwhile.
  if (retired_registers_.needs_ring()) {
    retired_registers_.GiveRing(ring.value());
    KeepBlockOf(ring.value());
  } else {
    FreeUnpublished(ring.value(), kRing);
  }
}

Task<void> Allocator::PublishRetiredRegisters() {
  co_await ReserveRetiredRing();
  std::vector<RetiredRegisters::Retired> published;
  (void)co_await retired_registers_.Publish(&published);
  for (const RetiredRegisters::Retired& retired : published) {
    retired_.push_back(
        {retired.addr, retired.size_class, reclaimer_.current_epoch(), retired.unlinked});
  }
}

void Allocator::ReleaseSafe() {
  while (!retired_.empty() &&
         (reclaimer_.IsSafe(retired_.front().epoch) || Planted(Bug::kRetiredAtOnce))) {
    const Retired retired = retired_.front();
    retired_.pop_front();
    metrics_.retired_bytes.Sub(retired.size_class.bytes());
    NoteReleased(retired.unlinked);
    Release(retired.addr, retired.size_class);
  }
}

uint64_t Allocator::NoteUnlinked() {
  const uint64_t epoch = reclaimer_.current_epoch();
  if (unlinked_.empty() || unlinked_.back().epoch != epoch) unlinked_.push_back({epoch, 0});
  ++unlinked_.back().objects;
  return epoch;
}

void Allocator::NoteReleased(uint64_t unlinked) {
  const auto found =
      std::find_if(unlinked_.begin(), unlinked_.end(),
                   [&](const UnlinkedCount& count) { return count.epoch == unlinked; });
  CHECK(found != unlinked_.end() && found->objects > 0);
  --found->objects;
  while (!unlinked_.empty() && unlinked_.front().objects == 0) unlinked_.pop_front();
}

Reclaimer::Backlog Allocator::backlog() const {
  Reclaimer::Backlog backlog;
  backlog.bytes = metrics_.retired_bytes.Value();
  if (!unlinked_.empty() && !Planted(Bug::kRetiredNotTold)) {
    backlog.retired_since = unlinked_.front().epoch;
  }
  if (context_.executor.NowNs() < short_until_ns_) backlog.wanted = short_of_;
  backlog.tight = context_.executor.NowNs() < tight_until_ns_;
  backlog.gives = gives();
  return backlog;
}

void Allocator::AdoptBlock(GlobalAddr start, SizeClass size_class, uint32_t list,
                           const std::vector<bool>* named) {
  auto block = std::make_unique<Block>();
  block->list = list;
  block->start = start;
  block->size_class = size_class;
  block->objects = ObjectsPerBlock(size_class, start.block());
  block->free.reserve(block->objects);
#ifndef NDEBUG
  block->is_free.resize(block->objects);
#endif
  const uint32_t key = BlockKey(start);
  if (key >= block_position_.size()) block_position_.resize(key + 1);
  CHECK(block_position_[key] == 0);
  blocks_.push_back(std::move(block));
  block_position_[key] = static_cast<uint32_t>(blocks_.size());
  Block& added = *blocks_.back();
  added.leaving = context_.view().IsLeaving(start);
  leaving_blocks_ += added.leaving ? 1 : 0;
  CHECK(named == nullptr || named->size() == added.objects);
  // Lowest address first out.
  for (uint32_t i = added.objects; i-- > 0;) {
    if (named == nullptr || !(*named)[i]) AddFree(added, static_cast<uint16_t>(i));
  }
  const uint64_t free_bytes = added.free.size() * size_class.bytes();
  metrics_.owned_bytes.Add(uint64_t{size_class.blocks()} * kBlockBytes);
  metrics_.free_bytes.Add(size_class, free_bytes);
  metrics_.live_bytes.Add(uint64_t{added.objects} * size_class.bytes() - free_bytes);
  metrics_.blocks_granted.Add();
  if (context_.memory_observer != nullptr) {
    context_.memory_observer->Adopted(start, size_class, named);
  }
}

void Allocator::RemoveBlock(Block& block) {
  CHECK(block.free.size() == block.objects);
  if (context_.memory_observer != nullptr) context_.memory_observer->GivenBack(block.start);
  Unlist(block);
  metrics_.blocks_returned.Add();
  Forget(block);
}

void Allocator::Forget(Block& block) {
  const uint64_t free_bytes = block.free.size() * block.size_class.bytes();
  metrics_.owned_bytes.Sub(uint64_t{block.size_class.blocks()} * kBlockBytes);
  metrics_.free_bytes.Sub(block.size_class, free_bytes);
  metrics_.live_bytes.Sub(uint64_t{block.objects} * block.size_class.bytes() - free_bytes);
  leaving_blocks_ -= block.leaving ? 1 : 0;
  const uint32_t key = BlockKey(block.start);
  const uint32_t position = std::exchange(block_position_[key], 0);
  if (position != blocks_.size()) {
    block_position_[BlockKey(blocks_.back()->start)] = position;
    std::swap(blocks_[position - 1], blocks_.back());
  }
  blocks_.pop_back();
}

Task<void> Allocator::Maintain() {
  if (maintaining_) co_return;
  maintaining_ = true;
  const ViewHold::Presence presence(context_.hold);
  const absl::Cleanup done = [this] { maintaining_ = false; };
  retired_since_tick_ = 0;
  retired_bytes_since_tick_ = 0;
  if (retired_registers_.HasPending()) co_await PublishRetiredRegisters();
  if (doubt_wanted_) {
    const Status doubted = co_await retired_registers_.DoubtAll();
    doubt_wanted_ = !doubted.ok();
    if (doubted.ok()) doubted_epoch_ = reclaimer_.current_epoch();
  }
  if (!late_.empty() && context_.fabric.settled()) co_await TellLate();
  CHECK(late_.empty() || !context_.fabric.settled());
  // A failure leaves memory retired a little longer; the next round tries again.
  (void)co_await reclaimer_.Tick(backlog());
  ReleaseSafe();
  const uint64_t wanted = reclaimer_.others_want();
  if ((wanted & ~answered_) != 0) owed_sweeps_ = static_cast<uint32_t>(blocks_.size());
  answered_ = wanted;
  if (wanted == 0) owed_sweeps_ = 0;
  if (!closing_.empty() || accounting_) holders_.Advance();
  if (!closing_.empty()) OpenClosed();
  if (!foreign_.empty()) (void)co_await FlushForeign();
  if (!opening_.empty()) co_await TellOpened();
  if (!to_return_.empty()) co_await ReturnAgain();
  if (has_unheard_grant_) co_await ClaimUnheard(presence);
  if (!to_claim_.empty()) co_await ClaimAgain();
  if (!uncollected_.empty()) co_await CollectAgain();
  if (!to_clear_.empty()) co_await ClearLocks();
  const uint32_t sweeps = owed_sweeps_ > 0 ? kSweepBlocksInShortage : kSweepBlocksPerTick;
  co_await SweepSome(sweeps);
  owed_sweeps_ -= std::min(owed_sweeps_, sweeps);
  if (wanted != 0) CloseFor(wanted);
  if (!emptying_.empty()) FillAgainWhatIsLate();
  if (context_.view().leaving != 0) co_await SeeToLeaving();
  if (!wholly_free_.empty()) co_await ReturnFreeBlocks(/*all=*/is_scarce() || is_tight());
}

Task<bool> Allocator::Drain() {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  constexpr uint64_t kPatienceWithHoldsNs = 3 * kPatienceNs;
  constexpr uint64_t kPauseNs = 1'000'000;
  uint64_t deadline_ns = context_.executor.NowNs() + kPatienceNs;
  // Holds may come again and again, for the very reason that keeps this worker from its end.
  const uint64_t last_ns = context_.executor.NowNs() + kPatienceWithHoldsNs;
  // While all hold, nobody's epoch moves, and it is not for this worker to keep them waiting.
  while (retired_count() > 0 && context_.executor.NowNs() < deadline_ns) {
    if (context_.hold.holds_all()) {
      deadline_ns = std::min(context_.executor.NowNs() + kPatienceNs, last_ns);
    } else {
      co_await Maintain();
    }
    if (retired_count() > 0) co_await context_.executor.SleepFor(kPauseNs);
  }
  (void)co_await context_.hold.Wait(deadline_ns);
  const ViewHold::Presence presence(context_.hold);
  co_await Maintain();
  bool left = false;
  while (retired_count() == 0) {
    const Result<GlobalAddr> ring = co_await retired_registers_.Leave();
    if (ring.ok() && !ring.value().is_null()) {
      FreeUnpublished(ring.value(), SizeClass::For(kRetiredRingBytes));
    }
    if (ring.ok() && !retired_registers_.left().is_null()) {
      const Result<GlobalAddr> other = co_await retired_registers_.TakeLeftRing();
      if (other.ok() && !other.value().is_null()) {
        FreeUnpublished(other.value(), SizeClass::For(kRetiredRingBytes));
      }
    }
    // A node may be on its way out.
    left = ring.ok();
    if (ring.ok() || context_.executor.NowNs() >= deadline_ns) break;
    co_await context_.executor.SleepFor(kPauseNs);
  }
  co_await SweepSome(static_cast<uint32_t>(blocks_.size()));
  if (!to_clear_.empty()) co_await ClearLocks();
  co_await ReturnFreeBlocks(/*all=*/true);
  co_return left;
}

}  // namespace onetrip
