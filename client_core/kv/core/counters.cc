#include "client_core/kv/core/counters.h"

#include <algorithm>
#include <array>
#include <bit>

#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr uint64_t CounterWord(KeyspaceId keyspace, uint32_t count) {
  return (uint64_t{keyspace.value} << 32) | count;
}

}  // namespace

bool IsMeant(const std::array<KeyspaceId, kMaxDatabases>& keyspaces, KeyspaceId keyspace) {
  return std::find(keyspaces.begin(), keyspaces.end(), keyspace) != keyspaces.end();
}

void Counters::Count(uint32_t database, KeyspaceId keyspace, int32_t delta) {
  if (!IsMeant(core_.context.view().keyspaces, keyspace))
    return;  // flushed meanwhile: counted nowhere
  Tally& tally = TallyOf(database, keyspace);
  tally.count += static_cast<uint32_t>(delta);
  dirty_.set(static_cast<size_t>(&tally - tallies_.data()));
  if (!publishing_) core_.context.executor.Spawn(core_.gate, PublishCounters());
}

Counters::Tally& Counters::TallyOf(uint32_t database, KeyspaceId keyspace) {
  if (tallies_[database].keyspace == keyspace) [[likely]]
    return tallies_[database];
  for (Tally& tally : tallies_) {
    if (tally.keyspace == keyspace) return tally;
  }
  // There is one, for there are as many as databases, and this keyspace has none.
  const auto is_free = [this](const Tally& tally) {
    return !IsMeant(core_.context.view().keyspaces, tally.keyspace);
  };
  Tally* tally = &tallies_[database];
  if (!is_free(*tally)) tally = std::find_if(tallies_.begin(), tallies_.end(), is_free);
  *tally = {keyspace, 0};
  return *tally;
}

Task<Status> Counters::LoadCounters() {
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const auto* counters = reinterpret_cast<const KeyCounters*>(round_trip->Read(
      core_.context.view().Locate(KeyCounterAddr(core_.context.membership.index, 0), 0),
      sizeof(KeyCounters)));
  const Status status = co_await core_.context.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    const uint64_t word = counters->words[i];
    tallies_[i] = {KeyspaceId{static_cast<uint32_t>(word >> 32)}, static_cast<uint32_t>(word)};
  }
  co_return Status::Ok();
}

Task<void> Counters::PublishCounters() {
  publishing_ = true;
  const Quiesce::InFlightGuard in_flight(core_.context.quiesce);
  while (dirty_.any()) {
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    const View& view = core_.context.view();
    while (dirty_.any() && round_trip->HasRoom(kMaxReplicas)) {
      const auto i = static_cast<uint32_t>(std::countr_zero(dirty_.to_ulong()));
      dirty_.reset(i);
      const Tally& tally = tallies_[i];
      const GlobalAddr at = KeyCounterAddr(core_.context.membership.index, i);
      for (int replica = 0; replica < core_.engine.Replicas(view, at); ++replica) {
        round_trip->WriteWord(view.Locate(at, replica), CounterWord(tally.keyspace, tally.count));
      }
    }
    // A count that does not arrive is made good by the next one.
    (void)co_await core_.context.fabric.Post(round_trip);
  }
  publishing_ = false;
}

Task<Status> Counters::CountKeys(uint32_t database, uint64_t* keys) {
  CHECK(database < kMaxDatabases);
  const Quiesce::InFlightGuard in_flight(core_.context.quiesce);
  const View& view = core_.context.view();
  const KeyspaceId keyspace = view.keyspaces[database];
  const uint32_t workers = view.worker_index_end;
  uint32_t sum = 0;
  for (uint32_t first = 0; first < workers; first += RoundTrip::kMaxOps) {
    const uint32_t end = std::min<uint32_t>(workers, first + RoundTrip::kMaxOps);
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    std::array<const KeyCounters*, RoundTrip::kMaxOps> counters{};
    for (uint32_t worker = first; worker < end; ++worker) {
      const WorkerIndex index{static_cast<uint16_t>(worker)};
      counters[worker - first] = reinterpret_cast<const KeyCounters*>(round_trip->Read(
          core_.context.view().Locate(KeyCounterAddr(index, 0), 0), sizeof(KeyCounters)));
    }
    const Status status = co_await core_.context.fabric.Post(round_trip);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < end - first; ++i) {
      if (first + i == core_.context.membership.index.value) continue;
      for (const uint64_t word : counters[i]->words) {
        if (word >> 32 == keyspace.value) sum += static_cast<uint32_t>(word);
      }
    }
  }
  // This worker's own counts may not be published yet: whoever asks may have written just now.
  for (const Tally& tally : tallies_) {
    if (tally.keyspace == keyspace) sum += tally.count;
  }
  // Counts are modulo 2^32; a momentary minus is one delete ahead of its insert's count.
  *keys = sum > 0x80000000U ? 0 : sum;
  co_return Status::Ok();
}

}  // namespace onetrip
