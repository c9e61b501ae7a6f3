#include "client_core/verbs/device.h"

#include <arpa/inet.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/verbs/device_check.h"

namespace onetrip {
namespace {

constexpr uint8_t kPort = 1;
// More than any device keeps under way costs nothing but a field of the queue pair.
constexpr int kReadsMax = 128;

constexpr Status kNoDevice(StatusCode::kInvalidArgument, "no such RDMA device");
constexpr Status kUnable(StatusCode::kInvalidArgument, "the RDMA device cannot do what is needed");

// The devices of this host, for as long as one chooses among them.
class DeviceList {
 public:
  DeviceList() : devices_(ibv_get_device_list(&count_)) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (devices_ != nullptr) ibv_free_device_list(devices_);
  }
  [[nodiscard]] int count() const { return devices_ == nullptr ? 0 : count_; }
  [[nodiscard]] ibv_device* at(int i) const { return devices_[i]; }
  [[nodiscard]] std::string Names() const {
    std::string names;
    for (int i = 0; i < count(); ++i) {
      names += (i == 0 ? "" : ", ") + std::string(ibv_get_device_name(at(i)));
    }
    return names;
  }
  // Null if there is none of that name; *reason says so.
  [[nodiscard]] ibv_device* Choose(const std::string& name, std::string* reason) const {
    if (count() == 0) {
      *reason = "this host has no RDMA device: load its driver (ibv_devices lists what is there)";
      return nullptr;
    }
    if (name.empty() && count() == 1) return at(0);
    for (int i = 0; i < count(); ++i) {
      if (name == ibv_get_device_name(at(i))) return at(i);
    }
    *reason = name.empty() ? "there are several RDMA devices, name one of " + Names()
                           : "there is no RDMA device " + name + "; there are " + Names();
    return nullptr;
  }

 private:
  int count_ = 0;
  ibv_device** devices_;
};

bool IsZero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw),
                     [](uint8_t byte) { return byte == 0; });
}

bool IsOfIpv4(const ibv_gid& gid) {
  static constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), gid.raw);
}

std::string TextOf(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
}

uint32_t BytesOf(ibv_mtu mtu) { return 128U << static_cast<uint32_t>(mtu); }

}  // namespace

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::Open(const VerbsDeviceOptions& options,
                                                       std::string* reason) {
  const DeviceList devices;
  ibv_device* const chosen = devices.Choose(options.name, reason);
  if (chosen == nullptr) return kNoDevice;
  std::unique_ptr<VerbsDevice> device(new VerbsDevice);
  device->name_ = ibv_get_device_name(chosen);
  device->context_ = ibv_open_device(chosen);
  if (device->context_ == nullptr) {
    *reason = "cannot open the RDMA device " + device->name_ + ": " + std::strerror(errno) +
              "; may this user open /dev/infiniband/uverbs*?";
    return kUnable;
  }
  Status status = device->CheckAbilities(reason);
  if (status.ok()) status = device->ChooseGid(options.gid_index, reason);
  if (!status.ok()) return status;
  device->domain_ = ibv_alloc_pd(device->context_);
  if (device->domain_ == nullptr) {
    *reason = "the RDMA device " + device->name_ + " has no protection domain left";
    return kUnable;
  }
  status = CheckAtomics(*device, reason);
  if (!status.ok()) return status;
  return device;
}

VerbsDevice::~VerbsDevice() {
  if (domain_ != nullptr) Demand(ibv_dealloc_pd(domain_), "ends a protection domain");
  if (context_ != nullptr) ibv_close_device(context_);
}

