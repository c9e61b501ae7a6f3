// Open blocks: what one worker does not need of its blocks is anybody's (PROTOCOLS, "Open blocks").
//
// A worker that is short of memory says so with its epoch. Others then close some of their blocks
// of that class: they allocate nothing more there. Once no operation of theirs can hold an object
// of such a block that nothing names yet, they set the bits of what is free and make the block
// nobody's. Its primary gives it to whoever asks for that class next.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

// Blocks that memory nodes are told of at a time.
constexpr size_t kToldAtOnce = 16;

}  // namespace

void Allocator::CloseFor(uint64_t classes) {
  if (context_.executor.NowNs() < short_until_ns_) classes &= ~(1ULL << short_of_.index());
  for (size_t list = 0; list < blocks_.list_count(); ++list) {
    if ((classes >> (list % SizeClass::kCount) & 1) != 0) CloseAllButOne(blocks_.list(list));
  }
}

void Allocator::CloseAllButOne(const std::vector<OwnBlock*>& list) {
  // With the least that is free, for the next allocations here; but this worker has never needed
  // what it has acquired only to look what is lost there.
  const auto stays =
      std::min_element(list.begin(), list.end(), [](const OwnBlock* one, const OwnBlock* other) {
        return std::pair(one->looked_at, one->free.size()) <
               std::pair(other->looked_at, other->free.size());
      });
  std::vector<OwnBlock*> closed;
  for (auto it = list.begin(); it != list.end(); ++it) {
    const bool may_stay = it == stays && !(*it)->looked_at;
    if (!may_stay && (*it)->may_be_closed()) closed.push_back(*it);
  }
  for (OwnBlock* block : closed) Close(*block);
  trade_.gave = trade_.gave || !closed.empty();
}

void Allocator::CloseSparse() {
  std::vector<OwnBlock*> closed;
  for (size_t list = 0; list < SizeClass::kSlabClasses; ++list) {
    for (OwnBlock* block : blocks_.list(list)) {
      const bool is_sparse = block->free.size() * 2 >= block->objects;
      if (is_sparse && block->may_be_closed()) closed.push_back(block);
    }
  }
  for (OwnBlock* block : closed) Close(*block);
  trade_.gave = trade_.gave || !closed.empty();
}

void Allocator::Close(OwnBlock& block) {
  blocks_.Unlist(block);
  block.closing = true;
  // Of its life before it was given back, and granted again.
  std::erase_if(closing_, [&](const Closing& one) { return one.start == block.start; });
  closing_.push_back({block.start, holders_.generation(), reclaimer_.current_epoch()});
}

bool Allocator::ClosesOneOf(SizeClass size_class) {
  const auto is_alike = [&](const Opening& one) { return one.size_class == size_class; };
  return std::any_of(opening_.begin(), opening_.end(), is_alike) ||
         std::any_of(telling_.begin(), telling_.end(), is_alike) ||
         std::any_of(closing_.begin(), closing_.end(), [&](const Closing& one) {
           const OwnBlock* const block = blocks_.Find(one.start);
           return block != nullptr && block->closing && block->size_class == size_class;
         });
}

void Allocator::OpenClosed() {
  std::vector<Closing> closing;
  std::swap(closing, closing_);
  for (const Closing& one : closing) {
    OwnBlock* const block = blocks_.Find(one.start);
    if (block == nullptr || !block->closing) continue;  // wholly free, and given back
    const bool may_be_held =
        !holders_.HaveEndedSince(one.generation) && !Planted(Bug::kOpenedWhileHeld);
    // What goes on behind its operation, or has failed and may still arrive, holds up the epoch.
    const bool may_arrive = !reclaimer_.IsSafe(one.epoch) || !context_.fabric.settled();
    if (may_be_held || may_arrive || sweeper_.IsCollecting(*block)) {
      closing_.push_back(one);
      continue;
    }
    Disown(*block);
  }
}

void Allocator::Disown(OwnBlock& block) {
  if (context_.memory_observer != nullptr) context_.memory_observer->Opened(block.start);
  for (const uint16_t index : block.free) {
    if (Planted(Bug::kOpenedWithoutBits) && index % 2 == 0) continue;
    foreign_.Add(block.start, index);
  }
  opening_.push_back({block.start, block.size_class});
  has_opened_ = true;
  metrics_.blocks_opened.Add();
  if (Planted(Bug::kOpenedStillAllocates)) {
    if (std::exchange(block.closing, false) && !block.free.empty()) blocks_.Enlist(block);
    return;
  }
  if (!block.free.empty()) blocks_.Unlist(block);
  blocks_.Forget(block);
}

