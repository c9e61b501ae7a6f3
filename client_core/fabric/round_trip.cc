#include "client_core/fabric/round_trip.h"

namespace onetrip {

std::byte* RoundTrip::ReserveLarge(size_t bytes) {
  large_.emplace_back(new std::byte[bytes]);
  return large_.back().get();
}

RoundTripPool::~RoundTripPool() {
  CHECK(outstanding_ == 0);
  for (RoundTrip* round_trip : free_) delete round_trip;
}

RoundTripPtr RoundTripPool::Get() {
  ++outstanding_;
  if (free_.empty()) {
    auto* round_trip = new RoundTrip;
    round_trip->pool_ = this;
    return RoundTripPtr(round_trip);
  }
  RoundTrip* round_trip = free_.back();
  free_.pop_back();
  return RoundTripPtr(round_trip);
}

void RoundTripPool::Put(RoundTrip* round_trip) {
  CHECK(round_trip->pending_nodes_ == 0);
  --outstanding_;
  round_trip->op_count_ = 0;
  round_trip->arena_used_ = 0;
  if (!round_trip->large_.empty()) round_trip->large_.clear();
  free_.push_back(round_trip);
}

}  // namespace onetrip
