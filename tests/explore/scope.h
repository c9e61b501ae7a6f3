// Scope: what an exploration is about. How many nodes, which operations each client does, which
// production objects do them, what a sequential object would answer, and what must hold besides.
//
// A new protocol adds a Scope and its tests; fabric, scheduler, search and checker stay.
#ifndef ONETRIP_TESTS_EXPLORE_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_SCOPE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/coro/task.h"
#include "client_core/layout/types.h"
#include "tests/explore/explore_executor.h"
#include "tests/explore/explore_fabric.h"

namespace onetrip {

inline constexpr size_t kClientsMax = 3;
inline constexpr size_t kNodesMax = 4;

// One operation of a client's program; what its letters mean is the scope's affair.
struct ProgramOp {
  char kind = 'R';
  bool reads_only = false;  // an operation whose outcome is unknown may then be forgotten
};

// The end of an operation.
struct OpResult {
  enum class Kind : uint8_t {
    kDone,
    kUnknown,  // it may have happened, or may yet happen
    kBroken,   // an answer that no schedule may bring about; `what` says why
  };
  Kind kind = Kind::kDone;
  uint64_t value = 0;
  const char* what = "";
};

// Something a client tells the scope the moment it learns it; see Scope::OnNote.
struct Note {
  uint32_t kind = 0;
  uint64_t a = 0;
  uint64_t b = 0;
  friend bool operator==(const Note&, const Note&) = default;
};

// One client's production objects stand on these.
struct ClientEnvironment {
  size_t client;
  ExploreExecutor& executor;
  ExploreFabric& fabric;
  std::vector<Note>& notes;
};

// One worker: made anew for every replay, so its construction should be cheap.
class ExploredClient {
 public:
  virtual ~ExploredClient() = default;
  // Runs before the exploration, on the initial memory. What it writes only itself ever sees.
  virtual Task<bool> Open() { co_return true; }
  // Operation `op` of the client's program.
  virtual Task<OpResult> Run(size_t op) = 0;
};

// The words of the memory nodes at one moment.
class MemoryView {
 public:
  virtual ~MemoryView() = default;
  [[nodiscard]] virtual uint64_t Word(RemoteAddr at) const = 0;
  // One bit each; their words read as 0.
  [[nodiscard]] virtual uint32_t crashed_nodes() const = 0;
};

// A word that has just been accessed.
struct AppliedAccess {
  size_t client;
  RemoteAddr at;
  bool is_cas;
  bool changed;
  uint64_t before;
  uint64_t after;
};

struct PostedRound;
class CellTable;

class Scope {
 public:
  struct Faults {
    int worker_crashes = 0;
    int node_crashes = 0;
  };
  struct SpecStep {
    uint64_t value;   // the object's value afterwards
    uint64_t result;  // the operation's result
  };

  Scope(std::string name, size_t nodes, std::vector<std::vector<ProgramOp>> programs, Faults faults)
      : name_(std::move(name)), nodes_(nodes), programs_(std::move(programs)), faults_(faults) {
    CHECK(nodes_ <= kNodesMax && programs_.size() <= kClientsMax);
  }
  virtual ~Scope() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] size_t nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<std::vector<ProgramOp>>& programs() const { return programs_; }
  [[nodiscard]] const Faults& faults() const { return faults_; }

  [[nodiscard]] virtual std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const = 0;
  // True if a client remembers anything from one operation to the next (caches, counters). If not,
  // all its histories meet again between two operations.
  [[nodiscard]] virtual bool clients_remember() const = 0;
  // True if a poll that is answered as the one before leaves the client as it was, but for counters
  // that decide only about time. The automaton tests this wherever it uses it.
  [[nodiscard]] virtual bool polls_are_idle() const { return true; }
  // The clients' fabric has these. Without `reads_first` every READ comes as late as it may.
  [[nodiscard]] virtual FabricTraits traits() const { return {}; }
  // True if clients ask nodes one by one and go on when a quorum has answered, as QuorumCall does:
  // an answer that does not let its operation go on only waits to be counted. See system_quorum.cc.
  [[nodiscard]] virtual bool asks_quorums() const { return false; }
  // True if an operation that has gone on may still be told something by an answer to `round`. If
  // not, what it posts or returns when it goes on tells all that it knows from such answers: which
  // of them it has counted makes no difference any more. Only asked for asks_quorums().
  [[nodiscard]] virtual bool IsLookedAtLater(const PostedRound& /*round*/,
                                             const CellTable& /*cells*/) const {
    return true;
  }
  // True if clients go on in the background when an operation has returned, in more steps than they
  // have posted. Then timers fire only when nothing of their client is outstanding, and take no
  // time.
  [[nodiscard]] virtual bool works_in_background() const { return false; }
  // For such clients: true if the client that has posted `round` may know more than what it has
  // posted, when its operation has returned.
  [[nodiscard]] virtual bool IsOfBackground(const PostedRound& /*round*/,
                                            const CellTable& /*cells*/) const {
    return works_in_background();
  }
  // For clients that ask quorums: a word that a client may poll. No client must do that within a
  // step.
  [[nodiscard]] virtual bool IsPolled(RemoteAddr /*at*/) const { return !asks_quorums(); }
  // A word that is accessed together with the step before it on its channel, although a client may
  // notice when: a bound of the exploration, for the scope to state.
  [[nodiscard]] virtual bool IsNoStep(RemoteAddr /*at*/) const { return false; }
  // A WRITE of `word` to what no client can find yet, so that its moment is no step.
  [[nodiscard]] virtual bool IsUnnoticed(RemoteAddr /*at*/, uint64_t /*word*/) const {
    return false;
  }
  // A word that matters only if some client reads it.
  [[nodiscard]] virtual bool IsForReaders(RemoteAddr /*at*/) const { return false; }
  // An operation that has had this number of answers is not followed any further.
  [[nodiscard]] virtual uint32_t answers_max() const { return ~uint32_t{0}; }
  // A word that gets one value, once, and is read only by clients that found it named by a word
  // written behind it on the same channel. The moment of its WRITE is no step; that it is such a
  // word is checked at every access.
  [[nodiscard]] virtual bool IsNamedLater(RemoteAddr /*at*/) const { return false; }
  [[nodiscard]] virtual uint64_t InitialWord(RemoteAddr at) const = 0;

  // The sequential object.
  [[nodiscard]] virtual uint64_t InitialValue() const = 0;
  [[nodiscard]] virtual SpecStep Apply(uint64_t value, size_t client, size_t op) const = 0;

  // Further rules that must hold; they return what is wrong, or nothing.
  [[nodiscard]] virtual std::string OnAccess(const AppliedAccess& /*access*/,
                                             const MemoryView& /*memory*/) const {
    return "";
  }
  [[nodiscard]] virtual std::string OnNote(size_t /*client*/, const Note& /*note*/,
                                           const MemoryView& /*memory*/) const {
    return "";
  }
  // Nothing is left to happen. `crashed`: some worker or node has.
  [[nodiscard]] virtual std::string OnQuiet(const MemoryView& /*memory*/, bool /*crashed*/) const {
    return "";
  }
  // The object's value as the memory shows it once nothing is left to happen; false: it cannot be
  // told.
  [[nodiscard]] virtual bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                        uint64_t* value) const = 0;

  // For timelines.
  [[nodiscard]] virtual std::string WordName(uint64_t word) const;
  [[nodiscard]] virtual std::string CellName(RemoteAddr at) const;

 private:
  const std::string name_;
  const size_t nodes_;
  const std::vector<std::vector<ProgramOp>> programs_;
  const Faults faults_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_SCOPE_H_
