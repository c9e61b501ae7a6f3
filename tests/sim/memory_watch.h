// MemoryWatch: follows every object of the pool through its life and poisons what is released.
//
// An object is allocated, retired, released, in this order (an unpublished one is released without
// being retired), by whichever worker it may be. None is released before every operation has ended
// that was pinned when it was retired, none is written while it is free; and a worker that still
// reads a released object reads poison, which no checksum passes.
//
// Nothing is lost or doubled on the way: every object of every block that a worker has is one of:
// in its owner's list of free objects; allocated, or retired; released and on its way to that list,
// which, of an open block, is its bitmap.
#ifndef ONETRIP_TESTS_SIM_MEMORY_WATCH_H_
#define ONETRIP_TESTS_SIM_MEMORY_WATCH_H_

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client_core/cluster/master_client.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class MemoryWatch final : public MemoryObserver {
 public:
  // `nodes` by their numbers; they outlive it. `view`: where replicas lie, until UseView().
  MemoryWatch(std::vector<MemoryEndpoint*> nodes, const View& view)
      : nodes_(std::move(nodes)), view_(view) {}

  // The newest view that any agent has. What is missing under it means nothing: whatever was sent
  // to a node before it went out, or copies a region to it, may be written there. Nothing is in use
  // in regions that it lacks.
  void UseView(const View& view);

  void Allocated(GlobalAddr addr, SizeClass size_class, MemoryUse use) override;
  void Retired(GlobalAddr addr, SizeClass size_class) override;
  void Released(GlobalAddr addr, SizeClass size_class, MemoryUse use) override;
  void Unnamed(GlobalAddr addr) override;
  void Reclaimed(GlobalAddr addr, SizeClass size_class) override;
  void Adopted(GlobalAddr block, SizeClass size_class, const std::vector<bool>* used) override;
  void GivenBack(GlobalAddr block) override;
  void Opened(GlobalAddr block) override;
  void Listed(GlobalAddr addr) override;
  uint64_t Pinned() override;
  void Unpinned(uint64_t ticket) override { pinned_.erase(ticket); }

  // Called when an address is allocated that had been released before.
  void SetOnReuse(std::function<void()> on_reuse) { on_reuse_ = std::move(on_reuse); }

  // A worker has written at `offset` of a node's memory.
  void Written(NodeId node, uint64_t offset);

  // The first thing that has gone wrong; empty if nothing.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Objects that are allocated and not retired; of buffers only a worker knows which it has to
  // keep, and one that has left keeps the last ones for good.
  [[nodiscard]] uint64_t live_objects() const;
  // One that is in use and not among `named`; null if there is none.
  [[nodiscard]] GlobalAddr LiveBesides(const absl::flat_hash_set<uint64_t>& named) const;
  [[nodiscard]] bool IsLive(GlobalAddr addr) const;
  // Objects that have been released in a block that a worker has, or had, and are not in its list:
  // others freed them, and their owner has yet to collect them.
  [[nodiscard]] std::vector<std::pair<GlobalAddr, SizeClass>> OnTheWay() const;
  // The block that begins there is open, and all of it is free: its node may take it back.
  [[nodiscard]] bool MayBeTakenBack(GlobalAddr start) const;
  // Not in use, nor waiting for workers that may still read it.
  [[nodiscard]] bool IsFree(GlobalAddr addr) const { return !objects_.contains(addr.bits()); }
  // Allocations of an address that had been released before.
  [[nodiscard]] uint64_t reused() const { return reused_; }

 private:
  enum class Phase : uint8_t { kAllocated, kUnnamed, kRetired };
  struct Object {
    Phase phase;
    MemoryUse use;
    SizeClass size_class;
    uint64_t retired_at = 0;  // the next ticket then
  };
  static bool IsLiveObject(const Object& object) {
    return object.phase == Phase::kAllocated && object.use == MemoryUse::kObject;
  }
  struct Block {
    SizeClass size_class;
    std::vector<bool> listed;  // by index
    bool is_open = false;
  };
  void Fail(const char* what, GlobalAddr addr);
  void ForgetRegionsFrom(uint32_t end);
  void ForgetBlocksIn(GlobalAddr start, SizeClass size_class);
  // The block that holds the object; null: no worker has it.
  Block* BlockOf(GlobalAddr addr);
  // A worker that has a free object, but not yet in its list, may make its lock word 0.
  bool MayClearLock(GlobalAddr addr);
  // From now on nothing that is free lies where this object does.
  void ForgetFree(GlobalAddr addr, SizeClass size_class);
  void Poison(GlobalAddr addr, SizeClass size_class, MemoryUse use);

  std::vector<MemoryEndpoint*> nodes_;
  View view_;
  absl::flat_hash_map<uint64_t, Object> objects_;
  absl::flat_hash_map<uint64_t, uint32_t> in_use_;  // objects, by the start of their block
  std::map<uint64_t, Block> blocks_;   // that workers have, or had when they died, by address
  std::map<uint64_t, uint64_t> free_;  // released objects and their bytes; none overlap
  absl::flat_hash_set<uint64_t> released_before_;
  std::set<uint64_t> pinned_;
  uint64_t next_ticket_ = 1;
  uint64_t reused_ = 0;
  std::function<void()> on_reuse_;
  std::string failure_;
};

// Notes what one worker does with memory. Outlives the worker. A worker that is refused everywhere
// does nothing with it any more, whatever it may think that it does.
class WorkerMemory final : public MemoryObserver {
 public:
  explicit WorkerMemory(MemoryWatch& watch) : watch_(watch) {}

  void Allocated(GlobalAddr addr, SizeClass size_class, MemoryUse use) override {
    if (!refused_) watch_.Allocated(addr, size_class, use);
  }
  void Retired(GlobalAddr addr, SizeClass size_class) override {
    if (!refused_) watch_.Retired(addr, size_class);
  }
  void Released(GlobalAddr addr, SizeClass size_class, MemoryUse use) override {
    if (!refused_) watch_.Released(addr, size_class, use);
  }
  void Unnamed(GlobalAddr addr) override {
    if (!refused_) watch_.Unnamed(addr);
  }
  void Reclaimed(GlobalAddr addr, SizeClass size_class) override {
    if (!refused_) watch_.Reclaimed(addr, size_class);
  }
  void Adopted(GlobalAddr block, SizeClass size_class, const std::vector<bool>* used) override {
    if (!refused_) watch_.Adopted(block, size_class, used);
  }
  void GivenBack(GlobalAddr block) override {
    if (!refused_) watch_.GivenBack(block);
  }
  void Opened(GlobalAddr block) override {
    if (!refused_) watch_.Opened(block);
  }
  void Listed(GlobalAddr addr) override {
    if (!refused_) watch_.Listed(addr);
  }
  uint64_t Pinned() override {
    const uint64_t ticket = watch_.Pinned();
    if (refused_) {
      watch_.Unpinned(ticket);
    } else {
      pinned_.insert(ticket);
    }
    return ticket;
  }
  void Unpinned(uint64_t ticket) override {
    pinned_.erase(ticket);
    watch_.Unpinned(ticket);
  }

  // From now on no memory node lets the worker touch anything.
  void RefusedEverywhere() {
    refused_ = true;
    for (const uint64_t ticket : pinned_) watch_.Unpinned(ticket);
    pinned_.clear();
  }

 private:
  MemoryWatch& watch_;
  absl::flat_hash_set<uint64_t> pinned_;
  bool refused_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_MEMORY_WATCH_H_
