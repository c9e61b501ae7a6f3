// Damaged memory files: what checksums of an orderly stop find, what is trusted without them, and
// that damage lasts until a new life begins on the file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client_core/layout/region_layout.h"
#include "memnode/backing.h"
#include "memnode/memory_sums.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = 2 * kRegionBytes;
constexpr uint64_t kMiB = 1 << 20;

class MemnodeMemorySumsTest : public testing::Test {
 protected:
  MemnodeMemorySumsTest() {
    std::string name = testing::TempDir() + "sums-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    path_ = directory_ + "/memory";
  }
  ~MemnodeMemorySumsTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Backing> Open() {
    reason_.clear();
    Result<std::unique_ptr<Backing>> backing =
        Backing::Open({.kind = BackingOptions::Kind::kFile,
                       .bytes = kBytes,
                       .path = path_,
                       .owner = MemoryOwner{.cluster = 7, .node = NodeId{3}},
                       .boot_id = boot_id_},
                      &reason_);
    EXPECT_TRUE(backing.ok()) << reason_;
    return backing.ok() ? std::move(*backing) : nullptr;
  }
  std::string DamageAtStart() {
    const auto backing = Open();
    return backing == nullptr ? "refused" : backing->damage();
  }
  static RegionHeader* Header(Backing& backing, uint64_t region) {
    return reinterpret_cast<RegionHeader*>(backing.base() + region * kRegionBytes);
  }
  // Two regions, each with its first six blocks in use and bytes in them.
  std::unique_ptr<Backing> Begin() {
    auto backing = Open();
    CHECK(backing != nullptr);
    for (uint64_t region = 0; region < 2; ++region) {
      RegionHeader* header = Header(*backing, region);
      header->magic = kRegionMagic;
      header->layout_version = kLayoutVersion;
      header->region = region;
      for (uint64_t block = 0; block < 6; ++block) {
        header->blocks[block] =
            BlockEntry(BlockEntry::Use::kOwned, WorkerId{1}, SizeClass(3)).bits();
        std::memset(
            backing->base() + region * kRegionBytes + block * kBlockBytes + kRegionHeaderBytes,
            static_cast<int>(block + 1), kBlockBytes - kRegionHeaderBytes);
      }
    }
    CHECK(backing->MarkInUse(&reason_).ok());
    return backing;
  }
  void StopInOrder() { ASSERT_TRUE(Begin()->MarkClean(&reason_).ok()) << reason_; }
  // Flips a bit of the file.
  void Flip(uint64_t offset, int bit = 0) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    char byte = 0;
    file.get(byte);
    byte = static_cast<char>(byte ^ (1 << bit));
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
  ImageHeader FileHeader() const {
    ImageHeader header;
    std::ifstream file(path_, std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    return header;
  }
  void PutFileHeader(ImageHeader header) const {
    header.checksum = XXH3_64bits(&header, offsetof(ImageHeader, checksum));
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  }
  static std::string Range(uint64_t first_chunk, uint64_t end_chunk) {
    return "bytes " + std::to_string(kImageMemoryOffset + first_chunk * kMiB) + " to " +
           std::to_string(kImageMemoryOffset + end_chunk * kMiB - 1) + " are not";
  }

  std::string directory_;
  std::string path_;
  std::string reason_;
  std::string boot_id_ = "the first boot";
};

TEST_F(MemnodeMemorySumsTest, AnOrderlyStopIsVerifiedWhateverTheBoot) {
  StopInOrder();
  EXPECT_EQ(DamageAtStart(), "");
  boot_id_ = "another boot";
  EXPECT_EQ(DamageAtStart(), "");
  boot_id_ = "";
  const auto backing = Open();
  EXPECT_EQ(backing->damage(), "");
  EXPECT_TRUE(backing->is_adopted());
  EXPECT_TRUE(backing->was_clean());
}

TEST_F(MemnodeMemorySumsTest, OneFlippedBitAnywhereIsFoundAndItsRangeIsNamed) {
  StopInOrder();
  const uint64_t memory = kImageMemoryOffset;
  const struct {
    uint64_t offset;
    uint64_t chunk;
  } places[] = {
      {memory, 0},                                             // a header's magic
      {memory + 64 + 8 * 63 + 7, 0},                           // a block table
      {memory + kRegionHeaderBytes - 1, 0},                    // a byte that no header uses
      {memory + kBlockBytes - 1, 0},                           // the end of a block
      {memory + 5 * kBlockBytes, 1},                           // the beginning of one
      {memory + kRegionBytes + 32, 16},                        // the second region
      {memory + kRegionBytes + 3 * kBlockBytes + 12'345, 16},  //
      {memory + kRegionBytes + 6 * kBlockBytes - 1, 17},       // its last byte in use
  };
  for (const auto& place : places) {
    for (int bit = 0; bit < 8; ++bit) {
      Flip(place.offset, bit);
      EXPECT_THAT(DamageAtStart(), HasSubstr(std::to_string(memory + place.chunk * kMiB) + " to "))
          << "offset " << place.offset << ", bit " << bit;
      Flip(place.offset, bit);
    }
  }
  EXPECT_EQ(DamageAtStart(), "") << "as it was";
}

TEST_F(MemnodeMemorySumsTest, RangesThatTouchAreOneAndManyAreCounted) {
  StopInOrder();
  Flip(kImageMemoryOffset + kBlockBytes);
  Flip(kImageMemoryOffset + 4 * kBlockBytes);
  EXPECT_THAT(DamageAtStart(), HasSubstr(Range(0, 2)));
  Flip(kImageMemoryOffset + kRegionBytes + 4 * kBlockBytes);
  EXPECT_EQ(DamageAtStart(), "bytes " + std::to_string(kImageMemoryOffset) + " to " +
                                 std::to_string(kImageMemoryOffset + 2 * kMiB - 1) + ", " +
                                 std::to_string(kImageMemoryOffset + 17 * kMiB) + " to " +
                                 std::to_string(kImageMemoryOffset + 18 * kMiB - 1) +
                                 " are not what its node left there");
  // More than a line should name.
  std::vector<std::byte> memory(10 * kRegionBytes);
  const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(WriteSums(fd, {.incarnation = 1, .life = 2}, memory).ok());
  EXPECT_EQ(FindDamage(fd, {.incarnation = 1, .life = 2}, memory), "");
  for (uint64_t region = 0; region < 10; ++region) memory[region * kRegionBytes + 8] = std::byte{1};
  EXPECT_THAT(FindDamage(fd, {.incarnation = 1, .life = 2}, memory),
              HasSubstr(" and 2 more ranges are not what its node left there"));
  close(fd);
}

TEST_F(MemnodeMemorySumsTest, BlocksThatAreFreeMeanNothing) {
  StopInOrder();
  Flip(kImageMemoryOffset + 6 * kBlockBytes);
  Flip(kImageMemoryOffset + kBytes - 1);
  EXPECT_EQ(DamageAtStart(), "");
}

TEST_F(MemnodeMemorySumsTest, SumsThatAreDamagedOrOfAnotherLifeTellNothing) {
  StopInOrder();
  for (const uint64_t offset : {uint64_t{0}, uint64_t{8}, uint64_t{16}, uint64_t{24}, uint64_t{32},
                                uint64_t{40}, uint64_t{48}, 48 + 8 * (kBytes / kMiB) - 1}) {
    Flip(kImageSumsOffset + offset, 3);
    EXPECT_THAT(DamageAtStart(), HasSubstr("checksums of its memory are missing or damaged"));
    Flip(kImageSumsOffset + offset, 3);
  }
  EXPECT_EQ(DamageAtStart(), "");
  ImageHeader header = FileHeader();
  ++header.life;
  PutFileHeader(header);
  EXPECT_THAT(DamageAtStart(), HasSubstr("missing or damaged"));
}

TEST_F(MemnodeMemorySumsTest, TheSumsFitIntoAnImageOfAnySize) {
  EXPECT_EQ(SumChunkBytes(kRegionBytes), kMiB);
  for (uint64_t bytes = kRegionBytes; bytes <= uint64_t{64} << 40; bytes *= 2) {
    const uint64_t chunk_bytes = SumChunkBytes(bytes);
    EXPECT_EQ(chunk_bytes % kBlockBytes, 0U);
    EXPECT_LE((bytes + chunk_bytes - 1) / chunk_bytes, kImageSumsMax);
  }
}

TEST_F(MemnodeMemorySumsTest, SumsAreGoneOnceTheMemoryIsInUseAgain) {
  StopInOrder();
  auto backing = Open();
  EXPECT_EQ(backing->damage(), "");
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok());
  // From here on the memory changes; the process dies.
  std::memset(backing->base() + kBlockBytes, 0x77, kBlockBytes);
  backing.reset();
  EXPECT_EQ(DamageAtStart(), "") << "what it wrote is there";
  boot_id_ = "another boot";
  EXPECT_THAT(DamageAtStart(), HasSubstr("in use when the host went down"));
}

TEST_F(MemnodeMemorySumsTest, AnInterruptedStopIsNone) {
  StopInOrder();
  auto backing = Open();
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok());
  std::memset(backing->base() + kBlockBytes, 0x77, kBlockBytes);
  const ImageHeader in_use = FileHeader();
  ASSERT_TRUE(backing->MarkClean(&reason_).ok());
  backing.reset();
  // The sums were there, the header that speaks of them was not.
  PutFileHeader(in_use);
  Flip(kImageMemoryOffset + kBlockBytes);
  EXPECT_EQ(DamageAtStart(), "") << "trusted as after any death of the process";
  boot_id_ = "another boot";
  EXPECT_THAT(DamageAtStart(), HasSubstr("in use when the host went down"));
}

