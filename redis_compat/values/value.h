// Values: the meaning of a record's type byte, and typed views of a record.
//
// kv stores a type byte without looking at it; here it gets its Redis meaning. A handler sees a
// value only through the view of the type that it works on, so that a type added later answers
// WRONGTYPE everywhere at once. Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_

#include <cstdint>
#include <string_view>

#include "client_core/store/store.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {

// Stored in every record: numbers never change their meaning. Of a collection the value is what
// packed.h says, of a stream what stream_value.h says.
enum class ValueType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedSet = 3,
  kHash = 4,
  kStream = 5,
};

// The name TYPE answers.
inline std::string_view ValueTypeName(uint8_t type) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::kString:
      return "string";
    case ValueType::kList:
      return "list";
    case ValueType::kSet:
      return "set";
    case ValueType::kSortedSet:
      return "zset";
    case ValueType::kHash:
      return "hash";
    case ValueType::kStream:
      return "stream";
  }
  return "unknown";
}

// True if the value of a record of that type is a packed collection, which a stream is not.
inline bool IsCollectionType(uint8_t type) {
  return type >= static_cast<uint8_t>(ValueType::kList) &&
         type <= static_cast<uint8_t>(ValueType::kHash);
}

// True if `record` is a value of that type; null, which is none, is of every type.
inline bool IsOfType(const RecordView* record, ValueType type) {
  return record == nullptr || record->type == static_cast<uint8_t>(type);
}

// A string to store: `head` followed by `tail`. A deadline of 0 means for ever.
inline NewRecord StringRecord(std::string_view head, std::string_view tail = {},
                              uint64_t deadline_ms = 0) {
  NewRecord record;
  record.head = head;
  record.tail = tail;
  record.deadline_ms = deadline_ms;
  record.type = static_cast<uint8_t>(ValueType::kString);
  return record;
}

// A key as the commands on strings see it: it holds a string, nothing, or a value of another type.
class StringValue {
 public:
  StringValue() = default;  // nothing
  // `record` outlives it; null: the key holds nothing.
  explicit StringValue(const RecordView* record) : record_(record) {}

  [[nodiscard]] bool found() const { return record_ != nullptr; }
  [[nodiscard]] bool is_string() const {
    return found() && record_->type == static_cast<uint8_t>(ValueType::kString);
  }
  // Null, or WRONGTYPE: the key holds a value of another type, and nothing below may be asked.
  [[nodiscard]] const char* type_error() const {
    return !found() || is_string() ? nullptr : kWrongTypeError;
  }

  // The part of the string that was read. Nothing counts as an empty string.
  [[nodiscard]] std::string_view bytes() const {
    return found() ? record_->value : std::string_view();
  }
  // The length of the whole string.
  [[nodiscard]] uint64_t size() const { return found() ? record_->value_bytes : 0; }
  // Unix milliseconds by the cluster clock; 0: none.
  [[nodiscard]] uint64_t deadline_ms() const { return found() ? record_->deadline_ms : 0; }
  // REQUIRES: found().
  [[nodiscard]] const RecordView& record() const { return *record_; }

  // A string to store in its place, `head` followed by `tail`, which keeps the deadline.
  [[nodiscard]] NewRecord ReplacedBy(std::string_view head, std::string_view tail = {}) const {
    return StringRecord(head, tail, deadline_ms());
  }

 private:
  const RecordView* record_ = nullptr;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_
