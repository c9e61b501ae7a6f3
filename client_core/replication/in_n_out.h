// In-n-Out: a large max register on one memory node, one round trip to write, mostly one to read
// (SWARM 4.3, 4.4).
//
// Out of place: a write puts its bytes into a buffer of its own and then raises a lane to the word
// that names it (by one MAX where the fabric has it, else by a chain of CASes; then writers spread
// over several lanes); the channel's order makes the bytes be there before the word.
// The first word's value came with the register, on all replicas, and lies in the in-place area.
// In place: one replica of a register also holds a copy of the latest value, written ahead of its
// word, without locks; it is believed only if it is of the largest word and its hash matches. It
// takes the place of the first value only once that replica holds a larger word.
// Every step reads the seal last: a replica counts only if it was open after the step.
//
// These are the steps on one replica, each a coroutine that reports to a QuorumCall. What they
// refer to is taken by value, since stragglers outlive the operation. All of a worker: one thread.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_IN_N_OUT_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_IN_N_OUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "client_core/coro/task.h"
#include "client_core/layout/register_codec.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/guess_clock.h"
#include "client_core/replication/quorum_call.h"
#include "client_core/replication/read_rules.h"
#include "client_core/replication/write_rules.h"

namespace onetrip {

// Bounds of the register protocols.
struct RegisterOptions {
  uint32_t cas_retries_max = 256;    // per MAX: other writers of the lane that came in between
  uint32_t restarts_max = 16;        // per read whose word was lost with the node that held it
  uint64_t widen_first_ns = 50'000;  // before any round trip was measured: see MaxRegister
  uint64_t widen_min_ns = 5'000;
  uint64_t widen_max_ns = 2'000'000;
  uint64_t avoid_ns = 50'000'000;  // how long a node that does not answer is asked last, at most
  bool in_place = true;            // reads take the in-place copy if there is one
  bool ask_all = false;            // every read asks every replica at once, as if contended
};

// Which register, and its sizes. Constant for the life of a register.
struct RegisterRef {
  GlobalAddr addr;
  uint64_t incarnation = 0;
  Ticks birth;
  RegisterShape shape;
};

// A register and what this worker remembers of it between operations; a cache entry. Outlives the
// operations on it, not their stragglers.
struct RegisterHandle {
  RegisterRef ref;
  RegisterTimes times;
  MetaWord lane_word;    // the lane that the worker writes is thought to hold it on all replicas
  MetaWord fetched;      // the word whose value the last read found only in its buffer
  bool writing = false;  // Safe-Guess allows one write in flight per worker and register
  // The number of further reads that ask all replicas at once: one has lately met a guess.
  uint8_t contended = 0;
  // The view in which the replica with the in-place area was found to hold a word beyond the
  // register's first: under that view the area may be written over ahead of a word. See PROTOCOLS,
  // "The first value lies in the register".
  Epoch past_first = kInNoView;

  static constexpr Epoch kInNoView{~uint64_t{0}};

  RegisterHandle() = default;
  RegisterHandle(const RegisterRef& ref_in, const GuessClock& clock)
      : ref(ref_in), times(clock.Times(ref_in.birth)) {}
};

// One MAX of a lane.
struct LaneWrite {
  MetaWord word;
  MetaWord expected;  // a CAS: the lane is thought to hold it; from `word` on it counts as 0
  uint8_t lane = 0;
  bool read_lanes = false;   // look at header, lanes and seal first
  EarlierLook earlier = {};  // with `read_lanes`: counts where that has put the word there
};

class InNOut {
 public:
  // `context` outlives it.
  InNOut(WorkerContext& context, const RegisterOptions& options)
      : context_(context), options_(options) {}

  // The lane that a worker writes.
  static uint8_t LaneOf(WorkerId worker, const RegisterShape& shape) {
    return static_cast<uint8_t>(worker.value % shape.lanes);
  }
  // Which of `replicas` live ones has the in-place copy of the register at `addr`. Another after a
  // change of the view: a copy is believed wherever it is found to be right.
  static int InPlaceReplica(GlobalAddr addr, int replicas) {
    const uint64_t mixed = addr.bits() * 0x9e3779b97f4a7c15ULL >> 32;
    return static_cast<int>(mixed * static_cast<uint64_t>(replicas) >> 32);
  }

  // A batch with the WRITE of the buffer that `word` names on one replica's node; null if the
  // buffer is not there, since its region is missing on that node: the replica is not to be asked.
  RoundTripPtr WriteBuffer(const RegisterRef& ref, NodeId node, MetaWord word,
                           const WrittenValue& value);

  // The two halves of that, for a value that goes ahead of its word: value, and then the header,
  // without which the value belongs to no word.
  RoundTripPtr WriteBufferValue(NodeId node, GlobalAddr buffer, std::span<const std::byte> bytes);
  RoundTripPtr WriteBufferHeader(const RegisterRef& ref, NodeId node, MetaWord word,
                                 const WrittenValue& value);

