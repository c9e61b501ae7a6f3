// A process that was killed still holds its ports and locks for a moment, until the kernel has
// taken all of it apart: its successor waits for that, briefly, before it takes them for another
// process's.
#ifndef ONETRIP_CLIENT_CORE_BASE_HELD_BY_PREDECESSOR_H_
#define ONETRIP_CLIENT_CORE_BASE_HELD_BY_PREDECESSOR_H_

#include <chrono>
#include <thread>

namespace onetrip {

inline constexpr std::chrono::milliseconds kPredecessorEndsWithin{2000};

// Tries again and again, for kPredecessorEndsWithin, until `try_once` says that it is done. Blocks;
// for the start of a process only.
template <typename TryOnce>
bool TryUntilPredecessorEnds(const TryOnce& try_once) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  const auto deadline = std::chrono::steady_clock::now() + kPredecessorEndsWithin;
  while (!try_once()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_HELD_BY_PREDECESSOR_H_
