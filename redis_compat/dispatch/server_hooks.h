// ServerHooks: everything a command may ask of the process around it.
//
// The frontend implements it, one object per worker; redis_compat has no sockets, threads or clocks
// of its own. Called on the worker's thread. Of it config() is on the path of a command on keys
// and, for large values, large_requests(); what else there is may take locks.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_HOOKS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_HOOKS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/memory_budget.h"
#include "client_core/base/rng.h"
#include "client_core/coro/task.h"
#include "redis_compat/dispatch/client_info.h"
#include "redis_compat/dispatch/command_stats.h"
#include "redis_compat/dispatch/key_claims.h"
#include "redis_compat/dispatch/observation.h"
#include "redis_compat/dispatch/server_facts.h"
#include "redis_compat/dispatch/session.h"
#include "redis_compat/parameters.h"

namespace onetrip {

class ServerHooks {
 public:
  // Both are one for the process and outlive every command. They may be made after this.
  ServerHooks(ServerConfig& config, Observation& observation)
      : config_(config), observation_(observation) {}
  virtual ~ServerHooks() = default;

  [[nodiscard]] ServerConfig& config() const { return config_; }
  [[nodiscard]] Observation& observation() const { return observation_; }
  // For commands that choose elements at random.
  [[nodiscard]] Rng& rng() { return rng_; }
  // For commands that move elements between keys.
  [[nodiscard]] KeyClaims& key_claims() { return key_claims_; }

  // Steady time for ages, wall time for TIME. Expiry uses Kv::NowMs(), never this.
  virtual const Clock& clock() = 0;

  // Appends a snapshot of every connection of every worker, in any order. May suspend until the
  // other workers have answered.
  virtual Task<void> ListClients(std::vector<ClientSnapshot>* clients) = 0;

  // Fills everything CLIENT INFO shows of the caller's own connection.
  virtual void DescribeClient(const Session& session, ClientSnapshot* snapshot) = 0;

  // Ends every connection that `filter` matches, except that the caller (`self_id`), if matched, is
  // only counted: the command closes it after its reply. Returns how many matched.
  virtual Task<uint64_t> KillClients(const ClientFilter& filter, uint64_t self_id) = 0;

  // Numbers of the process for INFO; see ServerFacts. Fields not known stay at their defaults.
  virtual void FillFacts(ServerFacts* facts) = 0;

  // Names of sections that INFO shows beside Redis's own, in lower case ("onetrip"). They belong to
  // the default set. The span lives as long as the hooks.
  virtual std::vector<std::string_view> ExtraInfoSections() = 0;

  // Appends the body of one of them, or the counters of one of Redis's sections, as
  // "field:value\r\n" lines, without a "# Title" line.
  virtual void AppendInfoSection(std::string_view section, std::string* out) = 0;

  // Adds up the call statistics of all workers.
  virtual void SumCommandStats(CommandTotals* totals) = 0;

  // CONFIG RESETSTAT: zeroes the counters of all workers, the caller's at once, each other's in
  // that worker's next turn.
  virtual void ResetStats() = 0;

  // Checks a value that passed ServerConfig's own checks: null if it may be stored, or a message (a
  // string literal) that becomes the tail of CONFIG SET's error. Changes nothing.
  virtual const char* CheckConfig(std::string_view name, std::string_view value) = 0;

  // A value that passed all checks is about to be stored: it takes effect.
  virtual void ApplyConfig(std::string_view name, std::string_view value) = 0;

  // Sends a line to every connection that has said MONITOR, behind what it is sent now.
  virtual void SendToMonitors(const std::string& line) = 0;

  // Makes this process remove expired keys that no client touches, or stops it; takes effect at
  // once on the caller's worker, and on all workers when it completes.
  virtual Task<void> SetActiveExpiry(bool active) = 0;

  // Counts the process's memory that requests take, and large values that commands make; null: the
  // process does not count it.
  virtual std::shared_ptr<MemoryBudget> large_requests() = 0;

  // Goes on `ns` nanoseconds from now or a little later.
  virtual Task<void> SleepFor(uint64_t ns) = 0;

  // Ends the process in order, once the running commands have ended.
  virtual void Shutdown() = 0;

 private:
  ServerConfig& config_;
  Observation& observation_;
  Rng rng_{std::random_device()()};
  KeyClaims key_claims_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SERVER_HOOKS_H_
