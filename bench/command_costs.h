// The round trips of every kind of command, in virtual time: RESP commands through the product's
// own dispatch, on keys that have the same past for all calls of a row.
//
// The network has one constant latency and nothing else takes time. A command's time, counted in
// round trips, is thus the number of round trips that it waits for, one after the other; a wait for
// a timer counts, too. Deterministic for a seed.
#ifndef ONETRIP_BENCH_COMMAND_COSTS_H_
#define ONETRIP_BENCH_COMMAND_COSTS_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/paper_world.h"

namespace onetrip {

inline constexpr uint32_t kCommandClients = 4;
inline constexpr uint32_t kCommandBaseKeys = 100'000;  // are there before, and are not touched
inline constexpr uint64_t kCommandRoundTripNs = 20'000;

// The measured calls of one command on keys of one past.
struct CommandCosts {
  std::string_view command;
  std::string_view key;  // its past, in a few words
  // What the engine counts is no number of round trips one after the other: it adds up those of
  // several keys that are worked on at the same time.
  bool over_several_keys;
  std::vector<OpCost> calls;
};

// Calls `show` with each row as soon as it is measured: `calls` of them, by kCommandClients clients
// on keys of their own. A reply that is not the expected one ends the program.
void MeasureCommands(uint32_t calls, uint64_t seed,
                     const std::function<void(const CommandCosts& row)>& show);

}  // namespace onetrip

#endif  // ONETRIP_BENCH_COMMAND_COSTS_H_
