// Commands on places that are named: GEOADD, GEOPOS, GEODIST, GEOHASH.
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "redis_compat/commands/geo/geo_terms.h"
#include "redis_compat/commands/geo/handlers.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

// Reads the options in front of the places; returns where those begin.
size_t ReadAddOptions(std::span<const std::string_view> argv, AddOptions* options) {
  size_t i = 2;
  for (; i < argv.size(); ++i) {
    if (EqualsIgnoreCase(argv[i], "NX")) {
      options->if_new = true;
    } else if (EqualsIgnoreCase(argv[i], "XX")) {
      options->if_there = true;
    } else if (EqualsIgnoreCase(argv[i], "CH")) {
      options->count_changed = true;
    } else {
      break;
    }
  }
  return i;
}

// Answers for each member from argv[2] on: reply(out, place), or missing(out).
template <typename Reply, typename Missing>
Task<void> ReplyEach(CommandContext& context, Reply reply, Missing missing) {
  ScoresOf look(context.argv.subspan(2));
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (!has_looked) co_return;
  context.out.Array(look.scores().size());
  ReplyPace pace;
  for (const std::optional<double>& score : look.scores()) {
    score ? reply(context.out, PlaceOfScore(*score)) : missing(context.out);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

}  // namespace

Task<void> GeoAddCommand(CommandContext& context) {
  const auto argv = context.argv;
  AddOptions options;
  const size_t first = ReadAddOptions(argv, &options);
  ArgumentReader arguments(argv, first);
  const bool whole = first < argv.size() && (argv.size() - first) % 3 == 0;
  arguments.Require(whole && !(options.if_new && options.if_there), kSyntaxError);
  std::vector<ScoredMember> members;
  members.reserve((argv.size() - first) / 3);
  while (arguments.HasMore()) {
    Place place;
    TakePlace(arguments, &place);
    if (arguments.ok()) members.push_back({arguments.Take(), ScoreOfPlace(place)});
  }
  if (arguments.AnsweredError(context.out)) co_return;
  co_await AddMembers(context, options, members);
}

Task<void> GeoPosCommand(CommandContext& context) {
  return ReplyEach(context, ReplyPlace, [](ReplyWriter& out) { out.NullArray(); });
}

Task<void> GeoHashCommand(CommandContext& context) {
  return ReplyEach(
      context, [](ReplyWriter& out, const Place& place) { out.Bulk(GeohashText(place)); },
      [](ReplyWriter& out) { out.Null(); });
}

Task<void> GeoDistCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 4);
  const double meters = arguments.HasMore() && context.argv.size() == 5 ? TakeUnit(arguments) : 1;
  if (arguments.HasMore()) arguments.SyntaxError();
  if (arguments.AnsweredError(context.out)) co_return;
  ScoresOf look(context.argv.subspan(2, 2));
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (!has_looked) co_return;
  const std::optional<double> a = look.scores().front();
  const std::optional<double> b = look.scores().back();
  if (!a || !b) co_return context.out.Null();
  const double distance = MetersBetween(PlaceOfScore(*a), PlaceOfScore(*b));
  ReplyDistance(context.out, distance / meters);
}

}  // namespace onetrip
