#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "client_core/index/index_metrics.h"
#include "client_core/memory/allocator_metrics.h"
#include "frontend/metrics/metrics_registry.h"
#include "tests/unit/frontend_fixture.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A worker that has counted 7 of everything.
struct CountedWorker {
  CountedWorker() {
    metrics.store = &store;
    store.allocator = &allocator;
    store.index = &index;
    TrafficMetrics& traffic = metrics.traffic;
    for (Counter* counter : {&traffic.input_bytes,
                             &traffic.output_bytes,
                             &traffic.reads,
                             &traffic.writes,
                             &traffic.commands,
                             &traffic.overlapped,
                             &traffic.connections,
                             &traffic.rejected,
                             &traffic.output_limit_closes,
                             &traffic.query_limit_closes,
                             &traffic.client_bytes,
                             &traffic.input_buffer_max,
                             &traffic.output_buffer_max,
                             &traffic.commands_per_s,
                             &traffic.input_per_s,
                             &traffic.output_per_s,
                             &store.expired,
                             &store.rmw_combined,
                             &store.hot_writes,
                             &store.lost_rounds,
                             &store.unknown_outcomes,
                             &store.objects_moved,
                             &store.registers_thawed,
                             &store.swept,
                             &allocator.owned_bytes,
                             &allocator.live_bytes,
                             &allocator.retired_bytes,
                             &allocator.blocks_opened,
                             &allocator.blocks_acquired,
                             &allocator.objects_found,
                             &allocator.exhausted,
                             &index.splits,
                             &index.subtable_bytes,
                             &index.cache_bytes,
                             &index.cache_hits,
                             &index.cache_invalid,
                             &metrics.no_rdma.requests,
                             &metrics.no_rdma.doorbells,
                             &metrics.no_rdma.completions,
                             &metrics.no_rdma.flushed,
                             &metrics.no_rdma.unsent,
                             &metrics.no_rdma.wakeups,
                             &metrics.no_rdma.connections}) {
      counter->Set(7);
    }
    allocator.free_bytes.Add(SizeClass(0), 7);
    for (Histogram* histogram : {&store.get_round_trips, &store.set_round_trips,
                                 &store.del_round_trips, &store.rmw_round_trips}) {
      histogram->Record(7);
    }
    for (int i = 0; i < 7; ++i) {
      metrics.commands.CountCall(1);
      metrics.commands.CountError("ERR");
    }
    metrics.commands.CountLookups(7, 7);
  }

  StoreMetrics store;
  AllocatorMetrics allocator;
  IndexMetrics index;
  WorkerMetrics metrics;
};

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    sources_.workers = {&one_.metrics, &other_.metrics};
    sources_.large_requests = sources_.large_values = &budget_;
  }
  std::string TextOf(const MetricRow& row) { return row.text(sources_); }

  CountedWorker one_;
  CountedWorker other_;
  MemoryBudget budget_{100};
  MetricSources sources_;
};

TEST(MetricsRegistry, NamesAreUniqueAndEveryRowSaysWhatItCounts) {
  std::set<std::string_view> names;
  for (const MetricRow& row : MetricsRegistry()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.help.empty(), row.kind == MetricKind::kAbsent) << row.name;
    EXPECT_FALSE(row.help.ends_with('.')) << row.name;
    // A state is what it is.
    if (row.kind == MetricKind::kGauge || row.kind == MetricKind::kAbsent) {
      EXPECT_EQ(row.reset, nullptr) << row.name;
    }
    EXPECT_TRUE(row.kind != MetricKind::kHistogram || row.reset != nullptr) << row.name;
  }
}

TEST_F(MetricsTest, ResetClearsTheRowsOfOneWorkerThatSaySoAndNoOthers) {
  ResetMetrics(one_.metrics);
  for (const MetricRow& row : MetricsRegistry()) {
    if (row.text == nullptr || row.kind == MetricKind::kAbsent) continue;
    // The pool, the budget and the clients are not the workers'.
    if (row.name.starts_with("large_value_") || row.kind == MetricKind::kText) continue;
    const std::string text = TextOf(row);
    const std::string_view name = row.name;
    if (row.kind == MetricKind::kHistogram) {
      EXPECT_EQ(text, name.ends_with("_histogram") ? "7=1" : "7.000") << name;
    } else if (row.kind == MetricKind::kCounter) {
      EXPECT_EQ(text, row.reset != nullptr ? "7" : "14") << name;
    }
  }
  ResetMetrics(other_.metrics);
  std::string section;
  AppendMetrics("onetrip", sources_, &section);
  EXPECT_THAT(section, HasSubstr("rtt_per_get:0.000\r\nrtt_per_get_histogram:\r\n"));
  EXPECT_THAT(section, HasSubstr("\r\nunknown_outcomes:0\r\n"));
  EXPECT_THAT(section, HasSubstr("\r\nindex_splits:14\r\n"));
  EXPECT_THAT(section, HasSubstr("\r\nlarge_value_memory_bytes:200\r\n"));
  EXPECT_THAT(section, Not(HasSubstr("pool_warning")));
  CommandTotals totals;
  one_.metrics.commands.AddTo(&totals);
  EXPECT_TRUE(totals.errors.empty());
  EXPECT_EQ(totals.commands[1].calls, 0U);
}

