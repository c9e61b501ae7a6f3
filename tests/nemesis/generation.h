// A generation: a short program of several clients on keys of its own, and the history of its run.
//
// Histories stay short, and operations whose outcome is unknown do not pile up on a key: what is
// left of a generation when it has been checked nobody looks at again. Thread-safe; the positions
// of a history are handed out under the lock, before a command is sent and after its reply came.
#ifndef ONETRIP_TESTS_NEMESIS_GENERATION_H_
#define ONETRIP_TESTS_NEMESIS_GENERATION_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/history.h"
#include "tests/support/linearizability.h"
#include "tests/support/workload.h"

namespace onetrip {

struct GenerationOptions {
  uint64_t seed = 1;  // of the run
  uint32_t clients = 6;
  uint32_t operations = 150;  // of each client
};

class Generation {
 public:
  // Draws its mix of commands from the run's seed and `number`. Keys are named after `number`.
  Generation(uint64_t number, const GenerationOptions& options);

  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] const std::vector<Command>& program(uint32_t client) const {
    return program_[client];
  }
  // Every key that the program names.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

  size_t Start(uint32_t client, const Command& command, uint64_t now_ns);
  // What the reply, empty if none came, means.
  Ending Finish(size_t index, std::string reply, uint64_t now_ns);

  // A client works on it: it is not over yet.
  void Enter();
  void Leave();
  [[nodiscard]] bool IsLeft() const;

  // REQUIRES: nobody works on it any more. What is not linearizable is told with the whole history.
  [[nodiscard]] CheckResult Check() const;
  [[nodiscard]] std::string Describe() const;

 private:
  uint64_t number_;
  Program program_;
  std::vector<std::string> keys_;
  mutable std::mutex mutex_;
  History history_;
  uint32_t inside_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_GENERATION_H_
