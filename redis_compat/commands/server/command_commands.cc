// The COMMAND family: the command table, told to clients.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "redis_compat/commands/server/command_syntax.h"
#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/values/glob.h"

namespace onetrip {
namespace {

// Names of the bits, lowest first.
constexpr std::array<std::string_view, 15> kFlagNames = {
    "write",    "readonly",         "denyoom",  "admin",        "noscript",
    "blocking", "loading",          "stale",    "skip_slowlog", "fast",
    "no_auth",  "no_async_loading", "no_multi", "movablekeys",  "allow_busy"};
constexpr std::array<std::string_view, 20> kCategoryNames = {
    "@keyspace", "@read",     "@write",       "@set",        "@sortedset",   "@list",     "@hash",
    "@string",   "@bitmap",   "@hyperloglog", "@geo",        "@stream",      "@admin",    "@fast",
    "@slow",     "@blocking", "@dangerous",   "@connection", "@transaction", "@scripting"};
// All that Redis has; of some no command is here.
constexpr std::array<std::string_view, 21> kAclCategories = {
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};
constexpr std::array<std::string_view, 9> kKeyFlagNames = {
    "RW", "RO", "OW", "RM", "access", "update", "insert", "delete", "variable_flags"};
constexpr std::array<std::string_view, 13> kTipNames = {
    "nondeterministic_output",       "nondeterministic_output_order",
    "request_policy:all_shards",     "request_policy:all_nodes",
    "request_policy:multi_shard",    "response_policy:all_succeeded",
    "response_policy:one_succeeded", "response_policy:agg_sum",
    "response_policy:special",       "response_policy:agg_min",
    "request_policy:special",        "nondeterministic_output",
    "nondeterministic_output_order"};

// The names of the bits that are set, as a set of simple strings (tips: of bulk strings).
void ReplyBits(ReplyWriter& out, uint32_t bits, std::span<const std::string_view> names,
               bool bulk = false) {
  size_t count = 0;
  for (size_t bit = 0; bit < names.size(); ++bit) {
    count += (bits >> bit) & 1;
  }
  out.Set(count);
  for (size_t bit = 0; bit < names.size(); ++bit) {
    if (((bits >> bit) & 1) != 0) {
      bulk ? out.Bulk(names[bit]) : out.Simple(names[bit]);
    }
  }
}

void ReplyKeySpecificationHead(ReplyWriter& out, std::string_view notes, uint32_t flags) {
  out.Map(notes.empty() ? 3 : 4);
  if (!notes.empty()) {
    out.Bulk("notes");
    out.Bulk(notes);
  }
  out.Bulk("flags");
  ReplyBits(out, flags, kKeyFlagNames);
}

// The same without a place, where the index of a key is no rule.
void ReplyUnknownKeySpecification(ReplyWriter& out, std::string_view notes, uint32_t flags) {
  ReplyKeySpecificationHead(out, notes, flags);
  for (const std::string_view part : {"begin_search", "find_keys"}) {
    out.Bulk(part);
    out.Map(2);
    out.Bulk("type");
    out.Bulk("unknown");
    out.Bulk("spec");
    out.Map(0);
  }
}

// `keyword`: they stand behind that word, if it is there.
void ReplyKeySpecification(ReplyWriter& out, const CommandKeys& keys,
                           std::string_view keyword = {}) {
  if (keys.find != nullptr) return ReplyUnknownKeySpecification(out, keys.notes, keys.flags);
  ReplyKeySpecificationHead(out, keys.notes, keys.flags);
  out.Bulk("begin_search");
  out.Map(2);
  out.Bulk("type");
  out.Bulk(keyword.empty() ? "index" : "keyword");
  out.Bulk("spec");
  out.Map(keyword.empty() ? 1 : 2);
  if (!keyword.empty()) {
    out.Bulk("keyword");
    out.Bulk(keyword);
  }
  out.Bulk(keyword.empty() ? "index" : "startfrom");
  out.Integer(keys.is_counted ? keys.first - 1 : keys.first);
  out.Bulk("find_keys");
  out.Map(2);
  out.Bulk("type");
  if (keys.is_counted) {
    out.Bulk("keynum");
    out.Bulk("spec");
    out.Map(3);
    out.Bulk("keynumidx");
    out.Integer(0);
    out.Bulk("firstkey");
    out.Integer(1);
    out.Bulk("keystep");
    out.Integer(keys.step);
    return;
  }
  out.Bulk("range");
  out.Bulk("spec");
  out.Map(3);
  out.Bulk("lastkey");
  // Counted from the first key, unless from the end.
  out.Integer(keys.last >= 0 ? keys.last - keys.first : keys.last);
  out.Bulk("keystep");
  out.Integer(keys.step);
  out.Bulk("limit");
  // The part of what is there that is keys.
  constexpr int64_t kHalf = 2;
  out.Integer(keys.is_streams ? kHalf : 0);
}

// One element of COMMAND INFO. A container shows its subcommands, which have none themselves.
void ReplyInfo(ReplyWriter& out, const CommandRow& row) {
  out.Array(10);
  out.Bulk(row.name);
  out.Integer(row.arity);
  ReplyBits(out, row.flags, kFlagNames);
  const bool has_more = row.more_keys.first != 0;
  // Clients that know no other places than fixed ones are not told of counted keys.
  const bool is_option = row.more_keys.is_option;
  const bool is_found = is_option || row.more_keys.find != nullptr;
  const bool extends = has_more && !row.more_keys.is_counted && !is_found;
  const bool is_fixed = !row.keys.is_counted && !row.keys.is_streams;
  const CommandKeys fixed = is_fixed ? row.keys : CommandKeys();
  out.Integer(fixed.first);
  out.Integer(extends ? row.more_keys.last : fixed.last);
  out.Integer(fixed.step);
  ReplyBits(out, row.categories, kCategoryNames);
  ReplyBits(out, row.tips, kTipNames, /*bulk=*/true);
  if (row.keys.first == 0) {
    out.Set(0);
  } else {
    const bool has_unnamed = !row.unnamed_keys.empty();
    out.Set(1 + (has_unnamed ? 1 : 0) + (has_more ? 1 : 0) + (is_option ? 1 : 0));
    ReplyKeySpecification(out, row.keys, row.keys.is_streams ? "STREAMS" : "");
    if (has_unnamed) ReplyUnknownKeySpecification(out, row.unnamed_keys, kKeyRo | kKeyAccess);
    if (has_more) ReplyKeySpecification(out, row.more_keys, is_option ? "STORE" : "");
    if (is_option) ReplyKeySpecification(out, row.more_keys, "STOREDIST");
  }
  const auto subcommands = SubcommandsOf(row);
  subcommands.empty() ? out.Set(0) : out.Array(subcommands.size());
  for (const CommandRow& subcommand : subcommands) {
    ReplyInfo(out, subcommand);
  }
}

std::string_view GroupName(CommandGroup group) {
  switch (group) {
    case CommandGroup::kConnection:
      return "connection";
    case CommandGroup::kServer:
      return "server";
    case CommandGroup::kGeneric:
      return "generic";
    case CommandGroup::kString:
      return "string";
    case CommandGroup::kBitmap:
      return "bitmap";
    case CommandGroup::kHyperLogLog:
      return "hyperloglog";
    case CommandGroup::kList:
      return "list";
    case CommandGroup::kSet:
      return "set";
    case CommandGroup::kSortedSet:
      return "sorted-set";
    case CommandGroup::kHash:
      return "hash";
    case CommandGroup::kGeo:
      return "geo";
    case CommandGroup::kStream:
      return "stream";
    case CommandGroup::kTransactions:
      return "transactions";
    case CommandGroup::kScripting:
      return "scripting";
    case CommandGroup::kCluster:
      return "cluster";
  }
  return "generic";
}

std::string_view ArgumentTypeName(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kValue:
      return ValueTypeOf(argument.name);
    case Argument::Kind::kToken:
      return "pure-token";
    case Argument::Kind::kBlock:
      return "block";
    case Argument::Kind::kOneOf:
      return "oneof";
  }
  return "string";
}

void ReplyArguments(ReplyWriter& out, const std::vector<Argument>& arguments) {
  out.Array(arguments.size());
  for (const Argument& argument : arguments) {
    const std::string_view type = ArgumentTypeName(argument);
    const bool is_key = type == "key";
    const size_t flags = (argument.optional ? 1 : 0) + (argument.multiple ? 1 : 0);
    out.Map(2 + (is_key ? 1 : 0) + (argument.token.empty() ? 0 : 1) + (flags > 0 ? 1 : 0) +
            (argument.parts.empty() ? 0 : 1));
    out.Bulk("name");
    out.Bulk(argument.name);
    out.Bulk("type");
    out.Bulk(type);
    if (is_key) {
      out.Bulk("key_spec_index");
      out.Integer(0);
    }
    if (!argument.token.empty()) {
      out.Bulk("token");
      out.Bulk(argument.token);
    }
    if (flags > 0) {
      out.Bulk("flags");
      out.Set(flags);
      if (argument.optional) out.Simple("optional");
      if (argument.multiple) out.Simple("multiple");
    }
    if (!argument.parts.empty()) {
      out.Bulk("arguments");
      ReplyArguments(out, argument.parts);
    }
  }
}

// One pair of COMMAND DOCS.
void ReplyDocs(ReplyWriter& out, const CommandRow& row) {
  const auto subcommands = SubcommandsOf(row);
  out.Bulk(row.name);
  out.Map(4 + (row.syntax.empty() ? 0 : 1) + (subcommands.empty() ? 0 : 1));
  out.Bulk("summary");
  out.Bulk(row.summary);
  out.Bulk("since");
  out.Bulk(row.since);
  out.Bulk("group");
  out.Bulk(GroupName(row.group));
  out.Bulk("complexity");
  out.Bulk(row.complexity);
  if (!row.syntax.empty()) {
    out.Bulk("arguments");
    ReplyArguments(out, ParseSyntax(row.syntax));
  }
  if (subcommands.empty()) {
    return;
  }
  out.Bulk("subcommands");
  out.Map(subcommands.size());
  for (const CommandRow& subcommand : subcommands) {
    ReplyDocs(out, subcommand);
  }
}

// By a name that may be "container|subcommand"; null if there is none.
const CommandRow* FindByFullName(std::string_view name) {
  const size_t bar = name.find('|');
  const CommandRow* const row = FindCommand(name.substr(0, bar));
  if (row == nullptr || bar == std::string_view::npos) {
    return row;
  }
  return FindSubcommand(*row, name.substr(bar + 1));
}

// Calls visit(row) for every command that is no subcommand.
template <typename Visit>
void ForEachTopLevel(Visit visit) {
  for (const CommandRow& row : AllCommands()) {
    if (!row.is_subcommand()) visit(row);
  }
}

// The row of the call that begins at argv[2], if it is a sound one that names keys; answers and
// returns null if not.
const CommandRow* FindCallWithKeys(CommandContext& context) {
  const auto call = context.argv.subspan(2);
  const CommandRow* row = FindCommand(call[0]);
  if (row != nullptr && row->is_container() && call.size() > 1) {
    row = FindSubcommand(*row, call[1]);
  }
  if (row == nullptr) {
    context.out.Error("ERR Invalid command specified");
    return nullptr;
  }
  if (row->keys.first == 0) {
    context.out.Error("ERR The command has no key arguments");
    return nullptr;
  }
  if (!row->AcceptsArgumentCount(call.size())) {
    context.out.Error("ERR Invalid number of arguments specified for command");
    return nullptr;
  }
  // PFMERGE without a source, and counts that are no such.
  const auto names_none = [&call](const CommandKeys& keys) {
    if (keys.find != nullptr || keys.is_option) return false;
    if (keys.is_streams) return FindStreamKeys(call).end == 0;
    return static_cast<size_t>(keys.first) >= call.size() ||
           (keys.is_counted && LastKey(keys, call) == 0);
  };
  if (names_none(row->keys) || names_none(row->more_keys)) {
    context.out.Error("ERR Invalid arguments specified for command");
    return nullptr;
  }
  return row;
}

// BITFIELD's flags: it only reads if every step of it is a sound GET.
uint32_t KeyFlagsOfBitField(std::span<const std::string_view> call) {
  for (size_t i = 2; i < call.size();) {
    const size_t left = call.size() - i - 1;
    if (EqualsIgnoreCase(call[i], "get") && left >= 2) {
      i += 3;
    } else if (EqualsIgnoreCase(call[i], "overflow") && left >= 1) {
      i += 2;
    } else {
      return kKeyRw | kKeyAccess | kKeyUpdate;
    }
  }
  return kKeyRo | kKeyAccess;
}

// Tells how this call uses the key at `position`: SET's flags depend on its options.
uint32_t KeyFlagsOfCall(const CommandRow& row, std::span<const std::string_view> call,
                        size_t position) {
  if (row.more_keys.first != 0 && position >= static_cast<size_t>(row.more_keys.first)) {
    return row.more_keys.flags;
  }
  if ((row.keys.flags & kKeyVariable) == 0) {
    return row.keys.flags;
  }
  if (row.group == CommandGroup::kBitmap) {
    return KeyFlagsOfBitField(call);
  }
  for (const std::string_view option : call.subspan(3)) {
    if (EqualsIgnoreCase(option, "get")) return kKeyRw | kKeyAccess | kKeyUpdate;
  }
  return kKeyOw | kKeyUpdate;
}

std::vector<size_t> KeyPositions(const CommandRow& row, std::span<const std::string_view> call) {
  std::vector<size_t> positions;
  ForEachKey(row, call, [&positions](size_t index) { positions.push_back(index); });
  return positions;
}

bool HasCategory(const CommandRow& row, std::string_view name) {
  for (size_t bit = 0; bit < kCategoryNames.size(); ++bit) {
    if (((row.categories >> bit) & 1) != 0 &&
        EqualsIgnoreCase(name, kCategoryNames[bit].substr(1))) {
      return true;
    }
  }
  return false;
}

void ReplyNames(ReplyWriter& out, const std::vector<std::string_view>& names) {
  out.Array(names.size());
  for (const std::string_view name : names) {
    out.Bulk(name);
  }
}

}  // namespace

