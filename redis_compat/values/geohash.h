// Places on the earth as scores of sorted sets: geohashes of 52 bits.
//
// Longitude and latitude, each as a fraction of its range in 26 bits, take turns, longitude first,
// so that places in one cell of a grid have scores in one range. Cells, distances and the cells
// that a search looks at are those of Redis bit for bit: so are its results, and their order. Pure;
// any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_GEOHASH_H_
#define ONETRIP_REDIS_COMPAT_VALUES_GEOHASH_H_

#include <string>
#include <vector>

namespace onetrip {

// In degrees.
struct Place {
  double longitude = 0;
  double latitude = 0;
};

// False: the place is beyond the map, which ends before the poles.
bool IsOnMap(const Place& place);
// REQUIRES: IsOnMap(place).
double ScoreOfPlace(const Place& place);
// Any score is some place: the middle of its cell.
Place PlaceOfScore(double score);

double MetersBetween(const Place& a, const Place& b);

// The eleven letters that other geohash programs know a place by.
std::string GeohashText(const Place& place);

// A circle, or a box along the meridians.
struct SearchArea {
  Place center;
  bool is_box = false;
  double meters = 1;  // a unit of the other three
  double radius = 0;
  double width = 0;
  double height = 0;

  // False: a place is outside. Else its distance from the center, in meters, is told.
  bool Holds(const Place& place, double* distance_m) const;
};

// Scores from `min` on, and below `max`.
struct ScoreSpan {
  double min = 0;
  double max = 0;
};
// The scores of all places in the area, and of others, in the order in which they are searched.
std::vector<ScoreSpan> CellsAround(const SearchArea& area);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_GEOHASH_H_
