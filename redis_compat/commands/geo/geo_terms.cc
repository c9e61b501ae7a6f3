#include "redis_compat/commands/geo/geo_terms.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// Room for two doubles in decimals.
constexpr size_t kPlaceErrorMax = 768;

std::string OffMapError(const Place& place) {
  char text[kPlaceErrorMax];
  std::snprintf(text, sizeof(text), "ERR invalid longitude,latitude pair %f,%f", place.longitude,
                place.latitude);
  return text;
}

void ReplyDecimal(ReplyWriter& out, double number) {
  char text[kLongDoubleTextMax];
  const std::string_view written(text, FormatLongDouble(number, text));
  if (out.protocol() == 2) return out.Bulk(written);
  out.Raw(",");
  out.Raw(written);
  out.Raw("\r\n");
}

}  // namespace

void TakePlace(ArgumentReader& arguments, Place* place) {
  place->longitude = ReadDouble(arguments, arguments.Take());
  place->latitude = ReadDouble(arguments, arguments.Take());
  if (arguments.ok() && !IsOnMap(*place)) arguments.Fail(OffMapError(*place));
}

double TakeUnit(ArgumentReader& arguments) {
  constexpr double kMeters[] = {1, 1000, 0.3048, 1609.34};
  return kMeters[arguments.TakeOneOf({"M", "KM", "FT", "MI"},
                                     "ERR unsupported unit provided. please use M, KM, FT, MI")];
}

void ReplyDistance(ReplyWriter& out, double distance) {
  constexpr int64_t kScale = 10'000;
  const int64_t scaled = std::llrint(distance * kScale);
  char text[48];
  const int size = std::snprintf(text, sizeof(text), "%" PRId64 ".%04" PRId64, scaled / kScale,
                                 std::abs(scaled % kScale));
  out.Bulk({text, static_cast<size_t>(size)});
}

void ReplyPlace(ReplyWriter& out, const Place& place) {
  out.Array(2);
  ReplyDecimal(out, place.longitude);
  ReplyDecimal(out, place.latitude);
}

}  // namespace onetrip
