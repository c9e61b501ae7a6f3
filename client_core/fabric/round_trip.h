// RoundTrip: the operations posted together to one or more memory nodes, and the buffers they use.
//
// Operations on one node take effect in the order they were added; nothing orders nodes. All of
// them cost one round trip (doorbell batching). Buffers come from the round trip's own arena, so
// that a straggler that outlives its waiter still owns what it reads into or writes from: the
// fabric holds a reference until the last node has answered. Pooled per worker; not thread-safe.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_ROUND_TRIP_H_
#define ONETRIP_CLIENT_CORE_FABRIC_ROUND_TRIP_H_

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/layout/types.h"

namespace onetrip {

enum class FabricOpKind : uint8_t { kRead, kWrite, kCas, kFaa, kMax };

// MAX replaces the word if this is true. The two lowest bits of the operand do not count: a
// register keeps notes on the word there, which do not order it.
inline constexpr uint64_t kMaxNoteBits = 3;
inline bool TakesMax(uint64_t word, uint64_t operand) {
  return word < (operand & ~kMaxNoteBits) || Planted(Bug::kMaxSetsBack);
}

struct FabricOp {
  FabricOpKind kind = FabricOpKind::kRead;
  bool ok = false;  // false after completion: the node was lost, the outcome is unknown
  NodeId node;
  uint32_t bytes = 0;
  uint64_t offset = 0;
  std::byte* local = nullptr;  // READ: where to; WRITE: where from
  uint64_t expected = 0;       // CAS
  uint64_t operand = 0;        // CAS, MAX: desired; FAA: addend
  uint64_t result = 0;         // CAS, FAA, MAX: the word before

  // Returns true if the CAS or MAX has replaced the word. REQUIRES: ok.
  [[nodiscard]] bool took() const {
    return kind == FabricOpKind::kMax ? TakesMax(result, operand) : result == expected;
  }
};

// The memory that round trips lie in, for a fabric whose device has to know it: results and
// arenas are what it reads from and writes to. Outlives the pool.
class RoundTripMemory {
 public:
  virtual ~RoundTripMemory() = default;
  // 64-byte aligned. CHECKs that the host has it.
  virtual void* Take(size_t bytes) = 0;
  virtual void Give(void* memory, size_t bytes) = 0;
};

class RoundTripPool;

class RoundTrip {
 public:
  static constexpr size_t kMaxOps = 40;
  static constexpr size_t kInlineArenaBytes = 1024;

  // READ `bytes` at `at` into the arena. Returns the destination, valid while the round trip lives
  // and filled once it has completed.
  const std::byte* Read(RemoteAddr at, uint32_t bytes);
  // The same into `into`, which outlives the round trip.
  void ReadTo(RemoteAddr at, std::byte* into, uint32_t bytes) {
    Add(FabricOpKind::kRead, at, bytes).local = into;
  }
  // READ of one aligned word; its value is op(index).local as a word. Returns the op's index.
  const uint64_t* ReadWord(RemoteAddr at) {
    return reinterpret_cast<const uint64_t*>(Read(at, sizeof(uint64_t)));
  }
  // WRITE `bytes` from `from`, which must stay unchanged until completion: a buffer from Reserve().
  void Write(RemoteAddr at, const std::byte* from, uint32_t bytes);
  // WRITE of one aligned word.
  void WriteWord(RemoteAddr at, uint64_t word);
  // CAS on an aligned word; the word found is op(returned index).result.
  size_t Cas(RemoteAddr at, uint64_t expected, uint64_t desired);
  size_t Faa(RemoteAddr at, uint64_t addend);
  // MAX on an aligned word, where the fabric has it: TakesMax. The word found is
  // op(returned index).result.
  size_t Max(RemoteAddr at, uint64_t desired);

  // Arena bytes for the caller to fill, 8-byte aligned, uninitialised.
  std::byte* Reserve(size_t bytes);

  [[nodiscard]] size_t size() const { return op_count_; }
  [[nodiscard]] bool empty() const { return op_count_ == 0; }
  // Room for `count` more operations.
  [[nodiscard]] bool HasRoom(size_t count) const { return op_count_ + count <= kMaxOps; }
  [[nodiscard]] const FabricOp& op(size_t index) const {
    CHECK(index < op_count_);
    return ops_[index];
  }
  [[nodiscard]] std::span<FabricOp> ops() { return {ops_.data(), op_count_}; }
  // Every operation completed. Meaningful after completion.
  [[nodiscard]] bool all_ok() const {
    for (const FabricOp& op : std::span(ops_.data(), op_count_)) {
      if (!op.ok) return false;
    }
    return true;
  }

  // Forgets the operations, keeps the arena: the same object serves the next round trip of an
  // operation whose buffers are still needed. REQUIRES: completed.
  void ClearOps() {
    CHECK(pending_nodes_ == 0);
    op_count_ = 0;
  }

  // For fabrics: the operations on one node; bit i of `ops` is operation i.
  struct Part {
    NodeId node;
    uint64_t ops = 0;
  };
  // For fabrics: a part for every node, in the order in which the operations first name them.
  // Returns how many there are.
  uint32_t CutByNode(std::array<Part, kMaxOps>* parts) const;
  // For fabrics: how many nodes have yet to answer, and the coroutine that waits.
  void Arm(uint32_t pending_nodes, std::coroutine_handle<> waiter) {
    pending_nodes_ = pending_nodes;
    waiter_ = waiter;
  }
  // For fabrics: one node has answered. Returns the waiter to resume, if this was the last.
  std::coroutine_handle<> NodeAnswered() {
    CHECK(pending_nodes_ > 0);
    return --pending_nodes_ == 0 ? std::exchange(waiter_, {}) : std::coroutine_handle<>();
  }

