#include "client_core/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

namespace onetrip {
namespace {

// "[::1]:80" -> "::1", "127.0.0.1:80" -> "127.0.0.1"; a bare IPv6 address stays as it is.
std::string_view WithoutPort(std::string_view address) {
  if (address.starts_with('[')) {
    const size_t end = address.find(']');
    return end == std::string_view::npos ? std::string_view() : address.substr(1, end - 1);
  }
  const size_t colon = address.find(':');
  return colon == address.rfind(':') ? address.substr(0, colon) : address;
}

}  // namespace

bool IsLoopbackAddress(std::string_view address) {
  const std::string host(WithoutPort(address));
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

}  // namespace onetrip
