// MutationQueue: read-modify-writes of one key by one worker take turns, and one of them carries
// out all that have queued behind the one before it, by one write of the slot. Without it they
// would race each other for every round of SNAPSHOT, which one of them wins.
//
// All of them are under way when that write takes effect, so the order in which it applies them is
// one that each client may have seen. Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_
#define ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/sync.h"
#include "client_core/memory/worker_context.h"
#include "client_core/store/store.h"

namespace onetrip {

class MutationQueue {
 public:
  // Both outlive it.
  MutationQueue(WorkerContext& context, StoreMetrics& metrics)
      : context_(context), metrics_(metrics) {}

  // A mutation in the queue of its key. Its owner waits for its turn; then it has an outcome, or
  // leads. Owned by the coroutine that waits, and outlived by the queue.
  class Place {
   public:
    Place(MutationQueue& queue, const Key& key, Mutation& mutation);
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { queue_.Leave(*this); }

    [[nodiscard]] Event::Waiter Turn() { return turn_.Wait(); }
    // Another one has carried it out. Nothing: this one leads, and calls Lead() and Finish().
    [[nodiscard]] const std::optional<Status>& outcome() const { return outcome_; }

   private:
    friend class MutationQueue;
    MutationQueue& queue_;
    std::pair<uint32_t, std::string> key_;
    Mutation& mutation_;
    Event turn_;
    std::optional<Status> outcome_;
    bool alone_ = false;  // it has been part of what could not be written
  };

  // The mutations that the leader carries out, as one. Applies as many of them, in their order, as
  // can share one record; after the last call those have taken effect if it has.
  class Batch final : public Mutation {
   public:
    Change Apply(const RecordView* current) override;
    [[nodiscard]] ValueRange wanted() const override { return all_.front()->mutation_.wanted(); }
    [[nodiscard]] std::optional<uint64_t> growth() const override;
    // All of a batch do, or none.
    [[nodiscard]] bool takes_trees() const override {
      return all_.front()->mutation_.takes_trees();
    }
    [[nodiscard]] size_t applied() const { return applied_; }

   private:
    friend class MutationQueue;
    explicit Batch(WorkerContext& context) : context_(context) {}
    [[nodiscard]] bool IsExpired(const NewRecord& record) const;
    // `*view` becomes what the next mutation sees behind `change`. False: none can follow.
    bool GoOnBehind(const Change& change, const RecordView** view);

    WorkerContext& context_;
    std::vector<Place*> all_;
    size_t applied_ = 0;
    uint64_t bytes_ = 0;  // in their writes
    // The last two writes that are not one piece came to these. One that is lies where its
    // mutation keeps it, which is applied once in a batch.
    std::array<std::string, 2> values_;
    size_t newest_ = 0;
    RecordView written_;
  };

  // REQUIRES: the place has its turn and no outcome.
  [[nodiscard]] Batch Lead(Place& place);
  // The leader goes on alone and out of turn: it waits for what those behind it may hold. REQUIRES:
  // nothing of the batch is under way.
  void Disband(Batch& batch);
  // The batch of `leader` has ended with `status`. False: it has written nothing since not all of
  // it could be written; the leader leads again, alone.
  bool Finish(Place& leader, const Batch& batch, Status status);

 private:
  using Places = std::deque<Place*>;
  using Name = std::pair<uint32_t, std::string>;
  void Leave(Place& place);

  // The first has its turn.
  absl::flat_hash_map<Name, Places> by_key_;
  WorkerContext& context_;
  StoreMetrics& metrics_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_
