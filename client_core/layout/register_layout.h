// Registers: the remote bytes of In-n-Out (SWARM 4, figure 3; MEMORY_LAYOUT, "Registers"), bit by
// bit.
//
// A register is a header, its key, K lanes of metadata words and an in-place area, contiguous on
// each of its r replicas. The value of every write lies in an out-of-place buffer of its writer on
// the same memory nodes; but that of the first one lies in the register itself, in the in-place
// area, if it fits there. A metadata word orders writes and names the buffer:
//
//   63..32                  31..21              20..2         1          0
//   ticks since the birth   region modulo 2048  offset / 32   VERIFIED   FIRSTHAND
//   the same                0                   0             1          0           in the
//   register
//
// Words compare as integers: time first, then the buffer, which no two writes share at a time; so
// no two writes compare equal. 0: nothing was written. Ticks are 512 ns of cluster time and start
// at 1: a register lives for 36 minutes of writes, and is then registered anew (it never wraps).
// FIRSTHAND: a guess that its writer has put there itself, after it had read all lanes there. A
// worker that writes back another's word leaves it out; none adds it to a word that is there.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_LAYOUT_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_LAYOUT_H_

#include <compare>
#include <cstddef>
#include <cstdint>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Cluster time: nanoseconds / 512 since the Unix epoch. A type, since ticks since a birth are not.
struct Ticks {
  uint64_t value = 0;
  friend auto operator<=>(const Ticks&, const Ticks&) = default;
};
inline constexpr uint32_t kTickShift = 9;
constexpr Ticks TicksOfNs(uint64_t unix_ns) { return {unix_ns >> kTickShift}; }

// A write's time in its register: ticks since the register's birth, from 1.
using RegisterTime = uint32_t;
// From here on no write begins: the register is exhausted. What is left of the 32 bits is for the
// rewrites of writes that began before, each of which goes one tick beyond the largest.
inline constexpr RegisterTime kRegisterTimeEnd = 0xfff00000U;

// Where in the 2048 regions around its register a buffer lies.
inline constexpr uint32_t kReachRegionBits = 11;
inline constexpr uint64_t kBufferAlignBytes = 32;

class MetaWord {
 public:
  constexpr MetaWord() = default;
  constexpr explicit MetaWord(uint64_t bits) : bits_(bits) {}
  // A guess. REQUIRES: CanName(register, buffer), time > 0.
  constexpr MetaWord(RegisterTime time, GlobalAddr buffer)
      : bits_((uint64_t{time} << kTimeShift) |
              (uint64_t{buffer.region() & kRegionMask} << kRegionShift) |
              ((buffer.offset() / kBufferAlignBytes) << kOffsetShift)) {}

  // The word with which a register is born, whose value lies in it. REQUIRES: time > 0.
  static constexpr MetaWord InRegister(RegisterTime time) {
    return MetaWord((uint64_t{time} << kTimeShift) | kVerified);
  }

  // True if a word of the register can point to the buffer: the same 2048 regions, aligned.
  static constexpr bool CanName(GlobalAddr register_addr, GlobalAddr buffer) {
    return (register_addr.region() & ~kRegionMask) == (buffer.region() & ~kRegionMask) &&
           buffer.offset() % kBufferAlignBytes == 0;
  }

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr RegisterTime time() const {
    return static_cast<RegisterTime>(bits_ >> kTimeShift);
  }
  [[nodiscard]] constexpr bool verified() const { return (bits_ & kVerified) != 0; }
  [[nodiscard]] constexpr bool firsthand() const { return (bits_ & kFirsthand) != 0; }
  // No buffer lies at the beginning of a region: its header does.
  [[nodiscard]] constexpr bool is_in_register() const {
    return bits_ != 0 && (bits_ & kPlaceMask) == 0;
  }
  // The same write in one of its three forms. As a guess is what comparisons between writes are
  // made on.
  [[nodiscard]] constexpr MetaWord AsVerified() const {
    return MetaWord((bits_ & ~kFirsthand) | kVerified);
  }
  [[nodiscard]] constexpr MetaWord AsFirsthand() const {
    return MetaWord((bits_ & ~kVerified) | kFirsthand);
  }
  [[nodiscard]] constexpr MetaWord AsGuess() const {
    return MetaWord(bits_ & ~(kVerified | kFirsthand));
  }
  // REQUIRES: not is_in_register().
  [[nodiscard]] constexpr GlobalAddr buffer(GlobalAddr register_addr) const {
    const auto region = static_cast<uint32_t>(bits_ >> kRegionShift) & kRegionMask;
    const uint64_t offset = ((bits_ & kOffsetMask) >> kOffsetShift) * kBufferAlignBytes;
    return {(register_addr.region() & ~kRegionMask) | region, offset};
  }

  friend constexpr auto operator<=>(const MetaWord&, const MetaWord&) = default;

