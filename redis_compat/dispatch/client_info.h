// ClientSnapshot: a connection as CLIENT LIST, CLIENT INFO and CLIENT KILL see it.
//
// The frontend fills it (it knows sockets and buffers); this folder turns it into Redis's text and
// decides which connections a filter selects. Plain values, so that it may cross threads.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_CLIENT_INFO_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_CLIENT_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/session.h"

namespace onetrip {

struct ClientSnapshot {
  uint64_t id = 0;
  std::string address;        // "127.0.0.1:5000", or "/path/to.sock:0" for a unix socket.
  std::string local_address;  // The same of our end.
  int fd = -1;
  std::string name;
  uint64_t age_s = 0;
  uint64_t idle_s = 0;
  bool unix_socket = false;
  bool no_evict = false;
  bool no_touch = false;
  bool monitors = false;
  bool paused = false;                      // Waits for the end of CLIENT PAUSE.
  bool closing = false;                     // close_after_reply is set.
  std::optional<uint64_t> queued_commands;  // Only in an open transaction.
  uint64_t queued_bytes = 0;
  uint32_t database = 0;
  uint64_t query_buffer_bytes = 0;       // Received, not yet consumed.
  uint64_t query_buffer_free_bytes = 0;  // Room left behind them.
  uint64_t argument_bytes = 0;           // Arguments of the running command.
  uint64_t output_bytes = 0;             // Replies not yet sent.
  uint64_t total_bytes = 0;              // Memory this connection holds.
  bool wants_write = false;              // Waits for the socket to become writable.
  std::string command;                   // "client|list", or "NULL" before the first.
  uint8_t protocol = 2;
  std::string library_name;
  std::string library_version;
};

// Copies what the session knows; `now_ns` (steady clock) gives age and idle time. Everything that
// only the connection knows stays as it is.
void FillFromSession(const Session& session, uint64_t now_ns, ClientSnapshot* snapshot);

// Appends one line of CLIENT LIST, without the newline.
void AppendClientLine(const ClientSnapshot& client, std::string* out);

// True if `text` may name a connection or a library: it must fit into one field of one line.
bool IsClientName(std::string_view text);
inline constexpr char kClientNameError[] =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// Which connections CLIENT LIST shows or CLIENT KILL ends; every given condition must hold.
struct ClientFilter {
  std::vector<uint64_t> ids;  // Empty: any.
  std::optional<std::string> address;
  std::optional<std::string> local_address;
  std::optional<std::string> user;      // There is one user, "default".
  bool only_other_types = false;        // TYPE master, replica or pubsub: no client is.
  std::optional<uint64_t> excluded_id;  // SKIPME yes: the caller.
  uint64_t age_s_min = 0;               // MAXAGE.

  [[nodiscard]] bool Matches(const ClientSnapshot& client) const;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_CLIENT_INFO_H_
