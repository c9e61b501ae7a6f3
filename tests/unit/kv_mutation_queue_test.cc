// MutationQueue: who leads, what a batch applies, and what becomes of those in it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/kv/mutation_queue.h"
#include "client_core/tree/tree.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr Status kUnknown(StatusCode::kUnknownOutcome, "a node did not answer");
constexpr Status kFull(StatusCode::kOutOfMemory, "full");

// Appends a letter to what it sees, which it remembers.
class Appends final : public Mutation {
 public:
  explicit Appends(char letter) : letter_(letter) {}
  Change Apply(const RecordView* current) override {
    seen = current == nullptr ? "(nil)" : std::string(current->value);
    if (keeps) return Change::Keep();
    if (deletes) return Change::Delete();
    NewRecord record;
    if (current != nullptr) record.head = current->value;
    record.tail = std::string_view(&letter_, 1);
    record.gap_bytes = gap_bytes;
    record.deadline_ms = deadline_ms;
    return Change::Write(record, version);
  }

  std::string seen;
  bool keeps = false;
  bool deletes = false;
  uint64_t gap_bytes = 0;
  uint64_t deadline_ms = 0;
  uint64_t* version = nullptr;

 private:
  char letter_;
};

class MutationQueueTest : public testing::Test {
 protected:
  using Place = MutationQueue::Place;

  Appends& Queue(char letter, InOrder* in_order = nullptr) {
    mutations_.push_back(std::make_unique<Appends>(letter));
    Key key{0, "k"};
    key.in_order = in_order;
    places_.push_back(std::make_unique<Place>(queue_, key, *mutations_.back()));
    return *mutations_.back();
  }
  Place& place(size_t i) { return *places_[i]; }
  // The value that the batch comes to, of a record that holds `value`.
  static std::string Apply(MutationQueue::Batch& batch, std::string_view value) {
    const RecordView current{value, value.size(), 0, 7, 0, nullptr};
    return ValueOf(batch.Apply(&current));
  }
  static std::string ValueOf(const Change& change) {
    if (change.kind == Change::Kind::kKeep) return "(kept)";
    if (change.kind == Change::Kind::kDelete) return "(deleted)";
    std::string value(change.record.bytes(), ' ');
    change.record.CopyTo(0, std::span<char>(value.data(), value.size()));
    return value;
  }
  bool HasTurn(Place& place) { return place.Turn().await_ready(); }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, EngineKind::kSnapshot, {}};
  StoreMetrics metrics_;
  MutationQueue queue_{worker_->context(), metrics_};
  std::vector<std::unique_ptr<Appends>> mutations_;
  std::vector<std::unique_ptr<Place>> places_;
};

TEST_F(MutationQueueTest, TheFirstOfItsKeyLeadsAndTheOthersWait) {
  Queue('a');
  Queue('b');
  Appends other('x');
  Place elsewhere(queue_, Key{1, "k"}, other);
  EXPECT_TRUE(HasTurn(place(0)));
  EXPECT_FALSE(HasTurn(place(1)));
  EXPECT_TRUE(HasTurn(elsewhere)) << "another database";
}

TEST_F(MutationQueueTest, EachSeesWhatTheOneBeforeItHasWritten) {
  for (const char letter : {'a', 'b', 'c', 'd'}) Queue(letter);
  mutations_[2]->keeps = true;
  MutationQueue::Batch batch = queue_.Lead(place(0));
  EXPECT_EQ(Apply(batch, "_"), "_abd");
  EXPECT_EQ(mutations_[1]->seen, "_a");
  EXPECT_EQ(mutations_[2]->seen, "_ab");
  EXPECT_EQ(mutations_[3]->seen, "_ab");
  EXPECT_EQ(Apply(batch, "another attempt "), "another attempt abd");
  EXPECT_TRUE(queue_.Finish(place(0), batch, Status::Ok()));
  for (size_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(place(i).outcome().has_value());
    EXPECT_TRUE(place(i).outcome()->ok());
    EXPECT_TRUE(HasTurn(place(i)));
  }
  EXPECT_EQ(metrics_.rmw_combined.Value(), 3U);
}

