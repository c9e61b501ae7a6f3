// Fuzz target: whatever a memory node finds in its image at its start, it serves memory that is as
// a node left it, or says why not and changes nothing; what it serves it can be asked for, and
// finds again at its next start.
//
// The first byte chooses the image that a real node has left (Kind), the next how it is opened, the
// third how often it is changed; then come the changes, each a byte that names it (Change) and what
// belongs to it, and then what the node is asked for.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/layout/region_layout.h"
#include "memnode/memory_node.h"
#include "memnode/memory_sums.h"
#include "tests/fuzz/fuzz_input.h"

// Room on the disk costs more than all else here, and is none of what is looked at.
extern "C" int posix_fallocate(int fd, off_t /*offset*/, off_t length) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return EBADF;
  return info.st_size >= length || ftruncate(fd, length) == 0 ? 0 : ENOSPC;
}

namespace onetrip {
namespace {

constexpr uint64_t kRegions = 2;
constexpr uint64_t kMemoryBytes = kRegions * kRegionBytes;
constexpr uint64_t kImageBytes = kImageMemoryOffset + kMemoryBytes;
constexpr MemoryOwner kOwner{.cluster = 7, .node = NodeId{0}};

enum Kind : uint8_t { kClean, kInUse, kDamaged, kForming, kKinds };
enum Change : uint8_t {
  kBytes,      // a byte for the place (kPlaces), two for the offset there, one that counts, bytes
  kLength,     // four bytes: the file's length, modulo a page more than an image has
  kSumHeader,  // the header's checksum is made right, its age's too, and its copy the same
  kSumAge,     // the age's alone, and the copy's own
  kSumMemory,  // the memory's checksums are those of what is there now
  kChanges,
};
constexpr std::array<uint64_t, 6> kPlaces = {0,
                                             kImageSumsOffset,
                                             kImageHeaderCopyOffset,
                                             kImageMemoryOffset,
                                             kImageMemoryOffset + kRegionBytes,
                                             kImageMemoryOffset + kEpochTableOffset};

// In memory, of one's own, and empty at the end.
class Directory {
 public:
  Directory() {
    std::string name = "/dev/shm/onetrip-fuzz-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    name_ = name;
  }
  ~Directory() {
    unlink(file().c_str());
    rmdir(name_.c_str());
  }
  [[nodiscard]] std::string file() const { return name_ + "/image"; }

