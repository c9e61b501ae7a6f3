// A master's state after a change, and a change as bytes (control.proto, StateChange), in which
// members keep copies of the state.
#ifndef ONETRIP_MASTER_DURABLE_CHANGE_H_
#define ONETRIP_MASTER_DURABLE_CHANGE_H_

#include <string>

#include "client_core/base/status.h"
#include "master/durable_state.h"

namespace onetrip {

void ApplyChange(const DurableChange& change, DurableState* state);

// True if all nodes and regions that are new with `change` follow those that `state` has, without a
// gap. Every change of a master does so.
bool Follows(const DurableChange& change, const DurableState& state);

// The change that makes this state of an empty one.
DurableChange WholeState(const DurableState& state);

// True if members keep the change. They do not keep changes that are only of times and marks: those
// are frequent, and nothing is lost without them.
bool IsKept(const DurableChange& change, const DurableState& before);

std::string EncodeChange(const DurableChange& change);
// kCorrupt: these are no bytes of EncodeChange().
Result<DurableChange> DecodeChange(const std::string& bytes);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_DURABLE_CHANGE_H_
