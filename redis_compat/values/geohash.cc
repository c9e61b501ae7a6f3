#include "redis_compat/values/geohash.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace onetrip {
namespace {

constexpr double kLongitudeMax = 180;
constexpr double kLatitudeMax = 85.05112878;
constexpr unsigned kStepsMax = 26;
constexpr double kEarthRadiusM = 6372797.560856;
constexpr double kMercatorMax = 20037726.37;
constexpr double kRadians = std::numbers::pi / 180.0;

double ToRadians(double degrees) { return degrees * kRadians; }
double ToDegrees(double radians) { return radians / kRadians; }

constexpr uint64_t kLatitudeBits = 0x5555555555555555ULL;
constexpr uint64_t kLongitudeBits = ~kLatitudeBits;

// Bit i goes to bit 2 i.
uint64_t Spread(uint32_t bits) {
  uint64_t spread = bits;
  spread = (spread | (spread << 16)) & 0x0000ffff0000ffffULL;
  spread = (spread | (spread << 8)) & 0x00ff00ff00ff00ffULL;
  spread = (spread | (spread << 4)) & 0x0f0f0f0f0f0f0f0fULL;
  spread = (spread | (spread << 2)) & 0x3333333333333333ULL;
  return (spread | (spread << 1)) & kLatitudeBits;
}
uint32_t Gather(uint64_t spread) {
  spread &= kLatitudeBits;
  spread = (spread | (spread >> 1)) & 0x3333333333333333ULL;
  spread = (spread | (spread >> 2)) & 0x0f0f0f0f0f0f0f0fULL;
  spread = (spread | (spread >> 4)) & 0x00ff00ff00ff00ffULL;
  spread = (spread | (spread >> 8)) & 0x0000ffff0000ffffULL;
  return static_cast<uint32_t>(spread | (spread >> 16));
}

// A rectangle of the grid that has 2^steps columns and rows.
struct Cell {
  uint64_t bits = 0;
  unsigned steps = 0;
};

// A map that reaches as far to the one side as to the other.
struct Extent {
  double longitude_max = kLongitudeMax;
  double latitude_max = kLatitudeMax;
};

uint32_t Column(double degrees, double max, unsigned steps) {
  return static_cast<uint32_t>((degrees + max) / (max + max) * static_cast<double>(1ULL << steps));
}
Cell CellOf(const Place& place, unsigned steps, const Extent& map = {}) {
  const uint32_t latitude = Column(place.latitude, map.latitude_max, steps);
  const uint32_t longitude = Column(place.longitude, map.longitude_max, steps);
  return {Spread(latitude) | (Spread(longitude) << 1), steps};
}

struct Bounds {
  double west = 0;
  double east = 0;
  double south = 0;
  double north = 0;
};

double Degrees(uint32_t column, double max, unsigned steps) {
  return -max + (column * 1.0 / static_cast<double>(1ULL << steps)) * (max + max);
}
Bounds BoundsOf(const Cell& cell) {
  const uint32_t latitude = Gather(cell.bits);
  const uint32_t longitude = Gather(cell.bits >> 1);
  return {.west = Degrees(longitude, kLongitudeMax, cell.steps),
          .east = Degrees(longitude + 1, kLongitudeMax, cell.steps),
          .south = Degrees(latitude, kLatitudeMax, cell.steps),
          .north = Degrees(latitude + 1, kLatitudeMax, cell.steps)};
}

// The bits of one axis, one further or one back; behind the last comes the first.
uint64_t MoveAlong(uint64_t bits, uint64_t axis, unsigned steps, int by) {
  const uint64_t used = ~uint64_t{0} >> (64 - 2 * steps);
  const uint64_t others = ~axis & used;
  bits &= axis;
  if (by > 0) bits += others + 1;
  if (by < 0) bits = (bits | others) - (others + 1);
  return bits & axis & used;
}
Cell Neighbor(const Cell& cell, int east, int north) {
  const auto move = [&](uint64_t axis, int by) {
    return by == 0 ? cell.bits & axis : MoveAlong(cell.bits, axis, cell.steps, by);
  };
  return {move(kLongitudeBits, east) | move(kLatitudeBits, north), cell.steps};
}

double SouthToNorthMeters(double latitude_a, double latitude_b) {
  return kEarthRadiusM * std::fabs(ToRadians(latitude_b) - ToRadians(latitude_a));
}

// Steps at which a cell and its neighbors hold a circle, in most cases.
unsigned StepsFor(double radius_m, double latitude) {
  if (radius_m == 0) return kStepsMax;
  int steps = 1;
  for (; radius_m < kMercatorMax; radius_m *= 2) ++steps;
  steps -= 2;
  // Towards the poles cells are narrower.
  if (std::fabs(latitude) > 66) --steps;
  if (std::fabs(latitude) > 80) --steps;
  return static_cast<unsigned>(std::clamp(steps, 1, static_cast<int>(kStepsMax)));
}

Bounds BoundsOf(const SearchArea& area) {
  const Place& center = area.center;
  const double height = area.meters * (area.is_box ? area.height / 2 : area.radius);
  const double width = area.meters * (area.is_box ? area.width / 2 : area.radius);
  const double north = ToDegrees(height / kEarthRadiusM);
  // A degree is shortest at the edge that is nearer to a pole.
  const double edge = center.latitude < 0 ? center.latitude - north : center.latitude + north;
  const double east = ToDegrees(width / kEarthRadiusM / std::cos(ToRadians(edge)));
  return {.west = center.longitude - east,
          .east = center.longitude + east,
          .south = center.latitude - north,
          .north = center.latitude + north};
}

// True if the cells around `cell` do not reach as far as the area.
bool IsTooSmall(const Cell& cell, const Bounds& area) {
  return BoundsOf(Neighbor(cell, 0, 1)).north < area.north ||
         BoundsOf(Neighbor(cell, 0, -1)).south > area.south ||
         BoundsOf(Neighbor(cell, 1, 0)).east < area.east ||
         BoundsOf(Neighbor(cell, -1, 0)).west > area.west;
}

// A score as bits, and what x86 makes of those that no place has.
uint64_t BitsOfScore(double score) {
  constexpr double kHalf = 0x1p63;
  const auto truncated = [](double number) {
    const bool fits = number >= -kHalf && number < kHalf;
    return fits ? static_cast<uint64_t>(static_cast<int64_t>(number)) : uint64_t{1} << 63;
  };
  return score < kHalf ? truncated(score) : truncated(score - kHalf) ^ (uint64_t{1} << 63);
}

double ScoreOfBits(const Cell& cell, uint64_t bits) {
  return static_cast<double>(bits << (2 * (kStepsMax - cell.steps)));
}

}  // namespace

