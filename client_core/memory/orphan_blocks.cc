#include "client_core/memory/orphan_blocks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "client_core/base/planted_bug.h"

namespace onetrip {

OrphanBlocks::IsWanted OrphanBlocks::OfTheDead(const LivingWorkers& living) {
  return [&living](BlockEntry granted) {
    const bool is_open = granted.is_open() && !Planted(Bug::kOpenIsOrphan);
    return !is_open && !living.Includes(granted.owner());
  };
}

Task<Status> OrphanBlocks::Find(Operation& operation, IsWanted is_wanted, uint32_t first_region) {
  const auto regions = static_cast<uint32_t>(context_.view().regions.size());
  constexpr uint32_t kBytes = offsetof(RegionHeader, blocks) + kBlocksPerRegion * 8;
  constexpr uint32_t kAtOnce = 16;
  for (uint32_t first = first_region; first < regions; first += kAtOnce) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    std::vector<const RegionHeader*> headers;
    for (uint32_t region = first; region < std::min(regions, first + kAtOnce); ++region) {
      // Given up meanwhile.
      if (!context_.view().Contains(GlobalAddr(region, 0))) break;
      headers.push_back(reinterpret_cast<const RegionHeader*>(
          round_trip->Read(context_.view().Locate(GlobalAddr(region, 0), 0), kBytes)));
    }
    if (headers.empty()) break;
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < headers.size(); ++i) {
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        const BlockEntry entry(headers[i]->blocks[block]);
        if (entry.use() != BlockEntry::Use::kOwned || !is_wanted(entry)) continue;
        if (!entry.size_class().is_valid()) {
          co_return Status(StatusCode::kCorrupt, "a block table names no size class");
        }
        const GlobalAddr start(first + i, uint64_t{block} * kBlockBytes);
        Add(start, entry.size_class(), entry.owner());
      }
    }
    if (context_.fabric.completes_inline()) co_await context_.executor.Yield();
  }
  co_return Status::Ok();
}

void OrphanBlocks::Add(GlobalAddr start, SizeClass size_class, WorkerId owner) {
  blocks_[start.bits()] = {start, size_class, owner,
                           std::vector<bool>(ObjectsPerBlock(size_class, start.block()))};
}

const OrphanBlocks::Block* OrphanBlocks::At(GlobalAddr addr) const {
  const auto after = blocks_.upper_bound(addr.bits());
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  const uint64_t end = block.start.bits() + uint64_t{block.size_class.blocks()} * kBlockBytes;
  if (addr.bits() >= end) return nullptr;
  return ObjectIndex(addr, block.start, block.size_class) < block.named.size() ? &block : nullptr;
}

void OrphanBlocks::Name(GlobalAddr addr) {
  const Block* const block = At(addr);
  if (block == nullptr) return;
  blocks_[block->start.bits()].named[ObjectIndex(addr, block->start, block->size_class)] = true;
}

void OrphanBlocks::TellUnnamed() const {
  if (context_.memory_observer == nullptr) return;
  for (const auto& [addr, block] : blocks_) {
    for (size_t i = 0; i < block.named.size(); ++i) {
      if (block.named[i]) continue;
      context_.memory_observer->Unnamed(
          ObjectAddr(block.start, block.size_class, static_cast<uint16_t>(i)));
    }
  }
}

}  // namespace onetrip
