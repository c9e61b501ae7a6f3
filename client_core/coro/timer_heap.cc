#include "client_core/coro/timer_heap.h"

#include "client_core/base/check.h"
#include "client_core/coro/executor.h"

namespace onetrip {

TimerHeap::~TimerHeap() {
  for (const Entry& entry : heap_) {
    entry.timer->heap_ = nullptr;
    entry.timer->Dropped();
  }
}

void TimerHeap::Place(size_t index, const Entry& entry) {
  heap_[index] = entry;
  entry.timer->index_ = index;
}

void TimerHeap::SiftUp(size_t index, Entry entry) {
  while (index > 0) {
    const size_t parent = (index - 1) / 2;
    if (!(entry < heap_[parent])) break;
    Place(index, heap_[parent]);
    index = parent;
  }
  Place(index, entry);
}

void TimerHeap::SiftDown(size_t index, Entry entry) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < entry)) break;
    Place(index, heap_[child]);
    index = child;
  }
  Place(index, entry);
}

void TimerHeap::Add(Timer* timer, uint64_t time_ns) {
  CHECK(timer->heap_ == nullptr);
  timer->heap_ = this;
  timer->time_ns_ = time_ns;
  timer->sequence_ = next_sequence_++;
  const Entry entry{time_ns, timer->sequence_, timer};
  heap_.push_back(entry);
  SiftUp(heap_.size() - 1, entry);
  if (timer->index_ == 0) executor_.OnEarliestTimerChanged();
}

void TimerHeap::Remove(Timer* timer) {
  CHECK(timer->heap_ == this);
  timer->heap_ = nullptr;
  const size_t index = timer->index_;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  // The last entry takes the hole, and may have to move either way from there.
  if (index > 0 && last < heap_[(index - 1) / 2]) {
    SiftUp(index, last);
  } else {
    SiftDown(index, last);
  }
}

bool TimerHeap::FireOne(uint64_t now_ns) {
  if (EarliestNs() > now_ns) return false;
  Timer* timer = heap_.front().timer;
  Remove(timer);
  timer->Fire();
  return true;
}

size_t TimerHeap::FireDue(uint64_t now_ns) {
  const uint64_t end_sequence = next_sequence_;
  size_t fired = 0;
  // A timer added by one that fires waits for the next turn, even if it is due: a coroutine that
  // sleeps zero nanoseconds in a loop must not keep the sockets waiting.
  while (!heap_.empty() && heap_.front().sequence < end_sequence && FireOne(now_ns)) ++fired;
  return fired;
}

}  // namespace onetrip
