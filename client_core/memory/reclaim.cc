#include "client_core/memory/reclaim.h"

#include <algorithm>

namespace onetrip {

Reclaimer::~Reclaimer() {
  for (const uint32_t pins : pins_) CHECK(pins == 0);
}

Task<Status> Reclaimer::Publish(uint64_t passed, Backlog backlog, uint64_t* others_largest_passed) {
  const View& view = context_.view();
  const WorkerIndex self = context_.membership.index;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::byte* entry = round_trip->Reserve(sizeof(EpochEntry));
  *reinterpret_cast<EpochEntry*>(entry) = {
      passed, BacklogWord(backlog.bytes, backlog.wanted, backlog.gives, backlog.tight).bits(),
      std::min(passed, backlog.retired_since)};
  for (int replica = 0; replica < view.LiveReplicas(EpochEntryAddr(self)); ++replica) {
    round_trip->Write(view.Locate(EpochEntryAddr(self), replica), entry, sizeof(EpochEntry));
  }
  // An atomic between the write and the read: on shared memory a plain store may still be on its
  // way when the loads behind it are done, and two workers would miss each other.
  round_trip->Faa(view.Locate(EpochEntryAddr(self), 0), 0);
  const uint32_t entries = view.worker_index_end;
  const auto* table = reinterpret_cast<const EpochEntry*>(
      round_trip->Read(view.Locate(EpochEntryAddr(WorkerIndex{0}), 0),
                       entries * static_cast<uint32_t>(sizeof(EpochEntry))));
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;

  uint64_t smallest = ~uint64_t{0};
  uint64_t retired_since = ~uint64_t{0};
  uint64_t others_retired = 0;
  uint64_t others_largest = 0;
  uint64_t others_want = 0;
  bool others_give = false;
  bool others_tight = false;
  for (uint32_t i = 0; i < entries; ++i) {
    if (i != self.value) others_largest = std::max(others_largest, table[i].passed);
    if (!Counts(table[i], i)) continue;
    smallest = std::min(smallest, table[i].passed);
    retired_since = std::min(retired_since, table[i].retired_since);
    if (i == self.value) continue;
    const BacklogWord other(table[i].backlog);
    others_retired += other.retired_bytes();
    if (other.wanted().is_valid()) others_want |= 1ULL << other.wanted().index();
    others_give = others_give || other.gives();
    others_tight = others_tight || other.is_tight();
  }
  // Who joins beside us starts at most one epoch from the others that we have seen.
  if (others_largest_passed != nullptr) *others_largest_passed = others_largest;
  // A worker has joined behind the part of the table that was read: no smallest follows from it.
  if (context_.view().worker_index_end > entries) co_return Status::Ok();
  others_retired_bytes_ = others_retired;
  retired_since_ = retired_since;
  others_want_ = others_want;
  others_give_ = others_give;
  others_tight_ = others_tight;
  if (smallest != ~uint64_t{0}) smallest_passed_ = std::max(smallest_passed_, smallest);
  co_return Status::Ok();
}

Task<Status> Reclaimer::Join() {
  CHECK(current_ == 0);
  // First look at the others, so as not to hold them back; then publish, which stops them: no
  // worker that reads the table from then on goes past us. Until then they may have gone far.
  const View& view = context_.view();
  const uint32_t entries = view.worker_index_end;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* table = reinterpret_cast<const EpochEntry*>(
      round_trip->Read(view.Locate(EpochEntryAddr(WorkerIndex{0}), 0),
                       entries * static_cast<uint32_t>(sizeof(EpochEntry))));
  Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  uint64_t smallest = 0;
  uint64_t largest = 1;
  for (uint32_t i = 0; i < entries; ++i) {
    // Entries of the dead count here, in our own seat, too: no worker starts before them. Else of
    // two that join at once, and of which only one knows who died, one would start there, the other
    // at 1.
    largest = std::max(largest, table[i].passed);
    if (Counts(table[i], i) && i != context_.membership.index.value) {
      smallest = smallest == 0 ? table[i].passed : std::min(smallest, table[i].passed);
    }
  }
  const uint64_t passed = smallest == 0 ? largest : smallest;
  uint64_t others_largest_passed = 0;
  status = co_await Publish(passed, {}, &others_largest_passed);
  if (!status.ok()) co_return status;
  // Now they are in the largest epoch published or in the next one. To start in an earlier one
  // would let us reuse what we unlink while operations of theirs still read it; to start in a later
  // one would let them pass while ours do.
  current_ = std::max(largest, others_largest_passed);
  co_return Status::Ok();
}

// A failed batch that may still take effect holds the worker in its epoch, as a pin would.
Status Reclaimer::CheckSettled() const {
  if (context_.fabric.settled()) return Status::Ok();
  return Status(StatusCode::kUnavailable, "a memory node has not fenced a broken connection yet");
}

Task<Status> Reclaimer::Leave() {
  for (const uint32_t pins : pins_) CHECK(pins == 0);
  const Status settled = CheckSettled();
  if (!settled.ok()) co_return settled;
  current_ = 0;
  co_return co_await Publish(0, {}, nullptr);
}

Task<Status> Reclaimer::Tick(Backlog backlog) {
  if (ticking_ || current_ == 0) co_return Status::Ok();
  const Status settled = CheckSettled();
  if (!settled.ok()) co_return settled;
  ticking_ = true;
  Status status = co_await Publish(Passed(), backlog, nullptr);
  // No worker may run more than one epoch ahead of the slowest: two rings of pins suffice.
  const uint64_t next = smallest_passed_ + 1;
  if (status.ok() && next > current_) {
    if (before_ != nullptr) status = co_await before_->Prepare();
    if (status.ok()) {
      const MechanismScope scope(context_.mechanism_observer, Mechanism::kEpochAdvance);
      current_ = next;
    }
  }
  ticking_ = false;
  co_return status;
}

}  // namespace onetrip
