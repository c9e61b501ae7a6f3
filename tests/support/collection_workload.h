// Programs over lists, hashes, sets, sorted sets and streams.
#ifndef ONETRIP_TESTS_SUPPORT_COLLECTION_WORKLOAD_H_
#define ONETRIP_TESTS_SUPPORT_COLLECTION_WORKLOAD_H_

#include <cstdint>

#include "tests/support/workload.h"

namespace onetrip {

// Makes four of five commands on one key, but those about deadlines, into commands on collections.
// A key has one type for all clients, but for a twelfth of the commands. The same seed and program
// give the same.
void UseCollections(uint64_t seed, Program* program);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_COLLECTION_WORKLOAD_H_
