// Counters: how many keys this worker has added to each keyspace, less those that it removed
// (KeyCounters). They are published behind every change; DBSIZE adds those of all workers. Private
// to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_COUNTERS_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_COUNTERS_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "client_core/kv/core/core.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Returns true if some database means this keyspace.
bool IsMeant(const std::array<KeyspaceId, kMaxDatabases>& keyspaces, KeyspaceId keyspace);

class Counters {
 public:
  explicit Counters(KvCore& core) : core_(core) {}

  // A seat may have been another worker's before: its counts go on.
  Task<Status> LoadCounters();
  void Count(uint32_t database, KeyspaceId keyspace, int32_t delta);
  // Counts the keys of all workers; see Store::CountKeys().
  Task<Status> CountKeys(uint32_t database, uint64_t* keys);

 private:
  struct Tally {
    KeyspaceId keyspace;
    uint32_t count = 0;
  };
  // Where this worker counts the keys of a keyspace of the newest view that `database` has, or had
  // when the operation began.
  Tally& TallyOf(uint32_t database, KeyspaceId keyspace);
  Task<void> PublishCounters();

  KvCore& core_;
  std::array<Tally, kMaxDatabases> tallies_;
  std::bitset<kMaxDatabases> dirty_;  // not published yet
  bool publishing_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_COUNTERS_H_
