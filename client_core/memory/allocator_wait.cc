// What an allocation does for which this worker has nothing free at hand: it asks the memory nodes
// for a block, gathers what is retired, and waits.
#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

constexpr uint64_t kShortNs = 500'000'000;   // a shortage is told for so long after it was felt
constexpr uint64_t kBarrenNs = 500'000'000;  // who gave nothing is not waited for again before
// Regions, for a block of registers near buffers.
constexpr uint32_t kAskedBeside = 8;

}  // namespace

Task<Result<GlobalAddr>> Allocator::Allocate(SizeClass size_class, Holder* idle) {
  return AllocateWanted({.size_class = size_class, .near = GlobalAddr(), .idle = idle});
}

Task<Result<GlobalAddr>> Allocator::AllocatePinned(SizeClass size_class, bool may_use_reserve) {
  CHECK(size_class.is_valid());
  while (true) {
    if (const GlobalAddr addr = blocks_.TakeObject(size_class); !addr.is_null()) co_return addr;
    Status granted = co_await GrantBlock({.size_class = size_class, .near = GlobalAddr()});
    if (granted.code() == StatusCode::kOutOfMemory && may_use_reserve) {
      granted = co_await GrantBlock(
          {.size_class = size_class, .near = GlobalAddr(), .may_use_reserve = true});
    }
    if (!granted.ok()) co_return granted;
  }
}

Task<Result<Allocator::Object>> Allocator::AllocateInPlaceOf(SizeClass replaced,
                                                             SizeClass size_class) {
  constexpr uint64_t kNotAskedNs = 10'000'000;
  if (context_.executor.NowNs() >= full_until_ns_) {
    const Result<GlobalAddr> addr = co_await AllocatePinned(size_class);
    if (addr.ok()) co_return Object{addr.value(), size_class};
    if (addr.status().code() != StatusCode::kOutOfMemory) co_return addr.status();
    full_until_ns_ = context_.executor.NowNs() + kNotAskedNs;
  }
  // As large as what is given up: so as many of them are free in the end as in the beginning. Of a
  // long value a buffer is given up; one whose block has become one of objects is none any more.
  const SizeClass alike(std::max(replaced.index(), size_class.index()));
  const auto take_block_of_buffers = [&] {
    for (uint8_t index = size_class.index(); index < SizeClass::kSlabClasses; ++index) {
      if (blocks_.MakeObjects(SizeClass(index))) return SizeClass(index);
    }
    return SizeClass();
  };
  const Want want = {.size_class = alike, .near = GlobalAddr(), .may_use_reserve = true};
  Status granted;
  while (granted.ok()) {
    for (const SizeClass one : {alike, size_class}) {
      const GlobalAddr addr = blocks_.TakeObject(one);
      if (!addr.is_null()) co_return Object{addr, one};
    }
    if (const SizeClass taken = take_block_of_buffers(); taken.is_valid()) {
      co_return Object{blocks_.TakeObject(taken), taken};
    }
    granted = co_await GrantBlock(want);
    if (granted.code() == StatusCode::kOutOfMemory && blocks_.has_wholly_free()) {
      co_await ReturnFreeBlocks(/*all=*/true);
      granted = co_await GrantBlock(want);
    }
  }
  for (uint8_t index = size_class.index(); index < SizeClass::kSlabClasses; ++index) {
    const GlobalAddr addr = blocks_.TakeObject(SizeClass(index));
    if (!addr.is_null()) co_return Object{addr, SizeClass(index)};
  }
  // What is free in blocks of other sizes, or of others, has to come together first.
  if (granted.code() == StatusCode::kOutOfMemory) TellShortage(alike);
  co_return granted;
}

Task<void> Allocator::AwaitRetired(uint64_t deadline_ns) {
  // Those of registers are retired when the others have heard of them.
  const uint64_t last = reclaimer_.current_epoch() + 2;
  uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  do {
    co_await Maintain();
    co_await context_.executor.SleepFor(wait_ns);
    wait_ns = std::min<uint64_t>(wait_ns * 2, context_.options.epoch_tick_us * 1000);
  } while (retired_count() > 0 && !reclaimer_.IsSafe(last) && !context_.hold.holds_all() &&
           context_.executor.NowNs() < deadline_ns);
}

Task<Result<GlobalAddr>> Allocator::AllocateBuffer(SizeClass size_class, GlobalAddr near,
                                                   Holder* idle) {
  return AllocateWanted({.size_class = size_class, .near = near, .idle = idle});
}

