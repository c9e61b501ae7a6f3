// Rebuild: a master's state from what members keep of it (control.proto, "Copies of the master's
// state"), where the master's own disk is lost. Pure: no I/O, no thread.
//
// Every member was sent what the master had stored before anything that depends on it. So the
// newest copy among the members that are asked is no older than what any of them has seen. What
// only others have seen is kept from doing harm: ids start further on, and workers whose ids may
// have been given out meanwhile are refused by every memory node.
#ifndef ONETRIP_MASTER_REBUILD_H_
#define ONETRIP_MASTER_REBUILD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "client_core/base/status.h"
#include "master/durable_state.h"
#include "master/messages.h"

namespace onetrip {

namespace control {
class Recalled;
}  // namespace control

class Rebuild {
 public:
  // A member's answer. kCorrupt: it is none, and counts for nothing. kInvalidArgument: it is of
  // another cluster than those before. *reason is one line.
  Status Add(const MemberHello& hello, const control::Recalled& recalled, std::string* reason);
  // A file that lay beside the image of a memory node which does not run.
  Status AddFile(const control::Recalled& recalled, std::string* reason);

  // The newest copy's members that have not answered, one line; empty: all have. Before there is a
  // copy, the line says that none has.
  [[nodiscard]] std::string MissingText() const;
  // The state to go on with. kUnavailable: too few memory nodes have answered for it to be known
  // that there is no newer one; nothing else is wrong if `force` helps. *reason is one line.
  [[nodiscard]] Result<DurableState> Make(uint64_t unix_us, bool force, std::string* reason) const;

 private:
  Status Take(const control::Recalled& recalled, std::string* reason);
  // The newest copy's memory nodes that are not out: how many there are and have answered.
  struct Answered {
    size_t nodes = 0;
    size_t of = 0;
  };
  [[nodiscard]] Answered CountNodes() const;

  uint64_t version_ = 0;  // the newest copy's
  DurableState state_;
  std::map<uint64_t, uint64_t> marks_;          // memory nodes' that have answered, by incarnation
  std::set<uint64_t> agents_;                   // that have, by member
  EngineFamily engines_ = EngineFamily::kNone;  // agents' that have
  uint64_t epoch_ = 0;  // the largest that a member has seen; so are the next
  uint64_t member_ = 0;
  uint32_t next_worker_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_REBUILD_H_
