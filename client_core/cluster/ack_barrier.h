// AckBarrier: does something once, when all who are waited for have acknowledged.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_ACK_BARRIER_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_ACK_BARRIER_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace onetrip {

// One thread makes it, calls Expect() and then Close(), and may let it go afterwards; acks are
// given on any thread. `all` is called on the thread of the last ack, or in Close().
class AckBarrier {
 private:
  struct Count {
    explicit Count(std::function<void()> all) : on_all(std::move(all)) {}
    void Down() {
      if (open.fetch_sub(1, std::memory_order_acq_rel) == 1) on_all();
    }
    std::atomic<size_t> open = 1;  // acks that are owed, and one until Close()
    const std::function<void()> on_all;
  };

 public:
  // An ack that one of them owes. It is given once; one that goes away without is given by that,
  // for its owner is gone and has nothing under way.
  class Ack {
   public:
    explicit Ack(std::shared_ptr<Count> count) : count_(std::move(count)) {}
    Ack(const Ack&) = delete;
    Ack& operator=(const Ack&) = delete;
    ~Ack() { Give(); }

    // One thread at a time.
    void Give() {
      if (const std::shared_ptr<Count> count = std::exchange(count_, nullptr)) count->Down();
    }

   private:
    std::shared_ptr<Count> count_;
  };

  explicit AckBarrier(std::function<void()> all)
      : count_(std::make_shared<Count>(std::move(all))) {}

  // One more is waited for. REQUIRES: not after Close().
  [[nodiscard]] std::shared_ptr<Ack> Expect() {
    count_->open.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<Ack>(count_);
  }
  // All who are waited for have been named.
  void Close() { count_->Down(); }

 private:
  std::shared_ptr<Count> count_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_ACK_BARRIER_H_
