// RegisterCache: the registers that a worker knows, by key: where they are, what it last saw there,
// and which buffers its own words still name (SWARM 5, the location cache).
//
// An entry is used without asking the index. That is safe because the memory of a register that has
// left the index is reused only after every worker has been told to Forget it. What had to make
// room for others rests (RestingRegisters) until it is used again. A key that had to leave that,
// too, costs a search; what its last word names is remembered for as long as that may be read.
// Single-threaded; one per worker. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_CACHE_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_CACHE_H_

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/sharded_map.h"
#include "client_core/base/slab.h"
#include "client_core/coro/sync.h"
#include "client_core/index/key_hash.h"
#include "client_core/kv/core/register_table.h"
#include "client_core/kv/core/resting_registers.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/register_layout.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/retired_registers.h"
#include "client_core/replication/safe_guess.h"

namespace onetrip {

// Buffers of this worker's words in one register: readable until a larger word is at a
// majority, or the register has left the index.
using LiveBuffers = absl::InlinedVector<OutBuffer, 2>;

// The first line has all that a GET needs.
struct alignas(64) CachedRegister {
  CachedRegister(const IndexKey& key, SlotWord word_in, const RegisterRef& ref,
                 SizeClass buffer_class_in, const GuessClock& clock, Executor& executor)
      : handle(ref, clock),
        keyspace(key.keyspace),
        key_bytes(key.bytes.begin(), key.bytes.end()),
        buffer_class(buffer_class_in),
        word(word_in),
        hash(key.hash),
        write_ended(executor) {}

  [[nodiscard]] std::string_view key() const { return {key_bytes.data(), key_bytes.size()}; }
  [[nodiscard]] bool IsOf(const IndexKey& other) const {
    return key() == other.bytes && keyspace == other.keyspace;
  }
  // The register has that key.
  void Prove(const IndexKey& proven) {
    if (!unproven) return;
    unproven = false;
    keyspace = proven.keyspace;
    key_bytes.assign(proven.bytes.begin(), proven.bytes.end());
  }

  RegisterHandle handle;
  KeyspaceId keyspace;
  uint32_t users = 0;
  bool forgotten : 1 = false;  // has left the index, or the cache
  bool gone : 1 = false;       // has left the index
  bool exhausted : 1 = false;  // there are no timestamps left
  bool unseen : 1 = false;     // by a look at all names: RegisterCache::BeginLook
  bool unproven : 1 = false;   // it rested, and nothing has shown yet that the key is not another's
  uint32_t position = 0;       // in the cache's ring
  absl::InlinedVector<char, 24> key_bytes;

  LiveBuffers live;
  const SizeClass buffer_class;
  const SlotWord word;  // as committed; a split may show it in another kind
  const KeyHash hash;
  Event write_ended;  // for writers that wait: one write at a time
  SealWord met_seal;  // if an operation of this worker has met one
};
static_assert(offsetof(RegisterHandle, lane_word) + sizeof(MetaWord) == 64);

class RegisterCache final : public RegisterListener {
 public:
  // All outlive it. Keeps about `entries_max` entries, and `resting_max` registers that rest.
  RegisterCache(WorkerContext& context, Allocator& allocator, GuessClock& clock,
                uint64_t entries_max, uint64_t resting_max);
  RegisterCache(const RegisterCache&) = delete;
  RegisterCache& operator=(const RegisterCache&) = delete;
  ~RegisterCache() override;

  // Keeps an entry in place while an operation uses it.
  class Use {
   public:
    Use(RegisterCache& cache, CachedRegister& entry) : cache_(&cache), entry_(&entry) {
      ++entry_->users;
    }
    Use(Use&& other) noexcept
        : cache_(other.cache_), entry_(std::exchange(other.entry_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (entry_ == nullptr) return;
      if (--entry_->users == 0 && entry_->forgotten) cache_->Destroy(entry_);
    }
    [[nodiscard]] CachedRegister& entry() const { return *entry_; }

   private:
    RegisterCache* cache_;
    CachedRegister* entry_;
  };

