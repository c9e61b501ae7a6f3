// Writes that were cut short, and find that others have gone on (FUSEE Algorithm 4).
#include "client_core/base/planted_bug.h"
#include "client_core/replication/snapshot.h"

namespace onetrip {

// The end of a write that was cut short, and whose v_new is not in the primary, which holds `now`.
Task<Result<SlotOutcome>> Snapshot::EndOvertaken(Operation& operation, const SlotWrite& write,
                                                 const Places& places, CutShortNext next,
                                                 uint64_t now, Progress* progress) {
  if (next == CutShortNext::kTakeBack && !Planted(Bug::kCommitNotTakenBack)) {
    const Status status = co_await TakeBack(operation, write, places);
    if (!status.ok()) co_return status;
  }
  if (next == CutShortNext::kLost || now == write.v_old) co_return SlotOutcome{false, now};
  const Result<Fate> fate = co_await AskLogs(operation, write, now);
  if (!fate.ok()) co_return fate.status();
  if (*fate == Fate::kWon) co_return SlotOutcome{true, write.v_new};
  progress->overtaken = *fate == Fate::kUnknown;
  if (progress->overtaken) {
    co_return Status(StatusCode::kUnknownOutcome, "a node was lost amid a write");
  }
  co_return SlotOutcome{false, now};
}

// A backup that holds v_new while the primary holds neither it nor the claim has it from this write
// alone, and from no round that is under way: the word goes back to what it was.
Task<Status> Snapshot::TakeBack(Operation& operation, const SlotWrite& write,
                                const Places& places) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  for (int backup = 1; backup < places.count; ++backup) {
    round_trip->Cas(places.at[backup], write.v_new, write.v_old);
  }
  if (round_trip->empty()) co_return Status::Ok();
  co_return co_await Post(context_, operation, round_trip);
}

// The operation's pin keeps what was unlinked since it began, and so each record from the primary's
// back to v_old: none has been written anew.
Task<Result<Fate>> Snapshot::AskLogs(Operation& operation, const SlotWrite& write, uint64_t now) {
  constexpr int kRecordsMax = 8;
  // A register that has left the slot may be forgotten already: its writer must not keep it.
  const bool is_of_records =
      !SlotWord(write.v_old).is_register() && !SlotWord(write.v_new).is_register();
  const bool can_ask = !write.log.is_null() && is_of_records && operation.pin.is_held();
  if (!can_ask) co_return Fate::kUnknown;
  if (Planted(Bug::kOvertakenIsLost)) co_return Fate::kLost;
  SlotWord word(now);
  for (int asked = 0; asked < kRecordsMax; ++asked) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const uint64_t* log = nullptr;
    if (NamesRecord(word)) log = round_trip->ReadWord(context_.view().Locate(word.addr(), 0));
    if (log != nullptr) {
      const Status status = co_await Post(context_, operation, round_trip);
      if (!status.ok()) co_return status;
    }
    const FateByLog judged = JudgeLog(word, log == nullptr ? 0 : *log, write.v_old, write.v_new);
    if (judged.fate.has_value()) co_return *judged.fate;
    word = judged.before;
  }
  co_return Fate::kUnknown;
}

}  // namespace onetrip
