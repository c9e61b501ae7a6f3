#include "client_core/verbs/device_check.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "client_core/base/rng.h"
#include "client_core/base/secret.h"
#include "client_core/verbs/queue_pair.h"

namespace onetrip {
namespace {

constexpr Status kUnable(StatusCode::kInvalidArgument, "the RDMA device cannot do what is needed");

struct QueueEnd {
  void operator()(ibv_cq* queue) const { ibv_destroy_cq(queue); }
};

// The two ends, and two words: the one that is changed, and where its former value goes.
struct Trial {
  explicit Trial(VerbsDevice& on) : device(on) {}
  Status Connect(std::string* reason);
  Status Add(uint64_t addend, std::string* reason);

  VerbsDevice& device;
  alignas(64) std::array<uint64_t, 2> words{};
  std::unique_ptr<ibv_cq, QueueEnd> completions;
  std::unique_ptr<VerbsMemory> memory;
  std::unique_ptr<VerbsQueuePair> from;
  std::unique_ptr<VerbsQueuePair> to;
};

Status Trial::Connect(std::string* reason) {
  completions.reset(ibv_create_cq(device.context(), 4, nullptr, nullptr, 0));
  if (completions == nullptr) {
    *reason =
        "the RDMA device " + device.name() + " makes no completion queue: " + std::strerror(errno);
    return kUnable;
  }
  auto known = VerbsMemory::Register(device, reinterpret_cast<std::byte*>(words.data()),
                                     sizeof(words), VerbsMemory::Use::kRemote, reason);
  if (!known.ok()) return known.status();
  memory = std::move(known.value());
  uint64_t seed = 0;
  FillRandom(std::as_writable_bytes(std::span(&seed, 1)));
  Rng rng(seed);
  for (auto* pair : {&from, &to}) {
    auto made = VerbsQueuePair::Make(device, completions.get(), VerbsDepth(),
                                     IBV_ACCESS_REMOTE_ATOMIC, rng, reason);
    if (!made.ok()) return made.status();
    *pair = std::move(made.value());
  }
  const Status status = from->Connect(to->address(), reason);
  return status.ok() ? to->Connect(from->address(), reason) : status;
}

Status Trial::Add(uint64_t addend, std::string* reason) {
  ibv_sge place{reinterpret_cast<uint64_t>(&words[1]), sizeof(words[1]), memory->local_key()};
  ibv_send_wr request{};
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &place;
  request.num_sge = 1;
  request.wr.atomic.remote_addr = reinterpret_cast<uint64_t>(words.data());
  request.wr.atomic.rkey = memory->remote_key();
  request.wr.atomic.compare_add = addend;
  ibv_send_wr* bad = nullptr;
  int error = from->Post(&request, &bad);
  ibv_wc done{};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int count = 0;
  while (error == 0 && (count = ibv_poll_cq(completions.get(), 1, &done)) == 0) {
    if (std::chrono::steady_clock::now() > end) error = ETIMEDOUT;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (error == 0 && count == 1 && done.status == IBV_WC_SUCCESS) return Status::Ok();
  *reason = "the RDMA device " + device.name() + " does not reach itself over its GID " +
            std::to_string(device.gid_index()) + ": " +
            (error != 0 ? std::strerror(error) : ibv_wc_status_str(done.status)) +
            "; is that the GID of an address of this host? give another --gid-index";
  return kUnable;
}

}  // namespace

Status CheckAtomics(VerbsDevice& device, std::string* reason) {
  Trial trial(device);
  Status status = trial.Connect(reason);
  constexpr uint64_t kFirst = 0x0102030405060708;
  if (status.ok()) status = trial.Add(kFirst, reason);
  if (status.ok()) status = trial.Add(1, reason);
  if (!status.ok()) return status;
  if (trial.words[0] == kFirst + 1 && trial.words[1] == kFirst) return status;
  *reason = "the RDMA device " + device.name() +
            " gives the results of atomic operations in another byte order; take another one";
  return kUnable;
}

}  // namespace onetrip
