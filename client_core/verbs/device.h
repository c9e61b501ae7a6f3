// VerbsDevice: an RDMA device of this host as one process uses it: its context, a protection
// domain, and the port and GID under which others reach it. VerbsMemory: memory that it knows.
//
// What cannot work is refused when the device is opened, with a line that says what was found and
// what to do. Any thread; a device outlives its memory and queue pairs.
#ifndef ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_
#define ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_

#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client_core/base/status.h"

namespace onetrip {

struct VerbsDeviceOptions {
  std::string name = {};  // empty: the only one there is
  int gid_index = -1;  // -1: the first of RoCE v2 that has an IPv4 address, else the first there is
};

class VerbsDevice {
 public:
  // *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsDevice>> Open(const VerbsDeviceOptions& options,
                                                   std::string* reason);
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;
  ~VerbsDevice();

  [[nodiscard]] ibv_context* context() const { return context_; }
  [[nodiscard]] ibv_pd* domain() const { return domain_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ibv_gid& gid() const { return gid_; }
  [[nodiscard]] int gid_index() const { return gid_index_; }
  [[nodiscard]] uint16_t lid() const { return port_.lid; }
  [[nodiscard]] bool is_ethernet() const { return port_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  [[nodiscard]] ibv_mtu mtu() const { return port_.active_mtu; }
  // READs and atomics that a queue pair may have under way, as the requester and as the responder.
  [[nodiscard]] uint8_t reads_max() const { return reads_max_; }
  // Memory windows of type 2.
  [[nodiscard]] bool has_windows() const { return has_windows_; }
  // Completions that a queue of them may hold.
  [[nodiscard]] uint32_t completions_max() const { return completions_max_; }
  // "rxe0, port 1, GID 1 ::ffff:10.0.0.1, MTU 1024, Ethernet"
  [[nodiscard]] std::string Describe() const;

  // Ends the process, with a line in the log, unless `error` is 0: the device was taken away, or
  // something outlives it. `what`: "ends a queue pair".
  void Demand(int error, const char* what) const;

  // False for a host that was looked for in vain a moment ago, and for a while behind any such
  // look: it blocks for a second, which other workers must not pay for.
  using Gid = std::array<uint8_t, 16>;
  [[nodiscard]] bool MayLookFor(const Gid& gid) const;
  void NoteSilent(const Gid& gid);

 private:
  VerbsDevice() = default;
  [[nodiscard]] Status CheckAbilities(std::string* reason);
  [[nodiscard]] Status ChooseGid(int wanted, std::string* reason);

  std::string name_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid gid_{};
  int gid_index_ = 0;
  uint8_t reads_max_ = 1;
  uint32_t completions_max_ = 1;
  bool has_windows_ = false;
  mutable std::mutex mutex_;
  std::map<Gid, std::chrono::steady_clock::time_point> silent_;  // since when; guarded by mutex_
  std::chrono::steady_clock::time_point last_silent_;            // guarded by mutex_
};

// Registered for as long as it lives.
class VerbsMemory {
 public:
  // kRemote: others READ, WRITE and change words; kWindows: through windows on it.
  enum class Use : uint8_t { kLocal, kRemote, kWindows };

  // *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsMemory>> Register(VerbsDevice& device, std::byte* start,
                                                       uint64_t bytes, Use use,
                                                       std::string* reason);
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;
  ~VerbsMemory();

  [[nodiscard]] std::byte* start() const { return static_cast<std::byte*>(region_->addr); }
  [[nodiscard]] uint64_t bytes() const { return region_->length; }
  [[nodiscard]] uint32_t local_key() const { return region_->lkey; }
  [[nodiscard]] uint32_t remote_key() const { return region_->rkey; }
  [[nodiscard]] ibv_mr* region() const { return region_; }

 private:
  VerbsMemory(const VerbsDevice& device, ibv_mr* region) : device_(device), region_(region) {}

  const VerbsDevice& device_;
  ibv_mr* const region_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_
