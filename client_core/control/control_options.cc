#include "client_core/control/control_options.h"

#include <charconv>

#include "client_core/base/address.h"

namespace onetrip {
namespace {

// Splits "HOST:PORT" or "[HOST]:PORT".
bool SplitAddress(const std::string& address, std::string* host) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  uint32_t port = 0;
  const char* end = address.data() + address.size();
  const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0 || port > 65535) return false;
  *host = address.substr(0, colon);
  return true;
}

}  // namespace

Status CheckControlOptions(const ControlOptions& options, std::string* reason) {
  std::string host;
  if (!SplitAddress(options.master, &host)) {
    *reason = "the master's address must be HOST:PORT, not '" + options.master + "'";
    return Status(StatusCode::kInvalidArgument, "no address");
  }
  if (!MayTalk(!options.secret.empty(), host == "localhost" || IsLoopbackAddress(options.master))) {
    *reason = "the master at " + options.master +
              " is not on this host's loopback: give both the same --secret-file";
    return Status(StatusCode::kInvalidArgument, "a secret is needed");
  }
  return Status::Ok();
}

}  // namespace onetrip