Status VerbsDevice::CheckAbilities(std::string* reason) {
  ibv_device_attr able{};
  if (ibv_query_device(context_, &able) != 0 || ibv_query_port(context_, kPort, &port_) != 0) {
    *reason = "the RDMA device " + name_ + " does not say what it can do: " + std::strerror(errno);
    return kUnable;
  }
  if (able.atomic_cap == IBV_ATOMIC_NONE) {
    *reason = "the RDMA device " + name_ + " has no atomic operations; take another one";
    return kUnable;
  }
  if (port_.state != IBV_PORT_ACTIVE) {
    *reason = "port 1 of the RDMA device " + name_ + " is " + ibv_port_state_str(port_.state) +
              ", not active: is the link up?";
    return kUnable;
  }
  reads_max_ = static_cast<uint8_t>(
      std::clamp(std::min(able.max_qp_rd_atom, able.max_qp_init_rd_atom), 1, kReadsMax));
  constexpr unsigned kWindows = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  has_windows_ = (able.device_cap_flags & kWindows) != 0 && able.max_mw > 0;
  completions_max_ = static_cast<uint32_t>(std::max(able.max_cqe, 1));
  return Status::Ok();
}

Status VerbsDevice::ChooseGid(int wanted, std::string* reason) {
  if (wanted >= 0) {
    gid_index_ = wanted;
    const bool is_there = wanted < port_.gid_tbl_len &&
                          ibv_query_gid(context_, kPort, wanted, &gid_) == 0 && !IsZero(gid_);
    if (is_there) return Status::Ok();
    *reason = "the RDMA device " + name_ + " has no GID at index " + std::to_string(wanted) +
              "; ibv_devinfo -v lists them";
    return kNoDevice;
  }
  bool any = false;
  for (int i = 0; i < port_.gid_tbl_len; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_, kPort, static_cast<uint32_t>(i), &entry, 0) != 0) continue;
    if (IsZero(entry.gid)) continue;
    const bool is_best = entry.gid_type == IBV_GID_TYPE_ROCE_V2 && IsOfIpv4(entry.gid);
    if (any && !is_best) continue;
    gid_ = entry.gid;
    gid_index_ = i;
    any = true;
    if (is_best) break;
  }
  if (any) return Status::Ok();
  *reason = "the RDMA device " + name_ + " has no GID: has its network interface an address?";
  return kNoDevice;
}

std::string VerbsDevice::Describe() const {
  return name_ + ", port 1, GID " + std::to_string(gid_index_) + " " + TextOf(gid_) + ", MTU " +
         std::to_string(BytesOf(port_.active_mtu)) + ", " +
         (is_ethernet() ? "Ethernet" : "InfiniBand");
}

void VerbsDevice::Demand(int error, const char* what) const {
  if (error == 0) [[likely]] {
    return;
  }
  LogError("the RDMA device " + name_ + " no longer " + what + ": " + std::strerror(error) +
           "; was it taken away?");
  CHECK(error == 0);
}

bool VerbsDevice::MayLookFor(const Gid& gid) const {
  // Shorter than the master bears with those that are late behind a fault of all.
  constexpr auto kSilence = std::chrono::seconds(2);
  constexpr auto kRest = std::chrono::seconds(1);
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = silent_.find(gid);
  return found == silent_.end() || (now - found->second >= kSilence && now - last_silent_ >= kRest);
}

void VerbsDevice::NoteSilent(const Gid& gid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_silent_ = std::chrono::steady_clock::now();
  silent_[gid] = last_silent_;
}

Result<std::unique_ptr<VerbsMemory>> VerbsMemory::Register(VerbsDevice& device, std::byte* start,
                                                           uint64_t bytes, Use use,
                                                           std::string* reason) {
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (use == Use::kRemote) {
    access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  } else if (use == Use::kWindows) {
    access |= IBV_ACCESS_MW_BIND;
  }
  ibv_mr* const region = ibv_reg_mr(device.domain(), start, bytes, access);
  if (region != nullptr) return std::unique_ptr<VerbsMemory>(new VerbsMemory(device, region));
  const int error = errno;
  *reason = "cannot register " + std::to_string(bytes >> 10) + " KiB with the RDMA device " +
            device.name() + ": " + std::strerror(error);
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (error == ENOMEM && is_limited) {
    *reason += "; this process may lock " + std::to_string(limit.rlim_cur >> 10) +
               " KiB of memory: raise LimitMEMLOCK= of its unit, or ulimit -l";
  }
  return Status(StatusCode::kOutOfMemory, "the memory cannot be registered");
}

VerbsMemory::~VerbsMemory() { device_.Demand(ibv_dereg_mr(region_), "lets go of memory"); }

}  // namespace onetrip
