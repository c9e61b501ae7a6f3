// Trace: everything that happened in a run, as a hash that two runs of one plan must share, and, if
// wanted, as a timeline for people: who did what on which node, in virtual time.
#ifndef ONETRIP_TESTS_SIM_TRACE_H_
#define ONETRIP_TESTS_SIM_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/fabric/sim.h"
#include "tests/sim/memory_watch.h"

namespace onetrip {

class Trace final : public SimObserver {
 public:
  // `clock`: the world's.
  Trace(const Clock& clock, bool keep_lines) : clock_(clock), keep_lines_(keep_lines) {}

  void Posted(const SimFabric& fabric, NodeId node, const RoundTrip& round_trip,
              uint64_t ops) override;
  void Applied(const SimFabric& fabric, NodeId node, const FabricOp& op) override;
  void Answered(const SimFabric& fabric, NodeId node, bool ok) override;

  // `memory` is told of every write.
  void set_memory(MemoryWatch* memory) { memory_ = memory; }
  // From now on only the hash.
  void EndLines() { keep_lines_ = false; }

  // Something else: a command sent or answered, a fault.
  void Note(std::string_view text);

  // The agent behind a fabric's index, for the timeline.
  void NameFabric(uint32_t index, std::string name);

  [[nodiscard]] uint64_t hash() const { return hash_; }
  [[nodiscard]] bool keeps_lines() const { return keep_lines_; }
  // Lines so far; the oldest go when there are too many, of notes and of others by themselves.
  [[nodiscard]] std::string Timeline() const;

 private:
  static constexpr size_t kLinesMax = 200'000;

  void Mix(uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL + (hash_ >> 29); }
  struct Line {
    uint64_t number;
    std::string text;
  };
  struct Lines {
    std::vector<Line> lines;  // a ring, once it is full
    size_t first = 0;
  };
  void AddLine(std::string text, Lines* to);
  void AddLine(std::string text) { AddLine(std::move(text), &operations_); }
  [[nodiscard]] std::string NameOf(const SimFabric& fabric) const;

  const Clock& clock_;
  MemoryWatch* memory_ = nullptr;
  bool keep_lines_;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::vector<std::string> names_;
  Lines operations_;
  Lines notes_;
  uint64_t next_line_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_TRACE_H_