Task<Status> Allocator::GrantBeside(SizeClass size_class, SizeClass buffer_class, GlobalAddr near) {
  constexpr Status kNowhere(StatusCode::kOutOfMemory, "no memory node has free memory");
  if (!has_elsewhere()) co_return kNowhere;
  // What it is granted elsewhere meanwhile stays.
  const Status granted = co_await GrantBlock({.size_class = buffer_class, .near = near});
  if (granted.ok()) co_return granted;
  (void)blocks_.BufferList(buffer_class, near);  // a new view makes lists anew, once
  for (const OwnBlock* const block : blocks_.list(size_class.index())) {
    if (blocks_.HasBuffers(buffer_class, block->start, OwnBlocks::kBuffersOfAWrite))
      co_return Status::Ok();
  }
  const Want want = {.size_class = size_class, .near = GlobalAddr()};
  uint32_t asked = 0;
  for (uint32_t region = 0; region < context_.view().regions.size(); ++region) {
    const GlobalAddr at(region, kBlockBytes);
    if (context_.view().IsLeaving(at) ||
        !blocks_.HasBuffers(buffer_class, at, OwnBlocks::kBuffersOfAWrite))
      continue;
    if (asked++ == kAskedBeside || context_.hold.held()) break;
    const Result<GlobalAddr> block = co_await GrantBy(context_.view().Locate(at, 0).node, want, at);
    if (block.ok() && blocks_.IsListedFor(block.value(), want)) co_return Status::Ok();
  }
  co_return kNowhere;
}

Task<void> Allocator::WaitForMemory(const Want& want, uint64_t wait_ns) {
  if (want.idle != nullptr) want.idle->Pause();
  co_await context_.executor.SleepFor(wait_ns);
  if (want.idle != nullptr) want.idle->Resume();
}

// The others hear of it with the next epoch.
void Allocator::TellShortage(SizeClass size_class) {
  const uint64_t now_ns = context_.executor.NowNs();
  if (short_of_ != size_class || now_ns >= short_until_ns_) {
    short_of_ = size_class;
    short_since_epoch_ = reclaimer_.current_epoch();
  }
  short_until_ns_ = now_ns + kShortNs;
  if (begin_compaction_) begin_compaction_();
}

Task<Result<GlobalAddr>> Allocator::AllocateWanted(Want want) {
  CHECK(want.size_class.is_valid());
  const SizeClass size_class = want.size_class;
  uint64_t deadline_ns = 0;
  uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  while (true) {
    // Anew each time: the view may have changed.
    uint32_t list = blocks_.ListFor(want);
    if (const GlobalAddr addr = blocks_.Take(list, size_class); !addr.is_null()) co_return addr;
    co_await Maintain();
    list = blocks_.ListFor(want);
    if (const GlobalAddr addr = blocks_.Take(list, size_class); !addr.is_null()) co_return addr;
    Status granted = co_await GrantBlock(want);
    if (granted.ok()) continue;
    if (granted.code() == StatusCode::kCorrupt) co_return granted;

    // The pool is full, as far as it answers. What others freed for us, and blocks that only we
    // keep, may still help.
    co_await sweeper_.SweepAll();
    co_await ReturnFreeBlocks(/*all=*/true);
    list = blocks_.ListFor(want);
    if (const GlobalAddr addr = blocks_.Take(list, size_class); !addr.is_null()) co_return addr;
    granted = co_await GrantBlock(want);
    if (granted.ok()) continue;

    // What is free in blocks of the other kind serves as well.
    const bool made =
        want.near.is_null() ? blocks_.MakeObjects(size_class) : co_await locks_.MakeBuffers(want);
    if (made) continue;

    // A node that does not answer will, or a view without it comes; but not before whoever asks
    // here has ended, if everybody waits for that. Whoever is at a slot does not ask.
    const bool lost = granted.code() != StatusCode::kOutOfMemory;
    const bool view_to_come = lost && !context_.hold.holds_all();
    const uint64_t now_ns = context_.executor.NowNs();
    if (deadline_ns == 0) deadline_ns = now_ns + context_.options.memory_wait_ms * 1'000'000;
    TellShortage(size_class);
    // A view that came after the last time that memory was short may be of a flush, whose sweep has
    // yet to retire anything.
    if (flushed_view_ != context_.view().epoch) {
      flushed_view_ = context_.view().epoch;
      flushed_ns_ = now_ns;
    }
    const bool flushed = now_ns < flushed_ns_ + context_.options.memory_wait_ms * 1'000'000;
    const bool more_to_come = flushed || view_to_come || retired_count() > 0 ||
                              reclaimer_.others_retired_bytes() > 0 || gathering_ > 0 ||
                              locks_.is_clearing() || sweeper_.is_sweeping() || MayCompact() ||
                              OthersMayGive() || ClosesOneOf(size_class);
    if (!more_to_come || (lost && !view_to_come) || now_ns >= deadline_ns) {
      // What compaction has set aside, and could not empty in time.
      if (FillAgainFor(want)) continue;
      if (lost) co_return Status(StatusCode::kUnavailable, "a memory node does not grant memory");
      metrics_.exhausted_for.Set(size_class.bytes());
      metrics_.exhausted.Add();
      if (!more_to_come) barren_until_ns_ = now_ns + kBarrenNs;
      co_return Status(StatusCode::kOutOfMemory, "no memory node has free memory");
    }
    co_await WaitForMemory(want, wait_ns);
    wait_ns = std::min<uint64_t>(wait_ns * 2, context_.options.epoch_tick_us * 1000);
  }
}

}  // namespace onetrip
