#include "memnode/backing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "client_core/base/held_by_predecessor.h"
#include "client_core/base/secret.h"
#include "client_core/layout/region_layout.h"
#include "memnode/memory_sums.h"

namespace onetrip {
namespace {

Status Refuse(std::string* reason, StatusCode code, std::string text) {
  *reason = std::move(text);
  return Status(code, "the node's memory cannot be had");
}

std::string ErrnoText(int error) { return std::strerror(error); }

uint64_t Checksum(const ImageHeader& header) {
  return XXH3_64bits(&header, offsetof(ImageHeader, checksum));
}

// As it stands in a header: zero when it is not known.
std::array<std::byte, 16> HashBootId(const std::string& boot_id) {
  std::array<std::byte, 16> id{};
  if (boot_id.empty()) return id;
  const XXH128_hash_t hash = XXH3_128bits(boot_id.data(), boot_id.size());
  std::memcpy(id.data(), &hash, sizeof(hash));
  return id;
}

// As they stand in the file, in one piece.
struct ImageHead {
  ImageHeader header;
  ImageAge age;
};
static_assert(sizeof(ImageHead) == sizeof(ImageHeader) + sizeof(ImageAge));

uint64_t Checksum(const ImageAge& age) { return XXH3_64bits(&age, offsetof(ImageAge, checksum)); }

bool HasAge(const ImageHeader& header) { return header.image_version == kImageVersion; }

bool IsSound(const ImageHead& head) {
  return head.header.magic == kImageMagic && head.header.checksum == Checksum(head.header) &&
         (!HasAge(head.header) || head.age.checksum == Checksum(head.age));
}

bool IsKnownVersion(uint32_t version) {
  return version == kImageVersion || version == kImageVersionWithoutAge ||
         version == kImageVersionWithoutSums;
}

// Kept until the descriptor is closed; not by its duplicates in other processes, for it is never
// handed over.
bool LockAgainstOtherNodes(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

std::string Bytes(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

std::string ReadBootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  file >> text;
  return text;
}

std::string HexName(uint64_t name) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(name));
  return text.data();
}

Status EnsurePrivateDirectory(const std::string& path, std::string* reason) {
  std::string directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "cannot make directory " + directory + ": " + ErrnoText(errno));
  }
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Refuse(reason, StatusCode::kInvalidArgument, directory + " is no directory");
  }
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  "directory " + directory +
                      " is open to others; give one of your own with mode 0700 (chmod 700)");
  }
  return Status::Ok();
}

Result<std::unique_ptr<Backing>> Backing::Open(const BackingOptions& options, std::string* reason) {
  if (options.bytes == 0 || options.bytes % kRegionBytes != 0) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  "a memory of " + Bytes(options.bytes) + " is not a number of whole regions");
  }
  std::unique_ptr<Backing> backing(new Backing(options));
  FillRandom(std::as_writable_bytes(std::span(&backing->incarnation_, 1)));
  Status status;
  if (options.kind == BackingOptions::Kind::kSegment) status = backing->OpenSegment(reason);
  if (options.kind == BackingOptions::Kind::kFile) status = backing->OpenFile(reason);
  if (status.ok()) status = backing->Map(reason);
  if (!status.ok()) return status;
  if (backing->has_sums_ && backing->damage_.empty()) {
    backing->damage_ = FindDamage(backing->fd_.get(), {backing->incarnation_, backing->life_},
                                  {static_cast<const std::byte*>(backing->base_), options.bytes});
  }
  return backing;
}

Backing::~Backing() {
  if (base_ != nullptr) munmap(base_, options_.bytes);
}

uint64_t Backing::share_offset() const {
  return options_.kind == BackingOptions::Kind::kFile ? kImageMemoryOffset : 0;
}

Status Backing::Map(std::string* reason) {
  if (base_ != nullptr) return Status::Ok();
  pages_.page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Pages come when they are first written: a large pool costs nothing until it is used. A file has
  // its room on the disk already.
  const int flags = fd_.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = mmap(nullptr, options_.bytes, PROT_READ | PROT_WRITE, flags, fd_.get(),
                      static_cast<off_t>(share_offset()));
  if (memory == MAP_FAILED) {
    return Refuse(reason, StatusCode::kOutOfMemory,
                  "the host refuses to map " + Bytes(options_.bytes) + ": " + ErrnoText(errno) +
                      "; give a smaller --memory");
  }
  base_ = static_cast<std::byte*>(memory);
  // Without huge pages almost every access of a large pool misses the TLB. A refusal costs speed
  // only.
  if (options_.bytes >= kHugePagesFromBytes &&
      madvise(memory, options_.bytes, MADV_HUGEPAGE) == 0 &&
      IsGivenOnAdvice(ReadTransparentSetting(options_.kind))) {
    pages_.page_bytes = std::max(pages_.page_bytes, ReadHugePageReserve().page_bytes);
  }
  return Status::Ok();
}

