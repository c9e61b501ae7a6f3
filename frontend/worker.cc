#include "frontend/worker.h"

#include <algorithm>
#include <future>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/coro/frame_pool.h"
#include "client_core/memory/allocator_metrics.h"
#include "frontend/metrics/metrics_registry.h"

namespace onetrip {

Worker::Worker(const WorkerEnvironment& environment, uint32_t index, uint64_t seed)
    : environment_(environment),
      index_(index),
      executor_(environment.clock, seed + index),
      connection_gate_(executor_),
      background_gate_(executor_),
      tend_timer_(*this) {
  executor_.AddBeforeSleep([](void* queue) { static_cast<FlushQueue*>(queue)->FlushAll(); },
                           &flush_queue_);
}

Worker::~Worker() { CHECK(!thread_.joinable()); }

Status Worker::Start() {
  CHECK(hooks_ != nullptr);
  std::promise<Status> started;
  std::future<Status> outcome = started.get_future();
  thread_ = std::thread(
      [this, &started] { ThreadMain([&started](Status status) { started.set_value(status); }); });
  const Status status = outcome.get();
  if (!status.ok()) thread_.join();
  return status;
}

void Worker::ThreadMain(const std::function<void(Status)>& started) {
  const Status status = BlockOn(executor_, JoinCluster());
  if (status.ok()) {
    host_.emplace(ConnectionHost{executor_, storage_->kv(), *hooks_, metrics_.commands,
                                 environment_.config, environment_.limits, metrics_.traffic,
                                 flush_queue_, environment_.storage.large_values()});
    executor_.timers().Add(&tend_timer_, executor_.NowNs() + kTendIntervalNs);
  }
  started(status);
  if (status.ok()) {
    executor_.Run();
    tend_timer_.Cancel();
    BlockOn(executor_, LeaveCluster());
  }
  TrimThreadFrames();
}

Task<Status> Worker::JoinCluster() {
  Result<std::unique_ptr<WorkerStorage>> joined = co_await environment_.storage.Join(executor_);
  if (!joined.ok()) co_return joined.status();
  storage_ = std::move(joined.value());
  metrics_.store = &storage_->kv().metrics();
  if (RdmaMetrics* const rdma = storage_->rdma_metrics(); rdma != nullptr) metrics_.rdma = rdma;
  co_return Status::Ok();
}

Task<void> Worker::LeaveCluster() {
  co_await background_gate_.Close();
  co_await storage_->Stop();
  metrics_.store = nullptr;
  metrics_.rdma = &metrics_.no_rdma;
  storage_.reset();
}

void Worker::CloseConnections(std::function<void()> done) {
  Post(
      [this, done = std::move(done)] { CHECK(executor_.Spawn(background_gate_, CloseAll(done))); });
}

Task<void> Worker::CloseAll(std::function<void()> done) {
  closing_ = true;
  for (Connection* connection : connections_) connection->Finish();
  // A client that does not take its last replies is not waited for longer than this. Most take them
  // at once.
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  constexpr uint64_t kLookNsMax = 50'000'000;
  const uint64_t end_ns = executor_.NowNs() + kPatienceNs;
  uint64_t look_ns = 1'000'000;
  while (connection_gate_.inside() > 0 && executor_.NowNs() < end_ns) {
    co_await executor_.SleepFor(look_ns);
    look_ns = std::min(look_ns * 2, kLookNsMax);
  }
  for (Connection* connection : connections_) connection->Kill();
  co_await connection_gate_.Close();
  done();
}

void Worker::StopAndJoin() {
  executor_.Stop();
  thread_.join();
}

void Worker::Adopt(UniqueFd fd, uint64_t id, std::string_view unix_path) {
  metrics_.traffic.connections.Add();
  // Refused only when the worker is ending: the descriptor is closed with the task.
  if (!executor_.Spawn(connection_gate_, Serve(std::move(fd), id, unix_path))) {
    environment_.open_clients.fetch_sub(1, std::memory_order_relaxed);
  }
}

Task<void> Worker::Serve(UniqueFd fd, uint64_t id, std::string_view unix_path) {
  Connection connection(*host_, std::move(fd), id, unix_path);
  connections_.push_back(&connection);
  co_await connection.Run();
  std::erase(connections_, &connection);
  environment_.open_clients.fetch_sub(1, std::memory_order_relaxed);
}

void Worker::TendConnections() {
  const uint64_t now_ns = executor_.NowNs();
  TrafficMetrics& traffic = metrics_.traffic;
  uint64_t bytes = 0;
  uint64_t input_max = 0;
  uint64_t output_max = 0;
  for (Connection* connection : connections_) {
    bytes += connection->memory_bytes();
    input_max = std::max<uint64_t>(input_max, connection->query_buffer_bytes());
    output_max = std::max<uint64_t>(output_max, connection->output_buffer_bytes());
    connection->Tend(now_ns);
  }
  traffic.client_bytes.Set(bytes);
  traffic.input_buffer_max.Set(input_max);
  traffic.output_buffer_max.Set(output_max);
  const auto rate = [](const Counter& total, uint64_t* before, Counter* per_second) {
    const uint64_t now = total.Value();
    // CONFIG RESETSTAT sets totals back.
    per_second->Set(now >= *before ? now - *before : now);
    *before = now;
  };
  rate(traffic.commands, &commands_before_, &traffic.commands_per_s);
  rate(traffic.input_bytes, &input_before_, &traffic.input_per_s);
  rate(traffic.output_bytes, &output_before_, &traffic.output_per_s);
  LookAtPool();
  executor_.timers().Add(&tend_timer_, now_ns + kTendIntervalNs);
}

void Worker::LookAtPool() {
  const AllocatorMetrics& memory = *metrics_.store->allocator;
  const uint64_t refusals = memory.exhausted.Value();
  const bool refused = std::exchange(refusals_before_, refusals) != refusals;
  const std::string line =
      environment_.pool_watch.Look(environment_.storage.pool_usage(),
                                   refused ? memory.exhausted_for.Value() : 0, executor_.NowNs());
  if (!line.empty()) LogWarning(line);
}

void Worker::ListClients(std::vector<ClientSnapshot>* clients) const {
  const uint64_t now_ns = executor_.TurnNs();
  for (const Connection* connection : connections_) {
    connection->Describe(now_ns, &clients->emplace_back());
  }
}

uint64_t Worker::KillClients(const ClientFilter& filter, uint64_t self_id) {
  uint64_t matched = 0;
  for (Connection* connection : connections_) {
    ClientSnapshot snapshot;
    connection->Describe(executor_.TurnNs(), &snapshot);
    if (!filter.Matches(snapshot)) continue;
    ++matched;
    if (snapshot.id != self_id) connection->Kill();
  }
  return matched;
}

void Worker::SendToMonitors(const std::string& line) {
  for (Connection* connection : connections_) {
    const Session& session = connection->session();
    const bool drops =
        session.reply_mode == ReplyMode::kOff || session.reply_mode == ReplyMode::kSkip;
    if (session.monitors && !drops) connection->Push(line);
  }
}

void Worker::ResetStats() { ResetMetrics(metrics_); }

}  // namespace onetrip
