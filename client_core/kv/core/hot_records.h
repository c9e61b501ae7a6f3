// HotRecords: the records that this worker has written again and again, to whose next write it
// brings no search (PROTOCOLS, "Hot records").
//
// The slot's word that a worker has put there itself is all that the next write needs, as long as
// no word can have come back to the slot meanwhile: while the worker is in the epoch in which it
// wrote, and under the same view. Only a write that wins proves that the record was still there.
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_HOT_RECORDS_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_HOT_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client_core/index/index.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/reclaim.h"

namespace onetrip {

class HotRecords {
 public:
  // Larger records are searched for.
  static constexpr uint32_t kRecordBytesMax = 512;

  // Both outlive it.
  HotRecords(WorkerContext& context, const Reclaimer& reclaimer)
      : context_(context), reclaimer_(reclaimer), places_(kPlaces) {}

  // A new view: slots may have gone elsewhere.
  void UseView() { ++views_; }
  // For Wrote(): from before the write.
  [[nodiscard]] uint64_t views() const { return views_; }

  // `operation`, which is pinned still, has replaced the word `old` in the slot of `now` by that of
  // `now`, which names `record`, of `bytes`: borrowed.
  void Wrote(const Operation& operation, uint64_t views, const IndexKey& key, SlotWord old,
             Entry now, const std::byte* record, uint32_t bytes);
  // The key is no more as it is remembered.
  void Forget(KeyHash hash) { places_[PlaceOf(hash)] = Place(); }

  // At work while what `search` remembers is written, if it does.
  [[nodiscard]] MechanismScope Writing(const SearchResult& search) const {
    return {search.remembered ? context_.mechanism_observer : nullptr, Mechanism::kHotWrite};
  }
  // Fills `result` as a search would that had found the record as it is remembered; `remembered`
  // is set. False: it is not hot. REQUIRES: the caller is at the slots, and pinned.
  bool Find(const IndexKey& key, SearchResult* result) const;

 private:
  static constexpr size_t kPlaces = 256;
  struct Place {
    KeyHash hash;
    Entry entry;  // no word: free
    uint64_t epoch = 0;
    uint64_t views = 0;
    uint32_t streak = 0;  // DataPathOptions::hot_after
    std::vector<std::byte> record;
  };
  static size_t PlaceOf(KeyHash hash) { return hash.bits() % kPlaces; }

  WorkerContext& context_;
  const Reclaimer& reclaimer_;
  uint64_t views_ = 0;
  std::vector<Place> places_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_HOT_RECORDS_H_
