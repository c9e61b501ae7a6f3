#include "client_core/replication/in_n_out.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

using State = ReplicaSeen::State;

RemoteAddr Plus(RemoteAddr at, uint64_t bytes) { return {at.node, at.offset + bytes}; }

}  // namespace

RoundTripPtr InNOut::WriteBuffer(const RegisterRef& ref, NodeId node, MetaWord word,
                                 const WrittenValue& value) {
  RemoteAddr at;
  if (!Find(node, PlaceOfValue(ref.addr, ref.shape, word).addr, &at)) return {};
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint32_t bytes = PlacedBytes(word, value.bytes.size());
  std::byte* placed = batch->Reserve(bytes);
  EncodePlaced(ref.birth, word, value, placed);
  batch->Write(at, placed, bytes);
  return batch;
}

RoundTripPtr InNOut::WriteBufferValue(NodeId node, GlobalAddr buffer,
                                      std::span<const std::byte> bytes) {
  RemoteAddr at;
  if (!Find(node, buffer + kBufferHeaderBytes, &at)) return {};
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  if (bytes.empty()) return batch;
  std::byte* copy = batch->Reserve(bytes.size());
  std::memcpy(copy, bytes.data(), bytes.size());
  batch->Write(at, copy, static_cast<uint32_t>(bytes.size()));
  return batch;
}

RoundTripPtr InNOut::WriteBufferHeader(const RegisterRef& ref, NodeId node, MetaWord word,
                                       const WrittenValue& value) {
  RemoteAddr at;
  if (!Find(node, word.buffer(ref.addr) + kBufferBulkOffset, &at)) return {};
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  std::byte* bulk = batch->Reserve(BufferBulkBytes(value.bytes.size()));
  EncodeBuffer({ref.birth.value + word.time()}, value, bulk);
  batch->Write(at, bulk, BufferBulkBytes(0));
  return batch;
}

// SWARM Algorithm "write", lines 5 and 6; 4.4 "MAX".
Task<void> InNOut::Write(QuorumCall::Share share, RegisterRef ref, LaneWrite write,
                         RoundTripPtr batch, RoundTripPtr behind) {
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!Find(share.node(), ref.addr, &at)) co_return share.Report(State::kFailed);
  MetaWord expected = ExpectedInLane(write.expected, write.word);
  const bool by_atomics = !context_.fabric.traits().reads_first && !Planted(Bug::kLooksByRead);
  LanesLook lanes;
  for (uint32_t attempt = 0; attempt <= options_.cas_retries_max; ++attempt) {
    const RemoteAddr lane = Plus(at, ref.shape.lane_offset(write.lane));
    const bool plainly = expected.is_empty() && Planted(Bug::kFirstWordPlain);
    if (plainly) batch->WriteWord(lane, write.word.bits());
    // The lanes first: a reader of the word in its lane finds there all that is looked at here.
    const bool reads = attempt == 0 && write.read_lanes;
    const std::byte* image = reads ? batch->Read(at, ref.shape.in_place_offset()) : nullptr;
    const size_t look = reads && by_atomics ? AddLook(*batch, ref, at, write.lane) : 0;
    const size_t max = AddMax(*batch, lane, expected, write.word);
    const uint64_t* seal = batch->ReadWord(Plus(at, kSealOffset));
    const Status status = co_await context_.fabric.Post(batch);
    ++reply.round_trips;
    if (!status.ok() || !StillThere(ref.addr, at.node)) break;
    if (reads) {
      reply.image = image;
      reply.round_trip = batch;
      share.seen().foreign = !IsOf(ref, image);
      if (share.seen().foreign) break;
      lanes = by_atomics ? TakeLook(ref, *batch, look, write.lane) : LookAtLanes(ref, image);
    }
    const MetaWord found(batch->op(max).result);
    ReplicaSeen seen = share.seen();
    const MaxNext next = SeeMax({write.word, found, batch->op(max).took(), write.lane, *seal},
                                write.read_lanes ? &lanes : nullptr, write.earlier, &seen);
    if (next == MaxNext::kFail) break;
    if (next == MaxNext::kReport) {
      share.Report(seen);
      const bool is_last = seen.counts() && seen.largest.AsGuess() == write.word.AsGuess();
      if (behind && is_last) (void)co_await context_.fabric.Post(behind);
      co_return;
    }
    expected = found;
    batch = context_.fabric.NewRoundTrip();
  }
  share.Report(State::kFailed);
}

// SWARM Algorithm "read", line 12.
Task<void> InNOut::Read(QuorumCall::Share share, RegisterRef ref, bool looks_twice,
                        RoundTripPtr batch) {
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!Find(share.node(), ref.addr, &at)) co_return share.Report(State::kFailed);
  const bool in_place = ReadsInPlace(ref.addr, share);
  if (!batch) batch = context_.fabric.NewRoundTrip();
  const std::byte* image = nullptr;
  const uint64_t* seal =
      AddReads(*batch, ref, at, in_place, looks_twice ? ref.shape.in_place_offset() : 0, &image);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref.addr, at.node)) co_return share.Report(State::kFailed);
  reply.image = image;
  reply.round_trip = batch;
  share.Report(SeeRead(LookAt(ref, at.node, image, seal, looks_twice)));
}

