#include "frontend/admin/admin.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <memory>

#include "client_core/base/log.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"
#include "client_core/base/version.h"
#include "frontend/server.h"
#include "frontend/worker.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

std::string OperatingSystem() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string Executable() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

constexpr std::string_view kOnetripSection = "onetrip";

void AppendField(std::string_view name, std::string_view value, std::string* out) {
  out->append(name).append(":").append(value).append("\r\n");
}

}  // namespace

WorkerHooks::WorkerHooks(Server& server, Worker& worker)
    : ServerHooks(server.config(), server.observation()), server_(server), worker_(worker) {}

const Clock& WorkerHooks::clock() { return server_.clock(); }

Task<void> WorkerHooks::ListClients(std::vector<ClientSnapshot>* clients) {
  std::vector<std::vector<ClientSnapshot>> found(server_.workers().size());
  co_await server_.OnEveryWorker(
      worker_, [&found](Worker& worker) { worker.ListClients(&found[worker.index()]); });
  for (std::vector<ClientSnapshot>& part : found) {
    std::move(part.begin(), part.end(), std::back_inserter(*clients));
  }
}

void WorkerHooks::DescribeClient(const Session& session, ClientSnapshot* snapshot) {
  for (const Connection* connection : worker_.connections()) {
    if (&connection->session() != &session) continue;
    connection->Describe(server_.clock().NowNs(), snapshot);
    return;
  }
}

Task<uint64_t> WorkerHooks::KillClients(const ClientFilter& filter, uint64_t self_id) {
  std::vector<uint64_t> matched(server_.workers().size());
  co_await server_.OnEveryWorker(worker_, [&](Worker& worker) {
    matched[worker.index()] = worker.KillClients(filter, self_id);
  });
  uint64_t total = 0;
  for (const uint64_t count : matched) total += count;
  co_return total;
}

void WorkerHooks::FillFacts(ServerFacts* facts) {
  facts->onetrip_version = ONETRIP_VERSION;
  facts->os = OperatingSystem();
  facts->run_id = server_.run_id();
  facts->executable = Executable();
  facts->process_id = static_cast<uint64_t>(getpid());
  facts->tcp_port = server_.tcp_port();
  facts->uptime_s = (server_.clock().NowNs() - server_.started_ns()) / 1'000'000'000;
  facts->worker_threads = server_.workers().size();
  facts->replicas = server_.storage().replicas();
  facts->started_at_unix_s = server_.started_at_unix_s();
  facts->used_memory_rss = ResidentBytes();
  facts->total_system_memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    facts->cpu_system_s = Seconds(usage.ru_stime);
    facts->cpu_user_s = Seconds(usage.ru_utime);
  }
  const MetricSources sources = Sources();
  facts->mem_clients_normal = ClientBytes(sources);
  facts->maxmemory = sources.pool.capacity_bytes;
  facts->used_memory = sources.pool.used_bytes();
  facts->used_memory_overhead = std::min(sources.pool.overhead_bytes, facts->used_memory);
  facts->used_memory_dataset = facts->used_memory - facts->used_memory_overhead;
}

MetricSources WorkerHooks::Sources() const {
  MetricSources sources;
  for (const std::unique_ptr<Worker>& worker : server_.workers()) {
    sources.workers.push_back(&worker->metrics());
  }
  sources.pool = server_.storage().pool_usage();
  sources.open_clients = server_.open_clients();
  sources.max_clients = config().max_clients();
  sources.paused_clients = observation().paused.load(std::memory_order_relaxed);
  const LargeValueBudgets& large = server_.storage().large_values();
  sources.large_requests = large.requests.get();
  sources.large_values = large.values.get();
  return sources;
}

std::vector<std::string_view> WorkerHooks::ExtraInfoSections() { return {kOnetripSection}; }

void WorkerHooks::AppendInfoSection(std::string_view section, std::string* out) {
  if (section == kOnetripSection) {
    AppendField("engine", server_.options().engine, out);
    AppendField("workers", std::to_string(server_.workers().size()), out);
    for (const InfoField& field : server_.storage().Info()) {
      AppendField(field.name, field.value, out);
    }
  }
  AppendMetrics(section, Sources(), out);
}

void WorkerHooks::SumCommandStats(CommandTotals* totals) {
  for (const std::unique_ptr<Worker>& worker : server_.workers()) {
    worker->metrics().commands.AddTo(totals);
  }
}

// Each worker resets its own counters, in its next turn: only their owner may write them.
void WorkerHooks::ResetStats() {
  for (const std::unique_ptr<Worker>& worker : server_.workers()) {
    if (worker.get() == &worker_) {
      worker->ResetStats();
    } else {
      worker->Post([target = worker.get()] { target->ResetStats(); });
    }
  }
}

bool WorkerHooks::OptionsWith(std::string_view name, std::string_view value,
                              AgentOptions* options) const {
  *options = server_.options();
  // Limits that are not part of this change keep their current values.
  options->output_limits.normal.hard_bytes = server_.limits().output_hard_bytes;
  options->output_limits.normal.soft_bytes = server_.limits().output_soft_bytes;
  options->output_limits.normal.soft_s = server_.limits().output_soft_s;
  options->tcp_keepalive_s = server_.limits().keepalive_s;
  const ParameterRow* row = FindParameter(kUserAgent, name);
  if (row == nullptr) return true;
  std::string error;
  return SetParameter(*row, value, options, &error);
}

const char* WorkerHooks::CheckConfig(std::string_view name, std::string_view value) {
  AgentOptions options;
  if (!OptionsWith(name, value, &options)) return "argument is out of range";
  if (name != "maxclients") return nullptr;
  const auto wanted = static_cast<uint64_t>(ParseInt64(value).value_or(0));
  return server_.ClientsAllowed(wanted) == wanted
             ? nullptr
             : "The operating system is not able to handle the "
               "specified number of clients; raise 'ulimit -n'";
}

void WorkerHooks::ApplyConfig(std::string_view name, std::string_view value) {
  AgentOptions options;
  if (OptionsWith(name, value, &options)) server_.limits().Take(options);
}

void WorkerHooks::SendToMonitors(const std::string& line) {
  const auto shared = std::make_shared<const std::string>(line);
  for (const std::unique_ptr<Worker>& worker : server_.workers()) {
    if (worker.get() == &worker_) {
      worker->SendToMonitors(*shared);
    } else {
      worker->Post([target = worker.get(), shared] { target->SendToMonitors(*shared); });
    }
  }
}

Task<void> WorkerHooks::SetActiveExpiry(bool active) {
  co_await server_.OnEveryWorker(worker_,
                                 [active](Worker& worker) { worker.kv().SetActiveExpiry(active); });
}

std::shared_ptr<MemoryBudget> WorkerHooks::large_requests() {
  return server_.storage().large_values().requests;
}

// In steps: the end of the process is not held up.
Task<void> WorkerHooks::SleepFor(uint64_t ns) {
  constexpr uint64_t kStepNs = 20'000'000;
  const uint64_t end_ns = worker_.executor().NowNs() + ns;
  for (uint64_t now_ns = worker_.executor().NowNs(); now_ns < end_ns && !worker_.closing();
       now_ns = worker_.executor().NowNs()) {
    co_await worker_.executor().SleepFor(std::min(kStepNs, end_ns - now_ns));
  }
}

// The signal that an operator would send.
void WorkerHooks::Shutdown() { kill(getpid(), SIGTERM); }

std::unique_ptr<ServerHooks> MakeWorkerHooks(Server& server, Worker& worker) {
  return std::make_unique<WorkerHooks>(server, worker);
}

}  // namespace onetrip
