// FormScope: clients that set, increment, delete and read one key through Kv, in both of its forms.
//
//   S  Kv::Set                                   G  Kv::Get: the value, 0 if there is none
//   I  Kv::ReadModifyWrite: one more, or 1       D  Kv::Delete: whether it was there
//
// A worker of its own makes the key before the exploration, as a register or as a record; clients
// may know the register. Index, registers, records and their memory are Kv's, all of it. Every
// client has used each class of memory before, so that none is granted in the exploration; epochs
// stand still, so that none is used twice.
//
// Steps are the accesses to the words by which clients agree: slots, lanes, seals, final words and
// lock words. Records, buffers and copies in place are accessed with the step before: copies are
// never seen half written (see In-n-Out for that). Reads do not widen to a third replica before a
// node fails, and a seal waits for all that have not.
#ifndef ONETRIP_TESTS_EXPLORE_FORM_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_FORM_SCOPE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/slot.h"
#include "tests/explore/scope.h"
#include "tests/explore/scratch_memory.h"

namespace onetrip {

// The state of the key when the exploration begins.
enum class StartForm : uint8_t {
  kRegister,
  kBlindRecord,  // written by a SET of engine snapshot
  kRecord,       // made by a read-modify-write
  kThawed,       // a record that took the place of a register
};

struct FormOptions {
  std::vector<std::string_view> programs;  // one word per client, of the letters S, I, D and G
  StartForm start = StartForm::kRegister;
  Scope::Faults faults = {};
};

class FormScope final : public Scope {
 public:
  static constexpr std::string_view kKey = "form key";
  static constexpr KeyspaceId kKeyspace{0};
  static constexpr uint64_t kFirstNumber = 1000;

  explicit FormScope(FormOptions options);

  static uint64_t NumberOf(size_t client, size_t op) { return 100 * (client + 1) + 10 * op; }

  [[nodiscard]] const FormOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  [[nodiscard]] bool clients_remember() const override { return true; }
  [[nodiscard]] bool asks_quorums() const override { return true; }
  [[nodiscard]] bool works_in_background() const override { return true; }
  [[nodiscard]] uint32_t answers_max() const override { return 100; }
  [[nodiscard]] bool IsLookedAtLater(const PostedRound& round,
                                     const CellTable& cells) const override;
  // True for work that goes on with slots; not for stragglers of registers, which only repeat their
  // CAS.
  [[nodiscard]] bool IsOfBackground(const PostedRound& round,
                                    const CellTable& cells) const override;
  [[nodiscard]] bool IsPolled(RemoteAddr at) const override;
  [[nodiscard]] bool IsNoStep(RemoteAddr at) const override;
  // True for a word that makes a register; all else is done by CAS, but for final words.
  [[nodiscard]] bool IsUnnoticed(RemoteAddr at, uint64_t word) const override {
    const Part part = PlaceOf(at.offset).part;
    return part == Part::kLane || part == Part::kSeal || (part == Part::kFinal && word == 0);
  }
  // At node 0 values are looked for in the end.
  [[nodiscard]] bool IsForReaders(RemoteAddr at) const override {
    return at.node.value != 0 && IsNoStep(at);
  }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override;
  // The sequential object: 0 if there is no key, else its number and 1.
  [[nodiscard]] uint64_t InitialValue() const override { return kFirstNumber + 1; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override;
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  [[nodiscard]] std::string OnQuiet(const MemoryView& memory, bool crashed) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                uint64_t* value) const override;
  [[nodiscard]] std::string WordName(uint64_t word) const override;
  [[nodiscard]] std::string CellName(RemoteAddr at) const override;

 private:
  // The thing that lies at an address.
  enum class Part : uint8_t { kOther, kSlot, kLane, kSeal, kFinal, kLock };
  struct Place {
    Part part = Part::kOther;
    uint64_t object = 0;  // where it begins
    uint64_t bytes = 0;   // the size of its class
    uint64_t at = 0;      // within it
  };

  void MakeMemory();
  void NoteBlocks();
  [[nodiscard]] Place PlaceOf(uint64_t offset) const;
  // The slots where the key may be, on one replica.
  [[nodiscard]] std::vector<uint64_t> Slots(const MemoryView& memory, int replica) const;
  [[nodiscard]] bool IsEntry(SlotWord word) const;
  [[nodiscard]] bool HasFirstValue(const MemoryView& memory, GlobalAddr addr) const;
  [[nodiscard]] bool RegisterValue(const MemoryView& memory, SlotWord word, uint64_t* value) const;

  const FormOptions options_;
  const RegisterPlan plan_;
  std::shared_ptr<const View> view_;
  KeyHash hash_;
  GlobalAddr subtable_;
  ScratchMemory::Words memory_;
  std::map<uint32_t, SizeClass> blocks_;  // granted to any client, by number in region 0
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_FORM_SCOPE_H_
