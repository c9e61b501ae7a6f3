#include "client_core/kv/core/register_cache.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

// Times so little ahead of the clock do not count as late: a millisecond.
constexpr uint64_t kLateTicks = 1'000'000 >> kTickShift;

}  // namespace

RegisterCache::RegisterCache(WorkerContext& context, Allocator& allocator, GuessClock& clock,
                             uint64_t entries_max, uint64_t resting_max)
    : context_(context),
      allocator_(allocator),
      clock_(clock),
      entries_max_(std::max<uint64_t>(entries_max, 1)),
      resting_(resting_max) {}

RegisterCache::~RegisterCache() {
  CHECK(in_use_ == 0);
  for (CachedRegister* entry : ring_) entries_.Delete(entry);
}

CachedRegister* RegisterCache::Adopt(const IndexKey& key, SlotWord word,
                                     const RegisterHeader& header, const RegisterShape& shape) {
  if (CachedRegister* entry = KnownAt(word.addr()); entry != nullptr) {
    if (entry->handle.ref.incarnation == header.incarnation) {
      entry->Prove(key);
      // Another key of the same hash may have taken its place.
      table_.Put(PlaceOf(entry));
      return entry;
    }
    // It left the index and came back before this worker was told.
    Drop(word.addr());
  }
  if (RestingRegister* resting = resting_.FindAt(word.addr()); resting != nullptr) {
    if (resting->incarnation == header.incarnation) return MakeEntry(key, resting);
    Drop(word.addr());
  }
  RegisterRef ref;
  ref.addr = word.addr();
  ref.incarnation = header.incarnation;
  ref.birth = Ticks{header.birth_ticks};
  ref.shape = shape;
  CachedRegister* const entry = MakeEntry(key, word, ref, SizeClass(header.buffer_class));
  if (Kept* kept = kept_.Find(ref.addr.bits()); kept != nullptr) {
    if (kept->ref.incarnation == ref.incarnation) {
      entry->live = std::move(kept->live);
    } else {
      for (const OutBuffer& buffer : kept->live) Retire(buffer, kept->buffer_class);
    }
    kept_.Erase(ref.addr.bits());
  }
  return entry;
}

bool RegisterCache::AdoptResting(const IndexKey& key, SlotWord word, const RegisterHeader& header,
                                 const RegisterShape& shape, MetaWord lane_word) {
  const uint64_t addr = word.addr().bits();
  if (ring_.size() < entries_max_ / kShareOfNew || !resting_.HasRoom() || by_addr_.Contains(addr) ||
      kept_.Contains(addr) || resting_.FindAt(word.addr()) != nullptr ||
      table_.Find(key.hash) != nullptr) {
    return false;
  }
  return resting_.Put({.hash = key.hash,
                       .word = word,
                       .incarnation = header.incarnation,
                       .birth = Ticks{header.birth_ticks},
                       .lane_word = lane_word,
                       .key_bytes = static_cast<uint16_t>(shape.key_bytes),
                       .doubts = doubts_,
                       .lanes = static_cast<uint8_t>(shape.lanes),
                       .buffer_class = header.buffer_class});
}

CachedRegister* RegisterCache::MakeEntry(const IndexKey& key, SlotWord word, const RegisterRef& ref,
                                         SizeClass buffer_class) {
  if (!HasRoom()) MakeRoom();
  CachedRegister* entry = entries_.New(key, word, ref, buffer_class, clock_, context_.executor);
  entry->position = static_cast<uint32_t>(ring_.size());
  ring_.push_back(entry);
  table_.Put(PlaceOf(entry));
  by_addr_[ref.addr.bits()] = entry;
  return entry;
}

CachedRegister* RegisterCache::MakeEntry(const IndexKey& key, RestingRegister* resting) {
  const RestingRegister woken = *resting;
  resting_.Erase(resting);
  CachedRegister* const entry =
      MakeEntry(key, woken.word, RefOf(woken), SizeClass(woken.buffer_class));
  entry->handle.lane_word = woken.lane_word;
  entry->live = LiveOf(woken);
  entry->unseen = woken.unseen;
  return entry;
}

RestingRegister* RegisterCache::FindResting(const IndexKey& key) {
  RestingRegister* const resting = resting_.Find(key.hash);
  if (resting == nullptr || resting->doubts != doubts_ || resting->key_bytes != key.bytes.size() ||
      table_.Find(key.hash) != nullptr) {
    return nullptr;
  }
  return resting;
}

