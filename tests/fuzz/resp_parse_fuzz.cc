// Fuzz target: whatever the bytes and however they are cut, the parser says the same, keeps its
// contracts and allocates no more than the input justifies.
//
// The first bytes of an input choose limits and chunk sizes, the rest is what a client sends.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"
#include "redis_compat/protocol/resp.h"
#include "tests/unit/resp_feed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using onetrip::FeedInChunks;
  using onetrip::RespLimits;
  using onetrip::RespTrace;
  constexpr size_t kHeaderBytes = 2;
  if (size < kHeaderBytes) {
    return 0;
  }
  RespLimits limits;
  limits.must_authenticate = (data[0] & 1) != 0;
  const size_t chunk_max = size_t{1} + data[1];
  const std::string_view input(reinterpret_cast<const char*>(data) + kHeaderBytes,
                               size - kHeaderBytes);

  const RespTrace whole = FeedInChunks(input, limits, [](size_t) { return SIZE_MAX; });
  CHECK(whole.sound);
  onetrip::Rng rng(data[0]);
  const RespTrace cut =
      FeedInChunks(input, limits, [&](size_t) { return 1 + rng.Below(chunk_max); });
  CHECK(cut == whole);

  // A command cannot hold more than was sent.
  size_t held_bytes = 0;
  for (const auto& command : whole.commands) {
    for (const auto& argument : command) {
      held_bytes += argument.size();
    }
  }
  CHECK(held_bytes <= input.size());
  return 0;
}
