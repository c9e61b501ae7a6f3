#include "redis_compat/values/encoding.h"

#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/packed.h"

namespace onetrip {
namespace {

std::string_view StringEncoding(std::string_view value) {
  constexpr size_t kEmbeddedMax = 44;
  if (ParseInt64(value)) return "int";
  return value.size() <= kEmbeddedMax ? "embstr" : "raw";
}

}  // namespace

std::string_view EncodingOf(const RecordView& record) {
  PackedHeader header;
  LoadPackedHeader(record.value, &header);
  const bool is_table = (header.flags & kPackedTable) != 0;
  switch (static_cast<ValueType>(record.type)) {
    case ValueType::kString:
      return StringEncoding(record.value);
    case ValueType::kList:
      return "quicklist";
    case ValueType::kSet:
      return (header.flags & kPackedIntegers) != 0 ? "intset" : "hashtable";
    case ValueType::kSortedSet:
      return is_table ? "skiplist" : "listpack";
    case ValueType::kHash:
      return is_table ? "hashtable" : "listpack";
    case ValueType::kStream:
      return "stream";
  }
  return "unknown";
}

}  // namespace onetrip
