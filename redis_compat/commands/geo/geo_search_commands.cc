// Commands that look for places in an area: GEOSEARCH, GEORADIUS and their relatives.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/commands/geo/geo_terms.h"
#include "redis_compat/commands/geo/handlers.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

constexpr char kNoSuchMemberError[] = "ERR could not decode requested zset member";

// The arguments in front of the options.
enum class Front : uint8_t { kByPlace, kByMember, kSearch };

struct SearchCall {
  Front form = Front::kSearch;
  bool stores = false;     // argv[1] is the target, argv[2] the source
  bool may_store = false;  // options may name a target

  [[nodiscard]] size_t source() const { return stores ? 2 : 1; }
};

enum class Order : uint8_t { kAny, kNearestFirst, kFarthestFirst };

struct SearchOptions {
  SearchArea area;
  std::optional<std::string_view> center;  // the member that is there
  bool has_place = false;
  bool has_circle = false;
  bool with_distance = false;
  bool with_score = false;
  bool with_place = false;
  Order order = Order::kAny;
  int64_t count = 0;             // 0: all
  bool any = false;              // those found first
  std::optional<size_t> target;  // its position in argv
  bool stores_distances = false;
};

struct FoundPlace {
  std::string_view member;
  Place place;
  double score = 0;
  double distance_m = 0;
};

// Sets the center to the place of a member. False: there is no such member.
bool CenterOn(std::string_view member, std::string_view value, SearchArea* area) {
  PackedMap members(value, /*has_values=*/true);
  std::string_view score;
  if (!members.Find(member, &score)) return false;
  area->center = PlaceOfScore(LoadScore(score));
  return true;
}

// Reads arguments by the source that was found; nothing: there is none, and its members are not
// asked for.
class SearchReader {
 public:
  SearchReader(CommandContext& context, const SearchCall& call,
               std::optional<std::string_view> source, SearchOptions* options)
      : context_(context),
        call_(call),
        source_(source),
        options_(*options),
        arguments_(context.argv, call.source() + 1) {}

  // False: it has answered.
  bool Read() {
    ReadFront();
    while (arguments_.HasMore()) {
      if (!ReadAnswerOption() && !ReadTarget() && !ReadArea()) arguments_.SyntaxError();
    }
    CheckOptions();
    return !arguments_.AnsweredError(context_.out);
  }

 private:
  void TakeMember() {
    options_.center = arguments_.Take();
    if (!source_ || !arguments_.ok()) return;
    arguments_.Require(CenterOn(*options_.center, *source_, &options_.area), kNoSuchMemberError);
  }
  double TakeSize(const char* error) { return ReadDouble(arguments_, arguments_.Take(), error); }
  void TakeRadius() {
    SearchArea& area = options_.area;
    area.radius = TakeSize("ERR need numeric radius");
    arguments_.Require(area.radius >= 0, "ERR radius cannot be negative");
    area.meters = TakeUnit(arguments_);
    area.is_box = false;
    options_.has_circle = true;
  }
  void TakeBox() {
    SearchArea& area = options_.area;
    area.width = TakeSize("ERR need numeric width");
    area.height = TakeSize("ERR need numeric height");
    arguments_.Require(area.width >= 0 && area.height >= 0,
                       "ERR height or width cannot be negative");
    area.meters = TakeUnit(arguments_);
    area.is_box = true;
  }

  void ReadFront() {
    if (call_.form == Front::kByPlace) {
      TakePlace(arguments_, &options_.area.center);
      TakeRadius();
    } else if (call_.form == Front::kByMember && source_) {
      TakeMember();
      TakeRadius();
    } else if (call_.form == Front::kByMember) {
      for (int i = 0; i < 3; ++i) arguments_.Take();
    }
  }

