#include "client_core/memory/own_blocks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

uint32_t BlockKey(GlobalAddr addr) { return addr.region() * kBlocksPerRegion + addr.block(); }

}  // namespace

OwnBlocks::OwnBlocks(WorkerContext& context, AllocatorMetrics& metrics, const Holders& holders)
    : context_(context), metrics_(metrics), holders_(holders), lists_(SizeClass::kCount) {}

OwnBlock* OwnBlocks::Find(GlobalAddr addr) {
  const uint32_t key = BlockKey(addr);
  if (key >= position_.size() || position_[key] == 0) return nullptr;
  return blocks_[position_[key] - 1].get();
}

void OwnBlocks::AddFree(OwnBlock& block, uint16_t index) {
  if (block.free.empty()) Enlist(block);
#ifndef NDEBUG
  CHECK(!block.is_free.at(index));  // an object freed twice
  block.is_free[index] = true;
#endif
  block.free.push_back(index);
  CHECK(block.free.size() <= block.objects);
  if (block.is_wholly_free() && !block.queued_for_return) QueueForReturn(block);
}

void OwnBlocks::ListAgain(OwnBlock& block, uint16_t index) {
  if (!block.suspect.empty()) block.suspect[index] = false;
  if (block.is_buffers() && !block.stale_lock.empty() && block.stale_lock[index]) [[unlikely]] {
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

void OwnBlocks::Enlist(OwnBlock& block) {
  if (block.is_set_aside()) return;
  auto& list = lists_[block.list];
  block.list_position = static_cast<uint32_t>(list.size());
  list.push_back(&block);
}

void OwnBlocks::Unlist(OwnBlock& block) {
  if (block.is_set_aside()) return;
  auto& list = lists_[block.list];
  CHECK(list[block.list_position] == &block);
  list[block.list_position] = list.back();
  list[block.list_position]->list_position = block.list_position;
  list.pop_back();
}

void OwnBlocks::RelistBuffers() {
  const View& view = context_.view();
  node_sets_view_ = view.epoch;
  node_set_of_.resize(view.regions.size());
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    node_set_of_[region] = 1 + FindNodeSet(GlobalAddr(region, 0));
  }
  has_elsewhere_ = std::any_of(node_set_of_.begin(), node_set_of_.end(),
                               [&](uint32_t set) { return set != node_set_of_.front(); });
  for (const std::unique_ptr<OwnBlock>& block : blocks_) {
    if (!block->is_buffers() || !view.Contains(block->start)) continue;
    const uint32_t set = node_set_of_[block->start.region()];
    const uint32_t list = set * SizeClass::kCount + block->size_class.index();
    if (list == block->list) continue;
    if (!block->free.empty()) Unlist(*block);
    block->list = list;
    if (!block->free.empty()) Enlist(*block);
  }
}

uint32_t OwnBlocks::FindNodeSet(GlobalAddr at) {
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
    lists_.resize(size_t{2 + index} * SizeClass::kCount);
  }
  return index;
}

GlobalAddr OwnBlocks::TakeBuffer(SizeClass size_class, GlobalAddr near) {
  const uint32_t list = BufferList(size_class, near);
  const GlobalAddr addr = Take(list, size_class);
  if (context_.fabric.completes_inline()) PrefetchNext(list, size_class);
  return addr;
}

void OwnBlocks::PrefetchNext(uint32_t list_index, SizeClass size_class) const {
  constexpr uint64_t kBytesMax = 256;  // hardware follows by itself
  const auto& list = lists_[list_index];
  if (list.empty()) return;
  const OwnBlock& block = *list.back();
  const GlobalAddr addr = ObjectAddr(block.start, size_class, block.free.back());
  const auto bytes = static_cast<uint32_t>(std::min(size_class.bytes(), kBytesMax));
  const View& view = context_.view();
  for (int i = 0; i < view.LiveReplicas(addr); ++i) {
    context_.fabric.PrefetchForWrite(view.Locate(addr, i), bytes);
  }
}