  // The entry of `key`, or null; one that is not proven is none.
  CachedRegister* Find(const IndexKey& key) {
    CachedRegister* entry = FindByHash(key.hash);
    return entry != nullptr && entry->IsOf(key) && !entry->unproven ? entry : nullptr;
  }
  // The register of a key of that hash that rests, or null. Good until another call but HandleOf()
  // and NoteWritten().
  RestingRegister* FindResting(const IndexKey& key);
  [[nodiscard]] RegisterHandle HandleOf(const RestingRegister& resting) const;
  // This worker's last word there, the largest in its lane.
  void NoteWritten(RestingRegister* resting, MetaWord word);
  // The entry, not proven, of what FindResting() finds; others may have to make room for it.
  CachedRegister* Wake(const IndexKey& key);
  // A register that rests, and has `key`, was used: after some uses it is waked, after more also if
  // another has to make room. To wake it costs as much as several reads.
  void NoteUse(RestingRegister* resting, const IndexKey& key) {
    if (++resting->uses % kUsesToWake != 0) return;
    if (HasRoom() || resting->uses >= kUsesToDisplace) Wake(key)->Prove(key);
  }
  // The entry of a key of that hash, which the caller compares with what it reads; or null.
  CachedRegister* FindByHash(KeyHash hash) {
    RegisterPlace* place = table_.Find(hash);
    if (place == nullptr || place->doubts != doubts_) return nullptr;
    place->used = true;
    return place->entry;
  }
  // Where it is, without a look at any entry; of one that rests, without an entry. False: neither.
  bool FindPlace(KeyHash hash, RegisterPlace* place);
  // Before FindPlace().
  void PrefetchPlace(KeyHash hash) const {
    table_.Prefetch(hash);
    resting_.Prefetch(hash);
  }

  // The entry of the register that `word` names, whose shape and header are given, made if need be.
  CachedRegister* Adopt(const IndexKey& key, SlotWord word, const RegisterHeader& header,
                        const RegisterShape& shape);

  // Takes note of a register that this worker has just made, whose first value names no buffer: it
  // rests until it is used. False: Adopt it, also as long as there is ample room.
  bool AdoptResting(const IndexKey& key, SlotWord word, const RegisterHeader& header,
                    const RegisterShape& shape, MetaWord lane_word);

  // RegisterListener. What this worker's words named is retired.
  void Forget(GlobalAddr addr) override;
  // Find finds no entry until Adopt has seen its register in the index again. And buffers in blocks
  // that this worker has opened since belong to no worker, or to their blocks' owners.
  void DoubtAll() override;

  // Returns true if no DEL of this worker has begun to seal the register, and now one does. A
  // worker's seals are all alike, so one DEL of it decides about a register; later ones help.
  bool BeginDelete(const RegisterRef& ref) {
    const auto [at, is_new] = deleting_.try_emplace(ref.addr.bits(), ref.incarnation);
    return is_new || std::exchange(at->second, ref.incarnation) != ref.incarnation;
  }