TEST_F(MutationQueueTest, ADeletedKeyIsMissingForTheNext) {
  for (const char letter : {'a', 'b', 'c'}) Queue(letter);
  mutations_[1]->deletes = true;
  MutationQueue::Batch batch = queue_.Lead(place(0));
  EXPECT_EQ(Apply(batch, "_"), "c");
  EXPECT_EQ(mutations_[2]->seen, "(nil)");
  mutations_[2]->deletes = true;
  EXPECT_EQ(Apply(batch, "_"), "(deleted)");
  for (const auto& mutation : mutations_) mutation->keeps = true;
  EXPECT_EQ(Apply(batch, "_"), "(kept)");
}

TEST_F(MutationQueueTest, WhatHasExpiredIsMissingForTheNext) {
  for (const char letter : {'a', 'b'}) Queue(letter);
  mutations_[0]->deadline_ms = 1;
  MutationQueue::Batch batch = queue_.Lead(place(0));
  EXPECT_EQ(Apply(batch, "_"), "b");
  EXPECT_EQ(mutations_[1]->seen, "(nil)");
}

TEST_F(MutationQueueTest, NoneFollowsOneThatAsksForItsVersionOrWritesMuch) {
  uint64_t version = 0;
  for (const char letter : {'a', 'b', 'c'}) Queue(letter);
  mutations_[1]->version = &version;
  MutationQueue::Batch batch = queue_.Lead(place(0));
  EXPECT_EQ(Apply(batch, "_"), "_ab");
  EXPECT_EQ(batch.applied(), 2U);
  mutations_[1]->version = nullptr;
  mutations_[0]->gap_bytes = 1 << 20;
  EXPECT_EQ(Apply(batch, "_").size(), (1U << 20) + 2);
  EXPECT_EQ(batch.applied(), 1U);
}

// Writes a megabyte that it keeps itself, and remembers where what it saw lay.
class Replaces final : public Mutation {
 public:
  Change Apply(const RecordView* current) override {
    seen = current->value.data();
    return Change::Write({.head = value});
  }

  const char* seen = nullptr;
  const std::string value = std::string(size_t{1} << 20, 'v');
};

TEST_F(MutationQueueTest, LongValuesOfOnePieceShareAWriteWithoutACopyUpToABound) {
  constexpr size_t kAll = 8;
  std::vector<std::unique_ptr<Replaces>> replacing;
  for (size_t i = 0; i < kAll; ++i) {
    replacing.push_back(std::make_unique<Replaces>());
    places_.push_back(std::make_unique<Place>(queue_, Key{0, "k"}, *replacing.back()));
  }
  MutationQueue::Batch batch = queue_.Lead(place(0));
  Apply(batch, "old");
  EXPECT_GE(batch.applied(), 4U);
  EXPECT_LT(batch.applied(), kAll);
  for (size_t i = 1; i < batch.applied(); ++i) {
    EXPECT_EQ(replacing[i]->seen, replacing[i - 1]->value.data()) << i;
  }
  // Anew, as after a lost race.
  Apply(batch, "other");
  EXPECT_GE(batch.applied(), 4U);
}

TEST_F(MutationQueueTest, OnlyTheFirstSeesAPartOfALargeValue) {
  for (const char letter : {'a', 'b'}) Queue(letter);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  const RecordView part{"part", 1 << 30, 0, 7, 0, nullptr};
  EXPECT_EQ(ValueOf(batch.Apply(&part)), "parta");
  EXPECT_EQ(batch.applied(), 1U);
}

TEST_F(MutationQueueTest, ThoseThatWereNotAppliedLeadNext) {
  uint64_t version = 0;
  for (const char letter : {'a', 'b', 'c'}) Queue(letter);
  mutations_[0]->version = &version;
  MutationQueue::Batch batch = queue_.Lead(place(0));
  Apply(batch, "_");
  EXPECT_TRUE(queue_.Finish(place(0), batch, kUnknown));
  EXPECT_FALSE(HasTurn(place(1)));
  places_[0].reset();
  EXPECT_TRUE(HasTurn(place(1)));
  EXPECT_FALSE(place(1).outcome().has_value());
  MutationQueue::Batch next = queue_.Lead(place(1));
  EXPECT_EQ(Apply(next, "_"), "_bc");
}

