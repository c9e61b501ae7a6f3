// Store: where the master's durable state lives, behind an interface so that tests and a simulation
// can do without a disk.
#ifndef ONETRIP_MASTER_STORE_H_
#define ONETRIP_MASTER_STORE_H_

#include <string>

#include "client_core/base/status.h"
#include "master/durable_state.h"

namespace onetrip {

// One thread at a time.
class Store {
 public:
  virtual ~Store() = default;

  // The sum of all writes so far; of a new store a DurableState without cluster. kCorrupt or
  // kUnavailable: *reason says in one line what is wrong and where.
  virtual Result<DurableState> Load(std::string* reason) = 0;

  // Makes all of `change` durable, or nothing of it. Blocks until the disk has it. On failure
  // *reason is one line; the next write may succeed.
  virtual Status Write(const DurableChange& change, std::string* reason) = 0;

  // The bytes of a file that a master could be started from, with all writes so far. On failure
  // *reason is one line.
  virtual Result<std::string> Copy(std::string* reason) {
    *reason = "this master's store has no file";
    return Status(StatusCode::kUnavailable, "no file");
  }
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_STORE_H_
