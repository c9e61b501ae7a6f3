// Fuzz target: what RESTORE is given is a string, or refused; and whatever string a client has
// brought in so is taken for a HyperLogLog, or refused.
//
// The first byte of an input chooses the pieces that are decompressed at a time; the rest is the
// payload without its CRC, which is right, for a wrong one would end it at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "redis_compat/values/hyperloglog.h"
#include "redis_compat/values/rdb_string.h"

namespace onetrip {
namespace {

constexpr uint64_t kValueBytesMax = uint64_t{1} << 20;

// False: it is no string, or damaged.
bool Load(std::string_view payload, size_t piece, std::string* value) {
  DumpChecksum checksum;
  if (!LoadDumpChecksum(payload, &checksum)) return false;
  CHECK(checksum.crc == Crc64(payload.substr(0, checksum.checked_bytes)));
  DumpedString dumped;
  if (!LoadString(payload, kValueBytesMax, &dumped)) return false;
  if (dumped.form == DumpedString::Form::kInteger) {
    *value = dumped.integer;
  } else if (dumped.form == DumpedString::Form::kPlain) {
    CHECK(dumped.bytes.size() <= payload.size());
    *value = dumped.bytes;
  } else {
    CHECK(dumped.value_bytes <= kValueBytesMax);
    // Exactly as much as it says, so that a byte beyond is found.
    std::vector<char> room(dumped.value_bytes);
    Decompressor decompressor(dumped.bytes, room);
    while (!decompressor.is_done()) {
      if (!decompressor.Advance(piece)) return false;
    }
    value->assign(room.begin(), room.end());
  }
  return true;
}

void TakeForHyperLogLog(const std::string& value) {
  if (!IsHll(value)) return;
  const auto registers = std::make_unique<HllRegisters>();
  const bool sound = MergeHll(value, registers.get());
  if (sound) (void)CountHll(*registers);
  uint64_t count = 0;
  (void)HllHasCount(value, &count);
  if (!IsDenseHll(value)) (void)DescribeHllRuns(value);
  std::string changed = value;
  (void)AddToHll("element", &changed);
  (void)RaiseHllRegister(kHllRegisters - 1, 51, &changed);
  ForgetHllCount(&changed);
  std::string dense = value;
  CHECK(MakeHllDense(&dense) || !sound);
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{1} + data[0];
  std::string payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  payload += onetrip::DumpFooter(0).substr(0, 2);
  const uint64_t crc = onetrip::Crc64(payload);
  for (int i = 0; i < 8; ++i) payload += static_cast<char>(crc >> (8 * i));
  std::string value;
  if (!onetrip::Load(payload, piece, &value)) return 0;
  onetrip::TakeForHyperLogLog(value);
  // A value that was loaded is dumped and loaded as it is.
  const onetrip::DumpParts parts = onetrip::BeginDump(value);
  std::string again = parts.head + std::string(parts.plain);
  again += onetrip::DumpFooter(onetrip::Crc64(again));
  std::string twice;
  CHECK(onetrip::Load(again, piece, &twice) && twice == value);
  return 0;
}
