// Scanner: walks over the keys of a database for SCAN, KEYS, RANDOMKEY, and INFO's count of
// deadlines (Store::Scan()). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_SCAN_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/form.h"

namespace onetrip {

class Scanner {
 public:
  // `store`, of which it is a part, tells whether keys are there whose entries do not.
  Scanner(KvCore& core, Forms& forms, IndexWalker& walker, Kv& store)
      : core_(core), forms_(forms), walker_(walker), store_(store) {}

  // As Store's.
  Task<Status> Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor, uint64_t* cursor);
  Task<Status> RandomKey(uint32_t database, std::string* key, bool* found);
  Task<Status> SampleDeadlines(uint32_t database, DeadlineSample* sample);

 private:
  struct ListedKey;
  template <typename Step>
  Task<Status> AgainWhenLost(Step step);
  Task<Status> ListKeys(uint32_t database, Subtable table, uint32_t group, uint32_t groups,
                        std::vector<ListedKey>* keys);
  Task<void> ListGroup(uint32_t database, Subtable table, uint32_t group,
                       std::vector<ListedKey>* keys, Status* failure);
  // GETs the keys whose entries do not tell whether they are there.
  Task<Status> LookAtKeys(uint32_t database, std::vector<ListedKey>* keys);
  Task<void> LookAtKey(uint32_t database, ListedKey* key, Status* failure);
  void AddToSample(const std::vector<ListedKey>& keys, DeadlineSample* sample) const;

  KvCore& core_;
  Forms& forms_;
  IndexWalker& walker_;
  Kv& store_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_SCAN_H_