  bool ReadAnswerOption() {
    if (arguments_.Word("ASC")) {
      options_.order = Order::kNearestFirst;
    } else if (arguments_.Word("DESC")) {
      options_.order = Order::kFarthestFirst;
    } else if (arguments_.Word("COUNT", 1)) {
      options_.count = arguments_.TakeInteger();
      arguments_.Require(options_.count > 0, "ERR COUNT must be > 0");
    } else {
      return arguments_.Flag("WITHDIST", &options_.with_distance) ||
             arguments_.Flag("WITHHASH", &options_.with_score) ||
             arguments_.Flag("WITHCOORD", &options_.with_place) ||
             arguments_.Flag("ANY", &options_.any);
    }
    return true;
  }

  bool ReadTarget() {
    if (call_.stores) return arguments_.Flag("STOREDIST", &options_.stores_distances);
    if (!call_.may_store) return false;
    const bool score = arguments_.Word("STORE", 1);
    if (!score && !arguments_.Word("STOREDIST", 1)) return false;
    options_.stores_distances = !score;
    options_.target = context_.argv.size() - arguments_.left();
    arguments_.Take();
    return true;
  }

  bool ReadArea() {
    if (call_.form != Front::kSearch) return false;
    if (!options_.has_place && arguments_.Word("FROMMEMBER", 1)) {
      TakeMember();
    } else if (!options_.center && arguments_.Word("FROMLONLAT", 2)) {
      TakePlace(arguments_, &options_.area.center);
      options_.has_place = true;
    } else if (!options_.area.is_box && arguments_.Word("BYRADIUS", 2)) {
      TakeRadius();
    } else if (!options_.has_circle && arguments_.Word("BYBOX", 3)) {
      TakeBox();
    } else {
      return false;
    }
    return true;
  }

