// A string as Redis serializes it (DUMP and RESTORE; the formats of RDB): a type byte, the string,
// two bytes of version and a CRC of eight.
//
// Pure functions; any thread. What is decoded comes from clients: nothing here trusts it.
#ifndef ONETRIP_REDIS_COMPAT_RDB_STRING_H_
#define ONETRIP_REDIS_COMPAT_RDB_STRING_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace onetrip {

// CRC-64 as Redis computes it (Jones' polynomial, reflected, from 0).
uint64_t Crc64(std::string_view bytes);

// The payload of a string, as redis-server 7.0 makes it; but it does not compress.
std::string DumpString(std::string_view value);

// Whether the payload ends with a version that Redis 7.0 reads and the right checksum.
bool IsSoundDump(std::string_view payload);

// The value of a payload, which may be compressed. False: it is no string, or damaged, or longer
// than `bytes_max`. REQUIRES: IsSoundDump(payload).
bool LoadString(std::string_view payload, uint64_t bytes_max, std::string* value);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_RDB_STRING_H_
