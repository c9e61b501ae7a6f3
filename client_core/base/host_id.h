// HostId: names this host as processes that share memory must see it.
#ifndef ONETRIP_CLIENT_CORE_BASE_HOST_ID_H_
#define ONETRIP_CLIENT_CORE_BASE_HOST_ID_H_

#include <cstdint>
#include <string>

namespace onetrip {

// Two processes with the same id run under the same boot of the same kernel and see the same files:
// a unix socket's path means the same to both. Made of the boot id and the mount namespace; a host
// where these cannot be read gets an id of its own that no other shares. Any thread.
std::string HostId();

// Names the set of process ids that this process's own is one of: the host's boot and the PID
// namespace. Two processes with the same one mean the same process by the same number. Empty if it
// cannot be read. Any thread.
std::string ProcessSpace();

// True if the process `pid` has ended, or is past the point where its files are closed. False if
// that cannot be told. Any thread.
bool HasEnded(uint64_t pid);

// The host's own name, for people. Any thread.
std::string HostName();

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_HOST_ID_H_
