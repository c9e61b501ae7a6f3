#include "memnode/verbs_host.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace onetrip {

Result<std::unique_ptr<VerbsHost>> VerbsHost::Start(VerbsDevice& device, std::byte* base,
                                                    uint64_t bytes, uint64_t seed,
                                                    std::string* reason) {
  std::unique_ptr<VerbsHost> host(new VerbsHost(device, seed));
  const auto use = device.has_windows() ? VerbsMemory::Use::kWindows : VerbsMemory::Use::kRemote;
  auto memory = VerbsMemory::Register(device, base, bytes, use, reason);
  if (!memory.ok()) return memory.status();
  host->memory_ = std::move(memory.value());
  constexpr int kBinds = 64;
  host->completions_ = ibv_create_cq(device.context(), kBinds, nullptr, nullptr, 0);
  if (host->completions_ == nullptr) {
    *reason =
        "the RDMA device " + device.name() + " makes no completion queue: " + std::strerror(errno);
    return Status(StatusCode::kUnavailable, "no completion queue");
  }
  return host;
}

VerbsHost::~VerbsHost() {
  ways_.clear();
  if (completions_ != nullptr) device_.Demand(ibv_destroy_cq(completions_), "ends a queue");
}

Result<TcpQueuePairReply> VerbsHost::Welcome(WorkerId worker, const TcpQueuePair& peer,
                                             std::string* reason) {
  Fence(worker);
  constexpr int kMay = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  auto pair = VerbsQueuePair::Make(device_, completions_, VerbsDepth(), kMay, rng_, reason);
  if (!pair.ok()) return pair.status();
  const Status connected = pair.value()->Connect(peer, reason);
  if (!connected.ok()) return connected;
  TcpQueuePairReply reply{.pair = pair.value()->address(),
                          .base = reinterpret_cast<uint64_t>(memory_->start()),
                          .bytes = memory_->bytes(),
                          .key = memory_->remote_key(),
                          .made = 1};
  Way way{std::move(pair.value()), nullptr};
  if (device_.has_windows()) {
    auto window = VerbsWindow::Bind(device_, *memory_, *way.pair, completions_, reason);
    if (!window.ok()) return window.status();
    way.window = std::move(window.value());
    reply.key = way.window->key();
  }
  ways_[worker.value] = std::move(way);
  return reply;
}

}  // namespace onetrip
