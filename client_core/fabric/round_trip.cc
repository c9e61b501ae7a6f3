#include "client_core/fabric/round_trip.h"

#include <bit>
#include <new>

namespace onetrip {

std::byte* RoundTrip::ReserveLarge(size_t bytes) {
  large_.push_back({static_cast<std::byte*>(pool_->Take(bytes)), bytes});
  return large_.back().start;
}

uint32_t RoundTrip::CutByNode(std::array<Part, kMaxOps>* parts) const {
  uint32_t count = 0;
  for (uint64_t left = (uint64_t{1} << op_count_) - 1; left != 0;) {
    Part& part = (*parts)[count++];
    part = {ops_[std::countr_zero(left)].node, 0};
    for (uint64_t bits = left; bits != 0; bits &= bits - 1) {
      if (ops_[std::countr_zero(bits)].node == part.node) part.ops |= bits & -bits;
    }
    left &= ~part.ops;
  }
  return count;
}

RoundTripPool::~RoundTripPool() {
  CHECK(outstanding_ == 0);
  for (RoundTrip* round_trip : free_) {
    round_trip->~RoundTrip();
    Give(round_trip, sizeof(RoundTrip));
  }
}

void* RoundTripPool::Take(size_t bytes) {
  return memory_ != nullptr ? memory_->Take(bytes)
                            : ::operator new (bytes, std::align_val_t{alignof(RoundTrip)});
}

void RoundTripPool::Give(void* memory, size_t bytes) {
  if (memory_ != nullptr) return memory_->Give(memory, bytes);
  ::operator delete (memory, std::align_val_t{alignof(RoundTrip)});
}

RoundTripPtr RoundTripPool::Get() {
  ++outstanding_;
  if (free_.empty()) {
    auto* round_trip = new (Take(sizeof(RoundTrip))) RoundTrip;
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
  for (const RoundTrip::Large& large : round_trip->large_) Give(large.start, large.bytes);
  round_trip->large_.clear();
  free_.push_back(round_trip);
}

}  // namespace onetrip
