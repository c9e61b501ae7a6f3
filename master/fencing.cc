#include "master/fencing.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/leases.h"
#include "master/texts.h"
#include "master/view_changes.h"

namespace onetrip::master {

void ForgetAgent(ClusterState& state, Effects& effects, uint64_t member) {
  effects.change.agents[member] = std::nullopt;
  state.members.erase(member);
}

void Expel(ClusterState& state, Effects& effects, Member& member, const std::string& why) {
  if (member.standing == Standing::kExpelled || member.standing == Standing::kFenced) return;
  DropRequests(state, member);
  member.standing = Standing::kExpelled;
  if (member.stream != 0) {
    Send(effects, member.stream, ExpelledMessage{why});
    Close(state, effects, std::exchange(member.stream, 0), why);
  }
  const std::string name = AgentText(member);
  if (member.seats.empty()) {
    Log(effects, LogLevel::kInfo, name + (member.left ? " has left" : " is gone: " + why));
    ForgetAgent(state, effects, member.id);
    return;
  }
  Log(effects, LogLevel::kWarning,
      name + " is expelled: " + why + "; its " + std::to_string(member.seats.size()) +
          " workers are to be fenced");
  for (const uint16_t index : member.seats) {
    state.seats[index].expelled = true;
    effects.change.seats[index] = state.seats[index];
  }
  for (uint16_t node = 0; node < state.NodesInView(); ++node) SendFences(state, effects, node);
}

void SendFences(ClusterState& state, Effects& effects, uint16_t id) {
  Node& node = state.nodes[id];
  // One at a time: its answer brings the rest on the way.
  if (id >= state.NodesInView() || !node.serving || node.fence != 0 || node.fence_retry_us != 0)
    return;
  std::vector<WorkerId> workers;
  for (const WorkerId worker : ExpelledWorkers(state)) {
    if (!node.fenced.contains(worker.value)) workers.push_back(worker);
  }
  if (workers.empty()) return;
  node.fence = state.next_fence++;
  node.fence_workers = workers;
  Send(effects, state.members.at(node.member).stream,
       FenceMessage{node.fence, state.membership.view().epoch, std::move(workers)});
}

void OnFenced(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const FencedMessage& message) {
  if (!member.node.has_value()) return;
  const uint16_t id = *member.node;
  Node& node = state.nodes[id];
  if (node.fence == 0 || message.id != node.fence) return;
  node.fence = 0;
  if (!message.done) {
    if (!std::exchange(node.fence_complained, true)) {
      Log(effects, LogLevel::kWarning,
          NodeText(id) + " could not fence expelled workers yet: " + message.reason +
              "; it is asked again");
    }
    node.fence_retry_us = now_us + state.options.fence_retry_ms * 1000;
    return;
  }
  node.fence_complained = false;
  for (const WorkerId worker : node.fence_workers) {
    node.fenced.insert(worker.value);
    ForgetFormer(state, effects, worker);
  }
  SendFences(state, effects, id);
}

void ForgetFormer(ClusterState& state, Effects& effects, WorkerId worker) {
  if (!state.former.contains(worker.value)) return;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (!state.nodes[id].fenced.contains(worker.value)) return;
  }
  state.former.erase(worker.value);
  effects.change.former[worker.value] = false;
  for (Node& node : state.nodes) node.fenced.erase(worker.value);
}

void CheckFenced(ClusterState& state) {
  for (auto& entry : state.members) {
    Member& member = entry.second;
    if (member.standing != Standing::kExpelled) continue;
    uint16_t by = 0;
    for (uint16_t id = 0; id < state.NodesInView(); ++id) {
      const Node& node = state.nodes[id];
      const bool fenced = std::all_of(
          member.seats.begin(), member.seats.end(),
          [&](uint16_t index) { return node.fenced.contains(state.seats.at(index).worker.value); });
      // A node that no agent asks any more need not refuse it, until it comes back.
      const bool gone = node.record.out &&
                        (Planted(Bug::kOutIsFenced) || InForceEverywhere(state, node.out_epoch));
      if (fenced || gone) ++by;
    }
    if (by < (Planted(Bug::kFencedOnOneNode) ? 1 : state.NodesInView())) continue;
    member.standing = Standing::kFenced;
    Change change;
    change.kind = ChangeKind::kFenced;
    change.member = member.id;
    EnqueueOwn(state, change);
  }
}

}  // namespace onetrip::master