void AclWhoAmICommand(CommandContext& context) { context.out.Bulk("default"); }

void AclUsersCommand(CommandContext& context) { ReplyNames(context.out, {"default"}); }

void AclCatCommand(CommandContext& context) {
  if (context.argv.size() > 3) {
    return ReplySubcommandSyntaxError(context);
  }
  if (context.argv.size() == 2) {
    context.out.Array(kAclCategories.size());
    for (const std::string_view name : kAclCategories) context.out.Bulk(name);
    return;
  }
  const std::string_view category = context.argv[2];
  const bool known =
      std::any_of(kAclCategories.begin(), kAclCategories.end(),
                  [category](std::string_view name) { return EqualsIgnoreCase(name, category); });
  if (!known) {
    return context.out.Error("ERR Unknown category '" + std::string(UntilNul(category)) + "'");
  }
  std::vector<std::string_view> names;
  for (const CommandRow& row : AllCommands()) {
    if (HasCategory(row, category)) names.push_back(row.name);
  }
  ReplyNames(context.out, names);
}

void CommandCommand(CommandContext& context) {
  context.out.Array(TopLevelCommandCount());
  ForEachTopLevel([&context](const CommandRow& row) { ReplyInfo(context.out, row); });
}

void CommandCountCommand(CommandContext& context) {
  context.out.Integer(static_cast<int64_t>(TopLevelCommandCount()));
}

