// SystemState: everything about an exploration at one moment, as a small value that can be copied,
// compared by its fingerprint and stepped (see system.h). Choice: one such step.
#ifndef ONETRIP_TESTS_EXPLORE_SYSTEM_STATE_H_
#define ONETRIP_TESTS_EXPLORE_SYSTEM_STATE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/explore/client_automaton.h"
#include "tests/explore/fingerprint.h"
#include "tests/explore/monitor.h"
#include "tests/explore/posted_round.h"
#include "tests/explore/scope.h"

namespace onetrip {

// How far a round trip has got.
struct Flight {
  std::array<uint8_t, kNodesMax> applied{};  // accesses, per node
  uint8_t failed = 0;                        // nodes that were lost before they had done all
  uint8_t unsure = 0;                        // nodes that had, but their answer may be lost
};

struct ClientNow {
  static constexpr size_t kFlightsMax = 12;
  static constexpr size_t kFoundMax = 208;
  ClientAutomaton::StateId state = ClientAutomaton::kInitial;
  bool dead = false;
  uint64_t results = 0;      // a hash of what its operations returned, if that is kept
  uint8_t flight_count = 0;  // as many as the automaton's state has outstanding
  uint16_t fresh = 0;  // flights, one bit each, whose answers may be delivered now: asks_quorums()
  std::array<Flight, kFlightsMax> flights;
  std::array<uint64_t, kFoundMax> found{};  // the words that were found, flight by flight
};

struct SystemState {
  Monitor::StateId monitor = Monitor::kInitial;
  uint8_t crashed_nodes = 0;
  uint8_t worker_crashes_left = 0;
  uint8_t node_crashes_left = 0;
  // When preemptions are counted: the client that could go on, or -1; and how many there were.
  int8_t last_client = -1;
  uint8_t preemptions = 0;
  std::array<ClientNow, kClientsMax> clients;
  std::array<uint64_t, CellTable::kSlotsMax> words{};
  uint64_t words_hash = 0;  // a hash of how they differ from the first ones, slot by slot

  void SetWord(int slot, uint64_t word) {
    words_hash ^= HashOf(slot, words[slot]) ^ HashOf(slot, word);
    words[slot] = word;
  }
  static uint64_t HashOf(int slot, uint64_t word) {
    Fingerprint fingerprint;
    fingerprint.Add(static_cast<uint64_t>(slot));
    fingerprint.Add(word);
    return fingerprint.value();
  }
};

struct Choice {
  enum class Kind : uint8_t {
    kStart,       // a client begins its next operation, up to its first access, on `node`
    kAccess,      // the next access on a client's channel to `node`
    kTimeOut,     // the same, of a poll whose answer comes too late for its operation
    kDeliver,     // a round trip that is complete is answered; `lost`: nodes whose reply is lost
    kDeliverSet,  // several are, one bit each in `round`, of a client that asks quorums
    kHold,        // answers that came are not delivered before something else happens to the client
    kWake,        // a client's timer
    kCrashWorker,  // a client goes no further; what it posted may still be applied
    kCrashNode,    // a node answers no more
  };
  static constexpr uint8_t kNoNode = 0xff;

  Kind kind = Kind::kStart;
  uint8_t client = 0;
  uint8_t node = kNoNode;
  uint16_t round = 0;
  uint8_t lost = 0;
};

std::string ChoiceText(const Choice& choice);

// A path through an exploration as text, and back: the words whose accesses are steps, such as
// "@0.64.3.3" (node, offset, writers, accessors), then the choices, such as "s0.1.0.0". Not of that
// form: nothing. `cells` gets to know the words.
std::string PathText(const CellTable& cells, const std::vector<Choice>& path);
std::optional<std::vector<Choice>> ParsePath(std::string_view text, CellTable* cells);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_SYSTEM_STATE_H_
