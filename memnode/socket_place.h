// SocketPlace: where a memory node's unix socket lies: at the path that was given, or in a
// directory of the node's user, under a name that no other memory has.
#ifndef ONETRIP_MEMNODE_SOCKET_PLACE_H_
#define ONETRIP_MEMNODE_SOCKET_PLACE_H_

#include <cstdint>
#include <string>

#include "client_core/base/status.h"

namespace onetrip {

class SocketPlace {
 public:
  SocketPlace() = default;
  // `given`: what --socket says, or empty; `memory` names the node's memory. Makes the directory,
  // with mode 0700. On failure `reason` says in one line what is wrong and what to do.
  static Result<SocketPlace> Choose(const std::string& given, uint64_t memory, std::string* reason);

  // Absolute.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Removes the directory, if it was made for memory nodes and nothing is in it any more.
  void Leave() const;

 private:
  std::string path_;
  bool is_own_directory_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_SOCKET_PLACE_H_
