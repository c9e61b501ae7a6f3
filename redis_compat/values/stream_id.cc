#include "redis_compat/values/stream_id.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

constexpr size_t kTextMax = 127;

// As strtoull() does, which takes blanks, signs and zeros in front, but for negative numbers in
// their canonical spelling.
bool ParseUint64(std::string_view text, uint64_t* number) {
  if (const auto canonical = ParseInt64(text)) {
    *number = static_cast<uint64_t>(*canonical);
    return *canonical >= 0;
  }
  std::array<char, kTextMax + 1> copy;
  if (text.empty() || text.size() > kTextMax) return false;
  std::memcpy(copy.data(), text.data(), text.size());
  copy[text.size()] = '\0';
  char* end = nullptr;
  errno = 0;
  *number = std::strtoull(copy.data(), &end, 10);
  return errno == 0 && end == copy.data() + text.size();
}

}  // namespace

bool StepForward(EntryId* id) {
  if (++id->sequence != 0) return true;
  return ++id->ms != 0;
}

bool StepBack(EntryId* id) {
  if (id->sequence-- != 0) return true;
  return id->ms-- != 0;
}

size_t FormatStreamId(const EntryId& id, char* out) {
  char* end = FormatUint64(id.ms, out);
  *end++ = '-';
  return static_cast<size_t>(FormatUint64(id.sequence, end) - out);
}

bool ParseStreamId(std::string_view text, const StreamIdForm& form, EntryId* id,
                   bool* has_sequence) {
  if (text.size() > kTextMax) return false;
  text = UntilNul(text);
  if (has_sequence != nullptr) *has_sequence = true;
  if (text == "-" || text == "+") {
    *id = text == "-" ? EntryId() : kStreamIdMax;
    return form.takes_ends;
  }
  const size_t dash = text.find('-');
  if (!ParseUint64(text.substr(0, dash), &id->ms)) return false;
  id->sequence = form.missing_sequence;
  if (dash == std::string_view::npos) return true;
  const std::string_view sequence = text.substr(dash + 1);
  if (form.takes_any_sequence && sequence == "*") {
    id->sequence = 0;
    *has_sequence = false;
    return true;
  }
  return ParseUint64(sequence, &id->sequence);
}

}  // namespace onetrip
