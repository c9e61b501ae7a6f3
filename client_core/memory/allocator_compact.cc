// Blocks that are emptied, so that memory changes its size class (PROTOCOLS, "Compaction").
#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

// In rests between rounds. What was moved is retired for some epochs, and what others have freed
// has to be collected.
constexpr uint64_t kEmptyingRests = 3;
// What lives in a block that could not be emptied will mostly be there for longer.
constexpr uint64_t kStuckRests = 25;

}  // namespace

Task<bool> Allocator::AcquireSparse() {
  const uint16_t nodes = context_.view().node_count;
  for (int i = 0; i < nodes; ++i) {
    const NodeId node{static_cast<uint16_t>(next_grant_node_++ % nodes)};
    if (context_.view().IsOut(node)) continue;
    ControlRequest request;
    request.kind = ControlRequest::Kind::kAllocSparse;
    request.size_class = SizeClass(0);
    request.owner = context_.membership.id;
    const Result<ControlReply> reply = co_await AskForBlock(node, request);
    if (!reply.ok() || reply.value().outcome != ControlReply::Outcome::kOpened) continue;
    const SizeClass size_class = reply.value().size_class;
    const Result<GlobalAddr> adopted =
        co_await AdoptOpened(reply.value().block, size_class, size_class.index());
    if (adopted.ok()) co_return true;
  }
  co_return false;
}

void Allocator::ChooseSparse(uint32_t list, uint32_t used_percent_max,
                             std::vector<Block*>* chosen) {
  const uint64_t now_ns = context_.executor.NowNs();
  std::vector<Block*> sparse;
  uint64_t free = 0;
  for (Block* block : partial_[list]) {
    free += block->free.size();
    const uint64_t used = block->objects - block->free.size();
    const bool is_sparse = used != 0 && used * 100 <= uint64_t{used_percent_max} * block->objects;
    if (is_sparse && !block->kept && block->stuck_until_ns <= now_ns) sparse.push_back(block);
  }
  std::sort(sparse.begin(), sparse.end(), [](const Block* one, const Block* other) {
    return one->free.size() > other->free.size();
  });
  // Registers that are moved because of their buffers leave all of them.
  const bool is_buffers = list >= SizeClass::kCount;
  uint64_t to_move = 0;
  for (Block* block : sparse) {
    to_move += block->objects - block->free.size();
    free -= block->free.size();
    if (!is_buffers && to_move > free) return;
    chosen->push_back(block);
  }
}

std::vector<Allocator::Sparse> Allocator::BeginEmptying(uint32_t used_percent_max,
                                                        size_t blocks_max) {
  std::vector<Block*> chosen;
  for (uint32_t list = 0; list < partial_.size(); ++list) {
    if (list % SizeClass::kCount < SizeClass::kSlabClasses) {
      ChooseSparse(list, used_percent_max, &chosen);
    }
  }
  const auto used_bytes = [](const Block* block) {
    return (block->objects - block->free.size()) * block->size_class.bytes();
  };
  std::sort(chosen.begin(), chosen.end(), [&](const Block* one, const Block* other) {
    return used_bytes(one) < used_bytes(other);
  });
  if (chosen.size() > blocks_max) chosen.resize(blocks_max);
  const uint64_t rest_ns = context_.options.compaction_rest_us * 1000;
  std::vector<Sparse> blocks;
  for (Block* block : chosen) {
    Unlist(*block);
    block->emptying = true;
    emptying_.push_back({block->start, context_.executor.NowNs() + kEmptyingRests * rest_ns});
    blocks.push_back({block->start, block->size_class, IsBuffers(*block)});
  }
  return blocks;
}

std::vector<GlobalAddr> Allocator::UsedIn(GlobalAddr start) {
  const Block* const block = FindOwn(start);
  std::vector<bool> is_free(block->objects);
  for (const uint16_t index : block->free) is_free[index] = true;
  std::vector<GlobalAddr> used;
  for (uint32_t i = 0; i < block->objects; ++i) {
    if (is_free[i]) continue;
    used.push_back(ObjectAddr(start, block->size_class, static_cast<uint16_t>(i)));
  }
  return used;
}

void Allocator::EndCompaction(bool moved_any) {
  constexpr uint64_t kBarrenRests = 3;
  compacts_ = false;
  if (moved_any) return;
  compaction_barren_until_ns_ =
      context_.executor.NowNs() + kBarrenRests * context_.options.compaction_rest_us * 1000;
}

bool Allocator::MayCompact() const {
  if (compacts_ || !emptying_.empty()) return true;
  return begin_compaction_ && !context_.hold.held() &&
         context_.executor.NowNs() >= compaction_barren_until_ns_;
}

void Allocator::FillAgain(Block& block) {
  block.emptying = false;
  block.stuck_until_ns =
      context_.executor.NowNs() + kStuckRests * context_.options.compaction_rest_us * 1000;
  if (!block.free.empty()) Enlist(block);
}

void Allocator::FillAgainWhatIsLate() {
  const uint64_t now_ns = context_.executor.NowNs();
  const auto is_over = [&](const Emptying& one) {
    Block* const block = FindOwn(one.start);
    if (block == nullptr || !block->emptying) return true;  // it has gone back
    if (compacts_ || now_ns < one.until_ns) return false;
    FillAgain(*block);
    return true;
  };
  std::erase_if(emptying_, is_over);
}

}  // namespace onetrip
