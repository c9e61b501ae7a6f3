// StringUnpacker: the bytes of a string in a payload, whatever its form, by the piece if it is
// compressed.
//
// One thread. What it takes comes from clients: nothing here trusts it.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_RDB_UNPACK_H_
#define ONETRIP_REDIS_COMPAT_VALUES_RDB_UNPACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "client_core/base/large_memory.h"
#include "redis_compat/values/rdb_string.h"

namespace onetrip {

class StringUnpacker {
 public:
  enum class State : uint8_t { kMore, kDone, kDamaged, kNoMemory };

  // Begins with another string; the payload outlives it. kMore: Advance() goes on.
  State Begin(DumpedString string);
  // Makes about `bytes` more. REQUIRES: it was kMore.
  State Advance(size_t bytes);

  // They live until the next Begin(). REQUIRES: kDone.
  [[nodiscard]] std::string_view bytes() const;
  [[nodiscard]] uint64_t memory_bytes() const { return decompressed_.bytes(); }

 private:
  DumpedString string_;
  LargeMemory decompressed_;
  std::optional<Decompressor> decompressor_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_RDB_UNPACK_H_
