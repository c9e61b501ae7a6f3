// InsertScope: clients that insert, look up and remove one key through the production index.
//
//   I  inserts the key unless it is there; returns whether it did
//   G  returns which insert's record is there, or 0
//   D  removes the key; returns whether it was there
//   X  removes a neighbour: another key's entry in the first of the key's two buckets, which is
//   then
//      the emptier one; inserters that searched before and after it choose different slots
//
// One subtable of depth 0. The records that inserts offer lie in memory from the start, for their
// bytes never change; all that the clients then write are slots and log words. An insert that had
// to withdraw `renewals_max` records gives up with its outcome unknown.
#ifndef ONETRIP_TESTS_EXPLORE_INSERT_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_INSERT_SCOPE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/slot.h"
#include "tests/explore/scope.h"

namespace onetrip {

enum class InsertMutant : uint8_t {
  kNone,
  kNoSecondSearch,  // an empty slot becomes committed at once
};

struct InsertOptions {
  std::vector<std::string_view> programs;
  int replicas = 3;
  size_t renewals_max = 1;
  Scope::Faults faults;
  InsertMutant mutant = InsertMutant::kNone;
};

class InsertScope final : public Scope {
 public:
  explicit InsertScope(InsertOptions options);

  static constexpr std::string_view kKey = "k";
  static constexpr KeyspaceId kKeyspace{1};
  [[nodiscard]] const std::string& neighbour() const { return neighbour_; }

  [[nodiscard]] const InsertOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }
  // The record that `client` offers in attempt `attempt` of operation `op`.
  [[nodiscard]] static GlobalAddr RecordOf(size_t client, size_t op, size_t attempt);
  // Which insert the record belongs to; never 0.
  [[nodiscard]] static uint64_t InsertOf(GlobalAddr record);

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  // The location cache, and the number of EMPTY words made.
  [[nodiscard]] bool clients_remember() const override { return true; }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override;
  [[nodiscard]] uint64_t InitialValue() const override { return 0; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override;
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  [[nodiscard]] std::string OnQuiet(const MemoryView& memory, bool crashed) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                uint64_t* value) const override;
  [[nodiscard]] std::string WordName(uint64_t word) const override;
  [[nodiscard]] std::string CellName(RemoteAddr at) const override;

 private:
  [[nodiscard]] bool IsEntry(SlotWord word) const;
  // Words of the key's two buckets on one replica.
  [[nodiscard]] std::vector<uint64_t> Slots(const MemoryView& memory, int replica) const;

  const InsertOptions options_;
  std::shared_ptr<const View> view_;
  KeyHash hash_;
  std::string neighbour_;
  GlobalAddr neighbour_slot_;
  std::vector<uint64_t> records_;  // their bytes, as words
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_INSERT_SCOPE_H_
