#include "client_core/memory/retired_registers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr uint64_t kEntriesPerBatch = 512;

uint64_t EntriesOf(GlobalAddr ring, WorkerIndex seat) {
  return ring == SeatRingAddr(seat) ? kSeatRingEntries : kRetiredRingEntries;
}

}  // namespace

Task<Status> RetiredRegisters::WriteHead(GlobalAddr ring, uint64_t head) {
  const Status status =
      co_await WriteEntry({ring.bits(), head, context_.membership.id.value, doubts_});
  if (status.ok()) told_ring_ = ring;
  co_return status;
}

Task<Status> RetiredRegisters::SignOff() { return WriteEntry({}); }

Task<Status> RetiredRegisters::WriteEntry(RetiredRing written) {
  const View& view = context_.view();
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::byte* entry = round_trip->Reserve(sizeof(RetiredRing));
  *reinterpret_cast<RetiredRing*>(entry) = written;
  const GlobalAddr at = RetiredRingAddr(context_.membership.index);
  for (int replica = 0; replica < view.LiveReplicas(at); ++replica) {
    round_trip->Write(view.Locate(at, replica), entry, sizeof(RetiredRing));
  }
  co_return co_await context_.fabric.Post(round_trip);
}

Task<Status> RetiredRegisters::ClearRing() {
  const View& view = context_.view();
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const GlobalAddr at = RetiredRingAddr(context_.membership.index);
  for (int replica = 0; replica < view.LiveReplicas(at); ++replica) {
    round_trip->WriteWord(view.Locate(at + offsetof(RetiredRing, ring), replica), 0);
    round_trip->WriteWord(view.Locate(at + offsetof(RetiredRing, head), replica), 0);
  }
  co_return co_await context_.fabric.Post(round_trip);
}

Task<Result<GlobalAddr>> RetiredRegisters::Leave() {
  if (ring_.is_null() && given_.is_null()) co_return GlobalAddr();
  const Status status = co_await WriteHead(GlobalAddr(), 0);
  if (!status.ok()) co_return status;
  ring_ = GlobalAddr();
  co_return std::exchange(given_, GlobalAddr());
}

Task<Status> RetiredRegisters::Join() {
  // A reader may see any part of one WRITE: no ring of the seat's last owner is taken for this
  // one's.
  Status status = co_await ClearRing();
  if (!status.ok()) co_return status;
  status = co_await WriteHead(GlobalAddr(), 0);
  if (!status.ok()) co_return status;
  std::vector<RetiredRing> heads;
  status = co_await ReadHeads(&heads);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool is_gone = !context_.view().IsLive(WorkerIndex{static_cast<uint16_t>(i)});
    seen_[i] = {heads[i].worker, heads[i].head, heads[i].doubts, /*is_counted=*/is_gone};
  }
  co_return Status::Ok();
}

Task<Status> RetiredRegisters::DoubtAll() {
  ++doubts_;
  const Status status = co_await WriteHead(ring_, head_);
  if (status.ok() && listener_ != nullptr) listener_->DoubtAll();
  co_return status;
}

Task<Status> RetiredRegisters::ReadHeads(std::vector<RetiredRing>* heads) {
  const View& view = context_.view();
  const uint32_t count = view.worker_index_end;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* table = reinterpret_cast<const RetiredRing*>(
      round_trip->Read(view.Locate(RetiredRingAddr(WorkerIndex{0}), 0),
                       count * static_cast<uint32_t>(sizeof(RetiredRing))));
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  heads->assign(table, table + count);
  if (seen_.size() < count) seen_.resize(count);
  co_return Status::Ok();
}

void RetiredRegisters::NoteWhatAllHaveSeen() {
  while (!unsafe_.empty() && reclaimer_.IsSafe(unsafe_.front().epoch)) {
    tail_ = unsafe_.front().head;
    unsafe_.pop_front();
  }
}

GlobalAddr RetiredRegisters::NextRing() const {
  return given_.is_null() ? SeatRingAddr(context_.membership.index) : given_;
}

Task<Result<GlobalAddr>> RetiredRegisters::TakeLeftRing() {
  NoteWhatAllHaveSeen();
  if (ring_ == left_) {
    if (head_ != tail_) co_return GlobalAddr();
    ring_ = NextRing();
  }
  const Status status = co_await WriteHead(ring_, head_);
  if (!status.ok()) co_return status;
  co_return std::exchange(left_, GlobalAddr());
}