Task<Result<ControlReply>> Allocator::AskToTakeOver(GlobalAddr start, SizeClass size_class,
                                                    int replica, WorkerId from, WorkerId to) {
  ControlRequest request;
  request.kind = ControlRequest::Kind::kTakeOver;
  request.size_class = size_class;
  request.owner = to;
  request.block = start;
  request.from = from;
  co_return co_await context_.fabric.Control(context_.view().Locate(start, replica).node, request);
}

Task<void> Allocator::TellOpened() {
  if (!telling_.empty() || opening_.empty()) co_return;
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kOpenBlocks);
  ++gathering_;
  std::swap(telling_, opening_);
  for (size_t first = 0; first < telling_.size(); first += kToldAtOnce) {
    const size_t end = std::min(telling_.size(), first + kToldAtOnce);
    std::vector<Status> told(end - first);
    std::vector<Task<void>> tasks;
    for (size_t i = first; i < end; ++i) {
      tasks.push_back([](Allocator* self, Opening* one, Status* status) -> Task<void> {
        *status = co_await self->TellOpened(one);
      }(this, &telling_[i], &told[i - first]));
    }
    co_await WhenAll(std::move(tasks));
    for (size_t i = first; i < end; ++i) {
      if (!told[i - first].ok() && blocks_.Find(telling_[i].start) == nullptr) {
        opening_.push_back(telling_[i]);
      }
    }
  }
  --gathering_;
  telling_.clear();
}

// The primary last: whoever gets the block there asks the others next. What has failed is asked
// again when it can't arrive any more. Where somebody else has it by then nothing changes.
Task<Status> Allocator::TellOpened(Opening* opening) {
  constexpr Status kLater(StatusCode::kUnavailable, "a memory node has yet to answer");
  const GlobalAddr start = opening->start;
  if (!context_.fabric.settled() || IsAmong(taking_, start)) co_return kLater;
  std::optional<NotAsked> not_asked;
  if (opening->asked_primary) {
    if (asking_ != 0) co_return kLater;
    not_asked.emplace(*this, context_.view().Locate(start, 0).node);
  }
  const WorkerId self = context_.membership.id;
  for (int replica = context_.view().LiveReplicas(start) - 1; replica > 0; --replica) {
    // The view may have changed since the last one.
    if (replica >= context_.view().LiveReplicas(start)) continue;
    const Result<ControlReply> reply =
        co_await AskToTakeOver(start, opening->size_class, replica, self, kNobody);
    if (!reply.ok() || reply.value().outcome == ControlReply::Outcome::kFull) co_return kLater;
  }
  opening->asked_primary = true;
  const Result<ControlReply> reply =
      co_await AskToTakeOver(start, opening->size_class, 0, self, kNobody);
  if (!reply.ok() || reply.value().outcome == ControlReply::Outcome::kFull) co_return kLater;
  co_return Status::Ok();
}

bool Allocator::IsOpening(GlobalAddr start) const {
  const auto is_it = [start](const Opening& one) { return one.start == start; };
  return std::any_of(opening_.begin(), opening_.end(), is_it) || IsOpeningNow(start);
}

bool Allocator::IsOpeningNow(GlobalAddr start) const {
  return std::any_of(telling_.begin(), telling_.end(),
                     [start](const Opening& one) { return one.start == start; });
}

Task<Status> Allocator::AcquireOnBackups(GlobalAddr start, SizeClass size_class) {
  const RegionPlacement asked = context_.view().regions[start.region()];
  for (int replica = 1; replica < context_.view().LiveReplicas(start); ++replica) {
    const Result<ControlReply> reply =
        co_await AskToTakeOver(start, size_class, replica, kNobody, context_.membership.id);
    if (!reply.ok()) co_return reply.status();
    if (reply.value().outcome == ControlReply::Outcome::kFull) {
      co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
    }
    if (reply.value().outcome != ControlReply::Outcome::kDone) {
      co_return Status(StatusCode::kCorrupt, "a replica has yet to hear of an open block");
    }
  }
  co_return HaveAskedAll(start, asked);
}

Status Allocator::HaveAskedAll(GlobalAddr block, const RegionPlacement& asked) const {
  const View& view = context_.view();
  if (Planted(Bug::kReplicaNotAsked)) return Status::Ok();
  if (view.Contains(block) && view.regions[block.region()] == asked) return Status::Ok();
  return Status(StatusCode::kUnavailable, "a block's replicas have changed while it was granted");
}

