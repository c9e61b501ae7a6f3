// Where a node's memory lies: what a file must be to be taken, what is refused and how it is said,
// and what of a node's memory survives its process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "client_core/layout/region_layout.h"
#include "memnode/backing.h"

namespace onetrip {
namespace {

using testing::HasSubstr;
using Kind = BackingOptions::Kind;

constexpr uint64_t kBytes = kRegionBytes;
constexpr int kSkipped = 77;

class MemnodeBackingTest : public testing::Test {
 protected:
  MemnodeBackingTest() {
    std::string name = testing::TempDir() + "backing-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    path_ = directory_ + "/memory";
  }
  ~MemnodeBackingTest() override { std::filesystem::remove_all(directory_); }

  BackingOptions Options() const {
    return {.kind = Kind::kFile,
            .bytes = kBytes,
            .path = path_,
            .owner = MemoryOwner{.cluster = 7, .node = NodeId{3}}};
  }
  // Opens, or says why not.
  std::unique_ptr<Backing> Open(const BackingOptions& options, StatusCode wanted) {
    reason_.clear();
    Result<std::unique_ptr<Backing>> backing = Backing::Open(options, &reason_);
    EXPECT_EQ(backing.ok() ? StatusCode::kOk : backing.status().code(), wanted) << reason_;
    return backing.ok() ? std::move(*backing) : nullptr;
  }
  // An image that was in use when its process died.
  void MakeImage() {
    auto backing = Open(Options(), StatusCode::kOk);
    ASSERT_NE(backing, nullptr);
    std::memset(backing->base(), 0x5a, kBytes);
    ASSERT_TRUE(backing->MarkInUse(&reason_).ok()) << reason_;
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ImageHeader Header() const {
    ImageHeader header;
    std::ifstream file(path_, std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    return header;
  }
  void PutHeader(ImageHeader header, bool seal, uint64_t offset = 0) const {
    if (seal) header.checksum = XXH3_64bits(&header, offsetof(ImageHeader, checksum));
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  }

  std::string directory_;
  std::string path_;
  std::string reason_;
};

TEST_F(MemnodeBackingTest, PrivateMemoryIsZeroAndIsNotShared) {
  const auto backing = Open({.bytes = kBytes}, StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(std::to_integer<int>(backing->base()[kBytes - 1]), 0);
  EXPECT_FALSE(backing->is_adopted());
  EXPECT_FALSE(backing->Share().ok());
  EXPECT_TRUE(backing->MarkInUse(&reason_).ok());
  EXPECT_TRUE(backing->MarkClean(&reason_).ok());
}

TEST_F(MemnodeBackingTest, AMemoryThatIsNotWholeRegionsIsRefused) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, kBytes + 1, ~uint64_t{0}}) {
    Open({.kind = Kind::kSegment, .bytes = bytes}, StatusCode::kInvalidArgument);
    EXPECT_THAT(reason_, HasSubstr("whole regions"));
  }
}

TEST_F(MemnodeBackingTest, AMemoryLargerThanAnAddressSpaceIsRefusedWithItsSize) {
  const uint64_t bytes = uint64_t{1} << 55;
  for (const Kind kind : {Kind::kPrivate, Kind::kSegment}) {
    Open({.kind = kind, .bytes = bytes}, StatusCode::kOutOfMemory);
    EXPECT_THAT(reason_, HasSubstr(std::to_string(bytes)));
    EXPECT_THAT(reason_, HasSubstr("--memory"));
  }
}

TEST_F(MemnodeBackingTest, ASegmentIsSharedAndCannotShrink) {
  // The second is large enough to ask for huge pages.
  for (const uint64_t bytes : {kBytes, 8 * kRegionBytes}) {
    const auto backing = Open({.kind = Kind::kSegment, .bytes = bytes}, StatusCode::kOk);
    ASSERT_NE(backing, nullptr);
    Result<UniqueFd> shared = backing->Share();
    ASSERT_TRUE(shared.ok());
    struct stat info {};
    ASSERT_EQ(fstat(shared->get(), &info), 0);
    EXPECT_EQ(static_cast<uint64_t>(info.st_size), backing->share_offset() + bytes);
    EXPECT_EQ(ftruncate(shared->get(), 4096), -1);
    EXPECT_NE(fcntl(shared->get(), F_GETFD) & FD_CLOEXEC, 0);
    void* other = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->get(),
                       static_cast<off_t>(backing->share_offset()));
    ASSERT_NE(other, MAP_FAILED);
    std::memset(backing->base() + bytes - 8, 0x77, 8);
    EXPECT_EQ(std::memcmp(static_cast<std::byte*>(other) + bytes - 8, "\x77\x77\x77\x77", 4), 0);
    munmap(other, bytes);
  }
}

TEST_F(MemnodeBackingTest, AFileIsMadePrivateWholeAndZero) {
  const auto backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_FALSE(backing->is_adopted());
  EXPECT_NE(backing->incarnation(), 0U);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), kImageMemoryOffset + kBytes);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kBytes) << "its room is on the disk";
  const std::string zeros(kBytes, '\0');
  EXPECT_EQ(std::memcmp(backing->base(), zeros.data(), kBytes), 0);
}

