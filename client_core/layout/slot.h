// SlotWord: the 8 bytes of the index that name an object (RACE hashing; FUSEE 4.2, figure 5).
//
//   63     62     61     60..58  57..50        49..44      43..0
//   0      form   blind  kind    fingerprint   size class  address / 16
//
// `form` is 1 if the object is a register, 0 if it is a record. An EMPTY word carries who deleted
// and when instead of the lower fields: `57..36` worker id, `35..0` that worker's sequence. With
// form 1 it is DROPPED: a register whose end is decided and not yet recorded in the register; then
// `57..44` say whose DEL is credited (CreditOf), `43..0` which register it was, / 16. A slot word
// must not recur while an operation may still hold it as its expected word (PROTOCOLS, "SNAPSHOT"):
// object addresses are kept apart by epochs, EMPTY words by this stamp. Fresh memory (0) is the one
// EMPTY word without a stamp. Bit 63 stays 0 in the index, so the operation log can use it as its
// "committed" mark beside the word.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_SLOT_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_SLOT_H_

#include <cstdint>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

enum class SlotKind : uint8_t {
  kEmpty = 0,
  kTentative = 1,  // the claim of an insert
  kObject = 2,     // a committed entry: an immutable record
  kFrozen = 3,     // a committed entry on its way to another subtable; readable, not writable
  kIntent = 6,     // reserved: a transaction's intent
};

class SlotWord {
 public:
  constexpr SlotWord() = default;
  constexpr explicit SlotWord(uint64_t bits) : bits_(bits) {}

  static constexpr SlotWord Make(SlotKind kind, uint8_t fingerprint, SizeClass size_class,
                                 GlobalAddr addr, bool blind) {
    return SlotWord((static_cast<uint64_t>(blind) << kBlindShift) |
                    (static_cast<uint64_t>(kind) << kKindShift) |
                    (static_cast<uint64_t>(fingerprint) << kFingerprintShift) |
                    (static_cast<uint64_t>(size_class.index()) << kClassShift) |
                    (addr.bits() / kObjectAlignBytes));
  }
  static constexpr SlotWord Empty(WorkerId worker, uint64_t sequence) {
    return SlotWord(((static_cast<uint64_t>(worker.value) & kWorkerMask) << kWorkerShift) |
                    (sequence & kSequenceMask));
  }

  static constexpr SlotWord Register(uint8_t fingerprint, SizeClass size_class, GlobalAddr addr,
                                     bool blind) {
    return SlotWord(Make(SlotKind::kObject, fingerprint, size_class, addr, blind).bits() |
                    kFormBit);
  }
  static constexpr SlotWord Dropped(GlobalAddr register_addr, uint32_t credit) {
    return SlotWord(kFormBit | (uint64_t{credit} << kClassShift) |
                    (register_addr.bits() / kObjectAlignBytes));
  }

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool is_register() const { return (bits_ & kFormBit) != 0; }
  [[nodiscard]] constexpr bool is_dropped() const { return is_empty() && is_register(); }
  // REQUIRES: is_dropped(); addr() is the register's.
  [[nodiscard]] constexpr uint32_t credit() const {
    return static_cast<uint32_t>(bits_ >> kClassShift) & kCreditMask;
  }
  [[nodiscard]] constexpr SlotKind kind() const {
    return static_cast<SlotKind>((bits_ >> kKindShift) & 7);
  }
  [[nodiscard]] constexpr bool is_empty() const { return kind() == SlotKind::kEmpty; }
  // The word was installed by a write that did not look at the value it replaced.
  [[nodiscard]] constexpr bool blind() const { return ((bits_ >> kBlindShift) & 1) != 0; }
  [[nodiscard]] constexpr uint8_t fingerprint() const {
    return static_cast<uint8_t>(bits_ >> kFingerprintShift);
  }
  [[nodiscard]] constexpr SizeClass size_class() const {
    return SizeClass(static_cast<uint8_t>((bits_ >> kClassShift) & 63));
  }
  [[nodiscard]] constexpr GlobalAddr addr() const {
    return GlobalAddr((bits_ & kAddrMask) * kObjectAlignBytes);
  }
  // The same object under another kind; loses the blind bit, which is of one write only.
  [[nodiscard]] constexpr SlotWord WithKind(SlotKind kind) const {
    return SlotWord(Make(kind, fingerprint(), size_class(), addr(), false).bits() |
                    (bits_ & kFormBit));
  }

  friend constexpr bool operator==(const SlotWord&, const SlotWord&) = default;

 private:
  static constexpr uint64_t kFormBit = 1ULL << 62;
  static constexpr uint32_t kCreditMask = (1U << 14) - 1;
  static constexpr int kBlindShift = 61;
  static constexpr int kKindShift = 58;
  static constexpr int kFingerprintShift = 50;
  static constexpr int kClassShift = 44;
  static constexpr uint64_t kAddrMask = (1ULL << kClassShift) - 1;
  static constexpr int kWorkerShift = 36;
  static constexpr uint64_t kWorkerMask = (1ULL << 22) - 1;
  static constexpr uint64_t kSequenceMask = (1ULL << kWorkerShift) - 1;

  uint64_t bits_ = 0;
};

static_assert(sizeof(SlotWord) == 8);
static_assert((1ULL << kAddrBits) / kObjectAlignBytes <= (1ULL << 44), "an address fits its field");
static_assert(SlotWord::Make(SlotKind::kObject, 0xff, SizeClass(49), GlobalAddr(0xfffffffffff0),
                             true)
                  .addr() == GlobalAddr(0xfffffffffff0));
static_assert(SlotWord::Empty(WorkerId{0x3fffff}, ~0ULL).is_empty() &&
              !SlotWord::Empty(WorkerId{0x3fffff}, ~0ULL).is_dropped());
static_assert(SlotWord::Dropped(GlobalAddr(0xfffffffffff0), 0x3fff).is_dropped() &&
              SlotWord::Dropped(GlobalAddr(0xfffffffffff0), 0x3fff).credit() == 0x3fff &&
              SlotWord::Dropped(GlobalAddr(0xfffffffffff0), 0).addr() ==
                  GlobalAddr(0xfffffffffff0));

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_SLOT_H_
