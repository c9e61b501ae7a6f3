// Drafts: memory reserved for a record or a register, its bytes, and what becomes of both until a
// slot names them. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_DRAFT_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_DRAFT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/kv/core/core.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/register_codec.h"
#include "client_core/tree/page.h"

namespace onetrip {

// A page of a tree that no root names yet. The tree has its bytes.
struct NewPage {
  PageRef ref;
  std::string_view bytes;
};

// A value that lies in extents, all of them written, which no root names yet; or a collection's
// tree: its new pages, all written, and its root.
struct WrittenExtents {
  ExtentList list;  // a tree has the extents alone: its new pages
  uint64_t version = 0;
  std::string tree_root{};  // empty: it is no tree
  std::vector<NewPage> new_pages{};

  [[nodiscard]] uint64_t root_bytes() const {
    return tree_root.empty() ? ExtentListBytes(list.extents.size()) : tree_root.size();
  }
};

// Where the memory of a record comes from that ends a register: from where every write has it; or
// also, in a full pool, in the place of what the register gives up, if that lies in this worker's
// memory or the caller gives up as much at once; or also from the memory nodes' reserve.
enum class RecordRoom : uint8_t { kOrdinary, kInPlace, kReserve };

// Memory reserved for a record or a register, and its bytes, ready to be written to it.
struct Draft {
  // The operation's, which holds nothing but this draft; null: it may.
  Allocator::Holder* holder = nullptr;
  GlobalAddr addr;
  SizeClass size_class;
  std::optional<WrittenExtents> extents;  // only a root has them
  // What was reserved belongs to a slot now, or to the pool.
  void Forget() {
    addr = GlobalAddr();
    extents.reset();
  }
  // A read-modify-write has here the class of what it is about to give up, if that is enough for
  // what it takes; and until when it uses that, for the pool is full. 0: it is not, so far.
  SizeClass gives_up;
  uint64_t in_place_until_ns = 0;
  uint32_t lost_rounds = 0;  // others were faster than the write of a large value
  uint32_t bytes = 0;
  RoundTripPtr buffer;  // its arena holds the bytes
  std::byte* record = nullptr;

  bool is_register = false;
  // A register whose first value does not fit into it has the buffer of that, and the bytes of the
  // bulk WRITE to it.
  bool has_out = false;
  OutBuffer out;
  SizeClass out_class;
  uint32_t out_bytes = 0;
  std::byte* out_bulk = nullptr;
  RegisterShape shape;
  RegisterHeader header{};
  RegisterTimes times;
  MetaWord word;
  std::string value;  // with its head
};

class Drafts {
 public:
  explicit Drafts(KvCore& core) : core_(core) {}

  // draft.cc
  Task<Status> Reserve(Draft* draft);
  // Class and bytes of the record that holds `record`, or of the root of its extents.
  static void Measure(const Key& key, const NewRecord& record, Draft* draft);
  void Encode(const IndexKey& key, const NewRecord& record, Draft* draft);
  void AddWrites(RoundTrip& round_trip, const Draft& draft) const;
  [[nodiscard]] SlotWord WordFor(const IndexKey& key, const Draft& draft, bool blind) const;
  // Writes a draft, whose memory a slot has named, to fresh memory. Renews the operation's pin.
  Task<Status> Renew(Operation& operation, const IndexKey& key, Draft* draft);
  void AbandonObject(const Draft& draft) {
    if (draft.addr.is_null()) return;
    core_.allocator.Retire(draft.addr, draft.size_class);
    if (draft.has_out) core_.registers->cache.Retire(draft.out, draft.out_class);
  }
  void Abandon(const Draft& draft) {
    AbandonObject(draft);
    if (draft.extents) RetireAll(draft.extents->list);
  }
  void RetireAll(const ExtentList& list);
  // A search that has failed with `status`, as often as that is worth it; with the bytes of
  // `draft`, if there is one: no slot names them yet.
  Task<Status> FindAgain(Operation& operation, const IndexKey& key, ReadExtent extent,
                         const Draft* draft, Status status, SearchResult* search);

  // draft_register.cc
  Task<Status> ReserveRegister(const IndexKey& key, Draft* draft);
  void EncodeRegister(const IndexKey& key, Draft* draft);
  static void SetDraftValue(const NewRecord& record, Draft* draft);

  // in_place.cc: what may be changed in a full pool. Of what is given up for a record of class
  // `needed`, or by the end of a register; not valid: it is less than what is taken.
  [[nodiscard]] SizeClass GivenUpFor(const SearchResult& search, const Change& change,
                                     SizeClass needed) const;
  [[nodiscard]] static SizeClass GivenUpFor(const Key& key, SlotWord register_word,
                                            SizeClass thawed, const Change* change);
  Task<Status> TakeInPlace(Draft* draft);
  // The last attempt found no memory. Ok: another one may.
  Task<Status> GoOnInPlace(RegisterOperation& operation, Draft* draft);

 private:
  // True if the next write of a register at `addr` would find no buffers, and may have some yet.
  bool WantsBuffersBeside(const RegisterPlan& plan, GlobalAddr addr);

  KvCore& core_;
  std::array<uint64_t, SizeClass::kCount> not_beside_until_ns_{};  // by the buffers' class
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_DRAFT_H_
