#include "master/durable_change.h"

#include <algorithm>
#include <iterator>

#include "client_core/control/control.pb.h"
#include "client_core/control/view_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/worker_id.h"

namespace onetrip {
namespace {

// The mark is not worth a copy.
NodeRecord WithoutMark(NodeRecord record) {
  record.mark = 0;
  return record;
}

ClusterRecord WithoutTime(ClusterRecord record) {
  record.time_us = 0;
  return record;
}

void EncodeCluster(const ClusterRecord& record, control::StateChange::Cluster* out) {
  out->set_cluster(record.cluster);
  out->set_replicas(static_cast<uint32_t>(record.replicas));
  out->set_nodes(record.nodes);
  out->set_next_member(record.next_member);
  out->set_next_worker(record.next_worker);
  out->set_next_keyspace(record.next_keyspace);
  out->set_epoch(record.epoch);
  out->set_time_us(record.time_us);
  out->set_worker_index_end(record.worker_index_end);
  for (const KeyspaceId keyspace : record.keyspaces) out->add_keyspaces(keyspace.value);
  out->set_resolve_due(record.resolve_due);
  out->set_scrub_due(record.scrub_due);
  out->set_repairer(record.repairer);
  out->set_records_only(record.records_only);
  out->set_heal_due(record.heal_due);
  out->set_life(record.life);
  out->set_engines(static_cast<uint32_t>(record.engines));
  out->set_nobody_stayed(record.nobody_stayed);
  out->set_leaving(record.leaving);
  out->set_directory(record.directory);
  out->set_may_shrink(record.may_shrink);
  out->set_index_left(record.index_left);
}

bool DecodeCluster(const control::StateChange::Cluster& in, ClusterRecord* record) {
  if (in.replicas() > kMaxReplicas || in.nodes() > UINT16_MAX ||
      in.worker_index_end() > kMaxWorkers || in.next_worker() > kMaxWorkerId + 1 ||
      in.keyspaces_size() != int{kMaxDatabases} || in.leaving() > UINT16_MAX ||
      in.directory() >= kDirectories ||
      in.engines() > static_cast<uint32_t>(EngineFamily::kSingleCopy)) {
    return false;
  }
  record->cluster = in.cluster();
  record->replicas = static_cast<int>(in.replicas());
  record->nodes = static_cast<uint16_t>(in.nodes());
  record->next_member = in.next_member();
  record->next_worker = in.next_worker();
  record->next_keyspace = in.next_keyspace();
  record->epoch = in.epoch();
  record->time_us = in.time_us();
  record->worker_index_end = static_cast<uint16_t>(in.worker_index_end());
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    record->keyspaces[i] = KeyspaceId{in.keyspaces(static_cast<int>(i))};
  }
  record->resolve_due = in.resolve_due();
  record->scrub_due = in.scrub_due();
  record->repairer = in.repairer();
  record->records_only = in.records_only();
  record->heal_due = in.heal_due();
  record->life = in.life();
  record->engines = static_cast<EngineFamily>(in.engines());
  record->nobody_stayed = in.nobody_stayed();
  record->leaving = static_cast<uint16_t>(in.leaving());
  record->directory = static_cast<uint8_t>(in.directory());
  record->may_shrink = in.may_shrink();
  record->index_left = in.index_left();
  return true;
}

void EncodeNode(uint16_t id, const NodeRecord& record, control::StateChange::NodeState* out) {
  out->set_id(id);
  out->set_incarnation(record.incarnation);
  out->set_bytes(record.bytes);
  EncodeNodeAddress(record.address, out->mutable_address());
  out->set_out(record.out);
  out->set_wish(static_cast<uint32_t>(record.wish));
  out->set_wish_regions(record.wish_regions);
  out->set_mark(record.mark);
}

bool DecodeNode(const control::StateChange::NodeState& in, DurableChange* change) {
  if (in.id() > UINT16_MAX || in.wish() > static_cast<uint32_t>(NodeWish::kDrain)) return false;
  NodeRecord& record = change->nodes[static_cast<uint16_t>(in.id())];
  record.incarnation = in.incarnation();
  record.bytes = in.bytes();
  record.out = in.out();
  record.wish = static_cast<NodeWish>(in.wish());
  record.wish_regions = in.wish_regions();
  record.mark = in.mark();
  return DecodeNodeAddress(in.address(), &record.address);
}

void EncodeRegion(uint32_t number, const RegionPlacement& place,
                  control::StateChange::RegionState* out) {
  out->set_number(number);
  for (int i = 0; i < kMaxReplicas; ++i) {
    out->mutable_place()->add_nodes(place.nodes[i].value);
    out->mutable_place()->add_bases(place.base[i]);
  }
  out->mutable_place()->set_missing(place.missing);
}

bool DecodeRegion(const control::StateChange::RegionState& in, DurableChange* change) {
  const control::Region& place = in.place();
  if (place.nodes_size() != kMaxReplicas || place.bases_size() != kMaxReplicas ||
      place.missing() > kMaxReplicas) {
    return false;
  }
  RegionPlacement& region = change->regions[in.number()];
  for (int i = 0; i < kMaxReplicas; ++i) {
    if (place.nodes(i) > UINT16_MAX) return false;
    region.nodes[i] = NodeId{static_cast<uint16_t>(place.nodes(i))};
    region.base[i] = place.bases(i);
  }
  region.missing = static_cast<uint8_t>(place.missing());
  return true;
}

}  // namespace