Status Backing::OpenSegment(std::string* reason) {
  const auto size = static_cast<off_t>(options_.bytes);
  if (options_.bytes >= kHugePagesFromBytes) {
    // From the host's reserve of huge pages, if it has one that is large enough.
    fd_ = UniqueFd(memfd_create("onetrip-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    if (fd_.valid() && ftruncate(fd_.get(), size) == 0) {
      void* memory =
          mmap(nullptr, options_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
      if (memory != MAP_FAILED) {
        base_ = static_cast<std::byte*>(memory);
        pages_ = {.page_bytes = ReadHugePageReserve().page_bytes, .is_reserved = true};
      }
    }
  }
  if (base_ == nullptr) {
    fd_ = UniqueFd(memfd_create("onetrip-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd_.valid() || ftruncate(fd_.get(), size) != 0) {
      return Refuse(reason, StatusCode::kOutOfMemory,
                    "the host refuses a shared segment of " + Bytes(options_.bytes) + ": " +
                        ErrnoText(errno) + "; give a smaller --memory");
    }
  }
  // A segment that shrank would end every process that touches it.
  if (fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "the host refuses to seal a shared segment: " + ErrnoText(errno));
  }
  return Status::Ok();
}

Status Backing::OpenFile(std::string* reason) {
  const Status directory = EnsurePrivateDirectory(options_.path, reason);
  if (!directory.ok()) return directory;
  fd_ = UniqueFd(open(options_.path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info {};
  if (!fd_.valid() || fstat(fd_.get(), &info) != 0) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "cannot open backing file " + options_.path + ": " + ErrnoText(errno));
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  "backing file " + options_.path +
                      " is no regular file of your own with mode 0600; give another --backing");
  }
  if (!TryUntilPredecessorEnds([this] { return LockAgainstOtherNodes(fd_.get()); })) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "backing file " + options_.path +
                      " is in use by another memory node; stop it or give another --backing");
  }
  // The size that holds is that of after the lock.
  if (fstat(fd_.get(), &info) != 0) return Status(StatusCode::kUnavailable, "no size");
  if (info.st_size == 0) return MakeImage(reason);
  bool is_copy = false;
  const ImageHeader header = ReadHeader(&is_copy);
  if (header.magic != kImageMagic) {
    return Refuse(reason, StatusCode::kCorrupt,
                  "backing file " + options_.path +
                      " is no memory image; give another --backing, it is left as it is");
  }
  // No process was given the file yet, so there is nothing in it.
  if (IsKnownVersion(header.image_version) && header.checksum == Checksum(header) &&
      header.state == ImageState::kForming) {
    return MakeImage(reason);
  }
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  const Status sound = CheckImage(header, file_bytes, reason);
  if (!sound.ok()) return sound;
  if (file_bytes < kImageMemoryOffset + options_.bytes) return Lengthen(file_bytes, reason);
  if (!is_copy) return sound;
  // Once it has a header nothing else tells.
  return MarkDamaged(
      "its header is damaged, which stood in bytes 0 to " + std::to_string(sizeof(header) - 1),
      reason);
}

ImageHeader Backing::ReadHeader(bool* is_copy) {
  *is_copy = false;
  ImageHead head;
  ImageHead copy;
  const auto size = static_cast<ssize_t>(sizeof(head));
  if (pread(fd_.get(), &head, sizeof(head), 0) != size) head.header.magic = 0;
  if (!IsSound(head) && pread(fd_.get(), &copy, sizeof(copy), kImageHeaderCopyOffset) == size &&
      IsSound(copy)) {
    *is_copy = true;
    head = copy;
  } else if (!IsSound(head) && head.header.checksum == Checksum(head.header)) {
    head.header.checksum = ~head.header.checksum;  // makes it unsound: its age is damaged
  }
  if (HasAge(head.header)) age_ = head.age;
  return head.header;
}

// Once it has its size nothing else tells that it was cut.
Status Backing::Lengthen(uint64_t file_bytes, std::string* reason) {
  const uint64_t whole_bytes = kImageMemoryOffset + options_.bytes;
  const Status marked = MarkDamaged("it was cut: bytes " + std::to_string(file_bytes) + " to " +
                                        std::to_string(whole_bytes - 1) + " are missing",
                                    reason);
  return marked.ok() ? TakeRoom(reason) : marked;
}