TEST_F(MutationQueueTest, AnUnknownOutcomeIsThatOfAllThatWereApplied) {
  for (const char letter : {'a', 'b'}) Queue(letter);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  Apply(batch, "_");
  EXPECT_TRUE(queue_.Finish(place(0), batch, kUnknown));
  ASSERT_TRUE(place(1).outcome().has_value());
  EXPECT_EQ(place(1).outcome()->code(), StatusCode::kUnknownOutcome);
}

TEST_F(MutationQueueTest, WhatCannotBeWrittenTogetherIsTriedAlone) {
  for (const char letter : {'a', 'b'}) Queue(letter);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  Apply(batch, "_");
  EXPECT_FALSE(queue_.Finish(place(0), batch, kFull));
  Queue('c');
  MutationQueue::Batch alone = queue_.Lead(place(0));
  EXPECT_EQ(Apply(alone, "_"), "_a");
  EXPECT_TRUE(queue_.Finish(place(0), alone, kFull));
  EXPECT_FALSE(place(1).outcome().has_value()) << "the leader's failure is its own";
  places_[0].reset();
  MutationQueue::Batch second = queue_.Lead(place(1));
  EXPECT_EQ(Apply(second, "_"), "_b");
}

TEST_F(MutationQueueTest, ALeaderThatWaitsForTheOthersGoesOnAlone) {
  for (const char letter : {'a', 'b', 'c'}) Queue(letter);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  Apply(batch, "_");
  queue_.Disband(batch);
  EXPECT_TRUE(HasTurn(place(1)));
  EXPECT_EQ(Apply(batch, "_"), "_a");
  MutationQueue::Batch next = queue_.Lead(place(1));
  EXPECT_EQ(Apply(next, "_"), "_bc");
  EXPECT_TRUE(queue_.Finish(place(0), batch, Status::Ok()));
  EXPECT_FALSE(place(1).outcome().has_value());
  places_[0].reset();
  EXPECT_TRUE(queue_.Finish(place(1), next, Status::Ok()));
  EXPECT_TRUE(place(2).outcome().has_value());
  places_.clear();
  Queue('d');
  EXPECT_TRUE(HasTurn(place(0))) << "the queue is empty";
}

TEST_F(MutationQueueTest, ALeaderThatGoesOnAloneIsAwaitedByItsClientsOthers) {
  int client = 0;
  InOrder first{&client};
  InOrder second{&client};
  InOrder third{&client};
  Queue('a', &first);
  Queue('b');
  Queue('c', &second);
  Queue('d');
  EXPECT_TRUE(first.has_place && second.has_place);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  queue_.Disband(batch);
  queue_.Disband(batch);  // it waits once more
  MutationQueue::Batch others = queue_.Lead(place(1));
  EXPECT_EQ(Apply(others, "_"), "_bd");
  Queue('e', &third);
  Queue('f');
  EXPECT_TRUE(third.has_place);
  EXPECT_EQ(Apply(batch, "_"), "_a");
  EXPECT_TRUE(queue_.Finish(place(0), batch, Status::Ok()));
  places_[0].reset();
  EXPECT_FALSE(HasTurn(place(2))) << "the others are writing";
  EXPECT_TRUE(queue_.Finish(place(1), others, Status::Ok()));
  places_[1].reset();
  ASSERT_TRUE(HasTurn(place(2)));
  MutationQueue::Batch next = queue_.Lead(place(2));
  EXPECT_EQ(Apply(next, "_"), "_cef");
}