bool IsOnMap(const Place& place) {
  return std::fabs(place.longitude) <= kLongitudeMax && std::fabs(place.latitude) <= kLatitudeMax;
}

double ScoreOfPlace(const Place& place) {
  return static_cast<double>(CellOf(place, kStepsMax).bits);
}

Place PlaceOfScore(double score) {
  const Bounds bounds = BoundsOf(Cell{BitsOfScore(score), kStepsMax});
  return {std::clamp((bounds.west + bounds.east) / 2, -kLongitudeMax, kLongitudeMax),
          std::clamp((bounds.south + bounds.north) / 2, -kLatitudeMax, kLatitudeMax)};
}

// The haversine formula on a sphere.
double MetersBetween(const Place& a, const Place& b) {
  const double v = std::sin((ToRadians(b.longitude) - ToRadians(a.longitude)) / 2);
  if (v == 0.0) return SouthToNorthMeters(a.latitude, b.latitude);
  const double a_latitude = ToRadians(a.latitude);
  const double b_latitude = ToRadians(b.latitude);
  const double u = std::sin((b_latitude - a_latitude) / 2);
  const double square = u * u + std::cos(a_latitude) * std::cos(b_latitude) * v * v;
  return 2.0 * kEarthRadiusM * std::asin(std::sqrt(square));
}

std::string GeohashText(const Place& place) {
  constexpr std::string_view kLetters = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr unsigned kLetterBits = 5;
  // Others count latitudes to the poles.
  const uint64_t bits = CellOf(place, kStepsMax, {kLongitudeMax, 90}).bits;
  std::string text;
  for (unsigned i = 1; i <= 10; ++i) {
    text.push_back(kLetters[(bits >> (2 * kStepsMax - i * kLetterBits)) & 31]);
  }
  // The eleventh letter has but two bits, which Redis leaves out.
  text.push_back('0');
  return text;
}

bool SearchArea::Holds(const Place& place, double* distance_m) const {
  if (!is_box) {
    *distance_m = MetersBetween(center, place);
    // Between opposite ends of the earth it may be no number, which Redis takes for near.
    return !(*distance_m > radius * meters);
  }
  if (SouthToNorthMeters(place.latitude, center.latitude) > height * meters / 2) return false;
  const Place aside{center.longitude, place.latitude};
  if (MetersBetween(place, aside) > width * meters / 2) return false;
  *distance_m = MetersBetween(center, place);
  return true;
}

std::vector<ScoreSpan> CellsAround(const SearchArea& area) {
  const Bounds wanted = BoundsOf(area);
  const double half_width = area.width / 2;
  const double half_height = area.height / 2;
  const double reach =
      area.is_box ? std::sqrt(half_width * half_width + half_height * half_height) : area.radius;
  unsigned steps = StepsFor(reach * area.meters, area.center.latitude);
  if (steps > 1 && IsTooSmall(CellOf(area.center, steps), wanted)) --steps;
  const Cell middle = CellOf(area.center, steps);
  const Bounds inner = BoundsOf(middle);

  struct Direction {
    int east;
    int north;
  };
  constexpr std::array<Direction, 9> kDirections = {
      {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};
  const auto is_useless = [&](const Direction& to) {
    if (steps < 2) return false;
    return (to.north < 0 && inner.south < wanted.south) ||
           (to.north > 0 && inner.north > wanted.north) ||
           (to.east < 0 && inner.west < wanted.west) || (to.east > 0 && inner.east > wanted.east);
  };
  std::vector<ScoreSpan> cells;
  uint64_t last_bits = 0;
  for (const Direction& to : kDirections) {
    const Cell cell = Neighbor(middle, to.east, to.north);
    if (is_useless(to)) continue;
    // On a coarse grid two neighbors may be one cell. Redis does not compare them with the middle.
    if (cells.size() > 1 && cell.bits == last_bits) continue;
    cells.push_back({ScoreOfBits(cell, cell.bits), ScoreOfBits(cell, cell.bits + 1)});
    last_bits = cell.bits;
  }
  return cells;
}

}  // namespace onetrip
