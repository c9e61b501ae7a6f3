// NearestName: the known name that a mistyped one was probably meant to be.
//
// For messages only: nothing is ever done by a guess. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_NEAREST_NAME_H_
#define ONETRIP_CLIENT_CORE_BASE_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace onetrip {

// The one of `known` that takes the fewest letters added, dropped, changed or swapped with their
// neighbour to get from `typed`, the first of several, in any case. A name that `typed` begins, or
// that is a whole part of it, counts as near. Empty when none is near: more than a third of the
// letters would change.
std::string NearestName(std::string_view typed, std::span<const std::string> known);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_NEAREST_NAME_H_
