// VerbsArena: registered memory for the round trips of one worker, so that posting registers none.
// It grows by whole chunks, which is rare, and gives nothing back before its end. One thread.
#ifndef ONETRIP_CLIENT_CORE_VERBS_ARENA_H_
#define ONETRIP_CLIENT_CORE_VERBS_ARENA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/zeroed_memory.h"
#include "client_core/fabric/round_trip.h"
#include "client_core/verbs/device.h"

namespace onetrip {

class VerbsArena final : public RoundTripMemory {
 public:
  // `device` outlives it.
  explicit VerbsArena(VerbsDevice& device) : device_(device) {}

  // Takes the first chunk. *reason, if it fails: one line.
  Status Start(std::string* reason) { return Grow(kChunkBytes, reason); }

  // CHECKs that the host has the memory and lets the process lock it.
  void* Take(size_t bytes) override;
  void Give(void* memory, size_t bytes) override;

  // The key of a chunk that holds all of it; false if none does.
  bool FindKey(const std::byte* start, uint64_t bytes, uint32_t* key) const;

 private:
  static constexpr uint64_t kChunkBytes = uint64_t{2} << 20;
  static constexpr size_t kBytesMin = 64;
  // Powers of two from kBytesMin on; more than a chunk has a chunk to itself.
  static constexpr size_t kSizes = 24;

  struct Chunk {
    ZeroedMemory memory;
    std::unique_ptr<VerbsMemory> known;
    uint64_t used = 0;
  };
  static size_t SizeOf(size_t bytes);
  Status Grow(uint64_t bytes, std::string* reason);

  VerbsDevice& device_;
  std::vector<Chunk> chunks_;
  std::array<std::vector<void*>, kSizes> free_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_ARENA_H_