void ApplyChange(const DurableChange& change, DurableState* state) {
  if (change.cluster.has_value()) state->cluster = *change.cluster;
  for (const auto& [id, node] : change.nodes) {
    if (state->nodes.size() <= id) state->nodes.resize(size_t{id} + 1);
    state->nodes[id] = node;
  }
  if (change.regions_end.has_value() && state->regions.size() > *change.regions_end) {
    state->regions.resize(*change.regions_end);
  }
  for (const auto& [region, placement] : change.regions) {
    if (state->regions.size() <= region) state->regions.resize(size_t{region} + 1);
    state->regions[region] = placement;
  }
  for (const auto& [index, seat] : change.seats) {
    if (seat.has_value()) {
      state->seats[index] = *seat;
    } else {
      state->seats.erase(index);
    }
  }
  for (const auto& [id, agent] : change.agents) {
    if (agent.has_value()) {
      state->agents[id] = *agent;
    } else {
      state->agents.erase(id);
    }
  }
  for (const auto& [life, epoch] : change.lives) {
    if (epoch.has_value()) {
      state->lives[life] = *epoch;
    } else {
      state->lives.erase(life);
    }
  }
  for (const auto& [worker, is_one] : change.former) {
    if (is_one) {
      state->former.insert(worker);
    } else {
      state->former.erase(worker);
    }
  }
}

bool Follows(const DurableChange& change, const DurableState& state) {
  // Ascending, so that the last key tells.
  const auto follow = [](const auto& rows, size_t known) {
    const auto first = std::find_if(rows.begin(), rows.end(),
                                    [known](const auto& row) { return row.first >= known; });
    const auto fresh = static_cast<size_t>(std::distance(first, rows.end()));
    return fresh == 0 || rows.rbegin()->first + size_t{1} == known + fresh;
  };
  const size_t regions =
      std::min<size_t>(state.regions.size(), change.regions_end.value_or(UINT32_MAX));
  return follow(change.nodes, state.nodes.size()) && follow(change.regions, regions);
}

DurableChange WholeState(const DurableState& state) {
  DurableChange change;
  change.cluster = state.cluster;
  for (size_t id = 0; id < state.nodes.size(); ++id) {
    change.nodes[static_cast<uint16_t>(id)] = state.nodes[id];
  }
  for (size_t region = 0; region < state.regions.size(); ++region) {
    change.regions[static_cast<uint32_t>(region)] = state.regions[region];
  }
  for (const auto& [index, seat] : state.seats) change.seats[index] = seat;
  for (const auto& [id, agent] : state.agents) change.agents[id] = agent;
  for (const uint32_t worker : state.former) change.former[worker] = true;
  for (const auto& [life, epoch] : state.lives) change.lives[life] = epoch;
  return change;
}