  // A buffer for a word of the register at `near`, from local memory; null when Refill is needed.
  OutBuffer TryTake(SizeClass size_class, GlobalAddr near);
  // Returns true if `count` buffers can be taken without Refill.
  [[nodiscard]] bool HasBuffers(SizeClass size_class, GlobalAddr near, size_t count) {
    return allocator_.HasBuffers(size_class, near, count);
  }
  // Gets local memory for TryTake. REQUIRES: the caller holds no pin.
  // `idle`: as of Allocator::Allocate.
  Task<Status> Refill(SizeClass size_class, GlobalAddr near, Allocator::Holder* idle = nullptr);
  // Back, unused: with the time of its last word, if that is still ahead.
  void PutBack(OutBuffer buffer, SizeClass size_class) {
    CHECK(!buffer.addr.is_null());
    if (buffer.used > used_floor_) late_[buffer.addr.bits()] = buffer.used;
    allocator_.FreeUnpublished(buffer.addr, size_class);
  }
  // Nothing that begins from now on can find it. `used` is the latest time of its words.
  void Retire(OutBuffer buffer, SizeClass size_class);
  // Retires what words of `entry` until `now` named, for a larger one is at a majority.
  void RetireLive(CachedRegister& entry, Ticks now) {
    RetireUntil(now, entry.buffer_class, &entry.live);
  }
  // A read has found `word` to be the largest at a majority.
  void NoteRead(CachedRegister& entry, MetaWord word) {
    if (entry.live.empty()) return;
    RetireLive(entry, Ticks{entry.handle.ref.birth.value + word.time() - 1});
  }
  void NoteRead(RestingRegister* resting, MetaWord word) {
    if (resting->live && resting->lane_word.time() < word.time()) RetireLive(resting);
  }
  // The same of the register, if it is known, for words before `now`, of which larger ones are in
  // every quorum.
  void RetireOvertaken(const RegisterRef& ref, Ticks now);
  // From BeginInheriting on the cache remembers what it forgets. `ref` has been in the index since
  // then, and a departed worker's word names the buffer, whose memory is this worker's now: it
  // gives it back as if the word were its own, at once if the register has left the index.
  void BeginInheriting() { forgotten_since_.emplace(); }
  void Inherit(const RegisterRef& ref, SizeClass buffer_class, OutBuffer buffer);
  void EndInheriting() { forgotten_since_.reset(); }

  // The unlinker of a register may not have lived to tell. Between BeginLook and the end of a look
  // at all that is named See says which registers are; those that were not seen, and had buffers of
  // this worker's when it began, are forgotten then. REQUIRES: no operation uses those any more.
  void BeginLook();
  void See(GlobalAddr addr, uint64_t incarnation);
  void SeeAny(GlobalAddr addr);  // whatever incarnation
  void ForgetUnseen();

  // For the end of a worker: retires the buffers of words that larger ones have overtaken, and of
  // registers that end meanwhile once they are retired. What its last words still hold stays. At
  // most until `until_ns`.
  Task<void> Settle(SafeGuess& safe_guess, Reclaimer& reclaimer, uint64_t until_ns);

  // After that: the buffers that words of this worker still name, or whose words may be read.
  [[nodiscard]] std::vector<GlobalAddr> KeptBuffers() const;

  // visit(address) of each buffer that this worker gives back in time.
  template <typename Visit>
  void ForEachLive(Visit visit) const {
    for (const CachedRegister* entry : ring_) {
      for (const OutBuffer& buffer : entry->live) visit(buffer.addr);
    }
    resting_.ForEach([&visit](const RestingRegister& resting) {
      if (resting.live) visit(resting.buffer());
    });
    kept_.ForEach([&visit](uint64_t /*addr*/, const Kept& kept) {
      for (const OutBuffer& buffer : kept.live) visit(buffer.addr);
    });
  }

  // The registers of which this worker gives back a buffer that `wanted` says is meant, among
  // `count` of those that it remembers from number `*next` on, which becomes the one behind them.
  // False: none was left.
  template <typename Wanted>
  bool FindByBuffers(size_t count, size_t* next, Wanted wanted, std::vector<RegisterRef>* found) {
    const auto look = [&](const RegisterRef& ref, const LiveBuffers& live) {
      const bool any = std::any_of(live.begin(), live.end(),
                                   [&](const OutBuffer& buffer) { return wanted(buffer.addr); });
      if (any) found->push_back(ref);
    };
    if (*next == 0) {
      for (const uint64_t addr : KeptAddrs()) {
        const Kept* kept = kept_.Find(addr);
        look(kept->ref, kept->live);
      }
    }
    const size_t end = std::min(ring_.size() + resting_.places(), *next + count);
    if (*next >= end) return false;
    for (; *next < end; ++*next) {
      if (*next < ring_.size()) {
        look(ring_[*next]->handle.ref, ring_[*next]->live);
      } else if (const RestingRegister* resting = resting_.At(*next - ring_.size());
                 resting != nullptr) {
        look(RefOf(*resting), LiveOf(*resting));
      }
    }
    return true;
  }