TEST_F(MemnodeMemorySumsTest, WithoutABootIdOnlyAnOrderlyStopIsTrusted) {
  boot_id_ = "";
  Begin();
  EXPECT_THAT(DamageAtStart(), HasSubstr("in use when the host went down"));
}

TEST_F(MemnodeMemorySumsTest, AFileThatWasCutGetsItsSizeBackAndStaysDamaged) {
  for (const bool in_order : {true, false}) {
    std::filesystem::remove(path_);
    auto backing = Begin();
    if (in_order) {
      ASSERT_TRUE(backing->MarkClean(&reason_).ok());
    }
    backing.reset();
    // Nothing that is in use was lost, but who knows.
    const uint64_t bytes = kImageMemoryOffset + kBytes - 5000;
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(DamageAtStart(), "it was cut: bytes " + std::to_string(bytes) + " to " +
                                   std::to_string(kImageMemoryOffset + kBytes - 1) +
                                   " are missing");
    EXPECT_EQ(std::filesystem::file_size(path_), kImageMemoryOffset + kBytes);
    // Over any number of starts.
    for (int i = 0; i < 3; ++i) EXPECT_THAT(DamageAtStart(), HasSubstr("at an earlier start"));
  }
  ASSERT_EQ(truncate(path_.c_str(), 200), 0);
  EXPECT_THAT(DamageAtStart(), HasSubstr("bytes 200 to"));
}

