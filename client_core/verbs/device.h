// VerbsDevice: an RDMA device of this host as one process uses it: its context, a protection
// domain, and the port and GID under which others reach it. VerbsMemory: memory that it knows.
//
// What cannot work is refused when the device is opened, with a line that says what was found and
// what to do. Any thread; a device outlives its memory and queue pairs.
#ifndef ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_
#define ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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
  [[nodiscard]] ibv_mtu mtu() const { return port_.active_mtu; }
  // READs and atomics that a queue pair may have under way, as the requester and as the responder.
  [[nodiscard]] uint8_t reads_max() const { return reads_max_; }
  // "rxe0, port 1, GID 1 ::ffff:10.0.0.1, MTU 1024, Ethernet"
  [[nodiscard]] std::string Describe() const;

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
};

// Registered for as long as it lives.
class VerbsMemory {
 public:
  enum class Use : uint8_t { kLocal, kRemote };  // kRemote: others READ, WRITE and change words

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

 private:
  explicit VerbsMemory(ibv_mr* region) : region_(region) {}

  ibv_mr* const region_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_DEVICE_H_
