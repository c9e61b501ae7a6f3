#include "memnode/peer_log.h"

#include "client_core/base/log.h"

namespace onetrip {
namespace {

constexpr uint64_t kSameLineNs = 60'000'000'000;

}  // namespace

void PeerLog::Warn(uint64_t what, uint64_t now_ns, const std::string& line) {
  for (const Line& logged : lines_) {
    if (logged.what == what && logged.time_ns != 0 && now_ns - logged.time_ns < kSameLineNs) return;
  }
  lines_[next_++ % lines_.size()] = {.what = what, .time_ns = now_ns};
  LogWarning(line);
}

}  // namespace onetrip
