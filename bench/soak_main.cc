// Long runs of the engine alone (no RESP, one thread, shm, three replicas), for what a test has no
// time for: endless overwrites of a small pool, and an index that grows to millions of keys.
//
//   soak overwrite [COUNT] [KEYS] [MIB]   default 100000000 5 64
//   soak grow [KEYS] [MIB]                default 10000000 2560
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

// As printf takes it.
unsigned long long Number(uint64_t value) { return value; }

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t Argument(int argc, char** argv, int index, uint64_t otherwise) {
  return index < argc ? std::strtoull(argv[index], nullptr, 10) : otherwise;
}

std::string KeyName(uint64_t number) {
  char name[32];
  snprintf(name, sizeof(name), "key:%012llu", Number(number));
  return name;
}

void PrintMemory(TestWorker& worker, uint64_t keys) {
  const StoreMetrics& metrics = worker.kv().metrics();
  const AllocatorMetrics& memory = *metrics.allocator;
  const double key_value_bytes = static_cast<double>(keys) * (16 + 64);
  printf("  keys %llu  owned %.1f MiB  live %.1f  free %.1f  retired %.1f  index %.1f  splits %llu",
         Number(keys), memory.owned_bytes.Value() / 1048576.0,
         memory.live_bytes.Value() / 1048576.0, memory.free_bytes.Value() / 1048576.0,
         memory.retired_bytes.Value() / 1048576.0,
         metrics.index->subtable_bytes.Value() / 1048576.0, Number(metrics.index->splits.Value()));
  if (keys > 1000) {
    printf("  overhead per key %.1f B",
           (static_cast<double>(memory.owned_bytes.Value()) - key_value_bytes) /
               static_cast<double>(keys));
  }
  printf("\n");
  fflush(stdout);
}

int Overwrite(uint64_t count, uint64_t keys, uint64_t mib) {
  const SystemClock clock;
  TestCluster cluster(clock, {.nodes = 3, .replicas = 3, .node_bytes = mib << 20});
  ShmWorker worker(cluster);
  const std::string value(64, 'v');
  const uint64_t step = count / 10 > 0 ? count / 10 : 1;
  double last = Seconds();
  for (uint64_t i = 0; i < count; ++i) {
    const Status status = worker->Set(KeyName(i % keys), value);
    if (!status.ok()) {
      printf("overwrite %llu failed: %s\n", Number(i), status.message());
      return 1;
    }
    if ((i + 1) % step == 0) {
      const double now = Seconds();
      printf("%llu overwrites, %.2f M/s\n", Number(i + 1),
             static_cast<double>(step) / (now - last) / 1e6);
      last = now;
      PrintMemory(*worker.operator->(), worker->CountKeys());
    }
  }
  return 0;
}

int Grow(uint64_t keys, uint64_t mib) {
  const SystemClock clock;
  TestCluster cluster(clock, {.nodes = 3, .replicas = 3, .node_bytes = mib << 20});
  ShmWorker worker(cluster);
  Rng rng(7);
  const std::string value(64, 'v');
  double last = Seconds();
  uint64_t last_keys = 0;
  uint64_t report = 1000;
  for (uint64_t i = 0; i < keys; ++i) {
    const Status status = worker->Set(KeyName(i), value);
    if (!status.ok()) {
      printf("insert %llu failed: %s\n", Number(i), status.message());
      return 1;
    }
    // A key that is there is found, always.
    const std::string earlier = KeyName(rng.Below(i + 1));
    if (worker->Get(earlier) != value) {
      printf("%s was lost at %llu keys\n", earlier.c_str(), Number(i + 1));
      return 1;
    }
    if (i + 1 == report || i + 1 == keys) {
      const double now = Seconds();
      printf("%.2f M inserts and lookups/s up to here\n",
             static_cast<double>(i + 1 - last_keys) / (now - last) / 1e6);
      last = now;
      last_keys = i + 1;
      report *= 10;
      PrintMemory(*worker.operator->(), worker->CountKeys());
    }
  }
  for (uint64_t i = 0; i < keys; ++i) {
    if (worker->Get(KeyName(i)) != value) {
      printf("%s is lost\n", KeyName(i).c_str());
      return 1;
    }
  }
  printf("all %llu keys found\n", Number(keys));
  return 0;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "overwrite") {
    return Overwrite(Argument(argc, argv, 2, 100'000'000), Argument(argc, argv, 3, 5),
                     Argument(argc, argv, 4, 64));
  }
  if (mode == "grow")
    return Grow(Argument(argc, argv, 2, 10'000'000), Argument(argc, argv, 3, 2560));
  fprintf(stderr, "usage: soak overwrite [COUNT] [KEYS] [MIB] | soak grow [KEYS] [MIB]\n");
  return 1;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Main(argc, argv); }
