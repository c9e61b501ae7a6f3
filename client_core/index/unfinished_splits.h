// UnfinishedSplits: the splits that a worker has met under way, and when it will not wait for them
// any longer (PROTOCOLS.md, "Splits").
//
// A splitter may have ended, or have given up amid a change of the map. Single-threaded; one per
// worker.
#ifndef ONETRIP_CLIENT_CORE_INDEX_UNFINISHED_SPLITS_H_
#define ONETRIP_CLIENT_CORE_INDEX_UNFINISHED_SPLITS_H_

#include <cstdint>
#include <map>

namespace onetrip {

class UnfinishedSplits {
 public:
  // The split of directory entry `entry` was met. The first meeting counts: it is due at `due_ns`.
  void Met(uint32_t entry, uint64_t due_ns) { due_ns_.try_emplace(entry, due_ns); }
  // It is over, or was never there.
  void Done(uint32_t entry) { due_ns_.erase(entry); }
  // Returns true if one is due at `now_ns`; `*entry` is the first of them.
  [[nodiscard]] bool IsDue(uint64_t now_ns, uint32_t* entry) const {
    for (const auto& [at, due_ns] : due_ns_) {
      if (now_ns < due_ns) continue;
      *entry = at;
      return true;
    }
    return false;
  }
  [[nodiscard]] bool empty() const { return due_ns_.empty(); }

 private:
  std::map<uint32_t, uint64_t> due_ns_;  // by entry; few
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_UNFINISHED_SPLITS_H_
