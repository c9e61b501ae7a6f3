// How a process reaches the master, and what makes it a member: the ways to the gRPC side of the
// control plane, without its headers.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CONTROL_OPTIONS_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CONTROL_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "client_core/control/node_master_client.h"

namespace onetrip {

struct ControlOptions {
  std::string master;   // HOST:PORT; not loopback only with a secret
  Secret secret;        // the cluster's; empty: none
  std::string host;     // for people: this host's name; empty: as the system calls it
  std::string address;  // for people: where this process serves
  std::string engine;   // how an agent writes keys, as in AgentOptions
  // How long the first welcome may take, all attempts together.
  uint64_t connect_timeout_ms = 10'000;
  uint64_t request_timeout_ms = 5'000;  // for one request to the master
  uint64_t backoff_min_ms = 10;         // between attempts to connect, doubling, with jitter
  uint64_t backoff_max_ms = 1'000;

  [[nodiscard]] ControlOptions Copy() const {
    ControlOptions copy;
    copy.master = master;
    copy.secret = secret.Copy();
    copy.host = host;
    copy.address = address;
    copy.engine = engine;
    copy.connect_timeout_ms = connect_timeout_ms;
    copy.request_timeout_ms = request_timeout_ms;
    copy.backoff_min_ms = backoff_min_ms;
    copy.backoff_max_ms = backoff_max_ms;
    return copy;
  }
};

// Ok if `options.master` can be dialled at all: HOST:PORT, and loopback unless there is a secret.
// kInvalidArgument and *reason in one line otherwise.
Status CheckControlOptions(const ControlOptions& options, std::string* reason);

// A memory node's session. Nothing happens before Join(), which also refuses bad options.
// A Join waits `connect_timeout_ms` for the master's welcome, then for as long as it takes until
// there is a map.
std::unique_ptr<NodeMasterClient> MakeNodeMasterClient(ControlOptions options);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CONTROL_OPTIONS_H_
