#include "client_core/replication/raw.h"

namespace onetrip {

Task<Result<SlotOutcome>> Raw::CasOne(Operation& operation, SlotWrite write) {
  const RoundTripPtr round_trip = FirstRoundTrip(context_, write);
  const uint64_t expected = ExpectedOfPrimary(write.step, write.v_old, write.v_new);
  const size_t cas = round_trip->Cas(context_.view().Locate(write.slot, 0), expected, write.v_new);
  Status status = co_await Post(context_, operation, round_trip);
  // A claim that its owner leaves stays: a lease that has run out may be renewed.
  const bool owes_end = write.step == SlotStep::kCommit || write.step == SlotStep::kWithdraw;
  while (owes_end && status.code() == StatusCode::kFenced && !OutOfTime(context_, operation)) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_max_us} * 1000);
    status = co_await Post(context_, operation, round_trip);
  }
  if (!status.ok()) co_return status;
  const uint64_t found = round_trip->op(cas).result;
  co_return SlotOutcome{found == expected, found == expected ? write.v_new : found};
}

}  // namespace onetrip
