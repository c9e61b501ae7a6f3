#include "client_core/memory/block_opener.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {
namespace {

// Blocks that memory nodes are told of at a time.
constexpr size_t kToldAtOnce = 16;

}  // namespace

void BlockOpener::CloseFor(uint64_t classes) {
  for (size_t list = 0; list < blocks_.list_count(); ++list) {
    if ((classes >> (list % SizeClass::kCount) & 1) != 0) CloseAllButOne(blocks_.list(list));
  }
}

void BlockOpener::CloseSparse() {
  OwnBlocks::List closed;
  for (size_t list = 0; list < SizeClass::kSlabClasses; ++list) {
    for (OwnBlock* block : blocks_.list(list)) {
      const bool is_sparse = block->free.size() * 2 >= block->objects;
      if (is_sparse && block->may_be_closed()) closed.push_back(block);
    }
  }
  CloseAll(closed);
}

void BlockOpener::CloseAllButOne(const OwnBlocks::List& list) {
  // With the least that is free, for the next allocations here; but this worker has never needed
  // what it has acquired only to look what is lost there.
  const auto stays =
      std::min_element(list.begin(), list.end(), [](const OwnBlock* one, const OwnBlock* other) {
        return std::pair(one->looked_at, one->free.size()) <
               std::pair(other->looked_at, other->free.size());
      });
  OwnBlocks::List closed;
  for (auto it = list.begin(); it != list.end(); ++it) {
    const bool may_stay = it == stays && !(*it)->looked_at;
    if (!may_stay && (*it)->may_be_closed()) closed.push_back(*it);
  }
  CloseAll(closed);
}

void BlockOpener::CloseAll(const OwnBlocks::List& closed) {
  for (OwnBlock* block : closed) Close(*block);
  if (!closed.empty()) transit_.NoteGave();
}

void BlockOpener::Close(OwnBlock& block) {
  blocks_.Unlist(block);
  block.closing = true;
  // One of its life before it was given back, and granted again.
  std::erase_if(closing_, [&](const Closing& one) { return one.start == block.start; });
  closing_.push_back({block.start, holders_.generation(), reclaimer_.current_epoch()});
}

void BlockOpener::OpenClosed() {
  std::vector<Closing> closing;
  std::swap(closing, closing_);
  for (const Closing& one : closing) {
    OwnBlock* const block = blocks_.Find(one.start);
    if (block == nullptr || !block->closing) continue;  // wholly free, and given back
    const bool may_be_held =
        !holders_.HaveEndedSince(one.generation) && !Planted(Bug::kOpenedWhileHeld);
    // Work that goes on behind its operation, or has failed and may still arrive, holds up the
    // epoch.
    const bool may_arrive = !reclaimer_.IsSafe(one.epoch) || !context_.fabric.settled();
    if (may_be_held || may_arrive || sweeper_.IsCollecting(*block)) {
      closing_.push_back(one);
      continue;
    }
    Disown(*block);
  }
}

void BlockOpener::Disown(OwnBlock& block) {
  if (context_.memory_observer != nullptr) context_.memory_observer->Opened(block.start);
  for (const uint16_t index : block.free) {
    if (Planted(Bug::kOpenedWithoutBits) && index % 2 == 0) continue;
    foreign_.Add(block.start, index);
  }
  transit_.OpenLater({block.start, block.size_class});
  has_opened_ = true;
  metrics_.blocks_opened.Add();
  if (Planted(Bug::kOpenedStillAllocates)) {
    if (std::exchange(block.closing, false) && !block.free.empty()) blocks_.Enlist(block);
    return;
  }
  if (!block.free.empty()) blocks_.Unlist(block);
  blocks_.Forget(block);
}

Task<void> BlockOpener::TellOpened() {
  if (transit_.is_telling() || !transit_.has_opening()) co_return;
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kOpenBlocks);
  std::vector<BlocksInTransit::Opening>& telling = transit_.BeginTelling();
  for (size_t first = 0; first < telling.size(); first += kToldAtOnce) {
    const size_t end = std::min(telling.size(), first + kToldAtOnce);
    std::vector<Status> told(end - first);
    std::vector<Task<void>> tasks;
    for (size_t i = first; i < end; ++i) {
      tasks.push_back(
          [](BlockOpener* self, BlocksInTransit::Opening* one, Status* status) -> Task<void> {
            *status = co_await self->TellOpened(one);
          }(this, &telling[i], &told[i - first]));
    }
    co_await WhenAll(std::move(tasks));
    for (size_t i = first; i < end; ++i) {
      if (!told[i - first].ok() && blocks_.Find(telling[i].start) == nullptr) {
        transit_.OpenLater(telling[i]);
      }
    }
  }
  transit_.EndTelling();
}

// The primary last: the worker that gets the block there asks the others next. A request that has
// failed is made again when it can't arrive any more. Where another worker has the block by then
// nothing changes.
Task<Status> BlockOpener::TellOpened(BlocksInTransit::Opening* opening) {
  constexpr Status kLater(StatusCode::kUnavailable, "a memory node has yet to answer");
  const GlobalAddr start = opening->start;
  if (!context_.fabric.settled() || transit_.IsTaken(start)) co_return kLater;
  std::optional<NodeRequests::NotAsked> not_asked;
  if (opening->asked_primary) {
    if (requests_.is_asking()) co_return kLater;
    not_asked.emplace(requests_, context_.view().Locate(start, 0).node);
  }
  const WorkerId self = context_.membership.id;
  for (int replica = context_.view().LiveReplicas(start) - 1; replica > 0; --replica) {
    // The view may have changed since the last one.
    if (replica >= context_.view().LiveReplicas(start)) continue;
    const Result<ControlReply> reply =
        co_await requests_.AskToTakeOver(start, opening->size_class, replica, self, kNobody);
    if (!reply.ok() || reply.value().outcome == ControlReply::Outcome::kFull) co_return kLater;
  }
  opening->asked_primary = true;
  const Result<ControlReply> reply =
      co_await requests_.AskToTakeOver(start, opening->size_class, 0, self, kNobody);
  if (!reply.ok() || reply.value().outcome == ControlReply::Outcome::kFull) co_return kLater;
  co_return Status::Ok();
}

bool BlockOpener::OpensOneOf(SizeClass size_class) const {
  return transit_.OpensOneOf(size_class) ||
         std::any_of(closing_.begin(), closing_.end(), [&](const Closing& one) {
           const OwnBlock* const block = blocks_.Find(one.start);
           return block != nullptr && block->closing && block->size_class == size_class;
         });
}

void BlockOpener::UseView(const View& view) {
  std::erase_if(closing_, [&](const Closing& one) { return !view.Contains(one.start); });
}

}  // namespace onetrip