RegisterHandle RegisterCache::HandleOf(const RestingRegister& resting) const {
  RegisterHandle handle(RefOf(resting), clock_);
  handle.lane_word = resting.lane_word;
  return handle;
}

void RegisterCache::NoteWritten(RestingRegister* resting, MetaWord word) {
  RetireLive(resting);
  resting->lane_word = word;
  resting->live = true;
}

CachedRegister* RegisterCache::Wake(const IndexKey& key) {
  RestingRegister* const resting = FindResting(key);
  if (resting == nullptr) return nullptr;
  CachedRegister* const entry = MakeEntry(key, resting);
  entry->unproven = true;
  return entry;
}

bool RegisterCache::FindPlace(KeyHash hash, RegisterPlace* place) {
  if (const RegisterPlace* found = table_.Find(hash); found != nullptr) {
    *place = *found;
    return true;
  }
  const RestingRegister* const resting = resting_.Find(hash);
  if (resting == nullptr) return false;
  *place = PlaceOf(hash, RefOf(*resting));
  return true;
}

RegisterRef RegisterCache::RefOf(const RestingRegister& resting) {
  RegisterRef ref;
  ref.addr = resting.addr();
  ref.incarnation = resting.incarnation;
  ref.birth = resting.birth;
  ref.shape = ShapeOfRegister(resting.word.size_class(), resting.lanes, resting.key_bytes,
                              SizeClass(resting.buffer_class));
  return ref;
}

LiveBuffers RegisterCache::LiveOf(const RestingRegister& resting) {
  LiveBuffers live;
  if (resting.live) live.push_back({resting.buffer(), resting.written()});
  return live;
}

void RegisterCache::RetireLive(RestingRegister* resting) {
  if (!resting->live) return;
  Retire({resting->buffer(), resting->written()}, SizeClass(resting->buffer_class));
  resting->live = false;
}

bool RegisterCache::Rest(const CachedRegister& entry) {
  const RegisterHandle& handle = entry.handle;
  const RegisterPlace* place = table_.Find(entry.hash);
  const bool is_its = place != nullptr && place->entry == &entry;
  if (!is_its || entry.exhausted || handle.writing || !entry.met_seal.open()) return false;
  RestingRegister resting{.hash = entry.hash,
                          .word = entry.word,
                          .incarnation = handle.ref.incarnation,
                          .birth = handle.ref.birth,
                          .lane_word = handle.lane_word,
                          .key_bytes = static_cast<uint16_t>(handle.ref.shape.key_bytes),
                          .doubts = place->doubts,
                          .lanes = static_cast<uint8_t>(handle.ref.shape.lanes),
                          .buffer_class = entry.buffer_class.index(),
                          .live = !entry.live.empty(),
                          .unseen = entry.unseen};
  if (entry.live.size() > 1) return false;
  if (resting.live) {
    const OutBuffer& buffer = entry.live.front();
    const uint64_t time = buffer.used.value - resting.birth.value;
    if (time == 0 || time >= kRegisterTimeEnd) return false;
    // Another worker's word may be in the lane by now.
    const MetaWord own(static_cast<RegisterTime>(time), buffer.addr);
    if (own != handle.lane_word.AsGuess()) resting.lane_word = own;
  }
  return resting_.Put(resting);
}

RegisterPlace RegisterCache::PlaceOf(CachedRegister* entry) const {
  RegisterPlace place = PlaceOf(entry->hash, entry->handle.ref);
  place.entry = entry;
  return place;
}

RegisterPlace RegisterCache::PlaceOf(KeyHash hash, const RegisterRef& ref) const {
  const int in_place = InNOut::InPlaceReplica(ref.addr, context_.view().LiveReplicas(ref.addr));
  return {.hash = hash,
          .addr = ref.addr,
          .bytes = static_cast<uint16_t>(ref.shape.register_bytes()),
          .in_place_from = static_cast<uint16_t>(ref.shape.in_place_offset()),
          .doubts = doubts_,
          .in_place_replica = static_cast<uint8_t>(in_place),
          .used = true};
}