 private:
  friend class RoundTripPool;
  friend class RoundTripPtr;

  FabricOp& Add(FabricOpKind kind, RemoteAddr at, uint32_t bytes) {
    CHECK(op_count_ < kMaxOps);
    FabricOp& op = ops_[op_count_++];
    op.kind = kind;
    op.ok = false;
    op.node = at.node;
    op.offset = at.offset;
    op.bytes = bytes;
    return op;
  }

  struct Large {
    std::byte* start;
    size_t bytes;
  };
  std::byte* ReserveLarge(size_t bytes);

  RoundTripPool* pool_ = nullptr;
  uint32_t references_ = 0;
  uint32_t pending_nodes_ = 0;
  std::coroutine_handle<> waiter_;
  size_t op_count_ = 0;
  size_t arena_used_ = 0;
  std::vector<Large> large_;  // arena beyond the inline part
  std::array<FabricOp, kMaxOps> ops_;
  alignas(16) std::byte arena_[kInlineArenaBytes];
};

// A counted reference; the last one returns the round trip to its pool.
class RoundTripPtr {
 public:
  RoundTripPtr() = default;
  explicit RoundTripPtr(RoundTrip* round_trip) : round_trip_(round_trip) {
    if (round_trip_ != nullptr) ++round_trip_->references_;
  }
  RoundTripPtr(const RoundTripPtr& other) : RoundTripPtr(other.round_trip_) {}
  RoundTripPtr(RoundTripPtr&& other) noexcept
      : round_trip_(std::exchange(other.round_trip_, nullptr)) {}
  RoundTripPtr& operator=(RoundTripPtr other) noexcept {
    std::swap(round_trip_, other.round_trip_);
    return *this;
  }
  ~RoundTripPtr() { Release(); }

  RoundTrip* operator->() const { return round_trip_; }
  RoundTrip& operator*() const { return *round_trip_; }
  explicit operator bool() const { return round_trip_ != nullptr; }
  [[nodiscard]] RoundTrip* get() const { return round_trip_; }

 private:
  void Release();
  RoundTrip* round_trip_ = nullptr;
};

// Owns the round trips of one worker. REQUIRES: outlives every reference.
class RoundTripPool {
 public:
  // In `memory`, or, if that is null, wherever there is some.
  explicit RoundTripPool(RoundTripMemory* memory = nullptr) : memory_(memory) {}
  RoundTripPool(const RoundTripPool&) = delete;
  RoundTripPool& operator=(const RoundTripPool&) = delete;
  ~RoundTripPool();

  RoundTripPtr Get();

 private:
  friend class RoundTripPtr;
  friend class RoundTrip;
  void Put(RoundTrip* round_trip);
  void* Take(size_t bytes);
  void Give(void* memory, size_t bytes);

  RoundTripMemory* const memory_;
  std::vector<RoundTrip*> free_;
  size_t outstanding_ = 0;
};

inline void RoundTripPtr::Release() {
  if (round_trip_ == nullptr) return;
  CHECK(round_trip_->references_ > 0);
  if (--round_trip_->references_ == 0) round_trip_->pool_->Put(round_trip_);
  round_trip_ = nullptr;
}

inline std::byte* RoundTrip::Reserve(size_t bytes) {
  const size_t rounded = (bytes + 7) & ~size_t{7};
  if (arena_used_ + rounded <= kInlineArenaBytes) [[likely]] {
    std::byte* place = arena_ + arena_used_;
    arena_used_ += rounded;
    return place;
  }
  return ReserveLarge(rounded);
}

inline const std::byte* RoundTrip::Read(RemoteAddr at, uint32_t bytes) {
  std::byte* into = Reserve(bytes);
  Add(FabricOpKind::kRead, at, bytes).local = into;
  return into;
}

inline void RoundTrip::Write(RemoteAddr at, const std::byte* from, uint32_t bytes) {
  // The fabric only reads through it.
  Add(FabricOpKind::kWrite, at, bytes).local = const_cast<std::byte*>(from);
}

inline void RoundTrip::WriteWord(RemoteAddr at, uint64_t word) {
  std::byte* from = Reserve(sizeof(word));
  *reinterpret_cast<uint64_t*>(from) = word;
  Write(at, from, sizeof(word));
}

inline size_t RoundTrip::Cas(RemoteAddr at, uint64_t expected, uint64_t desired) {
  FabricOp& op = Add(FabricOpKind::kCas, at, sizeof(uint64_t));
  op.expected = expected;
  op.operand = desired;
  return op_count_ - 1;
}

inline size_t RoundTrip::Faa(RemoteAddr at, uint64_t addend) {
  FabricOp& op = Add(FabricOpKind::kFaa, at, sizeof(uint64_t));
  op.operand = addend;
  return op_count_ - 1;
}

inline size_t RoundTrip::Max(RemoteAddr at, uint64_t desired) {
  FabricOp& op = Add(FabricOpKind::kMax, at, sizeof(uint64_t));
  op.operand = desired;
  return op_count_ - 1;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_ROUND_TRIP_H_
