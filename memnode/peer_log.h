// PeerLog: what a server says of the faults of its peers, without letting them fill the log. One
// thread.
#ifndef ONETRIP_MEMNODE_PEER_LOG_H_
#define ONETRIP_MEMNODE_PEER_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace onetrip {

class PeerLog {
 public:
  // Logs `line`, but the same `what`, which names the peer and its fault, only once in a while.
  void Warn(uint64_t what, uint64_t now_ns, const std::string& line);

 private:
  struct Line {
    uint64_t what = 0;
    uint64_t time_ns = 0;  // 0: unused
  };
  std::array<Line, 64> lines_{};
  size_t next_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_PEER_LOG_H_
