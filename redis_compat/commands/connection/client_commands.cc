// The CLIENT family.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "redis_compat/commands/connection/handlers.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

// The types a filter may name. All our connections are normal ones.
enum class ClientType : uint8_t { kNormal, kOther, kUnknown };

ClientType ReadClientType(std::string_view name) {
  if (EqualsIgnoreCase(name, "normal")) {
    return ClientType::kNormal;
  }
  for (const std::string_view other : {"slave", "replica", "pubsub", "master"}) {
    if (EqualsIgnoreCase(name, other)) return ClientType::kOther;
  }
  return ClientType::kUnknown;
}

// Reads "TYPE name" into the filter; answers and returns false if there is no such type.
bool ApplyClientType(CommandContext& context, std::string_view name, ClientFilter* filter) {
  const ClientType type = ReadClientType(name);
  if (type == ClientType::kUnknown) {
    context.out.Error("ERR Unknown client type '" + std::string(name) + "'");
    return false;
  }
  filter->only_other_types = type == ClientType::kOther;
  return true;
}

std::string ListText(std::vector<ClientSnapshot> clients, const ClientFilter& filter) {
  std::sort(clients.begin(), clients.end(),
            [](const ClientSnapshot& a, const ClientSnapshot& b) { return a.id < b.id; });
  std::string text;
  const auto append = [&text](const ClientSnapshot& client) {
    AppendClientLine(client, &text);
    text += '\n';
  };
  if (filter.ids.empty()) {
    for (const ClientSnapshot& client : clients) {
      if (filter.Matches(client)) append(client);
    }
    return text;
  }
  // In the order asked for, as often as asked for.
  for (const uint64_t id : filter.ids) {
    for (const ClientSnapshot& client : clients) {
      if (client.id == id) append(client);
    }
  }
  return text;
}

// Reads CLIENT LIST's arguments; answers and returns false if they make no sense.
bool ReadListFilter(CommandContext& context, ClientFilter* filter) {
  const auto argv = context.argv;
  if (argv.size() == 2) {
    return true;
  }
  if (argv.size() == 4 && EqualsIgnoreCase(argv[2], "TYPE")) {
    return ApplyClientType(context, argv[3], filter);
  }
  if (argv.size() > 3 && EqualsIgnoreCase(argv[2], "ID")) {
    for (const std::string_view text : argv.subspan(3)) {
      const auto id = ParseInt64(text);
      if (!id) {
        context.out.Error("ERR Invalid client ID");
        return false;
      }
      filter->ids.push_back(static_cast<uint64_t>(*id));
    }
    return true;
  }
  context.out.Error(kSyntaxError);
  return false;
}

// Reads one "OPTION value" of CLIENT KILL; answers and returns false if it makes no sense.
bool ReadKillOption(CommandContext& context, std::string_view option, std::string_view value,
                    ClientFilter* filter, bool* skip_me) {
  if (EqualsIgnoreCase(option, "ID")) {
    const auto id = ParseInt64(value);
    if (!id || *id < 1) {
      context.out.Error("ERR client-id should be greater than 0");
      return false;
    }
    filter->ids.assign(1, static_cast<uint64_t>(*id));
    return true;
  }
  if (EqualsIgnoreCase(option, "TYPE")) {
    return ApplyClientType(context, value, filter);
  }
  if (EqualsIgnoreCase(option, "ADDR")) {
    filter->address = value;
    return true;
  }
  if (EqualsIgnoreCase(option, "LADDR")) {
    filter->local_address = value;
    return true;
  }
  if (EqualsIgnoreCase(option, "USER")) {
    if (value != "default") {
      context.out.Error("ERR No such user '" + std::string(value) + "'");
      return false;
    }
    filter->user = value;
    return true;
  }
  if (EqualsIgnoreCase(option, "MAXAGE")) {
    const auto age_s = ParseInt64(value);
    if (!age_s || *age_s < 1) {
      context.out.Error("ERR maxage is not an integer or out of range");
      return false;
    }
    filter->age_s_min = static_cast<uint64_t>(*age_s);
    return true;
  }
  const bool yes = EqualsIgnoreCase(value, "yes");
  if (EqualsIgnoreCase(option, "SKIPME") && (yes || EqualsIgnoreCase(value, "no"))) {
    *skip_me = yes;
    return true;
  }
  context.out.Error(kSyntaxError);
  return false;
}

}  // namespace