// The entries are on all replicas before the head that counts them is: they may lie on other nodes.
Task<Status> RetiredRegisters::Publish(std::vector<Retired>* published) {
  NoteWhatAllHaveSeen();
  const WorkerIndex seat = context_.membership.index;
  // No reader is behind in the ring that is left.
  if (head_ == tail_ || Planted(Bug::kRingLeftEarly)) ring_ = NextRing();
  // Nothing more goes there, or it could not be left as long as registers are retired.
  if (ring_ != NextRing()) co_return Status::Ok();
  const uint64_t ring_entries = EntriesOf(ring_, seat);
  const uint64_t count =
      std::min<uint64_t>({pending_.size(), ring_entries - (head_ - tail_), kEntriesPerBatch});
  // A ring that no head names would count as lost. And a reader may see any part of one WRITE: the
  // ring goes in one, the head that counts its entries in the next.
  if (ring_ != told_ring_) {
    const Status told = co_await WriteHead(ring_, head_);
    if (!told.ok()) co_return told;
  }
  if (count == 0) co_return Status::Ok();
  const View& view = context_.view();
  RoundTripPtr entries = context_.fabric.NewRoundTrip();
  // One stretch, two if it wraps.
  for (uint64_t done = 0; done < count;) {
    const uint64_t at = (head_ + done) % ring_entries;
    const uint64_t stretch = std::min(count - done, ring_entries - at);
    auto* words = reinterpret_cast<uint64_t*>(entries->Reserve(stretch * 8));
    for (uint64_t i = 0; i < stretch; ++i) words[i] = pending_[done + i].addr.bits();
    for (int replica = 0; replica < view.LiveReplicas(ring_); ++replica) {
      entries->Write(view.Locate(ring_ + at * 8, replica), reinterpret_cast<std::byte*>(words),
                     static_cast<uint32_t>(stretch * 8));
    }
    done += stretch;
  }
  Status status = co_await context_.fabric.Post(entries);
  if (!status.ok()) co_return status;

  status = co_await WriteHead(ring_, head_ + count);
  // A failure is tried again, with the same entries or more behind them.
  if (!status.ok()) co_return status;
  head_ += count;
  unsafe_.push_back({head_, reclaimer_.current_epoch()});
  for (uint64_t i = 0; i < count; ++i) {
    published->push_back(pending_.front());
    pending_.pop_front();
  }
  co_return Status::Ok();
}

Task<Status> RetiredRegisters::Prepare() {
  if (Planted(Bug::kRetiredRegistersKept)) co_return Status::Ok();
  // A worker that was gone by then has said in its head what it had to say.
  const std::array<uint64_t, kMaxWorkers / 64> gone = gone_;
  std::vector<RetiredRing> heads;
  Status status = co_await ReadHeads(&heads);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < gone.size(); ++i) gone_[i] &= ~gone[i];
  for (size_t i = 0; i < heads.size(); ++i) {
    if (i == context_.membership.index.value) continue;
    Seen& seen = seen_[i];
    // Signed off, unless another worker has come since: then it may have, or not.
    bool is_gone = (gone[i / 64] >> (i % 64) & 1) != 0;
    const bool is_another = seen.worker != heads[i].worker;
    if (is_another) {
      is_gone = is_gone || (seen.worker != 0 && !seen.is_counted);
      seen = {heads[i].worker, 0, 0, /*is_counted=*/false};
    }
    if (is_gone && heads[i].worker != 0) {
      ++departures_;
      seen.is_counted = !is_another;
    }
    if (heads[i].doubts > seen.doubts) {
      seen.doubts = heads[i].doubts;
      if (listener_ != nullptr) listener_->DoubtAll();
    }
    if (heads[i].ring == 0 || heads[i].head <= seen.head) continue;
    status = co_await ReadRing(WorkerIndex{static_cast<uint16_t>(i)}, heads[i], seen.head);
    if (!status.ok()) co_return status;
    seen_[i].head = heads[i].head;
  }
  co_return Status::Ok();
}

Task<Status> RetiredRegisters::ReadRing(WorkerIndex seat, const RetiredRing& ring, uint64_t from) {
  const uint64_t ring_entries = EntriesOf(GlobalAddr(ring.ring), seat);
  if (ring.head - from > ring_entries || !context_.view().Contains(GlobalAddr(ring.ring))) {
    co_return Status(StatusCode::kCorrupt, "a ring of retired registers makes no sense");
  }
  while (from < ring.head) {
    const uint64_t at = from % ring_entries;
    const uint64_t stretch = std::min({ring.head - from, ring_entries - at, kEntriesPerBatch});
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const auto* words = reinterpret_cast<const uint64_t*>(
        round_trip->Read(context_.view().Locate(GlobalAddr(ring.ring) + at * 8, 0),
                         static_cast<uint32_t>(stretch * 8)));
    const Status status = co_await context_.fabric.Post(round_trip);
    if (!status.ok()) co_return status;
    for (uint64_t i = 0; i < stretch; ++i) {
      if (listener_ != nullptr) listener_->Forget(GlobalAddr(words[i]));
    }
    from += stretch;
  }
  co_return Status::Ok();
}

}  // namespace onetrip
