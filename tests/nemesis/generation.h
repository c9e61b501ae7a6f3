// A generation: a short program of several clients on keys of its own, and the history of its run.
//
// Histories stay short, and operations whose outcome is unknown do not pile up on a key: no client
// looks again at the keys of a generation that has been checked. Thread-safe; the positions of a
// history are handed out under the lock, before a command is sent and after its reply came.
#ifndef ONETRIP_TESTS_NEMESIS_GENERATION_H_
#define ONETRIP_TESTS_NEMESIS_GENERATION_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/support/history.h"
#include "tests/support/linearizability.h"
#include "tests/support/workload.h"

namespace onetrip {

struct GenerationOptions {
  uint64_t seed = 1;  // the run's seed
  uint32_t clients = 6;
  uint32_t operations = 150;  // for each client
  bool plain = false;         // without flushes and swaps
};

class Generation {
 public:
  // Draws its mix of commands from the run's seed and `number`. Keys are named after `number`.
  Generation(uint64_t number, const GenerationOptions& options);

  // Returns true if a generation of that number is, unless all are to be plain, one of flushes or
  // swaps.
  static bool MayHaveWholeKeyspaces(uint64_t number);

  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] const std::vector<Command>& program(uint32_t client) const {
    return program_[client];
  }
  // Returns true if flushes and swaps of one take the other's keys away.
  [[nodiscard]] bool SharesKeyspacesWith(const Generation& other) const {
    return kind_ != Kind::kPlain && other.kind_ != Kind::kPlain &&
           first_database_ == other.first_database_;
  }
  // In which database of the agents a client works.
  [[nodiscard]] uint32_t DatabaseOf(uint32_t client) const {
    return first_database_ + LogicalDatabaseOf(client);
  }
  // All of them.
  [[nodiscard]] std::vector<uint32_t> databases() const;
  // The command as it is sent for a command of the program.
  [[nodiscard]] Command OnTheWire(const Command& command) const;
  // Every key that the program names.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

  size_t Start(uint32_t client, const Command& command, uint64_t now_ns);
  // The same where the client is none of the program's, in one of databases().
  size_t StartIn(uint32_t database, uint32_t client, const Command& command, uint64_t now_ns);
  // Returns what the reply, empty if none came, means.
  Ending Finish(size_t index, std::string reply, uint64_t now_ns);

  // A client works on it: it is not over yet.
  void Enter();
  void Leave();
  [[nodiscard]] bool IsLeft() const;

  // REQUIRES: no client works on it any more. A history that is not linearizable is told whole.
  [[nodiscard]] CheckResult Check() const;
  [[nodiscard]] std::string Describe() const;

 private:
  // Those with flushes and swaps have databases of their own, where no other generation loses keys.
  enum class Kind : uint8_t { kPlain, kFlushes, kSwaps };
  [[nodiscard]] uint32_t LogicalDatabaseOf(uint32_t client) const {
    return kind_ == Kind::kSwaps ? client % 2 : 0;
  }
  void AddWholeKeyspaces(Rng& rng);

  uint64_t number_;
  Kind kind_ = Kind::kPlain;
  uint32_t first_database_ = 0;
  Program program_;
  std::vector<std::string> keys_;
  mutable std::mutex mutex_;
  History history_;
  uint32_t inside_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_GENERATION_H_
