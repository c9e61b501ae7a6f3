#include "client_core/replication/in_n_out.h"

#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

using State = ReplicaReply::State;

uint64_t WordAt(const std::byte* image, uint64_t offset) {
  uint64_t word;
  std::memcpy(&word, image + offset, sizeof(word));
  return word;
}

RemoteAddr Plus(RemoteAddr at, uint64_t bytes) { return {at.node, at.offset + bytes}; }

}  // namespace

bool InNOut::Find(const RegisterRef& ref, int replica, GlobalAddr addr, RemoteAddr* at) {
  const View& view = context_.view();
  if (!view.Contains(addr)) return false;
  const NodeId node = view.Locate(ref.addr, replica).node;
  *at = view.LocateOn(addr, node);
  return at->node == node;
}

RemoteAddr InNOut::At(const RegisterRef& ref, int replica, GlobalAddr addr) {
  RemoteAddr at;
  CHECK(Find(ref, replica, addr, &at));
  return at;
}

bool InNOut::StillThere(const RegisterRef& ref, int replica, NodeId node) {
  return context_.view().Locate(ref.addr, replica).node == node;
}

RoundTripPtr InNOut::WriteBuffer(const RegisterRef& ref, int replica, MetaWord word,
                                 const WrittenValue& value) {
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint32_t bytes = BufferBulkBytes(value.bytes.size());
  std::byte* bulk = batch->Reserve(bytes);
  EncodeBuffer({ref.birth.value + word.time()}, value, bulk);
  const GlobalAddr buffer = word.buffer(ref.addr) + kBufferBulkOffset;
  batch->Write(At(ref, replica, buffer), bulk, bytes);
  return batch;
}

// SWARM Algorithm "write", lines 5 and 6; 4.4 "MAX".
Task<void> InNOut::Write(QuorumCall::Share share, RegisterRef ref, LaneWrite write,
                         RoundTripPtr batch) {
  ReplicaReply& reply = share.reply();
  const RemoteAddr at = At(ref, share.replica(), ref.addr);
  // A CAS from a larger word would set the lane back.
  MetaWord expected = write.expected < write.word ? write.expected : MetaWord();
  for (uint32_t attempt = 0; attempt <= options_.cas_retries_max; ++attempt) {
    const RemoteAddr lane = Plus(at, ref.shape.lane_offset(write.lane));
    const bool plainly = expected.is_empty() && Planted(Bug::kFirstWordPlain);
    if (plainly) batch->WriteWord(lane, write.word.bits());
    const size_t cas = batch->Cas(lane, expected.bits(), write.word.bits());
    const bool reads = attempt == 0 && write.read_lanes;
    const std::byte* image = reads ? batch->Read(at, ref.shape.in_place_offset()) : nullptr;
    const uint64_t* seal = batch->ReadWord(Plus(at, kSealOffset));
    const Status status = co_await context_.fabric.Post(batch);
    ++reply.round_trips;
    if (!status.ok() || !StillThere(ref, share.replica(), at.node)) break;
    if (reads && !Examine(ref, image, batch, reply)) break;

    const MetaWord found(batch->op(cas).result);
    if (found == expected || found >= write.word) {
      reply.own_lane = found == expected ? write.word : found;
      if (reply.own_lane > reply.largest) {
        reply.largest = reply.own_lane;
        reply.lane = write.lane;
      }
      reply.seal = Planted(Bug::kSealNotRead) ? 0 : *seal;
      co_return share.Report(reply.seal == 0 ? State::kCounted : State::kSealed);
    }
    expected = found;
    batch = context_.fabric.NewRoundTrip();
  }
  share.Report(State::kFailed);
}

// SWARM Algorithm "read", line 12.
Task<void> InNOut::Read(QuorumCall::Share share, RegisterRef ref) {
  ReplicaReply& reply = share.reply();
  const RemoteAddr at = At(ref, share.replica(), ref.addr);
  const bool in_place = share.replica() == InPlaceReplica(ref, context_.view().replicas);
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const std::byte* image = nullptr;
  const uint64_t* seal = AddReads(*batch, ref, share.replica(), in_place, &image);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref, share.replica(), at.node) ||
      !Examine(ref, image, batch, reply)) {
    co_return share.Report(State::kFailed);
  }
  reply.seal = Planted(Bug::kSealNotRead) ? 0 : *seal;
  share.Report(reply.seal == 0 ? State::kCounted : State::kSealed);
}

// Line 15.
Task<void> InNOut::ReadBuffer(QuorumCall::Share share, RegisterRef ref, MetaWord word) {
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!Find(ref, share.replica(), word.buffer(ref.addr) + kBufferBulkOffset, &at)) {
    co_return share.Report(State::kFailed);
  }
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint32_t bytes = ref.shape.buffer_bytes - kBufferBulkOffset;
  const std::byte* image = batch->Read(at, bytes);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  WrittenValue value;
  const bool good = status.ok() && StillThere(ref, share.replica(), at.node) &&
                    DecodeBuffer(image, bytes, {ref.birth.value + word.time()}, &value);
  reply.image = image;
  reply.round_trip = batch;
  share.Report(good ? State::kCounted : State::kFailed);
}