  // write(w): `batch` (which may hold WRITEs of the value), then MAX of the lane, then READ of the
  // seal; retries of the MAX are further round trips. The reply has `own_lane`, and with
  // `read_lanes` the image, `largest` and `firsthand`.
  // `behind`, if not null, is posted behind the report, where the replica counts and holds nothing
  // larger.
  Task<void> Write(QuorumCall::Share share, RegisterRef ref, LaneWrite write, RoundTripPtr batch,
                   RoundTripPtr behind = {});

  // read(), first round trip: header, lanes and (on the in-place replica) the in-place area by one
  // READ, then the seal by another; with `looks_twice` that one reads the lanes once more. What
  // `batch`, if given, holds goes ahead of it.
  Task<void> Read(QuorumCall::Share share, RegisterRef ref, bool looks_twice = false,
                  RoundTripPtr batch = {});

  // The same of a register of which no more is known than the slot's word, and of its shape what
  // `expected` says of key and lanes. What is found there says what register it is; it counts for
  // whoever finds that it is the one that the slot names.
  Task<void> ReadNamed(QuorumCall::Share share, SlotWord word, RegisterShape expected);

  // A batch for Read(), which it makes bring the buffer that `word` names, too: the second round
  // trip is spared if that word is the one to be read. Null if the buffer is not there.
  RoundTripPtr ReadBufferBeside(QuorumCall::Share& share, const RegisterRef& ref, MetaWord word);

  // read(), second round trip: the buffer that `word` names. Counts only if it is of that write.
  Task<void> ReadBuffer(QuorumCall::Share share, RegisterRef ref, MetaWord word);

  // CAS(seal, 0 -> `seal`), then READ of header, lanes and (on the in-place replica) the in-place
  // area. Counts whichever seal is there now, which is in the reply: what was read is final.
  Task<void> Seal(QuorumCall::Share share, RegisterRef ref, SealWord seal);

  // READ of the final word, into the reply's `final_word`.
  Task<void> ReadFinal(QuorumCall::Share share, RegisterRef ref);

  // In the background, once `word` is known to be verified: marks it on all replicas where the lane
  // holds it. Nothing rests on its success.
  Task<void> Verify(RegisterRef ref, uint8_t lane, MetaWord word, SharedPin pin);
  // In the background: makes the in-place copy, where there is to be one. Nothing rests on its
  // success. `value` is copied before the first suspension.
  // `known_in`: as of RegisterHandle::past_first.
  Task<void> CopyInPlace(RegisterRef ref, MetaWord word, WrittenValue value, Epoch known_in,
                         SharedPin pin);

  // Adds to `batch` the MAX of a lane at `at`, which a CAS expects to hold `expected`. Returns the
  // operation's index.
  size_t AddMax(RoundTrip& batch, RemoteAddr at, MetaWord expected, MetaWord word) const {
    if (context_.fabric.traits().has_max) return batch.Max(at, word.bits());
    return batch.Cas(at, expected.bits(), word.bits());
  }

  // A look at seal and lanes that the MAX behind it cannot overtake, for a fabric where it may
  // overtake a READ: by atomics, which keep their order. The MAX's own result is the look at lane
  // `own`. Returns the first operation's index, for TakeLook.
  static size_t AddLook(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at, uint8_t own);
  static LanesLook TakeLook(const RegisterRef& ref, const RoundTrip& batch, size_t first,
                            uint8_t own);

  // Add to `batch` the operations of Verify, and of CopyInPlace for the replica at `at`.
  void AddVerify(RoundTrip& batch, const RegisterRef& ref, uint8_t lane, MetaWord word);
  static void AddInPlace(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at, MetaWord word,
                         const WrittenValue& value);

  // Adds READs of header and lanes at `at`, and of the in-place area if asked for, then of the
  // seal, whose place is returned; of what lies behind it up to `seal_to`, too, if that is not 0.
  static const uint64_t* AddReads(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at,
                                  bool in_place, uint64_t seal_to, const std::byte** image);
  // Tells what a READ of header and lanes on `node`, and then one of the seal, have shown. `seal`
  // may be the beginning of a second READ of the lanes.
  ReadLook LookAt(const RegisterRef& ref, NodeId node, const std::byte* image, const uint64_t* seal,
                  bool looks_twice) const;
  // Tells what a READ of header and lanes has shown.
  static LanesLook LookAtLanes(const RegisterRef& ref, const std::byte* image);

  // Tells what `batch`, from SafeGuess's fast path of a WRITE, has found and done at `node`.
  static EarlierLook LookBack(const RegisterRef& ref, RoundTrip& batch, NodeId node);