void RegisterCache::Remove(CachedRegister* entry) {
  const RegisterPlace* place = table_.Find(entry->hash);
  if (place != nullptr && place->entry == entry) table_.Erase(entry->hash);
  by_addr_.Erase(entry->handle.ref.addr.bits());
  ring_[entry->position] = ring_.back();
  ring_[entry->position]->position = entry->position;
  ring_.pop_back();
  clock_.Forget(entry->handle.times);
  entry->forgotten = true;
  entry->write_ended.Set();
  if (entry->users == 0) {
    entries_.Delete(entry);
  } else {
    ++in_use_;
  }
}

void RegisterCache::Destroy(CachedRegister* entry) {
  --in_use_;
  // Written to by an operation that ended after the entry had to go.
  for (const OutBuffer& buffer : entry->live) {
    if (entry->gone) {
      Retire(buffer, entry->buffer_class);
    } else {
      Kept& kept = kept_[entry->handle.ref.addr.bits()];
      kept.buffer_class = entry->buffer_class;
      kept.ref = entry->handle.ref;
      kept.live.push_back(buffer);
    }
  }
  clock_.Forget(entry->handle.times);
  entries_.Delete(entry);
}

void RegisterCache::Forget(GlobalAddr addr) {
  if (forgotten_since_.has_value()) forgotten_since_->insert(addr.bits());
  Drop(addr);
}

void RegisterCache::Drop(GlobalAddr addr) {
  ++forgotten_;
  deleting_.erase(addr.bits());
  if (CachedRegister* entry = KnownAt(addr); entry != nullptr) {
    for (const OutBuffer& buffer : entry->live) Retire(buffer, entry->buffer_class);
    entry->live.clear();
    entry->gone = true;
    Remove(entry);
  }
  RestingRegister* const resting = resting_.FindAt(addr);
  if (resting != nullptr && !Planted(Bug::kRestingNotForgotten)) {
    RetireLive(resting);
    resting_.Erase(resting);
  }
  if (const Kept* kept = kept_.Find(addr.bits()); kept != nullptr) {
    for (const OutBuffer& buffer : kept->live) Retire(buffer, kept->buffer_class);
    kept_.Erase(addr.bits());
  }
}

// An operation that has searched meanwhile searches again, as for one that is forgotten.
void RegisterCache::DoubtAll() {
  if (allocator_.opener().TakeHasOpened() && !Planted(Bug::kNotLetGo)) LetGoOfForeign();
  ++forgotten_;
  if (++doubts_ != 0) return;
  doubts_ = 1;
  for (CachedRegister* entry : ring_) {
    RegisterPlace* place = table_.Find(entry->hash);
    if (place != nullptr) place->doubts = 0;
  }
  resting_.ForEach([](RestingRegister& resting) { resting.doubts = 0; });
}

void RegisterCache::LetGoOfForeign() {
  const auto let_go = [this](LiveBuffers* live) {
    const auto is_foreign = [this](const OutBuffer& buffer) {
      return !allocator_.Owns(buffer.addr);
    };
    live->erase(std::remove_if(live->begin(), live->end(), is_foreign), live->end());
  };
  for (CachedRegister* entry : ring_) let_go(&entry->live);
  resting_.ForEach([this](RestingRegister& resting) {
    resting.live = resting.live && allocator_.Owns(resting.buffer());
  });
  kept_.ForEach([&let_go](uint64_t /*addr*/, Kept& kept) { let_go(&kept.live); });
  kept_.EraseIf([](const Kept& kept) { return kept.live.empty(); });
}

void RegisterCache::BeginLook() {
  for (CachedRegister* entry : ring_) entry->unseen = !entry->live.empty();
  resting_.ForEach([](RestingRegister& resting) { resting.unseen = resting.live; });
  kept_.ForEach([](uint64_t /*addr*/, Kept& kept) { kept.unseen = true; });
}

void RegisterCache::See(GlobalAddr addr, uint64_t incarnation) {
  CachedRegister* entry = KnownAt(addr);
  if (entry != nullptr && entry->handle.ref.incarnation == incarnation) entry->unseen = false;
  RestingRegister* const resting = resting_.FindAt(addr);
  if (resting != nullptr && resting->incarnation == incarnation) resting->unseen = false;
  Kept* kept = kept_.Find(addr.bits());
  if (kept != nullptr && kept->ref.incarnation == incarnation) kept->unseen = false;
}

