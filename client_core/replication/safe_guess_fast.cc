// READ and WRITE where the fabric completes inline: the steps of Safe-Guess in one turn, while
// nothing is missing and no operation interferes. They cost little more than the memory they touch.
#include <array>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/replication/safe_guess.h"

namespace onetrip {

bool SafeGuess::ReadFast(RegisterHandle& handle, Tuple* m, const std::byte** image) {
  const RegisterRef& ref = handle.ref;
  const View& view = context_.view();
  const int live = view.LiveReplicas(ref.addr);
  const int needed = Planted(Bug::kInlineReadOfOne) ? 1 : max_register_.majority_of(live);
  int replica = InNOut::InPlaceReplica(ref.addr, live);
  const bool in_place = ref.shape.in_place_bytes > 0;
  const MetaWord beside = MaxRegister::BufferBeside(handle);
  if (!in_place && beside.is_empty()) return false;
  InNOut& in_n_out = max_register_.in_n_out();
  const std::byte* buffer = nullptr;
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  std::array<const std::byte*, kMaxReplicas> images;
  std::array<const uint64_t*, kMaxReplicas> seals;
  std::array<NodeId, kMaxReplicas> nodes;
  for (int i = 0; i < needed; ++i) {
    const RemoteAddr at = view.Locate(ref.addr, replica);
    nodes[i] = at.node;
    images[i] = batch->Read(at, i == 0 ? ref.shape.register_bytes() : ref.shape.in_place_offset());
    seals[i] = batch->ReadWord({at.node, at.offset + kSealOffset});
    if (!in_place && i == 0) {
      buffer = in_n_out.AddBufferRead(*batch, ref, at.node, beside);
      if (buffer == nullptr) return false;
    }
    if (++replica == live) replica = 0;
  }
  if (!context_.fabric.PostInline(batch).ok()) return false;
  std::array<ReplicaSeen, kMaxReplicas> seen;
  for (int i = 0; i < needed; ++i) {
    ReadLook look = in_n_out.LookAt(ref, nodes[i], images[i], seals[i], /*looks_twice=*/false);
    look.has_buffer |= Planted(Bug::kInlineBufferNotFound);
    seen[i] = SeeRead(look);
  }
  const Seen majority = Seen(seen).first(static_cast<size_t>(needed));
  const WordInLane largest = LargestOf(majority);
  // All of the majority hold the same write: no write-back is due.
  if (Counted(majority) < needed || HoldersOf(majority, largest.word) < needed) return false;
  if (NextOfRead(largest.word, /*everywhere=*/false) != ReadNext::kReturn) return false;
  const bool is_beside = beside.AsGuess() == largest.word.AsGuess();
  const bool has_value =
      in_place ? InNOut::ReadInPlace(ref, images[0], largest.word, &m->value)
               : is_beside && InNOut::TakeBuffer(ref, buffer, largest.word, &m->value);
  if (!has_value) return false;
  m->word = largest.word;
  m->lane = largest.lane;
  m->in_place = in_place;
  m->has_value = true;
  m->holder = std::move(batch);
  *image = images[0];
  handle.times.seen = std::max(handle.times.seen, m->word.time());
  const uint8_t own = InNOut::LaneOf(context_.membership.id, ref.shape);
  handle.lane_word = std::max(handle.lane_word, InNOut::LaneIn(ref, images[0], own));
  if (!largest.word.is_in_register()) handle.past_first = view.epoch;
  return !LeaseRanOut();
}

bool SafeGuess::WriteFast(RegisterHandle& handle, const OutBuffer& buffer,
                          std::span<const std::byte> bytes, WriteOutcome* outcome) {
  const RegisterRef& ref = handle.ref;
  const std::optional<RegisterTime> time = clock_.Guess(handle.times, buffer.used);
  if (!time.has_value()) return false;
  const MetaWord w(*time, buffer.addr);
  const MetaWord posted = w.AsFirsthand();
  outcome->guess = w;
  InNOut& in_n_out = max_register_.in_n_out();
  const View& view = context_.view();
  const WrittenValue value{context_.membership.id, bytes};
  const uint8_t lane = InNOut::LaneOf(value.worker, ref.shape);
  const MetaWord expected = ExpectedInLane(handle.lane_word, w);
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint32_t bulk_bytes = BufferBulkBytes(bytes.size());
  std::byte* bulk = batch->Reserve(bulk_bytes);
  EncodeBuffer({ref.birth.value + *time}, value, bulk);
  std::array<const std::byte*, kMaxReplicas> images;
  std::array<const uint64_t*, kMaxReplicas> seals;
  std::array<size_t, kMaxReplicas> max;
  const int live = view.LiveReplicas(ref.addr);
  if (max_register_.HasBeside(ref, buffer.addr)) return false;
  const int in_place = InNOut::InPlaceReplica(ref.addr, live);
  const bool copies = max_register_.MayCopyInPlace(handle);
  for (int i = 0; i < live; ++i) {
    const RemoteAddr at = view.Locate(ref.addr, i);
    RemoteAddr bulk_at;
    if (!in_n_out.Find(at.node, buffer.addr + kBufferBulkOffset, &bulk_at)) return false;
    batch->Write(bulk_at, bulk, bulk_bytes);
    if (i == in_place && copies) InNOut::AddInPlace(*batch, ref, at, w, value);
    images[i] = batch->Read(at, ref.shape.in_place_offset());
    max[i] = in_n_out.AddMax(*batch, {at.node, at.offset + ref.shape.lane_offset(lane)}, expected,
                             posted);
    seals[i] = batch->ReadWord({at.node, at.offset + kSealOffset});
  }
  outcome->begun = batch;
  if (!context_.fabric.PostInline(batch).ok()) return false;
  // Stricter than a majority: what is not everywhere, first-hand and as the largest takes the long
  // way, which may lock.
  for (int i = 0; i < live; ++i) {
    if (!InNOut::IsOf(ref, images[i])) return false;
    const LanesLook lanes = InNOut::LookAtLanes(ref, images[i]);
    const FabricOp& op = batch->op(max[i]);
    ReplicaSeen seen;
    const MaxNext next =
        SeeMax({posted, MetaWord(op.result), op.took(), lane, *seals[i]}, &lanes, {}, &seen);
    const bool is_firsthand = seen.firsthand || Planted(Bug::kInlineWriteOverLarger);
    if (next != MaxNext::kReport || !seen.counts() || !is_firsthand) return false;
  }
  if (LeaseRanOut()) return false;
  outcome->begun = {};
  handle.lane_word = w.AsVerified();
  batch->ClearOps();
  in_n_out.AddVerify(*batch, ref, lane, posted);
  if (!copies) InNOut::AddInPlace(*batch, ref, view.Locate(ref.addr, in_place), w, value);
  handle.past_first = view.epoch;
  (void)context_.fabric.PostInline(batch);
  return true;
}

}  // namespace onetrip
