#include "master/event_journal.h"

#include <utility>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

Attendance LetHappen(const CoordinatorEvent& event, Coordinator* coordinator) {
  if (const auto* attends = std::get_if<CoordinatorEvent::Attends>(&event.what)) {
    return coordinator->Attend(event.now_us, attends->stream, attends->hello);
  }
  if (const auto* says = std::get_if<CoordinatorEvent::Says>(&event.what)) {
    coordinator->OnMessage(event.now_us, says->stream, says->message);
  } else if (const auto* heard = std::get_if<CoordinatorEvent::Heard>(&event.what)) {
    coordinator->OnHeard(event.now_us, heard->stream);
  } else if (const auto* greets = std::get_if<CoordinatorEvent::InHandshake>(&event.what)) {
    coordinator->OnHandshake(greets->member);
  } else if (const auto* closed = std::get_if<CoordinatorEvent::Closed>(&event.what)) {
    coordinator->OnStreamClosed(event.now_us, closed->stream, closed->has_ended);
  } else if (std::holds_alternative<CoordinatorEvent::Tick>(event.what)) {
    coordinator->OnTick(event.now_us);
  } else {
    coordinator->OnStop(event.now_us);
  }
  return {};
}

}  // namespace

EventJournal::EventJournal(Coordinator coordinator) : now_(std::move(coordinator)) {
  events_.reserve(kEventsMax);
}

CoordinatorEffects EventJournal::TakeStartEffects() {
  CoordinatorEffects effects = now_.TakeEffects();
  KeepCopy();
  return effects;
}

Attendance EventJournal::Apply(CoordinatorEvent event, CoordinatorEffects* effects) {
  if (events_.size() >= kEventsMax) KeepCopy();
  Attendance attendance = LetHappen(event, &now_);
  *effects = now_.TakeEffects();
  events_.push_back(std::move(event));
  return attendance;
}

void EventJournal::Revert() {
  CHECK(!events_.empty());
  events_.pop_back();
  now_ = copy_;
  for (const CoordinatorEvent& event : events_) {
    LetHappen(event, &now_);
    (void)now_.TakeEffects();
  }
  // An event that failed once may fail again at once: then no event is to be done again.
  KeepCopy();
}

void EventJournal::KeepCopy() {
  copy_ = now_;
  events_.clear();
}

}  // namespace onetrip