// PROTOCOLS 3.4: the lanes are read after the seal, in the same batch.
Task<void> InNOut::Seal(QuorumCall::Share share, RegisterRef ref, SealWord seal) {
  ReplicaReply& reply = share.reply();
  const RemoteAddr at = At(ref, share.replica(), ref.addr);
  const bool in_place = share.replica() == InPlaceReplica(ref, context_.view().replicas);
  const uint32_t bytes = in_place ? ref.shape.register_bytes() : ref.shape.in_place_offset();
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const std::byte* image = nullptr;
  if (Planted(Bug::kLanesBeforeSeal)) image = batch->Read(at, bytes);
  const size_t cas = batch->Cas(Plus(at, kSealOffset), 0, seal.bits());
  if (image == nullptr) image = batch->Read(at, bytes);
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref, share.replica(), at.node) ||
      !Examine(ref, image, batch, reply)) {
    co_return share.Report(State::kFailed);
  }
  const SealWord found(batch->op(cas).result);
  reply.seal = found.open() ? seal.bits() : found.bits();
  share.Report(State::kCounted);
}

Task<void> InNOut::ReadFinal(QuorumCall::Share share, RegisterRef ref) {
  ReplicaReply& reply = share.reply();
  const RemoteAddr at = At(ref, share.replica(), ref.addr);
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  const uint64_t* word = batch->ReadWord(Plus(at, kFinalOffset));
  const Status status = co_await context_.fabric.Post(batch);
  ++reply.round_trips;
  if (!status.ok() || !StillThere(ref, share.replica(), at.node)) {
    co_return share.Report(State::kFailed);
  }
  reply.final_word = *word;
  share.Report(State::kCounted);
}

// SWARM Algorithm "write", line 7. A lane that does not hold the guess is left alone: it holds a
// larger word, or a connection was lost and the replica may lack the buffer.
Task<void> InNOut::Verify(RegisterRef ref, uint8_t lane, MetaWord word, WrittenValue value,
                          SharedPin /*pin*/) {
  RoundTripPtr batch = VerifyBatch(ref, lane, word, value);
  if (batch->empty()) co_return;
  // A lost replica is a later reader's second round trip, no more.
  (void)co_await context_.fabric.Post(batch);
}

RoundTripPtr InNOut::VerifyBatch(const RegisterRef& ref, uint8_t lane, MetaWord word,
                                 const WrittenValue& value) {
  const int replicas = context_.view().replicas;
  RoundTripPtr batch = context_.fabric.NewRoundTrip();
  for (int replica = 0; replica < replicas; ++replica) {
    const RemoteAddr at = At(ref, replica, ref.addr);
    if (!word.verified()) {
      batch->Cas(Plus(at, ref.shape.lane_offset(lane)), word.bits(), word.AsVerified().bits());
    }
    if (replica == InPlaceReplica(ref, replicas) && ref.shape.in_place_bytes > 0 &&
        value.bytes.size() <= ref.shape.in_place_bytes) {
      const uint32_t bytes = InPlaceBytes(value.bytes.size());
      std::byte* copy = batch->Reserve(bytes);
      EncodeInPlace(word.AsVerified(), value, copy);
      batch->Write(Plus(at, ref.shape.in_place_offset()), copy, bytes);
    }
  }
  return batch;
}

const uint64_t* InNOut::AddReads(RoundTrip& batch, const RegisterRef& ref, int replica,
                                 bool in_place, const std::byte** image) {
  const RemoteAddr at = At(ref, replica, ref.addr);
  *image = batch.Read(at, in_place ? ref.shape.register_bytes() : ref.shape.in_place_offset());
  return batch.ReadWord(Plus(at, kSealOffset));
}

bool InNOut::ReadInPlace(const RegisterRef& ref, const ReplicaReply& reply, MetaWord word,
                         WrittenValue* value) {
  if (reply.image == nullptr || ref.shape.in_place_bytes == 0) return false;
  return DecodeInPlace(reply.image + ref.shape.in_place_offset(),
                       InPlaceBytes(ref.shape.in_place_bytes), word, value);
}

MetaWord InNOut::LaneIn(const RegisterRef& ref, const ReplicaReply& reply, uint8_t lane) {
  return reply.image == nullptr ? MetaWord()
                                : MetaWord(WordAt(reply.image, ref.shape.lane_offset(lane)));
}

bool InNOut::Examine(const RegisterRef& ref, const std::byte* image, const RoundTripPtr& batch,
                     ReplicaReply& reply) {
  reply.image = image;
  reply.round_trip = batch;
  RegisterHeader header;
  std::memcpy(&header, reply.image, sizeof(header));
  reply.foreign = header.incarnation != ref.incarnation || header.birth_ticks != ref.birth.value;
  for (uint32_t lane = 0; lane < ref.shape.lanes; ++lane) {
    const MetaWord word(WordAt(reply.image, ref.shape.lane_offset(lane)));
    if (word <= reply.largest) continue;
    reply.largest = word;
    reply.lane = static_cast<uint8_t>(lane);
  }
  return !reply.foreign;
}

}  // namespace onetrip
