// The CLIENT family.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "redis_compat/commands/connection/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/ascii.h"
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

// Reads the name behind TYPE into the filter.
void ReadType(ArgumentReader& arguments, std::string_view name, ClientFilter* filter) {
  const ClientType type = ReadClientType(name);
  if (type == ClientType::kUnknown) {
    arguments.Fail("ERR Unknown client type '" + std::string(UntilNul(name)) + "'");
  }
  filter->only_other_types = type == ClientType::kOther;
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

void ReadListFilter(ArgumentReader& arguments, ClientFilter* filter) {
  if (arguments.Word("ID", 1)) {
    constexpr IntegerRange kId{.not_integer = "ERR Invalid client ID"};
    while (arguments.HasMore()) {
      filter->ids.push_back(static_cast<uint64_t>(arguments.TakeInteger(kId)));
    }
    return;
  }
  std::string_view type;
  const bool by_type = arguments.Value("TYPE", &type);
  if (arguments.HasMore()) return arguments.SyntaxError();
  if (by_type) ReadType(arguments, type, filter);
}

struct KillOptions {
  ClientFilter filter;
  bool skip_me = true;
};

// Reads one option of CLIENT KILL with its value.
void ReadKillOption(ArgumentReader& arguments, KillOptions* options) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  static constexpr IntegerRange kId =
      RangeWithError(1, kMax, "ERR client-id should be greater than 0");
  static constexpr IntegerRange kAge =
      RangeWithError(1, kMax, "ERR maxage is not an integer or out of range");
  ClientFilter& filter = options->filter;
  std::string_view text;
  int64_t number = 0;
  if (arguments.Integer("ID", &number, kId)) {
    filter.ids.assign(1, static_cast<uint64_t>(number));
  } else if (arguments.Value("TYPE", &text)) {
    ReadType(arguments, text, &filter);
  } else if (arguments.Value("ADDR", &text)) {
    filter.address = text;
  } else if (arguments.Value("LADDR", &text)) {
    filter.local_address = text;
  } else if (arguments.Value("USER", &text)) {
    if (text != "default") arguments.Fail("ERR No such user '" + std::string(UntilNul(text)) + "'");
    filter.user = text;
  } else if (arguments.Integer("MAXAGE", &number, kAge)) {
    filter.age_s_min = static_cast<uint64_t>(number);
  } else if (arguments.Word("SKIPME", 1)) {
    options->skip_me = arguments.TakeOneOf({"no", "yes"}) == 1;
  } else {
    arguments.SyntaxError();
  }
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
  ArgumentReader arguments(context.argv, 2);
  const bool on = arguments.TakeOneOf({"off", "on"}) == 1;
  if (arguments.AnsweredError(context.out)) return;
  context.session.no_evict = on;
  context.out.Ok();
}

Task<void> ClientListCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  ClientFilter filter;
  ReadListFilter(arguments, &filter);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  std::vector<ClientSnapshot> clients;
  co_await context.hooks.ListClients(&clients);
  context.out.Verbatim(ListText(std::move(clients), filter), "txt");
}

Task<void> ClientKillCommand(CommandContext& context) {
  const auto argv = context.argv;
  const bool by_address = argv.size() == 3;
  KillOptions options;
  ClientFilter& filter = options.filter;
  ArgumentReader arguments(argv, 2);
  if (by_address) {
    filter.address = arguments.Take();
    options.skip_me = false;
  }
  while (arguments.HasMore()) ReadKillOption(arguments, &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const uint64_t self = context.session.id;
  if (options.skip_me) {
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