void CommandInfoCommand(CommandContext& context) {
  const auto names = context.argv.subspan(2);
  if (names.empty()) {
    return CommandCommand(context);
  }
  context.out.Array(names.size());
  for (const std::string_view name : names) {
    const CommandRow* const row = FindByFullName(name);
    row != nullptr ? ReplyInfo(context.out, *row) : context.out.Null();
  }
}

void CommandListCommand(CommandContext& context) {
  const auto argv = context.argv;
  std::vector<std::string_view> names;
  if (argv.size() == 2) {
    for (const CommandRow& row : AllCommands()) names.push_back(row.name);
    return ReplyNames(context.out, names);
  }
  if (argv.size() != 5 || !EqualsIgnoreCase(argv[2], "FILTERBY")) {
    return context.out.Error(kSyntaxError);
  }
  const std::string_view value = argv[4];
  const bool by_category = EqualsIgnoreCase(argv[3], "ACLCAT");
  const bool by_pattern = EqualsIgnoreCase(argv[3], "PATTERN");
  if (!by_category && !by_pattern && !EqualsIgnoreCase(argv[3], "MODULE")) {
    return context.out.Error(kSyntaxError);
  }
  for (const CommandRow& row : AllCommands()) {
    if ((by_category && HasCategory(row, value)) ||
        (by_pattern && GlobMatch(value, row.name, GlobCase::kIgnore))) {
      names.push_back(row.name);
    }
  }
  ReplyNames(context.out, names);
}

