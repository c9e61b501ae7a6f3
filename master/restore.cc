#include "master/restore.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/cluster_time.h"
#include "master/emit.h"
#include "master/records.h"

namespace onetrip::master {
namespace {

constexpr uint64_t kUsPerMs = 1000;
// Lives that are remembered with their ends. A member would have to be away for as many starts.
constexpr size_t kLivesMax = 1000;

Status Refuse(StatusCode code, std::string* reason, std::string text) {
  *reason = std::move(text);
  return Status(code, "the master cannot start");
}

std::string WhatIsWrongWithRegions(const DurableState& durable) {
  const ClusterRecord& cluster = durable.cluster;
  std::set<std::pair<NodeId, uint64_t>> places;
  for (const RegionPlacement& region : durable.regions) {
    // Fewer than a majority where the loss of the others was accepted.
    if (region.missing >= cluster.replicas) {
      return "the number of a region's replicas";
    }
    for (int i = 0; i < cluster.replicas; ++i) {
      const uint16_t node = region.nodes[i].value;
      if (node >= durable.nodes.size() || region.base[i] % kRegionBytes != 0 ||
          durable.nodes[node].bytes < kRegionBytes ||
          region.base[i] > durable.nodes[node].bytes - kRegionBytes) {
        return "the place of a region";
      }
      if (!places.emplace(region.nodes[i], region.base[i]).second)
        return "two regions in one place";
      const auto* const end = region.nodes.begin() + i;
      if (std::find(region.nodes.begin(), end, region.nodes[i]) != end) {
        return "a region twice on one node";
      }
      if (durable.nodes[node].out && i < cluster.replicas - region.missing) {
        return "a region on a node that is out";
      }
    }
  }
  return "";
}

// Says what is wrong with `durable`; empty: nothing.
std::string WhatMakesNoSense(const DurableState& durable) {
  const ClusterRecord& cluster = durable.cluster;
  if (cluster.cluster == 0) return "a cluster without a name";
  if (cluster.replicas < 1 || cluster.replicas > kMaxReplicas || cluster.nodes < cluster.replicas) {
    return "its number of replicas or nodes";
  }
  if (cluster.epoch == 0) {
    const bool early = !durable.nodes.empty() || !durable.regions.empty() || !durable.seats.empty();
    return early ? "nodes, regions or workers without a map" : "";
  }
  if (durable.nodes.size() < cluster.nodes || durable.nodes.size() > UINT16_MAX ||
      durable.regions.empty()) {
    return "its cluster map";
  }
  if (std::string nonsense = WhatIsWrongWithRegions(durable); !nonsense.empty()) return nonsense;
  if (cluster.leaving != 0 && cluster.leaving >= durable.regions.size()) {
    return "the regions that are given up";
  }
  for (const auto& [index, seat] : durable.seats) {
    if (index >= cluster.worker_index_end || index >= kMaxWorkers ||
        seat.worker.value >= cluster.next_worker || !durable.agents.contains(seat.member)) {
      return "the seat of worker " + std::to_string(seat.worker.value);
    }
  }
  if (!durable.agents.empty() && durable.agents.rbegin()->first >= cluster.next_member) {
    return "an agent whose number was never given out";
  }
  return "";
}

View DurableView(const DurableState& durable) {
  View view;
  view.cluster = durable.cluster.cluster;
  view.epoch = Epoch{durable.cluster.epoch};
  view.replicas = durable.cluster.replicas;
  view.regions = durable.regions;
  view.keyspaces = durable.cluster.keyspaces;
  view.worker_index_end = durable.cluster.worker_index_end;
  view.records_only = durable.cluster.records_only;
  view.leaving = durable.cluster.leaving;
  view.directory = durable.cluster.directory;
  if (durable.cluster.epoch == 0) return view;
  // All that hold a region, and those between.
  view.node_count = durable.cluster.nodes;
  for (const RegionPlacement& region : durable.regions) {
    for (int i = 0; i < view.replicas; ++i) {
      view.node_count =
          std::max<uint16_t>(view.node_count, static_cast<uint16_t>(region.nodes[i].value + 1));
    }
  }
  // ... and those that are to hold some, or held some.
  for (uint16_t id = view.node_count; id < static_cast<uint16_t>(durable.nodes.size()); ++id) {
    const NodeRecord& node = durable.nodes[id];
    if (!node.out || node.wish != NodeWish::kNone) view.node_count = static_cast<uint16_t>(id + 1);
  }
  for (uint16_t id = 0; id < view.node_count; ++id) {
    const NodeRecord& node = durable.nodes[id];
    view.nodes.push_back({node.incarnation, node.address, node.out});
  }
  return view;
}

// The epochs that the life before has told come to an end here: a copy of the state from before
// that is known by it, however often it is started.
void StartLife(ClusterState& state, Effects& effects, const DurableState& durable,
               uint64_t fresh_life) {
  auto lives = durable.lives;
  if (durable.cluster.cluster != 0) {
    lives[durable.cluster.life] = durable.cluster.epoch;
    effects.change.lives[durable.cluster.life] = durable.cluster.epoch;
  }
  while (lives.size() > kLivesMax) {
    // Members of one that is not listed are judged by the entry of life 0.
    const auto oldest =
        std::min_element(std::next(lives.begin()), lives.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    effects.change.lives[oldest->first] = std::nullopt;
    lives.erase(oldest);
  }
  state.lives = std::make_shared<const std::map<uint64_t, uint64_t>>(std::move(lives));
  state.record.life = fresh_life;
}

Status RefuseOptions(const CoordinatorOptions& options, std::string* reason) {
  if (options.replicas >= 1 && options.replicas <= kMaxReplicas &&
      options.nodes >= options.replicas && options.nodes <= options.nodes_max) {
    return Status::Ok();
  }
  return Refuse(StatusCode::kInvalidArgument, reason,
                "there must be a memory node for every replica: " +
                    std::to_string(options.replicas) + " replicas (at most " +
                    std::to_string(kMaxReplicas) + ") on " + std::to_string(options.nodes) +
                    " nodes (at most " + std::to_string(options.nodes_max) + ")");
}

Status RefuseStored(const DurableState& durable, std::string* reason) {
  const bool is_new = durable.cluster.cluster == 0 && durable.cluster.epoch == 0 &&
                      durable.nodes.empty() && durable.regions.empty() && durable.seats.empty() &&
                      durable.agents.empty();
  if (is_new) return Status::Ok();
  const std::string nonsense = WhatMakesNoSense(durable);
  if (nonsense.empty()) return Status::Ok();
  return Refuse(StatusCode::kCorrupt, reason,
                "the stored state makes no sense: " + nonsense + "; restore a copy of it");
}

// The members that are stored may all come back within a lease and the time of grace.
void AwaitMembers(const DurableState& durable, uint64_t now_us, ClusterState* state) {
  const uint64_t until_us = now_us + (state->options.lease_ms + state->options.grace_ms) * kUsPerMs;
  for (const NodeRecord& record : durable.nodes) {
    Node& node = state->nodes.emplace_back();
    node.record = record;
    node.lost_at_us = until_us;
  }
  for (const auto& [id, info] : durable.agents) {
    Member& member = state->members[id];
    member.id = id;
    member.info = info;
    member.standing = Standing::kAway;
    member.lease_end_us = until_us;
  }
  for (const auto& [index, seat] : durable.seats) {
    Member& member = state->members[seat.member];
    member.seats.insert(index);
    if (seat.expelled) member.standing = Standing::kExpelled;
  }
}

void RestoreRecord(const DurableState& durable, uint64_t fresh_cluster, ClusterState* state,
                   Effects* effects) {
  ClusterRecord& record = state->record;
  record = durable.cluster;
  if (record.cluster == 0) record.cluster = fresh_cluster;
  if (record.epoch == 0) {
    record.replicas = state->options.replicas;
    record.nodes = state->options.nodes;
  } else if (record.replicas != state->options.replicas || record.nodes != state->options.nodes) {
    Log(*effects, LogLevel::kWarning,
        "the cluster keeps its " + std::to_string(record.replicas) + " replicas on " +
            std::to_string(record.nodes) + " memory nodes, whatever the options say");
  }
}

}  // namespace

Status Restore(const CoordinatorOptions& options, const DurableState& durable,
               const LifeStart& start, ClusterState* state, Effects* effects, std::string* reason) {
  if (Status status = RefuseOptions(options, reason); !status.ok()) return status;
  if (Status status = RefuseStored(durable, reason); !status.ok()) return status;
  state->options = options;
  RestoreRecord(durable, start.cluster, state, effects);
  std::vector<Membership> seats;
  for (const auto& [index, seat] : durable.seats) {
    seats.push_back({seat.worker, WorkerIndex{index}});
  }
  View view = DurableView(durable);
  view.cluster = state->record.cluster;
  view.replicas = state->record.replicas;
  state->membership = MembershipState::Restore(std::move(view), seats, state->record.next_worker,
                                               state->record.next_keyspace);
  state->seats = durable.seats;
  state->former = durable.former;
  state->former_repairer = durable.cluster.repairer;
  state->take_over_due = state->has_map();
  CountMissing(*state);
  AwaitMembers(durable, start.now_us, state);
  StartLife(*state, *effects, durable, start.life);
  // Every life of a master starts with a view of its own: it ends the holds of the life before.
  if (state->has_map() && !Planted(Bug::kRestartKeepsEpoch)) state->membership.NextEpoch();
  state->view = std::make_shared<const View>(state->membership.view());
  state->placement_epoch = state->view->epoch.value;
  for (Node& node : state->nodes) node.out_epoch = state->placement_epoch;
  // An answer to an earlier life is none to this one.
  state->next_fence = state->next_repair = (state->placement_epoch << 24) + 1;
  StartTime(*state, start.now_us, start.unix_us, durable.cluster.cluster == 0);
  state->last_tick_us = start.now_us;
  SaveCluster(*state, *effects);
  return Status::Ok();
}

}  // namespace onetrip::master