Task<Result<GlobalAddr>> Allocator::AdoptOpened(GlobalAddr start, SizeClass size_class,
                                                uint32_t list) {
  // This worker itself has just opened it, and tells the nodes again: what it gets there would be
  // opened under its hands.
  if (!HasComeBack(start)) {
    // If the node had heard, it has to hear again.
    opening_.push_back({start, size_class, /*asked_primary=*/true});
    co_return Status(StatusCode::kUnavailable, "a memory node has yet to hear of an open block");
  }
  taking_.push_back(start);
  const Status acquired = co_await AcquireOnBackups(start, size_class);
  taking_.erase(std::find(taking_.begin(), taking_.end(), start));
  if (!acquired.ok()) {
    // To open one again that a replica takes for somebody else's is to be given it again.
    const bool disputed = acquired.code() == StatusCode::kCorrupt;
    disputed ? ClaimLater(start, size_class) : opening_.push_back({start, size_class});
    co_return disputed ? Status(StatusCode::kUnavailable, acquired.message()) : acquired;
  }
  const std::vector<bool> used(ObjectsPerBlock(size_class, start.block()), true);
  blocks_.Adopt(start, size_class, list, &used);
  metrics_.blocks_acquired.Add();
  if (list >= SizeClass::kCount) blocks_.Find(start)->stale_lock = used;
  const Status swept = co_await sweeper_.Sweep(start);
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_return swept.ok() ? Result<GlobalAddr>(start) : swept;
}

Task<Result<GlobalAddr>> Allocator::AcquireAnyOpen(NodeId node, GlobalAddr within) {
  ControlRequest request;
  request.kind = ControlRequest::Kind::kAllocOpen;
  request.size_class = SizeClass(0);
  request.owner = context_.membership.id;
  request.block = within;
  const Result<ControlReply> reply = co_await AskForBlock(node, request);
  if (!reply.ok()) co_return reply.status();
  if (reply.value().outcome != ControlReply::Outcome::kOpened) {
    co_return Status(StatusCode::kCorrupt, "a memory node gave a block that is not open");
  }
  const SizeClass size_class = reply.value().size_class;
  co_return co_await AdoptOpened(reply.value().block, size_class, size_class.index());
}

Task<Result<bool>> Allocator::AcquireOpenIn(uint32_t region) {
  constexpr uint32_t kAcquiredAtOnce = 16;
  const GlobalAddr within(region, kBlockBytes);
  for (uint32_t acquired = 0; acquired < kAcquiredAtOnce && !context_.hold.held(); ++acquired) {
    if (!context_.view().Contains(within) || context_.view().IsLeaving(within)) co_return false;
    const NodeId node = context_.view().Locate(within, 0).node;
    const Result<GlobalAddr> start = co_await AcquireAnyOpen(node, within);
    if (start.status().code() == StatusCode::kOutOfMemory) co_return false;
    if (!start.ok()) co_return start.status();
    if (OwnBlock* const block = blocks_.Find(start.value()); block != nullptr)
      block->looked_at = true;
  }
  co_return true;
}

Task<bool> Allocator::OpenAllBut(const std::vector<GlobalAddr>& keep) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const bool released = co_await context_.hold.Wait(context_.executor.NowNs() + kPatienceNs);
  // What has failed may yet arrive: whoever takes the blocks over waits for that.
  if (!released || !context_.fabric.settled()) co_return false;
  const ViewHold::Presence presence(context_.hold);
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) block->kept = false;
  bool keeps_in_own = true;
  for (const GlobalAddr addr : keep) {
    keeps_in_own &= blocks_.Find(addr) != nullptr;
    blocks_.KeepBlockOf(addr);
  }
  std::vector<OwnBlock*> open;
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) {
    const bool waits = sweeper_.IsCollecting(*block);
    if (!block->kept && !waits) open.push_back(block.get());
  }
  for (OwnBlock* const block : open) Disown(*block);
  if (!foreign_.empty()) (void)co_await foreign_.Flush();
  co_await TellOpened();
  const bool leaves_nothing = keeps_in_own && !foreign_.has_lost_bits() && !may_lack_ &&
                              !foreign_.has_late() && opening_.empty() && to_return_.empty() &&
                              to_claim_.empty() && !has_unheard_grant_;
  co_return leaves_nothing;
}

bool Allocator::OthersMayGive() const {
  if (context_.view().worker_index_end <= 1 || context_.hold.holds_all()) return false;
  if (context_.executor.NowNs() < barren_until_ns_) return false;
  // Everybody has looked at what this worker says, and said what he does about it, two epochs on.
  return reclaimer_.others_give() || !reclaimer_.IsSafe(short_since_epoch_ + 2);
}

}  // namespace onetrip