void CommandDocsCommand(CommandContext& context) {
  const auto names = context.argv.subspan(2);
  if (names.empty()) {
    context.out.Map(TopLevelCommandCount());
    return ForEachTopLevel([&context](const CommandRow& row) { ReplyDocs(context.out, row); });
  }
  std::vector<const CommandRow*> rows;
  for (const std::string_view name : names) {
    const CommandRow* const row = FindByFullName(name);
    if (row != nullptr) rows.push_back(row);
  }
  context.out.Map(rows.size());
  for (const CommandRow* const row : rows) {
    ReplyDocs(context.out, *row);
  }
}

void CommandGetKeysCommand(CommandContext& context) {
  const CommandRow* const row = FindCallWithKeys(context);
  if (row == nullptr) {
    return;
  }
  const auto call = context.argv.subspan(2);
  const std::vector<size_t> positions = KeyPositions(*row, call);
  context.out.Array(positions.size());
  for (const size_t position : positions) {
    context.out.Bulk(call[position]);
  }
}

void CommandGetKeysAndFlagsCommand(CommandContext& context) {
  const CommandRow* const row = FindCallWithKeys(context);
  if (row == nullptr) {
    return;
  }
  const auto call = context.argv.subspan(2);
  const std::vector<size_t> positions = KeyPositions(*row, call);
  context.out.Array(positions.size());
  for (const size_t position : positions) {
    context.out.Array(2);
    context.out.Bulk(call[position]);
    ReplyBits(context.out, KeyFlagsOfCall(*row, call, position), kKeyFlagNames);
  }
}

}  // namespace onetrip
