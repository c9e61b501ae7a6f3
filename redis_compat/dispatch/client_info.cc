#include "redis_compat/dispatch/client_info.h"

#include <algorithm>

#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {
namespace {

void Field(std::string* out, std::string_view name, std::string_view value) {
  out->append(name).append("=").append(value).append(" ");
}
void Field(std::string* out, std::string_view name, uint64_t value) {
  Field(out, name, std::to_string(value));
}

std::string FlagsOf(const ClientSnapshot& client) {
  std::string flags;
  if (client.monitors) flags += 'O';
  if (client.queued_commands.has_value()) flags += 'x';
  if (client.paused) flags += 'b';
  if (client.closing) flags += 'c';
  if (client.unix_socket) flags += 'U';
  if (client.no_evict) flags += 'e';
  if (client.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

// Redis's reply buffer of fixed size takes the first replies, a list of blocks of that size what
// comes behind them.
void AppendOutputFields(uint64_t bytes, std::string* out) {
  constexpr uint64_t kBlock = OutputBuffer::kChunkBytes;
  const uint64_t in_buffer = std::min(bytes, kBlock);
  const uint64_t in_list = bytes - in_buffer;
  Field(out, "rbs", kBlock);
  Field(out, "rbp", in_buffer);
  Field(out, "obl", in_buffer);
  Field(out, "oll", (in_list + kBlock - 1) / kBlock);
  Field(out, "omem", in_list);
}

}  // namespace

void FillFromSession(const Session& session, uint64_t now_ns, ClientSnapshot* snapshot) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const auto seconds_since = [now_ns](uint64_t then_ns) {
    return now_ns > then_ns ? (now_ns - then_ns) / kNsPerSecond : 0;
  };
  snapshot->id = session.id;
  snapshot->name = session.name;
  snapshot->age_s = seconds_since(session.connected_at_ns);
  snapshot->idle_s = seconds_since(session.last_activity_ns);
  snapshot->no_evict = session.no_evict;
  snapshot->no_touch = session.no_touch;
  snapshot->monitors = session.monitors;
  snapshot->closing = session.close_after_reply;
  snapshot->database = session.database;
  snapshot->command = session.last_command != nullptr ? session.last_command->name : "NULL";
  if (session.transaction != nullptr && session.transaction->open) {
    snapshot->queued_commands = session.transaction->queue.size();
    snapshot->queued_bytes = session.transaction->queued_bytes;
  }
  snapshot->protocol = session.protocol;
  snapshot->library_name = session.library_name;
  snapshot->library_version = session.library_version;
}

void AppendClientLine(const ClientSnapshot& client, std::string* out) {
  Field(out, "id", client.id);
  Field(out, "addr", client.address);
  Field(out, "laddr", client.local_address);
  Field(out, "fd", std::to_string(client.fd));
  Field(out, "name", client.name);
  Field(out, "age", client.age_s);
  Field(out, "idle", client.idle_s);
  Field(out, "flags", FlagsOf(client));
  Field(out, "db", client.database);
  // There are no subscriptions yet.
  out->append("sub=0 psub=0 ssub=0 ");
  Field(out, "multi", client.queued_commands ? std::to_string(*client.queued_commands) : "-1");
  Field(out, "qbuf", client.query_buffer_bytes);
  Field(out, "qbuf-free", client.query_buffer_free_bytes);
  Field(out, "argv-mem", client.argument_bytes);
  Field(out, "multi-mem", client.queued_bytes);
  AppendOutputFields(client.output_bytes, out);
  Field(out, "tot-mem", client.total_bytes);
  Field(out, "events", client.wants_write ? "rw" : "r");
  Field(out, "cmd", client.command);
  out->append("user=default redir=-1 ");
  Field(out, "resp", client.protocol);
  Field(out, "lib-name", client.library_name);
  out->append("lib-ver=").append(client.library_version);
}

bool IsClientName(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

bool ClientFilter::Matches(const ClientSnapshot& client) const {
  if (!ids.empty() && std::find(ids.begin(), ids.end(), client.id) == ids.end()) return false;
  if (address.has_value() && *address != client.address) return false;
  if (local_address.has_value() && *local_address != client.local_address) return false;
  if (user.has_value() && *user != "default") return false;
  if (only_other_types || client.age_s < age_s_min) return false;
  return !excluded_id.has_value() || *excluded_id != client.id;
}

}  // namespace onetrip