void ClientIdCommand(CommandContext& context) {
  context.out.Integer(static_cast<int64_t>(context.session.id));
}

void ClientGetNameCommand(CommandContext& context) {
  const std::string& name = context.session.name;
  name.empty() ? context.out.Null() : context.out.Bulk(name);
}

void ClientSetNameCommand(CommandContext& context) {
  if (!IsClientName(context.argv[2])) {
    return context.out.Error(kClientNameError);
  }
  context.session.name = context.argv[2];
  context.out.Ok();
}

void ClientSetInfoCommand(CommandContext& context) {
  const std::string_view option = context.argv[2];
  const std::string_view value = context.argv[3];
  const bool is_name = EqualsIgnoreCase(option, "lib-name");
  if (!is_name && !EqualsIgnoreCase(option, "lib-ver")) {
    return context.out.Error("ERR Unrecognized option '" + std::string(option) + "'");
  }
  if (!IsClientName(value)) {
    return context.out.Error("ERR " + std::string(option) +
                             " cannot contain spaces, newlines or special characters.");
  }
  (is_name ? context.session.library_name : context.session.library_version) = value;
  context.out.Ok();
}

void ClientInfoCommand(CommandContext& context) {
  ClientSnapshot snapshot;
  context.hooks.DescribeClient(context.session, &snapshot);
  std::string line;
  AppendClientLine(snapshot, &line);
  context.out.Verbatim(line + "\n", "txt");
}

void ClientReplyCommand(CommandContext& context) {
  Session& session = context.session;
  const std::string_view mode = context.argv[2];
  if (EqualsIgnoreCase(mode, "ON")) {
    session.reply_mode = ReplyMode::kOn;
    if (context.dropped_from != nullptr) {
      context.out.Redirect(std::exchange(context.dropped_from, nullptr));
    }
    return context.out.Ok();
  }
  if (EqualsIgnoreCase(mode, "OFF")) {
    session.reply_mode = ReplyMode::kOff;
    // Inside EXEC others answer behind it.
    if (context.dropped_from == nullptr) DropReplies(context);
    return;
  }
  if (EqualsIgnoreCase(mode, "SKIP")) {
    if (session.reply_mode != ReplyMode::kOff) {
      session.reply_mode = ReplyMode::kSkipNext;
    }
    return;
  }
  context.out.Error(kSyntaxError);
}

void ClientNoEvictCommand(CommandContext& context) {
  const bool on = EqualsIgnoreCase(context.argv[2], "on");
  if (!on && !EqualsIgnoreCase(context.argv[2], "off")) {
    return context.out.Error(kSyntaxError);
  }
  context.session.no_evict = on;
  context.out.Ok();
}

Task<void> ClientListCommand(CommandContext& context) {
  ClientFilter filter;
  if (!ReadListFilter(context, &filter)) {
    co_return;
  }
  std::vector<ClientSnapshot> clients;
  co_await context.hooks.ListClients(&clients);
  context.out.Verbatim(ListText(std::move(clients), filter), "txt");
}

Task<void> ClientKillCommand(CommandContext& context) {
  const auto argv = context.argv;
  const bool by_address = argv.size() == 3;
  ClientFilter filter;
  bool skip_me = !by_address;
  if (by_address) {
    filter.address = argv[2];
  } else {
    for (size_t i = 2; i < argv.size(); i += 2) {
      if (i + 1 == argv.size()) {
        context.out.Error(kSyntaxError);
        co_return;
      }
      if (!ReadKillOption(context, argv[i], argv[i + 1], &filter, &skip_me)) {
        co_return;
      }
    }
  }
  const uint64_t self = context.session.id;
  if (skip_me) {
    filter.excluded_id = self;
  }
  ClientSnapshot own;
  context.hooks.DescribeClient(context.session, &own);
  const bool kills_self = filter.Matches(own);
  const uint64_t killed = co_await context.hooks.KillClients(filter, self);
  // Its own reply still goes out.
  context.session.close_after_reply |= kills_self;
  if (!by_address) {
    context.out.Integer(static_cast<int64_t>(killed));
  } else if (killed > 0) {
    context.out.Ok();
  } else {
    context.out.Error("ERR No such client");
  }
}

}  // namespace onetrip
