// KeyLookup: keys of a hash or set, fields or members, that a command looks up, in whatever form
// the collection is held. Of a tree it takes the leaves that hold them.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_KEY_LOOKUP_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_KEY_LOOKUP_H_

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client_core/store/store.h"
#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/value.h"

namespace onetrip {

class KeyLookup final : public TreeReader {
 public:
  // `keys` outlive it.
  KeyLookup(ValueType type, std::span<const std::string_view> keys) : type_(type), keys_(keys) {}

  // The part of the read that is made for it.
  [[nodiscard]] ValueRange range() { return {.reader = this}; }
  void Read(const RecordView& record, Tree& tree) override;

  // Once the collection has been read: `packed`, which outlives it, or what Read() has seen.
  void Begin(const ReadResult& result, std::string_view packed);
  // Looks up the key of that index; its value, too, unless `value` is null.
  bool Find(size_t index, std::string_view* value = nullptr);

 private:
  [[nodiscard]] bool has_values() const { return type_ == ValueType::kHash; }

  const ValueType type_;
  const std::span<const std::string_view> keys_;
  std::string_view packed_;
  std::optional<PackedMap> packed_map_;  // for several keys
  bool is_tree_ = false;
  absl::flat_hash_map<std::string_view, std::string> in_tree_;  // each once
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_KEY_LOOKUP_H_
