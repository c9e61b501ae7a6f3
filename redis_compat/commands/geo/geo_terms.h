// Places, units and distances as commands read and answer them.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_GEO_GEO_TERMS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_GEO_GEO_TERMS_H_

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/values/geohash.h"

namespace onetrip {

// Takes longitude and latitude.
void TakePlace(ArgumentReader& arguments, Place* place);
// Takes a unit: how many meters it is.
double TakeUnit(ArgumentReader& arguments);

// Answers with four digits behind the point.
void ReplyDistance(ReplyWriter& out, double distance);
// Answers with a pair of numbers.
void ReplyPlace(ReplyWriter& out, const Place& place);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_GEO_GEO_TERMS_H_
