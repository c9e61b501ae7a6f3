// HRANDFIELD, ZRANDMEMBER and SRANDMEMBER: elements of a collection, chosen at random.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_RANDOM_ELEMENTS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_RANDOM_ELEMENTS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/dispatch/collection_access.h"

namespace onetrip {

// `count` different positions below `size`, in ascending order, each such choice as likely as any
// other. REQUIRES: count <= size.
std::vector<uint64_t> ChoosePositions(Rng& rng, uint64_t count, uint64_t size);

// Appends the value of an element to the reply.
using ReplyElementValue = void (*)(ReplyWriter&, std::string_view value);

// The whole command: key, and perhaps a count, and behind it `values_word`, which asks for the
// values, too. Without a word (of a set) elements have no values.
Task<void> ReplyRandomElements(CommandContext& context, ValueType type,
                               std::string_view values_word, ReplyElementValue reply_value);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_RANDOM_ELEMENTS_H_
