// HSCAN, SSCAN and ZSCAN: a walk over the elements of a collection, a part of them at a time.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_ELEMENT_SCAN_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_ELEMENT_SCAN_H_

#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/values/packed_map.h"

namespace onetrip {

// Appends an element of the reply.
using ReplyScanned = void (*)(ReplyWriter&, const PackedElement&);

// The whole command; argv[1] is the key, argv[2] the cursor. A collection in a compact encoding is
// shown at once. Of another one the cursor is a hash of keys, which no change moves: an element
// that is there all the time is met, and met once. `values`: elements have values, and the reply
// counts two for each. `in_table`, unless null, is for those of a collection beyond the compact
// encodings.
Task<void> ScanElements(CommandContext& context, ValueType type, bool values, ReplyScanned reply,
                        ReplyScanned in_table = nullptr);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_ELEMENT_SCAN_H_
