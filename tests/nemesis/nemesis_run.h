// A run of the nemesis client: its threads, and what they found.
//
// Per agent some clients that run the generations, and one for each kind of round on what lasts,
// which goes on when the others wait; one thread that closes generations: every agent reads all of
// their keys, the history is checked, the keys are deleted. A client that lost its connection
// connects anew until it is told to stop.
#ifndef ONETRIP_TESTS_NEMESIS_NEMESIS_RUN_H_
#define ONETRIP_TESTS_NEMESIS_NEMESIS_RUN_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/nemesis/connection.h"
#include "tests/nemesis/deadlines.h"
#include "tests/nemesis/gaps.h"
#include "tests/nemesis/generation.h"
#include "tests/nemesis/growth.h"
#include "tests/nemesis/lasting.h"

namespace onetrip {

struct NemesisOptions {
  std::vector<std::string> agents;  // addresses
  uint64_t seed = 1;
  uint32_t clients_per_agent = 2;  // that run generations
  uint32_t operations = 150;       // by each of them in a generation
  uint32_t generation_ms = 1000;
  uint32_t timeout_ms = 8000;
  uint32_t counters = 4;
  uint32_t watched_counters = 2;  // that are incremented by WATCH, GET, MULTI, SET and EXEC
  uint32_t batches = 150;         // batches of new keys that each agent's client keeps at most
  uint32_t big_bytes_max = 3 << 20;
  // FLUSHALL now and then: of all clients only the generations' work then.
  bool flush_all = false;
  uint32_t rounds_per_once = 20;  // INCRs of a client between two keys that it writes once
  uint32_t pause_us = 2000;       // between rounds on what lasts
  std::string history_dir = ".";
};

// Monotonic.
uint64_t NowNs();

class NemesisRun {
 public:
  struct Findings {
    std::map<std::string, uint64_t> commands;  // answered, by name
    std::map<std::string, uint64_t> errors;    // replies that say that nothing was done or nothing
                                               // is known, by their first word
    uint64_t unknown = 0;
    // The same by monotonic second and command.
    std::map<uint64_t, std::map<std::string, uint64_t>> unknown_at_s;
    uint64_t connections_lost = 0;
    uint64_t generations = 0;
    uint64_t configurations = 0;
    uint64_t counts_left = 0;
    std::vector<std::string> failures;
  };

  explicit NemesisRun(NemesisOptions options);
  ~NemesisRun();

  void Start();
  // All clients stop, what is left is checked, and everything that lasts is read by every agent,
  // all of which must serve.
  void Finish();

  [[nodiscard]] Gaps& gaps() { return gaps_; }
  [[nodiscard]] const Lasting& lasting() const { return lasting_; }
  [[nodiscard]] const Growth& growth() const { return growth_; }
  [[nodiscard]] const Deadlines& deadlines() const { return deadlines_; }
  // REQUIRES: Finish() has returned.
  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  // A client that runs generations; its number counts over all agents.
  void RunClient(uint32_t client);
  void RunInGeneration(uint32_t client, Generation* generation, Connection* connection);
  // Clients that work on what lasts, round after round.
  using LastingRound = void (NemesisRun::*)(size_t agent, Rng& rng, Connection* connection);
  void RunLasting(size_t agent, LastingRound round);
  void IncrementAndReadBack(size_t agent, Rng& rng, Connection* connection);
  void WriteRegister(size_t agent, Rng& rng, Connection* connection);
  void ReadRegister(size_t agent, Rng& rng, Connection* connection);
  // nemesis_rounds.cc.
  void IncrementByExec(size_t agent, Rng& rng, Connection* connection);
  void Grow(size_t agent, Rng& rng, Connection* connection);
  [[nodiscard]] size_t BatchesToKeep() const;
  void ReadBatch(size_t agent, Rng& rng, Connection* connection);
  void WriteWithDeadline(size_t agent, Rng& rng, Connection* connection);
  void WriteBig(size_t agent, Rng& rng, Connection* connection);
  void ReadBig(size_t agent, Rng& rng, Connection* connection);
  // Tells what the reply to a GET of a big value says of its number, as if that were the value.
  std::string NumberOfBig(size_t index, const std::string& reply);
  void RunFlusher();
  void FlushAll(size_t agent, Connection* connection);
  // A generation has begun beside a FLUSHALL. REQUIRES: generations_mutex_ is held.
  void NoteFlushIn(const std::shared_ptr<Generation>& generation);
  void ReadGrown(size_t agent);
  void ReadWhole(size_t agent, const Growth::Batch& batch);
  void RunCloser();
  // The generation that TakeLeft took, read for the last time; null if there was none.
  std::shared_ptr<Generation> TakeAndRead();
  void Close(Generation* generation);
  void ReadAll(Generation* generation);
  void DeleteAll(const Generation& generation);
  void ReadLasting(size_t agent);

  // Sends one command and notes what came of it: the reply, empty if none came.
  std::string Call(size_t agent, Connection* connection, const Command& command);
  void Note(size_t agent, const Command& command, const std::string& reply, Ending ending);
  // The generation of this moment, entered.
  std::shared_ptr<Generation> EnterGeneration();
  // Returns true if one is still to be read whose keys this one would take away: the closer may be
  // far behind on a busy host. REQUIRES: generations_mutex_ is held.
  [[nodiscard]] bool IsToBeReadBefore(const Generation& generation) const;
  // One that is over and left by all, taken out; null if there is none.
  std::shared_ptr<Generation> TakeLeft();
  [[nodiscard]] uint64_t EndOf(uint64_t generation) const;
  void Fail(std::string message);

  const NemesisOptions options_;
  const uint64_t start_ns_;
  Gaps gaps_;
  Lasting lasting_;
  Growth growth_;
  Deadlines deadlines_;
  std::atomic<uint64_t> next_deadline_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_closing_{false};
  std::atomic<uint64_t> next_once_{0};
  std::mutex generations_mutex_;
  std::map<uint64_t, std::shared_ptr<Generation>> generations_;
  std::shared_ptr<Generation> closing_;  // taken out, and not read yet
  // A FLUSHALL that is under way: in which histories, and at which places. Guarded likewise.
  bool flushing_ = false;
  uint64_t may_flush_until_ns_ = 0;  // one of unknown outcome
  std::vector<std::pair<std::shared_ptr<Generation>, size_t>> flushed_;
  // Held from taking a generation out until all of it is read: a FLUSHALL in between its history
  // would lack. Taken before generations_mutex_.
  std::mutex flush_mutex_;
  std::mutex findings_mutex_;
  Findings findings_;
  std::vector<std::thread> threads_;
  std::thread closer_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_NEMESIS_RUN_H_
