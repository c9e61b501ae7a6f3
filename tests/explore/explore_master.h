// ExploreMaster: a master that has one view at a time and grants nothing.
#ifndef ONETRIP_TESTS_EXPLORE_EXPLORE_MASTER_H_
#define ONETRIP_TESTS_EXPLORE_EXPLORE_MASTER_H_

#include <memory>
#include <optional>
#include <utility>

#include "client_core/cluster/master_client.h"
#include "client_core/memory/worker_context.h"
#include "tests/explore/scope.h"

namespace onetrip {

class ExploreMaster final : public MasterClient {
 public:
  explicit ExploreMaster(std::shared_ptr<const View> view, int64_t clock_offset_us = 0)
      : view_(std::move(view)) {
    clock_offset_us_.store(clock_offset_us, std::memory_order_relaxed);
    view_version_.store(view_->epoch.value, std::memory_order_release);
  }
  [[nodiscard]] std::shared_ptr<const View> view() const override { return view_; }
  // For tests that change the view under way.
  void Commit(std::shared_ptr<const View> view) {
    view_ = std::move(view);
    view_version_.store(view_->epoch.value, std::memory_order_release);
  }
  Task<Result<Membership>> Join(Quiesce& /*hold*/) override { co_return kRefused; }
  Task<Status> Leave(Quiesce& /*hold*/, Membership /*membership*/) override { co_return kRefused; }
  Task<Status> FlushKeyspaces(Quiesce& /*hold*/, std::optional<uint32_t> /*database*/) override {
    co_return kRefused;
  }
  Task<Status> SwapKeyspaces(Quiesce& /*hold*/, uint32_t /*first*/, uint32_t /*second*/) override {
    co_return kRefused;
  }

 private:
  static constexpr Status kRefused{StatusCode::kUnavailable, "no master in an exploration"};
  std::shared_ptr<const View> view_;
};

// One region, the same bytes of `replicas` nodes, the first of which is the primary.
inline std::shared_ptr<const View> MakeExploreView(int replicas) {
  auto view = std::make_shared<View>();
  view->epoch = Epoch{1};
  view->replicas = replicas;
  view->node_count = static_cast<uint16_t>(replicas);
  RegionPlacement region{};
  for (int i = 0; i < replicas; ++i) region.nodes[i] = NodeId{static_cast<uint16_t>(i)};
  view->regions.push_back(region);
  return view;
}

// Bounds under which each client takes every way of waiting, and none by the clock alone.
inline DataPathOptions ExploreDataPathOptions() {
  DataPathOptions options;
  options.wait_polls_max = 1;
  // A node that is lost stays so.
  options.node_loss_retries_max = 0;
  options.op_timeout_ms = kOpTimeoutMs;
  options.location_cache_bytes = 64;
  options.expiry_rest_us = 0;
  return options;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPLORE_MASTER_H_
