#include "client_core/index/resolve_slots.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "client_core/base/planted_bug.h"
#include "client_core/index/claim_rules.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_codec.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // words per READ
constexpr size_t kSubtablesAtOnce = 4;

// Behind the last entry that a subtable of this depth, or its split, may have made.
uint32_t DirectoryEnd(uint32_t depth) {
  return std::min(kDirectoryEntries, 2U << std::min(depth, kMaxDepth));
}

// Returns true if `other` is the record or register that `image` is, in the bytes that no worker
// changes: all but the log word, and of a register the part that its creator wrote once.
bool IsTheSame(SlotWord word, const std::byte* image, const std::byte* other, uint64_t bytes) {
  const uint64_t fixed = word.is_register() ? uint64_t{kFinalOffset} : bytes;
  return std::memcmp(image + sizeof(uint64_t), other + sizeof(uint64_t),
                     fixed - sizeof(uint64_t)) == 0;
}

bool IsWhole(SlotWord word, const std::byte* image, uint64_t bytes, RegisterShape* shape) {
  if (!word.is_register()) return RecordIsIntact(image, bytes);
  RegisterHeader header;
  return LoadRegisterShape(word, image, &header, shape);
}

}  // namespace

Task<Status> SlotResolver::Run() {
  std::vector<GlobalAddr> subtables;
  Status status = co_await ResolveDirectory(&subtables);
  for (size_t first = 0; status.ok() && first < subtables.size(); first += kSubtablesAtOnce) {
    const size_t count = std::min(kSubtablesAtOnce, subtables.size() - first);
    status = co_await ResolveSubtables(subtables.data() + first, count);
  }
  co_return status;
}

void SlotResolver::AddReads(RoundTrip& round_trip, GlobalAddr at, uint32_t words,
                            std::vector<const uint64_t*>* images) const {
  for (int replica = 0; replica < view_.LiveReplicas(at); ++replica) {
    images->push_back(
        reinterpret_cast<const uint64_t*>(round_trip.Read(view_.Locate(at, replica), words * 8)));
  }
}

Task<Status> SlotResolver::ResolveDirectory(std::vector<GlobalAddr>* subtables) {
  const int replicas = view_.LiveReplicas(DirectoryAddr(0, view_.directory));
  // A subtable of depth d, or one that is being split to it, has an entry below 2^d: further on
  // there is nothing.
  uint32_t end = 2;
  uint32_t count = 0;
  for (uint32_t first = 0; first < end; first += count) {
    count = std::min(end - first, kDirectoryStretch);
    RoundTripPtr round_trip = fabric_.NewRoundTrip();
    std::vector<const uint64_t*> images;
    AddReads(*round_trip, DirectoryAddr(first, view_.directory), count, &images);
    Status status = co_await fabric_.Post(round_trip);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < count; ++i) {
      Found found{DirectoryAddr(first + i, view_.directory), replicas, {}};
      bool differ = false;
      for (int replica = 0; replica < replicas; ++replica) {
        found.words[replica] = images[replica][i];
        differ |= images[replica][i] != images[0][i];
        // A new subtable has the one word that is there; for a known one, any of them will do.
        const DirectoryWord word(images[replica][i]);
        if (word.is_used()) end = std::max(end, DirectoryEnd(word.depth()));
        const bool is_new =
            word.is_used() && (subtables->empty() || subtables->back() != word.subtable());
        if (is_new) subtables->push_back(word.subtable());
      }
      if (!differ) continue;
      status = co_await Resolve(found, /*is_slot=*/false);
      if (!status.ok()) co_return status;
    }
  }
  co_return Status::Ok();
}

Task<Status> SlotResolver::ResolveSubtables(const GlobalAddr* subtables, size_t count) {
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  std::vector<const uint64_t*> images;
  for (size_t i = 0; i < count; ++i) {
    if (!view_.Contains(subtables[i])) {
      co_return Status(StatusCode::kCorrupt, "a directory entry points outside the pool");
    }
    AddReads(*round_trip, subtables[i], kSubtableBytes / 8, &images);
  }
  Status status = co_await fabric_.Post(round_trip);
  if (!status.ok()) co_return status;
  const uint64_t* const* image = images.data();
  for (size_t i = 0; i < count; ++i) {
    const int replicas = view_.LiveReplicas(subtables[i]);
    for (uint32_t word = 0; word < kSubtableBytes / 8; ++word) {
      Found found{subtables[i] + word * 8, replicas, {}};
      bool differ = false;
      for (int replica = 0; replica < replicas; ++replica) {
        found.words[replica] = image[replica][word];
        differ |= image[replica][word] != image[0][word];
      }
      const bool is_slot = word % kGroupWords != kGroupHeaderWord;
      const bool is_claim = is_slot && SlotWord(found.words[0]).kind() == SlotKind::kTentative &&
                            !Planted(Bug::kResolveKeepsClaims);
      if (!differ && !is_claim) continue;
      status = co_await Resolve(found, is_slot);
      if (!status.ok()) co_return status;
    }
    image += replicas;
  }
  co_return Status::Ok();
}

