// Names of keys that meet in the index: found by trying, once per process.
#ifndef ONETRIP_TESTS_SIM_CROWDED_KEYS_H_
#define ONETRIP_TESTS_SIM_CROWDED_KEYS_H_

#include <string>
#include <vector>

#include "tests/support/workload.h"

namespace onetrip {

// 64 keys of database 0 with the same two groups, which they fill long before the subtable is full.
const std::vector<std::string>& CrowdedKeys();

// 180 such keys, of two other groups: several splits are needed for them. The first 40 are left to
// inserts at the end of a run.
const std::vector<std::string>& GrowingKeys();
inline constexpr size_t kLastGrowingKeys = 40;

// 4 keys of database 0 with one fingerprint whose first choice is the same bucket.
const std::vector<std::string>& TwinKeys();

// Gives the keys of `program` these names, in the order in which it first uses them; those beyond
// the last name keep theirs.
void RenameKeys(const std::vector<std::string>& names, Program* program);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_CROWDED_KEYS_H_
