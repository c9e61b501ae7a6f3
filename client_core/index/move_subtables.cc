#include "client_core/index/move_subtables.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "client_core/coro/sync.h"
#include "client_core/layout/region_layout.h"

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

// Copies the primary, whatever the other replicas have: readers have seen the primary.
Task<Status> SubtableMover::CopySubtable(const View& view, MovedSubtable moved) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const std::byte* words = round_trip->Read(view.Locate(moved.from, 0), kSubtableBytes);
  Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  round_trip->ClearOps();
  for (int replica = 0; replica < engine_.Replicas(view, moved.to); ++replica) {
    round_trip->Write(view.Locate(moved.to, replica), words, kSubtableBytes);
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
