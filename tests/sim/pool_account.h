// The pool at rest: everything allocated is named by the index, and nothing else is.
#ifndef ONETRIP_TESTS_SIM_POOL_ACCOUNT_H_
#define ONETRIP_TESTS_SIM_POOL_ACCOUNT_H_

#include <string>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/fabric/control.h"
#include "tests/sim/memory_watch.h"

namespace onetrip {

// `may_be_unfinished`: outcomes were unknown, and no client has asked for those keys since.
// `owes_look`: a worker that is gone has said that only a look finds what it has lost.
std::string AccountForPool(const std::vector<MemoryEndpoint*>& nodes, const View& view,
                           const MemoryWatch& memory, bool may_be_unfinished, bool owes_look);

// The same of a pool that is not at rest: what the index and registers name has not been released.
std::string AccountForNamed(const std::vector<MemoryEndpoint*>& nodes, const View& view,
                            const MemoryWatch& memory);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_POOL_ACCOUNT_H_
