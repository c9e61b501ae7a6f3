// Which addresses a process without a secret may use. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_ADDRESS_H_
#define ONETRIP_CLIENT_CORE_BASE_ADDRESS_H_

#include <string_view>

namespace onetrip {

// True if `address`, "127.0.0.1:6379", "[::1]:6379" or the same without a port, lies on this host.
// Numeric addresses only: what a name means may change.
bool IsLoopbackAddress(std::string_view address);

// Without a secret only loopback addresses may be served or connected to.
constexpr bool MayTalk(bool has_secret, bool is_loopback) { return has_secret || is_loopback; }

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_ADDRESS_H_
