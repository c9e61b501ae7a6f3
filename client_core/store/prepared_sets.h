// PreparedSets: memory that was set aside for several keys before the first of them is written, so
// that none is refused for want of it behind others that were. Kv::Prepare() fills it,
// Kv::SetPrepared() takes from it; what is left is given back. The store outlives it; its thread's.
#ifndef ONETRIP_CLIENT_CORE_STORE_PREPARED_SETS_H_
#define ONETRIP_CLIENT_CORE_STORE_PREPARED_SETS_H_

#include <memory>
#include <utility>

#include "client_core/store/store.h"

namespace onetrip {

// One of them. The key's bytes and the record's are borrowed until its SetPrepared() ends.
struct PendingSet {
  Key key;
  NewRecord record;
};

class PreparedSets {
 public:
  // Memory that a store has set aside; the destructor gives it back.
  class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    virtual ~Memory() = default;
  };

  // Returns true if Prepare() has filled it.
  [[nodiscard]] bool is_filled() const { return memory_ != nullptr; }

  // For the store that fills it.
  void Fill(std::unique_ptr<Memory> memory) { memory_ = std::move(memory); }
  [[nodiscard]] Memory* memory() const { return memory_.get(); }

 private:
  std::unique_ptr<Memory> memory_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_STORE_PREPARED_SETS_H_
