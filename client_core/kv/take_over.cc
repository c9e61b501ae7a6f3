// Taking over the blocks of workers that are gone: what the index, records and registers still name
// there (memory/orphan_blocks.h; PROTOCOLS.md).
#include <absl/cleanup/cleanup.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/kv/estate.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {
namespace {

constexpr Status kWorkerSilent(StatusCode::kUnavailable, "a worker keeps the epoch from going on");
constexpr Status kStopped(StatusCode::kUnavailable, "the worker is ending, or at it already");
constexpr Status kNotLiving(StatusCode::kCorrupt, "the master does not count this worker itself");
constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr uint64_t kAccountPatienceNs = 1'000'000'000;

}  // namespace

// One at a time, or the second would take for free what was taken from the first's blocks since.
Task<Status> KvImpl::TakeOverBlocks(RepairOrder order) {
  // Its own blocks would be orphans.
  if (!order.living.Includes(context_.membership.id)) co_return kNotLiving;
  co_await AwaitAccount();
  if (std::exchange(taking_over_, true)) co_return kStopped;
  if (registers_) registers_->cache.BeginInheriting();
  const absl::Cleanup done = [this] {
    taking_over_ = false;
    if (registers_) registers_->cache.EndInheriting();
  };
  Estate estate(context_, /*is_of_the_dead=*/true);
  Status status = co_await FindOrphans(estate, order);
  if (!status.ok() || estate.blocks.blocks().empty()) co_return status;
  status = co_await LookAtNames(estate, *order.view);
  if (!status.ok()) co_return status;
  estate.blocks.TellUnnamed();
  if (!Planted(Bug::kTakenOverAtOnce)) status = co_await AwaitUnlinked();
  if (!status.ok()) co_return status;
  size_t taken = 0;
  for (const auto& [addr, block] : estate.blocks.blocks()) {
    if (stopping_) co_return kStopped;
    if (context_.hold.held()) co_return kHeld;
    const Status one = co_await TakeOverBlock(estate, block);
    taken += one.ok() ? 1 : 0;
    if (!one.ok()) status = one;
  }
  LogInfo("took over " + std::to_string(taken) + " of " +
          std::to_string(estate.blocks.blocks().size()) +
          " memory blocks of workers that are gone");
  co_return status;
}

// A walk that only looks for what is lost gives way. Another take-over does not.
Task<void> KvImpl::AwaitAccount() {
  const uint64_t deadline_ns = context_.executor.NowNs() + kAccountPatienceNs;
  while (account_.looks && !stopping_ && context_.executor.NowNs() < deadline_ns) {
    account_.gives_way = true;
    co_await context_.executor.SleepFor(context_.options.epoch_tick_us * 1000);
  }
}

Task<Status> KvImpl::FindOrphans(Estate& estate, const RepairOrder& order) {
  if (context_.hold.held()) co_return kHeld;
  Operation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  co_return co_await estate.blocks.Find(operation, OrphanBlocks::OfTheDead(order.living));
}

// What was unlinked before everybody has let go of buffers in blocks of others was so by operations
// of the epoch then, the next, or earlier ones; they retire it in the epoch after their own at the
// latest.
Task<Status> KvImpl::AwaitUnlinked() {
  uint64_t unlinked_until = ~uint64_t{0};
  const uint64_t deadline_ns = context_.executor.NowNs() + kPatienceNs;
  allocator_.DoubtRegisters();
  while (reclaimer_.retired_since() <= unlinked_until) {
    if (stopping_) co_return kStopped;
    if (context_.hold.held()) co_return kHeld;
    if (context_.executor.NowNs() >= deadline_ns) co_return kWorkerSilent;
    co_await allocator_.Maintain();
    if (allocator_.registers_doubted() && unlinked_until == ~uint64_t{0}) {
      unlinked_until = reclaimer_.current_epoch() + 2;
    }
    co_await context_.executor.SleepFor(context_.options.epoch_tick_us * 1000);
  }
  co_return Status::Ok();
}

Task<Status> KvImpl::TakeOverBlock(Estate& estate, const OrphanBlocks::Block& block) {
  // While it is at slots the replicas stay where they are, and all of them are asked.
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) co_return kHeld;
  std::vector<bool> freed;
  const Status status =
      co_await allocator_.TakeOver(block.start, block.size_class, block.owner, block.named, &freed);
  const auto found = estate.buffers.find(block.start.bits());
  if (!status.ok() || found == estate.buffers.end()) co_return status;
  for (const NamedBuffer& named : found->second) {
    if (named.buffer_class != block.size_class) continue;
    // Its writer has retired it meanwhile.
    if (freed[ObjectIndex(named.buffer.addr, block.start, block.size_class)]) continue;
    registers_->cache.Inherit(named.ref, named.buffer_class, named.buffer);
  }
  co_return status;
}

}  // namespace onetrip
