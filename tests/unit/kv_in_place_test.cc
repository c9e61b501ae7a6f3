// In a full pool every change is done that leaves a key with no more memory than it had; and
// several keys are written all or none.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/store/prepared_sets.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

// As EXPIRE: the same value with a deadline.
class SetDeadline final : public Mutation {
 public:
  explicit SetDeadline(uint64_t deadline_ms) : deadline_ms_(deadline_ms) {}
  Change Apply(const RecordView* current) override {
    found_ = current != nullptr;
    if (!found_) return Change::Keep();
    value_ = current->value;
    return Change::Write({.head = value_, .deadline_ms = deadline_ms_, .type = current->type});
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  const uint64_t deadline_ms_;
  std::string value_;
  bool found_ = false;
};

// As GETDEL.
class Remove final : public Mutation {
 public:
  Change Apply(const RecordView* current) override {
    found_ = current != nullptr;
    return found_ ? Change::Delete() : Change::Keep();
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  bool found_ = false;
};

// As APPEND.
class Append final : public Mutation {
 public:
  explicit Append(std::string tail) : tail_(std::move(tail)) {}
  Change Apply(const RecordView* current) override {
    head_ = current == nullptr ? "" : current->value;
    return Change::Write({.head = head_, .tail = tail_});
  }

 private:
  const std::string tail_;
  std::string head_;
};

class HoldRecord final : public Mutation {
 public:
  Change Apply(const RecordView* /*current*/) override { return Change::KeepAsRecord(); }
};

class Put final : public Mutation {
 public:
  Put(std::string value, bool frees_as_much)
      : value_(std::move(value)), frees_as_much_(frees_as_much) {}
  Change Apply(const RecordView* /*current*/) override {
    Change change = Change::Write({.head = value_});
    change.frees_as_much = frees_as_much_;
    return change;
  }

 private:
  const std::string value_;
  const bool frees_as_much_;
};

// Another worker's SET comes between what the mutation reads and what it does.
class HoldLate final : public Mutation {
 public:
  explicit HoldLate(std::function<void()> between) : between_(std::move(between)) {}
  Change Apply(const RecordView* /*current*/) override {
    if (between_) std::exchange(between_, nullptr)();
    return Change::KeepAsRecord();
  }

 private:
  std::function<void()> between_;
};

struct Shape {
  EngineKind engine = EngineKind::kSwarm;
  size_t workers = 1;
  size_t value_bytes = 200;
};

class KvInPlaceTest : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < GetParam().workers; ++i) {
      DataPathOptions options;
      options.location_cache_bytes = 1 << 18;
      options.epoch_tick_us = 100;
      options.memory_wait_ms = 100;
      workers_.push_back(std::make_unique<TestWorker>(
          cluster_, executor_, std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kSteps),
          GetParam().engine, options));
      workers_.back()->Start();
    }
    Fill();
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->Stop();
  }
  // By the workers in turn, until every one of them is refused again and again: compaction makes
  // room for a while, now and then for long.
  void Fill() {
    size_t refused = 0;
    size_t all_refused = 0;
    for (size_t i = 0; refused < kRefusals * workers_.size() && all_refused < kAllRefusals; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string value(GetParam().value_bytes, static_cast<char>('a' + i % 26));
      const Status status = workers_[i % workers_.size()]->Set(key, value);
      refused = status.ok() ? 0 : refused + 1;
      if (status.ok()) model_[key] = value;
      if (!status.ok()) {
        ++all_refused;
        ASSERT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
      }
    }
    ASSERT_GT(model_.size(), 100U);
  }
  // The same with records.
  void FillRecords() {
    size_t refused = 0;
    for (size_t i = 0; refused < kRefusals * workers_.size(); ++i) {
      const std::string key = "record" + std::to_string(i);
      Put put(std::string(GetParam().value_bytes, 'r'), /*frees_as_much=*/false);
      const Status status = Change(*workers_[i % workers_.size()], key, put);
      refused = status.ok() ? 0 : refused + 1;
      if (status.ok()) model_[key] = std::string(GetParam().value_bytes, 'r');
    }
  }
  Status Change(TestWorker& worker, const std::string& key, Mutation& mutation) {
    return BlockOn(executor_, worker.kv().ReadModifyWrite({0, key}, mutation));
  }
  // Another worker than the one that wrote it, if there is one.
  TestWorker& Other(size_t i) { return *workers_[(i * 7 + 1) % workers_.size()]; }
  // Where workers have few buffers of the class that a record needs, a change may be refused now
  // and then. With three workers one schedule of five refused 14 in 4,000, the others at most 4;
  // with one worker two of fourteen refused one in 4,335.
  void SetDeadlines() {
    const bool has_few = GetParam().value_bytes > 2000;
    const size_t refused_max = has_few ? model_.size() / (GetParam().workers > 2 ? 200 : 2000) : 0;
    size_t refused = 0;
    size_t i = 0;
    for (const auto& [key, value] : model_) {
      SetDeadline mutation(1ULL << 50);
      const Status status = Change(Other(i++), key, mutation);
      if (status.ok()) {
        ASSERT_TRUE(mutation.found());
        continue;
      }
      ASSERT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
      ++refused;
    }
    EXPECT_LE(refused, refused_max);
  }
  void ExpectAll() {
    for (const auto& [key, value] : model_) ASSERT_EQ(workers_.front()->Get(key), value) << key;
  }

  static constexpr SimFabricOptions kSteps = kSlowdown > 1 ? kWholeSteps : SimFabricOptions();
  static constexpr uint64_t kPoolBytes = 16ULL << 20;
  static constexpr size_t kRefusals = 30;
  static constexpr size_t kAllRefusals = 100;
  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = kPoolBytes}};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::map<std::string, std::string> model_;
};