TEST_F(MutationQueueTest, ThoseThatAwaitALeaderMayGoAwayAndComeBackToAnEmptyQueue) {
  int client = 0;
  std::array<InOrder, 4> orders;
  orders.fill(InOrder{&client});
  for (size_t i = 0; i < orders.size(); ++i) Queue(static_cast<char>('a' + i), &orders[i]);
  MutationQueue::Batch batch = queue_.Lead(place(0));
  queue_.Disband(batch);
  for (size_t i = 1; i < orders.size(); ++i) EXPECT_FALSE(HasTurn(place(i)));
  places_[2].reset();
  places_[0].reset();
  ASSERT_TRUE(HasTurn(place(1)));
  MutationQueue::Batch next = queue_.Lead(place(1));
  EXPECT_EQ(Apply(next, "_"), "_bd");
}

TEST_F(MutationQueueTest, KeysComeAndGoInAnyNumber) {
  std::deque<Appends> mutations;
  std::vector<std::unique_ptr<Place>> places;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key" + std::to_string(i % 1000);
    places.push_back(std::make_unique<Place>(queue_, Key{0, key}, mutations.emplace_back('x')));
    EXPECT_EQ(HasTurn(*places.back()), i < 1000);
  }
  for (int i = 0; i < 3000; ++i) {
    EXPECT_TRUE(HasTurn(*places[static_cast<size_t>(i)]));
    places[static_cast<size_t>(i)].reset();
  }
}

TEST_F(MutationQueueTest, ManyShareABatchAndTheRestLeadNext) {
  constexpr size_t kAll = 3000;
  for (size_t i = 0; i < kAll; ++i) Queue('x');
  size_t leader = 0;
  size_t batches = 0;
  while (leader < kAll) {
    MutationQueue::Batch batch = queue_.Lead(place(leader));
    Apply(batch, "_");
    EXPECT_TRUE(queue_.Finish(place(leader), batch, Status::Ok()));
    for (const size_t end = leader + batch.applied(); leader < end; ++leader) {
      places_[leader].reset();
    }
    ++batches;
  }
  EXPECT_EQ(batches, 3U);
}

// Takes the first element of a tree out, each of which has ten bytes.
class Pops final : public Mutation {
 public:
  Change Apply(const RecordView* current) override {
    Tree* const tree = current->tree;
    LeafPlace leaf;
    if (!tree->First(0, &leaf)) return Change::Keep();
    tree->Replace(0, leaf, {{std::string(leaf.bytes.substr(10)), leaf.elements - 1, {}}});
    NewRecord record;
    record.tree = tree;
    return Change::Write(record);
  }
  [[nodiscard]] bool takes_trees() const override { return true; }
};

// The leaves of a tree, of ten elements each, those that were loaded.
class SomePages final : public PageSource {
 public:
  std::string Make(int leaves, const TreeLimits& limits) {
    std::vector<std::vector<NewLeaf>> orders(1);
    for (int i = 0; i < leaves; ++i) orders[0].push_back({std::string(100, 'e'), 10, {}});
    Tree tree("header", std::move(orders), limits);
    tree.Balance();
    std::vector<PageRef> places;
    for (const uint32_t bytes : tree.NewPageBytes()) {
      PageRef& page = places.emplace_back();
      page.addr = GlobalAddr(places.size() * kObjectAlignBytes);
      page.size_class = SizeClass::For(bytes);
    }
    tree.Place(places, [this](const PageRef& page, std::string_view bytes) {
      pages_.emplace(page.addr.bits(), bytes);
    });
    for (auto& [addr, page] : pages_) views_.emplace(addr, page);
    return tree.EncodeRoot();
  }
  const std::string_view* Find(const PageRef& page) const override {
    return loaded.contains(page.addr.bits()) ? &views_.at(page.addr.bits()) : nullptr;
  }

  std::set<uint64_t> loaded;

 private:
  std::map<uint64_t, std::string> pages_;
  std::map<uint64_t, std::string_view> views_;
};

