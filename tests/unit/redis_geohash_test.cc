// Places as scores, and the cells that a search looks at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client_core/base/rng.h"
#include "redis_compat/values/geohash.h"

namespace onetrip {
namespace {

// From -1 to 1.
double AnyFraction(Rng& rng) {
  constexpr uint64_t kParts = 1ULL << 40;
  return 2.0 * static_cast<double>(rng.Below(kParts)) / static_cast<double>(kParts) - 1;
}

Place AnyPlace(Rng& rng) { return {180 * AnyFraction(rng), 85 * AnyFraction(rng)}; }

TEST(Geohash, KnowsTheWellKnownPlaces) {
  const Place palermo{13.361389, 38.115556};
  const Place catania{15.087269, 37.502669};
  EXPECT_EQ(ScoreOfPlace(palermo), 3479099956230698.0);
  EXPECT_EQ(GeohashText(PlaceOfScore(3479099956230698.0)), "sqc8b49rny0");
  EXPECT_NEAR(MetersBetween(palermo, catania), 166274.15, 0.5);
  EXPECT_EQ(MetersBetween(palermo, palermo), 0);
}

TEST(Geohash, APlaceComesBackWithinItsCell) {
  Rng rng(1);
  for (int i = 0; i < 100000; ++i) {
    const Place place = AnyPlace(rng);
    const double score = ScoreOfPlace(place);
    const Place again = PlaceOfScore(score);
    ASSERT_NEAR(again.longitude, place.longitude, 180.0 / (1 << 26));
    ASSERT_NEAR(again.latitude, place.latitude, 85.06 / (1 << 26));
    ASSERT_EQ(ScoreOfPlace(again), score);
  }
}

TEST(Geohash, AnyScoreIsAPlaceOnTheMap) {
  for (const double score : {-1.0, 0.5, 1e300, -1e300, 0x1p63, 0x1p64, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_TRUE(IsOnMap(PlaceOfScore(score))) << score;
  }
  EXPECT_TRUE(IsOnMap({180, 85.05112878}));
  EXPECT_FALSE(IsOnMap({180.0001, 0}));
  EXPECT_FALSE(IsOnMap({0, -85.0512}));
}

// But for areas over the seam of the map, which Redis does not follow everywhere.
TEST(Geohash, TheCellsOfAnAreaHoldThePlacesInIt) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    SearchArea area;
    area.center = {100 * AnyFraction(rng), 60 * AnyFraction(rng)};
    area.is_box = rng.Below(2) == 0;
    const double reach = std::pow(10, 1 + 2 * (AnyFraction(rng) + 1));
    area.radius = reach;
    area.width = area.height = 2 * reach;
    const auto cells = CellsAround(area);
    ASSERT_FALSE(cells.empty());
    for (int i = 0; i < 50; ++i) {
      const double degrees = 2 * reach / 111000;
      const Place any{area.center.longitude + degrees * AnyFraction(rng),
                      area.center.latitude + degrees * AnyFraction(rng)};
      const double score = ScoreOfPlace(any);
      double distance = 0;
      if (!area.Holds(PlaceOfScore(score), &distance)) continue;
      ASSERT_TRUE(std::any_of(
          cells.begin(), cells.end(),
          [score](const ScoreSpan& cell) { return cell.min <= score && score < cell.max; }))
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace onetrip
