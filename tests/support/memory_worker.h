// Workers down to the allocator, on shm or sim, for tests of memory and of what stands on it.
#ifndef ONETRIP_TESTS_SUPPORT_MEMORY_WORKER_H_
#define ONETRIP_TESTS_SUPPORT_MEMORY_WORKER_H_

#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "client_core/coro/sync.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/reclaim.h"
#include "tests/support/test_cluster.h"

namespace onetrip {

// A worker with epochs and slabs. Join before anything else, Leave at the end.
class MemoryWorker : public TestWorkerBase {
 public:
  MemoryWorker(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
               const DataPathOptions& options = {})
      : TestWorkerBase(cluster, executor, std::move(fabric), options) {}

  Reclaimer& reclaimer() { return reclaimer_; }
  Allocator& allocator() { return allocator_; }

  void Join() { CHECK(BlockOn(executor_, reclaimer_.Join()).ok()); }
  void Leave() { CHECK(BlockOn(executor_, reclaimer_.Leave()).ok()); }
  void Maintain() { BlockOn(executor_, allocator_.Maintain()); }
  Result<GlobalAddr> Allocate(SizeClass size_class) {
    const GlobalAddr addr = allocator_.TryAllocate(size_class);
    if (!addr.is_null()) return addr;
    return BlockOn(executor_, allocator_.Allocate(size_class));
  }

 private:
  Reclaimer reclaimer_{*context_};
  Allocator allocator_{*context_, reclaimer_};
};

inline std::unique_ptr<Fabric> MakeShm(TestCluster& cluster, Executor& executor) {
  return std::make_unique<ShmFabric>(executor.clock(), cluster.endpoints());
}
inline std::unique_ptr<Fabric> MakeSim(TestCluster& cluster, Executor& executor,
                                       SimFabricOptions options = {}) {
  return std::make_unique<SimFabric>(executor, cluster.endpoints(), options);
}

// Reads the block tables in the memory of the memory nodes. Only while no grant is on its way.
struct BlockTables {
  uint64_t granted_blocks = 0;  // all owners', spans with all their blocks, counted once; but for
                                // open ones of which all is free
  uint64_t owned_bytes = 0;     // bytes of the owner asked for
  uint64_t slack_bytes = 0;     // headers, and what no object of the class fits into
  bool replicas_agree = true;
  bool headers_intact = true;
};

inline BlockTables ReadBlockTables(TestCluster& cluster, WorkerId owner) {
  BlockTables tables;
  const auto view = cluster.master().view();
  for (uint32_t region = 0; region < view->regions.size(); ++region) {
    const auto header = [&](int replica) {
      const RemoteAddr at = view->Locate(GlobalAddr(region, 0), replica);
      return reinterpret_cast<const RegionHeader*>(cluster.node(at.node.value).base() + at.offset);
    };
    for (int replica = 0; replica < view->replicas; ++replica) {
      tables.headers_intact &= header(replica)->magic == kRegionMagic &&
                               header(replica)->layout_version == kLayoutVersion &&
                               header(replica)->region == region;
    }
    const auto is_wholly_free = [&](uint32_t block, SizeClass size_class) {
      const auto* words =
          reinterpret_cast<const uint64_t*>(reinterpret_cast<const std::byte*>(header(0)) +
                                            block * kBlockBytes + BitmapOffset(block));
      uint32_t free = 0;
      for (uint32_t i = 0; i < kBitmapWords; ++i) {
        free += static_cast<uint32_t>(std::popcount(words[i]));
      }
      return free == ObjectsPerBlock(size_class, block);
    };
    uint32_t not_counted = 0;  // blocks from here on
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      const BlockEntry entry(header(0)->blocks[block]);
      for (int replica = 1; replica < view->replicas; ++replica) {
        tables.replicas_agree &= header(replica)->blocks[block] == entry.bits();
      }
      if (entry.is_open() && is_wholly_free(block, entry.size_class())) {
        not_counted = entry.size_class().blocks();
      }
      if (not_counted > 0) {
        --not_counted;
        continue;
      }
      const bool first = entry.use() == BlockEntry::Use::kOwned;
      if (!first && entry.use() != BlockEntry::Use::kSpanTail) continue;
      ++tables.granted_blocks;
      if (!first || entry.owner() != owner) continue;
      const SizeClass size_class = entry.size_class();
      const uint64_t bytes = size_class.blocks() * kBlockBytes;
      tables.owned_bytes += bytes;
      tables.slack_bytes += bytes - ObjectsPerBlock(size_class, block) * size_class.bytes();
    }
  }
  return tables;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_MEMORY_WORKER_H_
