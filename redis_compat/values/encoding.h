// Encodings: how Redis would hold a value, as OBJECT ENCODING tells. Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_ENCODING_H_
#define ONETRIP_REDIS_COMPAT_VALUES_ENCODING_H_

#include <string_view>

#include "client_core/store/store.h"
#include "redis_compat/values/value.h"

namespace onetrip {

// The first bytes of a value that EncodingOf() looks at.
inline constexpr ValueRange kEncodingPart{0, 63};

// The encoding that Redis would choose for such a value, if it was just set.
std::string_view EncodingOf(const RecordView& record);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_ENCODING_H_