TEST_F(MemnodeBackingTest, AnImageOutlivesAProcessThatDiedAndOneThatStopped) {
  MakeImage();
  const uint64_t incarnation = Header().incarnation;
  for (uint64_t life = 2; life < 6; ++life) {
    const bool stopped_before = life % 2 == 1;
    const auto backing = Open(Options(), StatusCode::kOk);
    ASSERT_NE(backing, nullptr);
    EXPECT_TRUE(backing->is_adopted());
    EXPECT_EQ(backing->was_clean(), stopped_before);
    EXPECT_EQ(backing->incarnation(), incarnation) << "it is the same memory";
    const std::string all(kBytes, 0x5a);
    EXPECT_EQ(std::memcmp(backing->base(), all.data(), kBytes), 0);
    ASSERT_TRUE(backing->MarkInUse(&reason_).ok()) << reason_;
    EXPECT_EQ(Header().state, ImageState::kInUse);
    EXPECT_EQ(Header().life, life);
    if (stopped_before) continue;
    ASSERT_TRUE(backing->MarkClean(&reason_).ok()) << reason_;
    EXPECT_EQ(Header().state, ImageState::kClean);
  }
}

TEST_F(MemnodeBackingTest, AnImageThatNobodyWasGivenIsMadeAnew) {
  auto backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  std::memset(backing->base(), 0x11, 4096);
  backing.reset();  // dies while it is still forming
  backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_FALSE(backing->is_adopted());
  EXPECT_EQ(std::to_integer<int>(backing->base()[0]), 0);
}