  // How often Forget was called.
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }
  [[nodiscard]] size_t size() const { return ring_.size() + resting_.size(); }

 private:
  friend class Use;
  static constexpr uint8_t kUsesToWake = 8;
  static constexpr uint8_t kUsesToDisplace = 64;  // a multiple of those
  // New registers are entries until those fill this part of their room.
  static constexpr uint64_t kShareOfNew = 16;

  struct Kept {
    LiveBuffers live;
    SizeClass buffer_class;
    RegisterRef ref;
    bool unseen = false;
  };
  // The entry of whatever register is there, or null.
  [[nodiscard]] CachedRegister* KnownAt(GlobalAddr addr) {
    CachedRegister** entry = by_addr_.Find(addr.bits());
    return entry == nullptr ? nullptr : *entry;
  }
  // An entry that is not known at that address, nor rests there.
  CachedRegister* MakeEntry(const IndexKey& key, SlotWord word, const RegisterRef& ref,
                            SizeClass buffer_class);
  CachedRegister* MakeEntry(const IndexKey& key, RestingRegister* resting);
  [[nodiscard]] static RegisterRef RefOf(const RestingRegister& resting);
  [[nodiscard]] static LiveBuffers LiveOf(const RestingRegister& resting);
  void RetireLive(RestingRegister* resting);
  // Remembers of an entry that has to go what is worth it: it rests, if all that matters fits
  // there.
  bool Rest(const CachedRegister& entry);
  void Keep(CachedRegister* entry);
  // As Forget, of whatever this worker knows of at that address: another register may be there now.
  void Drop(GlobalAddr addr);
  void LetGoOfForeign();
  [[nodiscard]] std::vector<uint64_t> KeptAddrs() const;
  void KeepResting(RestingRegister* resting);  // as one that neither is cached nor rests
  [[nodiscard]] RegisterPlace PlaceOf(CachedRegister* entry) const;
  [[nodiscard]] RegisterPlace PlaceOf(KeyHash hash, const RegisterRef& ref) const;
  void RetireUntil(Ticks now, SizeClass buffer_class, LiveBuffers* live);
  [[nodiscard]] bool HasRoom() { return ring_.size() < entries_max_ && entries_.HasRoom(); }
  void Remove(CachedRegister* entry);
  void Destroy(CachedRegister* entry);
  void MakeRoom();

  WorkerContext& context_;
  Allocator& allocator_;
  GuessClock& clock_;
  const uint64_t entries_max_;
  Slab<CachedRegister> entries_;
  RestingRegisters resting_;  // at addresses where there is no entry
  RegisterTable table_;
  ShardedMap<CachedRegister*> by_addr_;
  std::vector<CachedRegister*> ring_;  // swept by the clock hand
  size_t hand_ = 0;
  // Registers that neither are cached nor rest, of which this worker's last word may still be the
  // largest.
  ShardedMap<Kept> kept_;
  std::vector<GlobalAddr> left_;                                  // Settle
  std::optional<absl::flat_hash_set<uint64_t>> forgotten_since_;  // BeginInheriting
  // By address, the incarnation: until the register is forgotten.
  absl::flat_hash_map<uint64_t, uint64_t> deleting_;
  // Buffers whose words were ahead of the clock when they were retired, with their times; of all
  // others the times are at most `used_floor_`.
  absl::flat_hash_map<uint64_t, Ticks> late_;
  Ticks used_floor_;
  Ticks looked_at_clock_;  // Retire: the clock, at some time in the past
  uint64_t forgotten_ = 0;
  uint16_t doubts_ = 1;
  uint64_t in_use_ = 0;  // entries that were forgotten while they were used
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_CACHE_H_
