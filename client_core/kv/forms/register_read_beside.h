// RegisterReadBeside: the first round trip of a GET of a register of which it knows no more than
// what its slot's word was, or is: it goes beside the read of the key, or brings the key along.
// Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_READ_BESIDE_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_READ_BESIDE_H_

#include <optional>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/core.h"

namespace onetrip {

class RegisterReadBeside final : public ReadsBeside {
 public:
  // Both outlive it.
  RegisterReadBeside(KvCore& core, const IndexKey& key) : core_(core), key_(key) {}

  // Only of a register, and if this worker knows registers.
  void BeginBeside(SlotWord word) override;
  // The same as a step of its own. REQUIRES: some pin has been held since the register was in the
  // index, or it is known and not forgotten.
  void Begin(SlotWord word);
  // The call that was begun for the register at `addr`; null: none.
  [[nodiscard]] QuorumCall* Of(GlobalAddr addr) {
    const bool is_its = addr == addr_ || Planted(Bug::kReadBesideOfAny);
    return call_.has_value() && is_its ? &*call_ : nullptr;
  }
  // True if the key was read, and is that of the register.
  [[nodiscard]] bool HasKey(const RegisterRef& ref) const;

 private:
  KvCore& core_;
  const IndexKey& key_;
  GlobalAddr addr_;
  std::optional<QuorumCall> call_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_READ_BESIDE_H_
