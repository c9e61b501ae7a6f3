// MemoryBudget: a bound for the memory of a process that large values take at once.
//
// A command that needs memory takes a place in a queue (Turn) and gets a Share when it is the first
// there and its bytes fit, or when there is no share: a need above the whole budget goes alone. A
// command that has a share may not wait for another of the same budget, unless it is sure to get
// rid of the first meanwhile: as one in a reply, which the client takes or is closed. A share may
// wait to grow (Growth): one of them at a time gets what it needs though it does not fit, so that
// not all of them wait for each other. Any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_MEMORY_BUDGET_H_
#define ONETRIP_CLIENT_CORE_BASE_MEMORY_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace onetrip {

class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : bytes_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Bytes that its owner has; they go back with it.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::move(other.budget_)),
          bytes_(std::exchange(other.bytes_, 0)),
          beyond_(std::exchange(other.beyond_, false)) {}
    Share& operator=(Share other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      std::swap(beyond_, other.beyond_);
      return *this;
    }
    ~Share();

    [[nodiscard]] uint64_t bytes() const { return bytes_; }
    // Takes more, whether it fits or not: for needs that were not known before.
    void Grow(uint64_t bytes);
    // The same for memory that is kept already, for which no command can be made to wait. `budget`
    // may be null: a share of nothing.
    static Share TakeNow(std::shared_ptr<MemoryBudget> budget, uint64_t bytes);

   private:
    friend class MemoryBudget;
    Share(std::shared_ptr<MemoryBudget> budget, uint64_t bytes)
        : budget_(std::move(budget)), bytes_(bytes) {}
    std::shared_ptr<MemoryBudget> budget_;
    uint64_t bytes_ = 0;
    bool beyond_ = false;  // the one that may grow though it does not fit
  };

  // A place in the queue, until it goes.
  class Ticket {
   public:
    Ticket(std::shared_ptr<MemoryBudget> budget, uint64_t bytes);
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();
    // True: `share` has the bytes, and the place is given up. Else try again later.
    bool Take(Share* share);

   private:
    std::shared_ptr<MemoryBudget> budget_;
    const uint64_t bytes_;
  };

  // A place in the queue of shares that need more; no command gets a new share meanwhile.
  class Growth {
   public:
    // `share` is of a budget, and outlives it in its place.
    Growth(Share& share, uint64_t more_bytes);
    Growth(const Growth&) = delete;
    Growth& operator=(const Growth&) = delete;
    ~Growth();
    // True: the share has grown, and the place is given up. Else try again later.
    bool Take();

   private:
    Share& share_;
    MemoryBudget& budget_;
    const uint64_t more_bytes_;
  };

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t used_bytes() const;
  // How many wait for a share, or for more of theirs.
  [[nodiscard]] size_t waiting() const;

 private:
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  uint64_t used_bytes_ = 0;            // guarded by mutex_
  std::deque<const Ticket*> waiting_;  // guarded by mutex_
  std::deque<const Growth*> growing_;  // guarded by mutex_
  bool beyond_taken_ = false;          // guarded by mutex_; some share is the one that may
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_MEMORY_BUDGET_H_
