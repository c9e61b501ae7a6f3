#include "client_core/memory/retirement.h"

#include <algorithm>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {

void Retirement::Release(GlobalAddr addr, SizeClass size_class) {
  const uint16_t index = ObjectIndex(addr, addr.block_start(), size_class);
  OwnBlock* block = blocks_.Find(addr);
  if (context_.memory_observer != nullptr) {
    const bool is_buffer = block != nullptr && block->is_buffers();
    context_.memory_observer->Released(addr, size_class,
                                       is_buffer ? MemoryUse::kBuffer : MemoryUse::kObject);
  }
  if (block != nullptr) {
    CHECK(block->size_class == size_class);
    blocks_.ListAgain(*block, index);
    return;
  }
  foreign_.Add(addr.block_start(), index);
}

void Retirement::Retire(GlobalAddr addr, SizeClass size_class) {
  retired_.push_back({addr, size_class, reclaimer_.current_epoch(), NoteUnlinked()});
  NoteRetired(addr, size_class);
}

void Retirement::RetireRegister(GlobalAddr addr, SizeClass size_class) {
  registers_.Add({addr, size_class, NoteUnlinked()});
  NoteRetired(addr, size_class);
}

void Retirement::NoteRetired(GlobalAddr addr, SizeClass size_class) {
  if (context_.memory_observer != nullptr) context_.memory_observer->Retired(addr, size_class);
  metrics_.retired_bytes.Add(size_class.bytes());
  ++since_tick_;
  bytes_since_tick_ += size_class.bytes();
}

Task<void> Retirement::PublishRegisters() {
  std::vector<RetiredRegisters::Retired> published;
  (void)co_await registers_.Publish(&published);
  for (const RetiredRegisters::Retired& retired : published) {
    retired_.push_back(
        {retired.addr, retired.size_class, reclaimer_.current_epoch(), retired.unlinked});
  }
}

Task<void> Retirement::DoubtRegisters() {
  const Status doubted = co_await registers_.DoubtAll();
  doubt_wanted_ = !doubted.ok();
  if (doubted.ok()) doubted_epoch_ = reclaimer_.current_epoch();
}

bool Retirement::ReleaseSome() {
  // A collection of a million gives up tens of thousands of pages at once.
  constexpr size_t kInATurn = 1000;
  size_t released = 0;
  while (!retired_.empty() &&
         (reclaimer_.IsSafe(retired_.front().epoch) || Planted(Bug::kRetiredAtOnce))) {
    if (released++ == kInATurn) return true;
    const Object retired = retired_.front();
    retired_.pop_front();
    metrics_.retired_bytes.Sub(retired.size_class.bytes());
    NoteReleased(retired.unlinked);
    Release(retired.addr, retired.size_class);
  }
  return false;
}

uint64_t Retirement::retired_since() const {
  if (unlinked_.empty() || Planted(Bug::kRetiredNotTold)) return ~uint64_t{0};
  return unlinked_.front().epoch;
}

uint64_t Retirement::NoteUnlinked() {
  const uint64_t epoch = reclaimer_.current_epoch();
  if (unlinked_.empty() || unlinked_.back().epoch != epoch) unlinked_.push_back({epoch, 0});
  ++unlinked_.back().objects;
  return epoch;
}

void Retirement::NoteReleased(uint64_t unlinked) {
  const auto found =
      std::find_if(unlinked_.begin(), unlinked_.end(),
                   [&](const UnlinkedCount& count) { return count.epoch == unlinked; });
  CHECK(found != unlinked_.end() && found->objects > 0);
  --found->objects;
  while (!unlinked_.empty() && unlinked_.front().objects == 0) unlinked_.pop_front();
}

}  // namespace onetrip
