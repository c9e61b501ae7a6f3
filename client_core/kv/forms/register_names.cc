// The memory that a register leads to (PROTOCOLS, "Blocks of workers that are gone").
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/register.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {

// A word may be on its way from one replica to another, carried by a read, and be overtaken behind
// it: then it is found on neither. It is overtaken on one replica more each time that all are read
// and it is not found. So once all have been read as often as there are replicas, no quorum has it
// for its largest any more, nor ever will.
Task<Status> RegisterForm::NameMemory(OrphanInventory& inventory, Operation& operation,
                                      SlotWord word) {
  if (!core_.registers) {
    co_return Status(StatusCode::kUnavailable, "this agent's engine knows no registers");
  }
  const auto head = static_cast<uint32_t>(std::min<uint64_t>(
      word.size_class().bytes(), kRegisterHeaderBytes + kRegisterKeyBytesMax + 8 * kLanesMax));
  std::vector<MetaWord> seen;
  std::vector<NamedBuffer> found;
  // A majority has it or a larger one: smaller words are never read again.
  MetaWord everywhere;
  RegisterRef ref;
  SizeClass buffer_class;
  const int times =
      Planted(Bug::kLanesNotNamed) ? 0 : core_.context.view().LiveReplicas(word.addr());
  for (int time = 0; time < times; ++time) {
    const View& view = core_.context.view();
    const int live = view.LiveReplicas(word.addr());
    const int majority = std::min(view.replicas / 2 + 1, live);
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    std::array<const std::byte*, kMaxReplicas> images{};
    for (int replica = 0; replica < live; ++replica) {
      images[replica] = round_trip->Read(view.Locate(word.addr(), replica), head);
    }
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) co_return status;
    std::array<MetaWord, kMaxReplicas> largest{};
    for (int replica = 0; replica < live; ++replica) {
      RegisterHeader header;
      if (!LoadRegisterShape(word, images[replica], &header, &ref.shape) ||
          ref.shape.in_place_offset() > head) {
        co_return Status(StatusCode::kCorrupt, "a slot names a register that is none");
      }
      ref.addr = word.addr();
      ref.incarnation = header.incarnation;
      core_.registers->cache.See(ref.addr, ref.incarnation);
      ref.birth = Ticks{header.birth_ticks};
      buffer_class = SizeClass(header.buffer_class);
      uint8_t lane_of_largest = 0;
      largest[replica] = InNOut::LargestIn(ref, images[replica], &lane_of_largest).AsGuess();
      for (uint32_t lane = 0; lane < ref.shape.lanes; ++lane) {
        uint64_t bits;
        std::memcpy(&bits, images[replica] + ref.shape.lane_offset(lane), sizeof(bits));
        const MetaWord named = MetaWord(bits).AsGuess();
        if (named.is_empty() || std::find(seen.begin(), seen.end(), named) != seen.end()) continue;
        seen.push_back(named);
        if (named.is_in_register()) continue;
        const GlobalAddr buffer = named.buffer(word.addr());
        if (inventory.blocks.At(buffer) == nullptr) continue;
        found.push_back({ref, buffer_class, {buffer, Ticks{ref.birth.value + named.time()}}});
      }
    }
    // At a majority; less would do while a node is out, until a region is copied from the others.
    std::sort(largest.begin(), largest.begin() + live, std::greater<>());
    if (live >= majority) everywhere = std::max(everywhere, largest[majority - 1]);
  }
  const Ticks overtaken{ref.birth.value + everywhere.time()};
  if (!everywhere.is_empty()) core_.registers->cache.RetireOvertaken(ref, overtaken);
  for (const NamedBuffer& named : found) {
    if (named.buffer.used < overtaken) continue;
    const Status status = co_await NameBuffer(inventory, operation, named);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

// A word that others have overtaken stays in its lane when its buffer is used for something else.
Task<Status> RegisterForm::NameBuffer(OrphanInventory& inventory, Operation& operation,
                                      const NamedBuffer& named) {
  const GlobalAddr at = named.buffer.addr;
  const View& view = core_.context.view();
  const int live = view.LiveReplicas(at);
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  std::array<const BufferHeader*, kMaxReplicas> headers{};
  for (int replica = 0; replica < live; ++replica) {
    headers[replica] = reinterpret_cast<const BufferHeader*>(
        round_trip->Read(view.Locate(at, replica), kBufferHeaderBytes));
  }
  const Status status = co_await Post(core_.context, operation, round_trip);
  if (!status.ok()) co_return status;
  const bool holds = std::any_of(headers.begin(), headers.begin() + live, [&](const auto* header) {
    return header->ticks == named.buffer.used.value;
  });
  if (!holds) co_return status;
  inventory.blocks.Name(at);
  // A split shows a register in two subtables: in the parent, frozen, and in the child.
  std::vector<NamedBuffer>& found = inventory.buffers[inventory.blocks.At(at)->start.bits()];
  const bool is_known = std::any_of(found.begin(), found.end(), [&](const NamedBuffer& other) {
    return other.buffer.addr == at;
  });
  if (!is_known || Planted(Bug::kInheritedTwice)) found.push_back(named);
  co_return status;
}

}  // namespace onetrip
