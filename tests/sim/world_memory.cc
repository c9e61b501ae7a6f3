// World: memory that is taken from the start, or as regions are added, so that it is short.
#include <cstring>
#include <vector>

#include "client_core/layout/region_layout.h"
#include "tests/sim/world.h"

namespace onetrip {

namespace {

const BlockEntry kTaken(BlockEntry::Use::kOwned, WorkerId{UINT32_MAX}, SizeClass(0));

}  // namespace

// They are a worker's that is yet to come, and has nothing in them.
void World::TakeBlocks() {
  if (plan_.free_blocks == 0) return;
  const View& view = *memory_view_;
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    for (int replica = 0; replica < view.LiveReplicas(GlobalAddr(region, 0)); ++replica) {
      const RemoteAddr at = view.Locate(GlobalAddr(region, 0), replica);
      auto* header = reinterpret_cast<RegionHeader*>(nodes_.at(at.node.value)->base() + at.offset);
      for (uint32_t block = kRootBlocks + plan_.free_blocks; block < kBlocksPerRegion; ++block) {
        header->blocks[block] = kTaken.bits();
        std::memset(nodes_.at(at.node.value)->base() + at.offset + block * kBlockBytes, 0xff,
                    kBlockHeaderBytes);
      }
    }
  }
}

void World::FreeTaken(const View& view) {
  if (view.leaving == 0) return;
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    if (!view.IsLeaving(GlobalAddr(region, 0)) && !rest_is_taken_) continue;
    for (int replica = 0; replica < view.LiveReplicas(GlobalAddr(region, 0)); ++replica) {
      const RemoteAddr at = view.Locate(GlobalAddr(region, 0), replica);
      auto* header = reinterpret_cast<RegionHeader*>(nodes_.at(at.node.value)->base() + at.offset);
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        if (header->blocks[block] != kTaken.bits()) continue;
        header->blocks[block] = 0;
        std::memset(
            reinterpret_cast<std::byte*>(header) + block * kBlockBytes + BitmapOffset(block), 0,
            kBlockHeaderBytes);
      }
    }
  }
  rest_is_taken_ = false;
}

void World::TakeTheRest(const View& view) {
  const auto first = static_cast<uint32_t>(memory_view_->regions.size());
  if (plan_.fills_added == 0 || rest_is_taken_ || view.leaving != 0 ||
      view.regions.size() <= first) {
    return;
  }
  rest_is_taken_ = true;
  for (uint32_t region = 0; region < first; ++region) {
    if (view.regions[region].missing != 0) continue;
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      std::vector<uint64_t*> entries;
      bool is_free = true;
      for (int replica = 0; replica < view.replicas; ++replica) {
        const RemoteAddr at = view.Locate(GlobalAddr(region, 0), replica);
        std::byte* const base = nodes_.at(at.node.value)->base() + at.offset;
        entries.push_back(&reinterpret_cast<RegionHeader*>(base)->blocks[block]);
        is_free = is_free && *entries.back() == 0;
      }
      for (uint64_t* entry : entries) {
        if (is_free) *entry = kTaken.bits();
      }
    }
  }
}

}  // namespace onetrip
