// RegistersLeft: what a walk that makes records of all registers has met so far.
#ifndef ONETRIP_CLIENT_CORE_KV_REGISTERS_LEFT_H_
#define ONETRIP_CLIENT_CORE_KV_REGISTERS_LEFT_H_

#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>

#include "client_core/layout/size_class.h"

namespace onetrip {

// What a walk that makes records of registers has met.
struct RegistersLeft {
  bool full = false;  // the pool
  bool any = false;   // for want of memory
  // Registers of this class have waited in vain for memory that comes back.
  std::array<bool, SizeClass::kCount> starved{};
  // Blocks that were open when the walk began.
  absl::flat_hash_set<uint64_t> open;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_REGISTERS_LEFT_H_
