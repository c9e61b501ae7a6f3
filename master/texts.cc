#include "master/texts.h"

#include <cstdio>

namespace onetrip {

std::string ClusterText(uint64_t cluster) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(cluster));
  return text;
}

namespace master {

std::string AgentText(const Member& member) {
  return "agent " + std::to_string(member.id) + " (process " + std::to_string(member.info.pid) +
         " on " + member.info.host + ")";
}

std::string NodeText(size_t node) { return "memory node " + std::to_string(node); }

std::string NodesText(const std::vector<NodeId>& nodes) {
  std::string text = nodes.size() == 1 ? "memory node" : "memory nodes";
  for (size_t i = 0; i < nodes.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(nodes[i].value);
  }
  return text;
}

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace master
}  // namespace onetrip
