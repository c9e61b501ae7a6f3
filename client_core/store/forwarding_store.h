// ForwardingKv: another face of a store, which does what that does. Derive from it to do something
// else for some keys, or to some operations.
#ifndef ONETRIP_CLIENT_CORE_STORE_FORWARDING_STORE_H_
#define ONETRIP_CLIENT_CORE_STORE_FORWARDING_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "client_core/store/store.h"

namespace onetrip {

class ForwardingKv : public Kv {
 public:
  // `store` outlives it.
  explicit ForwardingKv(Kv& store) : store_(store) {}

  Task<Status> Get(Key key, ReadResult* result) override { return store_.Get(key, result); }
  Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) override {
    return store_.GetPart(key, range, result);
  }
  bool GetFast(Key key, ReadResult* result) override { return store_.GetFast(key, result); }
  Task<Status> Set(Key key, NewRecord record) override { return store_.Set(key, record); }
  [[nodiscard]] bool ShouldPrepare(uint64_t bytes) const override {
    return store_.ShouldPrepare(bytes);
  }
  Task<Status> Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                       PreparedSets* prepared) override {
    return store_.Prepare(sets, may_use_reserve, prepared);
  }
  Task<Status> SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                           size_t index) override {
    return store_.SetPrepared(key, record, prepared, index);
  }
  Task<Status> Delete(Key key, bool* existed) override { return store_.Delete(key, existed); }
  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    return store_.ReadModifyWrite(key, mutation);
  }
  Task<Status> Flush(std::optional<uint32_t> database) override { return store_.Flush(database); }
  Task<Status> Swap(uint32_t first, uint32_t second) override { return store_.Swap(first, second); }
  Task<Status> CountKeys(uint32_t database, uint64_t* keys) override {
    return store_.CountKeys(database, keys);
  }
  Task<Status> Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor,
                    uint64_t* cursor) override {
    return store_.Scan(database, keys_wanted, visitor, cursor);
  }
  Task<Status> RandomKey(uint32_t database, std::string* key, bool* found) override {
    return store_.RandomKey(database, key, found);
  }
  Task<Status> SampleDeadlines(uint32_t database, DeadlineSample* sample) override {
    return store_.SampleDeadlines(database, sample);
  }
  Task<Status> CheckPool(PoolCounts* counts) override { return store_.CheckPool(counts); }
  void SetActiveExpiry(bool active) override { store_.SetActiveExpiry(active); }
  [[nodiscard]] const TreeLimits& tree_limits() const override { return store_.tree_limits(); }
  [[nodiscard]] size_t keys_at_once() const override { return store_.keys_at_once(); }
  void PrefetchLocation(Key* key) const override { store_.PrefetchLocation(key); }
  void PrefetchRecord(const Key& key, KeyUse use) const override {
    store_.PrefetchRecord(key, use);
  }
  Task<void> Yield() override { return store_.Yield(); }
  [[nodiscard]] uint64_t NowMs() const override { return store_.NowMs(); }
  [[nodiscard]] uint64_t NowUs() const override { return store_.NowUs(); }
  [[nodiscard]] StoreMetrics& metrics() override { return store_.metrics(); }

 protected:
  Kv& store_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_STORE_FORWARDING_STORE_H_
