#include "client_core/control/session_loop.h"

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <utility>

namespace onetrip {
namespace {

gpr_timespec In(uint64_t wait_ns) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(static_cast<int64_t>(wait_ns), GPR_TIMESPAN));
}

}  // namespace

struct SessionLoop::Grpc {
  std::unique_ptr<grpc::CompletionQueue> queue = std::make_unique<grpc::CompletionQueue>();
  // Wakes the session thread. Set again, or given up, only when its event has been taken: one that
  // is given up while it goes off takes gRPC's count of it below zero. Guarded by mutex_.
  grpc::Alarm alarm;
};

SessionLoop::SessionLoop() : grpc_(std::make_unique<Grpc>()) {}
SessionLoop::~SessionLoop() = default;

grpc::CompletionQueue* SessionLoop::queue() { return grpc_->queue.get(); }

bool SessionLoop::Post(std::function<void()> fn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return false;
  posted_.push_back(std::move(fn));
  if (posted_.size() > 1 || std::exchange(alarm_set_, true)) return true;
  grpc_->alarm.Set(queue(), std::chrono::system_clock::now(), nullptr);
  return true;
}

void SessionLoop::RunPosted() {
  std::vector<std::function<void()>> running;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(running, posted_);
  }
  for (const std::function<void()>& fn : running) fn();
}

void SessionLoop::Wait(uint64_t wait_ns, const EventFn& on_event) {
  void* tag = nullptr;
  bool ok = false;
  if (grpc_->queue->AsyncNext(&tag, &ok, In(wait_ns)) != grpc::CompletionQueue::GOT_EVENT) return;
  if (tag != nullptr) return on_event(tag, ok);
  const std::lock_guard<std::mutex> lock(mutex_);
  alarm_set_ = false;
}

void SessionLoop::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

// The queue ends when the last event, the alarm's, has been taken.
bool SessionLoop::End(uint64_t wait_ns, const EventFn& on_event) {
  grpc_->queue->Shutdown();
  const gpr_timespec until = In(wait_ns);
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    switch (grpc_->queue->AsyncNext(&tag, &ok, until)) {
      case grpc::CompletionQueue::GOT_EVENT:
        if (tag != nullptr) on_event(tag, ok);
        continue;
      case grpc::CompletionQueue::SHUTDOWN:
        return true;
      case grpc::CompletionQueue::TIMEOUT:
        (void)grpc_->queue.release();
        return false;
    }
  }
}

}  // namespace onetrip
