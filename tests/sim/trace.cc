#include "tests/sim/trace.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace onetrip {
namespace {

// A word in hex, as slots and headers are best read.
std::string Hex(uint64_t word) {
  char text[24];
  snprintf(text, sizeof(text), "%" PRIx64, word);
  return text;
}

uint64_t FirstWord(const FabricOp& op) {
  uint64_t word = 0;
  std::memcpy(&word, op.local, op.bytes < 8 ? op.bytes : 8);
  return word;
}

std::string Describe(const FabricOp& op) {
  const std::string at = " @" + Hex(op.offset);
  switch (op.kind) {
    case FabricOpKind::kRead:
      return "READ" + at + " " + std::to_string(op.bytes) + "B = " + Hex(FirstWord(op)) +
             (op.bytes > 8 ? ".." : "");
    case FabricOpKind::kWrite:
      return "WRITE" + at + " " + std::to_string(op.bytes) + "B " + Hex(FirstWord(op)) +
             (op.bytes > 8 ? ".." : "");
    case FabricOpKind::kCas:
      return "CAS" + at + " " + Hex(op.expected) + " -> " + Hex(op.operand) +
             (op.result == op.expected ? "" : " FAILED, found " + Hex(op.result));
    case FabricOpKind::kFaa:
      return "FAA" + at + " + " + Hex(op.operand) + " was " + Hex(op.result);
    case FabricOpKind::kMax:
      return "MAX" + at + " to " + Hex(op.operand) + (op.took() ? " was " : " STAYS ") +
             Hex(op.result);
  }
  return {};
}

}  // namespace

void Trace::Posted(const SimFabric& fabric, NodeId node, const RoundTrip& /*round_trip*/,
                   uint64_t ops) {
  Mix(clock_.NowNs());
  Mix((uint64_t{fabric.index()} << 32) | node.value);
  if (!keep_lines_) return;
  AddLine(NameOf(fabric) + " -> node " + std::to_string(node.value) + "  posts " +
          std::to_string(std::popcount(ops)) + " operations");
}

void Trace::Applied(const SimFabric& fabric, NodeId node, const FabricOp& op) {
  if (memory_ != nullptr && op.kind != FabricOpKind::kRead) memory_->Written(node, op.offset);
  Mix(op.offset ^ (uint64_t{node.value} << 56));
  Mix(op.kind == FabricOpKind::kRead || op.kind == FabricOpKind::kWrite ? FirstWord(op)
                                                                        : op.result);
  if (!keep_lines_) return;
  AddLine(NameOf(fabric) + " @  node " + std::to_string(node.value) + "  " + Describe(op));
}

void Trace::Answered(const SimFabric& fabric, NodeId node, bool ok) {
  Mix(clock_.NowNs() + (ok ? 1 : 0));
  if (!keep_lines_) return;
  AddLine(NameOf(fabric) + " <- node " + std::to_string(node.value) + (ok ? "  done" : "  FAILED"));
}

void Trace::Note(std::string_view text) {
  for (const char c : text) Mix(static_cast<uint8_t>(c));
  if (keep_lines_) AddLine(std::string(text), &notes_);
}

void Trace::NameFabric(uint32_t index, std::string name) {
  if (names_.size() <= index) names_.resize(index + 1);
  names_[index] = std::move(name);
}

std::string Trace::NameOf(const SimFabric& fabric) const {
  return fabric.index() < names_.size() ? names_[fabric.index()]
                                        : "fabric " + std::to_string(fabric.index());
}

void Trace::AddLine(std::string text, Lines* to) {
  char time[32];
  snprintf(time, sizeof(time), "%12.3f us  ", static_cast<double>(clock_.NowNs()) / 1000);
  Line line{next_line_++, std::move(text.insert(0, time))};
  if (to->lines.size() < kLinesMax) {
    to->lines.push_back(std::move(line));
    return;
  }
  to->lines[to->first++ % kLinesMax] = std::move(line);
}

std::string Trace::Timeline() const {
  std::vector<const Line*> all;
  for (const Lines* lines : {&operations_, &notes_}) {
    for (const Line& line : lines->lines) all.push_back(&line);
  }
  std::sort(all.begin(), all.end(),
            [](const Line* a, const Line* b) { return a->number < b->number; });
  std::string text;
  for (const Line* line : all) text += line->text + "\n";
  return text;
}

}  // namespace onetrip