// The keys are far more than the reserve could hold.
TEST_P(KvInPlaceTest, EveryKeyGetsADeadline) {
  SetDeadlines();
  ExpectAll();
}

TEST_P(KvInPlaceTest, EveryKeyIsRemovedByWhoLooksAtIt) {
  size_t i = 0;
  for (const auto& [key, value] : model_) {
    Remove mutation;
    const Status status = Change(Other(i++), key, mutation);
    ASSERT_TRUE(status.ok()) << status.message() << " after " << i << " of " << model_.size();
    ASSERT_TRUE(mutation.found());
  }
  for (const auto& [key, value] : model_) EXPECT_EQ(workers_.front()->Get(key), "(nil)");
}

// As RENAME does it. Where three workers have little left of a class each, and the index has to
// grow for new names, one may be refused in the end: behind the half of all, and the key stays.
TEST_P(KvInPlaceTest, EveryKeyMovesToAnotherName) {
  std::map<std::string, std::string> moved;
  size_t i = 0;
  for (const auto& [key, value] : model_) {
    TestWorker& worker = Other(i++);
    HoldRecord hold;
    Status status = Change(worker, key, hold);
    ASSERT_TRUE(status.ok()) << status.message() << " after " << i << " of " << model_.size();
    Put put(value, /*frees_as_much=*/true);
    status = Change(worker, "moved " + key, put);
    if (status.code() == StatusCode::kOutOfMemory && workers_.size() > 2 &&
        moved.size() > model_.size() / 2) {
      break;
    }
    ASSERT_TRUE(status.ok()) << status.message() << " after " << i << " of " << model_.size();
    Remove remove;
    status = Change(worker, key, remove);
    ASSERT_TRUE(status.ok()) << status.message() << " after " << i << " of " << model_.size();
    moved["moved " + key] = value;
  }
  for (const auto& [key, value] : model_) {
    if (!moved.contains("moved " + key)) moved[key] = value;
  }
  model_ = moved;
  ExpectAll();
}

// Such a change may be refused behind the seals: when there is room again the value is there.
TEST_P(KvInPlaceTest, ALongerValueThatComesBeforeTheSealsIsKept) {
  constexpr size_t kKeys = 50;
  constexpr size_t kLonger =
      25;  // keys of 3,000 bytes: the same class as a buffer, the next as a record
  const auto delete_last = [&] {
    bool existed = false;
    const auto last = std::prev(model_.end());
    ASSERT_TRUE(BlockOn(executor_, workers_.back()->kv().Delete({0, last->first}, &existed)).ok());
    model_.erase(last);
  };
  // Buffers for the SETs, not a block for a record.
  for (size_t i = 0; i < kKeys; ++i) delete_last();
  executor_.RunUntil(executor_.NowNs() + 20'000'000);
  size_t i = 0;
  size_t longer = 0;
  for (auto& [key, value] : model_) {
    if (i == kKeys) break;
    TestWorker& worker = Other(i++);
    HoldLate hold([&, &key = key, &value = value] {
      const std::string other(value.size() + kLonger, 'L');
      const Status set = workers_.back()->Set(key, other);
      if (set.ok()) value = other;
      longer += set.ok() ? 1 : 0;
    });
    const Status status = Change(worker, key, hold);
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kOutOfMemory) << status.message();
  }
  if (GetParam().value_bytes == 3000) {
    EXPECT_GT(longer, kKeys / 2);
  }
  for (size_t freed = 0; freed < 300; ++freed) delete_last();
  executor_.RunUntil(executor_.NowNs() + 50'000'000);
  ExpectAll();
}

