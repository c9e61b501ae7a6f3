// MutationQueue: read-modify-writes of one key by one worker take turns, and one of them carries
// out all that have queued behind the one before it, by one write of the slot. Without it they
// would race each other for every round of SNAPSHOT, which one of them wins.
//
// All of them are under way when that write takes effect, so the order in which it applies them is
// one that each client may have seen. Those of one client that begins several of a key (InOrder in
// store.h) take effect in the order in which they began. Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_
#define ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_

#include <absl/container/node_hash_map.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/sync.h"
#include "client_core/memory/worker_context.h"
#include "client_core/store/store.h"

namespace onetrip {

// The keys that a worker changes again and again, so that a mutation of one had better wait until
// others of the same turn of the loop have joined it.
class RepeatedKeys {
 public:
  // A mutation of the key begins. True: it is such a key.
  bool Note(const Key& key) {
    const uint64_t hash = HashOf(key);
    Seen& seen = seen_[hash % kKeys];
    if (seen.hash != hash) seen = {hash, 0};
    seen.times = std::min(seen.times + 1, kRepeated);
    return seen.times == kRepeated;
  }
  // None has joined one that has waited: the next ones do not wait.
  void NoteAlone(const Key& key) {
    const uint64_t hash = HashOf(key);
    Seen& seen = seen_[hash % kKeys];
    if (seen.hash == hash) seen.times = -kNotTried;
  }

 private:
  static constexpr size_t kKeys = 64;
  static constexpr int kRepeated = 4;
  static constexpr int kNotTried = 60;

  struct Seen {
    uint64_t hash = 0;
    int times = 0;
  };
  // The same in every process: so runs of the simulation are alike.
  static uint64_t HashOf(const Key& key) { return std::hash<std::string_view>()(key.bytes); }

  std::array<Seen, kKeys> seen_;
};

class MutationQueue {
 private:
  struct Line;

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
    ~Place() {
      if (line_ != nullptr) queue_.Leave(*this);
    }

    [[nodiscard]] bool has_turn() const { return turn_.IsSet(); }
    // REQUIRES: it has its turn. True: none waits behind it.
    [[nodiscard]] bool is_alone() const { return line_->places.size() == 1; }
    [[nodiscard]] Event::Waiter Turn() { return turn_.Wait(); }
    // Another one has carried it out. Nothing: this one leads, and calls Lead() and Finish().
    [[nodiscard]] const std::optional<Status>& outcome() const { return outcome_; }

   private:
    friend class MutationQueue;
    MutationQueue& queue_;
    Line* line_;          // null: it has left
    const void* client_;  // null: it begins no other one meanwhile
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
    // True if the tree has changed so much that no other mutation joins.
    [[nodiscard]] bool IsMuch(const Tree& tree) const;
    // `*view` becomes what the next mutation sees behind `change`. False: none can follow.
    bool GoOnBehind(const Change& change, const RecordView** view);

    WorkerContext& context_;
    std::vector<Place*> all_;
    size_t applied_ = 0;
    bool has_asked_ = false;   // for pages of a tree
    uint64_t bytes_ = 0;       // in their writes
    uint64_t tree_bytes_ = 0;  // in the leaves of the tree that the first one saw
    // The last two writes that are not one piece came to these. One that is lies where its
    // mutation keeps it, which is applied once in a batch.
    std::array<std::string, 2> values_;
    size_t newest_ = 0;
    RecordView written_;
  };

  // REQUIRES: the place has its turn and no outcome.
  [[nodiscard]] Batch Lead(Place& place);
  // The leader goes on alone and out of turn: it waits for what those behind it may hold; its own
  // client's wait for it. REQUIRES: nothing of the batch is under way.
  void Disband(Batch& batch);
  // The batch of `leader` has ended with `status`. False: it has written nothing since not all of
  // it could be written; the leader leads again, alone.
  bool Finish(Place& leader, const Batch& batch, Status status);

 private:
  using Name = std::pair<uint32_t, std::string>;
  struct NameView {
    uint32_t database;
    std::string_view bytes;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(const Name& name) const { return Of(name.first, name.second); }
    size_t operator()(const NameView& name) const { return Of(name.database, name.bytes); }
    static size_t Of(uint32_t database, std::string_view bytes) {
      return std::hash<std::string_view>()(bytes) + database;
    }
  };
  struct NameEqual {
    using is_transparent = void;
    bool operator()(const Name& a, const Name& b) const { return a == b; }
    bool operator()(const Name& a, const NameView& b) const {
      return a.first == b.database && a.second == b.bytes;
    }
    bool operator()(const NameView& a, const Name& b) const { return (*this)(b, a); }
  };
  // A leader that goes on out of turn, and those of its client that wait for it.
  struct Away {
    Place* leader;
    std::deque<Place*> waiting;
  };
  // The mutations of a key.
  struct Line {
    const Name* name;
    std::deque<Place*> places;  // the first has its turn
    std::vector<Away> away;
  };

  Line& LineOf(const Key& key);
  void Leave(Place& place);
  static std::vector<Away>::iterator FindAway(Line& line, const Place& leader);
  // Those that have waited for a leader have places again.
  static void ComeBack(Line& line, const std::deque<Place*>& waiting);

  absl::node_hash_map<Name, Line, NameHash, NameEqual> by_key_;
  WorkerContext& context_;
  StoreMetrics& metrics_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_MUTATION_QUEUE_H_
