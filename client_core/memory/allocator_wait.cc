// An allocation for which this worker has nothing free at hand asks the memory nodes for a block,
// gathers what is retired, and waits.
#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {

Task<Result<GlobalAddr>> Allocator::Allocate(SizeClass size_class, Holder* idle) {
  return AllocateWanted({.size_class = size_class, .near = GlobalAddr(), .idle = idle});
}

Task<Result<GlobalAddr>> Allocator::AllocatePinned(SizeClass size_class, bool may_use_reserve) {
  CHECK(size_class.is_valid());
  while (true) {
    if (const GlobalAddr addr = blocks_.TakeObject(size_class); !addr.is_null()) co_return addr;
    Status granted = co_await grants_.Grant({.size_class = size_class, .near = GlobalAddr()});
    if (granted.code() == StatusCode::kOutOfMemory && may_use_reserve) {
      granted = co_await grants_.Grant(
          {.size_class = size_class, .near = GlobalAddr(), .may_use_reserve = true});
    }
    if (!granted.ok()) co_return granted;
  }
}

Task<Result<Allocator::Object>> Allocator::AllocateInPlaceOf(SizeClass replaced,
                                                             SizeClass size_class,
                                                             bool may_use_reserve) {
  if (!shortage_.was_full()) {
    const Result<GlobalAddr> addr = co_await AllocatePinned(size_class);
    if (addr.ok()) co_return Object{addr.value(), size_class};
    if (addr.status().code() != StatusCode::kOutOfMemory) co_return addr.status();
    shortage_.NoteFull();
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
  const Want want = {.size_class = alike, .near = GlobalAddr(), .may_use_reserve = may_use_reserve};
  Status granted;
  while (granted.ok()) {
    for (const SizeClass one : {alike, size_class}) {
      const GlobalAddr addr = blocks_.TakeObject(one);
      if (!addr.is_null()) co_return Object{addr, one};
    }
    if (const SizeClass taken = take_block_of_buffers(); taken.is_valid()) {
      co_return Object{blocks_.TakeObject(taken), taken};
    }
    granted = co_await grants_.Grant(want);
    if (granted.code() == StatusCode::kOutOfMemory && blocks_.has_wholly_free()) {
      co_await returner_.ReturnFreeBlocks(/*all=*/true);
      granted = co_await grants_.Grant(want);
    }
  }
  for (uint8_t index = size_class.index(); index < SizeClass::kSlabClasses; ++index) {
    const GlobalAddr addr = blocks_.TakeObject(SizeClass(index));
    if (!addr.is_null()) co_return Object{addr, SizeClass(index)};
  }
  // Memory that is free in blocks of other sizes, or of others, has to come together first.
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
  } while (retired_count() > 0 && !reclaimer_.IsSafe(last) && !context_.quiesce.holds_all() &&
           context_.executor.NowNs() < deadline_ns);
}

Task<Result<GlobalAddr>> Allocator::AllocateBuffer(SizeClass size_class, GlobalAddr near,
                                                   Holder* idle) {
  return AllocateWanted({.size_class = size_class, .near = near, .idle = idle});
}

Task<void> Allocator::WaitForMemory(const Want& want, uint64_t wait_ns) {
  if (want.idle != nullptr) want.idle->Pause();
  co_await context_.executor.SleepFor(wait_ns);
  if (want.idle != nullptr) want.idle->Resume();
}

void Allocator::TellShortage(SizeClass size_class) {
  shortage_.Tell(size_class);
  compaction_.BeginIfMay();
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
    Status granted = co_await grants_.Grant(want);
    if (granted.ok()) continue;
    if (granted.code() == StatusCode::kCorrupt) co_return granted;

    // The pool is full, as far as it answers. What others freed for us, and blocks that only we
    // keep, may still help.
    co_await sweeper_.SweepAll();
    co_await returner_.ReturnFreeBlocks(/*all=*/true);
    list = blocks_.ListFor(want);
    if (const GlobalAddr addr = blocks_.Take(list, size_class); !addr.is_null()) co_return addr;
    granted = co_await grants_.Grant(want);
    if (granted.ok()) continue;

    // Free memory in blocks of the other kind serves as well.
    const bool made =
        want.near.is_null() ? blocks_.MakeObjects(size_class) : co_await locks_.MakeBuffers(want);
    if (made) continue;

    // A node that does not answer will, or a view without it comes; but not before whoever asks
    // here has ended, if everybody waits for that. Whoever is at a slot does not ask.
    const bool lost = granted.code() != StatusCode::kOutOfMemory;
    const bool view_to_come = lost && !context_.quiesce.holds_all();
    const uint64_t now_ns = context_.executor.NowNs();
    if (deadline_ns == 0) deadline_ns = now_ns + context_.options.memory_wait_ms * 1'000'000;
    TellShortage(size_class);
    const bool flushed = shortage_.MayFollowFlush();
    const bool more_to_come = flushed || view_to_come || retired_count() > 0 ||
                              reclaimer_.others_retired_bytes() > 0 || IsGathering() ||
                              compaction_.MayBringMemory() || shortage_.OthersMayGive() ||
                              opener_.OpensOneOf(size_class);
    if (!more_to_come || (lost && !view_to_come) || now_ns >= deadline_ns) {
      // Retired memory may have come back while the nodes were asked.
      list = blocks_.ListFor(want);
      if (const GlobalAddr addr = blocks_.Take(list, size_class); !addr.is_null()) co_return addr;
      // Compaction may have set aside a block that it could not empty in time.
      if (compaction_.FillAgainFor(want)) continue;
      if (lost) co_return Status(StatusCode::kUnavailable, "a memory node does not grant memory");
      metrics_.exhausted_for.Set(size_class.bytes());
      metrics_.exhausted.Add();
      if (!more_to_come) shortage_.NoteInVain();
      co_return Status(StatusCode::kOutOfMemory, "no memory node has free memory");
    }
    co_await WaitForMemory(want, wait_ns);
    wait_ns = std::min<uint64_t>(wait_ns * 2, context_.options.epoch_tick_us * 1000);
  }
}

}  // namespace onetrip
