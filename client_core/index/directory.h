// Directory: this worker's copy of which subtable holds which hash suffix.
//
// Entry s + 2^b names the subtable that split off suffix s at bit b. The copy may be stale, which
// the group headers reveal to a reader of a bucket; then the one entry in question is read again.
#ifndef ONETRIP_CLIENT_CORE_INDEX_DIRECTORY_H_
#define ONETRIP_CLIENT_CORE_INDEX_DIRECTORY_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

struct Subtable {
  GlobalAddr start;
  uint32_t entry = 0;  // in the directory; also the suffix of its keys
  uint32_t depth = 0;  // as far as this worker knows

  [[nodiscard]] GlobalAddr Word(uint32_t group, uint32_t word) const {
    return start + group * kGroupBytes + word * 8;
  }
};

class Directory {
 public:
  explicit Directory(WorkerContext& context) : context_(context), words_(kDirectoryEntries) {}

  // Puts the directory `number` of the root area in force; if it was not, all that was known is
  // forgotten.
  void Use(uint8_t number);
  [[nodiscard]] uint8_t number() const { return number_; }
  // Where an entry lies, of the directory in force.
  [[nodiscard]] GlobalAddr AddrOf(uint32_t entry) const { return DirectoryAddr(entry, number_); }

  // The deepest known subtable on the hash's path. Its place is null where entry 0 is not known.
  [[nodiscard]] Subtable Lookup(KeyHash hash) const;
  [[nodiscard]] Subtable At(uint32_t entry) const {
    return {words_[entry].subtable(), entry, words_[entry].depth()};
  }
  [[nodiscard]] bool Knows(uint32_t entry) const { return words_[entry].is_used(); }

  // The entry of the subtable that took the key away from suffix `entry` when it was split to
  // `depth`. REQUIRES: the key's suffix differs.
  static uint32_t ChildEntry(uint32_t entry, uint32_t depth, KeyHash hash) {
    const uint32_t different = (hash.suffix(depth) ^ entry) & SuffixMask(depth);
    return entry | (1U << std::countr_zero(different));
  }
  // The entry that `entry` was split from. REQUIRES: entry != 0.
  static uint32_t ParentEntry(uint32_t entry) { return entry & ~std::bit_floor(entry); }

  // A group header of `entry` shows that its subtable is `depth` deep by now.
  void NoteDepth(uint32_t entry, uint32_t depth);
  // Reads an entry from the primary and keeps it if it is in use. kUnavailable, as of the next one:
  // another directory has come into force meanwhile.
  Task<Result<DirectoryWord>> Refresh(Operation& operation, uint32_t entry);
  // The same for `count` entries from `first` on; appends those in use to `used`, and those that
  // are being split to `splitting`.
  Task<Status> RefreshStretch(Operation& operation, uint32_t first, uint32_t count,
                              std::vector<uint32_t>* used, std::vector<uint32_t>* splitting);
  void Keep(uint32_t entry, DirectoryWord word);

 private:
  [[nodiscard]] bool IsSound(uint32_t entry, DirectoryWord word) const;

  WorkerContext& context_;
  uint8_t number_ = 0;
  uint64_t uses_ = 0;  // how often another one came into force
  std::vector<DirectoryWord> words_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_DIRECTORY_H_
