// TreeWorker: a worker that runs Redis's commands on collections, with a Kv of its own and trees of
// a few elements, and that remembers which memory it has taken and given back.
#ifndef ONETRIP_TESTS_EXPLORE_TREE_WORKER_H_
#define ONETRIP_TESTS_EXPLORE_TREE_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/kv/kv.h"
#include "client_core/replication/engine.h"
#include "redis_compat/dispatch/session.h"
#include "tests/explore/explore_executor.h"
#include "tests/explore/explore_fabric.h"
#include "tests/explore/explore_master.h"
#include "tests/unit/redis_fake_hooks.h"

namespace onetrip {

// Leaves of two or three elements; inner pages of two.
inline constexpr TreeLimits kExploredTree{
    .leaf_bytes = 16, .inner_bytes = 64, .root_bytes = 50, .packed_bytes = 20};

// The objects that a worker has taken, and those that it has given back, whoever took them.
class MemoryLedger final : public MemoryObserver {
 public:
  // Told of each object that is given back, at that moment.
  std::vector<Note>* notes = nullptr;
  static constexpr uint32_t kGivenBack = 1;
  static constexpr uint32_t kGivenBackTwice = 2;
  // An object that had been given back since notes are made.
  static constexpr uint32_t kTakenAgain = 3;

  void Allocated(GlobalAddr addr, SizeClass size_class, MemoryUse /*use*/) override {
    taken[addr.bits()] = size_class;
    const bool is_again = given_back.erase(addr.bits()) != 0;
    if (is_again && notes != nullptr) notes->push_back({kTakenAgain, addr.bits(), 0});
  }
  void Retired(GlobalAddr addr, SizeClass size_class) override { GiveBack(addr, size_class); }
  // Unless it was retired before.
  void Released(GlobalAddr addr, SizeClass size_class, MemoryUse /*use*/) override {
    if (!given_back.contains(addr.bits())) GiveBack(addr, size_class);
  }
  void Unnamed(GlobalAddr /*addr*/) override {}
  void Reclaimed(GlobalAddr /*addr*/, SizeClass /*size_class*/) override {}
  uint64_t Pinned() override { return 1; }
  void Unpinned(uint64_t /*ticket*/) override {}

  std::map<uint64_t, SizeClass> taken;
  std::map<uint64_t, SizeClass> given_back;

 private:
  void GiveBack(GlobalAddr addr, SizeClass size_class) {
    const bool is_new = given_back.emplace(addr.bits(), size_class).second;
    if (notes != nullptr) {
      notes->push_back({is_new ? kGivenBack : kGivenBackTwice, addr.bits(), 0});
    }
  }
};

class TreeWorker {
 public:
  // `seat` below kClientsMax is a client's; that of kClientsMax came before them.
  TreeWorker(ExploreExecutor& executor, ExploreFabric& fabric, std::shared_ptr<const View> view,
             size_t seat);

  // The blocks of region 0 that the seat has; the last one of the region is none's.
  static uint32_t FirstBlockOf(size_t seat);
  static uint32_t BlocksOf(size_t seat);

  Task<bool> Start();
  // Runs one command, as it comes from a client, on `key`, which its second word is to be.
  Task<std::string> Run(std::string_view command, std::string_view key);
  // Publishes the epoch that this worker has passed, looks at the others', and frees what all have
  // passed, `rounds` times.
  Task<void> Maintain(size_t rounds);

  MemoryLedger& ledger() { return ledger_; }

 private:
  Task<std::string> Send(std::span<const std::string_view> argv);

  ExploreMaster master_;
  Quiesce hold_;
  MemoryLedger ledger_;
  WorkerContext context_;
  std::unique_ptr<Engine> engine_;
  SlotStore kv_;
  FakeHooks hooks_;
  Session session_;
};

// The elements of an array's reply; an integer or a string as one element.
std::vector<std::string> ReplyParts(std::string_view reply);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_TREE_WORKER_H_
