// A master with three memory nodes and two agents of a worker each, of which a node is lost.
#ifndef ONETRIP_TESTS_UNIT_MASTER_REPAIR_FIXTURE_H_
#define ONETRIP_TESTS_UNIT_MASTER_REPAIR_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/master_bench.h"

namespace onetrip {

using Streams = std::vector<StreamId>;

class MasterRepairTest : public testing::Test {
 protected:
  explicit MasterRepairTest(const CoordinatorOptions& options = {}) : bench(options) {
    nodes = bench.Form();
    for (StreamId* const agent : {&a, &b}) {
      *agent = bench.AddAgent();
      member[*agent] = bench.attendance.member;
    }
    for (const StreamId agent : {a, b}) worker[agent] = bench.AddWorker(agent, {a, b});
  }

  [[nodiscard]] const View& view() const { return bench.coordinator.view(); }
  [[nodiscard]] StatusReply Status() const { return bench.coordinator.Status(bench.now_us); }
  [[nodiscard]] std::string StateOf(size_t node) const {
    return Status().status.members.at(node).state;
  }
  [[nodiscard]] Streams Everybody() const {
    Streams all = nodes;
    all.insert(all.end(), {a, b});
    return all;
  }
  const HoldForViewMessage* HoldOf(StreamId agent) const {
    const auto* hold = bench.Last<HoldForViewMessage>(agent);
    return hold == nullptr || hold->epoch <= view().epoch ? nullptr : hold;
  }
  void Holds(StreamId agent) {
    ASSERT_NE(HoldOf(agent), nullptr);
    bench.Say(agent, ViewHeldMessage{HoldOf(agent)->epoch});
  }
  void TakeOver() {
    for (const StreamId agent : {a, b}) bench.TakeOver(agent);
  }
  // The newest repair that it was asked for and has not answered yet.
  const RepairMessage* RepairOf(StreamId agent) const {
    const auto* repair = bench.Last<RepairMessage>(agent);
    return repair == nullptr || answered.contains(repair->id) ? nullptr : repair;
  }
  // Blocks that are not taken over yet are asked for when nothing else is; most tests are not about
  // them.
  void Answer(StreamId agent, RepairKind kind, bool done = true) {
    const RepairMessage* repair = RepairOf(agent);
    if (repair != nullptr && kind != RepairKind::kTakeOverBlocks &&
        repair->order.kind == RepairKind::kTakeOverBlocks) {
      answered.insert(repair->id);
      bench.Say(agent, RepairedMessage{repair->id, true, ""});
      repair = RepairOf(agent);
    }
    ASSERT_NE(repair, nullptr);
    ASSERT_EQ(repair->order.kind, kind);
    answered.insert(repair->id);
    bench.Say(agent, RepairedMessage{repair->id, done, done ? "" : "the test says no"});
  }
  void AllHold() {
    Holds(a);
    Holds(b);
  }
  // Node 1 is lost, put out, and the slots are to be resolved without it.
  void LoseNode1() {
    bench.Break(nodes[1]);
    AllHold();
    TakeOver();
  }
  void Resolve() {
    AllHold();
    Answer(a, RepairKind::kResolveSlots);
    TakeOver();
  }
  StreamId StartNode1() {
    nodes[1] = bench.JoinNode(101);
    bench.Ask(nodes[1], MasterBench::Serve(7001));
    return nodes[1];
  }

  MasterBench bench;
  Streams nodes;
  StreamId a = 0;
  StreamId b = 0;
  std::map<StreamId, uint64_t> member;
  std::map<StreamId, WorkerJoined> worker;
  std::set<uint64_t> answered;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_REPAIR_FIXTURE_H_
