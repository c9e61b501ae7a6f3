// RegisterForm: keys that are held as registers: GET and SET in one round trip, and making new ones
// (SWARM 5; PROTOCOLS, "One key, two forms"). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/form.h"
#include "client_core/kv/forms/record.h"
#include "client_core/kv/forms/register_end.h"

namespace onetrip {

// A write that has taken its buffers, and maybe posted its guess.
struct BegunWrite {
  WriteBuffers buffers;
  WriteOutcome outcome;
};

class RegisterForm final : public Form {
 public:
  RegisterForm(KvCore& core, Counters& counters, Drafts& drafts, Records& records,
               RegisterEnds& ends)
      : core_(core), counters_(counters), drafts_(drafts), records_(records), ends_(ends) {}

  MaybeTask<Result<Step>> Get(RegisterOperation& operation, const FoundKey& found, ValueRange range,
                              Room* room, ReadResult* result) override;
  Task<Result<Step>> Overwrite(RegisterOperation& operation, const FoundKey& found,
                               const NewRecord& record, Draft* draft) override;
  Task<Result<Step>> Delete(RegisterOperation& operation, const FoundKey& found,
                            bool* existed) override;
  Task<Result<Step>> Mutate(RegisterOperation& operation, const FoundKey& found, Mutation& mutation,
                            Room* room, Draft* draft) override;
  Task<Status> Sweep(Operation& operation, Entry entry, bool* gone) override;
  Task<Status> NameMemory(OrphanInventory& inventory, Operation& operation, SlotWord word) override;
  [[nodiscard]] Sight See(const std::byte* image, uint64_t now_ms, KeyFacts* facts) const override;

  // DEL of a key whose register this worker remembers, without a search; kAgain: it does not, or
  // the register has ended.
  Task<Result<Step>> DeleteKnown(RegisterOperation& operation, const Key& key,
                                 const IndexKey& index_key, bool* existed);

  [[nodiscard]] bool FitsRegister(const Key& key, const NewRecord& record) const;
  // The cache entry of the register that `search` found; null: search again. `forgotten` is
  // Forgotten() from before the search.
  CachedRegister* Adopt(const IndexKey& key, const SearchResult& search, uint64_t forgotten);
  // GET and SET of a known register where the fabric completes inline and nothing interferes.
  // Nothing suspends: no pin is needed. False: take the slow path, and go on with what was begun.
  bool GetFast(Key* key, ReadResult* result);
  bool SetFast(Key* key, const NewRecord& record, BegunWrite* begun);
  // GET of a register that rests; kAgain: of none, or it has ended.
  Task<Result<RegisterResult>> ReadResting(RegisterOperation& operation, const IndexKey& key,
                                           ReadResult* result);
  // `begun`: as of MaxRegister::Read.
  Task<Result<RegisterResult>> ReadRegister(RegisterOperation& operation, CachedRegister& entry,
                                            ReadResult* result, QuorumCall* begun = nullptr);
  // SET of a key that is a register, or becomes one. `as_record`: it stays a record.
  Task<Status> SetRegister(RegisterOperation& operation, Key key, const IndexKey& index_key,
                           const NewRecord& record, BegunWrite begun, Allocator::Holder& holder,
                           bool* as_record);

 private:
  struct RegisterSet;
  // The next four REQUIRE that the fabric completes inline. Fast GET and SET of a register that
  // rests:
  bool GetRestingFast(const IndexKey& key, ReadResult* result);
  bool SetRestingFast(const IndexKey& key, const NewRecord& record, BegunWrite* begun);
  // Reads its key.
  bool HasKeyInline(const RegisterRef& ref, const IndexKey& key);
  // The entry of `key`, also of one that rested.
  CachedRegister* FindInline(const IndexKey& key);
  Task<Result<Step>> GetFound(RegisterOperation& operation, const FoundKey& found,
                              ReadResult* result);
  Task<Result<Step>> DeleteEntry(RegisterOperation& operation, const Key& key,
                                 const IndexKey& index_key, CachedRegister& entry, bool* existed);
  Task<Status> NameBuffer(OrphanInventory& inventory, Operation& operation,
                          const NamedBuffer& named);
  bool FillResult(const RegisterRef& ref, Tuple& tuple, ReadResult* result) const;
  bool TryTakeBuffers(const CachedRegister& entry, WriteBuffers* buffers);
  // The value of a register that `record` makes, in the arena of `round_trip`.
  static std::span<const std::byte> AssembleValue(const NewRecord& record, RoundTrip& round_trip);
  Task<Result<RegisterResult>> WriteRegister(RegisterOperation& operation, const IndexKey& key,
                                             CachedRegister& entry, const NewRecord& record,
                                             BegunWrite begun, Allocator::Holder* idle);
  LiveBuffers PostedBuffers(CachedRegister& entry, const WriteBuffers& buffers,
                            const WriteOutcome& outcome);
  [[nodiscard]] bool HasMajority(const RegisterRef& ref);
  // Until a write has a majority; the caller's pins are given up. kUnavailable: there was none.
  Task<Status> AwaitMajority(RegisterOperation& operation, const CachedRegister& entry);
  Task<Status> TakeBuffers(RegisterOperation& operation, CachedRegister& entry,
                           WriteBuffers* buffers, Allocator::Holder* idle);
  Task<Result<RegisterResult>> SetThroughIndex(RegisterOperation& operation, Key key,
                                               const IndexKey& index_key, RegisterSet* set);
  // This worker has made the register of `draft`.
  void KeepRegister(const IndexKey& key, SlotWord word, const Draft& draft);

  KvCore& core_;
  Counters& counters_;
  Drafts& drafts_;
  Records& records_;
  RegisterEnds& ends_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_REGISTER_H_
