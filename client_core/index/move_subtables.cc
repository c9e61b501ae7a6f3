#include "client_core/index/move_subtables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "client_core/coro/sync.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/slot.h"
#include "client_core/replication/slot_step.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 4096;  // words in a round trip
constexpr size_t kSubtablesAtOnce = 4;

}  // namespace

Task<Status> SubtableMover::MoveSubtables(std::shared_ptr<const View> view) {
  if (view->directory == directory_.number() || awaits_view_) {
    co_return Status(StatusCode::kInvalidArgument, "the directory is in force");
  }
  const Allocator::Holder holder(allocator_);
  std::vector<uint64_t> words(kDirectoryEntries, 0);
  Status status = co_await ReadWholeDirectory(*view, &words);
  if (status.ok()) status = co_await CopySubtables(*view, &words);
  if (status.ok()) status = co_await WriteWholeDirectory(*view, words);
  if (status.ok()) {
    awaits_view_ = true;
    moved_epoch_ = view->epoch;
    moved_directory_ = view->directory;
    co_return status;
  }
  // WRITEs that were sent there may still arrive: epochs wait for that.
  for (const MovedSubtable& moved : moved_) Retire(moved.to);
  moved_.clear();
  co_return status;
}

Task<Status> SubtableMover::ReadWholeDirectory(const View& view, std::vector<uint64_t>* words) {
  for (uint32_t first = 0; first < kDirectoryEntries; first += kDirectoryStretch) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const std::byte* read = round_trip->Read(view.Locate(directory_.AddrOf(first), 0),
                                             kDirectoryStretch * uint32_t{sizeof(uint64_t)});
    const Status status = co_await context_.fabric.Post(round_trip);
    if (!status.ok()) co_return status;
    std::memcpy(words->data() + first, read, kDirectoryStretch * sizeof(uint64_t));
  }
  co_return Status::Ok();
}

Task<Status> SubtableMover::WriteWholeDirectory(const View& view,
                                                const std::vector<uint64_t>& words) {
  for (uint32_t first = 0; first < kDirectoryEntries; first += kDirectoryStretch) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    constexpr uint32_t kBytes = kDirectoryStretch * uint32_t{sizeof(uint64_t)};
    std::byte* const bytes = round_trip->Reserve(kBytes);
    std::memcpy(bytes, words.data() + first, kBytes);
    const GlobalAddr at = DirectoryAddr(first, view.directory);
    for (int replica = 0; replica < engine_.Replicas(view, at); ++replica) {
      round_trip->Write(view.Locate(at, replica), bytes, kBytes);
    }
    const Status status = co_await context_.fabric.Post(round_trip);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

Task<Status> SubtableMover::CopySubtables(const View& view, std::vector<uint64_t>* words) {
  constexpr SizeClass kClass = SizeClass::For(kSubtableBytes);
  for (uint64_t& bits : *words) {
    const DirectoryWord word(bits);
    if (!word.is_used() || !view.IsLeaving(word.subtable())) continue;
    const Result<GlobalAddr> to =
        co_await allocator_.AllocatePinned(kClass, /*may_use_reserve=*/true);
    if (to.status().code() == StatusCode::kOutOfMemory) allocator_.TellShortage(kClass);
    if (!to.ok()) co_return to.status();
    allocator_.KeepBlockOf(to.value());
    moved_.push_back({word.subtable(), to.value()});
    bits = word.MovedTo(to.value()).bits();
  }
  for (size_t first = 0; first < moved_.size(); first += kSubtablesAtOnce) {
    const size_t end = std::min(moved_.size(), first + kSubtablesAtOnce);
    std::vector<Status> copied(end - first);
    std::vector<Task<void>> tasks;
    for (size_t i = first; i < end; ++i) {
      tasks.push_back([](SubtableMover* self, const View* to, MovedSubtable moved,
                         Status* status) -> Task<void> {
        *status = co_await self->CopySubtable(*to, moved);
      }(this, &view, moved_[i], &copied[i - first]));
    }
    co_await WhenAll(std::move(tasks));
    for (const Status& status : copied) {
      if (!status.ok()) co_return status;
    }
  }
  co_return Status::Ok();
}

// Copies the primary, whatever the other replicas have: readers have seen the primary. Only a claim
// may be decided, and its owner have died since the slots were resolved.
Task<Status> SubtableMover::CopySubtable(const View& view, MovedSubtable moved) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const int live = engine_.Replicas(view, moved.from);
  std::array<const std::byte*, kMaxReplicas> images{};
  for (int replica = 0; replica < live; ++replica) {
    images[replica] = round_trip->Read(view.Locate(moved.from, replica), kSubtableBytes);
  }
  Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  std::vector<uint64_t> words(kSubtableBytes / sizeof(uint64_t));
  std::memcpy(words.data(), images[0], kSubtableBytes);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_header = i % kGroupWords == kGroupHeaderWord;
    if (is_header || SlotWord(words[i]).kind() != SlotKind::kTentative) continue;
    std::array<uint64_t, kMaxReplicas> backups{};
    for (int replica = 1; replica < live; ++replica) {
      std::memcpy(&backups[replica], images[replica] + i * sizeof(uint64_t), sizeof(uint64_t));
    }
    const std::span<const uint64_t> held(backups.data() + 1, static_cast<size_t>(live - 1));
    if (IsDecided(SlotWord(words[i]), held)) words[i] = backups[1];
  }
  round_trip = context_.fabric.NewRoundTrip();
  for (int replica = 0; replica < engine_.Replicas(view, moved.to); ++replica) {
    round_trip->Write(view.Locate(moved.to, replica),
                      reinterpret_cast<const std::byte*>(words.data()), kSubtableBytes);
  }
  status = co_await context_.fabric.Post(round_trip);
  co_return status;
}

void SubtableMover::UseView(const View& view) {
  if (!awaits_view_ || view.epoch < moved_epoch_) return;
  awaits_view_ = false;
  const bool is_done = view.directory == moved_directory_;
  for (const MovedSubtable& moved : moved_) Retire(is_done ? moved.from : moved.to);
  moved_.clear();
}

void SubtableMover::Retire(GlobalAddr subtable) {
  allocator_.Retire(subtable, SizeClass::For(kSubtableBytes));
}

}  // namespace onetrip