 private:
  static constexpr uint64_t kFirsthand = 1;
  static constexpr uint64_t kVerified = 2;
  static constexpr int kTimeShift = 32;
  static constexpr int kRegionShift = 21;
  static constexpr int kOffsetShift = 2;
  static constexpr uint32_t kRegionMask = (1U << kReachRegionBits) - 1;
  static constexpr uint64_t kOffsetMask = (1ULL << kRegionShift) - 1;
  static constexpr uint64_t kPlaceMask = (1ULL << kTimeShift) - (1ULL << kOffsetShift);

  uint64_t bits_ = 0;
};
static_assert(kRegionBytes / kBufferAlignBytes == 1U << 19, "an offset fits bits 20..2");
static_assert(kBlockHeaderBytes % kBufferAlignBytes == 0 &&
                  kRegionHeaderBytes % kBufferAlignBytes == 0,
              "objects of classes that are multiples of 32 lie on multiples of 32");
static_assert(MetaWord(7, GlobalAddr(4097, kRegionBytes - 32)).buffer(GlobalAddr(4096, 0)) ==
              GlobalAddr(4097, kRegionBytes - 32));
static_assert(MetaWord::InRegister(7).is_in_register() && !MetaWord().is_in_register() &&
                  !MetaWord(7, GlobalAddr(2048, 32)).is_in_register() &&
                  MetaWord::InRegister(7) < MetaWord(7, GlobalAddr(0, 32)),
              "of the writes of one time the first is the smallest");
static_assert(MetaWord(7, GlobalAddr(0, 32)).AsVerified() >
                  MetaWord(7, GlobalAddr(0, 32)).AsFirsthand(),
              "VERIFIED if any replica says so");

// One replica of a register; key, lanes and the in-place area follow it.
struct RegisterHeader {
  // 0, or the slot word that the register's creation replaced; see RecordHeader.
  uint64_t log_word;
  uint32_t keyspace;
  uint16_t key_bytes;
  uint8_t lanes;
  uint8_t buffer_class;  // SizeClass of every out-of-place buffer
  uint64_t incarnation;  // never twice: the creator's id (upper 24 bits) and its sequence
  uint64_t birth_ticks;  // Ticks
  uint64_t final_word;   // FinalWord: what became of a register that was sealed
  uint64_t seal;         // SealWord. Counts only if read by a READ of its own, after the lanes
};
inline constexpr uint32_t kRegisterHeaderBytes = sizeof(RegisterHeader);
inline constexpr uint32_t kFinalOffset = 32;
inline constexpr uint32_t kSealOffset = 40;
static_assert(kRegisterHeaderBytes == 48 && offsetof(RegisterHeader, seal) == kSealOffset);
static_assert(offsetof(RegisterHeader, final_word) == kFinalOffset);
static_assert(offsetof(RegisterHeader, log_word) == 0, "the log commit is one aligned word");
static_assert(offsetof(RegisterHeader, keyspace) == 8 && offsetof(RegisterHeader, lanes) == 14);
static_assert(offsetof(RegisterHeader, incarnation) == 16);

// A seal closes a register, once in its life: nothing counts on a replica after it.
//
//   63..34   33..2       1..0
//   0        worker id   0 open, 1 FROZEN, 2 DELETED by that worker
class SealWord {
 public:
  constexpr SealWord() = default;
  constexpr explicit SealWord(uint64_t bits) : bits_(bits) {}
  static constexpr SealWord Frozen() { return SealWord(1); }
  static constexpr SealWord Deleted(WorkerId by) { return SealWord((uint64_t{by.value} << 2) | 2); }
  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool open() const { return bits_ == 0; }
  [[nodiscard]] constexpr bool is_deleted() const { return (bits_ & 3) == 2; }
  // REQUIRES: is_deleted().
  [[nodiscard]] constexpr WorkerId deleter() const {
    return WorkerId{static_cast<uint32_t>(bits_ >> 2)};
  }
  friend constexpr bool operator==(const SealWord&, const SealWord&) = default;

 private:
  uint64_t bits_ = 0;
};

// The last 14 bits of the id of the worker whose DEL is credited with a register's end: what there
// is room for in the slot's word.
inline constexpr int kCreditBits = 14;
constexpr uint32_t CreditOf(WorkerId worker) { return worker.value & ((1U << kCreditBits) - 1); }

// The end of a register, as its slot decided: its last word, F, which an object carries on; or
// DROPPED, with the deleter that is credited. 0: not recorded yet, or the register lives.
class FinalWord {
 public:
  constexpr FinalWord() = default;
  constexpr explicit FinalWord(uint64_t bits) : bits_(bits) {}
  static constexpr FinalWord Dropped(uint32_t credit) {
    return FinalWord((uint64_t{credit} << 1) | 1);
  }
  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }
  // A metadata word has a time from 1 on in its upper half.
  [[nodiscard]] constexpr bool is_dropped() const { return bits_ != 0 && bits_ >> 32 == 0; }
  [[nodiscard]] constexpr uint32_t credit() const { return static_cast<uint32_t>(bits_) >> 1; }
  // REQUIRES: neither empty nor dropped.
  [[nodiscard]] constexpr MetaWord word() const { return MetaWord(bits_); }

 private:
  uint64_t bits_ = 0;
};