TEST_F(MemnodeBackingTest, AnotherOwnerSizeOrLayoutIsRefusedByNameAndNothingIsTouched) {
  MakeImage();
  const std::string before = Content();
  BackingOptions options = Options();
  options.owner->cluster = 8;
  Open(options, StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("belongs to cluster 0000000000000007, not to 0000000000000008"));
  options = Options();
  options.owner->node = NodeId{4};
  Open(options, StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("belongs to memory node 3, not to 4"));
  options = Options();
  options.bytes = 2 * kBytes;
  Open(options, StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr(std::to_string(2 * kBytes)));
  EXPECT_EQ(Content(), before);

  ImageHeader header = Header();
  ++header.layout_version;
  PutHeader(header, /*seal=*/true);
  Open(Options(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("and layout " + std::to_string(header.layout_version)));
}

TEST_F(MemnodeBackingTest, AnOwnerThatIsKnownOnlyLaterIsTheImagesOrRefused) {
  BackingOptions options = Options();
  options.owner.reset();
  auto backing = Open(options, StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_FALSE(backing->owner().has_value());
  ASSERT_TRUE(backing->SetOwner({.cluster = 7, .node = NodeId{3}}, &reason_).ok());
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok());
  backing.reset();
  backing = Open(options, StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(backing->owner(), (MemoryOwner{.cluster = 7, .node = NodeId{3}}));
  EXPECT_FALSE(backing->SetOwner({.cluster = 7, .node = NodeId{2}}, &reason_).ok());
  EXPECT_THAT(reason_, HasSubstr("belongs to memory node 3, not to 2"));
  EXPECT_FALSE(backing->SetOwner({.cluster = 6, .node = NodeId{3}}, &reason_).ok());
  EXPECT_TRUE(backing->SetOwner({.cluster = 7, .node = NodeId{3}}, &reason_).ok());
}

TEST_F(MemnodeBackingTest, AFlippedBitInTheHeaderIsDamageAndItsCopySaysWhoseTheMemoryIs) {
  MakeImage();
  const ImageHeader good = Header();
  for (size_t bit = 0; bit < 8 * sizeof(ImageHeader); ++bit) {
    ImageHeader bad = good;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
    PutHeader(good, /*seal=*/false, kImageHeaderCopyOffset);
    PutHeader(bad, /*seal=*/false);
    const auto backing = Open(Options(), StatusCode::kOk);
    ASSERT_NE(backing, nullptr) << "bit " << bit;
    EXPECT_EQ(backing->damage(), "its header is damaged, which stood in bytes 0 to 79");
    EXPECT_EQ(backing->incarnation(), good.incarnation);
    EXPECT_EQ(Header().state, ImageState::kDamaged) << "and stays so";
  }
  // A copy alone means nothing.
  PutHeader(good, /*seal=*/false);
  PutHeader({}, /*seal=*/false, kImageHeaderCopyOffset);
  EXPECT_EQ(Open(Options(), StatusCode::kOk)->damage(), "");
}

TEST_F(MemnodeBackingTest, NoFlippedBitInAHeaderWithoutACopyIsTaken) {
  MakeImage();
  const ImageHeader good = Header();
  PutHeader({}, /*seal=*/false, kImageHeaderCopyOffset);
  for (size_t bit = 0; bit < 8 * sizeof(ImageHeader); ++bit) {
    ImageHeader bad = good;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
    PutHeader(bad, /*seal=*/false);
    Result<std::unique_ptr<Backing>> backing = Backing::Open(Options(), &reason_);
    ASSERT_FALSE(backing.ok()) << "bit " << bit;
    EXPECT_THAT(reason_, HasSubstr(path_));
  }
  PutHeader(good, /*seal=*/false);
  EXPECT_NE(Open(Options(), StatusCode::kOk), nullptr);
}

TEST_F(MemnodeBackingTest, AFileThatGrewOrLostItsHeaderIsRefused) {
  MakeImage();
  const uint64_t bytes = kImageMemoryOffset + kBytes + 1;
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
  Open(Options(), StatusCode::kCorrupt);
  EXPECT_THAT(reason_, HasSubstr(std::to_string(bytes) + " bytes instead of"));
  ASSERT_EQ(truncate(path_.c_str(), 79), 0);
  Open(Options(), StatusCode::kCorrupt);
  EXPECT_THAT(reason_, HasSubstr("no memory image"));
}

TEST_F(MemnodeBackingTest, AForeignFileIsRefusedAndLeftAsItIs) {
  std::ofstream(path_)
      << "somebody's letters, longer than a header would be if there were one here";
  chmod(path_.c_str(), 0600);
  const std::string before = Content();
  Open(Options(), StatusCode::kCorrupt);
  EXPECT_THAT(reason_, HasSubstr("no memory image"));
  EXPECT_EQ(Content(), before);
}

TEST_F(MemnodeBackingTest, FilesAndDirectoriesThatOthersMayEnterAreRefused) {
  MakeImage();
  chmod(path_.c_str(), 0640);
  Open(Options(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("mode 0600"));
  chmod(path_.c_str(), 0600);
  chmod(directory_.c_str(), 0750);
  Open(Options(), StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("chmod 700"));
  chmod(directory_.c_str(), 0700);

  BackingOptions options = Options();
  options.path = directory_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), options.path.c_str()), 0);
  Open(options, StatusCode::kUnavailable);
  options.path = directory_ + "/no/such/file";
  Open(options, StatusCode::kUnavailable);
  EXPECT_THAT(reason_, HasSubstr("No such file"));
  options.path = directory_ + "/made/file";
  EXPECT_NE(Open(options, StatusCode::kOk), nullptr);
}