 private:
  std::string name_;
};

const std::string& ImagePath() {
  static const Directory directory;
  static const std::string path = directory.file();
  return path;
}

BackingOptions Options() {
  return {.kind = BackingOptions::Kind::kFile,
          .bytes = kMemoryBytes,
          .path = ImagePath(),
          .owner = kOwner,
          .boot_id = "a boot"};
}

View TheView() {
  View view;
  view.epoch = Epoch{3};
  view.replicas = 1;
  view.node_count = 1;
  for (uint64_t region = 0; region < kRegions; ++region) {
    RegionPlacement& placement = view.regions.emplace_back();
    placement.nodes[0] = kOwner.node;
    placement.base[0] = region * kRegionBytes;
  }
  return view;
}

// The pages of an image that are not zero.
using Pages = std::map<uint64_t, std::vector<std::byte>>;

Pages ReadPages(int fd) {
  constexpr uint64_t kPageBytes = 4096;
  Pages pages;
  off_t at = 0;
  while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
    std::vector<std::byte> page(kPageBytes);
    const ssize_t got = pread(fd, page.data(), page.size(), at);
    CHECK(got > 0);
    page.resize(static_cast<size_t>(got));  // the last may be short
    pages[static_cast<uint64_t>(at)] = std::move(page);
    at += kPageBytes;
  }
  return pages;
}

// Left by a node that had granted blocks, spans among them, and written into them.
Pages MakeImage(Kind kind) {
  unlink(ImagePath().c_str());
  std::string reason;
  if (kind != kForming) {
    auto backing = Backing::Open(Options(), &reason);
    CHECK(backing.ok());
    auto node = MemoryNode::Create(kOwner.node, TheView(), std::move(*backing), &reason);
    CHECK(node.ok());
    for (const uint8_t size_class : {0, 40, 46}) {
      const ControlReply reply = (*node)->Handle({.kind = ControlRequest::Kind::kAlloc,
                                                  .size_class = SizeClass(size_class),
                                                  .owner = WorkerId{5}});
      CHECK(reply.outcome == ControlReply::Outcome::kDone);
      (*node)->base()[reply.block.bits() + kBlockBytes - 1] = std::byte{1};
    }
    (*node)->backing().NoteWorkersBelow(6);
    (*node)->backing().NoteEpoch(Epoch{3});
    Status ended = (*node)->backing().Beat(&reason);
    if (kind == kClean) ended = (*node)->backing().MarkClean(&reason);
    if (kind == kDamaged) ended = (*node)->backing().MarkDamaged("planted", &reason);
    CHECK(ended.ok());
  } else {
    CHECK(Backing::Open(Options(), &reason).ok());
  }
  const UniqueFd file(open(ImagePath().c_str(), O_RDONLY | O_CLOEXEC));
  return ReadPages(file.get());
}

const Pages& TheImage(Kind kind) {
  static const std::array<Pages, kKinds> images = {MakeImage(kClean), MakeImage(kInUse),
                                                   MakeImage(kDamaged), MakeImage(kForming)};
  return images[kind];
}

template <typename Record>
Record ReadAt(int fd, uint64_t at) {
  Record record;
  std::memset(&record, 0, sizeof(record));
  (void)!pread(fd, &record, sizeof(record), static_cast<off_t>(at));
  return record;
}

template <typename Record>
void WriteSummed(int fd, Record record, uint64_t at) {
  record.checksum = XXH3_64bits(&record, offsetof(Record, checksum));
  CHECK(pwrite(fd, &record, sizeof(record), static_cast<off_t>(at)) == sizeof(record));
}

void ChangeImage(int fd, FuzzInput* input) {
  const uint8_t change = input->TakeByte() % kChanges;
  if (change == kBytes) {
    const uint64_t place = kPlaces[input->TakeByte() % kPlaces.size()];
    const uint64_t at = place + input->Take<uint16_t>() % 4096;
    const std::span<const std::byte> bytes = input->TakeBytes(input->TakeByte());
    if (bytes.empty()) return;
    (void)!pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
  } else if (change == kLength) {
    const uint64_t length = input->Take<uint32_t>() % (kImageBytes + 4096);
    CHECK(ftruncate(fd, static_cast<off_t>(length)) == 0);
  } else if (change == kSumHeader) {
    const auto header = ReadAt<ImageHeader>(fd, 0);
    const auto age = ReadAt<ImageAge>(fd, sizeof(header));
    for (const uint64_t at : {uint64_t{0}, kImageHeaderCopyOffset}) {
      WriteSummed(fd, header, at);
      WriteSummed(fd, age, at + sizeof(header));
    }
  } else if (change == kSumAge) {
    for (const uint64_t at : {uint64_t{0}, kImageHeaderCopyOffset}) {
      WriteSummed(fd, ReadAt<ImageAge>(fd, at + sizeof(ImageHeader)), at + sizeof(ImageHeader));
    }
  } else {
    struct stat info {};
    if (fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) < kImageBytes) return;
    const auto header = ReadAt<ImageHeader>(fd, 0);
    void* memory = mmap(nullptr, kMemoryBytes, PROT_READ, MAP_SHARED, fd, kImageMemoryOffset);
    CHECK(memory != MAP_FAILED);
    CHECK(WriteSums(fd, {header.incarnation, header.life},
                    {static_cast<const std::byte*>(memory), kMemoryBytes})
              .ok());
    munmap(memory, kMemoryBytes);
  }
}

void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.find('\n') == std::string::npos);
}

// Asks the node for blocks. No answer names one that is not a grant, or part of two.
void Ask(MemoryNode* node, FuzzInput* input) {
  for (int i = 0; i < 8; ++i) {
    const ControlRequest request{
        .kind = static_cast<ControlRequest::Kind>(input->TakeByte() % 4),
        .size_class = SizeClass(input->TakeByte()),
        .owner = WorkerId{input->TakeByte()},
        .block = GlobalAddr(input->TakeByte() % 3, input->TakeByte() % 64 * kBlockBytes),
        .from = WorkerId{input->TakeByte()}};
    const MemoryNodeStatus before = node->status();
    const ControlReply reply = node->Handle(request);
    const MemoryNodeStatus after = node->status();
    const bool is_done = reply.outcome == ControlReply::Outcome::kDone;
    const uint64_t blocks = is_done ? request.size_class.blocks() : 0;
    if (request.kind == ControlRequest::Kind::kAlloc && is_done) {
      CHECK(reply.block.region() < kRegions && reply.block.block() + blocks <= kBlocksPerRegion);
      CHECK(reply.block.region() != 0 || reply.block.block() >= kRootBlocks);
    }
    const bool takes = request.kind == ControlRequest::Kind::kAlloc ||
                       request.kind == ControlRequest::Kind::kGrant;
    const uint64_t freed = request.kind == ControlRequest::Kind::kFree ? blocks : 0;
    CHECK(after.granted_blocks + freed == before.granted_blocks + (takes ? blocks : 0));
  }
}

