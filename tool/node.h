// `onetrip node add` and `onetrip node drain`: a cluster grows and shrinks under load; `onetrip
// node accept-loss`: it goes on without nodes that are lost for good.
#ifndef ONETRIP_TOOL_NODE_H_
#define ONETRIP_TOOL_NODE_H_

#include <cstdint>
#include <string>

#include "client_core/base/status.h"

namespace onetrip {

struct NodeOptions {
  std::string dir = "onetrip-cluster";
  std::string master;  // HOST:PORT; empty: of the cluster in `dir`
  std::string secret_file;
  std::string node;         // the master's number, or a name in `dir`; empty: none
  bool spare = false;       // starts one that holds nothing until another is lost or drained
  bool wait = true;         // until it is done, with a line for each step
  bool yes = false;         // to what would be lost
  uint64_t timeout_s = 30;  // for a process that is started or ended
};

// Both say what moves and, when nothing has for a while, what they wait for; kUnavailable: for a
// minute keys could not become records, since the pool is full.
//
// Has the master use the memory of `node`: add regions as far as there is room on enough nodes, and
// give it its share of them. Without a number, in a directory, starts one more memory node like the
// others first; with options.spare that is all. kInvalidArgument: it cannot be.
Status AddNode(const NodeOptions& options, std::string* reason);

// Has the master give the regions of `node` to others; when that is done and waited for, in a
// directory, ends its process. REQUIRES: options.node
// is not empty.
Status DrainNode(const NodeOptions& options, std::string* reason);

// Takes both wishes back: the node keeps what it has now.
Status KeepNode(const NodeOptions& options, std::string* reason);

// Says what is lost with the memory nodes that do not serve, and with options.yes has the cluster
// go on without them. kCorrupt: not without options.yes; kInvalidArgument: nothing is left to go on
// with; kUnavailable: nothing is lost for good.
Status AcceptLoss(const NodeOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_NODE_H_
