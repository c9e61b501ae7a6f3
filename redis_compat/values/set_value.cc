#include "redis_compat/values/set_value.h"

#include <algorithm>
#include <utility>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// The order of integers that are spelled in their one way.
bool IsSmaller(std::string_view a, std::string_view b) {
  const bool is_negative = a.starts_with('-');
  if (is_negative != b.starts_with('-')) return is_negative;
  if (is_negative) std::swap(a, b);
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

uint8_t FlagsOf(bool is_integers) { return is_integers ? kPackedIntegers : kPackedTable; }

}  // namespace

bool IsIntegerMember(std::string_view member) { return ParseInt64(member).has_value(); }

SetEdit::SetEdit(std::string_view value, uint64_t integers_max)
    : members_(value, /*has_values=*/false),
      integers_max_(integers_max),
      is_integers_(members_.size() == 0 || (members_.packed().flags() & kPackedIntegers) != 0) {}

SetEdit::SetEdit(Tree& tree)
    : members_(tree, /*has_values=*/false), integers_max_(0), is_integers_(false) {}

bool SetEdit::Add(std::string_view member) {
  const bool is_new = members_.Put(member);
  if (is_new && is_integers_) {
    is_integers_ = members_.size() <= integers_max_ && IsIntegerMember(member);
  }
  return is_new;
}

std::string SetEdit::Finish() const {
  const PackedMap& packed = members_.packed();
  if (!is_integers_) return packed.Finish(FlagsOf(false));
  return packed.Finish(FlagsOf(true), [](const PackedElement& a, const PackedElement& b) {
    return IsSmaller(a.key, b.key);
  });
}

NewSet MakeSet(std::vector<std::string_view> members, uint64_t integers_max) {
  NewSet set{std::move(members), false};
  set.is_integers = set.members.size() <= integers_max &&
                    std::all_of(set.members.begin(), set.members.end(), IsIntegerMember);
  if (set.is_integers) std::sort(set.members.begin(), set.members.end(), IsSmaller);
  return set;
}

std::string PackSet(const NewSet& set) {
  size_t bytes = kPackedHeaderBytes;
  for (const std::string_view member : set.members) bytes += PackedEntryBytes(member.size());
  std::string packed =
      PackedHeaderBytes({FlagsOf(set.is_integers), static_cast<uint32_t>(set.members.size())});
  packed.reserve(bytes);
  for (const std::string_view member : set.members) AppendPackedEntry(member, &packed);
  return packed;
}

}  // namespace onetrip
