#include "client_core/memory/format_regions.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// All replicas of one region in a round trip.
Task<Status> FormatRegion(Fabric& fabric, const View& view, uint32_t region) {
  RoundTripPtr round_trip = fabric.NewRoundTrip();
  std::byte* const bytes = round_trip->Reserve(sizeof(RegionHeader));
  RegionHeader header{};
  header.magic = kRegionMagic;
  header.layout_version = kLayoutVersion;
  header.region = region;
  std::memcpy(bytes, &header, sizeof(header));
  for (int replica = 0; replica < view.replicas; ++replica) {
    round_trip->Write(view.Locate(GlobalAddr(region, 0), replica), bytes, sizeof(header));
  }
  const Status status = co_await fabric.Post(round_trip);
  co_return status;
}

}  // namespace

Task<Status> FormatRegions(Fabric& fabric, const View& view, uint32_t first) {
  const auto end = static_cast<uint32_t>(view.regions.size());
  // The first region of all, which has the root area, is made with the map.
  const bool is_sound = first != 0 && first < end &&
                        std::all_of(view.regions.begin() + first, view.regions.end(),
                                    [](const RegionPlacement& one) { return one.missing == 0; });
  if (!is_sound) {
    co_return Status(StatusCode::kInvalidArgument, "there are no regions to be made");
  }
  if (Planted(Bug::kGrownUnformatted)) co_return Status::Ok();
  for (uint32_t region = first; region < end; ++region) {
    const Status status = co_await FormatRegion(fabric, view, region);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

}  // namespace onetrip
