// Feeds bytes to a RespParser the way a connection does, for tests and the fuzzer.
//
// The buffer moves to a new address with every chunk, as a growing read buffer may.
#ifndef ONETRIP_TESTS_UNIT_RESP_FEED_H_
#define ONETRIP_TESTS_UNIT_RESP_FEED_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/protocol/resp.h"

namespace onetrip {

// Everything a parser said about some input.
struct RespTrace {
  std::vector<std::vector<std::string>> commands;
  std::string error;      // Empty if there was none.
  size_t left_bytes = 0;  // Not consumed at the end; not counted after an error.
  bool sound = true;      // Hints and counts were within their contracts.

  friend bool operator==(const RespTrace&, const RespTrace&) = default;
};

// Feeds `input` in chunks; `chunk_bytes(offset)` gives the size of the one that begins at `offset`.
template <typename ChunkBytes>
RespTrace FeedInChunks(std::string_view input, const RespLimits& limits, ChunkBytes chunk_bytes) {
  RespTrace trace;
  RespParser parser;
  std::string pending;
  size_t offset = 0;
  while (offset < input.size()) {
    const size_t size = std::min(std::max<size_t>(chunk_bytes(offset), 1), input.size() - offset);
    pending.append(input.substr(offset, size));
    offset += size;
    // A fresh copy per chunk: the bytes of a partial command lie somewhere else each time.
    const std::string moved = pending;
    std::string_view rest = moved;
    RespResult result = RespResult::kCommand;
    while (result == RespResult::kCommand) {
      result = parser.Next(rest, limits);
      trace.sound &= parser.consumed() <= rest.size();
      if (result == RespResult::kError) {
        trace.error = parser.error();
        return trace;
      }
      if (result == RespResult::kCommand) {
        trace.commands.emplace_back(parser.argv().begin(), parser.argv().end());
        trace.sound &= !parser.argv().empty() && parser.consumed() > 0;
      } else {
        trace.sound &= parser.wanted_bytes() > 0;
      }
      rest.remove_prefix(parser.consumed());
    }
    pending = rest;
  }
  trace.left_bytes = pending.size();
  return trace;
}

// Feeds `input` cut at the given offsets, in ascending order.
inline RespTrace FeedAtCuts(std::string_view input, const RespLimits& limits,
                            const std::vector<size_t>& cuts) {
  return FeedInChunks(input, limits, [&](size_t offset) {
    for (const size_t cut : cuts) {
      if (cut > offset) return cut - offset;
    }
    return input.size();
  });
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_RESP_FEED_H_