Status Backing::TakeRoom(std::string* reason) const {
  const auto image_bytes = static_cast<off_t>(kImageMemoryOffset + options_.bytes);
  // Now, not by a signal when a page is first written and the disk is full.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd_.get(), 0, image_bytes);
  if (error == 0) return Status::Ok();
  return Refuse(reason, StatusCode::kOutOfMemory,
                "no room for backing file " + options_.path + " of " +
                    Bytes(static_cast<uint64_t>(image_bytes)) + ": " + ErrnoText(error) +
                    "; make room or give a smaller --memory");
}

Status Backing::MakeImage(std::string* reason) {
  Status status;
  // To nothing first: what an earlier attempt left behind must read as zeros.
  if (ftruncate(fd_.get(), 0) != 0) {
    status = Refuse(reason, StatusCode::kUnavailable,
                    "cannot empty backing file " + options_.path + ": " + ErrnoText(errno));
  }
  owner_ = options_.owner;
  if (status.ok()) status = WriteHeader(ImageState::kForming, reason);
  if (status.ok()) status = TakeRoom(reason);
  // A file without an image is of no use.
  if (!status.ok()) unlink(options_.path.c_str());
  return status;
}

Status Backing::CheckImage(const ImageHeader& header, uint64_t file_bytes, std::string* reason) {
  const std::string file = "backing file " + options_.path;
  if (!IsKnownVersion(header.image_version) || header.layout_version != kLayoutVersion) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  file + " has image version " + std::to_string(header.image_version) +
                      " and layout " + std::to_string(header.layout_version) +
                      ", this program image version " + std::to_string(kImageVersion) +
                      " and layout " + std::to_string(kLayoutVersion) +
                      "; run the program that made it, or give another --backing");
  }
  if (header.checksum != Checksum(header)) {
    return Refuse(
        reason, StatusCode::kCorrupt,
        file +
            " has a damaged header and no sound copy of it, so it is not known whose memory "
            "it is: move it away and start the node without memory, which takes the lost "
            "one's place");
  }
  owner_ = MemoryOwner{.cluster = header.cluster, .node = NodeId{header.node}};
  if (options_.owner.has_value()) {
    const Status owned = SetOwner(*options_.owner, reason);
    if (!owned.ok()) return owned;
  }
  if (header.memory_bytes != options_.bytes) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  file + " holds " + Bytes(header.memory_bytes) + " of memory, not " +
                      Bytes(options_.bytes) + "; give the size it was made with");
  }
  if (file_bytes > kImageMemoryOffset + options_.bytes) {
    return Refuse(reason, StatusCode::kCorrupt,
                  file + " has " + Bytes(file_bytes) + " instead of " +
                      Bytes(kImageMemoryOffset + options_.bytes) +
                      "; nothing that a node does makes it longer: give the file that it left");
  }
  if (header.state != ImageState::kClean && header.state != ImageState::kInUse &&
      header.state != ImageState::kDamaged) {
    return Refuse(reason, StatusCode::kCorrupt, file + " has a header in no known state");
  }
  clean_ = header.state == ImageState::kClean;
  has_sums_ = clean_ && header.image_version != kImageVersionWithoutSums;
  // A process that dies leaves its pages to the kernel; a host that goes down loses any of them.
  const std::array<std::byte, 16> boot = HashBootId(options_.boot_id);
  if (header.state == ImageState::kDamaged) {
    damage_ = "it was found damaged at an earlier start";
  } else if (!clean_ && (header.boot != boot || boot == std::array<std::byte, 16>{})) {
    damage_ = "it was in use when the host went down, so any part of it may be missing";
  }
  adopted_ = true;
  incarnation_ = header.incarnation;
  life_ = header.life;
  return Status::Ok();
}

Status Backing::SetOwner(const MemoryOwner& owner, std::string* reason) {
  if (owner_.has_value() && owner_->cluster != owner.cluster) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  "backing file " + options_.path + " belongs to cluster " +
                      HexName(owner_->cluster) + ", not to " + HexName(owner.cluster) +
                      "; give this cluster's file");
  }
  if (owner_.has_value() && owner_->node != owner.node) {
    return Refuse(reason, StatusCode::kInvalidArgument,
                  "backing file " + options_.path + " belongs to memory node " +
                      std::to_string(owner_->node.value) + ", not to " +
                      std::to_string(owner.node.value) + "; give this node's file");
  }
  owner_ = owner;
  return Status::Ok();
}

