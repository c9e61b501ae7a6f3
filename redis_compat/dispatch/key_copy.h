// A key's record taken out of the store, and what puts it elsewhere: for commands that move values
// between keys.
//
// The store is atomic per key. A command over two keys is a read and two writes, between which
// others see both keys, or an older value at one of them.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_KEY_COPY_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_KEY_COPY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redis_compat/dispatch/key_access.h"

namespace onetrip {

// A record as it was when it was read.
struct RecordCopy {
  bool found = false;
  std::string value;  // unless it lies elsewhere
  uint64_t deadline_ms = 0;
  uint8_t type = 0;
  uint64_t version = 0;  // names the write that was read
  bool is_register = false;
  std::string_view elsewhere = {};
  std::shared_ptr<LargeValue> holder = nullptr;  // keeps those bytes; null: the maker does

  [[nodiscard]] std::string_view bytes() const {
    if (elsewhere.data() != nullptr) return elsewhere;
    return value;
  }

  static RecordCopy Of(const RecordView& record) {
    RecordCopy copy{true, {}, record.deadline_ms, record.type, record.version};
    if (record.holder == nullptr) {
      copy.value = record.value;
      return copy;
    }
    copy.elsewhere = record.value;
    copy.holder = *record.holder;
    return copy;
  }
  // Makes a copy of a string whose bytes outlive it.
  static RecordCopy OfString(std::string_view value) {
    RecordCopy copy{true, {}, 0, static_cast<uint8_t>(ValueType::kString), 0};
    copy.elsewhere = value;
    return copy;
  }
};

// Reads the value of `key`, or that there is none. First gives up the old value of `copy`, which
// keeps one large value at a time. `copy` outlives the task.
Task<Status> ReadCopy(Kv& kv, Key key, RecordCopy* copy);

// Stores a copy, which outlives it. Without `replace` only where nothing is, or the write of the
// version `over`. `moves`: where the copy is from, it is removed next.
class StoreCopy final : public CommandMutation {
 public:
  StoreCopy(const RecordCopy& copy, bool replace, std::optional<uint64_t> over = std::nullopt,
            bool moves = false)
      : copy_(copy), replace_(replace), moves_(moves), over_(over) {}

  Change Apply(const RecordView* current) override {
    Begin();
    stored_ = replace_ || current == nullptr || current->version == over_;
    if (!stored_) return Change::Keep();
    NewRecord record;
    record.head = copy_.bytes();
    record.deadline_ms = copy_.deadline_ms;
    record.type = copy_.type;
    Change change = Change::Write(record, &version_);
    change.frees_as_much = moves_;
    return change;
  }

  [[nodiscard]] ValueRange wanted() const override { return kNoValue; }
  [[nodiscard]] bool stored() const { return stored_; }
  // The version of the write that it has stored.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  const RecordCopy& copy_;
  const bool replace_;
  const bool moves_;
  const std::optional<uint64_t> over_;
  bool stored_ = false;
  uint64_t version_ = 0;
};

// Makes a key a record, which can be removed however full the pool is.
class HoldAsRecord final : public CommandMutation {
 public:
  Change Apply(const RecordView* /*current*/) override { return Change::KeepAsRecord(); }
  [[nodiscard]] ValueRange wanted() const override { return kNoValue; }
};

// Removes a key that still holds the very write of that version.
class RemoveIfSame final : public CommandMutation {
 public:
  explicit RemoveIfSame(uint64_t version) : version_(version) {}

  Change Apply(const RecordView* current) override {
    Begin();
    changed_ = current != nullptr && current->version != version_;
    if (current == nullptr) return Change::Keep();
    return changed_ ? Change::Keep() : Change::Delete();
  }

  [[nodiscard]] ValueRange wanted() const override { return kNoValue; }
  // True if the key held another write.
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  const uint64_t version_;
  bool changed_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_KEY_COPY_H_
