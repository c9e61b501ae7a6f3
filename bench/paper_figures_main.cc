// Repeats the comparison of SWARM (section 7: table 2, figures 5, 12 and 13) on the product's own
// code, in the simulation, with a network like the paper's; prints each figure beside the paper's.
// Beside that, the round trips of every command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/command_costs.h"
#include "bench/paper_report.h"
#include "bench/paper_world.h"

namespace onetrip {
namespace {

constexpr uint64_t kWarmOps = 50'000;
constexpr uint64_t kMeasuredOps = 250'000;
constexpr uint64_t kCommandCalls = 2'000;
constexpr uint32_t kSettleOpsPerKey = 20;
constexpr uint32_t kSettleOpsOfManyPerKey = 100;
constexpr double kShareOfA = 0.5;
constexpr double kShareOfB = 0.95;

// Figures of the paper; 0: it gives none.
struct PaperFive {
  System system;
  double get_us;
  double update_us;
  const char* get_trips;     // common / 99th percentile
  const char* update_trips;  // table 2's
};
constexpr PaperFive kFive[] = {
    {System::kRaw, 1.9, 1.6, "1 / 1", "1 / 1"}, {System::kSwarm, 2.4, 3.1, "1 / 1", "1 / 1"},
    {System::kAbd, 4.3, 4.9, "2 / 2", "2 / 2"}, {System::kSnapshot, 2.9, 8.5, "1-2 / 2", "4 / 5"},
    {System::kRawEngine, 0, 0, "", ""},
};

class Figures {
 public:
  Figures(double scale, uint64_t seed) : scale_(scale), seed_(seed) {}

  void Five();
  void Twelve();
  void Thirteen();
  void Others();
  // Every operation takes as long as the round trips that it counts.
  void CheckCounts();
  void LateAnswers();
  void Commands();
  [[nodiscard]] const Json& json() const { return json_; }

 private:
  [[nodiscard]] WorldOptions Options(System system, double get_share) const {
    WorldOptions options;
    options.system = system;
    options.get_share = get_share;
    options.seed = seed_;
    options.settle_ops_per_key = kSettleOpsPerKey;
    options.warm_ops = Scaled(kWarmOps);
    options.measured_ops = Scaled(kMeasuredOps);
    return options;
  }
  [[nodiscard]] uint64_t Scaled(uint64_t ops) const {
    return static_cast<uint64_t>(static_cast<double>(ops) * scale_);
  }

