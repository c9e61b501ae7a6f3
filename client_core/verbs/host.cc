#include "client_core/verbs/host.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "client_core/base/check.h"

namespace onetrip {

Result<std::unique_ptr<VerbsHost>> VerbsHost::Start(VerbsDevice& device, std::byte* base,
                                                    uint64_t bytes, uint64_t seed,
                                                    std::string* reason) {
  std::unique_ptr<VerbsHost> host(new VerbsHost(device, seed));
  auto memory = VerbsMemory::Register(device, base, bytes, VerbsMemory::Use::kRemote, reason);
  if (!memory.ok()) return memory.status();
  host->memory_ = std::move(memory.value());
  host->completions_ = ibv_create_cq(device.context(), 1, nullptr, nullptr, 0);
  if (host->completions_ == nullptr) {
    *reason =
        "the RDMA device " + device.name() + " makes no completion queue: " + std::strerror(errno);
    return Status(StatusCode::kUnavailable, "no completion queue");
  }
  return host;
}

VerbsHost::~VerbsHost() {
  pairs_.clear();
  if (completions_ != nullptr) CHECK(ibv_destroy_cq(completions_) == 0);
}

Result<VerbsTarget> VerbsHost::Welcome(WorkerId worker, const VerbsAddress& address,
                                       std::string* reason) {
  Fence(worker);
  constexpr int kMay = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  auto pair = VerbsQueuePair::Make(device_, completions_, VerbsDepth(), kMay, rng_, reason);
  if (!pair.ok()) return pair.status();
  const Status connected = pair.value()->Connect(address, reason);
  if (!connected.ok()) return connected;
  VerbsTarget target;
  target.address = pair.value()->address();
  target.base = reinterpret_cast<uint64_t>(memory_->start());
  target.bytes = memory_->bytes();
  target.key = memory_->remote_key();
  pairs_[worker.value] = std::move(pair.value());
  return target;
}

}  // namespace onetrip
