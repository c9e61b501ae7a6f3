#include "client_core/memory/foreign_frees.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// Bitmap words per round trip: each costs an operation per backup.
constexpr size_t kForeignBatch = RoundTrip::kMaxOps / (kMaxReplicas - 1);

}  // namespace

void ForeignFrees::Add(GlobalAddr block, uint16_t index) {
  const GlobalAddr word = block + BitmapOffset(block.block()) + index / 64 * 8;
  foreign_.push_back({word, 1ULL << (index % 64)});
}

Task<Status> ForeignFrees::Flush() {
  std::vector<Bits> batch = std::exchange(foreign_, {});
  std::sort(batch.begin(), batch.end(),
            [](const Bits& a, const Bits& b) { return a.word < b.word; });
  // One addend per bitmap word.
  std::vector<Bits> words;
  for (const Bits& free : batch) {
    if (words.empty() || words.back().word != free.word) {
      words.push_back(free);
      continue;
    }
    CHECK((words.back().bits & free.bits) == 0);  // an object freed twice
    words.back().bits |= free.bits;
  }
  // Backups before the primary: the owner sweeps what the primary shows and may then return the
  // block, after which no late addend may arrive anywhere. All where one view has them, so that no
  // replica is asked twice: if the primary is lost in between, a backup that has the bits takes its
  // place. A look for lost memory finds the bits that the primary does not hear of.
  Status first_failure;
  for (size_t first = 0; first < words.size(); first += kForeignBatch) {
    const size_t end = std::min(words.size(), first + kForeignBatch);
    const View& view = context_.view();
    RoundTripPtr backups = context_.fabric.NewRoundTrip();
    RoundTripPtr primary = context_.fabric.NewRoundTrip();
    std::vector<Late> late;
    for (size_t i = first; i < end; ++i) {
      primary->Faa(view.Locate(words[i].word, 0), words[i].bits);
      for (int replica = 1; replica < view.LiveReplicas(words[i].word); ++replica) {
        backups->Faa(view.Locate(words[i].word, replica), words[i].bits);
      }
      late.push_back({words[i], view.regions[words[i].word.region()]});
    }
    Status status;
    if (!backups->empty()) status = co_await context_.fabric.Post(backups);
    if (!status.ok() && !Planted(Bug::kLateBitShown)) {
      first_failure = status;
      late_.insert(late_.end(), late.begin(), late.end());
      continue;
    }
    status = co_await context_.fabric.Post(primary);
    if (status.ok()) continue;
    first_failure = status;
    has_lost_bits_ = true;
  }
  co_return first_failure;
}

Task<void> ForeignFrees::TellLate() {
  const std::vector<Late> late = std::exchange(late_, {});
  for (size_t first = 0; first < late.size(); first += RoundTrip::kMaxOps) {
    RoundTripPtr primary = context_.fabric.NewRoundTrip();
    for (size_t i = first; i < std::min(late.size(), first + RoundTrip::kMaxOps); ++i) {
      const Bits& free = late[i].free;
      const RemoteAddr at = context_.view().Locate(free.word, 0);
      // Another primary may have heard of it, as a backup.
      const bool is_it = at.node == late[i].told.nodes[0] &&
                         at.offset == late[i].told.base[0] + free.word.offset();
      if (is_it) primary->Faa(at, free.bits);
      has_lost_bits_ = has_lost_bits_ || !is_it;
    }
    if (primary->empty()) continue;
    const Status status = co_await context_.fabric.Post(primary);
    has_lost_bits_ = has_lost_bits_ || !status.ok();
  }
}

void ForeignFrees::UseView(const View& view) {
  std::erase_if(foreign_, [&](const Bits& one) { return !view.Contains(one.word); });
  std::erase_if(late_, [&](const Late& one) { return !view.Contains(one.free.word); });
}

}  // namespace onetrip
