#include "client_core/memory/compaction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// In rests between rounds. Objects that were moved are retired for some epochs, and those that
// others have freed have to be collected.
constexpr uint64_t kEmptyingRests = 3;
// A block that could not be emptied will mostly be in use for longer.
constexpr uint64_t kStuckRests = 25;

// The room that the blocks that stay have for the objects of the others.
class RoomToMove {
 public:
  // The first class that is too large for an object of `size_class` to be moved to.
  static uint8_t WidenedEnd(SizeClass size_class) {
    constexpr uint64_t kTimesMax = 4;  // as large
    const SizeClass largest = SizeClass::For(kTimesMax * size_class.bytes());
    return std::min<uint8_t>(largest.index() + 1, SizeClass::kSlabClasses);
  }

  void Add(SizeClass size_class, size_t objects) { free_[size_class.index()] += objects; }

  // True if a block with `used` and `free` objects may be emptied: it is room no more, and its
  // objects have their place elsewhere. In larger classes they take half a block at most, or
  // nothing would be won.
  bool Take(SizeClass size_class, size_t used, size_t free, bool may_widen) {
    std::array<size_t, SizeClass::kSlabClasses> left = free_;
    size_t& own = left[size_class.index()];
    if (own < free) return false;  // others count on it
    own -= free;
    const size_t alike = std::min(used, own);
    own -= alike;
    used -= alike;
    uint64_t bytes = 0;
    const uint8_t end = may_widen ? WidenedEnd(size_class) : 0;
    for (uint8_t index = size_class.index() + 1; used > 0 && index < end; ++index) {
      const size_t wider = std::min(used, left[index]);
      left[index] -= wider;
      used -= wider;
      bytes += wider * SizeClass(index).bytes();
    }
    if (used > 0 || bytes > kBlockBytes / 2) return false;
    free_ = left;
    return true;
  }

 private:
  std::array<size_t, SizeClass::kSlabClasses> free_{};
};

}  // namespace

std::vector<OwnBlock*> Compaction::SparseBlocks(uint32_t used_percent_max) const {
  const uint64_t now_ns = context_.executor.NowNs();
  const auto used = [](const OwnBlock* block) { return block->objects - block->free.size(); };
  std::vector<OwnBlock*> sparse;
  for (uint32_t list = 0; list < blocks_.list_count(); ++list) {
    if (list % SizeClass::kCount >= SizeClass::kSlabClasses) continue;
    for (OwnBlock* block : blocks_.list(list)) {
      const bool is_sparse =
          used(block) != 0 && used(block) * 100 <= uint64_t{used_percent_max} * block->objects;
      if (is_sparse && !block->kept && block->stuck_until_ns <= now_ns) sparse.push_back(block);
    }
  }
  std::stable_sort(sparse.begin(), sparse.end(), [&](const OwnBlock* one, const OwnBlock* other) {
    return used(one) * one->size_class.bytes() < used(other) * other->size_class.bytes();
  });
  return sparse;
}

std::vector<Compaction::Sparse> Compaction::BeginEmptying(uint32_t used_percent_max,
                                                          size_t blocks_max, bool may_widen) {
  RoomToMove room;
  for (uint8_t index = 0; index < SizeClass::kSlabClasses; ++index) {
    for (const OwnBlock* block : blocks_.list(index))
      room.Add(SizeClass(index), block->free.size());
  }
  const uint64_t now_ns = context_.executor.NowNs();
  const uint64_t rest_ns = context_.options.compaction_rest_us * 1000;
  std::vector<Sparse> blocks;
  for (OwnBlock* block : SparseBlocks(used_percent_max)) {
    if (blocks.size() == blocks_max) break;
    // Registers that are moved because of their buffers leave all of them.
    const size_t used = block->objects - block->free.size();
    if (!block->is_buffers() &&
        !room.Take(block->size_class, used, block->free.size(), may_widen)) {
      continue;
    }
    blocks_.Unlist(*block);
    block->emptying = true;
    emptying_.push_back({block->start, now_ns + kEmptyingRests * rest_ns});
    blocks.push_back({block->start, block->size_class, block->is_buffers()});
  }
  return blocks;
}

OwnBlocks::Object Compaction::TryAllocateToMove(SizeClass size_class, bool may_widen) {
  const uint8_t end =
      may_widen ? RoomToMove::WidenedEnd(size_class) : static_cast<uint8_t>(size_class.index() + 1);
  for (uint8_t index = size_class.index(); index < end; ++index) {
    const GlobalAddr addr = blocks_.TakeObject(SizeClass(index));
    if (!addr.is_null()) return {addr, SizeClass(index)};
  }
  return {};
}

std::vector<GlobalAddr> Compaction::UsedIn(GlobalAddr start) const {
  const OwnBlock* const block = blocks_.Find(start);
  std::vector<bool> is_free(block->objects);
  for (const uint16_t index : block->free) is_free[index] = true;
  std::vector<GlobalAddr> used;
  for (uint32_t i = 0; i < block->objects; ++i) {
    if (is_free[i]) continue;
    used.push_back(ObjectAddr(start, block->size_class, static_cast<uint16_t>(i)));
  }
  return used;
}

void Compaction::End(bool moved_any) {
  constexpr uint64_t kBarrenRests = 3;
  runs_ = false;
  if (moved_any) return;
  barren_until_ns_ =
      context_.executor.NowNs() + kBarrenRests * context_.options.compaction_rest_us * 1000;
}

bool Compaction::MayBringMemory() const {
  if (is_under_way()) return true;
  return begin_ && !context_.quiesce.held() && context_.executor.NowNs() >= barren_until_ns_;
}

void Compaction::FillAgain(OwnBlock& block) {
  block.emptying = false;
  block.stuck_until_ns =
      context_.executor.NowNs() + kStuckRests * context_.options.compaction_rest_us * 1000;
  if (!block.free.empty()) blocks_.Enlist(block);
}

bool Compaction::FillAgainFor(const OwnBlocks::Want& want) {
  const auto serves = [&](const OwnBlock* block) {
    if (block == nullptr || !block->emptying || block->leaving || block->free.empty()) return false;
    if (block->size_class != want.size_class) return false;
    return want.near.is_null() ||
           blocks_.BufferList(want.size_class, block->start) == blocks_.ListFor(want);
  };
  const auto found = std::find_if(emptying_.begin(), emptying_.end(), [&](const Emptying& one) {
    return serves(blocks_.Find(one.start));
  });
  if (found == emptying_.end()) return false;
  FillAgain(*blocks_.Find(found->start));
  emptying_.erase(found);
  return true;
}

void Compaction::FillAgainWhatIsLate() {
  const uint64_t now_ns = context_.executor.NowNs();
  const auto is_over = [&](const Emptying& one) {
    OwnBlock* const block = blocks_.Find(one.start);
    if (block == nullptr || !block->emptying) return true;  // it has gone back
    if (runs_ || now_ns < one.until_ns) return false;
    FillAgain(*block);
    return true;
  };
  std::erase_if(emptying_, is_over);
}

void Compaction::UseView(const View& view) {
  std::erase_if(emptying_, [&](const Emptying& one) { return !view.Contains(one.start); });
}

}  // namespace onetrip
