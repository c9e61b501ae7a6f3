// nemesis_client: drives a cluster while nemesis.py breaks it, and judges what clients saw.
//
// Reads what happens from stdin, a line each: "up N" and "down N" (agent N serves, or is about to
// be stopped), "full" and "free" (the memory). Ends when stdin does, or on "end"; then every agent
// must serve. Prints one JSON object; exit code 1 if anything in it is a failure.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/nemesis/nemesis_run.h"

namespace onetrip {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNsPerS = 1e9;
constexpr double kNsPerMs = 1e6;

constexpr char kDescription[] =
    "Sends random commands to the agents of a cluster until stdin ends, and checks that what it "
    "saw is linearizable, that no acknowledged write is lost and that sums are exact.\n\n"
    "Lines on stdin: \"up N\", \"down N\": agent N serves, or is about to be stopped; \"full\", "
    "\"free\": the memory is used up, or no longer.\n\n"
    "longest_gap_ms: per command the longest times in which none succeeded through some one agent "
    "that was up, for INCR and SET without those in which the memory was full.";

// Follows the lines of stdin until it ends.
void FollowFaults(NemesisRun* run) {
  std::string line;
  while (std::getline(std::cin, line) && line != "end") {
    std::istringstream words(line);
    std::string what;
    size_t agent = 0;
    words >> what >> agent;
    if (what == "up") run->gaps().AgentUp(agent, NowNs());
    if (what == "down") run->gaps().AgentDown(agent, NowNs());
    if (what == "full") run->gaps().MemoryFull(NowNs());
    if (what == "free") run->gaps().MemoryFree(NowNs());
  }
}

Json GapsOf(const Gaps& gaps) {
  Json all;
  for (size_t command = 0; command < Gaps::kCommands.size(); ++command) {
    Json list = Json::array();
    for (const Gap& gap : gaps.Longest(command)) {
      list.push_back({{"ms", static_cast<double>(gap.ns) / kNsPerMs},
                      {"agent", gap.agent},
                      {"from_s", static_cast<double>(gap.start_ns) / kNsPerS}});
    }
    all[std::string(Gaps::kCommands[command])] = list;
  }
  return all;
}

Json UnknownAtSeconds(const NemesisRun::Findings& findings) {
  Json list = Json::array();
  for (const auto& [second, commands] : findings.unknown_at_s) {
    list.push_back({{"s", second}, {"commands", commands}});
  }
  return list;
}

Json ReportOf(const NemesisRun& run, Gaps& gaps, double seconds) {
  const NemesisRun::Findings& findings = run.findings();
  Json counters = Json::array();
  for (const Lasting::Counter& counter : run.lasting().counters()) {
    counters.push_back({{"acknowledged", counter.acknowledged},
                        {"unknown", counter.unknown},
                        {"value", counter.last_read}});
  }
  return {{"seconds", seconds},
          {"commands", findings.commands},
          {"unknown", findings.unknown},
          {"unknown_at", UnknownAtSeconds(findings)},
          {"errors", findings.errors},
          {"connections_lost", findings.connections_lost},
          {"generations", findings.generations},
          {"configurations", findings.configurations},
          {"counts_left", findings.counts_left},
          {"counters", counters},
          {"written_once", run.lasting().once_acknowledged().size()},
          {"written_once_unknown", run.lasting().once_unknown()},
          {"grown",
           {{"acknowledged", run.growth().counts().acknowledged},
            {"unknown", run.growth().counts().unknown},
            {"refused", run.growth().counts().refused},
            {"read_back", run.growth().counts().read_back},
            {"deleted", run.growth().counts().deleted}}},
          {"deadlines",
           {{"written", run.deadlines().written()},
            {"read_alive", run.deadlines().read_alive()},
            {"read_gone", run.deadlines().read_gone()}}},
          {"longest_gap_ms", GapsOf(gaps)},
          {"failures", findings.failures}};
}

int Run(const NemesisOptions& options) {
  const uint64_t start_ns = NowNs();
  NemesisRun run(options);
  run.Start();
  FollowFaults(&run);
  run.Finish();
  const double seconds = static_cast<double>(NowNs() - start_ns) / kNsPerS;
  std::cout << ReportOf(run, run.gaps(), seconds).dump(1) << std::endl;
  return run.findings().failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  onetrip::NemesisOptions options;
  CLI::App app(onetrip::kDescription, "nemesis_client");
  app.add_option("--agent", options.agents, "HOST:PORT or the path of a unix socket; repeat it")
      ->required();
  app.add_option("--seed", options.seed, "Of the commands")->capture_default_str();
  app.add_option("--clients", options.clients_per_agent, "Clients of each agent, beside one")
      ->capture_default_str();
  app.add_option("--operations", options.operations, "Of a client in a generation, at most")
      ->capture_default_str();
  app.add_flag("--flush-all", options.flush_all,
               "FLUSHALL now and then, and of all work only the generations");
  app.add_option("--batches", options.batches,
                 "Of 500 new keys, that an agent's client keeps at most")
      ->capture_default_str();
  app.add_option("--generation-ms", options.generation_ms, "How long keys are used")
      ->capture_default_str();
  app.add_option("--timeout-ms", options.timeout_ms, "When a client gives up a command")
      ->capture_default_str();
  app.add_option("--history-dir", options.history_dir, "Where histories that are wrong go")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // hiredis writes to agents that have just been killed.
  std::signal(SIGPIPE, SIG_IGN);
  return onetrip::Run(options);
}