TEST_F(MemnodeMemorySumsTest, DamageLastsUntilTheNextLifeAndChangesNothing) {
  StopInOrder();
  Flip(kImageMemoryOffset + kBlockBytes);
  const std::string first = DamageAtStart();
  EXPECT_EQ(DamageAtStart(), first);
  auto backing = Open();
  EXPECT_TRUE(backing->is_adopted());
  EXPECT_EQ(backing->owner(), (MemoryOwner{.cluster = 7, .node = NodeId{3}}));
  EXPECT_EQ(std::to_integer<int>(backing->base()[kBlockBytes + kRegionHeaderBytes]), 2);
  ASSERT_TRUE(backing->MarkDamaged("its table says what it cannot", &reason_).ok());
  EXPECT_EQ(backing->damage(), "its table says what it cannot");
  backing.reset();
  Flip(kImageMemoryOffset + kBlockBytes);
  EXPECT_THAT(DamageAtStart(), HasSubstr("at an earlier start"));
  backing = Open();
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok());
  EXPECT_EQ(backing->damage(), "");
  backing.reset();
  EXPECT_EQ(DamageAtStart(), "");
}

TEST_F(MemnodeMemorySumsTest, AnImageOfBeforeThereWereSumsIsTrustedIfItsNodeHadStopped) {
  StopInOrder();
  ImageHeader header = FileHeader();
  header.image_version = kImageVersionWithoutSums;
  PutFileHeader(header);
  Flip(kImageSumsOffset);
  boot_id_ = "another boot";
  EXPECT_EQ(DamageAtStart(), "");
  header.state = ImageState::kInUse;
  PutFileHeader(header);
  EXPECT_THAT(DamageAtStart(), HasSubstr("in use when the host went down"));
}

}  // namespace
}  // namespace onetrip
