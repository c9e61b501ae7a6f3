// Form: what a key is held as, and what the store's operations do to a key that is held so. The
// slot's word says which form it is; the operations and the chores ask the form and know no form's
// bytes. A new form is a class of its own and a row in Forms. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_FORM_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_FORM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "client_core/coro/maybe_task.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/extents.h"
#include "client_core/kv/forms/orphan_inventory.h"
#include "client_core/kv/forms/register_read_beside.h"

namespace onetrip {

// The key that an operation works on, and what its search has found.
struct FoundKey {
  const Key& key;
  const IndexKey& index_key;
  uint64_t forgotten = 0;  // KvCore::Forgotten() from before the search
  SearchResult search{};
  RegisterReadBeside* beside = nullptr;  // a GET's read that went beside the search
};

// How an operation goes on behind a form's step.
enum class Step : uint8_t {
  kDone,
  kAgain,  // others were faster, or something is out of the way: search again
  kWait,   // the same, but others have to act first
};

// How much of a key its entry's first bytes tell to a scan.
enum class Sight : uint8_t { kThere, kGone, kAsk };

// Each step is one attempt on the entry that was found. REQUIRES of all that take a FoundKey: the
// operation has been at the slots, and pinned, since before the search.
class Form {
 public:
  virtual ~Form() = default;

  // GET. kDone with an empty `result`: the key was not there.
  virtual MaybeTask<Result<Step>> Get(RegisterOperation& operation, const FoundKey& found,
                                      ValueRange range, Room* room, ReadResult* result) = 0;
  // SET of `record` in the form of `draft`, whatever the key held. kDone: the draft is the
  // operation's no more.
  virtual Task<Result<Step>> Overwrite(RegisterOperation& operation, const FoundKey& found,
                                       const NewRecord& record, Draft* draft) = 0;
  // DEL. kDone: `existed` tells.
  virtual Task<Result<Step>> Delete(RegisterOperation& operation, const FoundKey& found,
                                    bool* existed) = 0;
  // A read-modify-write; the record form's also of a key that is not there. kOutOfMemory, or a turn
  // in `room`: the caller waits for it and begins anew.
  virtual Task<Result<Step>> Mutate(RegisterOperation& operation, const FoundKey& found,
                                    Mutation& mutation, Room* room, Draft* draft) = 0;
  // Takes the entry of a flushed keyspace out of the index; `gone`: it was this call.
  virtual Task<Status> Sweep(Operation& operation, Entry entry, bool* gone) = 0;
  // Names in `inventory` all memory that the entry leads to, beside what its word names.
  virtual Task<Status> NameMemory(OrphanInventory& inventory, Operation& operation,
                                  SlotWord word) = 0;
  // A scan's look at the first bytes of the entry. kThere: `facts` are filled; kAsk: only GET
  // tells.
  [[nodiscard]] virtual Sight See(const std::byte* image, uint64_t now_ms,
                                  KeyFacts* facts) const = 0;
};

// The form of every key that a slot names.
class Forms {
 public:
  Forms(Form& record, Form& register_form) : forms_{&record, &register_form} {}

  [[nodiscard]] Form& Of(SlotWord word) const { return *forms_[word.is_register() ? 1 : 0]; }
  // A key that is not there becomes a record where its value depends on that.
  [[nodiscard]] Form& OfMissing() const { return *forms_[0]; }

 private:
  std::array<Form*, 2> forms_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_FORM_H_
