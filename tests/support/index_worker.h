// Workers down to the index, with the few operations that its tests and benchmark need, and a look
// at the index as it lies in memory.
#ifndef ONETRIP_TESTS_SUPPORT_INDEX_WORKER_H_
#define ONETRIP_TESTS_SUPPORT_INDEX_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/index/index.h"
#include "tests/support/memory_worker.h"

namespace onetrip {

// A worker with an index. Its keys have one keyspace; its operations run to their end even if that
// means splitting, waiting for a split, or starting again.
class IndexWorker : public MemoryWorker {
 public:
  IndexWorker(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
              const DataPathOptions& options = {}, EngineKind engine = EngineKind::kSnapshot);

  Index& index() { return *index_; }
  Engine& engine() { return *engine_; }

  // Join and Index::Open.
  Task<Status> Open();

  // Returns true if the key was added; false if it was there.
  Task<Result<bool>> Insert(std::string key, uint64_t value);
  // Splits `table`, for a key with that hash, to its end. REQUIRES: the caller holds no pin.
  Task<Status> Split(Subtable table, KeyHash hash);
  // Claims a slot for the key and does no more, as if the worker had ended there. REQUIRES: the key
  // is not there, and a slot is free for it.
  Task<Status> Claim(std::string key);
  // Adds to a key's value; false if it is not there.
  Task<Result<bool>> Add(std::string key, uint64_t delta);
  // Returns true if the key was there.
  Task<Result<bool>> Remove(std::string key);
  // The key's value, or kMissing.
  static constexpr uint64_t kMissing = ~uint64_t{0};
  Task<Result<uint64_t>> Lookup(std::string key);

  // Round trips of the last Lookup.
  [[nodiscard]] uint32_t lookup_round_trips() const { return lookup_round_trips_; }

 private:
  struct Draft {
    GlobalAddr addr;
    SizeClass size_class;
  };
  static IndexKey MakeKey(const std::string& key) { return IndexKey::Make(KeyspaceId{1}, key); }
  // Memory for a record of `key`, and its bytes on all replicas. Takes the operation's pin between.
  Task<Status> NewRecord(Operation& operation, const std::string& key, uint64_t value,
                         Draft* draft);
  Task<Status> WriteRecord(Operation& operation, const std::string& key, uint64_t value,
                           const Draft& draft);
  Task<void> MaintainIfDue();

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Index> index_;
  uint64_t version_ = 0;
  uint32_t lookup_round_trips_ = 0;
};

// The index as the memory nodes hold it. Only while no operation is on its way.
struct IndexPicture {
  uint64_t subtables = 0;
  uint64_t objects = 0;
  uint64_t unfinished = 0;  // tentative and frozen entries, filling groups, locked subtables
  uint64_t misplaced = 0;   // groups and entries where their suffix does not belong
  uint64_t duplicates = 0;  // keys with two entries
  uint64_t claims = 0;      // tentative entries
  uint64_t flushed = 0;     // keys of keyspaces that no database means any more
  uint64_t damaged = 0;     // copies of extents and pages that are not what their root says
  uint64_t pages = 0;       // in collections' trees
  bool replicas_agree = true;
  // The memory of subtables, of records, extents, pages and registers, and of registers that
  // records took the place of.
  std::vector<GlobalAddr> named;
  size_t registers = 0;
  std::vector<GlobalAddr> buffers;  // with the registers' values, but for first ones
};

// `nodes` by their numbers.
IndexPicture LookAtIndex(const std::vector<MemoryEndpoint*>& nodes, const View& view);
inline IndexPicture LookAtIndex(TestCluster& cluster) {
  return LookAtIndex(cluster.endpoints(), *cluster.master().view());
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_INDEX_WORKER_H_
