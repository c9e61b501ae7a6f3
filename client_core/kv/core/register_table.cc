#include "client_core/kv/core/register_table.h"

#include <algorithm>
#include <utility>

namespace onetrip {

static_assert(sizeof(RegisterPlace) == 32, "two a line");

RegisterPlace RegisterTable::none;

void RegisterTable::Put(const RegisterPlace& place) {
  Part& part = PartOf(place.hash);
  RegisterPlace* at = part.PlaceFor(place.hash);
  if (at->entry == nullptr) {
    // Runs are short up to there; and a power of two of keys, which fills each part by about half,
    // makes none of them grow once more.
    const bool is_crowded = part.used >= (part.mask + 1) / 8 * 5;
    if (is_crowded) {
      part.Grow();
      if (part.used >= part.mask) return;  // the last free one ends every search
      at = part.PlaceFor(place.hash);
    }
    ++part.used;
  }
  *at = place;
}

// The places behind move up, if they may: no place is ever marked as deleted.
void RegisterTable::Erase(KeyHash hash) {
  Part& part = PartOf(hash);
  const RegisterPlace* found = part.PlaceFor(hash);
  if (found->entry == nullptr) return;
  RegisterPlace* places = part.places;
  const size_t mask = part.mask;
  auto hole = static_cast<size_t>(found - places);
  for (size_t at = (hole + 1) & mask; places[at].entry != nullptr; at = (at + 1) & mask) {
    const size_t start = part.StartIndex(places[at].hash);
    const size_t distance_to_hole = (hole - start) & mask;
    const size_t distance = (at - start) & mask;
    if (distance_to_hole > distance) continue;
    places[hole] = places[at];
    hole = at;
  }
  places[hole] = RegisterPlace();
  --part.used;
}

void RegisterTable::Part::Grow() {
  const size_t count = memory.start() == nullptr ? 0 : mask + 1;
  const size_t larger_count = std::max(2 * count, kFirstPlaces);
  ZeroedMemory larger = ZeroedMemory::TryMake(larger_count * sizeof(RegisterPlace), kHugeFrom);
  if (larger.start() == nullptr) return;
  const RegisterPlace* const from = places;
  const ZeroedMemory old = std::exchange(memory, std::move(larger));
  places = reinterpret_cast<RegisterPlace*>(memory.start());
  mask = larger_count - 1;
  for (size_t i = 0; i < count; ++i) {
    if (from[i].entry != nullptr) *PlaceFor(from[i].hash) = from[i];
  }
}

}  // namespace onetrip
