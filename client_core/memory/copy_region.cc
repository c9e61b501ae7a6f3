#include "client_core/memory/copy_region.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr uint32_t kChunkBytes = 32 * 1024;
constexpr uint32_t kChunksPerBlock = kBlockBytes / kChunkBytes;

// Where the copy comes from and goes to.
struct Way {
  Executor& executor;
  Fabric& fabric;
  RemoteAddr from;
  RemoteAddr to;
};

// The two steps of a round trip each: a READ and the WRITE of what it brought.
Task<Status> Carry(const Way& way, uint64_t offset, uint32_t bytes) {
  RoundTripPtr round_trip = way.fabric.NewRoundTrip();
  const std::byte* what = round_trip->Read({way.from.node, way.from.offset + offset}, bytes);
  Status status = co_await way.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  round_trip->ClearOps();
  round_trip->Write({way.to.node, way.to.offset + offset}, what, bytes);
  status = co_await way.fabric.Post(round_trip);
  co_return status;
}

Task<void> CarryChunk(const Way& way, uint64_t offset, Status* status) {
  // Others of this agent do not wait for all of the region.
  if (way.fabric.completes_inline()) co_await way.executor.Yield();
  const Status carried = co_await Carry(way, offset, kChunkBytes);
  if (!carried.ok()) *status = carried;
}

Task<Status> CarryRegion(Way way, uint32_t region) {
  Fabric& fabric = way.fabric;
  RoundTripPtr round_trip = fabric.NewRoundTrip();
  RegionHeader header;
  const std::byte* bytes = round_trip->Read(way.from, sizeof(header));
  Status status = co_await fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.magic != kRegionMagic || header.region != region) {
    co_return Status(StatusCode::kCorrupt, "where the region is to be there is no header of it");
  }
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    if (BlockEntry(header.blocks[block]).use() == BlockEntry::Use::kFree) continue;
    if (Planted(Bug::kCopyForgetsBlock) && block == kRootBlocks) continue;
    std::vector<Task<void>> chunks;
    for (uint32_t chunk = 0; chunk < kChunksPerBlock; ++chunk) {
      const uint64_t offset = uint64_t{block} * kBlockBytes + uint64_t{chunk} * kChunkBytes;
      chunks.push_back(CarryChunk(way, offset, &status));
    }
    co_await WhenAll(std::move(chunks));
    if (!status.ok()) co_return status;
  }
  // Last, and whole: until then the target's block table says what it did.
  status = co_await Carry(way, 0, sizeof(header));
  co_return status;
}

}  // namespace

Task<Status> CopyRegion(Executor& executor, Fabric& fabric, const View& view, uint32_t region) {
  if (region >= view.regions.size() || view.regions[region].missing == 0) {
    co_return Status(StatusCode::kInvalidArgument, "no replica of the region is missing");
  }
  const GlobalAddr start(region, 0);
  const Way way{executor, fabric, view.Locate(start, 0),
                view.Locate(start, view.LiveReplicas(start))};
  co_return co_await CarryRegion(way, region);
}

Task<Status> MoveRegion(Executor& executor, Fabric& fabric, const View& view, uint32_t region,
                        NodeId source, RemoteAddr target) {
  const GlobalAddr start(region, 0);
  if (!view.Contains(start) || view.LocateOn(start, source).node != source) {
    co_return Status(StatusCode::kInvalidArgument, "no replica of the region is there");
  }
  const Way way{executor, fabric, view.LocateOn(start, source), target};
  co_return co_await CarryRegion(way, region);
}

}  // namespace onetrip
