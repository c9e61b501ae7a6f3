// TreeScope: clients that change and read one collection, a tree, by Redis's own commands through
// Kv.
//
// A worker of its own makes the collection before the exploration, with elements a to f. Programs
// are commands without their key: "HSET b 7", "HDEL b", "HGETALL"; "LPUSH x", "RPOP",
// "LRANGE 0 -1"; "ZADD 7 b", "ZREM b", "ZRANGE 0 -1 WITHSCORES".
//
// Steps are the accesses to slots. Records and pages are accessed with the step before; epochs
// stand still, so that none is used twice, unless TreeOptions::recycles. Besides results this
// checks the memory: see OnNote and OnQuiet. For that each client writes what it has taken and
// given back to memory of its own, which no other reads, when a command returns.
#ifndef ONETRIP_TESTS_EXPLORE_TREE_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_TREE_SCOPE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/slot.h"
#include "tests/explore/scope.h"
#include "tests/explore/scratch_memory.h"
#include "tests/explore/tree_commands.h"
#include "tests/explore/tree_worker.h"

namespace onetrip {

struct TreeOptions {
  TreeKind kind = TreeKind::kHash;
  std::vector<std::vector<std::string_view>> programs;
  Scope::Faults faults = {};
  // Epochs advance by "TICK", and memory is used again: the accesses to the epochs that workers
  // publish, and to pages that are written, are steps. At most one client writes.
  bool recycles = false;
  // A client for whose epoch no other waits, though nothing has stopped it yet: -1 is none.
  int expelled = -1;
};

// How often an exploration has met these, by step.
struct TreeMeetings {
  uint64_t taken_again = 0;  // a page, or a record, that was given back is taken
  uint64_t read_behind = 0;  // a page is read that the slot's root does not name any more
  uint64_t read_again = 0;   // a page is read by a client that keeps what lay there before
  uint64_t refused = 0;      // a command of the expelled has failed
};

class TreeScope final : public Scope {
 public:
  // So long that no record is as small as a page.
  static constexpr std::string_view kKey =
      "the key of a collection, which is so long that its record is larger than any page of it";
  static constexpr KeyspaceId kKeyspace{0};
  static constexpr uint32_t kObjectsMax = 64;  // a block has that are used

  explicit TreeScope(TreeOptions options);

  [[nodiscard]] const TreeOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }
  // The pages of the collection before the first command, and behind `command`, alone.
  [[nodiscard]] size_t PagesBehind(std::string_view command) const;

  [[nodiscard]] bool OnlyReads(size_t client) const;
  // A reply that no schedule may bring about: a result that tells of it outlives its client.
  [[nodiscard]] const char* Remember(const std::string& reply) const {
    return wrong_replies_.insert(reply).first->c_str();
  }
  // A page begins there. False unless `recycles`.
  [[nodiscard]] bool IsPage(uint64_t offset) const;
  // Beside those of MemoryLedger: a client has met these.
  static constexpr uint32_t kReadAgain = 4;
  static constexpr uint32_t kRefused = 5;
  [[nodiscard]] const TreeMeetings& met() const { return met_; }

  // The word of the memory in which a client says that a command of its has no known outcome, or
  // has taken, or given back, objects of a block: a bit each.
  enum class LedgerWord : uint8_t { kTaken, kGivenBack };
  static RemoteAddr UnknownAt(size_t client);
  static RemoteAddr LedgerAt(size_t client, uint32_t block, LedgerWord word);

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  [[nodiscard]] bool clients_remember() const override { return true; }
  [[nodiscard]] bool asks_quorums() const override { return true; }
  [[nodiscard]] bool works_in_background() const override { return true; }
  [[nodiscard]] uint32_t answers_max() const override { return 100; }
  [[nodiscard]] bool IsLookedAtLater(const PostedRound& round,
                                     const CellTable& cells) const override;
  [[nodiscard]] bool IsOfBackground(const PostedRound& round,
                                    const CellTable& cells) const override;
  [[nodiscard]] bool IsPolled(RemoteAddr at) const override { return IsSlot(at.offset); }
  [[nodiscard]] bool IsNoStep(RemoteAddr at) const override {
    return !IsSlot(at.offset) && !IsPassed(at.offset) && !IsPage(at.offset);
  }
  // At node 0 pages are looked for in the end.
  [[nodiscard]] bool IsForReaders(RemoteAddr at) const override {
    return at.node.value != 0 && !IsSlot(at.offset);
  }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override;
  [[nodiscard]] uint64_t InitialValue() const override { return initial_; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override {
    return TreeStepOf(options_.programs[client][op], value);
  }
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  // An object is given back that the slot's primary names, or for the second time.
  [[nodiscard]] std::string OnNote(size_t client, const Note& note,
                                   const MemoryView& memory) const override;
  // All that is named was taken and not given back. Where no worker has died nothing else was; else
  // what is left is in the blocks of the dead one, which are taken over, or was taken out of the
  // index by it, and is found by a look for what is lost.
  [[nodiscard]] std::string OnQuiet(const MemoryView& memory, bool crashed) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                uint64_t* value) const override;
  [[nodiscard]] std::string WordName(uint64_t word) const override;
  [[nodiscard]] std::string CellName(RemoteAddr at) const override;

  // The object as replies show it, and the result of a command.
  [[nodiscard]] uint64_t ResultOf(std::string_view command, const std::string& reply) const {
    return TreeResultOf(options_.kind, command, reply);
  }

 private:
  using Objects = std::map<uint64_t, SizeClass>;  // by address
  // A record that a slot names, and the pages that it names.
  struct Named {
    Objects objects;
    std::string wrong;
  };

  void MakeMemory();
  void PublishFirstEpochs();
  [[nodiscard]] bool IsSlot(uint64_t offset) const;
  // The epoch that a worker has passed; false unless `recycles`.
  [[nodiscard]] bool IsPassed(uint64_t offset) const;
  void CountRead(const AppliedAccess& access, const MemoryView& memory) const;
  [[nodiscard]] SlotWord PrimarySlot(const MemoryView& memory) const;
  [[nodiscard]] std::vector<uint64_t> Slots(const MemoryView& memory, int replica) const;
  [[nodiscard]] Named NamedBy(const MemoryView& memory, GlobalAddr record, SizeClass size) const;
  // The objects that are neither free nor a part of the index, as the clients' ledgers say; false:
  // an object was given back twice.
  [[nodiscard]] bool LiveObjects(const MemoryView& memory, Objects* live) const;
  [[nodiscard]] std::string CheckLeft(const MemoryView& memory, const Objects& left) const;

  const TreeOptions options_;
  std::shared_ptr<const View> view_;
  KeyHash hash_;
  GlobalAddr subtable_;
  uint64_t initial_ = 0;
  ScratchMemory::Words memory_;
  Objects made_;                          // before the exploration, for the collection
  std::map<uint32_t, SizeClass> blocks_;  // granted to any client, by number in region 0
  mutable std::set<std::string> wrong_replies_;
  mutable TreeMeetings met_;  // in an exploration, which sees a scope that is const
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_TREE_SCOPE_H_