// A life of the node on what it was given, and the next one after a death or an end in order.
void Live(std::unique_ptr<Backing> backing, FuzzInput* input, bool dies) {
  std::string reason;
  const uint64_t incarnation = backing->incarnation();
  const BackingOptions options = backing->options();
  auto node = MemoryNode::Create(kOwner.node, TheView(), std::move(backing), &reason);
  if (!node.ok()) return CheckLine(reason);
  Ask(node->get(), input);
  const MemoryNodeStatus status = (*node)->status();
  CHECK(status.regions == kRegions && status.granted_blocks <= status.blocks);
  if (!dies) CHECK((*node)->backing().MarkClean(&reason).ok());
  node->reset();
  auto again = Backing::Open(options, &reason);
  CHECK(again.ok() && (*again)->is_adopted() && (*again)->was_clean() != dies);
  CHECK((*again)->damage().empty() && (*again)->incarnation() == incarnation);
  CHECK(MemoryNode::WhyNotAdopted(kOwner.node, TheView(), **again).empty());
  node = MemoryNode::Create(kOwner.node, TheView(), std::move(*again), &reason);
  CHECK(node.ok() && (*node)->status().granted_blocks == status.granted_blocks);
}

void Start(const BackingOptions& options, bool accepts, bool dies, FuzzInput* input) {
  const UniqueFd file(open(ImagePath().c_str(), O_RDONLY | O_CLOEXEC));
  struct stat before {};
  CHECK(fstat(file.get(), &before) == 0);
  const Pages found = ReadPages(file.get());
  std::string reason;
  auto opened = Backing::Open(options, &reason);
  struct stat after {};
  CHECK(fstat(file.get(), &after) == 0);
  if (!opened.ok()) {
    CheckLine(reason);
    CHECK(after.st_size == before.st_size && ReadPages(file.get()) == found);
    return;
  }
  Backing& backing = **opened;
  // An access beyond the file's end would end the process.
  CHECK(static_cast<uint64_t>(after.st_size) == kImageBytes && backing.bytes() == kMemoryBytes);
  CHECK(!backing.owner().has_value() || *backing.owner() == kOwner || !options.owner.has_value());
  if (!backing.is_adopted()) {
    CHECK(backing.damage().empty());
    for (const uint64_t at : kPlaces) {
      if (at >= kImageMemoryOffset) CHECK(backing.base()[at - kImageMemoryOffset] == std::byte{0});
    }
  }
  if (accepts) backing.AcceptDamage();
  const std::string wrong = MemoryNode::WhyNotAdopted(kOwner.node, TheView(), backing);
  if (!backing.damage().empty()) CHECK(wrong == backing.damage());
  if (!backing.owner().has_value() || *backing.owner() != kOwner) return;
  if (!wrong.empty()) {
    CheckLine(wrong);
    CHECK(backing.MarkDamaged(wrong, &reason).ok());
    opened->reset();
    const auto again = Backing::Open(Options(), &reason);
    CHECK(again.ok() && !(*again)->damage().empty());
    return;
  }
  Live(std::move(*opened), input, dies);
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  FuzzInput input(data, size);
  const auto kind = static_cast<Kind>(input.TakeByte() % kKinds);
  const Pages& pages = TheImage(kind);
  BackingOptions options = Options();
  const uint8_t how = input.TakeByte();
  if ((how & 1) != 0) options.boot_id = "another boot";
  if ((how & 2) != 0) options.owner.reset();
  const uint8_t changes = input.TakeByte() % 16;
  {
    unlink(ImagePath().c_str());
    const UniqueFd file(open(ImagePath().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    CHECK(file.valid() && ftruncate(file.get(), kImageBytes) == 0);
    for (const auto& [at, page] : pages) {
      CHECK(pwrite(file.get(), page.data(), page.size(), static_cast<off_t>(at)) ==
            static_cast<ssize_t>(page.size()));
    }
    for (uint8_t i = 0; i < changes; ++i) ChangeImage(file.get(), &input);
  }
  Start(options, /*accepts=*/(how & 4) != 0, /*dies=*/(how & 8) != 0, &input);
  return 0;
}