TEST_F(MemnodeBackingTest, AFileInUseByANodeIsRefusedToAnother) {
  MakeImage();
  const auto first = Open(Options(), StatusCode::kOk);
  Open(Options(), StatusCode::kUnavailable);
  EXPECT_THAT(reason_, HasSubstr("in use by another memory node"));
}

TEST_F(MemnodeBackingTest, AMappingKeepsTheNextLifeFromBeginningUntilItIsGone) {
  MakeImage();
  auto backing = Open(Options(), StatusCode::kOk);
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok());
  EXPECT_FALSE(backing->HasClients());
  Result<UniqueFd> shared = backing->Share();
  ASSERT_TRUE(shared.ok());
  void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->get(),
                       static_cast<off_t>(backing->share_offset()));
  ASSERT_NE(mapping, MAP_FAILED);
  shared->Reset();
  EXPECT_TRUE(backing->HasClients()) << "the descriptor is closed, the mapping is not";
  EXPECT_FALSE(backing->MarkClean(&reason_).ok());
  backing.reset();

  backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_TRUE(backing->HasClients());
  EXPECT_FALSE(backing->MarkInUse(&reason_).ok());
  EXPECT_THAT(reason_, HasSubstr("former life"));
  // Never this process itself.
  EXPECT_FALSE(backing->EndClients(/*grace_ms=*/1, /*kill_ms=*/20, &reason_).ok());
  munmap(mapping, kBytes);
  EXPECT_TRUE(backing->EndClients(/*grace_ms=*/10'000, /*kill_ms=*/1, &reason_).ok());
  EXPECT_TRUE(backing->MarkInUse(&reason_).ok()) << reason_;
}

// Runs in a process of its own, with a disk of 1 MiB.
int FillDisk(const std::string& directory) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kSkipped;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kSkipped;
  if (mount("none", directory.c_str(), "tmpfs", 0, "size=1m,mode=700") != 0) return kSkipped;
  std::string reason;
  const std::string path = directory + "/memory";
  const auto backing = Backing::Open({.kind = Kind::kFile, .bytes = kBytes, .path = path}, &reason);
  if (backing.ok() || backing.status().code() != StatusCode::kOutOfMemory) return 1;
  if (reason.find("No space left") == std::string::npos) return 2;
  return std::filesystem::exists(path) ? 3 : 0;
}

TEST_F(MemnodeBackingTest, AFullDiskIsFoundAtTheStartAndNothingIsLeftOnIt) {
  const pid_t child = fork();
  if (child == 0) _exit(FillDisk(directory_));
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "no disk may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(MemnodeBackingTest, AnImagesMarkGrowsWithEveryLifeAndBeatAndIsInTheFileBeforeItIsTold) {
  auto backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(backing->age().mark, 0U);
  backing->RaiseMark(41);
  backing->NoteEpoch(Epoch{9});
  backing->NoteWorkersBelow(6);
  ASSERT_TRUE(backing->MarkInUse(&reason_).ok()) << reason_;
  EXPECT_EQ(backing->age().mark, 42U);
  backing->NoteTold(42);
  ASSERT_TRUE(backing->Beat(&reason_).ok()) << reason_;
  EXPECT_EQ(backing->age().mark, 43U);
  const std::string copy = Content();
  ASSERT_TRUE(backing->Beat(&reason_).ok()) << reason_;
  backing.reset();
  backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(backing->damage(), "");
  EXPECT_EQ(backing->age().mark, 44U);
  EXPECT_EQ(backing->age().told, 42U);
  EXPECT_EQ(backing->age().epoch, 9U);
  EXPECT_EQ(backing->age().next_worker, 6U);
  backing.reset();
  std::ofstream(path_, std::ios::binary) << copy;
  backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(backing->age().mark, 43U) << "older than what was told since";
}

TEST_F(MemnodeBackingTest, AnImageWithoutAnAgeIsTaken) {
  MakeImage();
  ImageHeader header = Header();
  header.image_version = kImageVersionWithoutAge;
  PutHeader(header, /*seal=*/true);
  const auto backing = Open(Options(), StatusCode::kOk);
  ASSERT_NE(backing, nullptr);
  EXPECT_EQ(backing->damage(), "");
  EXPECT_EQ(backing->age().mark, 0U);
}

}  // namespace
}  // namespace onetrip
