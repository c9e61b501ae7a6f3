#include "client_core/cluster/quiesce.h"

#include <utility>

namespace onetrip {
namespace {

constexpr uint64_t kLookAgainNs = 50'000;
constexpr uint64_t kReachAgainNs = 1'000'000;
// Whoever waits for another worker's step waits for microseconds, unless that worker is gone or
// stands still itself.
constexpr uint64_t kImpatientNs = 20'000'000;

}  // namespace

void Quiesce::Mailbox::Post(std::function<void(Quiesce&)> fn) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (hold_ == nullptr) return;
    if (executor_ != nullptr) {
      // *hold_ may die before the turn comes; it dies on that very thread.
      return executor_->Post([mailbox = hold_->mailbox_, fn = std::move(fn)] {
        if (mailbox->hold_ != nullptr) fn(*mailbox->hold_);
      });
    }
  }
  fn(*hold_);
}

Quiesce::Quiesce(LoopExecutor& executor) : Quiesce(static_cast<Executor&>(executor)) {
  mailbox_->executor_ = &executor;
}

Quiesce::~Quiesce() {
  CHECK(first_ == nullptr);
  CHECK(running_ == 0 && in_slots_ == 0);
  still_timer_.Cancel();
  reach_timer_.Cancel();
  const std::lock_guard<std::mutex> lock(mailbox_->mutex_);
  mailbox_->executor_ = nullptr;
  mailbox_->hold_ = nullptr;
}

Task<bool> Quiesce::InFlightGuard::EnterSlots(uint64_t deadline_ns) {
  while (!TryEnterSlots()) {
    if (hold_->executor_.NowNs() >= deadline_ns) co_return false;
    co_await Waiter(*hold_, deadline_ns);
  }
  co_return true;
}

bool Quiesce::InFlightGuard::TryEnterSlots() {
  if (in_slots_ || hold_ == nullptr) return true;
  if (hold_->kind_ == HoldKind::kSlots && !Planted(Bug::kNoHold)) return false;
  in_slots_ = true;
  ++hold_->in_slots_;
  return true;
}

Task<bool> Quiesce::Wait(uint64_t deadline_ns) {
  while (held()) {
    if (executor_.NowNs() >= deadline_ns) co_return false;
    co_await Waiter(*this, deadline_ns);
  }
  co_return true;
}

void Quiesce::Hold(HoldKind kind, std::function<void()> still) {
  if (!Planted(Bug::kNoHold)) kind_ = kind;
  since_ns_ = executor_.NowNs();
  still_ = std::move(still);
  is_still_ = false;
  LookWhetherStill();
}

bool Quiesce::is_impatient() const {
  return held() && kind_ != HoldKind::kStart && executor_.NowNs() >= since_ns_ + kImpatientNs;
}

bool Quiesce::IsStill() const {
  if (!held() || kind_ == HoldKind::kStart) return true;
  if (kind_ == HoldKind::kSlots) return in_slots_ == 0;
  return running_ == 0 && (duties_ == nullptr || duties_->quiet());
}

void Quiesce::LookWhetherStill() {
  still_timer_.Cancel();
  if (!still_) return;
  if (IsStill()) {
    is_still_ = held();
    std::exchange(still_, nullptr)();
  } else {
    executor_.timers().Add(&still_timer_, executor_.NowNs() + kLookAgainNs);
  }
}

void Quiesce::SetDuties(WorkerDuties* duties) {
  duties_ = duties;
  if (duties != nullptr) return;
  awaited_.clear();
  reach_timer_.Cancel();
}

void Quiesce::AwaitReach(NodeId node, std::function<void()> reached) {
  awaited_.emplace_back(node, std::move(reached));
  LookWhoIsReached();
}

void Quiesce::LookWhoIsReached() {
  reach_timer_.Cancel();
  std::erase_if(awaited_, [this](const auto& awaited) {
    const bool reached = duties_ != nullptr && duties_->Reaches(awaited.first);
    if (reached) awaited.second();
    return reached;
  });
  if (awaited_.empty()) return;
  executor_.timers().Add(&reach_timer_, executor_.NowNs() + kReachAgainNs);
}

void Quiesce::Release() {
  kind_.reset();
  still_ = nullptr;
  is_still_ = false;
  still_timer_.Cancel();
  while (first_ != nullptr) {
    Waiter* waiter = first_;
    waiter->Unlink();
    waiter->Cancel();
    executor_.Schedule(waiter->handle_);
  }
}

void Quiesce::Waiter::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  queued_ = true;
  previous_ = hold_.last_;
  (hold_.last_ != nullptr ? hold_.last_->next_ : hold_.first_) = this;
  hold_.last_ = this;
  hold_.executor_.timers().Add(this, deadline_ns_);
}

void Quiesce::Waiter::Fire() {
  Unlink();
  handle_.resume();
}

void Quiesce::Waiter::Unlink() {
  if (!std::exchange(queued_, false)) return;
  (previous_ != nullptr ? previous_->next_ : hold_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : hold_.last_) = previous_;
  next_ = previous_ = nullptr;
}

}  // namespace onetrip
