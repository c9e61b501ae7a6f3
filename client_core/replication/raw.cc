#include "client_core/replication/raw.h"

namespace onetrip {

Task<Result<SlotOutcome>> Raw::CasOne(Operation& operation, SlotWrite write) {
  const RoundTripPtr round_trip = FirstRoundTrip(context_, write);
  const size_t cas =
      round_trip->Cas(context_.view().Locate(write.slot, 0), write.v_old, write.v_new);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  const uint64_t found = round_trip->op(cas).result;
  co_return SlotOutcome{found == write.v_old, found == write.v_old ? write.v_new : found};
}

}  // namespace onetrip
