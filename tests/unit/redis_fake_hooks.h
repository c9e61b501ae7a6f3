// FakeHooks: a process with one worker and no sockets, for tests and benches of commands.
#ifndef ONETRIP_TESTS_UNIT_REDIS_FAKE_HOOKS_H_
#define ONETRIP_TESTS_UNIT_REDIS_FAKE_HOOKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "redis_compat/dispatch/server_hooks.h"

namespace onetrip {

class FakeHooks final : public ServerHooks {
 public:
  FakeHooks() : ServerHooks(config_, observation_) {}
  const Clock& clock() override { return clock_; }

  Task<void> ListClients(std::vector<ClientSnapshot>* clients) override {
    clients->insert(clients->end(), clients_.begin(), clients_.end());
    co_return;
  }
  void DescribeClient(const Session& session, ClientSnapshot* snapshot) override {
    snapshot->address = "127.0.0.1:5000";
    snapshot->local_address = "127.0.0.1:6379";
    snapshot->fd = 8;
    FillFromSession(session, clock_.NowNs(), snapshot);
  }
  Task<uint64_t> KillClients(const ClientFilter& filter, uint64_t) override {
    uint64_t matched = 0;
    for (const ClientSnapshot& client : clients_) {
      matched += filter.Matches(client) ? 1 : 0;
    }
    co_return matched;
  }
  void FillFacts(ServerFacts* facts) override { facts->tcp_port = 6379; }
  std::vector<std::string_view> ExtraInfoSections() override { return {"onetrip"}; }
  void AppendInfoSection(std::string_view section, std::string* out) override {
    if (section == "onetrip") *out += "rtt:1\r\n";
    if (section != "stats") return;
    *out += "keyspace_hits:" + std::to_string(stats_.keyspace_hits()) + "\r\n";
    *out += "keyspace_misses:" + std::to_string(stats_.keyspace_misses()) + "\r\n";
    *out += "total_error_replies:" + std::to_string(stats_.error_replies()) + "\r\n";
  }
  void SumCommandStats(CommandTotals* totals) override { stats_.AddTo(totals); }
  void ResetStats() override {
    stats_.ResetCalls();
    stats_.ResetLatencies();
    stats_.ResetLookups();
    stats_.ResetErrors();
  }
  const char* CheckConfig(std::string_view name, std::string_view value) override {
    return name == "maxclients" && value == "13" ? "not that one" : nullptr;
  }
  void ApplyConfig(std::string_view name, std::string_view value) override {
    applied_.append(name).append("=").append(value).append(" ");
  }
  void SendToMonitors(const std::string& line) override { monitored_ += line; }
  Task<void> SetActiveExpiry(bool active) override {
    active_expiry_ = active;
    co_return;
  }
  std::shared_ptr<MemoryBudget> large_requests() override { return nullptr; }
  Task<void> SleepFor(uint64_t) override { co_return; }
  void Shutdown() override { shut_down_ = true; }

  std::string& monitored() { return monitored_; }
  [[nodiscard]] const std::string& applied() const { return applied_; }
  [[nodiscard]] bool active_expiry() const { return active_expiry_; }
  [[nodiscard]] bool shut_down() const { return shut_down_; }
  CommandStats& stats() { return stats_; }
  ManualClock& manual_clock() { return clock_; }
  std::vector<ClientSnapshot>& clients() { return clients_; }

 private:
  ServerConfig config_;
  Observation observation_;
  std::string applied_;
  std::string monitored_;
  bool active_expiry_ = true;
  bool shut_down_ = false;
  ManualClock clock_;
  CommandStats stats_;
  std::vector<ClientSnapshot> clients_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_REDIS_FAKE_HOOKS_H_
