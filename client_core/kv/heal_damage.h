// DamageHealer: makes the replicas alike after a memory node's damaged memory was accepted as it is
// (--accept-damaged). Any word and any object may be stale or torn at any replica then; what most
// replicas have, or what a checksum vouches for, is put everywhere.
//
// What no replica has any more is lost: its slot is emptied, so that the key may be written again,
// and its name is listed as far as it can be read. Runs while all workers hold kSlots, ahead of
// SlotResolver, whose rule that the primary's word stands holds for sound memory alone.
#ifndef ONETRIP_CLIENT_CORE_KV_HEAL_DAMAGE_H_
#define ONETRIP_CLIENT_CORE_KV_HEAL_DAMAGE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"
#include "client_core/tree/page.h"

namespace onetrip {

class DamageHealer {
 public:
  // `view` and `fabric` outlive it; `new_empty` gives words that no slot has ever held.
  DamageHealer(Fabric& fabric, const View& view, std::function<SlotWord()> new_empty)
      : fabric_(fabric), view_(view), new_empty_(std::move(new_empty)) {}

  // Not ok: to be done again, by any worker. REQUIRES: as SlotResolver::Run().
  Task<Status> Run();

  // Words and objects that differed and are alike now.
  [[nodiscard]] uint64_t healed() const { return healed_; }
  // Keys that no replica has any more.
  [[nodiscard]] uint64_t lost() const { return lost_; }
  // One line about them, with the names of the first; empty: none is lost.
  [[nodiscard]] std::string LostText() const;

 private:
  using Images = std::array<const std::byte*, kMaxReplicas>;
  using Words = std::array<uint64_t, kMaxReplicas>;

  Task<Status> HealDirectory(std::vector<GlobalAddr>* subtables);
  Task<Status> HealSubtable(GlobalAddr start);
  Task<Status> HealHeaders(GlobalAddr start, std::span<const uint64_t* const> images);
  // The slots of a group; `words` are those of each replica.
  Task<void> HealGroup(GlobalAddr group, std::vector<const uint64_t*> words, Status* failure);
  Task<Status> HealSlot(GlobalAddr at, Words words, int replicas);
  // Every replica of the word at `at`, which are `words` now.
  Task<Status> Put(GlobalAddr at, Words words, int replicas, uint64_t chosen);
  // Returns true if what the word names is there, on every live replica now. *name: the key, if it
  // could be read.
  Task<Result<bool>> HealObject(SlotWord word, std::string* name);
  Task<Result<bool>> HealRecord(SlotWord word, Images images, RoundTripPtr holder,
                                std::string* name);
  Task<Result<bool>> HealExtents(std::string_view list, uint64_t version);
  Task<Result<bool>> HealPages(const TreeRoot& tree);
  // Makes every replica of the object at `at` what `is_sound` says of one; *best: its bytes, good
  // as long as *holder. False: none is.
  Task<Result<bool>> HealBytes(GlobalAddr at, uint32_t bytes,
                               const std::function<bool(const std::byte*)>& is_sound,
                               RoundTripPtr* holder, const std::byte** best);
  Task<Result<bool>> HealRegister(SlotWord word, Images images, RoundTripPtr holder,
                                  std::string* name);
  // The word that the lane is to have; 0: none, for it is known of no value.
  Task<Result<uint64_t>> ChooseLane(SlotWord word, Words lane, int replicas, Ticks birth,
                                    RegisterShape shape);
  // Returns true if a replica has the value that `meta` names; all have it then.
  Task<Result<bool>> HealBuffer(SlotWord word, MetaWord meta, Ticks birth, RegisterShape shape);
  void Lose(const std::string& name);

  Fabric& fabric_;
  const View& view_;
  const std::function<SlotWord()> new_empty_;
  uint64_t healed_ = 0;
  uint64_t lost_ = 0;
  std::vector<std::string> names_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_HEAL_DAMAGE_H_
