// Records: encoded, looked into, and never believed when a bit is wrong.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

std::vector<std::byte> Encode(const RecordFields& fields) {
  std::vector<std::byte> bytes(
      RecordBytes(fields.key.size(), fields.value_head.size() + fields.value_tail.size()));
  EncodeRecord(fields, bytes.data());
  return bytes;
}

RecordFields Sample() {
  RecordFields fields;
  fields.keyspace = KeyspaceId{17};
  fields.key = "a key of some bytes";
  fields.value_head = "head and ";
  fields.value_tail = "tail";
  fields.deadline_ms = 1'700'000'000'123;
  fields.version = (uint64_t{3} << 40) | 99;
  fields.type = 5;
  fields.opcode = LogOpcode::kUpdate;
  return fields;
}

TEST(RecordTest, FieldsComeBack) {
  const auto bytes = Encode(Sample());
  const RecordHeader header = LoadRecordHeader(bytes.data());
  EXPECT_EQ(header.log_word, 0U);
  EXPECT_EQ(header.key_bytes, Sample().key.size());
  EXPECT_EQ(header.value_bytes, 13U);
  EXPECT_EQ(header.type, 5);
  EXPECT_EQ(header.opcode, static_cast<uint8_t>(LogOpcode::kUpdate));
  EXPECT_EQ(header.keyspace, 17U);
  EXPECT_EQ(header.deadline_ms, Sample().deadline_ms);
  EXPECT_EQ(header.version, Sample().version);
  EXPECT_TRUE(RecordIsIntact(bytes.data(), bytes.size()));
  EXPECT_EQ(RecordValue(bytes.data()), "head and tail");
}

TEST(RecordTest, EveryFlippedBitIsDetectedSaveTheLogWords) {
  auto bytes = Encode(Sample());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const bool in_log_word = bit / 8 < sizeof(uint64_t);
    ASSERT_EQ(RecordIsIntact(bytes.data(), bytes.size()), in_log_word) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_TRUE(RecordIsIntact(bytes.data(), bytes.size()));
}

TEST(RecordTest, TheTailOfAnotherRecordIsDetected) {
  RecordFields other = Sample();
  other.value_head = "HEAD AND ";
  other.version = Sample().version + 1;
  const auto mine = Encode(Sample());
  const auto theirs = Encode(other);
  // Torn at any word: the head of one, the rest of the other.
  for (size_t torn = 16; torn < mine.size(); torn += 8) {
    auto bytes = theirs;
    std::copy_n(mine.begin(), torn, bytes.begin());
    const bool same = bytes == mine || bytes == theirs;
    EXPECT_EQ(RecordIsIntact(bytes.data(), bytes.size()), same) << torn;
  }
}

TEST(RecordTest, LengthsBeyondWhatIsThereAreNotFollowed) {
  const auto bytes = Encode(Sample());
  for (size_t available = 0; available < bytes.size(); ++available) {
    // A copy of exactly that many bytes: the sanitizer sees one read too far.
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<long>(available));
    ASSERT_FALSE(RecordIsIntact(part.data(), available));
    ASSERT_EQ(RecordHasKey(part.data(), available, KeyspaceId{17}, Sample().key),
              available >= kRecordHeaderBytes + Sample().key.size());
  }
  // Slack behind the record is no part of it.
  auto longer = bytes;
  longer.resize(bytes.size() + 100, std::byte{0xff});
  EXPECT_TRUE(RecordIsIntact(longer.data(), longer.size()));
  EXPECT_EQ(RecordValue(longer.data()), "head and tail");

  std::vector<std::byte> hostile(kRecordHeaderBytes, std::byte{0xff});
  EXPECT_FALSE(RecordIsIntact(hostile.data(), hostile.size()));
  EXPECT_FALSE(RecordHasKey(hostile.data(), hostile.size(), KeyspaceId{~0U}, "k"));
}

TEST(RecordTest, AKeyIsTheSameOnlyInFullAndInItsKeyspace) {
  const auto bytes = Encode(Sample());
  const std::string key(Sample().key);
  const auto has = [&](uint32_t keyspace, std::string_view wanted) {
    return RecordHasKey(bytes.data(), bytes.size(), KeyspaceId{keyspace}, wanted);
  };
  EXPECT_TRUE(has(17, key));
  EXPECT_FALSE(has(18, key));
  EXPECT_FALSE(has(17, ""));
  EXPECT_FALSE(has(17, key.substr(1)));
  EXPECT_FALSE(has(17, key.substr(0, key.size() - 1)));
  EXPECT_FALSE(has(17, key + "h"));
  std::string other = key;
  other.back() ^= 1;
  EXPECT_FALSE(has(17, other));
}

TEST(RecordTest, EveryLengthUpToTheLimitsIsCarried) {
  const std::string key(kMaxKeyBytes, 'k');
  const std::string value(kRecordValueBytesMax, 'v');
  for (const size_t key_bytes : {size_t{0}, size_t{1}, size_t{255}, size_t{kMaxKeyBytes}}) {
    for (const size_t value_bytes :
         {size_t{0}, size_t{1}, size_t{64}, size_t{kRecordValueBytesMax}}) {
      RecordFields fields;
      fields.key = std::string_view(key).substr(0, key_bytes);
      fields.value_head = std::string_view(value).substr(0, value_bytes / 3);
      fields.value_tail = std::string_view(value).substr(value_bytes / 3, value_bytes * 2 / 3 + 1);
      fields.value_tail = fields.value_tail.substr(0, value_bytes - value_bytes / 3);
      const auto bytes = Encode(fields);
      ASSERT_EQ(bytes.size(), kRecordHeaderBytes + key_bytes + value_bytes);
      ASSERT_TRUE(RecordIsIntact(bytes.data(), bytes.size()));
      ASSERT_TRUE(RecordHasKey(bytes.data(), bytes.size(), KeyspaceId{0}, fields.key));
      ASSERT_EQ(RecordValue(bytes.data()), std::string_view(value).substr(0, value_bytes));
    }
  }
}

TEST(RecordTest, RandomBytesAreNoRecord) {
  Rng rng(3);
  std::vector<std::byte> bytes(256);
  for (int i = 0; i < 20'000; ++i) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
    // Lengths that fit, so that the checksum decides.
    bytes[12] = static_cast<std::byte>(rng.Below(100));
    bytes[13] = bytes[21] = bytes[22] = bytes[23] = std::byte{0};
    bytes[20] = static_cast<std::byte>(rng.Below(100));
    ASSERT_FALSE(RecordIsIntact(bytes.data(), bytes.size()));
  }
}

TEST(RecordTest, KeyspacesHashKeysApart) {
  EXPECT_EQ(HashKey(KeyspaceId{1}, "key"), HashKey(KeyspaceId{1}, "key"));
  EXPECT_NE(HashKey(KeyspaceId{1}, "key"), HashKey(KeyspaceId{2}, "key"));
  EXPECT_NE(HashKey(KeyspaceId{1}, "key"), HashKey(KeyspaceId{1}, "kez"));
  EXPECT_NE(HashKey(KeyspaceId{1}, ""), HashKey(KeyspaceId{2}, ""));
}

}  // namespace
}  // namespace onetrip
