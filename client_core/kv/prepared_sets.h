// PreparedSets: memory that was set aside for several keys before the first of them is written, so
// that none is refused for want of it behind others that were. Kv::Prepare() fills it,
// Kv::SetPrepared() takes from it; what is left is given back. Borrows the Kv; its thread's.
#ifndef ONETRIP_CLIENT_CORE_KV_PREPARED_SETS_H_
#define ONETRIP_CLIENT_CORE_KV_PREPARED_SETS_H_

#include <cstddef>
#include <memory>

#include "client_core/kv/kv.h"

namespace onetrip {

// One of them. The key's bytes and the record's are borrowed until its SetPrepared() ends.
struct PendingSet {
  Key key;
  NewRecord record;
};

class PreparedSets {
 public:
  PreparedSets();
  ~PreparedSets();
  PreparedSets(const PreparedSets&) = delete;
  PreparedSets& operator=(const PreparedSets&) = delete;

  // Whether Prepare() has filled it.
  [[nodiscard]] bool is_filled() const { return memory_ != nullptr; }

 private:
  friend class KvImpl;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_PREPARED_SETS_H_
