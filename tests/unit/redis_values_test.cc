// Values as bytes that Redis knows: serialized strings and HyperLogLogs.
#include <gtest/gtest.h>

#include <string>

#include "client_core/base/rng.h"
#include "redis_compat/values/hyperloglog.h"
#include "redis_compat/values/rdb_string.h"

namespace onetrip {
namespace {

constexpr uint64_t kNoLimit = 1ULL << 30;

std::string DumpString(std::string_view value) {
  const DumpParts parts = BeginDump(value);
  return parts.head + std::string(parts.plain) + DumpFooter(Crc64(parts.plain, Crc64(parts.head)));
}

bool IsSoundDump(std::string_view payload) {
  DumpChecksum checksum;
  return LoadDumpChecksum(payload, &checksum) &&
         Crc64(payload.substr(0, checksum.checked_bytes)) == checksum.crc;
}

// In steps of `step` bytes, where it is compressed.
bool Load(std::string_view payload, uint64_t bytes_max, std::string* value, size_t step = 1) {
  DumpedString dumped;
  if (!LoadString(payload, bytes_max, &dumped)) return false;
  value->assign(dumped.form == DumpedString::Form::kInteger ? dumped.integer : dumped.bytes);
  if (dumped.form != DumpedString::Form::kCompressed) return true;
  value->assign(dumped.value_bytes, '\0');
  Decompressor decompressor(dumped.bytes, *value);
  while (decompressor.Advance(step)) {
    if (decompressor.is_done()) return true;
  }
  return false;
}

TEST(RdbString, ChecksumIsRedis) { EXPECT_EQ(Crc64("123456789"), 0xe9c6d914c4b8d9caULL); }

TEST(RdbString, ChecksumOfPiecesIsThatOfTheWhole) {
  std::string bytes;
  Rng rng(2);
  for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(rng.Below(256)));
  uint64_t by_bytes = 0;
  for (const char& byte : bytes) by_bytes = Crc64({&byte, 1}, by_bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string_view all = bytes;
    EXPECT_EQ(Crc64(all.substr(cut), Crc64(all.substr(0, cut))), by_bytes) << cut;
  }
}

TEST(RdbString, WhatIsDumpedIsLoaded) {
  for (const size_t size : {0U, 1U, 63U, 64U, 16383U, 16384U, 100000U}) {
    const std::string value(size, 'x');
    std::string loaded;
    EXPECT_TRUE(IsSoundDump(DumpString(value)));
    EXPECT_TRUE(Load(DumpString(value), kNoLimit, &loaded)) << size;
    EXPECT_EQ(loaded, value);
    EXPECT_EQ(Load(DumpString(value), 63, &loaded), size <= 63);
  }
  for (const std::string value : {"0", "-128", "32767", "-2147483648", "2147483648", "007", "-0"}) {
    std::string loaded;
    EXPECT_TRUE(Load(DumpString(value), kNoLimit, &loaded)) << value;
    EXPECT_EQ(loaded, value);
  }
}

TEST(RdbString, ADumpThatLostAByteOrABitIsNotSound) {
  const std::string payload = DumpString("some value");
  for (size_t i = 0; i < payload.size(); ++i) {
    EXPECT_FALSE(IsSoundDump(payload.substr(0, i)));
    std::string other = payload;
    other[i] = static_cast<char>(other[i] ^ 4);
    EXPECT_FALSE(IsSoundDump(other)) << i;
  }
}

// Only the checksum, which any client can make, keeps such bytes away.
TEST(RdbString, AnyBytesAreLoadedOrRefused) {
  Rng rng(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string payload(1, '\0');
    // Mostly what starts as a compressed string.
    payload.push_back(static_cast<char>(rng.Below(3) == 0 ? rng.Below(256) : 0xc3));
    const uint64_t size = 10 + rng.Below(30);
    while (payload.size() < size) {
      payload.push_back(static_cast<char>(rng.Below(2) == 0 ? rng.Below(256) : rng.Below(40)));
    }
    std::string value;
    const bool loaded = Load(payload, 1000, &value);
    EXPECT_TRUE(!loaded || value.size() <= 1000);
    std::string again;
    EXPECT_EQ(Load(payload, 1000, &again, kNoLimit), loaded);
    EXPECT_TRUE(!loaded || again == value) << "in steps or at once";
  }
}

HllRegisters RegistersOf(const std::string& value) {
  HllRegisters registers{};
  EXPECT_TRUE(MergeHll(value, &registers));
  return registers;
}

TEST(HyperLogLog, EstimatesWithinThreePercent) {
  std::string value = NewHll();
  uint64_t next = 0;
  for (const uint64_t count : {1ULL, 10ULL, 100ULL, 1000ULL, 20'000ULL, 200'000ULL}) {
    for (; next < count; ++next) (void)AddToHll("element " + std::to_string(next), &value);
    ASSERT_TRUE(IsHll(value));
    const auto estimate = static_cast<double>(CountHll(RegistersOf(value)));
    EXPECT_NEAR(estimate, static_cast<double>(count), 0.03 * static_cast<double>(count));
  }
  EXPECT_TRUE(IsDenseHll(value));
}

TEST(HyperLogLog, SparseAndDenseHoldTheSameRegisters) {
  Rng rng(2);
  for (int run = 0; run < 20; ++run) {
    std::string sparse = NewHll();
    std::string dense = NewHll();
    ASSERT_TRUE(MakeHllDense(&dense));
    HllRegisters expected{};
    for (int i = 0; i < 400; ++i) {
      // Close together, so that runs meet; and of few values, so that they merge.
      const auto index = static_cast<uint32_t>(rng.Below(run % 2 == 0 ? 300 : kHllRegisters));
      const auto count = static_cast<uint8_t>(1 + rng.Below(4));
      const bool larger = count > expected[index];
      expected[index] = larger ? count : expected[index];
      const HllChange change = larger ? HllChange::kChanged : HllChange::kUnchanged;
      EXPECT_EQ(RaiseHllRegister(index, count, &sparse), change);
      EXPECT_EQ(RaiseHllRegister(index, count, &dense), change);
    }
    EXPECT_EQ(RegistersOf(sparse), expected);
    EXPECT_EQ(RegistersOf(dense), expected);
    EXPECT_FALSE(IsDenseHll(sparse));
    ASSERT_TRUE(MakeHllDense(&sparse));
    EXPECT_EQ(sparse, dense);
  }
}

TEST(HyperLogLog, AnyBytesAreTakenOrRefused) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string value = NewHll().substr(0, 16);
    const uint64_t size = 16 + rng.Below(40);
    while (value.size() < size) value.push_back(static_cast<char>(rng.Below(256)));
    ASSERT_TRUE(IsHll(value));
    HllRegisters registers{};
    (void)MergeHll(value, &registers);
    for (int n = 0; n < 20; ++n) {
      const auto index = static_cast<uint32_t>(rng.Below(kHllRegisters));
      (void)RaiseHllRegister(index, static_cast<uint8_t>(1 + rng.Below(51)), &value);
    }
  }
}

TEST(HyperLogLog, ACountIsRememberedUntilItIsForgotten) {
  std::string value = NewHll();
  uint64_t count = 1;
  EXPECT_TRUE(HllHasCount(value, &count));
  EXPECT_EQ(count, 0U);
  RememberHllCount(77, &value);
  EXPECT_TRUE(HllHasCount(value, &count));
  EXPECT_EQ(count, 77U);
  ForgetHllCount(&value);
  EXPECT_FALSE(HllHasCount(value, &count));
}

}  // namespace
}  // namespace onetrip
