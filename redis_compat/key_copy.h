// A key's record taken out of the store, and what puts it elsewhere: for commands that move values
// between keys.
//
// The store is atomic per key. A command over two keys is a read and two writes, between which
// others see both keys, or an older value at one of them.
#ifndef ONETRIP_REDIS_COMPAT_KEY_COPY_H_
#define ONETRIP_REDIS_COMPAT_KEY_COPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "redis_compat/key_access.h"

namespace onetrip {

// A record as it was when it was read.
struct RecordCopy {
  bool found = false;
  std::string value;
  uint64_t deadline_ms = 0;
  uint8_t type = 0;
  uint64_t version = 0;  // of the write that was read; 0: of none

  static RecordCopy Of(const RecordView& record) {
    return {true, std::string(record.value), record.deadline_ms, record.type, record.version};
  }
  static RecordCopy OfString(std::string_view value) {
    return {true, std::string(value), 0, static_cast<uint8_t>(ValueType::kString), 0};
  }
  // Whether `record` holds the same, whoever wrote it.
  [[nodiscard]] bool Equals(const RecordView& record) const {
    return found && type == record.type && deadline_ms == record.deadline_ms &&
           value == record.value;
  }
};

// What `key` holds, or that it is not there. `copy` outlives the task.
Task<Status> ReadCopy(Kv& kv, Key key, RecordCopy* copy);

// Stores a copy. Without `replace` only where nothing is, or what equals `over`. Copies outlive it.
class StoreCopy final : public CommandMutation {
 public:
  StoreCopy(const RecordCopy& copy, bool replace, const RecordCopy* over = nullptr)
      : copy_(copy), replace_(replace), over_(over) {}

  Change Apply(const RecordView* current) override {
    Begin();
    stored_ = replace_ || current == nullptr || (over_ != nullptr && over_->Equals(*current));
    if (!stored_) return Change::Keep();
    NewRecord record;
    record.head = copy_.value;
    record.deadline_ms = copy_.deadline_ms;
    record.type = copy_.type;
    return Change::Write(record);
  }

  [[nodiscard]] bool stored() const { return stored_; }

 private:
  const RecordCopy& copy_;
  const bool replace_;
  const RecordCopy* const over_;
  bool stored_ = false;
};

// Removes a key that still holds the very write that was read of it; where that is not known, the
// same value. The copy outlives it.
class RemoveIfSame final : public CommandMutation {
 public:
  explicit RemoveIfSame(const RecordCopy& copy) : copy_(copy) {}

  Change Apply(const RecordView* current) override {
    Begin();
    const bool same = current != nullptr && (copy_.version != 0 ? copy_.version == current->version
                                                                : copy_.Equals(*current));
    changed_ = current != nullptr && !same;
    if (current == nullptr) return Change::Keep();
    if (!changed_) return Change::Delete();
    now_ = RecordCopy::Of(*current);
    return Change::Keep();
  }

  // Whether it held something else, and what.
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] const RecordCopy& now() const { return now_; }

 private:
  const RecordCopy& copy_;
  bool changed_ = false;
  RecordCopy now_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_KEY_COPY_H_
