// Tells whether memory nodes can be reached, for a process that has no channel to them: it makes
// connections and closes them at once.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_REACH_PROBE_H_
#define ONETRIP_CLIENT_CORE_FABRIC_REACH_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onetrip {

struct ProbeTarget {
  std::string host;  // numeric, or a name, which is looked up now and may block
  uint16_t port = 0;
  std::string path;  // names a unix socket; if not empty, the probe tries it instead
};

// Tries all at once, for `timeout_ms` at most. By target: why there is no connection, in a few
// words; empty: there is. Any thread.
std::vector<std::string> TryToConnect(const std::vector<ProbeTarget>& targets, uint64_t timeout_ms);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_REACH_PROBE_H_
