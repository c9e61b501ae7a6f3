// Hashes as packed collections: two entries an element, the field and its value, in the order in
// which the fields came.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_HASH_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_HASH_VALUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {

inline PackedElements HashFields(std::string_view value) {
  return PackedElements(value, /*has_values=*/true);
}

// A hash that a command changes, packed or a tree.
class HashEdit {
 public:
  // `value` outlives it; empty: there is none.
  explicit HashEdit(std::string_view value) : fields_(value, /*has_values=*/true) {}
  explicit HashEdit(Tree& tree) : fields_(tree, /*has_values=*/true) {}

  // Null: it is packed.
  [[nodiscard]] TreeMap* tree() { return fields_.tree(); }
  [[nodiscard]] uint64_t size() const { return fields_.size(); }
  bool Find(std::string_view field, std::string_view* value = nullptr) {
    return fields_.Find(field, value);
  }
  // Both outlive the edit. True: the field is new.
  bool Put(std::string_view field, std::string_view value) {
    longest_ = std::max({longest_, field.size(), value.size()});
    return fields_.Put(field, value);
  }
  bool Remove(std::string_view field) { return fields_.Remove(field); }

  // The flags that the changes give it.
  [[nodiscard]] uint8_t NewFlags(const CompactLimits& limits) const {
    const bool is_table = longest_ > limits.bytes || fields_.size() > limits.elements;
    return is_table ? kPackedTable : 0;
  }
  // The hash as it is now. REQUIRES: it is packed.
  [[nodiscard]] std::string Finish(const CompactLimits& limits) const {
    const PackedMap& packed = fields_.packed();
    return packed.Finish(packed.flags() | NewFlags(limits));
  }

 private:
  MapEdit fields_;
  size_t longest_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_HASH_VALUE_H_
