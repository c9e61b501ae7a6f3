#include "tests/sim/wait_freedom.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/index/key_hash.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"

namespace onetrip {

WaitFreedom::WaitFreedom(const Plan& plan, SimObserver& next, std::vector<MemoryEndpoint*> nodes,
                         const View& view)
    : next_(next), nodes_(std::move(nodes)), view_(view) {
  for (const Fault& fault : plan.faults) {
    if (fault.kind == FaultKind::kFreezeAgent) frozen_.insert(fault.agent);
  }
  std::set<size_t> writers;
  for (size_t client = 0; client < plan.program.size(); ++client) {
    const std::vector<Command>& commands = plan.program[client];
    if (!std::all_of(commands.begin(), commands.end(), IsReadOnly)) {
      writers.insert(client % plan.agents);
    }
  }
  writers_ = static_cast<uint32_t>(writers.size());
}

WaitFreedom::Meter& WaitFreedom::MeterOf(const SimFabric& fabric) {
  if (fabric.index() >= meters_.size()) {
    meters_.resize(fabric.index() + 1);
    begun_.resize(fabric.index() + 1);
  }
  return meters_[fabric.index()];
}

void WaitFreedom::Posted(const SimFabric& fabric, NodeId node, const RoundTrip& round_trip,
                         uint64_t ops) {
  Meter& meter = MeterOf(fabric);
  for (size_t i = 0; i < round_trip.size(); ++i) {
    if (((ops >> i) & 1) == 0) continue;
    const FabricOp& op = round_trip.op(i);
    if (op.kind == FabricOpKind::kCas && op.operand == SealWord::Frozen().bits()) ++meter.seals;
    const bool alone = round_trip.size() == 1;
    if (alone && op.kind == FabricOpKind::kRead && op.bytes == sizeof(uint64_t)) ++meter.polls;
  }
  next_.Posted(fabric, node, round_trip, ops);
}

void WaitFreedom::Applied(const SimFabric& fabric, NodeId node, const FabricOp& op) {
  if (op.kind == FabricOpKind::kCas && op.result != op.expected) ++MeterOf(fabric).lost_cas;
  next_.Applied(fabric, node, op);
}

void WaitFreedom::Answered(const SimFabric& fabric, NodeId node, bool ok) {
  next_.Answered(fabric, node, ok);
}

void WaitFreedom::Began(Agent& agent, const Moment& moment) {
  Meter& meter = MeterOf(agent.fabric());
  meter.round_trips = agent.kv().metrics().get_round_trips.Sum();
  meter.among_frozen = moment.frozen > 0;
  begun_[agent.fabric().index()] = meter;
}

std::string WaitFreedom::Ended(Agent& agent, const HistoryOp& op, const Moment& moment) {
  if (CommandName(op.argv) != "get" || frozen_.contains(agent.number())) return {};
  const Meter& now = MeterOf(agent.fabric());
  const Meter& begun = begun_[agent.fabric().index()];
  const auto replicas = static_cast<uint64_t>(view_.replicas);
  const MetByRead met{.helps = (now.seals - begun.seals + replicas - 1) / replicas,
                      .forgotten = moment.registers_ended,
                      .polls = now.polls - begun.polls,
                      .lost_cas = now.lost_cas - begun.lost_cas};
  const uint64_t round_trips = agent.kv().metrics().get_round_trips.Sum() - begun.round_trips;
  ++report_.reads;
  if (begun.among_frozen) {
    ++report_.among_frozen;
    report_.helped += met.helps > 0 ? 1 : 0;
  }
  if (op.ending != Ending::kAnswered) {
    ++report_.excused;
    if (moment.frozen > 0 && WaitsForTheMaster(op.argv[1])) return {};
    return "a GET waited in vain, and no slot waits for who stands still: " + DescribeOp(op);
  }
  const uint64_t most = ReadRoundTripsMax(writers_, met);
  // Polls of its agent's background work are none of its own.
  const uint64_t but_polls = round_trips - std::min(round_trips, met.polls);
  report_.round_trips_max = std::max(report_.round_trips_max, but_polls);
  if (round_trips <= most) return {};
  return "a GET took " + std::to_string(round_trips) + " round trips, " +
         std::to_string(round_trips - most) + " more than it may beside " +
         std::to_string(writers_) + " writers: " + DescribeOp(op);
}

const std::byte* WaitFreedom::At(GlobalAddr addr, int replica) const {
  const RemoteAddr remote = view_.Locate(addr, replica);
  return nodes_.at(remote.node.value)->base() + remote.offset;
}

uint64_t WaitFreedom::WordAt(GlobalAddr addr, int replica) const {
  uint64_t word = 0;
  std::memcpy(&word, At(addr, replica), sizeof(word));
  return word;
}

bool WaitFreedom::WaitsForTheMaster(std::string_view key) const {
  const KeyspaceId keyspace = view_.keyspaces[0];
  const KeyHash hash(HashKey(keyspace, key));
  for (uint32_t depth = 0; depth <= kMaxDepth; ++depth) {
    const DirectoryWord directory(WordAt(DirectoryAddr(hash.suffix(depth), view_.directory), 0));
    if (!directory.is_used()) continue;
    for (int choice = 0; choice < 2; ++choice) {
      for (uint32_t i = 0; i < kCombinedWords; ++i) {
        const uint32_t word = CombinedFirstWord(hash.side(choice)) + i;
        if (word == kGroupHeaderWord) continue;
        const GlobalAddr slot =
            directory.subtable() + (hash.group(choice) * kGroupBytes + word * 8);
        const SlotWord primary(WordAt(slot, 0));
        if (primary.is_empty() || !primary.is_register() ||
            !EntryHasKey(primary, At(primary.addr(), 0), primary.size_class().bytes(), keyspace,
                         key)) {
          continue;
        }
        bool sealed = false;
        bool unequal = false;
        for (int replica = 0; replica < view_.replicas; ++replica) {
          sealed |= WordAt(primary.addr() + kSealOffset, replica) != 0;
          unequal |= WordAt(slot, replica) != primary.bits();
        }
        if (sealed && unequal) return true;
      }
    }
  }
  return false;
}

}  // namespace onetrip