void RegisterCache::SeeAny(GlobalAddr addr) {
  if (CachedRegister* entry = KnownAt(addr); entry != nullptr) entry->unseen = false;
  if (RestingRegister* resting = resting_.FindAt(addr); resting != nullptr) resting->unseen = false;
  if (Kept* kept = kept_.Find(addr.bits()); kept != nullptr) kept->unseen = false;
}

void RegisterCache::ForgetUnseen() {
  std::vector<uint64_t> unseen;
  for (const CachedRegister* entry : ring_) {
    if (entry->unseen) unseen.push_back(entry->handle.ref.addr.bits());
  }
  resting_.ForEach([&unseen](const RestingRegister& resting) {
    if (resting.unseen) unseen.push_back(resting.addr().bits());
  });
  kept_.ForEach([&unseen](uint64_t addr, const Kept& kept) {
    if (kept.unseen) unseen.push_back(addr);
  });
  std::sort(unseen.begin(), unseen.end());  // as KeptAddrs()
  for (const uint64_t addr : unseen) Drop(GlobalAddr(addr));
}

void RegisterCache::Keep(CachedRegister* entry) {
  if (entry->live.empty()) return;
  kept_[entry->handle.ref.addr.bits()] = {std::move(entry->live), entry->buffer_class,
                                          entry->handle.ref, entry->unseen};
}

void RegisterCache::KeepResting(RestingRegister* resting) {
  if (resting->live) {
    kept_[resting->addr().bits()] = {LiveOf(*resting), SizeClass(resting->buffer_class),
                                     RefOf(*resting), resting->unseen};
  }
  resting_.Erase(resting);
}

// The clock algorithm; entries in use stay.
void RegisterCache::MakeRoom() {
  for (size_t looked = 0; looked < 2 * ring_.size(); ++looked) {
    hand_ = (hand_ + 1) % ring_.size();
    CachedRegister* entry = ring_[hand_];
    if (entry->users > 0) continue;
    RegisterPlace* place = table_.Find(entry->hash);
    const bool is_its = place != nullptr && place->entry == entry;
    if (is_its && std::exchange(place->used, false)) continue;
    if (!Rest(*entry)) Keep(entry);
    Remove(entry);
    return;
  }
}

OutBuffer RegisterCache::TryTake(SizeClass size_class, GlobalAddr near) {
  OutBuffer buffer{allocator_.TryAllocateBuffer(size_class, near), used_floor_};
  if (!late_.empty()) {
    if (const auto late = late_.find(buffer.addr.bits()); late != late_.end()) {
      buffer.used = late->second;
      late_.erase(late);
    }
  }
  return buffer;
}

Task<Status> RegisterCache::Refill(SizeClass size_class, GlobalAddr near, Allocator::Holder* idle) {
  const Result<GlobalAddr> addr = co_await allocator_.AllocateBuffer(size_class, near, idle);
  if (!addr.ok()) co_return addr.status();
  allocator_.FreeUnpublished(addr.value(), size_class);
  co_return Status::Ok();
}

void RegisterCache::Retire(OutBuffer buffer, SizeClass size_class) {
  // A time that is not late by an earlier look at the clock is not late now.
  if (buffer.used.value > looked_at_clock_.value + kLateTicks) looked_at_clock_ = clock_.Now();
  if (buffer.used.value > looked_at_clock_.value + kLateTicks) {
    late_[buffer.addr.bits()] = buffer.used;
  } else {
    used_floor_ = std::max(used_floor_, buffer.used);
  }
  allocator_.Retire(buffer.addr, size_class);
}

