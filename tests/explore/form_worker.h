// FormWorker: a worker with a Kv of its own, and the four operations of FormScope on numbers.
#ifndef ONETRIP_TESTS_EXPLORE_FORM_WORKER_H_
#define ONETRIP_TESTS_EXPLORE_FORM_WORKER_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "client_core/kv/kv.h"
#include "client_core/replication/engine.h"
#include "tests/explore/explore_executor.h"
#include "tests/explore/explore_fabric.h"
#include "tests/explore/explore_master.h"

namespace onetrip {

struct FormResult {
  Status status;
  uint64_t value = 0;
};

class FormWorker {
 public:
  // All numbers are so long, that records and registers have one class of memory each.
  static constexpr uint64_t kDigits = 24;
  static constexpr uint32_t kLanes = 1;

  // `seat` below kClientsMax is a client's; that of kClientsMax came before them.
  FormWorker(ExploreExecutor& executor, ExploreFabric& fabric, std::shared_ptr<const View> view,
             size_t seat, EngineKind engine);

  Task<bool> Start();
  // Takes memory of every class that an operation may need, on another key.
  Task<bool> WarmUp();

  Task<FormResult> Get(std::string_view key);
  Task<FormResult> Set(std::string_view key, uint64_t number);
  Task<FormResult> Delete(std::string_view key);
  Task<FormResult> Increment(std::string_view key);
  // By a read-modify-write that does not look.
  Task<FormResult> Write(std::string_view key, uint64_t number);
  // Turns the key's register into a record, which keeps its origin, and changes nothing.
  Task<FormResult> Thaw(std::string_view key);

  static std::string TextOf(uint64_t number);
  static uint64_t NumberOf(std::string_view text);
  // `word(at)`: the word of the text at that many bytes.
  template <typename Word>
  static uint64_t NumberIn(Word word) {
    char text[kDigits];
    for (uint64_t at = 0; at < kDigits; at += 8) {
      const uint64_t bits = word(at);
      std::memcpy(text + at, &bits, sizeof(bits));
    }
    return NumberOf({text, kDigits});
  }

 private:
  ExploreMaster master_;
  Quiesce hold_;
  WorkerContext context_;
  std::unique_ptr<Engine> engine_;
  SlotStore kv_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_FORM_WORKER_H_
