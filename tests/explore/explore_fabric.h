// ExploreFabric: a backend that sends nothing. It holds what one client has posted until the
// explorer, which keeps the memory nodes and the channels, says what came back.
#ifndef ONETRIP_TESTS_EXPLORE_EXPLORE_FABRIC_H_
#define ONETRIP_TESTS_EXPLORE_EXPLORE_FABRIC_H_

#include <functional>
#include <utility>
#include <vector>

#include "client_core/coro/executor.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

class ExploreFabric final : public Fabric {
 public:
  explicit ExploreFabric(Executor& executor, FabricTraits traits = {})
      : Fabric(executor.clock(), /*completes_inline=*/false, traits), executor_(executor) {}
  ~ExploreFabric() override {
    for (RoundTripPtr& round_trip : outstanding_) round_trip->Arm(0, {});
  }

  // Shows each round trip to `watch` when it is posted.
  void Watch(std::function<void(RoundTrip&)> watch) { watch_ = std::move(watch); }

  // Round trips posted and not yet completed, in the order they were posted.
  [[nodiscard]] std::vector<RoundTripPtr>& outstanding() { return outstanding_; }

  // The round trip at `index` has its results filled in: schedules the coroutine that waits for it.
  void Complete(size_t index) {
    const RoundTripPtr round_trip = outstanding_[index];
    outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(index));
    if (const std::coroutine_handle<> waiter = round_trip->NodeAnswered()) {
      executor_.Schedule(waiter);
    }
  }

  // Blocks are granted before an exploration begins; no client asks for more in it. The control
  // plane has `count` blocks of region 0 for this client, from `first` on; none unless this is
  // called.
  struct Grant {
    uint32_t block;
    SizeClass size_class;
  };
  void OwnBlocks(uint32_t first, uint32_t count) {
    next_block_ = first;
    end_block_ = first + count;
  }
  [[nodiscard]] const std::vector<Grant>& grants() const { return grants_; }

  Task<Result<ControlReply>> Control(NodeId /*node*/, ControlRequest request) override {
    ControlReply reply;
    if (request.kind != ControlRequest::Kind::kAlloc) co_return reply;
    const uint32_t blocks = request.size_class.blocks();
    if (next_block_ + blocks > end_block_) {
      co_return Status(StatusCode::kUnavailable, "no control plane in an exploration");
    }
    reply.block = GlobalAddr(0, next_block_ * kBlockBytes);
    grants_.push_back({next_block_, request.size_class});
    next_block_ += blocks;
    co_return reply;
  }

  // No node is lost in an exploration.
  void SetEvicted(NodeId /*node*/, bool /*evicted*/) override {}
  [[nodiscard]] bool Reaches(NodeId /*node*/) const override { return true; }

 protected:
  bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) override {
    if (round_trip->empty()) return true;
    if (watch_) watch_(*round_trip);
    // One answer stands for all nodes: the explorer knows when the last one came.
    round_trip->Arm(1, waiter);
    outstanding_.push_back(round_trip);
    return false;
  }

 private:
  Executor& executor_;
  std::vector<RoundTripPtr> outstanding_;
  std::function<void(RoundTrip&)> watch_;
  uint32_t next_block_ = 0;
  uint32_t end_block_ = 0;
  std::vector<Grant> grants_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPLORE_FABRIC_H_