Task<void> RegisterCache::Settle(SafeGuess& safe_guess, Reclaimer& reclaimer, uint64_t until_ns) {
  while (!ring_.empty()) {
    CachedRegister* entry = ring_.back();
    Keep(entry);
    Remove(entry);
  }
  for (size_t place = 0; place < resting_.places(); ++place) {
    if (RestingRegister* resting = resting_.At(place); resting != nullptr) KeepResting(resting);
  }
  std::vector<uint64_t> ended;
  for (std::vector<uint64_t> addrs = KeptAddrs();
       !addrs.empty() && context_.executor.NowNs() < until_ns; addrs.pop_back()) {
    const Kept* found = kept_.Find(addrs.back());
    if (found == nullptr) continue;
    const Kept kept = *found;
    RegisterOperation operation;
    operation.shared_pin = SharedPin(reclaimer.Pin());
    RegisterHandle handle(kept.ref, clock_);
    Tuple m;
    const RegisterStep step = co_await safe_guess.max_register().Read(operation, handle, &m);
    // A seal: others copy what it holds, and tell when that is over.
    if (!step.done()) {
      ended.push_back(addrs.back());
      continue;
    }
    if (!kept_.Erase(kept.ref.addr.bits())) continue;  // retired meanwhile
    const uint64_t largest = kept.ref.birth.value + m.word.time();
    for (const OutBuffer& buffer : kept.live) {
      if (buffer.addr != m.word.buffer(kept.ref.addr) && buffer.used.value <= largest) {
        Retire(buffer, kept.buffer_class);
      } else {
        left_.push_back(buffer.addr);
      }
    }
  }
  const auto waits = [this](uint64_t addr) { return kept_.Contains(addr); };
  uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  while (std::any_of(ended.begin(), ended.end(), waits) && context_.executor.NowNs() < until_ns) {
    co_await allocator_.Maintain();
    co_await context_.executor.SleepFor(wait_ns);
    wait_ns = std::min<uint64_t>(2 * wait_ns, uint64_t{context_.options.wait_timer_max_us} * 1000);
  }
}

std::vector<uint64_t> RegisterCache::KeptAddrs() const {
  std::vector<uint64_t> addrs;
  kept_.ForEach([&addrs](uint64_t addr, const Kept& /*kept*/) { addrs.push_back(addr); });
  std::sort(addrs.begin(), addrs.end());  // runs of a simulation do not depend on a hash seed
  return addrs;
}

std::vector<GlobalAddr> RegisterCache::KeptBuffers() const {
  std::vector<GlobalAddr> buffers = left_;
  kept_.ForEach([&buffers](uint64_t /*addr*/, const Kept& kept) {
    for (const OutBuffer& buffer : kept.live) buffers.push_back(buffer.addr);
  });
  return buffers;
}

// An inherited buffer may be of a word that is at few replicas and ahead of all others.
void RegisterCache::RetireUntil(Ticks now, SizeClass buffer_class, LiveBuffers* live) {
  size_t ahead = 0;
  for (const OutBuffer& buffer : *live) {
    if (now < buffer.used) {
      (*live)[ahead++] = buffer;
    } else {
      Retire(buffer, buffer_class);
    }
  }
  live->resize(ahead);
}

void RegisterCache::RetireOvertaken(const RegisterRef& ref, Ticks now) {
  const Ticks before{now.value - 1};
  RestingRegister* const resting = resting_.FindAt(ref.addr);
  if (resting != nullptr && resting->incarnation == ref.incarnation &&
      !(before < resting->written())) {
    RetireLive(resting);
  }
  CachedRegister* entry = KnownAt(ref.addr);
  if (entry != nullptr && entry->handle.ref.incarnation == ref.incarnation) {
    RetireLive(*entry, before);
  }
  Kept* kept = kept_.Find(ref.addr.bits());
  if (kept == nullptr || kept->ref.incarnation != ref.incarnation) return;
  RetireUntil(before, kept->buffer_class, &kept->live);
  if (kept->live.empty()) kept_.Erase(ref.addr.bits());
}

void RegisterCache::Inherit(const RegisterRef& ref, SizeClass buffer_class, OutBuffer buffer) {
  if (forgotten_since_->contains(ref.addr.bits())) return Retire(buffer, buffer_class);
  if (CachedRegister* entry = KnownAt(ref.addr); entry != nullptr) {
    if (entry->handle.ref.incarnation == ref.incarnation) entry->live.push_back(buffer);
    return;
  }
  if (RestingRegister* resting = resting_.FindAt(ref.addr); resting != nullptr) {
    if (resting->incarnation != ref.incarnation) return;
    KeepResting(resting);
  }
  Kept& kept = kept_[ref.addr.bits()];
  if (kept.live.empty()) {
    kept.buffer_class = buffer_class;
    kept.ref = ref;
  }
  if (kept.ref.incarnation == ref.incarnation) kept.live.push_back(buffer);
}

}  // namespace onetrip
