// Holders: the operations of one worker that may hold memory which nothing names yet, counted by
// generations: the worker learns from them when all have ended that held something at some moment
// (PROTOCOLS, "Open blocks").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_HOLDERS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_HOLDERS_H_

#include <array>
#include <cstdint>

namespace onetrip {

class Holders {
 public:
  // The scope of an operation that allocates: it begins before the first allocation and ends when
  // all that was allocated is named or given back. No block is opened meanwhile in which the
  // operation may hold an object that other workers cannot see. `holders` outlives it.
  class Holder {
   public:
    explicit Holder(Holders& holders) : holders_(holders) { Resume(); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() { Pause(); }

    // Between the two the operation holds nothing, and is not waited for.
    void Pause() { --*count_; }
    void Resume() {
      count_ = &holders_.counts_[holders_.generation_ % 2];
      ++*count_;
    }

   private:
    Holders& holders_;
    uint32_t* count_ = nullptr;
  };

  [[nodiscard]] bool any() const { return counts_[0] + counts_[1] > 0; }
  // A name for the present moment, for HaveEndedSince().
  [[nodiscard]] uint64_t generation() const { return generation_; }
  // True when all have ended that held something in `generation` or before.
  [[nodiscard]] bool HaveEndedSince(uint64_t generation) const {
    return generation_ >= generation + 2;
  }
  // The next generation begins if no holder of the last one is left.
  void Advance() {
    const bool last_is_gone = counts_[(generation_ + 1) % 2] == 0;
    if (last_is_gone) ++generation_;
  }

 private:
  std::array<uint32_t, 2> counts_{};  // by the generation, modulo 2, in which they began
  uint64_t generation_ = 1;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_HOLDERS_H_