// The in-place area; the value follows it: the register's first, then copies of later ones on one
// replica. `hash` is XXH3 of everything behind it.
struct InPlaceHeader {
  uint64_t hash;
  uint64_t word;  // MetaWord as VERIFIED, whether the write is or not
  uint32_t value_bytes;
  uint32_t worker;  // WorkerId of the writer of `word`
};
inline constexpr uint32_t kInPlaceHeaderBytes = sizeof(InPlaceHeader);
static_assert(kInPlaceHeaderBytes == 24 && offsetof(InPlaceHeader, word) == 8);

// An out-of-place buffer; the value follows it. `hash` is XXH3 of everything behind it. The lock
// word is in no bulk WRITE: those begin at `hash`.
struct BufferHeader {
  uint64_t lock;  // LockWord of the write that the buffer holds; of an earlier one: not locked
  uint64_t hash;
  uint64_t ticks;  // Ticks of the write: the register's birth and the word's time
  uint32_t value_bytes;
  uint32_t worker;  // WorkerId
};
inline constexpr uint32_t kBufferHeaderBytes = sizeof(BufferHeader);
inline constexpr uint32_t kBufferBulkOffset = 8;
static_assert(kBufferHeaderBytes == 32 && offsetof(BufferHeader, hash) == kBufferBulkOffset);
static_assert(offsetof(BufferHeader, ticks) == 16 && offsetof(BufferHeader, value_bytes) == 24);

// A replica of a write's timestamp lock: the write's absolute time and who holds it. Larger times
// are later; 0 is in fresh memory.
enum class LockMode : uint8_t { kRead = 1, kWrite = 2 };
class LockWord {
 public:
  constexpr LockWord() = default;
  constexpr explicit LockWord(uint64_t bits) : bits_(bits) {}
  constexpr LockWord(Ticks ticks, LockMode mode)
      : bits_((ticks.value << 2) | static_cast<uint64_t>(mode)) {}
  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr Ticks ticks() const { return {bits_ >> 2}; }
  friend constexpr bool operator==(const LockWord&, const LockWord&) = default;

 private:
  uint64_t bits_ = 0;
};
static_assert(TicksOfNs(~uint64_t{0}).value < 1ULL << 62, "time and mode fit the lock word");

// The sizes of a register, fixed for its life.
inline constexpr uint32_t kLanesMax = 32;
inline constexpr uint32_t kInPlaceValueMax = 1024;
struct RegisterShape {
  uint32_t lanes = 4;            // 1..kLanesMax
  uint32_t in_place_bytes = 64;  // largest value with an in-place copy; a multiple of 8; 0: none
  uint32_t buffer_bytes = 96;    // size of every out-of-place buffer, header included
  uint32_t key_bytes = 0;

  // Where the lanes and the in-place area begin, and how long the whole register is.
  [[nodiscard]] constexpr uint32_t lanes_offset() const {
    return kRegisterHeaderBytes + (key_bytes + 7) / 8 * 8;
  }
  [[nodiscard]] constexpr uint32_t lane_offset(uint32_t lane) const {
    return lanes_offset() + 8 * lane;
  }
  [[nodiscard]] constexpr uint32_t in_place_offset() const { return lane_offset(lanes); }
  [[nodiscard]] constexpr uint32_t register_bytes() const {
    return in_place_offset() + (in_place_bytes == 0 ? 0 : kInPlaceHeaderBytes + in_place_bytes);
  }
  [[nodiscard]] constexpr uint32_t value_bytes_max() const {
    return buffer_bytes - kBufferHeaderBytes;
  }
  friend constexpr bool operator==(const RegisterShape&, const RegisterShape&) = default;
};
static_assert(RegisterShape{.lanes = 1, .in_place_bytes = 72, .key_bytes = 16}.register_bytes() ==
                  168,
              "a key of 16 bytes and a value of 64 with its 8 take the class of 176");

// The smallest class for a buffer of values up to `value_bytes` that lies on multiples of 32.
constexpr SizeClass BufferClass(uint64_t value_bytes) {
  const SizeClass fits = SizeClass::For(kBufferHeaderBytes + value_bytes);
  if (!fits.is_valid() || fits.bytes() % kBufferAlignBytes == 0) return fits;
  return SizeClass(static_cast<uint8_t>(fits.index() + 1));
}
static_assert(BufferClass(72).bytes() == 128);
static_assert(BufferClass(32).bytes() == 64 && BufferClass(33).bytes() == 96);
static_assert(BufferClass(64).bytes() == 96 && BufferClass(80).bytes() == 128);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_REGISTER_LAYOUT_H_
