// RetryAcrossViews: when and how often a step that lost a memory node is begun again. At the latest
// under the view without that node it succeeds. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_RETRY_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_RETRY_H_

#include <algorithm>
#include <cstdint>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class RetryAcrossViews {
 public:
  // Both outlive it. The operation's deadline bounds the retries, with node_loss_retries_max.
  RetryAcrossViews(WorkerContext& context, Operation& operation)
      : context_(context),
        operation_(operation),
        wait_ns_(uint64_t{context.options.wait_timer_us} * 1000) {}

  // Returns true if a step that ended with `status`, and has changed nothing that others see, is
  // worth another try.
  [[nodiscard]] bool IsWorth(const Status& status) const {
    return MayHaveLostNode(status) && retries_ < context_.options.node_loss_retries_max &&
           !OutOfTime(context_, operation_);
  }
  // Waits a little, each time twice as long, up to wait_timer_max_us.
  Task<void> Wait() {
    ++retries_;
    co_await context_.executor.SleepFor(wait_ns_);
    wait_ns_ =
        std::min<uint64_t>(2 * wait_ns_, uint64_t{context_.options.wait_timer_max_us} * 1000);
  }

 private:
  WorkerContext& context_;
  Operation& operation_;
  uint32_t retries_ = 0;
  uint64_t wait_ns_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_RETRY_H_