ImageAge Backing::age() const {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  return age_;
}

void Backing::NoteTold(uint64_t mark) {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  age_.told = std::max(age_.told, mark);
}

void Backing::NoteEpoch(Epoch epoch) {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  age_.epoch = std::max(age_.epoch, epoch.value);
}

void Backing::NoteWorkersBelow(uint32_t next_worker) {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  age_.next_worker = std::max(age_.next_worker, next_worker);
}

void Backing::RaiseMark(uint64_t mark) {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  age_.mark = std::max(age_.mark, mark);
}

Status Backing::Beat(std::string* reason) {
  RaiseMark(age().mark + 1);
  if (options_.kind != BackingOptions::Kind::kFile) return Status::Ok();
  // The memory itself reaches the disk at an end in order only.
  return WriteHeader(ImageState::kInUse, reason, /*sync=*/false);
}

Status Backing::WriteHeader(ImageState state, std::string* reason, bool sync) const {
  const std::lock_guard<std::mutex> lock(age_mutex_);
  ImageHead head;
  ImageHeader& header = head.header;
  header.layout_version = kLayoutVersion;
  header.cluster = owner_.value_or(MemoryOwner()).cluster;
  header.memory_bytes = options_.bytes;
  header.incarnation = incarnation_;
  header.life = life_;
  header.state = state;
  header.node = owner_.value_or(MemoryOwner()).node.value;
  header.boot = HashBootId(options_.boot_id);
  header.checksum = Checksum(header);
  head.age = age_;
  head.age.checksum = Checksum(head.age);
  // Each in one piece, whenever the process may be killed. The copy may be behind by this one
  // change: what it says is true as well until both are on the disk, for nothing goes on before.
  const auto size = static_cast<ssize_t>(sizeof(head));
  if (pwrite(fd_.get(), &head, sizeof(head), 0) != size ||
      pwrite(fd_.get(), &head, sizeof(head), kImageHeaderCopyOffset) != size ||
      (sync && fsync(fd_.get()) != 0)) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "cannot write backing file " + options_.path + ": " + ErrnoText(errno));
  }
  return Status::Ok();
}

Status Backing::MarkInUse(std::string* reason) {
  if (options_.kind != BackingOptions::Kind::kFile) {
    RaiseMark(age().mark + 1);
    return Status::Ok();
  }
  CHECK(owner_.has_value());
  if (HasClients()) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "processes still map backing file " + options_.path +
                      ", which they got from the node's former life; end them");
  }
  ++life_;
  RaiseMark(age().mark + 1);
  damage_.clear();
  return WriteHeader(ImageState::kInUse, reason);
}

Status Backing::MarkDamaged(const std::string& damage, std::string* reason) {
  damage_ = damage;
  return WriteHeader(ImageState::kDamaged, reason);
}

Status Backing::MarkClean(std::string* reason) {
  if (options_.kind != BackingOptions::Kind::kFile) return Status::Ok();
  if (HasClients()) {
    return Refuse(
        reason, StatusCode::kUnavailable,
        "processes still map backing file " + options_.path + ", so it stays marked as in use");
  }
  // The header last: sums that it does not speak of do not count.
  const std::span<const std::byte> memory(base_, options_.bytes);
  if (msync(base_, options_.bytes, MS_SYNC) != 0 ||
      !WriteSums(fd_.get(), {incarnation_, life_}, memory).ok()) {
    return Refuse(reason, StatusCode::kUnavailable,
                  "cannot write backing file " + options_.path + ": " + ErrnoText(errno));
  }
  return WriteHeader(ImageState::kClean, reason);
}

Result<UniqueFd> Backing::Share() const {
  if (options_.kind == BackingOptions::Kind::kPrivate) {
    return Status(StatusCode::kInvalidArgument, "private memory is not shared");
  }
  // Opened anew, not duplicated: the lock below is the agent's, and ours is not given away.
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  UniqueFd shared(open(self.c_str(), O_RDWR | O_CLOEXEC));
  if (!shared.valid()) return Status(StatusCode::kUnavailable, "the memory cannot be opened again");
  if (options_.kind == BackingOptions::Kind::kFile && flock(shared.get(), LOCK_SH | LOCK_NB) != 0) {
    return Status(StatusCode::kUnavailable, "the memory cannot be locked for an agent");
  }
  return shared;
}

}  // namespace onetrip
