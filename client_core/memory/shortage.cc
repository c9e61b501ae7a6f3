#include "client_core/memory/shortage.h"

namespace onetrip {
namespace {

constexpr uint64_t kShortNs = 500'000'000;   // a shortage is told for this long after it was felt
constexpr uint64_t kInVainNs = 500'000'000;  // others who gave nothing are not waited for meanwhile
constexpr uint64_t kTightNs = 1'000'000'000;  // others hear for this long that a node is tight
constexpr uint64_t kFullNs = 10'000'000;      // a full pool is not asked meanwhile

}  // namespace

void Shortage::Tell(SizeClass size_class) {
  const uint64_t now_ns = NowNs();
  if (short_of_ != size_class || now_ns >= short_until_ns_) {
    short_of_ = size_class;
    short_since_epoch_ = reclaimer_.current_epoch();
  }
  short_until_ns_ = now_ns + kShortNs;
}

void Shortage::NoteTight() { tight_until_ns_ = NowNs() + kTightNs; }

void Shortage::NoteFull() { full_until_ns_ = NowNs() + kFullNs; }

bool Shortage::OthersMayGive() const {
  if (context_.view().worker_index_end <= 1 || context_.quiesce.holds_all()) return false;
  if (NowNs() < in_vain_until_ns_) return false;
  // Two epochs on each of them has looked at what this worker says, and said what it does about it.
  return reclaimer_.others_give() || !reclaimer_.IsSafe(short_since_epoch_ + 2);
}

void Shortage::NoteInVain() { in_vain_until_ns_ = NowNs() + kInVainNs; }

bool Shortage::MayFollowFlush() {
  if (flushed_view_ != context_.view().epoch) {
    flushed_view_ = context_.view().epoch;
    flushed_ns_ = NowNs();
  }
  return NowNs() < flushed_ns_ + context_.options.memory_wait_ms * 1'000'000;
}

}  // namespace onetrip
