// ShardedMap: a hash map of numbers that grows in parts.
//
// A hash map that doubles moves all that it has within one insertion: of millions of entries, in
// some tenths of a second. Here an insertion moves a small share of them. Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_BASE_SHARDED_MAP_H_
#define ONETRIP_CLIENT_CORE_BASE_SHARDED_MAP_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace onetrip {

template <typename Value>
class ShardedMap {
 public:
  // Null if there is none. Good until the next entry is made.
  [[nodiscard]] Value* Find(uint64_t key) {
    Shard& shard = ShardOf(key);
    const auto found = shard.find(key);
    return found == shard.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool Contains(uint64_t key) const { return ShardOf(key).contains(key); }
  // Made from nothing if need be.
  Value& operator[](uint64_t key) { return ShardOf(key)[key]; }
  // Returns true if there was one.
  bool Erase(uint64_t key) { return ShardOf(key).erase(key) != 0; }

  // visit(key, value) of each entry, in no particular order.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (Shard& shard : shards_) {
      for (auto& [key, value] : shard) visit(key, value);
    }
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Shard& shard : shards_) {
      for (const auto& [key, value] : shard) visit(key, value);
    }
  }
  // Erases those of which `is_meant(value)`.
  template <typename IsMeant>
  void EraseIf(IsMeant is_meant) {
    for (Shard& shard : shards_) {
      absl::erase_if(shard, [&](const auto& entry) { return is_meant(entry.second); });
    }
  }

 private:
  using Shard = absl::flat_hash_map<uint64_t, Value>;
  static constexpr int kShardBits = 8;

  // The multiplication spreads addresses, which have little in their low bits.
  static size_t NumberOf(uint64_t key) {
    return (key * 0x9e3779b97f4a7c15ULL) >> (64 - kShardBits);
  }
  Shard& ShardOf(uint64_t key) { return shards_[NumberOf(key)]; }
  const Shard& ShardOf(uint64_t key) const { return shards_[NumberOf(key)]; }

  std::array<Shard, size_t{1} << kShardBits> shards_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_SHARDED_MAP_H_
