// SlotStore: a store over one worker's index, whose keys are records or registers (FUSEE 4;
// SWARM 5). The operations are in get.cc, set.cc, remove.cc and rmw.cc; what they are made
// of is in core/ and forms/, and what runs beside them in chores/. The worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_SLOT_STORE_H_
#define ONETRIP_CLIENT_CORE_KV_SLOT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "client_core/kv/chores/chores.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/extents.h"
#include "client_core/kv/forms/form.h"
#include "client_core/kv/forms/record.h"
#include "client_core/kv/forms/record_form.h"
#include "client_core/kv/forms/register.h"
#include "client_core/kv/forms/register_end.h"
#include "client_core/kv/mutation_queue.h"
#include "client_core/kv/view_participant.h"
#include "client_core/store/prepared_sets.h"
#include "client_core/store/store.h"

namespace onetrip {

class SlotStore final : public Kv {
 public:
  // `context` and `engine` outlive it. Takes no round trip; REQUIRES Start() before any operation.
  SlotStore(WorkerContext& context, Engine& engine);
  SlotStore(const SlotStore&) = delete;
  SlotStore& operator=(const SlotStore&) = delete;
  ~SlotStore() override;

  // Formats the index if this is the cluster's first worker; starts background work.
  Task<Status> Start();
  // Waits for background work to end and gives back memory that can be. No operation may be
  // running. Not ok: something of this worker's may still take effect, even now; this worker must
  // not leave the cluster, but be taken for dead by it.
  Task<Status> Stop();

  Task<Status> Get(Key key, ReadResult* result) override {
    return GetPart(key, kWholeValue, result);
  }
  Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) override;
  bool GetFast(Key key, ReadResult* result) override {
    return core_.runs_inline && !core_.holds_registers() && registers_.GetFast(&key, result);
  }
  Task<Status> GetBehind(Key key, ReadResult* result) override;
  Task<Status> Set(Key key, NewRecord record) override;
  MaybeTask<Status> StartSet(Key key, NewRecord record) override;
  [[nodiscard]] bool ShouldPrepare(uint64_t bytes) const override;
  Task<Status> Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                       PreparedSets* prepared) override;
  Task<Status> SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                           size_t index) override;
  Task<Status> Delete(Key key, bool* existed) override;
  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override;
  Task<Status> Flush(std::optional<uint32_t> database) override {
    return chores_.sweeper.Flush(database);
  }
  Task<Status> Swap(uint32_t first, uint32_t second) override {
    return chores_.sweeper.Swap(first, second);
  }
  Task<Status> CountKeys(uint32_t database, uint64_t* keys) override;
  Task<Status> Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor,
                    uint64_t* cursor) override {
    return chores_.scanner.Scan(database, keys_wanted, visitor, cursor);
  }
  Task<Status> RandomKey(uint32_t database, std::string* key, bool* found) override {
    return chores_.scanner.RandomKey(database, key, found);
  }
  Task<Status> SampleDeadlines(uint32_t database, DeadlineSample* sample) override {
    return chores_.scanner.SampleDeadlines(database, sample);
  }
  Task<Status> CheckPool(PoolCounts* counts) override;
  void SetActiveExpiry(bool active) override { chores_.expiry.SetActiveExpiry(active); }
  [[nodiscard]] const TreeLimits& tree_limits() const override {
    return core_.context.options.tree;
  }
  [[nodiscard]] size_t keys_at_once() const override;
  void PrefetchLocation(Key* key) const override;
  void PrefetchRecord(const Key& key, KeyUse use) const override;
  Task<void> Yield() override;
  [[nodiscard]] uint64_t NowMs() const override { return core_.context.clock.NowMs(); }
  [[nodiscard]] uint64_t NowUs() const override { return core_.context.clock.NowUs(); }
  [[nodiscard]] StoreMetrics& metrics() override { return core_.metrics; }

  // A round of maintenance, as a tick begins it.
  Task<void> TEST_Maintain() { return core_.allocator.Maintain(); }

 private:
  // The memory of this store that PreparedSets holds.
  struct PreparedMemory;

  // get.cc. Inline: the fast path with the slow one behind it. REQUIRES: runs_inline.
  Task<Status> GetInline(Key key, ValueRange range, ReadResult* result);
  Task<Status> GetSlow(Key key, ValueRange range, ReadResult* result);
  Task<Status> TryGet(RegisterOperation& operation, Key key, ValueRange range, Room* room,
                      ReadResult* result);
  // set.cc
  Task<Status> SetSlow(Key key, NewRecord record, BegunWrite begun);
  // `draft` may have its memory already.
  Task<Status> SetRecord(RegisterOperation& operation, Key key, const IndexKey& index_key,
                         const NewRecord& record, Draft* draft);
  Task<Status> SetBlind(RegisterOperation& operation, const Key& name, const IndexKey& key,
                        const NewRecord& record, Draft* draft, bool* inserted);
  // prepared_sets.cc
  Task<Status> PrepareNow(std::span<const PendingSet> sets, bool may_use_reserve,
                          PreparedSets* prepared);
  Task<Status> SetPreparedNow(Key key, NewRecord record, PreparedSets& prepared, size_t index);
  // remove.cc
  Task<Status> DeleteNow(Key key, bool* existed);
  // rmw.cc
  Task<Status> ReadModifyWriteInTurn(Key key, Mutation& mutation);
  Task<Status> ReadModifyWriteGathered(Key key, Mutation& mutation);
  // REQUIRES: the place has its turn and no outcome.
  Task<Status> Lead(Key key, MutationQueue::Place& place);
  Task<Status> StartReadModifyWrite(Key key, Mutation& mutation, MutationQueue::Batch* batch);
  // `batch`, unless null, is the mutation.
  Task<Status> ReadModifyWriteNow(Key key, Mutation& mutation, MutationQueue::Batch* batch);
  Task<Result<Step>> SearchOn(RegisterOperation& operation, FoundKey* found, Status status);

  KvCore core_;
  Counters counters_;
  MutationQueue mutations_;
  RepeatedKeys repeated_keys_;
  uint64_t mutations_under_way_ = 0;
  Drafts drafts_;
  Extents extents_;
  Records records_;
  RegisterEnds ends_;
  RecordForm record_form_;
  RegisterForm registers_;
  Forms forms_;
  Chores chores_;
  ViewParticipant participant_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_SLOT_STORE_H_
