#include "client_core/memory/accounting.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {

void Accounting::Begin() {
  is_open_ = true;
  generation_ = holders_.generation();
  epoch_ = reclaimer_.current_epoch();
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) {
    block->suspect.assign(block->objects, true);
    for (const uint16_t index : block->free) block->suspect[index] = false;
  }
  for (const OwnBlocks::FreeObject& object : blocks_.to_clear()) {
    blocks_.Find(object.block)->suspect[object.index] = false;
  }
  for (const Retirement::Object& retired : retirement_.objects()) KnowOf(retired.addr);
  const RetiredRegisters& registers = retirement_.registers();
  for (const GlobalAddr ring : {registers.given(), registers.left()}) {
    if (!ring.is_null()) KnowOf(ring);
  }
}

void Accounting::End() {
  is_open_ = false;
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) {
    block->suspect.clear();
    const bool is_listed = !block->free.empty() && !block->is_set_aside();
    const bool opens = std::exchange(block->looked_at, false) && is_listed;
    if (opens && block->may_be_closed()) opener_.Close(*block);
  }
}

std::vector<Accounting::Suspects> Accounting::SuspectBlocks() const {
  std::vector<Suspects> blocks;
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) {
    const bool any = std::any_of(block->suspect.begin(), block->suspect.end(),
                                 [](bool is_suspect) { return is_suspect; });
    if (any) blocks.push_back({block->start, block->size_class});
  }
  return blocks;
}

bool Accounting::IsSuspect(GlobalAddr addr) const {
  const OwnBlock* const block = blocks_.Find(addr);
  if (block == nullptr || block->suspect.empty()) return false;
  return block->suspect[ObjectIndex(addr, block->start, block->size_class)];
}

void Accounting::KnowOf(GlobalAddr addr) {
  OwnBlock* const block = blocks_.Find(addr);
  if (block == nullptr || block->suspect.empty()) return;
  block->suspect[ObjectIndex(addr, block->start, block->size_class)] = false;
}

Task<Status> Accounting::CollectFreed(GlobalAddr start, const std::vector<bool>& unused) {
  const OwnBlock* const block = blocks_.Find(start);
  if (block == nullptr) co_return Status::Ok();
  if (sweeper_.IsCollecting(*block)) {
    co_return Status(StatusCode::kUnavailable, "what others have freed is being collected");
  }
  if (Planted(Bug::kBackupBitsIgnored) || block->suspect.empty()) {
    co_return co_await sweeper_.Sweep(start);
  }
  std::vector<bool> given_up = unused;
  for (size_t i = 0; i < given_up.size(); ++i) given_up[i] = unused[i] && block->suspect[i];
  co_return co_await sweeper_.Sweep(start, &given_up);
}

void Accounting::FreeLost(GlobalAddr addr) {
  OwnBlock* const block = blocks_.Find(addr);
  const uint16_t index = ObjectIndex(addr, block->start, block->size_class);
  CHECK(block->suspect[index]);
  if (context_.memory_observer != nullptr) {
    context_.memory_observer->Reclaimed(addr, block->size_class);
  }
  if (block->is_buffers()) {
    if (block->stale_lock.empty()) block->stale_lock.resize(block->objects);
    block->stale_lock[index] = true;
  }
  metrics_.objects_found.Add();
  blocks_.ListAgain(*block, index);
}

}  // namespace onetrip