TEST_F(MutationQueueTest, PopsOfABatchAskForTheLeavesThatTheyWillMeetAtOnce) {
  constexpr TreeLimits kLimits{100, 4000, 4000, 400};
  SomePages pages;
  const std::string root_bytes = pages.Make(/*leaves=*/60, kLimits);
  std::deque<Pops> mutations;
  std::vector<std::unique_ptr<Place>> places;
  places.reserve(100);
  for (int i = 0; i < 100; ++i) {
    places.push_back(std::make_unique<Place>(queue_, Key{0, "k"}, mutations.emplace_back()));
  }
  MutationQueue::Batch batch = queue_.Lead(*places[0]);
  for (const size_t missing : {10U, 0U}) {
    TreeRoot root;
    ASSERT_TRUE(LoadTreeRoot(root_bytes, &root));
    Tree tree(std::move(root), pages, kLimits);
    const RecordView current{{}, 606, 0, 7, 0, nullptr, &tree};
    batch.Apply(&current);
    // Nine beside the first one hold what the others take; the small rest of one joins the next.
    EXPECT_NEAR(static_cast<double>(tree.missing().size()), static_cast<double>(missing), 2);
    for (const PageRef& page : tree.missing()) pages.loaded.insert(page.addr.bits());
  }
  EXPECT_GE(batch.applied(), 90U);
  EXPECT_TRUE(queue_.Finish(*places[0], batch, Status::Ok()));
}

TEST(RepeatedKeysTest, AKeyIsOneOnceItHasComeAgainAndAgain) {
  RepeatedKeys repeated;
  const Key hot{0, "hot"};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(repeated.Note(hot)) << i;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(repeated.Note(hot)) << i;
  repeated.NoteAlone(hot);
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(repeated.Note(hot)) << i;
}

// A store whose operations complete inline.
class GatheredTest : public testing::Test {
 protected:
  static Task<void> Run(Kv& kv, Key key, Mutation& mutation, size_t* done) {
    EXPECT_TRUE((co_await kv.ReadModifyWrite(key, mutation)).ok());
    ++*done;
  }
  std::string Value() {
    ReadResult result;
    EXPECT_TRUE(BlockOn(worker_.executor(), worker_->kv().Get(Key{0, "k"}, &result)).ok());
    return result.found() ? std::string(result.record().value) : "(nil)";
  }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, EngineKind::kSnapshot, {}};
};

TEST_F(GatheredTest, ThoseOfOneTurnTakeEffectByOneWriteInTheirOrder) {
  int client = 0;
  std::deque<InOrder> orders;
  std::deque<Appends> mutations;
  std::vector<Task<void>> tasks;
  size_t done = 0;
  std::string expected;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    Key key{0, "k"};
    key.in_order = &orders.emplace_back(InOrder{&client});
    tasks.push_back(Run(worker_->kv(), key, mutations.emplace_back(letter), &done));
    tasks.back().Start();
    EXPECT_TRUE(orders.back().has_place);
    expected += letter;
  }
  EXPECT_EQ(done, 0U);
  while (done < tasks.size()) ASSERT_TRUE(worker_.executor().RunOnce());
  EXPECT_EQ(Value(), expected);
  EXPECT_EQ(worker_->kv().metrics().rmw_combined.Value(), tasks.size() - 1);
}

TEST_F(GatheredTest, AKeyThatIsChangedAgainAndAgainGathersToo) {
  std::deque<Appends> mutations;
  std::vector<Task<void>> tasks;
  size_t done = 0;
  for (int i = 0; i < 30; ++i) {
    tasks.push_back(Run(worker_->kv(), Key{0, "k"}, mutations.emplace_back('x'), &done));
    tasks.back().Start();
  }
  EXPECT_EQ(done, 3U) << "those before it was known to be one";
  while (done < tasks.size()) ASSERT_TRUE(worker_.executor().RunOnce());
  EXPECT_EQ(Value(), std::string(30, 'x'));
  EXPECT_EQ(worker_->kv().metrics().rmw_combined.Value(), 26U);
}

TEST_F(MutationQueueTest, AClientThatGoesAwayLeavesTheQueue) {
  for (const char letter : {'a', 'b', 'c'}) Queue(letter);
  places_[1].reset();
  MutationQueue::Batch batch = queue_.Lead(place(0));
  EXPECT_EQ(Apply(batch, "_"), "_ac");
}

}  // namespace
}  // namespace onetrip
