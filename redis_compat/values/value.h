// Values: what the type byte of a record means, and who may read it as what.
//
// kv stores a type byte without looking at it; here it gets its Redis meaning. Every handler goes
// through these checks, so that a type added later answers WRONGTYPE everywhere at once.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_

#include <cstdint>
#include <string_view>

#include "client_core/store/store.h"

namespace onetrip {

// Stored in every record: numbers never change their meaning.
enum class ValueType : uint8_t {
  kString = 0,
};

// The name TYPE answers.
inline std::string_view ValueTypeName(uint8_t type) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::kString:
      return "string";
  }
  return "unknown";
}

inline bool IsString(const RecordView& record) {
  return record.type == static_cast<uint8_t>(ValueType::kString);
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

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_VALUE_H_
