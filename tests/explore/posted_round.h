// PostedRound: a round trip as the explorer sees it: per node, the words that are accessed one
// after the other; and CellTable: which of those words matter to the order of steps.
//
// A word access is a step of its own only if some client writes the word and another accesses it;
// of clients that ask quorums, only if another client writes it, or it writes what another
// accesses. Every other access commutes with all steps of other clients and is done together with
// the step next to it on its channel. Which words are such becomes known while exploring; the
// explorer starts over whenever it learns of another one, so that at the end the reduction holds
// for all it did.
#ifndef ONETRIP_TESTS_EXPLORE_POSTED_ROUND_H_
#define ONETRIP_TESTS_EXPLORE_POSTED_ROUND_H_

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "client_core/fabric/round_trip.h"
#include "tests/explore/scope.h"

namespace onetrip {

// A word of one memory node that a client has accessed.
struct Cell {
  RemoteAddr at;
  uint64_t initial = 0;
  uint32_t writers = 0;    // by client, one bit each
  uint32_t accessors = 0;  // likewise
  bool is_read = false;    // by any client
  // As of the last Freeze(): the place in a state's words, or -1: never written, or no client
  // minds; and whose accesses to it are steps, by client.
  int slot = -1;
  uint32_t read_steps = 0;
  uint32_t write_steps = 0;
  bool named_later = false;  // Scope::IsNamedLater
  bool is_polled = false;    // likewise
  bool no_step = false;
  bool for_readers = false;

  [[nodiscard]] bool needs_slot() const { return writers != 0 && (is_read || !for_readers); }
  [[nodiscard]] bool contended() const { return (read_steps | write_steps) != 0; }
  [[nodiscard]] bool IsStep(size_t client, bool writes) const {
    return ((writes ? write_steps : read_steps) >> client & 1) != 0;
  }
};

class CellTable {
 public:
  static constexpr size_t kSlotsMax = 448;

  explicit CellTable(const Scope& scope) : scope_(scope) {}

  // The cell at `at`, which `client` accesses.
  uint16_t Touch(RemoteAddr at, size_t client, FabricOpKind kind);
  // Takes note of what is known by now. REQUIRES: no state made before is used any longer.
  void Freeze();
  // Something has become known since Freeze().
  [[nodiscard]] bool stale() const { return stale_; }

  [[nodiscard]] const Cell& cell(uint16_t index) const { return cells_[index]; }
  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const Cell* Find(RemoteAddr at) const;
  [[nodiscard]] size_t slots() const { return slots_; }
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  // The clients of `mask` beside whom there is one of `others`. Where clients poll, all of them: a
  // client that waits for a word that only it has written so far must not do so within one step.
  [[nodiscard]] uint32_t Beside(uint32_t mask, uint32_t others, const Cell& cell) const {
    if (cell.no_step) return 0;
    if (cell.is_polled) {
      const bool is_shared = (cell.accessors & (cell.accessors - 1)) != 0;
      return cell.writers != 0 && is_shared ? ~uint32_t{0} : 0;
    }
    const bool is_one = (others & (others - 1)) == 0;
    return is_one ? (others == 0 ? 0 : mask & ~others) : mask;
  }
  [[nodiscard]] uint32_t ReadSteps(const Cell& cell) const {
    return Beside(cell.accessors, cell.writers, cell);
  }
  [[nodiscard]] uint32_t WriteSteps(const Cell& cell) const {
    return Beside(cell.writers, cell.accessors, cell);
  }

  const Scope& scope_;
  std::vector<Cell> cells_;
  std::map<std::pair<uint16_t, uint64_t>, uint16_t> index_;
  size_t slots_ = 0;
  bool stale_ = false;
};

struct Access {
  FabricOpKind kind = FabricOpKind::kRead;
  bool is_unnoticed = false;  // Scope::IsUnnoticed
  uint16_t cell = 0;
  uint16_t result = 0;  // where the word that was found goes; not for WRITE
  uint64_t expected = 0;
  uint64_t operand = 0;  // CAS, MAX: desired; FAA: addend; WRITE: the word
};

struct PostedRound {
  static constexpr size_t kResultsMax = 192;

  std::array<std::vector<Access>, kNodesMax> by_node;
  uint32_t nodes = 0;          // one bit each
  uint32_t results = 0;        // words
  bool of_background = false;  // Scope::IsOfBackground

  // Returns true if both would do the same.
  [[nodiscard]] bool SameAs(const PostedRound& other) const;
  // Takes `round_trip`, just posted by `client`, apart.
  static PostedRound From(RoundTrip& round_trip, size_t client, CellTable& cells);
  // Puts results into the round trip that this was made from; operations on nodes that are not in
  // `answered` have failed.
  static void FillIn(RoundTrip& round_trip, const std::vector<uint64_t>& results,
                     uint32_t answered);
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_POSTED_ROUND_H_