// Algorithm 3, lines 5-7. Directory entries and group headers name nothing that could be torn.
Task<Status> SlotResolver::Resolve(Found found, bool is_slot) {
  uint64_t chosen = found.words[0];
  if (is_slot) {
    const Result<uint64_t> word = co_await ChooseWord(found);
    if (!word.ok()) co_return word.status();
    chosen = *word;
  }
  if (Planted(Bug::kResolveTakesBackup)) chosen = found.words[found.replicas - 1];
  // The primary last, as in any write.
  for (const bool backups : {true, false}) {
    RoundTripPtr round_trip = fabric_.NewRoundTrip();
    for (int replica = backups ? 1 : 0; replica < (backups ? found.replicas : 1); ++replica) {
      if (found.words[replica] == chosen) continue;
      round_trip->Cas(view_.Locate(found.at, replica), found.words[replica], chosen);
    }
    if (round_trip->empty()) continue;
    const Status status = co_await fabric_.Post(round_trip);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < round_trip->size(); ++i) {
      const FabricOp& op = round_trip->op(i);
      // The CAS of a worker that was cut short may come late, from a claim to its commit.
      if (op.result == op.expected || op.result == chosen) continue;
      co_return Status(StatusCode::kCorrupt, "a slot changed while all slots were held");
    }
  }
  ++resolved_;
  co_return Status::Ok();
}

Task<Result<uint64_t>> SlotResolver::ChooseWord(const Found& found) {
  const SlotWord primary(found.words[0]);
  const std::span<const uint64_t> replicas(found.words.data(), found.replicas);
  if (primary.kind() == SlotKind::kTentative && !Planted(Bug::kResolveKeepsClaims)) {
    const SlotWord word = ResolvedClaim(primary, replicas.subspan(1), new_empty_());
    if (word.is_empty()) co_return word.bits();
    // All backups hold its commit, and so have what it names.
    const Result<bool> whole = co_await MakeWhole(word, view_.Locate(found.at, 1).node);
    if (!whole.ok()) co_return whole.status();
    co_return whole.value() ? word.bits() : new_empty_().bits();
  }
  for (int replica = 0; replica < found.replicas; ++replica) {
    const Result<bool> whole =
        co_await MakeWhole(SlotWord(found.words[replica]), view_.Locate(found.at, replica).node);
    if (!whole.ok()) co_return whole.status();
    if (whole.value()) co_return found.words[replica];
  }
  co_return found.words[0];
}

// The writes of what a word names go with its first CAS, ahead of it on every channel: a node that
// has the word has what it names, unless that lies on other nodes.
Task<Result<bool>> SlotResolver::MakeWhole(SlotWord word, NodeId node) {
  if (word.is_empty()) co_return true;
  if (!word.size_class().is_valid() || !view_.Contains(word.addr())) co_return false;
  const GlobalAddr addr = word.addr();
  const int replicas = view_.LiveReplicas(addr);
  const uint64_t bytes = word.size_class().bytes();
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  std::array<const std::byte*, kMaxReplicas> images{};
  for (int replica = 0; replica < replicas; ++replica) {
    images[replica] = round_trip->Read(view_.Locate(addr, replica), static_cast<uint32_t>(bytes));
  }
  Status status = co_await fabric_.Post(round_trip);
  if (!status.ok()) co_return status;
  int source = -1;
  RegisterShape shape;
  for (int replica = 0; replica < replicas; ++replica) {
    if (!IsWhole(word, images[replica], bytes, &shape)) continue;
    const bool is_here = view_.Locate(addr, replica).node == node;
    if (source < 0 || is_here) source = replica;
  }
  if (source < 0) co_return false;
  const std::byte* image = images[source];
  const uint64_t whole_bytes =
      word.is_register() ? shape.register_bytes() : RecordBytesOf(LoadRecordHeader(image));
  RoundTripPtr copies = fabric_.NewRoundTrip();
  for (int replica = 0; replica < replicas; ++replica) {
    if (IsTheSame(word, image, images[replica], whole_bytes)) continue;
    copies->Write(view_.Locate(addr, replica), image, static_cast<uint32_t>(whole_bytes));
  }
  if (copies->empty()) co_return true;
  status = co_await fabric_.Post(copies);
  if (!status.ok()) co_return status;
  if (word.is_register()) {
    status = co_await CarryBuffers(word, image, view_.Locate(addr, source).node);
    if (!status.ok()) co_return status;
  }
  co_return true;
}

// Copies the values of a register that did not reach every replica. They are its creator's alone,
// for no other worker has found it.
Task<Status> SlotResolver::CarryBuffers(SlotWord word, const std::byte* image, NodeId node) {
  RegisterHeader header;
  RegisterShape shape;
  if (!LoadRegisterShape(word, image, &header, &shape)) co_return Status::Ok();
  for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
    uint64_t bits = 0;
    std::memcpy(&bits, image + shape.lane_offset(lane), sizeof(bits));
    if (bits == 0 || MetaWord(bits).is_in_register()) continue;
    const GlobalAddr bulk = MetaWord(bits).buffer(word.addr()) + kBufferBulkOffset;
    if (!view_.Contains(bulk)) continue;
    const auto bytes = static_cast<uint32_t>(shape.buffer_bytes - kBufferBulkOffset);
    const RemoteAddr from = view_.LocateOn(bulk, node);
    RoundTripPtr round_trip = fabric_.NewRoundTrip();
    const std::byte* value = round_trip->Read(from, bytes);
    Status status = co_await fabric_.Post(round_trip);
    if (!status.ok()) co_return status;
    round_trip->ClearOps();
    for (int replica = 0; replica < view_.LiveReplicas(bulk); ++replica) {
      const RemoteAddr to = view_.Locate(bulk, replica);
      if (to.node != from.node) round_trip->Write(to, value, bytes);
    }
    if (round_trip->empty()) continue;
    status = co_await fabric_.Post(round_trip);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

}  // namespace onetrip