Task<void> InNOut::ReadNamed(QuorumCall::Share share, SlotWord word, RegisterShape expected) {
  ReplicaReply& reply = share.reply();
  const GlobalAddr addr = word.addr();
  RemoteAddr at;
  if (!Find(share.node(), addr, &at)) co_return share.Report(State::kFailed);
  const auto class_bytes = static_cast<uint32_t>(word.size_class().bytes());
  const uint32_t bytes =
      ReadsInPlace(addr, share) ? class_bytes : std::min(class_bytes, expected.in_place_offset());
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const std::byte* image = batch->Read(at, bytes);
  const uint64_t* seal = batch->ReadWord(Plus(at, kSealOffset));
  const Status status = co_await context_.fabric.Post(batch);
  if (!status.ok() || !StillThere(addr, at.node)) co_return share.Report(State::kFailed);
  RegisterHeader header;
  RegisterRef ref;
  if (!LoadRegisterShape(word, image, &header, &ref.shape) || ref.shape.in_place_offset() > bytes) {
    co_return share.Report(State::kFailed);
  }
  ref.addr = addr;
  ref.incarnation = header.incarnation;
  ref.birth = Ticks{header.birth_ticks};
  reply.image = image;
  reply.round_trip = batch;
  share.Report(SeeRead(LookAt(ref, at.node, image, seal, /*looks_twice=*/false)));
}

RoundTripPtr InNOut::ReadBufferBeside(QuorumCall::Share& share, const RegisterRef& ref,
                                      MetaWord word) {
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const std::byte* image = AddBufferRead(*batch, ref, share.node(), word);
  if (image == nullptr) return {};
  share.reply().buffer = image;
  share.reply().buffer_of = word;
  return batch;
}

// Line 15.
Task<void> InNOut::ReadBuffer(QuorumCall::Share share, RegisterRef ref, MetaWord word) {
  ReplicaReply& reply = share.reply();
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const std::byte* image = AddBufferRead(*batch, ref, share.node(), word);
  if (image == nullptr) co_return share.Report(State::kFailed);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  WrittenValue value;
  const bool good =
      status.ok() && StillThere(ref.addr, share.node()) && TakeBuffer(ref, image, word, &value);
  reply.image = image;
  reply.round_trip = batch;
  share.Report(good ? State::kCounted : State::kFailed);
}

// PROTOCOLS, "One key, two forms": the lanes are read after the seal, in the same batch.
Task<void> InNOut::Seal(QuorumCall::Share share, RegisterRef ref, SealWord seal) {
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!Find(share.node(), ref.addr, &at)) co_return share.Report(State::kFailed);
  const bool in_place = ReadsInPlace(ref.addr, share);
  const uint32_t bytes = in_place ? ref.shape.register_bytes() : ref.shape.in_place_offset();
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  RoundTripPtr lanes = batch;
  const std::byte* image = nullptr;
  if (Planted(Bug::kLanesBeforeSeal)) {
    image = lanes->Read(at, bytes);
    (void)co_await context_.fabric.Post(lanes);
    batch = context_.fabric.NewRoundTrip();
  }
  const size_t cas = batch->Cas(Plus(at, kSealOffset), 0, seal.bits());
  if (image == nullptr) image = batch->Read(at, bytes);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref.addr, at.node)) co_return share.Report(State::kFailed);
  reply.image = image;
  reply.round_trip = lanes;
  ReplicaSeen seen;
  seen.foreign = !IsOf(ref, image);
  seen.largest = LargestIn(ref, image, &seen.lane);
  const SealWord found(batch->op(cas).result);
  seen.seal = found.open() ? seal.bits() : found.bits();
  seen.state = seen.foreign ? State::kFailed : State::kCounted;
  share.Report(seen);
}

Task<void> InNOut::ReadFinal(QuorumCall::Share share, RegisterRef ref) {
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!Find(share.node(), ref.addr, &at)) co_return share.Report(State::kFailed);
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint64_t* word = batch->ReadWord(Plus(at, kFinalOffset));
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref.addr, at.node)) {
    co_return share.Report(State::kFailed);
  }
  reply.final_word = *word;
  share.Report(State::kCounted);
}

// SWARM Algorithm "write", line 7. A lane that does not hold the guess is left alone: it holds a
// larger word, or a connection was lost and the replica may lack the buffer.
Task<void> InNOut::Verify(RegisterRef ref, uint8_t lane, MetaWord word, SharedPin /*pin*/) {
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  AddVerify(*batch, ref, lane, word);
  if (batch->empty()) co_return;
  // A lost replica is a later reader's second round trip, no more.
  (void)co_await context_.fabric.Post(batch);
}