  // These read an image with header and lanes, the last one with the in-place area, too: if it is
  // of the register, the largest word and its lane, one lane, and the in-place copy of the write
  // `word`, if that is there.
  static bool IsOf(const RegisterRef& ref, const std::byte* image) {
    return WordAt(image, offsetof(RegisterHeader, incarnation)) == ref.incarnation &&
           WordAt(image, offsetof(RegisterHeader, birth_ticks)) == ref.birth.value;
  }
  static MetaWord LargestIn(const RegisterRef& ref, const std::byte* image, uint8_t* lane);
  static MetaWord LaneIn(const RegisterRef& ref, const std::byte* image, uint8_t lane) {
    return MetaWord(WordAt(image, ref.shape.lane_offset(lane)));
  }
  // Empty if the reply has no image.
  static MetaWord LaneIn(const RegisterRef& ref, const ReplicaReply& reply, uint8_t lane) {
    return reply.image == nullptr ? MetaWord() : LaneIn(ref, reply.image, lane);
  }
  static bool ReadInPlace(const RegisterRef& ref, const std::byte* image, MetaWord word,
                          WrittenValue* value);

  // Adds a READ of all of the buffer that `word` names but its lock word, for TakeBuffer; null if
  // it is not on `node`.
  const std::byte* AddBufferRead(RoundTrip& batch, const RegisterRef& ref, NodeId node,
                                 MetaWord word) const;
  // The value in such an image, if it is whole and of the write `word`. False otherwise.
  static bool TakeBuffer(const RegisterRef& ref, const std::byte* image, MetaWord word,
                         WrittenValue* value);

  // Where the live replica of `addr` on `node` lies; false if none is there. Writers choose buffers
  // in regions that lie on the nodes of their registers, but these come back one by one to a node
  // that was out.
  [[nodiscard]] bool Find(NodeId node, GlobalAddr addr, RemoteAddr* at) const;

 private:
  static uint64_t WordAt(const std::byte* image, uint64_t offset) {
    uint64_t word;
    std::memcpy(&word, image + offset, sizeof(word));
    return word;
  }
  // Returns true if a replica is read with its in-place area.
  [[nodiscard]] bool ReadsInPlace(GlobalAddr addr, const QuorumCall::Share& share) {
    return options_.in_place && share.replica() == InPlaceReplica(addr, share.replicas());
  }
  // A batch that a node answered counts for nothing once the node is out.
  [[nodiscard]] bool StillThere(GlobalAddr addr, NodeId node) {
    RemoteAddr at;
    return Find(node, addr, &at);
  }

  WorkerContext& context_;
  const RegisterOptions options_;
};

// These are on the way of every GET and SET.
inline bool InNOut::Find(NodeId node, GlobalAddr addr, RemoteAddr* at) const {
  const View& view = context_.view();
  if (!view.Contains(addr)) return false;
  const RegionPlacement& placement = view.regions[addr.region()];
  const int live = view.replicas - placement.missing;
  for (int i = 0; i < live; ++i) {
    if (placement.nodes[i] != node) continue;
    *at = {node, placement.base[i] + addr.offset()};
    return true;
  }
  return false;
}

inline MetaWord InNOut::LargestIn(const RegisterRef& ref, const std::byte* image, uint8_t* lane) {
  const std::byte* const lanes = image + ref.shape.lanes_offset();
  const uint32_t count = ref.shape.lanes;
  MetaWord largest;
  uint32_t at = *lane;
  for (uint32_t i = 0; i < count; ++i) {
    const MetaWord word(WordAt(lanes, 8 * uint64_t{i}));
    if (word <= largest) continue;
    largest = word;
    at = i;
  }
  *lane = static_cast<uint8_t>(at);
  return largest;
}

inline ReadLook InNOut::LookAt(const RegisterRef& ref, NodeId node, const std::byte* image,
                               const uint64_t* seal, bool looks_twice) const {
  ReadLook look;
  look.is_of_register = IsOf(ref, image);
  look.largest = LargestIn(ref, image, &look.lane);
  RemoteAddr at;
  look.has_buffer = look.largest.is_in_register() ||
                    look.largest.buffer(ref.addr).region() == ref.addr.region() ||
                    Find(node, look.largest.buffer(ref.addr), &at);
  // One READ is not of one moment: its first lanes may have grown before its last ones were read.
  uint8_t lane = 0;
  const auto* again = reinterpret_cast<const std::byte*>(seal) - kSealOffset;
  look.steady = looks_twice && LargestIn(ref, again, &lane) == look.largest;
  look.seal = *seal;
  return look;
}

inline LanesLook InNOut::LookAtLanes(const RegisterRef& ref, const std::byte* image) {
  LanesLook look;
  look.largest = LargestIn(ref, image, &look.lane);
  look.open = WordAt(image, kSealOffset) == 0;
  return look;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_IN_N_OUT_H_