TEST_P(KvInPlaceTest, WhatGrowsIsRefusedAndChangesNothing) {
  size_t refused = 0;
  size_t i = 0;
  // Some of the first keys may grow: compaction goes on.
  for (auto& [key, value] : model_) {
    ++i;
    if (refused > 100) break;
    const std::string tail(3 * GetParam().value_bytes, '+');
    Append mutation(tail);
    const Status status = Change(Other(i), key, mutation);
    if (status.ok()) {
      value += tail;
    } else {
      ASSERT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
  ExpectAll();
  // They have not used up what others need.
  SetDeadlines();
  ExpectAll();
}

TEST_P(KvInPlaceTest, NewKeysGetNothingOfTheReserve) {
  FillRecords();
  size_t refused = 0;
  for (int i = 0; i < 100; ++i) {
    Put put(std::string(GetParam().value_bytes, 'n'), /*frees_as_much=*/false);
    const std::string key = "new" + std::to_string(i);
    const Status status = Change(Other(static_cast<size_t>(i)), key, put);
    refused += status.ok() ? 0 : 1;
    if (status.ok()) model_[key] = std::string(GetParam().value_bytes, 'n');
  }
  EXPECT_GT(refused, 50U);
  ExpectAll();
}

// As MSET does it.
TEST_P(KvInPlaceTest, SeveralKeysAreWrittenAllOrNone) {
  FillRecords();
  TestWorker& worker = *workers_.front();
  const std::string value(GetParam().value_bytes, 'p');
  std::vector<std::string> keys;
  std::vector<PendingSet> sets;
  // New ones and old ones, too many for what is left.
  constexpr int kKeys = 400;
  keys.reserve(kKeys);
  sets.reserve(kKeys);
  auto old = model_.begin();
  for (int i = 0; i < kKeys; ++i, ++old) {
    keys.push_back(i % 2 == 0 ? "pending" + std::to_string(i) : old->first);
  }
  for (const std::string& key : keys) sets.push_back({{0, key}, {.head = value}});
  {
    PreparedSets prepared;
    const Status status =
        BlockOn(executor_, worker.kv().Prepare(sets, /*may_use_reserve=*/false, &prepared));
    ASSERT_EQ(status.code(), StatusCode::kOutOfMemory);
    ASSERT_FALSE(prepared.is_filled());
  }
  ExpectAll();
  // Where there is room for them, others fill it once it is set aside. (What splits have taken of
  // the reserve is made up for first: three blocks.)
  for (int i = 0; i < 8000 && !model_.empty(); ++i) {
    ASSERT_TRUE(worker.Delete(model_.rbegin()->first));
    model_.erase(model_.rbegin()->first);
  }
  PreparedSets prepared;
  const Status status =
      BlockOn(executor_, worker.kv().Prepare(sets, /*may_use_reserve=*/false, &prepared));
  ASSERT_TRUE(status.ok()) << status.message();
  Fill();
  for (size_t i = 0; i < sets.size(); ++i) {
    const Status set =
        BlockOn(executor_, worker.kv().SetPrepared(sets[i].key, sets[i].record, prepared, i));
    ASSERT_TRUE(set.ok()) << set.message() << " of " << keys[i];
    model_[keys[i]] = value;
  }
  ExpectAll();
}

std::vector<Shape> Shapes() {
  // A record of 3,000 bytes with its origin is of the next class than the buffer that it takes the
  // place of: where three workers have one of that class each, a change may be refused.
  // Pools of few keys: a sanitizer takes minutes for what has more.
  std::vector<Shape> shapes = {{.value_bytes = 3000},
                               {.engine = EngineKind::kSnapshot, .value_bytes = 3000}};
  const std::vector<Shape> others = {{},
                                     {.value_bytes = 40},
                                     {.workers = 3},
                                     {.workers = 3, .value_bytes = 2900},
                                     {.engine = EngineKind::kSnapshot, .workers = 2}};
  if (kSlowdown == 1) shapes.insert(shapes.end(), others.begin(), others.end());
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(Shapes, KvInPlaceTest, testing::ValuesIn(Shapes()),
                         [](const testing::TestParamInfo<Shape>& info) {
                           return std::string(info.param.engine == EngineKind::kSwarm
                                                  ? "Swarm"
                                                  : "Snapshot") +
                                  std::to_string(info.param.workers) + "Workers" +
                                  std::to_string(info.param.value_bytes) + "Bytes";
                         });

}  // namespace
}  // namespace onetrip
