// READ and WRITE where the fabric completes inline: the steps of Safe-Guess in one turn, while
// nothing is missing and nobody interferes. They cost little more than the memory they touch.
#include <array>
#include <utility>

#include "client_core/replication/safe_guess.h"

namespace onetrip {

bool SafeGuess::ReadAtOnce(RegisterHandle& handle, Tuple* m, const std::byte** image) {
  const RegisterRef& ref = handle.ref;
  const View& view = context_.view();
  const int live = view.LiveReplicas(ref.addr);
  const int needed = max_register_.majority(ref);
  int replica = InNOut::InPlaceReplica(ref, live);
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  std::array<const std::byte*, kMaxReplicas> images;
  std::array<const uint64_t*, kMaxReplicas> seals;
  std::array<NodeId, kMaxReplicas> nodes;
  for (int i = 0; i < needed; ++i) {
    const RemoteAddr at = view.Locate(ref.addr, replica);
    nodes[i] = at.node;
    images[i] = batch->Read(at, i == 0 ? ref.shape.register_bytes() : ref.shape.in_place_offset());
    seals[i] = batch->ReadWord({at.node, at.offset + kSealOffset});
    if (++replica == live) replica = 0;
  }
  if (!context_.fabric.PostInline(batch).ok()) return false;
  InNOut& in_n_out = max_register_.in_n_out();
  MetaWord largest;
  for (int i = 0; i < needed; ++i) {
    if (*seals[i] != 0 || !InNOut::IsOf(ref, images[i])) return false;
    const MetaWord word = InNOut::LargestIn(ref, images[i], &m->lane);
    // Where the region of its buffer is still missing a word does not count.
    const GlobalAddr buffer = word.buffer(ref.addr);
    RemoteAddr at;
    const bool is_beside = word.is_empty() || buffer.region() == ref.addr.region();
    if (!is_beside && !in_n_out.Find(nodes[i], buffer, &at)) return false;
    // All of the majority hold the same write: no write-back is due.
    if (i > 0 && word.AsGuess() != largest.AsGuess()) return false;
    largest = std::max(largest, word);
  }
  if (!largest.verified() || !InNOut::ReadInPlace(ref, images[0], largest, &m->value)) return false;
  m->word = largest;
  m->in_place = true;
  m->has_value = true;
  m->holder = std::move(batch);
  *image = images[0];
  handle.times.seen = std::max(handle.times.seen, m->word.time());
  const uint8_t own = InNOut::LaneOf(context_.membership.id, ref.shape);
  handle.lane_word = std::max(handle.lane_word, InNOut::LaneIn(ref, images[0], own));
  return !LeaseRanOut();
}

bool SafeGuess::WriteAtOnce(RegisterHandle& handle, const OutBuffer& buffer,
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
  const MetaWord expected = handle.lane_word.AsGuess() < w ? handle.lane_word : MetaWord();
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint32_t bulk_bytes = BufferBulkBytes(bytes.size());
  std::byte* bulk = batch->Reserve(bulk_bytes);
  EncodeBuffer({ref.birth.value + *time}, value, bulk);
  std::array<const std::byte*, kMaxReplicas> images;
  std::array<const uint64_t*, kMaxReplicas> seals;
  std::array<size_t, kMaxReplicas> cas;
  const int live = view.LiveReplicas(ref.addr);
  if (max_register_.HasBeside(ref, buffer.addr)) return false;
  const int in_place = InNOut::InPlaceReplica(ref, live);
  for (int i = 0; i < live; ++i) {
    const RemoteAddr at = view.Locate(ref.addr, i);
    RemoteAddr bulk_at;
    if (!in_n_out.Find(at.node, buffer.addr + kBufferBulkOffset, &bulk_at)) return false;
    batch->Write(bulk_at, bulk, bulk_bytes);
    if (i == in_place) InNOut::AddInPlace(*batch, ref, at, w, value);
    images[i] = batch->Read(at, ref.shape.in_place_offset());
    cas[i] = batch->Cas({at.node, at.offset + ref.shape.lane_offset(lane)}, expected.bits(),
                        posted.bits());
    seals[i] = batch->ReadWord({at.node, at.offset + kSealOffset});
  }
  outcome->begun = batch;
  if (!context_.fabric.PostInline(batch).ok()) return false;
  for (int i = 0; i < live; ++i) {
    uint8_t largest_lane = 0;
    if (*seals[i] != 0 || batch->op(cas[i]).result != expected.bits() ||
        !InNOut::IsOf(ref, images[i]) ||
        InNOut::LargestIn(ref, images[i], &largest_lane).AsGuess() >= w) {
      return false;
    }
  }
  if (LeaseRanOut()) return false;
  outcome->begun = {};
  handle.lane_word = w.AsVerified();
  batch->ClearOps();
  in_n_out.AddVerify(*batch, ref, lane, posted);
  (void)context_.fabric.PostInline(batch);
  return true;
}

}  // namespace onetrip