bool IsKept(const DurableChange& change, const DurableState& before) {
  if (change.regions_end.has_value() || !change.regions.empty() || !change.seats.empty() ||
      !change.agents.empty() || !change.former.empty() || !change.lives.empty()) {
    return true;
  }
  if (change.cluster.has_value() && WithoutTime(*change.cluster) != WithoutTime(before.cluster)) {
    return true;
  }
  for (const auto& [id, node] : change.nodes) {
    if (id >= before.nodes.size() || WithoutMark(node) != WithoutMark(before.nodes[id])) {
      return true;
    }
  }
  return false;
}

std::string EncodeChange(const DurableChange& change) {
  control::StateChange out;
  if (change.cluster.has_value()) EncodeCluster(*change.cluster, out.mutable_cluster());
  for (const auto& [id, node] : change.nodes) EncodeNode(id, node, out.add_nodes());
  if (change.regions_end.has_value()) out.set_regions_end(*change.regions_end);
  for (const auto& [number, place] : change.regions) {
    EncodeRegion(number, place, out.add_regions());
  }
  for (const auto& [index, seat] : change.seats) {
    control::StateChange::Seat* const row = out.add_seats();
    row->set_index(index);
    row->set_taken(seat.has_value());
    if (!seat.has_value()) continue;
    row->set_worker(seat->worker.value);
    row->set_member(seat->member);
    row->set_expelled(seat->expelled);
  }
  for (const auto& [id, agent] : change.agents) {
    control::StateChange::Agent* const row = out.add_agents();
    row->set_id(id);
    row->set_known(agent.has_value());
    if (!agent.has_value()) continue;
    row->set_pid(agent->pid);
    row->set_host(agent->host);
    row->set_address(agent->address);
    row->set_version(agent->version);
  }
  for (const auto& [worker, is_one] : change.former) {
    control::StateChange::Former* const row = out.add_former();
    row->set_worker(worker);
    row->set_is_one(is_one);
  }
  for (const auto& [life, epoch] : change.lives) {
    control::StateChange::Life* const row = out.add_lives();
    row->set_life(life);
    row->set_known(epoch.has_value());
    row->set_epoch(epoch.value_or(0));
  }
  return out.SerializeAsString();
}

Result<DurableChange> DecodeChange(const std::string& bytes) {
  const Status corrupt(StatusCode::kCorrupt, "no change of a master's state");
  control::StateChange in;
  if (!in.ParseFromString(bytes)) return corrupt;
  DurableChange change;
  if (in.has_cluster()) {
    ClusterRecord record;
    if (!DecodeCluster(in.cluster(), &record)) return corrupt;
    change.cluster = record;
  }
  for (const auto& node : in.nodes()) {
    if (!DecodeNode(node, &change)) return corrupt;
  }
  if (in.has_regions_end()) change.regions_end = in.regions_end();
  for (const auto& region : in.regions()) {
    if (!DecodeRegion(region, &change)) return corrupt;
  }
  for (const auto& seat : in.seats()) {
    if (seat.index() >= kMaxWorkers) return corrupt;
    std::optional<SeatRecord>& record = change.seats[static_cast<uint16_t>(seat.index())];
    if (seat.taken()) record = SeatRecord{WorkerId{seat.worker()}, seat.member(), seat.expelled()};
  }
  for (const auto& agent : in.agents()) {
    std::optional<AgentRecord>& record = change.agents[agent.id()];
    if (agent.known()) {
      record = AgentRecord{agent.pid(), agent.host(), agent.address(), agent.version()};
    }
  }
  for (const auto& life : in.lives()) {
    std::optional<uint64_t>& epoch = change.lives[life.life()];
    if (life.known()) epoch = life.epoch();
  }
  for (const auto& former : in.former()) change.former[former.worker()] = former.is_one();
  return change;
}

}  // namespace onetrip
