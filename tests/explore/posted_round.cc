#include "tests/explore/posted_round.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onetrip {
namespace {

constexpr uint64_t kWordBytes = 8;

size_t WordsOf(const FabricOp& op) { return (op.bytes + kWordBytes - 1) / kWordBytes; }

// A READ comes as late as a network may bring it that lets others overtake it: right ahead of the
// next READ.
void PutReadsLate(std::vector<Access>* accesses) {
  std::vector<Access> ordered;
  std::vector<Access> late;
  bool overtaken = false;
  const auto catch_up = [&] {
    ordered.insert(ordered.end(), late.begin(), late.end());
    late.clear();
    overtaken = false;
  };
  for (const Access& access : *accesses) {
    if (access.kind != FabricOpKind::kRead) {
      ordered.push_back(access);
      overtaken = !late.empty();
      continue;
    }
    if (overtaken) catch_up();
    late.push_back(access);
  }
  catch_up();
  *accesses = std::move(ordered);
}

}  // namespace

uint16_t CellTable::Touch(RemoteAddr at, size_t client, FabricOpKind kind) {
  const auto [found, is_new] =
      index_.try_emplace({at.node.value, at.offset}, static_cast<uint16_t>(cells_.size()));
  if (is_new) {
    Cell cell;
    cell.at = at;
    cell.initial = scope_.InitialWord(at);
    cell.named_later = scope_.IsNamedLater(at);
    cell.is_polled = scope_.IsPolled(at);
    cell.no_step = scope_.IsNoStep(at);
    cell.for_readers = scope_.IsForReaders(at);
    cells_.push_back(cell);
  }
  Cell& cell = cells_[found->second];
  cell.accessors |= 1U << client;
  if (kind != FabricOpKind::kRead) cell.writers |= 1U << client;
  cell.is_read |= kind != FabricOpKind::kWrite;
  const bool steps_changed = !cell.named_later && (ReadSteps(cell) != cell.read_steps ||
                                                   WriteSteps(cell) != cell.write_steps);
  stale_ |= steps_changed || (cell.needs_slot() && cell.slot < 0);
  return found->second;
}

void CellTable::Freeze() {
  slots_ = 0;
  for (Cell& cell : cells_) {
    cell.read_steps = cell.named_later ? 0 : ReadSteps(cell);
    cell.write_steps = cell.named_later ? 0 : WriteSteps(cell);
    cell.slot = cell.needs_slot() ? static_cast<int>(slots_++) : -1;
  }
  CHECK(slots_ <= kSlotsMax);
  stale_ = false;
}

const Cell* CellTable::Find(RemoteAddr at) const {
  const auto found = index_.find({at.node.value, at.offset});
  return found == index_.end() ? nullptr : &cells_[found->second];
}

bool PostedRound::SameAs(const PostedRound& other) const {
  if (nodes != other.nodes || results != other.results) return false;
  for (size_t node = 0; node < kNodesMax; ++node) {
    if (!std::equal(by_node[node].begin(), by_node[node].end(), other.by_node[node].begin(),
                    other.by_node[node].end(), [](const Access& a, const Access& b) {
                      return a.kind == b.kind && a.cell == b.cell && a.result == b.result &&
                             a.expected == b.expected && a.operand == b.operand;
                    })) {
      return false;
    }
  }
  return true;
}

PostedRound PostedRound::From(RoundTrip& round_trip, size_t client, CellTable& cells) {
  PostedRound round;
  for (const FabricOp& op : round_trip.ops()) {
    CHECK(op.offset % kWordBytes == 0 && op.node.value < kNodesMax);
    round.nodes |= 1U << op.node.value;
    for (size_t word = 0; word < WordsOf(op); ++word) {
      Access access;
      access.kind = op.kind;
      access.cell = cells.Touch({op.node, op.offset + word * kWordBytes}, client, op.kind);
      if (op.kind == FabricOpKind::kCas) access.expected = op.expected;
      if (op.kind != FabricOpKind::kRead) access.operand = op.operand;
      if (op.kind == FabricOpKind::kWrite) {
        // The rest of the last word is the same object's, and read by none.
        const size_t at = word * kWordBytes;
        access.operand = 0;
        std::memcpy(&access.operand, op.local + at, std::min<size_t>(kWordBytes, op.bytes - at));
        access.is_unnoticed = cells.scope().IsUnnoticed(cells.cell(access.cell).at, access.operand);
      } else {
        access.result = static_cast<uint16_t>(round.results++);
      }
      round.by_node[op.node.value].push_back(access);
    }
  }
  CHECK(round.results <= kResultsMax);
  if (!cells.scope().traits().reads_first) {
    for (std::vector<Access>& accesses : round.by_node) PutReadsLate(&accesses);
  }
  round.of_background = cells.scope().IsOfBackground(round, cells);
  return round;
}

void PostedRound::FillIn(RoundTrip& round_trip, const std::vector<uint64_t>& results,
                         uint32_t answered) {
  size_t next = 0;
  for (FabricOp& op : round_trip.ops()) {
    op.ok = (answered >> op.node.value & 1) != 0;
    if (op.kind == FabricOpKind::kWrite) continue;
    if (op.kind != FabricOpKind::kRead) {
      op.result = results[next++];
      continue;
    }
    for (size_t word = 0; word < WordsOf(op); ++word, ++next) {
      const uint64_t at = word * kWordBytes;
      std::memcpy(op.local + at, &results[next], std::min<uint64_t>(kWordBytes, op.bytes - at));
    }
  }
}

}  // namespace onetrip
