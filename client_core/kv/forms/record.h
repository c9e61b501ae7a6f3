// Records: keys whose slots name a record, or the root of a value in extents: how they are
// inserted, replaced, restated and removed (FUSEE 4). Private to kv/; the worker's
// thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_H_

#include <cstdint>
#include <string_view>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/extents.h"
#include "client_core/kv/forms/form.h"

namespace onetrip {

class Records {
 public:
  Records(KvCore& core, Counters& counters, Drafts& drafts, Extents& extents)
      : core_(core), counters_(counters), drafts_(drafts), extents_(extents) {}

  // The draft takes the place of the record that `search` found, whatever it holds. kDone: it has,
  // as `won`, unless null, then tells, or it lost to another blind write, just before which it
  // counts as written, and is abandoned. kAgain: it lost, and may have got other memory.
  Task<Result<Step>> OverwriteBlindly(Operation& operation, const IndexKey& key,
                                      const SearchResult& search, Draft* draft,
                                      bool* won = nullptr);
  // Inserts after a search that found nothing, splitting if need be. `writes`: as Index::Insert.
  // `done` tells whether to stop.
  Task<Status> TryInsert(Operation& operation, const IndexKey& key, const SearchResult& search,
                         bool blind, RoundTripPtr writes, Draft* draft, bool* done);
  // The origin of the record that `search` found, which has to be told before the record is
  // replaced; `first` then holds the WRITEs that do.
  bool TellOrigin(const SearchResult& search, RecordOrigin* origin, RoundTripPtr* first);
  void RetireOrigin(const RecordOrigin& origin);
  // One attempt to empty the entry that `search` found; `removed` tells.
  Task<Status> TryRemove(Operation& operation, const SearchResult& search, bool* removed);
  Task<Status> RemoveExpired(Operation& operation, uint32_t database, const IndexKey& key,
                             const SearchResult& search, bool* removed);
  // The record that `search` found is written anew, to `reserved`, and nothing else changes. The
  // memory of a register whose place it took comes back now, not when the key is written. `root`,
  // unless null, is its value then; `won`, unless null, tells whether it has it.
  Task<Status> RestateRecord(RegisterOperation& operation, const IndexKey& key,
                             const SearchResult& search, Draft* reserved, bool* done,
                             const std::string_view* root = nullptr, bool* won = nullptr);
  // Fills in what the intact record says that `search` found; for a root, its own value.
  static void FillFromRecord(const SearchResult& search, ReadResult* result);

 private:
  KvCore& core_;
  Counters& counters_;
  Drafts& drafts_;
  Extents& extents_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_H_