Task<void> InNOut::CopyInPlace(RegisterRef ref, MetaWord word, WrittenValue value, Epoch known_in,
                               SharedPin /*pin*/) {
  const View& view = context_.view();
  if (view.epoch != known_in) co_return;
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  AddInPlace(*batch, ref,
             view.Locate(ref.addr, InPlaceReplica(ref.addr, view.LiveReplicas(ref.addr))), word,
             value);
  if (batch->empty()) co_return;
  (void)co_await context_.fabric.Post(batch);
}

// Buffer, copy in place, header, seal, lanes and seal again go in one batch.
static_assert(kLanesMax + 5 <= RoundTrip::kMaxOps);

size_t InNOut::AddLook(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at, uint8_t own) {
  const size_t first = batch.Faa(Plus(at, kSealOffset), 0);
  for (uint32_t lane = 0; lane < ref.shape.lanes; ++lane) {
    if (lane != own) batch.Faa(Plus(at, ref.shape.lane_offset(lane)), 0);
  }
  return first;
}

LanesLook InNOut::TakeLook(const RegisterRef& ref, const RoundTrip& batch, size_t first,
                           uint8_t own) {
  LanesLook look;
  look.open = batch.op(first).result == 0;
  size_t next = first + 1;
  for (uint32_t lane = 0; lane < ref.shape.lanes; ++lane) {
    if (lane == own) continue;
    const MetaWord word(batch.op(next++).result);
    if (word <= look.largest) continue;
    look.largest = word;
    look.lane = static_cast<uint8_t>(lane);
  }
  return look;
}

void InNOut::AddVerify(RoundTrip& batch, const RegisterRef& ref, uint8_t lane, MetaWord word) {
  if (word.verified()) return;
  const View& view = context_.view();
  const int live = view.LiveReplicas(ref.addr);
  const GlobalAddr at = ref.addr + ref.shape.lane_offset(lane);
  for (int replica = 0; replica < live; ++replica) {
    batch.Cas(view.Locate(at, replica), word.bits(), word.AsVerified().bits());
  }
}

void InNOut::AddInPlace(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at, MetaWord word,
                        const WrittenValue& value) {
  if (ref.shape.in_place_bytes == 0 || value.bytes.size() > ref.shape.in_place_bytes) return;
  const uint32_t bytes = InPlaceBytes(value.bytes.size());
  std::byte* copy = batch.Reserve(bytes);
  EncodeInPlace(word, value, copy);
  batch.Write(Plus(at, ref.shape.in_place_offset()), copy, bytes);
}

const uint64_t* InNOut::AddReads(RoundTrip& batch, const RegisterRef& ref, RemoteAddr at,
                                 bool in_place, uint64_t seal_to, const std::byte** image) {
  *image = batch.Read(at, in_place ? ref.shape.register_bytes() : ref.shape.in_place_offset());
  const uint64_t bytes = seal_to == 0 ? sizeof(uint64_t) : seal_to - kSealOffset;
  return reinterpret_cast<const uint64_t*>(
      batch.Read(Plus(at, kSealOffset), static_cast<uint32_t>(bytes)));
}

EarlierLook InNOut::LookBack(const RegisterRef& ref, RoundTrip& batch, NodeId node) {
  EarlierLook look;
  for (const FabricOp& op : batch.ops()) {
    if (op.node != node) continue;
    look.posted = true;
    if (op.kind == FabricOpKind::kCas || op.kind == FabricOpKind::kMax) {
      look.took = op.ok && op.took();
      look.lost = !op.ok;
    }
    // The seal is the only other READ.
    if (op.kind != FabricOpKind::kRead || op.bytes == sizeof(uint64_t) || !op.ok) continue;
    look.known = true;
    const LanesLook lanes = LookAtLanes(ref, op.local);
    look.open = lanes.open;
    look.largest = lanes.largest;
    look.lane = lanes.lane;
  }
  return look;
}

bool InNOut::ReadInPlace(const RegisterRef& ref, const std::byte* image, MetaWord word,
                         WrittenValue* value) {
  return ref.shape.in_place_bytes > 0 &&
         DecodeInPlace(image + ref.shape.in_place_offset(), InPlaceBytes(ref.shape.in_place_bytes),
                       word, value);
}

const std::byte* InNOut::AddBufferRead(RoundTrip& batch, const RegisterRef& ref, NodeId node,
                                       MetaWord word) const {
  const ValuePlace place = PlaceOfValue(ref.addr, ref.shape, word);
  RemoteAddr at;
  if (place.bytes == 0 || !Find(node, place.addr, &at)) return nullptr;
  return batch.Read(at, place.bytes);
}

bool InNOut::TakeBuffer(const RegisterRef& ref, const std::byte* image, MetaWord word,
                        WrittenValue* value) {
  const uint32_t bytes = PlaceOfValue(ref.addr, ref.shape, word).bytes;
  return DecodePlaced(ref.birth, word, image, bytes, value);
}

}  // namespace onetrip
