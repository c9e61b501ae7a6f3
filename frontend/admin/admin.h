// Admin: what a process tells and lets itself be told: INFO, CLIENT LIST and KILL, CONFIG SET.
#ifndef ONETRIP_FRONTEND_ADMIN_ADMIN_H_
#define ONETRIP_FRONTEND_ADMIN_ADMIN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/options.h"
#include "client_core/coro/task.h"
#include "frontend/connection.h"
#include "frontend/metrics/metrics_registry.h"
#include "redis_compat/dispatch/server_hooks.h"

namespace onetrip {

class Server;
class Worker;

// The hooks of one worker. Both outlive it.
class WorkerHooks final : public ServerHooks {
 public:
  WorkerHooks(Server& server, Worker& worker);

  const Clock& clock() override;
  Task<void> ListClients(std::vector<ClientSnapshot>* clients) override;
  void DescribeClient(const Session& session, ClientSnapshot* snapshot) override;
  Task<uint64_t> KillClients(const ClientFilter& filter, uint64_t self_id) override;
  void FillFacts(ServerFacts* facts) override;
  std::vector<std::string_view> ExtraInfoSections() override;
  void AppendInfoSection(std::string_view section, std::string* out) override;
  void SumCommandStats(CommandTotals* totals) override;
  void ResetStats() override;
  const char* CheckConfig(std::string_view name, std::string_view value) override;
  void ApplyConfig(std::string_view name, std::string_view value) override;
  void SendToMonitors(const std::string& line) override;
  Task<void> SetActiveExpiry(bool active) override;
  std::shared_ptr<MemoryBudget> large_requests() override;
  Task<void> SleepFor(uint64_t ns) override;
  void Shutdown() override;

 private:
  MetricSources Sources() const;
  // The options in force, and with them what CONFIG SET is asked for; false: that cannot be.
  bool OptionsWith(std::string_view name, std::string_view value, AgentOptions* options) const;

  Server& server_;
  Worker& worker_;
};

// For Server's constructor.
std::unique_ptr<ServerHooks> MakeWorkerHooks(Server& server, Worker& worker);

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_ADMIN_ADMIN_H_