GlobalAddr OwnBlocks::Take(uint32_t list_index, SizeClass size_class) {
  auto& list = lists_[list_index];
  if (list.empty()) return GlobalAddr();
  OwnBlock& block = *list.back();
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

OwnBlock& OwnBlocks::Adopt(GlobalAddr start, SizeClass size_class, uint32_t list,
                           const std::vector<bool>* named) {
  auto block = std::make_unique<OwnBlock>();
  block->list = list;
  block->start = start;
  block->size_class = size_class;
  block->objects = ObjectsPerBlock(size_class, start.block());
  block->free.reserve(block->objects);
#ifndef NDEBUG
  block->is_free.resize(block->objects);
#endif
  const uint32_t key = BlockKey(start);
  if (key >= position_.size()) position_.resize(key + 1);
  CHECK(position_[key] == 0);
  blocks_.push_back(std::move(block));
  position_[key] = static_cast<uint32_t>(blocks_.size());
  OwnBlock& added = *blocks_.back();
  added.leaving = context_.view().IsLeaving(start);
  leaving_count_ += added.leaving ? 1 : 0;
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
  return added;
}

void OwnBlocks::Remove(OwnBlock& block) {
  CHECK(block.is_wholly_free());
  if (context_.memory_observer != nullptr) context_.memory_observer->GivenBack(block.start);
  Unlist(block);
  metrics_.blocks_returned.Add();
  Forget(block);
}

void OwnBlocks::Forget(OwnBlock& block) {
  const uint64_t free_bytes = block.free.size() * block.size_class.bytes();
  metrics_.owned_bytes.Sub(uint64_t{block.size_class.blocks()} * kBlockBytes);
  metrics_.free_bytes.Sub(block.size_class, free_bytes);
  metrics_.live_bytes.Sub(uint64_t{block.objects} * block.size_class.bytes() - free_bytes);
  leaving_count_ -= block.leaving ? 1 : 0;
  const uint32_t key = BlockKey(block.start);
  const uint32_t position = std::exchange(position_[key], 0);
  if (position != blocks_.size()) {
    position_[BlockKey(blocks_.back()->start)] = position;
    std::swap(blocks_[position - 1], blocks_.back());
  }
  blocks_.pop_back();
}

GlobalAddr OwnBlocks::TakeBeside(SizeClass size_class, SizeClass buffer_class) {
  if (lists_[size_class.index()].empty()) return GlobalAddr();
  // A new view makes lists anew, once.
  (void)BufferList(buffer_class, lists_[size_class.index()].back()->start);
  auto& list = lists_[size_class.index()];
  for (size_t i = list.size(); i-- > 0;) {
    if (!HasBuffers(buffer_class, list[i]->start, kBuffersOfAWrite)) continue;
    std::swap(list[i], list.back());
    list[i]->list_position = static_cast<uint32_t>(i);
    list.back()->list_position = static_cast<uint32_t>(list.size() - 1);
    return Take(size_class.index(), size_class);
  }
  return GlobalAddr();
}

bool OwnBlocks::MakeObjects(SizeClass size_class) {
  for (size_t list = SizeClass::kCount + size_class.index(); list < lists_.size();
       list += SizeClass::kCount) {
    if (lists_[list].empty()) continue;
    OwnBlock& block = *lists_[list].back();
    Unlist(block);
    block.list = size_class.index();
    Enlist(block);
    return true;
  }
  return false;
}

void OwnBlocks::KeepBlockOf(GlobalAddr addr) {
  if (OwnBlock* const block = Find(addr); block != nullptr) block->kept = true;
}

bool OwnBlocks::IsListedFor(GlobalAddr start, const Want& want) {
  const OwnBlock* const block = Find(start);
  return block != nullptr && block->list == ListFor(want);
}

void OwnBlocks::QueueForReturn(OwnBlock& block) {
  block.queued_for_return = true;
  wholly_free_.push_back(block.start);
}

void OwnBlocks::UseView(const View& view) {
  const auto is_gone = [&](GlobalAddr addr) { return !view.Contains(addr); };
  std::erase_if(to_clear_, [&](const FreeObject& one) { return is_gone(one.block); });
  std::erase_if(wholly_free_, is_gone);
  for (size_t i = blocks_.size(); i-- > 0;) {
    OwnBlock& block = *blocks_[i];
    if (!is_gone(block.start)) continue;
    LogError("a region was given up in which this worker has a block: region " +
             std::to_string(block.start.region()));
    if (!block.free.empty()) Unlist(block);
    Forget(block);
  }
  for (const std::unique_ptr<OwnBlock>& block : blocks_) {
    const bool leaves = view.IsLeaving(block->start);
    if (leaves == block->leaving) continue;
    if (leaves && !block->free.empty()) Unlist(*block);
    block->leaving = leaves;
    leaves ? ++leaving_count_ : --leaving_count_;
    if (!leaves && !block->free.empty()) Enlist(*block);
  }
}

}  // namespace onetrip
