// Ids of the entries of streams: a time in milliseconds and a number within it.
//
// Pure functions; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_ID_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_ID_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onetrip {

struct EntryId {
  uint64_t ms = 0;
  uint64_t sequence = 0;

  [[nodiscard]] constexpr bool is_zero() const { return ms == 0 && sequence == 0; }
  friend constexpr auto operator<=>(const EntryId&, const EntryId&) = default;
};
inline constexpr EntryId kStreamIdMax{UINT64_MAX, UINT64_MAX};

// To the next id, or the one before. False: there is none, and `id` is at the other end.
bool StepForward(EntryId* id);
bool StepBack(EntryId* id);

// FormatStreamId() needs at most this.
inline constexpr size_t kStreamIdTextMax = 41;
// Writes "ms-sequence" at `out`; returns how many bytes.
size_t FormatStreamId(const EntryId& id, char* out);

struct StreamIdForm {
  uint64_t missing_sequence = 0;  // that of an id without one
  bool takes_ends = false;        // "-" and "+" are the smallest and the greatest id
  bool takes_any_sequence = false;
};
// Parses an id as Redis does. `has_sequence` becomes false for "ms-*", if the form takes that, and
// may be null if it does not.
bool ParseStreamId(std::string_view text, const StreamIdForm& form, EntryId* id,
                   bool* has_sequence = nullptr);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_ID_H_
