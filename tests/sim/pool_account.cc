#include "tests/sim/pool_account.h"

#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstring>

#include "client_core/layout/region_layout.h"
#include "tests/support/index_worker.h"

namespace onetrip {
namespace {

std::string Where(GlobalAddr addr) {
  return "region " + std::to_string(addr.region()) + ", offset " + std::to_string(addr.offset());
}

// The word at the primary of `at`.
uint64_t LoadWord(const std::vector<MemoryEndpoint*>& nodes, const View& view, GlobalAddr at) {
  const RemoteAddr primary = view.Locate(at, 0);
  uint64_t word = 0;
  std::memcpy(&word, nodes.at(primary.node.value)->base() + primary.offset, sizeof word);
  return word;
}

// By its node, with the bits of what was free in it.
bool IsTakenBack(const std::vector<MemoryEndpoint*>& nodes, const View& view,
                 const MemoryWatch& memory, GlobalAddr block) {
  if (!memory.MayBeTakenBack(block)) return false;
  const GlobalAddr at(block.region(), offsetof(RegionHeader, blocks) + block.block() * 8);
  return BlockEntry(LoadWord(nodes, view, at)).use() == BlockEntry::Use::kFree;
}

}  // namespace

std::string AccountForPool(const std::vector<MemoryEndpoint*>& nodes, const View& view,
                           const MemoryWatch& memory, bool may_be_unfinished, bool owes_look) {
  const IndexPicture picture = LookAtIndex(nodes, view);
  if (!picture.replicas_agree && !may_be_unfinished) {
    return "at rest the index differs between its replicas";
  }
  if (picture.unfinished != 0 && !may_be_unfinished) {
    return "at rest the index holds something unfinished";
  }
  if (picture.misplaced != 0) return "an entry of the index is where its key does not belong";
  if (picture.duplicates != 0 && !may_be_unfinished) return "a key has two entries in the index";
  if (picture.damaged != 0) return "an extent that a slot's root names is not whole everywhere";
  absl::flat_hash_set<uint64_t> named;
  for (const GlobalAddr addr : picture.named) {
    if (!named.insert(addr.bits()).second) return "two slots name one object: " + Where(addr);
    if (!memory.IsLive(addr)) return "a slot names memory that is not in use: " + Where(addr);
  }
  for (const GlobalAddr addr : picture.buffers) {
    if (!memory.IsLive(addr)) return "a register's value is not in use: " + Where(addr);
  }
  const uint64_t live = memory.live_objects();
  if (live != named.size()) {
    return "memory leaks: " + std::to_string(live) + " objects are in use, " +
           std::to_string(named.size()) +
           " are named by the index; one that is not: " + Where(memory.LiveBesides(named));
  }
  if (owes_look) return {};
  for (const auto& [addr, size_class] : memory.OnTheWay()) {
    const GlobalAddr block = addr.block_start();
    if (IsTakenBack(nodes, view, memory, block)) continue;
    const uint16_t index = ObjectIndex(addr, block, size_class);
    const GlobalAddr word = block + BitmapOffset(addr.block()) + index / 64 * 8;
    const uint64_t bits = LoadWord(nodes, view, word);
    if ((bits >> (index % 64) & 1) == 0) return "memory leaks: nobody can find " + Where(addr);
  }
  return {};
}

std::string AccountForNamed(const std::vector<MemoryEndpoint*>& nodes, const View& view,
                            const MemoryWatch& memory) {
  const IndexPicture picture = LookAtIndex(nodes, view);
  for (const GlobalAddr addr : picture.named) {
    if (memory.IsFree(addr)) return "a slot names memory that is free: " + Where(addr);
  }
  for (const GlobalAddr addr : picture.buffers) {
    if (memory.IsFree(addr)) return "a register's value is free: " + Where(addr);
  }
  return {};
}

}  // namespace onetrip