TEST_F(MetricsTest, WorkersAreAddedUpOrTheLargestOfThemIsShown) {
  other_.metrics.traffic.input_buffer_max.Set(9);
  other_.metrics.traffic.input_per_s.Set(1024);
  one_.metrics.traffic.input_per_s.Set(512);
  std::string clients;
  AppendMetrics("clients", sources_, &clients);
  EXPECT_THAT(clients, HasSubstr("\r\nclient_recent_max_input_buffer:9\r\n"));
  std::string stats;
  AppendMetrics("stats", sources_, &stats);
  EXPECT_THAT(stats, HasSubstr("\r\ninstantaneous_input_kbps:1.50\r\n"));
  EXPECT_THAT(stats, HasSubstr("\r\nclient_query_buffer_limit_disconnections:14\r\n"));
  EXPECT_THAT(stats, HasSubstr("\r\nsync_full:0\r\n"));
  EXPECT_EQ(ClientBytes(sources_), 14U);
}

TEST_F(MetricsTest, APoolThatIsNearlyFullIsTold) {
  sources_.pool.capacity_bytes = 100 << 20;
  sources_.pool.granted_bytes = 99 << 20;
  std::string section;
  AppendMetrics("onetrip", sources_, &section);
  EXPECT_THAT(section, HasSubstr("\r\npool_used_percent:99\r\n"));
  EXPECT_THAT(section, HasSubstr("\r\npool_warning:"));
}

TEST(MetricsRegistry, HistogramsListTheirBuckets) {
  Histogram histogram;
  EXPECT_EQ(HistogramText(histogram), "");
  histogram.Record(1);
  histogram.Record(1);
  histogram.Record(7);
  EXPECT_EQ(HistogramText(histogram), "1=2,7=1");
}

// The table of docs/MONITORING.md, line by line.
std::string TableOfCounters() {
  std::string table =
      "| `INFO` | field | what it is | unit | kind | set back by CONFIG RESETSTAT |\n"
      "|---|---|---|---|---|---|\n";
  for (const MetricRow& row : MetricsRegistry()) {
    if (row.kind == MetricKind::kAbsent) continue;
    table.append("| ").append(row.section).append(" | `").append(row.name).append("` | ");
    table.append(row.help).append(" | ").append(row.unit).append(" | ").append(NameOf(row.kind));
    table.append(" | ").append(row.reset != nullptr ? "yes" : "no").append(" |\n");
  }
  return table;
}

// When it fails, it shows the lines that the page lacks (+) and those that it has too much (-).
TEST(MetricsRegistry, DocsListEveryCounter) {
  std::ifstream file(ONETRIP_DOCS "/MONITORING.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string wanted = TableOfCounters();
  const size_t start = page.find(wanted.substr(0, wanted.find('\n') + 1));
  ASSERT_NE(start, std::string::npos);
  const size_t end = page.find("\n\n", start);
  EXPECT_EQ(page.substr(start, end - start + 1), wanted);
}

// A Redis client that reads no more closes the agent's end, and the agent says so.
TEST(MetricsOfAnAgent, ClientsThatWereClosedOverALimitAreCounted) {
  TestAgent agent;
  TestClient watcher(agent.port());
  const auto field = [&watcher](std::string_view name) {
    watcher.Send(Resp({"INFO", "stats"}));
    const std::string info = watcher.ReadBulk();
    const std::string start = "\r\n" + std::string(name) + ":";
    const size_t at = info.find(start);
    if (at == std::string::npos) return std::string("none");
    return info.substr(at + start.size(), info.find('\r', at + 2) - at - start.size());
  };
  EXPECT_EQ(field("client_query_buffer_limit_disconnections"), "0");
  EXPECT_EQ(watcher.Ask({"CONFIG", "SET", "client-query-buffer-limit", "1mb"}, "+OK\r\n"),
            "+OK\r\n");
  TestClient greedy(agent.port());
  greedy.Send("*2\r\n$4\r\nECHO\r\n$2000000\r\n" + std::string(1'500'000, 'x'));
  EXPECT_TRUE(greedy.Closed());
  EXPECT_EQ(field("client_query_buffer_limit_disconnections"), "1");

  EXPECT_EQ(
      watcher.Ask({"CONFIG", "SET", "client-output-buffer-limit", "normal 1000000 0 0"}, "+OK\r\n"),
      "+OK\r\n");
  EXPECT_EQ(watcher.Ask({"SET", "k", std::string(500'000, 'v')}, "+OK\r\n"), "+OK\r\n");
  TestClient deaf(agent.port());
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += Resp({"GETRANGE", "k", "0", "400000"});
  deaf.Send(requests);
  EXPECT_EQ(field("rejected_connections"), "0");
  for (int i = 0; i < 200 && field("client_output_buffer_limit_disconnections") == "0"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(field("client_output_buffer_limit_disconnections"), "1");
  EXPECT_EQ(watcher.Ask({"CONFIG", "RESETSTAT"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(field("client_output_buffer_limit_disconnections"), "0");
}

}  // namespace
}  // namespace onetrip
