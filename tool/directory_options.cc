#include "tool/directory_options.h"

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <optional>

#include "client_core/base/parameter_values.h"
#include "tool/commands.h"

namespace onetrip {
namespace {

Status Refuse(std::string* reason, std::string what) {
  *reason = std::move(what);
  return Status(StatusCode::kInvalidArgument, "options of up");
}

std::vector<ProcessRecord> Named(const std::string& kind, size_t count) {
  std::vector<ProcessRecord> processes(count);
  for (size_t i = 0; i < count; ++i) {
    processes[i].name = kind + "-" + std::to_string(i);
    processes[i].number = i;
  }
  return processes;
}

Status CheckShape(const ClusterRecord& record, std::string* reason) {
  if (record.shape.persistent && record.shape.fabric == "verbs") {
    return Refuse(reason,
                  "memory in files is not served over RDMA; give --fabric verbs to a cluster "
                  "without --persistent, or another --fabric");
  }
  if (record.shape.port + record.agents.size() <= 65536) return Status::Ok();
  return Refuse(reason, "there are no " + std::to_string(record.agents.size()) + " ports from " +
                            std::to_string(record.shape.port) + " on; give a smaller --port");
}

uint16_t DefaultNumber(const char* flag) {
  return static_cast<uint16_t>(std::atoi(UpDefault(flag)));
}

bool IsSameSize(const std::string& a, const std::string& b) {
  uint64_t a_bytes = 0;
  uint64_t b_bytes = 0;
  return ParseSize(a, &a_bytes) && ParseSize(b, &b_bytes) && a_bytes == b_bytes;
}

template <std::integral T>
std::string Text(T value) {
  return std::to_string(value);
}
std::string Text(const std::string& value) { return value; }

// Compares one option with what the cluster has; the first that differs is told.
class Comparison {
 public:
  Comparison(const std::string& dir, bool runs) : dir_(dir), runs_(runs) {}

  // Options that memory or the master's state depend on.
  template <typename T>
  void Fixed(const char* flag, const std::optional<T>& given, const T& has, const char* instead) {
    if (!given.has_value() || *given == has) return;
    Tell(flag, Text(*given), Text(has), instead);
  }
  // Options that new processes may have otherwise than those before.
  template <typename T>
  void Changeable(const char* flag, const std::optional<T>& given, T* has) {
    if (!given.has_value() || *given == *has) return;
    if (!runs_) {
      *has = *given;
      return;
    }
    Tell(flag, Text(*given), Text(*has), "stop it first, by: onetrip down --dir " + dir_);
  }
  void Tell(const char* flag, const std::string& given, const std::string& has,
            const std::string& instead) {
    if (!differs_.empty()) return;
    differs_ = std::string(flag) + (given.empty() ? "" : " ") + given +
               " differs from the cluster in " + dir_ + ", which has " + has + "; " + instead;
  }

  [[nodiscard]] const std::string& differs() const { return differs_; }

 private:
  const std::string& dir_;
  const bool runs_;
  std::string differs_;
};

}  // namespace

Result<ClusterRecord> DescribeCluster(const UpOptions& options, const ClusterRecord* earlier,
                                      std::string* reason) {
  const uint16_t replicas_default = DefaultNumber("replicas");
  ClusterRecord record;
  if (earlier != nullptr) record.shape = earlier->shape;
  ClusterShape& shape = record.shape;
  const uint16_t nodes = earlier != nullptr ? shape.nodes : DefaultNumber("memnodes");
  const size_t agents = earlier != nullptr ? earlier->agents.size() : DefaultNumber("agents");
  shape.nodes = options.memnodes.value_or(nodes);
  const bool keeps_replicas = earlier != nullptr && shape.nodes == nodes && shape.replicas != 0;
  shape.replicas = options.replicas.value_or(
      keeps_replicas ? shape.replicas : std::min(shape.nodes, replicas_default));
  shape.fabric = options.fabric.value_or(shape.fabric);
  shape.device = options.device.value_or(shape.device);
  shape.gid_index = options.gid_index.value_or(shape.gid_index);
  shape.memory = options.memory.value_or(shape.memory.empty() ? UpDefault("memory") : shape.memory);
  shape.engine = options.engine.value_or(shape.engine);
  shape.threads = options.threads.value_or(shape.threads);
  shape.port = options.port.value_or(shape.port != 0 ? shape.port : DefaultNumber("port"));
  shape.bind = options.bind.value_or(shape.bind);
  // Without the flag, memory that was not kept in files before is not kept in them now.
  shape.persistent = options.persistent || (earlier != nullptr && earlier->shape.persistent);
  record.master.name = "master";
  record.memnodes = Named("memnode", shape.nodes);
  record.memnodes_started = shape.nodes;
  record.agents = Named("agent", options.agents.value_or(static_cast<uint16_t>(agents)));
  if (shape.nodes < shape.replicas) {
    return Refuse(reason, Text(shape.replicas) + " replicas need as many memory nodes; give " +
                              "--memnodes " + Text(shape.replicas) + " or fewer --replicas");
  }
  const Status sound = CheckShape(record, reason);
  if (!sound.ok()) return sound;
  return record;
}

Status ReconcileOptions(const UpOptions& options, bool runs, ClusterRecord* record,
                        std::string* reason) {
  ClusterShape& shape = record->shape;
  // An older version did not note these: they are as the options say now, or as by default.
  if (shape.memory.empty()) shape.memory = options.memory.value_or(UpDefault("memory"));
  if (shape.replicas == 0) {
    shape.replicas = options.replicas.value_or(std::min(shape.nodes, DefaultNumber("replicas")));
  }
  if (shape.port == 0 && !record->agents.empty()) {
    const std::string& address = record->agents.front().address;
    shape.port = static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1));
  }
  Comparison comparison(options.dir, runs);
  const char* const kKept = "leave it away, or choose another --dir";
  if (options.persistent && !shape.persistent) {
    comparison.Tell("--persistent", "", "its memory in no file",
                    "onetrip down removes it, then up may be given --persistent");
  }
  comparison.Fixed("--replicas", options.replicas, shape.replicas, kKept);
  if (options.memory.has_value() && !IsSameSize(*options.memory, shape.memory)) {
    comparison.Fixed("--memory", options.memory, shape.memory, kKept);
  }
  comparison.Fixed("--memnodes", options.memnodes, static_cast<uint16_t>(record->memnodes.size()),
                   "leave it away, and change that by `onetrip node add` and `onetrip node drain`");
  auto agents = static_cast<uint16_t>(record->agents.size());
  comparison.Changeable("--agents", options.agents, &agents);
  comparison.Changeable("--fabric", options.fabric, &shape.fabric);
  comparison.Changeable("--device", options.device, &shape.device);
  comparison.Changeable("--gid-index", options.gid_index, &shape.gid_index);
  comparison.Changeable("--port", options.port, &shape.port);
  comparison.Changeable("--bind", options.bind, &shape.bind);
  comparison.Changeable("--engine", options.engine, &shape.engine);
  comparison.Changeable("--threads", options.threads, &shape.threads);
  if (!comparison.differs().empty()) return Refuse(reason, comparison.differs());
  if (agents != record->agents.size()) record->agents = Named("agent", agents);
  return CheckShape(*record, reason);
}

}  // namespace onetrip
