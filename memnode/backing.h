// Backing: where a memory node's bytes lie. Private to the process, a segment that agents of this
// host map, or a file that survives the process.
//
// A file is an image: a header that says whose memory this is (ImageHeader), then the memory. It
// belongs to one node at a time. A process that is given a descriptor holds a lock on the file for
// as long as its mapping lives, so a node that comes back knows whether processes of its former
// life could still write, and does not go on before they have ended (PROTOCOLS, "Fencing on the
// memory nodes"). Memory of an earlier life that the file did not keep is damaged: it stays as it
// is, over any number of starts, until the node begins a new life on it. Any thread may Share(),
// and call the functions about the age of the memory: age() to RaiseMark(), and Beat(). Everything
// else is for one thread.
#ifndef ONETRIP_MEMNODE_BACKING_H_
#define ONETRIP_MEMNODE_BACKING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client_core/base/status.h"
#include "client_core/coro/socket.h"
#include "client_core/layout/shm_wire.h"
#include "client_core/layout/types.h"
#include "memnode/huge_pages.h"

namespace onetrip {

// Whose memory it is.
struct MemoryOwner {
  uint64_t cluster = 0;
  NodeId node{};
  friend bool operator==(const MemoryOwner&, const MemoryOwner&) = default;
};

// Names this boot of the host; empty where the kernel does not say.
std::string ReadBootId();

struct BackingOptions {
  // kPrivate: this process alone. kSegment: shared by descriptor; ends with the last process that
  // has it. kFile: at `path`, in a directory of mode 0700, with mode 0600.
  using Kind = MemoryKind;
  Kind kind = Kind::kPrivate;
  uint64_t bytes = 0;  // the memory's: whole regions
  std::string path{};
  // The owner of a kFile, if known yet: images of other owners are refused at once.
  std::optional<MemoryOwner> owner{};
  // The writes of a process that dies stay as long as this stays the same. Empty: not known.
  std::string boot_id = ReadBootId();
};

// A cluster or memory as people see it: 16 hexadecimal digits.
std::string HexName(uint64_t name);

// Makes the directory that `path` lies in, if it is missing, and refuses one that others than its
// owner may enter. `reason` then says what to do.
Status EnsurePrivateDirectory(const std::string& path, std::string* reason);

class Backing {
 public:
  // Maps the memory. A file that is missing is made, with all its room on the disk; one that is
  // there must be of this size and layout, and used by no other node. One that was cut gets its
  // size back, and is damaged. On failure `reason` says in one line what is wrong and what to do,
  // and no file was changed.
  static Result<std::unique_ptr<Backing>> Open(const BackingOptions& options, std::string* reason);
  // Unmaps. Without Close() before it a file is left as by a death of the process.
  ~Backing();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] uint64_t bytes() const { return options_.bytes; }
  [[nodiscard]] const BackingOptions& options() const { return options_; }
  // The memory's pages as they are, or may become as they are touched. Constant.
  [[nodiscard]] const MemoryPages& pages() const { return pages_; }

  // The memory is that of an earlier life of the node; otherwise it is all zero.
  [[nodiscard]] bool is_adopted() const { return adopted_; }
  // That life ended in order.
  [[nodiscard]] bool was_clean() const { return clean_; }
  // Why the memory cannot be trusted, in one line without the file's name; empty: it can. Such
  // memory must not be served. The next life on it begins without: everything is put there anew.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  // From now on and over restarts, until the next life. REQUIRES: adopted, and `damage` is not
  // empty.
  Status MarkDamaged(const std::string& damage, std::string* reason);
  // The memory is taken for sound, whatever is known of it.
  void AcceptDamage() { damage_.clear(); }
  // Names the memory: stays the same for as long as its bytes are kept.
  [[nodiscard]] uint64_t incarnation() const { return incarnation_; }
  // Whose the image is; unset for a new one without an owner yet.
  [[nodiscard]] const std::optional<MemoryOwner>& owner() const { return owner_; }
  // Says whose memory it will be; refused for an image that belongs to another.
  Status SetOwner(const MemoryOwner& owner, std::string* reason);

  // True if processes that were given the file, in this life or an earlier one, still map it.
  [[nodiscard]] bool HasClients() const;
  // Waits for their end up to `grace_ms`, then kills them and waits `kill_ms` more at most.
  Status EndClients(uint64_t grace_ms, uint64_t kill_ms, std::string* reason);

  // How old the memory is. Any thread, like the next three; what they note reaches the file with
  // the next Beat().
  [[nodiscard]] ImageAge age() const;
  // The master has stored this mark.
  void NoteTold(uint64_t mark);
  void NoteEpoch(Epoch epoch);
  void NoteWorkersBelow(uint32_t next_worker);
  // The next life's mark is above this one.
  void RaiseMark(uint64_t mark);
  // The mark grows, and reaches the file, though not the disk, before this returns. Once
  // MarkInUse() was ok, and until MarkClean(); any thread.
  Status Beat(std::string* reason);

  // The memory has been formatted, or checked, and will be served: a new life begins, and checksums
  // of the last one count no more. Refused while the file has clients. REQUIRES: a file has an
  // owner.
  Status MarkInUse(std::string* reason);
  // The life ends in order: everything, and checksums of it, reaches the file before its header
  // says so. Refused while clients of the file might still write: it stays in use then, which loses
  // nothing unless the host goes down. REQUIRES: no thread of this process writes any more.
  Status MarkClean(std::string* reason);

  // A descriptor for one agent, not for kPrivate. The memory begins at share_offset() in it.
  Result<UniqueFd> Share() const;
  [[nodiscard]] uint64_t share_offset() const;

 private:
  explicit Backing(const BackingOptions& options) : options_(options) {}
  Status OpenSegment(std::string* reason);
  Status OpenFile(std::string* reason);
  Status MakeImage(std::string* reason);
  // The image's header, or its copy where only that is sound. Without magic: there is none.
  ImageHeader ReadHeader(bool* is_copy);
  Status CheckImage(const ImageHeader& header, uint64_t file_bytes, std::string* reason);
  // Before anything is mapped that is not there.
  Status Lengthen(uint64_t file_bytes, std::string* reason);
  Status TakeRoom(std::string* reason) const;
  Status Map(std::string* reason);
  // Onto the disk, or only into the file where `sync` is false.
  Status WriteHeader(ImageState state, std::string* reason, bool sync = true) const;

  const BackingOptions options_;
  UniqueFd fd_;  // a file's: carries the lock against other nodes, and is never given away
  std::byte* base_ = nullptr;
  MemoryPages pages_;
  bool adopted_ = false;
  bool clean_ = false;
  bool has_sums_ = false;  // that hold
  std::string damage_;
  uint64_t incarnation_ = 0;
  uint64_t life_ = 0;  // the former ones
  std::optional<MemoryOwner> owner_;
  mutable std::mutex age_mutex_;
  ImageAge age_;  // guarded by age_mutex_, as are writes of the header
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_BACKING_H_
