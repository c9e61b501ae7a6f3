// ServerFacts: what INFO tells of the process beside its counters, as plain values.
//
// The frontend fills them (ServerHooks::FillFacts); info.cc gives them Redis's names and order.
// Bytes unless the name says otherwise.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_FACTS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_FACTS_H_

#include <cstdint>
#include <string>

namespace onetrip {

struct ServerFacts {
  // server
  std::string onetrip_version = "0.1.0";
  std::string os;      // "Linux 6.1.0 x86_64"
  std::string run_id;  // 40 hex digits, new at every start.
  std::string executable;
  std::string config_file;
  uint64_t process_id = 0;
  uint64_t tcp_port = 0;
  uint64_t uptime_s = 0;
  uint64_t worker_threads = 1;

  // memory
  uint64_t used_memory = 0;       // Pool bytes handed out on one replica.
  uint64_t used_memory_peak = 0;  // 0: not tracked; used_memory is shown.
  uint64_t used_memory_overhead = 0;
  uint64_t used_memory_dataset = 0;
  uint64_t used_memory_rss = 0;
  uint64_t total_system_memory = 0;
  uint64_t maxmemory = 0;  // Bytes that the pool can hold on one replica.
  uint64_t mem_clients_normal = 0;
  std::string allocator = "jemalloc";

  uint64_t replicas = 1;  // Per key. An acknowledged write is on a majority of them.

  // cpu, in seconds
  double cpu_system_s = 0;
  double cpu_user_s = 0;

  // persistence
  uint64_t started_at_unix_s = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_FACTS_H_
