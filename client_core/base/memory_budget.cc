#include "client_core/base/memory_budget.h"

#include <algorithm>

namespace onetrip {

MemoryBudget::Share::~Share() {
  if (budget_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->used_bytes_ -= bytes_;
  if (beyond_) budget_->beyond_taken_ = false;
}

void MemoryBudget::Share::Grow(uint64_t bytes) {
  if (budget_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->used_bytes_ += bytes;
  bytes_ += bytes;
}

MemoryBudget::Share MemoryBudget::Share::TakeNow(std::shared_ptr<MemoryBudget> budget,
                                                 uint64_t bytes) {
  Share share(std::move(budget), 0);
  share.Grow(bytes);
  return share;
}

MemoryBudget::Ticket::Ticket(std::shared_ptr<MemoryBudget> budget, uint64_t bytes)
    : budget_(std::move(budget)), bytes_(bytes) {
  const std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->waiting_.push_back(this);
}

MemoryBudget::Ticket::~Ticket() {
  const std::lock_guard<std::mutex> lock(budget_->mutex_);
  std::erase(budget_->waiting_, this);
}

bool MemoryBudget::Ticket::Take(Share* share) {
  Share taken;
  {
    const std::lock_guard<std::mutex> lock(budget_->mutex_);
    const bool fits =
        budget_->used_bytes_ == 0 ||
        (bytes_ <= budget_->bytes_ && budget_->used_bytes_ <= budget_->bytes_ - bytes_);
    const bool is_next = budget_->growing_.empty() && !budget_->waiting_.empty() &&
                         budget_->waiting_.front() == this;
    if (!fits || !is_next) return false;
    budget_->waiting_.pop_front();
    budget_->used_bytes_ += bytes_;
    taken = Share(budget_, bytes_);
  }
  *share = std::move(taken);
  return true;
}

MemoryBudget::Growth::Growth(Share& share, uint64_t more_bytes)
    : share_(share), budget_(*share.budget_), more_bytes_(more_bytes) {
  const std::lock_guard<std::mutex> lock(budget_.mutex_);
  budget_.growing_.push_back(this);
}

MemoryBudget::Growth::~Growth() {
  const std::lock_guard<std::mutex> lock(budget_.mutex_);
  std::erase(budget_.growing_, this);
}

bool MemoryBudget::Growth::Take() {
  const std::lock_guard<std::mutex> lock(budget_.mutex_);
  const bool is_next = !budget_.growing_.empty() && budget_.growing_.front() == this;
  const bool fits = budget_.used_bytes_ + more_bytes_ <= budget_.bytes_;
  if (!share_.beyond_ && !is_next) return false;
  if (!share_.beyond_ && !fits && budget_.beyond_taken_) return false;
  if (!fits) share_.beyond_ = budget_.beyond_taken_ = true;
  std::erase(budget_.growing_, this);
  budget_.used_bytes_ += more_bytes_;
  share_.bytes_ += more_bytes_;
  return true;
}

uint64_t MemoryBudget::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_bytes_;
}

size_t MemoryBudget::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.size() + growing_.size();
}

}  // namespace onetrip
