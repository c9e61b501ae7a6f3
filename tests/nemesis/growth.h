// Growth: new keys as fast as they are taken, in batches, so that the index splits while everything
// else happens; old batches are deleted again, so that the memory is enough.
//
// Each key is written once, by one client. An acknowledged one is read back by any agent for as
// long as its batch is there, a refused one is not there, one of unknown outcome may be.
// Thread-safe.
#ifndef ONETRIP_TESTS_NEMESIS_GROWTH_H_
#define ONETRIP_TESTS_NEMESIS_GROWTH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/support/history.h"

namespace onetrip {

class Growth {
 public:
  static constexpr size_t kBatchKeys = 500;
  static constexpr size_t kFailuresMax = 20;

  struct Batch {
    uint64_t number = 0;
    size_t writer = 0;
    std::array<Ending, kBatchKeys> endings{};  // how the SETs ended
    int readers = 0;
  };
  using BatchPtr = std::shared_ptr<Batch>;

  struct Counts {
    uint64_t acknowledged = 0;
    uint64_t unknown = 0;
    uint64_t refused = 0;
    uint64_t read_back = 0;
    uint64_t deleted = 0;
  };

  static std::string Key(const Batch& batch, size_t index);
  static std::string Value(const Batch& batch, size_t index);

  // A batch that `writer` is about to write; it is there for readers after Written().
  BatchPtr Begin(size_t writer);
  // All of its SETs have ended as `endings` says.
  void Written(const BatchPtr& batch);
  // The oldest of the writer's batches beyond `keep`, for deletion; null if there is none, or a
  // client reads it.
  BatchPtr TakeOldest(size_t writer, size_t keep);
  // `keys` DELs of its keys were answered.
  void Deleted(uint64_t keys);

  // Any batch, which stays until EndRead; null if there is none.
  BatchPtr BeginRead(Rng& rng);
  void EndRead(const BatchPtr& batch);
  // A GET of the key answered `reply`.
  void Read(std::string_view agent, const Batch& batch, size_t index, std::string_view reply);

  // REQUIRES: no client writes any more.
  [[nodiscard]] std::vector<BatchPtr> live() const;
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] std::vector<std::string> failures() const;

 private:
  mutable std::mutex mutex_;
  uint64_t next_ = 0;
  std::vector<BatchPtr> live_;  // oldest first
  Counts counts_;
  std::vector<std::string> failures_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_GROWTH_H_
