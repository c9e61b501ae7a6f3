// EventJournal: a coordinator whose last event can be taken back, without a copy of it per event.
//
// The coordinator is deterministic: the same events at the same times make the same of it. So the
// journal keeps one copy from some events ago, and the events since. To take one back it goes back
// to that copy and lets the others happen again.
#ifndef ONETRIP_MASTER_EVENT_JOURNAL_H_
#define ONETRIP_MASTER_EVENT_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "master/coordinator.h"

namespace onetrip {

// An event that can happen to a coordinator, as a value; the fields are those of its methods.
struct CoordinatorEvent {
  struct Attends {
    StreamId stream = 0;
    MemberHello hello;
  };
  struct Says {
    StreamId stream = 0;
    MemberMessage message;
  };
  struct Heard {
    StreamId stream = 0;
  };
  struct InHandshake {
    uint64_t member = 0;
  };
  struct Closed {
    StreamId stream = 0;
    bool has_ended = false;
  };
  struct Tick {};
  struct Stop {};

  uint64_t now_us = 0;
  std::variant<Attends, Says, Heard, InHandshake, Closed, Tick, Stop> what;
};

// One thread.
class EventJournal {
 public:
  // Events between two copies: they share the cost of a copy, and taking one back takes as long as
  // these together.
  static constexpr size_t kEventsMax = 64;

  explicit EventJournal(Coordinator coordinator);

  // The effects of the coordinator's start, once.
  CoordinatorEffects TakeStartEffects();
  // Lets the event happen, and gives its effects. The result is the verdict on who attends.
  Attendance Apply(CoordinatorEvent event, CoordinatorEffects* effects);
  // The last event has not happened. REQUIRES: Apply() since the start and since the last Revert().
  void Revert();

  [[nodiscard]] const Coordinator& coordinator() const { return now_; }

 private:
  void KeepCopy();

  Coordinator now_;
  Coordinator copy_;                      // from before events_
  std::vector<CoordinatorEvent> events_;  // that have happened to now_ since
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_EVENT_JOURNAL_H_
