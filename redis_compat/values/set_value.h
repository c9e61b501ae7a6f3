// Sets as packed collections: an entry a member. As long as all of them are integers, and not too
// many, they stand in ascending order; otherwise in the order in which they came.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SET_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SET_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {

inline PackedElements SetMembers(std::string_view value) {
  return PackedElements(value, /*has_values=*/false);
}

// True if `member` is an integer in its one spelling, as integer sets hold them.
bool IsIntegerMember(std::string_view member);

// A set that a command changes, packed or a tree.
class SetEdit {
 public:
  // `value` outlives it; empty: there is none. A set that grows beyond `integers_max` members is no
  // integer set any more.
  SetEdit(std::string_view value, uint64_t integers_max);
  explicit SetEdit(Tree& tree);

  // Null: it is packed.
  [[nodiscard]] TreeMap* tree() { return members_.tree(); }
  [[nodiscard]] uint64_t size() const { return members_.size(); }
  bool Contains(std::string_view member) { return members_.Find(member); }
  // `member` outlives the edit. True: it is new.
  bool Add(std::string_view member);
  bool Remove(std::string_view member) { return members_.Remove(member); }

  // The set as it is now. REQUIRES: it is packed.
  [[nodiscard]] std::string Finish() const;

 private:
  MapEdit members_;
  const uint64_t integers_max_;
  bool is_integers_;
};

// A set that is made anew.
struct NewSet {
  std::vector<std::string_view> members;
  bool is_integers = false;
};

// A set of `members`, which are all different, as Redis would hold it. REQUIRES: `integers_max` is
// as SetEdit has it.
NewSet MakeSet(std::vector<std::string_view> members, uint64_t integers_max);
std::string PackSet(const NewSet& set);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SET_VALUE_H_
