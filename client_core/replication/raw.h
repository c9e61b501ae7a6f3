// RAW: one replica, one CAS (SWARM 7.1). The floor that no replicated engine can beat; it survives
// nothing.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_RAW_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_RAW_H_

#include "client_core/replication/engine.h"

namespace onetrip {

class Raw final : public Engine {
 public:
  explicit Raw(WorkerContext& context) : context_(context) {}

  [[nodiscard]] int Replicas(const View& /*view*/, GlobalAddr /*addr*/) const override { return 1; }
  [[nodiscard]] std::string_view name() const override { return "raw"; }
  MaybeTask<Result<SlotOutcome>> Write(Operation& operation, SlotWrite write) override {
    return CasOne(operation, write);
  }

 private:
  Task<Result<SlotOutcome>> CasOne(Operation& operation, SlotWrite write);

  WorkerContext& context_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_RAW_H_