  const double scale_;
  const uint64_t seed_;
  Json json_;
};

void PrintRow(std::string_view system, const char* workload, const char* op, const Summary& s,
              double paper_us, const char* paper_trips) {
  printf("%-9s %s %-6s  %5.2f  %5.2f  %5.2f  %5.2f   ", std::string(system).c_str(), workload, op,
         s.LatencyUs(1), s.LatencyUs(50), s.LatencyUs(90), s.LatencyUs(99));
  printf(paper_us > 0 ? "%5.1f   " : "    -   ", paper_us);
  printf("%u / %u   %-7s  %5.2f %%\n", s.RoundTrips(50), s.RoundTrips(99), paper_trips, s.Share(1));
}

void Figures::Five() {
  printf("\nTable 2 and figure 5: 4 clients, 100k keys, Zipf .99, 64 B; microseconds\n");
  printf(
      "system    workload   P1     P50    P90    P99    paper P50  trips P50/P99, paper's, in "
      "one\n");
  for (const PaperFive& paper : kFive) {
    for (const bool is_b : {true, false}) {
      PaperWorld world(Options(paper.system, is_b ? kShareOfB : kShareOfA));
      const std::vector<OpCost> costs = world.Run();
      const Summary gets(costs, OpKind::kGet);
      const Summary updates(costs, OpKind::kUpdate);
      const char* workload = is_b ? "B" : "A";
      PrintRow(NameOf(paper.system), workload, "get", gets, is_b ? paper.get_us : 0,
               paper.get_trips);
      PrintRow(NameOf(paper.system), workload, "update", updates, is_b ? paper.update_us : 0,
               paper.update_trips);
      Json& json = json_["figure5"][std::string(NameOf(paper.system))][workload];
      json["get"] = gets.ToJson();
      json["update"] = updates.ToJson();
      fflush(stdout);
    }
  }
}

void Figures::Twelve() {
  printf("\nFigure 12: YCSB A on one key; percent of the operations by round trips\n");
  printf(
      "system    clients lanes  op       1      2      3      4     5+   most  P50 us  P99 us\n");
  for (const auto& [system, clients] :
       {std::pair(System::kSwarm, 16U), std::pair(System::kSwarm, 32U),
        std::pair(System::kAbd, 16U), std::pair(System::kAbd, 32U)}) {
    WorldOptions options = Options(system, kShareOfA);
    options.keys = 1;
    options.clients = clients;
    options.lanes = clients;
    options.settle_ops_per_key = 0;
    PaperWorld world(options);
    const std::vector<OpCost> costs = world.Run();
    for (const OpKind kind : {OpKind::kGet, OpKind::kUpdate}) {
      const char* name = kind == OpKind::kGet ? "get" : "update";
      const Summary s(costs, kind);
      printf("%-9s %4u    %3u   %-6s %5.1f  %5.1f  %5.1f  %5.1f  %5.1f  %5u  %6.2f  %6.2f\n",
             std::string(NameOf(system)).c_str(), clients, system == System::kAbd ? 1U : clients,
             name, s.Share(1), s.Share(2), s.Share(3), s.Share(4), s.ShareFrom(5), s.most(),
             s.LatencyUs(50), s.LatencyUs(99));
      json_["figure12"][std::string(NameOf(options.system))][std::to_string(clients)][name] =
          s.ToJson();
    }
    fflush(stdout);
  }
  printf(
      "paper       16     16   get     14.0    8.0   78.0 in 3 or more               -   30.00\n");
  printf(
      "paper       16     16   update  73.0    7.0   14.0    6.0    0.0      4       -   10.00\n");
}

void Figures::Thirteen() {
  struct Paper {
    uint32_t lanes;
    double share_a;
    double share_b;
    double get_us;
    double update_us;  // for those in one round trip
  };
  constexpr Paper kPaper[] = {
      {1, 2, 23, 3.1, 3.6}, {4, 11, 57, 3.2, 3.9}, {16, 39, 86, 3.3, 4.0}, {64, 99, 99, 3.6, 4.3}};
  printf("\nFigure 13: 64 clients; percent of the updates in one round trip, and medians in us\n");
  printf("lanes workload  in one  paper   get   paper   update in one trip  paper   all updates\n");
  for (const Paper& paper : kPaper) {
    for (const bool is_b : {true, false}) {
      WorldOptions options = Options(System::kSwarm, is_b ? kShareOfB : kShareOfA);
      options.clients = 64;
      options.lanes = paper.lanes;
      options.settle_ops_per_key = kSettleOpsOfManyPerKey;
      options.measured_ops /= 5;
      options.warm_ops /= 5;
      PaperWorld world(options);
      const std::vector<OpCost> costs = world.Run();
      const Summary gets(costs, OpKind::kGet);
      const Summary updates(costs, OpKind::kUpdate);
      printf("%4u     %s       %5.1f   %5.0f  %5.2f  %5.1f   %5.2f               %5.1f   %5.2f\n",
             paper.lanes, is_b ? "B" : "A", updates.Share(1), is_b ? paper.share_b : paper.share_a,
             gets.LatencyUs(50), paper.get_us, updates.MedianOfOneUs(), paper.update_us,
             updates.LatencyUs(50));
      Json& json = json_["figure13"][std::to_string(paper.lanes)][is_b ? "B" : "A"];
      json["get"] = gets.ToJson();
      json["update"] = updates.ToJson();
      fflush(stdout);
    }
  }
}

void Figures::Others() {
  printf("\nInserts and deletes, 4 clients; round trips\n");
  for (const System system : {System::kSwarm, System::kAbd, System::kSnapshot}) {
    WorldOptions options = Options(system, kShareOfB);
    options.warm_ops = options.measured_ops = 0;
    PaperWorld world(options);
    const std::vector<OpCost> costs = world.InsertAndDelete(2000);
    for (const OpKind kind : {OpKind::kInsert, OpKind::kDelete}) {
      const Summary s(costs, kind);
      const char* name = kind == OpKind::kInsert ? "insert" : "delete";
      printf("%-9s %-6s  P50 %u  P99 %u  most %u  in one %.2f %%  P50 %.2f us\n",
             std::string(NameOf(system)).c_str(), name, s.RoundTrips(50), s.RoundTrips(99),
             s.most(), s.Share(1), s.LatencyUs(50));
      json_["others"][std::string(NameOf(system))][name] = s.ToJson();
    }
    fflush(stdout);
  }
}

void Figures::CheckCounts() {
  constexpr uint64_t kLatencyNs = 10'000;
  for (const System system :
       {System::kRaw, System::kRawEngine, System::kSwarm, System::kAbd, System::kSnapshot}) {
    WorldOptions options = Options(system, kShareOfA);
    options.keys = 1000;
    options.settle_ops_per_key = 0;
    options.fabric = EvenFabric(kLatencyNs);
    PaperWorld world(options);
    uint64_t other = 0;
    std::vector<OpCost> costs = world.Run();
    for (const OpCost& cost : costs) {
      if (cost.latency_ns == cost.round_trips * 2 * kLatencyNs) continue;
      if (++other <= 5) {
        printf("  kind %d counts %u round trips and takes %.2f\n", static_cast<int>(cost.kind),
               cost.round_trips, static_cast<double>(cost.latency_ns) / (2 * kLatencyNs));
      }
    }
    printf("%-9s %zu operations, %zu of them take another time than their round trips\n",
           std::string(NameOf(system)).c_str(), costs.size(), static_cast<size_t>(other));
  }
}

// Reads only, after writes; the round trips of 60 us of a network like TCP's, one answer in a
// thousand messages twenty times as late.
void Figures::LateAnswers() {
  printf("\n50 clients read 1,000 keys that nobody writes; percent of the gets by round trips\n");
  printf("late messages     1      2     3+   P50 us   P99 us\n");
  for (const uint32_t tail_permille : {0U, 1U, 5U}) {
    WorldOptions options = Options(System::kSwarm, 1);
    options.keys = 1000;
    options.theta = 0;
    options.clients = 50;
    options.warm_get_share = kShareOfA;
    options.fabric.latency_min_ns = 20'000;
    options.fabric.latency_max_ns = 40'000;
    options.fabric.tail_permille = tail_permille;
    PaperWorld world(options);
    const Summary gets(world.Run(), OpKind::kGet);
    printf("%u of 1000     %6.2f %6.2f %6.2f   %6.1f   %6.1f\n", tail_permille, gets.Share(1),
           gets.Share(2), gets.ShareFrom(3), gets.LatencyUs(50), gets.LatencyUs(99));
    json_["late"][std::to_string(tail_permille)] = gets.ToJson();
    fflush(stdout);
  }
}

void Figures::Commands() {
  printf("\nEvery command, cold and warm: 3 replicas, %u clients with keys of their own\n",
         kCommandClients);
  printf("                                     round trips by time     as counted\n");
  printf("command        key                      P50    P99   most     P50   P99\n");
  const auto show = [this](const CommandCosts& row) {
    constexpr double kUs = kCommandRoundTripNs / 1000.0;
    const Summary s(row.calls, OpKind::kCommand);
    printf("%-14s %-22s %5.1f  %5.1f  %5.1f", std::string(row.command).c_str(),
           std::string(row.key).c_str(), s.LatencyUs(50) / kUs, s.LatencyUs(99) / kUs,
           s.LatencyUs(100) / kUs);
    Json& json = json_["commands"][std::string(row.command)][std::string(row.key)];
    json["calls"] = s.count();
    json["by_time"] = {{"p50", s.LatencyUs(50) / kUs},
                       {"p99", s.LatencyUs(99) / kUs},
                       {"max", s.LatencyUs(100) / kUs}};
    if (!row.over_several_keys) {
      printf("   %5u %5u", s.RoundTrips(50), s.RoundTrips(99));
      json["counted"] = {{"p50", s.RoundTrips(50)}, {"p99", s.RoundTrips(99)}, {"max", s.most()}};
    }
    printf("\n");
    fflush(stdout);
  };
  MeasureCommands(static_cast<uint32_t>(Scaled(kCommandCalls)), seed_, show);
}

int Main(int argc, char** argv) {
  CLI::App app("Repeats table 2 and figures 5, 12 and 13 of SWARM in the simulation");
  double scale = 1;
  uint64_t seed = 1;
  std::string json_path;
  std::vector<std::string> only;
  app.add_option("--scale", scale, "times the operations of each run");
  app.add_option("--seed", seed);
  app.add_option("--json", json_path, "also write all of it to this file");
  app.add_option("--only", only, "check, 5, others, commands, 12, 13, late; all if not given");
  CLI11_PARSE(app, argc, argv);
  Figures figures(scale, seed);
  const auto wanted = [&only](std::string_view name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  if (wanted("check")) figures.CheckCounts();
  if (wanted("5")) figures.Five();
  if (wanted("others")) figures.Others();
  if (wanted("commands")) figures.Commands();
  if (wanted("12")) figures.Twelve();
  if (wanted("13")) figures.Thirteen();
  if (wanted("late")) figures.LateAnswers();
  if (!json_path.empty()) std::ofstream(json_path) << figures.json() << "\n";
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Main(argc, argv); }
