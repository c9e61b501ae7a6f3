#include "client_core/replication/engine.h"

#include "client_core/base/check.h"
#include "client_core/replication/raw.h"
#include "client_core/replication/snapshot.h"

namespace onetrip {

std::unique_ptr<Engine> MakeEngine(EngineKind kind, WorkerContext& context) {
  switch (kind) {
    case EngineKind::kSwarm:
      return std::make_unique<Swarm>(context);
    case EngineKind::kSnapshot:
      return std::make_unique<Snapshot>(context);
    case EngineKind::kAbd:
      return std::make_unique<DmAbd>(context);
    case EngineKind::kRaw:
      return std::make_unique<Raw>(context);
  }
  CheckFailed(__FILE__, __LINE__, "an engine of every kind");
}

}  // namespace onetrip
