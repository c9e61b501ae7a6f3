// Checks what every holder of a view relies on, and that a view's message says all of it. For fuzz
// targets.
#ifndef ONETRIP_TESTS_FUZZ_VIEW_CHECKS_H_
#define ONETRIP_TESTS_FUZZ_VIEW_CHECKS_H_

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/cluster/view.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/view_codec.h"

namespace onetrip {

// Before the first input: protobuf says on stderr what it refuses, and inputs are mostly that.
inline void SilenceProtobuf() { google::protobuf::SetLogHandler(nullptr); }

// CHECKs that no address of the view leads outside what it says, and no two to the same place.
inline void CheckView(const View& view) {
  CHECK(view.replicas >= 1 && view.replicas <= kMaxReplicas);
  CHECK(view.nodes.size() == view.node_count);
  CHECK(view.worker_index_end <= kMaxWorkers);
  std::vector<std::pair<NodeId, uint64_t>> places;
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    const GlobalAddr start(region, 0);
    CHECK(start.region() == region && view.Contains(start));
    CHECK(view.LiveReplicas(start) >= 1 && view.LiveReplicas(start) <= view.replicas);
    for (int i = 0; i < view.replicas; ++i) {
      const RemoteAddr at = view.Locate(start, i);
      CHECK(at.node.value < view.node_count);
      CHECK(at.offset % kRegionBytes == 0 && at.offset + kRegionBytes > at.offset);
      places.emplace_back(at.node, at.offset);
      if (i < view.LiveReplicas(start)) CHECK(view.LocateOn(start, at.node).offset == at.offset);
      for (int j = 0; j < i; ++j) CHECK(view.Locate(start, j).node != at.node);
    }
  }
  std::sort(places.begin(), places.end());
  CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
}

// CHECKs that `view` is the same when it has been told.
inline void CheckViewTravels(const View& view) {
  control::View message;
  EncodeView(view, &message);
  const std::string bytes = message.SerializeAsString();
  control::View parsed;
  CHECK(parsed.ParseFromString(bytes));
  std::string reason;
  const Result<View> told = DecodeView(parsed, &reason);
  CHECK(told.ok());
  CHECK(told->cluster == view.cluster && told->epoch == view.epoch);
  CHECK(told->replicas == view.replicas && told->keyspaces == view.keyspaces);
  CHECK(told->node_count == view.node_count && told->nodes == view.nodes);
  CHECK(told->worker_index_end == view.worker_index_end && told->live_seats == view.live_seats);
  CHECK(told->records_only == view.records_only);
  CHECK(told->leaving == view.leaving);
  CHECK(told->directory == view.directory);
  CHECK(told->regions.size() == view.regions.size());
  for (size_t region = 0; region < view.regions.size(); ++region) {
    CHECK(told->regions[region].missing == view.regions[region].missing);
    for (int i = 0; i < view.replicas; ++i) {
      CHECK(told->regions[region].nodes[i] == view.regions[region].nodes[i]);
      CHECK(told->regions[region].base[i] == view.regions[region].base[i]);
    }
  }
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_FUZZ_VIEW_CHECKS_H_
