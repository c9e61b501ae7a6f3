#include "tests/support/test_cluster.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace onetrip {

void EditedMaster::Publish() {
  auto view = std::make_shared<View>(*inner_.view());
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Edit& edit : edits_) edit(*view);
  view->epoch.value += epochs_;
  view_ = view;
  view_version_.store(view->epoch.value, std::memory_order_release);
  clock_offset_us_.store(inner_.clock_offset_us().load());
}

void EditedMaster::AddEdit(Edit edit) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    edits_.push_back(std::move(edit));
    ++epochs_;
  }
  Publish();
}

Task<Result<Membership>> EditedMaster::Join(Quiesce& hold) {
  Result<Membership> joined = co_await inner_.Join(hold);
  Publish();
  co_return joined;
}

Task<Status> EditedMaster::Leave(Quiesce& hold, Membership membership) {
  const Status status = co_await inner_.Leave(hold, membership);
  Publish();
  co_return status;
}

Task<Status> EditedMaster::FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) {
  const Status status = co_await inner_.FlushKeyspaces(hold, database);
  Publish();
  co_return status;
}

Task<Status> EditedMaster::SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) {
  const Status status = co_await inner_.SwapKeyspaces(hold, first, second);
  Publish();
  co_return status;
}

void TakeOut(View& view, NodeId node) {
  if (view.nodes.size() < view.node_count) view.nodes.resize(view.node_count);
  view.nodes[node.value].out = true;
  for (RegionPlacement& placement : view.regions) {
    const int live = view.replicas - placement.missing;
    for (int i = 0; i < live; ++i) {
      if (placement.nodes[i] != node) continue;
      std::rotate(placement.nodes.begin() + i, placement.nodes.begin() + i + 1,
                  placement.nodes.begin() + live);
      std::rotate(placement.base.begin() + i, placement.base.begin() + i + 1,
                  placement.base.begin() + live);
      ++placement.missing;
      break;
    }
  }
}

void TakeIn(View& view, NodeId node) { view.nodes[node.value].out = false; }

void TestCluster::TellNodes() {
  std::string reason;
  for (auto& node : nodes_) CHECK(node->UseView(*master_->view(), &reason).ok());
}

void TestCluster::TakeOut(NodeId node) {
  master_->AddEdit([node](View& view) { onetrip::TakeOut(view, node); });
  TellNodes();
}

void TestCluster::BringBack(NodeId node) {
  while (BringBackRegion(node)) {
  }
}

bool TestCluster::BringBackRegion(NodeId node) {
  const auto view = master_->view();
  for (uint32_t region = 0; region < view->regions.size(); ++region) {
    const RegionPlacement& placement = view->regions[region];
    const int first = view->replicas - placement.missing;
    if (placement.missing == 0 || placement.nodes[first] != node) continue;
    std::memcpy(nodes_[node.value]->base() + placement.base[first],
                nodes_[placement.nodes[0].value]->base() + placement.base[0], kRegionBytes);
    master_->AddEdit([node, region](View& edited) {
      TakeIn(edited, node);
      --edited.regions[region].missing;
    });
    TellNodes();
    return true;
  }
  return false;
}

TestCluster::TestCluster(const Clock& clock, ClusterShape shape) {
  Result<MembershipState> state = MembershipState::Create(shape);
  CHECK(state.ok());
  for (uint16_t i = 0; i < shape.nodes; ++i) {
    Result<std::unique_ptr<MemoryNode>> node = MemoryNode::Create(NodeId{i}, state->view());
    CHECK(node.ok());
    nodes_.push_back(std::move(node.value()));
  }
  master_ = std::make_unique<EditedMaster>(std::move(state.value()), clock);
}

std::vector<MemoryEndpoint*> TestCluster::endpoints() {
  std::vector<MemoryEndpoint*> endpoints;
  for (auto& node : nodes_) endpoints.push_back(node.get());
  return endpoints;
}

TestWorkerBase::TestWorkerBase(TestCluster& cluster, Executor& executor,
                               std::unique_ptr<Fabric> fabric, DataPathOptions options)
    : executor_(executor), hold_(executor), fabric_(std::move(fabric)) {
  Task<Result<Membership>> join = cluster.master().Join(hold_);
  CHECK(join.Start());
  const Result<Membership> membership = join.TakeResult();
  CHECK(membership.ok());
  context_ = std::make_unique<WorkerContext>(executor_, *fabric_, cluster.master(), hold_,
                                             membership.value(), options);
}

TestWorker::TestWorker(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
                       EngineKind engine, DataPathOptions options)
    : TestWorkerBase(cluster, executor, std::move(fabric), options),
      engine_(MakeEngine(engine, *context_)),
      kv_(std::make_unique<SlotStore>(*context_, *engine_)) {}

void TestWorker::Start() { CHECK(BlockOn(executor_, kv_->Start()).ok()); }
void TestWorker::Stop() { CHECK(BlockOn(executor_, kv_->Stop()).ok()); }

Status TestWorker::Set(std::string_view key, std::string_view value, uint64_t deadline_ms) {
  NewRecord record;
  record.head = value;
  record.deadline_ms = deadline_ms;
  return BlockOn(executor_, kv_->Set({0, key}, record));
}

std::string TestWorker::Get(std::string_view key) {
  ReadResult result;
  const Status status = BlockOn(executor_, kv_->Get({0, key}, &result));
  if (!status.ok()) return std::string("(error ") + status.message() + ")";
  return result.found() ? std::string(result.record().value) : "(nil)";
}

bool TestWorker::Delete(std::string_view key) {
  bool existed = false;
  CHECK(BlockOn(executor_, kv_->Delete({0, key}, &existed)).ok());
  return existed;
}

uint64_t TestWorker::CountKeys(uint32_t database) {
  uint64_t keys = 0;
  CHECK(BlockOn(executor_, kv_->CountKeys(database, &keys)).ok());
  return keys;
}

ShmWorker::ShmWorker(TestCluster& cluster, EngineKind engine, DataPathOptions options,
                     uint64_t seed)
    : executor_(clock_, seed) {
  worker_ = std::make_unique<TestWorker>(cluster, executor_,
                                         std::make_unique<ShmFabric>(clock_, cluster.endpoints()),
                                         engine, options);
  worker_->Start();
}

ShmWorker::~ShmWorker() { worker_->Stop(); }

Change AddMutation::Apply(const RecordView* current) {
  int64_t value = 0;
  if (current != nullptr) {
    const std::string_view text = current->value;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  sum_ = value + addend_;
  text_ = std::to_string(sum_);
  NewRecord record;
  record.head = text_;
  record.deadline_ms = current != nullptr ? current->deadline_ms : 0;
  return Change::Write(record);
}

}  // namespace onetrip
