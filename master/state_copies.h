// StateCopies: what members are told to keep of the master's state (control.proto, KeepState).
//
// Knows the whole state, and says which message goes to every member after a write: the change, the
// whole state where that has become shorter than the changes since, or nothing. One thread.
#ifndef ONETRIP_MASTER_STATE_COPIES_H_
#define ONETRIP_MASTER_STATE_COPIES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "master/durable_state.h"

namespace onetrip {

namespace control {
class FromMaster;
}  // namespace control

class StateCopies {
 public:
  // `state` is what is stored now. Versions grow over restarts, for every life of a master has an
  // epoch of its own.
  explicit StateCopies(DurableState state = {});

  // A change has been stored. Whether `message` is to go to every member, before anything that
  // depends on the change does.
  bool OnStored(const DurableChange& change, control::FromMaster* message);
  // True if there is something to keep: not before there is a map.
  [[nodiscard]] bool has_state() const { return state_.cluster.epoch != 0; }
  // For a member that has nothing yet.
  void FillWhole(control::FromMaster* message);

 private:
  DurableState state_;
  uint64_t version_ = 0;
  std::string whole_;        // encoded; empty: not since the last change
  size_t whole_bytes_ = 0;   // the last one's that every member was sent
  size_t change_bytes_ = 0;  // since then
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_STATE_COPIES_H_
