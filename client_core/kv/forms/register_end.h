// RegisterEnds: how registers end: DEL, and the change into a record (register_end.cc). Private to
// kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_END_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_END_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

// The result of a step on a register.
enum class RegisterResult : uint8_t {
  kDone,
  kExpired,  // the value read has had its time
  kAgain,    // the register has ended, or must: look the key up
};

// Returns true if the slot names the register that lies there.
inline bool NamesRegister(SlotWord word, GlobalAddr register_addr) {
  return !word.is_empty() && word.is_register() && word.addr() == register_addr;
}

// A change of the value with which a register ends: the record that takes the register's place
// holds what it comes to.
struct Replacement {
  Mutation& mutation;                // the last Apply() counts
  uint64_t growth = 0;               // bytes by which the value becomes longer, as far as is known
  bool blind = false;                // it is the same whatever was there
  const RecordView* read = nullptr;  // as it was read before the seals
  bool done = false;
};

// A SET as such a change.
class BlindWrite final : public Mutation {
 public:
  explicit BlindWrite(const NewRecord& record) : record_(record) {}
  Change Apply(const RecordView* /*current*/) override { return Change::Write(record_); }
  // The bytes that it has beyond the longest value that the register may hold.
  [[nodiscard]] uint64_t GrowthOver(const CachedRegister& entry) const {
    const uint64_t longest = entry.handle.ref.shape.value_bytes_max() - kKeyValueHeadBytes;
    return record_.bytes() - std::min(record_.bytes(), longest);
  }

 private:
  const NewRecord& record_;
};

class RegisterEnds {
 public:
  RegisterEnds(KvCore& core, Counters& counters, Drafts& drafts)
      : core_(core), counters_(counters), drafts_(drafts) {}

  // The slot names `entry`; something has sealed it, or has to. Ok: the slot may have changed, by
  // us or by others. REQUIRES: `operation` has been pinned since before its search. With `may_wait`
  // the pins may be given up to wait for memory. `reserved`, unless null or empty, is the record's
  // memory. kOutOfMemory: this worker has sealed nothing, unless it was sealed before, or came to a
  // longer value than what is `reserved` is for. `replacement`, unless null, is made if it can be
  // in this step.
  Task<Status> EndRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                           CachedRegister& entry, bool may_wait, Draft* reserved = nullptr,
                           Replacement* replacement = nullptr);
  // The class of the record that replaces a register. F is not known before the register is sealed:
  // for the value of `current`, or, if that is null or was not found, for the longest that it
  // holds; and for `growth` bytes more.
  static SizeClass ThawedClass(const IndexKey& key, const CachedRegister& entry,
                               const ReadResult* current = nullptr, uint64_t growth = 0);
  // An object of `size_class` for a record that ends the register of that word, when more comes
  // back than that takes.
  Task<Status> ReserveInPlaceOf(SlotWord register_word, SizeClass size_class, RecordRoom room,
                                Draft* draft);
  // A write that met a seal: whether it took effect before the register ended, or has to be done
  // again. REQUIRES: the operation has kept its pin, so the register is still there to be asked.
  Task<Result<RegisterResult>> ResolveInterrupted(RegisterOperation& operation, const IndexKey& key,
                                                  CachedRegister& entry,
                                                  const WriteOutcome& outcome);
  Task<Result<RegisterResult>> DeleteRegister(RegisterOperation& operation, Key key,
                                              const IndexKey& index_key, CachedRegister& entry,
                                              bool* existed);
  // In the background: records the end in the register, then frees the slot; the worker that frees
  // it gives the register's memory up.
  Task<void> FreeDropped(Quiesce::InFlightGuard& in_flight, Entry dropped, SizeClass size_class);
  // Ends the register of a flushed keyspace.
  Task<Status> SweepRegister(Quiesce::InFlightGuard& in_flight, Entry slot, bool* gone);

 private:
  Task<Result<FinalWord>> AwaitFinalWord(RegisterOperation& operation, const IndexKey& key,
                                         CachedRegister& entry);
  Task<Status> ThawRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                            CachedRegister& entry, const Tuple& f, Draft* draft,
                            Replacement* replacement);
  // The fields of the record that `replacement` makes of `last`. False: it makes none, or one that
  // finds no room in `room` bytes; the register is thawed then.
  bool Replace(const IndexKey& key, const RecordView& last, uint64_t room, Replacement& replacement,
               RecordFields* fields);
  // Returns the worker that is credited with the register's end, if the slot says so.
  Task<Result<std::optional<uint32_t>>> DropRegister(RegisterOperation& operation, Entry slot,
                                                     uint32_t credit, bool in_background);
  Task<void> FreeBeside(Quiesce::InFlightGuard in_flight, Entry dropped, SizeClass size_class);
  Task<Result<std::optional<uint32_t>>> CreditedDeleter(RegisterOperation& operation,
                                                        const IndexKey& key, CachedRegister& entry,
                                                        uint32_t credit);
  Task<void> UnmapDeleted(Quiesce::InFlightGuard in_flight, RegisterCache::Use use);

  KvCore& core_;
  Counters& counters_;
  Drafts& drafts_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_END_H_