  void CheckOptions() {
    if (call_.stores) options_.target = 1;
    const bool shows = options_.with_distance || options_.with_score || options_.with_place;
    arguments_.Require(
        !options_.target || !shows,
        call_.stores
            ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and "
              "WITHCOORD options");
    if (call_.form == Front::kSearch) {
      const std::string name(UntilNul(context_.argv[0]));
      if (!options_.center && !options_.has_place) {
        arguments_.Fail("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
      }
      if (!options_.has_circle && !options_.area.is_box) {
        arguments_.Fail("ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
      }
    }
    arguments_.Require(!options_.any || options_.count > 0,
                       "ERR the ANY argument requires COUNT argument");
  }

  CommandContext& context_;
  const SearchCall& call_;
  const std::optional<std::string_view> source_;
  SearchOptions& options_;
  ArgumentReader arguments_;
};

std::vector<FoundPlace> FindPlaces(std::string_view value, const SearchOptions& options) {
  const auto count = static_cast<size_t>(options.count);
  std::vector<FoundPlace> found;
  const auto has_all = [&] { return options.any && found.size() >= count; };
  PackedElements members = SortedSetMembers(value);
  for (const ScoreSpan& cell : CellsAround(options.area)) {
    MemberRange range;
    range.by = MemberRange::By::kScore;
    range.min_score.score = cell.min;
    range.max_score = {cell.max, /*is_open=*/true};
    const MemberSpan span = SelectMembers(members, range);
    members.GoTo(span.begin);
    PackedElement member;
    for (uint64_t i = 0; i < span.count && !has_all() && members.Next(&member); ++i) {
      FoundPlace one{member.key, {}, LoadScore(member.value)};
      one.place = PlaceOfScore(one.score);
      if (options.area.Holds(one.place, &one.distance_m)) found.push_back(one);
    }
  }
  Order order = options.order;
  if (order == Order::kAny && count > 0 && !options.any) order = Order::kNearestFirst;
  if (order != Order::kAny) {
    std::stable_sort(found.begin(), found.end(), [order](const FoundPlace& a, const FoundPlace& b) {
      return order == Order::kNearestFirst ? a.distance_m < b.distance_m
                                           : a.distance_m > b.distance_m;
    });
  }
  if (count > 0 && found.size() > count) found.resize(count);
  return found;
}

Task<void> ReplyFound(CommandContext& context, const std::vector<FoundPlace>& found,
                      const SearchOptions& options) {
  const int shown = int{options.with_distance} + int{options.with_score} + int{options.with_place};
  ReplyWriter& out = context.out;
  out.Array(found.size());
  ReplyPace pace;
  for (const FoundPlace& one : found) {
    if (shown > 0) out.Array(static_cast<size_t>(shown) + 1);
    out.Bulk(one.member);
    if (options.with_distance) ReplyDistance(out, one.distance_m / options.area.meters);
    if (options.with_score) out.Integer(static_cast<int64_t>(one.score));
    if (options.with_place) ReplyPlace(out, one.place);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Gives a key the places that are found: in another key, or in its own value.
class StorePlaces final : public SortedSetStore {
 public:
  // `source`: null for its own.
  StorePlaces(CommandContext& context, const SearchOptions& options, const RecordCopy* source)
      : SortedSetStore(context, /*looks=*/source == nullptr), options_(options), source_(source) {}

  Change Apply(const RecordView* current) override {
    Begin();
    if (!looks()) return StoreFrom(source_->bytes(), source_->found, current);
    if (!IsOfType(current, ValueType::kSortedSet)) return Refuse(kWrongTypeError);
    const std::string_view own = current == nullptr ? std::string_view() : current->value;
    return StoreFrom(own, current != nullptr, current);
  }

 private:
  Change StoreFrom(std::string_view value, bool is_there, const RecordView* current) {
    SearchOptions options = options_;
    if (is_there && options.center && !CenterOn(*options.center, value, &options.area)) {
      return Refuse(kNoSuchMemberError);
    }
    std::vector<ScoredMember> members;
    if (is_there) {
      for (const FoundPlace& one : FindPlaces(value, options)) {
        const double distance = one.distance_m / options.area.meters;
        members.push_back({one.member, options.stores_distances ? distance : one.score});
      }
    }
    std::sort(members.begin(), members.end(), StandsBefore);
    return Store(current, members);
  }

  const SearchOptions& options_;
  const RecordCopy* const source_;
};

Task<void> Search(CommandContext& context, SearchCall call) {
  const Key key = KeyAt(context, call.source());
  RecordCopy source;
  const Status status = co_await ReadCopy(context.kv, key, &source);
  if (AnsweredReadFailure(context, status)) co_return;
  CountLookup(context, source.found);
  // Redis looks at the source before anything else.
  if (source.found && source.type != static_cast<uint8_t>(ValueType::kSortedSet)) {
    co_return context.out.Error(kWrongTypeError);
  }
  std::optional<std::string_view> value;
  if (source.found) value = source.bytes();
  SearchOptions options;
  if (!SearchReader(context, call, value, &options).Read()) co_return;
  if (options.target) {
    const bool is_own = KeyAt(context, *options.target).bytes == key.bytes;
    // The command must not keep a share for values that are read while it reads its own again.
    if (source.holder != nullptr) {
      source.holder->share = CountMemory(context, source.holder->memory.bytes());
    }
    StorePlaces store(context, options, is_own ? nullptr : &source);
    co_return co_await StoreAndReply(context, *options.target, store);
  }
  std::vector<FoundPlace> found;
  if (value) found = FindPlaces(*value, options);
  co_await ReplyFound(context, found, options);
}

}  // namespace

Task<void> GeoSearchCommand(CommandContext& context) { return Search(context, {}); }
Task<void> GeoSearchStoreCommand(CommandContext& context) {
  return Search(context, {.stores = true});
}
Task<void> GeoRadiusCommand(CommandContext& context) {
  return Search(context, {.form = Front::kByPlace, .may_store = true});
}
Task<void> GeoRadiusRoCommand(CommandContext& context) {
  return Search(context, {.form = Front::kByPlace});
}
Task<void> GeoRadiusByMemberCommand(CommandContext& context) {
  return Search(context, {.form = Front::kByMember, .may_store = true});
}
Task<void> GeoRadiusByMemberRoCommand(CommandContext& context) {
  return Search(context, {.form = Front::kByMember});
}

}  // namespace onetrip
