#include "client_core/kv/core/register_table.h"

#include <utility>

namespace onetrip {

static_assert(sizeof(RegisterPlace) == 32, "two a line");

void RegisterTable::Put(const RegisterPlace& place) {
  size_t at = Start(place.hash);
  while (places()[at].entry != nullptr && places()[at].hash.bits() != place.hash.bits()) {
    at = (at + 1) & mask_;
  }
  const bool is_new = places()[at].entry == nullptr;
  places()[at] = place;
  if (is_new && ++used_ > mask_ / 2) Grow();
}

// The places behind move up, if they may: no place is ever marked as deleted.
void RegisterTable::Erase(KeyHash hash) {
  const RegisterPlace* found = Find(hash);
  if (found == nullptr) return;
  auto hole = static_cast<size_t>(found - places());
  for (size_t at = (hole + 1) & mask_; places()[at].entry != nullptr; at = (at + 1) & mask_) {
    const size_t distance_to_hole = (hole - Start(places()[at].hash)) & mask_;
    const size_t distance = (at - Start(places()[at].hash)) & mask_;
    if (distance_to_hole > distance) continue;
    places()[hole] = places()[at];
    hole = at;
  }
  places()[hole] = RegisterPlace();
  --used_;
}

void RegisterTable::Grow() {
  ZeroedMemory larger = ZeroedMemory::TryMake(memory_.bytes() * 2);
  if (larger.start() == nullptr) return;
  const ZeroedMemory old = std::exchange(memory_, std::move(larger));
  const size_t count = mask_ + 1;
  mask_ = 2 * count - 1;
  used_ = 0;
  const auto* from = reinterpret_cast<const RegisterPlace*>(old.start());
  for (size_t i = 0; i < count; ++i) {
    if (from[i].entry != nullptr) Put(from[i]);
  }
}

}  // namespace onetrip
