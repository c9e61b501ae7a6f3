// StagedKv: a copy of one key, and when it is stored.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client_core/coro/sync.h"
#include "client_core/layout/record.h"
#include "client_core/store/staged_store.h"
#include "tests/support/racing_kv.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

class StagedKvTest : public testing::TestWithParam<EngineKind> {
 protected:
  template <typename T>
  T Run(Task<T> task) {
    return BlockOn(worker_.executor(), std::move(task));
  }

  std::string Read(Kv& kv, std::string_view key) {
    ReadResult result;
    const Status status = Run(kv.Get({0, key}, &result));
    if (!status.ok()) return "(error)";
    return result.found() ? std::string(result.record().value) : "(nil)";
  }
  Status Write(Kv& kv, std::string_view key, std::string_view value, uint64_t deadline_ms = 0) {
    return Run(kv.Set({0, key}, {.head = value, .deadline_ms = deadline_ms}));
  }
  bool Remove(Kv& kv, std::string_view key) {
    bool existed = false;
    EXPECT_TRUE(Run(kv.Delete({0, key}, &existed)).ok());
    return existed;
  }
  int64_t Add(Kv& kv, std::string_view key, int64_t addend) {
    AddMutation mutation(addend);
    EXPECT_TRUE(Run(kv.ReadModifyWrite({0, key}, mutation)).ok());
    return mutation.sum();
  }
  bool Load() { return Run(staged_.Load()).ok(); }
  // Returns true if the copy came to be the key.
  bool Store() {
    bool stored = false;
    EXPECT_TRUE(Run(staged_.Store(&stored)).ok());
    return stored;
  }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, GetParam(), {.location_cache_bytes = 1 << 20}};
  StagedKv staged_{worker_->kv(), {0, "k"}};
};

INSTANTIATE_TEST_SUITE_P(Engines, StagedKvTest,
                         testing::Values(EngineKind::kSwarm, EngineKind::kSnapshot));

TEST_P(StagedKvTest, NobodySeesTheCopyBeforeItIsStored) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  EXPECT_EQ(Read(staged_, "k"), "1");
  EXPECT_EQ(Add(staged_, "k", 4), 5);
  ASSERT_TRUE(Write(staged_, "k", "copy").ok());
  EXPECT_EQ(Read(staged_, "k"), "copy");
  EXPECT_EQ(worker_->Get("k"), "1");
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "copy");
}

TEST_P(StagedKvTest, OtherKeysGoStraightToTheStore) {
  ASSERT_TRUE(worker_->Set("other", "1").ok());
  ASSERT_TRUE(Load());
  EXPECT_EQ(Read(staged_, "other"), "1");
  EXPECT_EQ(Add(staged_, "other", 1), 2);
  EXPECT_EQ(worker_->Get("other"), "2");
  ASSERT_TRUE(Write(staged_, "another", "x").ok());
  EXPECT_EQ(worker_->Get("another"), "x");
  EXPECT_TRUE(Remove(staged_, "another"));
  EXPECT_EQ(worker_->Get("another"), "(nil)");
}

TEST_P(StagedKvTest, AKeyThatSomebodyWroteSinceIsLeftAlone) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  ASSERT_TRUE(Write(staged_, "k", "copy").ok());
  // Even by the same value.
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  EXPECT_FALSE(Store());
  EXPECT_EQ(worker_->Get("k"), "1");
}

TEST_P(StagedKvTest, AKeyThatSomebodyMadeOrRemovedSinceIsLeftAlone) {
  ASSERT_TRUE(Load());
  EXPECT_FALSE(staged_.loaded().found);
  ASSERT_TRUE(Write(staged_, "k", "copy").ok());
  ASSERT_TRUE(worker_->Set("k", "theirs").ok());
  EXPECT_FALSE(Store());
  EXPECT_EQ(worker_->Get("k"), "theirs");
  ASSERT_TRUE(Load());
  ASSERT_TRUE(Write(staged_, "k", "copy").ok());
  EXPECT_TRUE(worker_->Delete("k"));
  EXPECT_FALSE(Store());
  EXPECT_EQ(worker_->Get("k"), "(nil)");
}

TEST_P(StagedKvTest, ACopyThatNobodyChangedIsStoredWhateverTheKeyIsNow) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  EXPECT_EQ(Read(staged_, "k"), "1");
  ASSERT_TRUE(worker_->Set("k", "2").ok());
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "2");
}

TEST_P(StagedKvTest, RemovingTheCopyRemovesTheKey) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  EXPECT_TRUE(Remove(staged_, "k"));
  EXPECT_FALSE(Remove(staged_, "k"));
  EXPECT_EQ(Read(staged_, "k"), "(nil)");
  EXPECT_EQ(worker_->Get("k"), "1");
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "(nil)");
}

TEST_P(StagedKvTest, RemovingNothingIsNoChange) {
  ASSERT_TRUE(Load());
  EXPECT_FALSE(Remove(staged_, "k"));
  ASSERT_TRUE(worker_->Set("k", "theirs").ok());
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "theirs");
}

TEST_P(StagedKvTest, LoadingAgainForgetsTheCopy) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  ASSERT_TRUE(Write(staged_, "k", "copy").ok());
  ASSERT_TRUE(Load());
  EXPECT_EQ(Read(staged_, "k"), "1");
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "1");
}

TEST_P(StagedKvTest, AttemptsGoOnUntilNobodyIsFaster) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  RacingKv racing(worker_->kv(), 2, "10");
  StagedKv staged(racing, {0, "k"});
  int attempts = 0;
  bool stored = false;
  while (!stored) {
    ++attempts;
    ASSERT_TRUE(Run(staged.Load()).ok());
    Add(staged, "k", 1);
    ASSERT_TRUE(Run(staged.Store(&stored)).ok());
  }
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(worker_->Get("k"), "11");
}

TEST_P(StagedKvTest, ACopyWhoseTimeHasPassedIsNotThere) {
  const uint64_t deadline_ms = worker_->kv().NowMs() + 30;
  ASSERT_TRUE(worker_->Set("k", "brief", deadline_ms).ok());
  ASSERT_TRUE(Load());
  ASSERT_TRUE(staged_.loaded().found);
  while (worker_->kv().NowMs() < deadline_ms) {
  }
  EXPECT_EQ(Read(staged_, "k"), "(nil)");
  EXPECT_EQ(Add(staged_, "k", 3), 3);
  // The key is not what was loaded: it has gone.
  EXPECT_FALSE(Store());
  ASSERT_TRUE(Load());
  EXPECT_FALSE(staged_.loaded().found);
  EXPECT_EQ(Add(staged_, "k", 3), 3);
  EXPECT_TRUE(Store());
  EXPECT_EQ(worker_->Get("k"), "3");
}

TEST_P(StagedKvTest, TheDeadlineIsStoredWithTheCopy) {
  ASSERT_TRUE(Load());
  const uint64_t deadline_ms = worker_->kv().NowMs() + 100'000;
  ASSERT_TRUE(Write(staged_, "k", "v", deadline_ms).ok());
  ASSERT_TRUE(Store());
  ReadResult result;
  ASSERT_TRUE(Run(worker_->kv().Get({0, "k"}, &result)).ok());
  ASSERT_TRUE(result.found());
  EXPECT_EQ(result.record().deadline_ms, deadline_ms);
}

TEST_P(StagedKvTest, WhatWasReadLastsUntilReplacedValuesAreForgotten) {
  ASSERT_TRUE(worker_->Set("k", "first").ok());
  ASSERT_TRUE(Load());
  {
    ReadResult before;
    ASSERT_TRUE(Run(staged_.Get({0, "k"}, &before)).ok());
    ASSERT_TRUE(Write(staged_, "k", "second").ok());
    EXPECT_EQ(before.record().value, "first");
  }
  staged_.ForgetReplaced();
  EXPECT_EQ(Read(staged_, "k"), "second");
}

TEST_P(StagedKvTest, ALargeValueIsSharedWithWhoReadsIt) {
  const std::string value(3 << 20, 'v');
  ASSERT_TRUE(worker_->Set("k", value).ok());
  ASSERT_TRUE(Load());
  std::shared_ptr<LargeValue> kept;
  {
    ReadResult before;
    ASSERT_TRUE(Run(staged_.Get({0, "k"}, &before)).ok());
    kept = before.holder();
    ASSERT_NE(kept, nullptr);
    EXPECT_TRUE(before.record().value == value);
    ASSERT_TRUE(Run(staged_.Set({0, "k"}, {.head = before.record().value, .tail = "x"})).ok());
    EXPECT_TRUE(before.record().value == value);
  }
  staged_.ForgetReplaced();
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_TRUE(Read(staged_, "k") == value + "x");
  EXPECT_TRUE(Store());
  EXPECT_TRUE(Read(worker_->kv(), "k") == value + "x");
}

// A reply that keeps a part of a value counts as the bytes of that part.
TEST_P(StagedKvTest, APartOfALargeValueDoesNotKeepAllOfIt) {
  constexpr int64_t kMiB = 1 << 20;
  std::string value(3 * kMiB, 'v');
  for (size_t i = 0; i < value.size(); i += 1000) value[i] = static_cast<char>('a' + i / 1000 % 26);
  for (const bool replaced : {false, true}) {
    ASSERT_TRUE(worker_->Set("k", value).ok());
    ASSERT_TRUE(Load());
    if (replaced) {
      ASSERT_TRUE(Write(staged_, "k", value).ok());
    }
    const auto part = [this](int64_t first, int64_t last) {
      ReadResult result;
      EXPECT_TRUE(Run(staged_.GetPart({0, "k"}, {.first = first, .last = last}, &result)).ok());
      return result;
    };
    const ReadResult little = part(-10, -1);
    EXPECT_EQ(little.holder(), nullptr);
    EXPECT_EQ(little.record().value, value.substr(value.size() - 10));
    EXPECT_EQ(little.record().value_bytes, value.size());
    const ReadResult much = part(1000, kMiB + 999);
    ASSERT_NE(much.holder(), nullptr);
    EXPECT_LT(much.holder()->memory.bytes(), value.size() / 2);
    EXPECT_TRUE(much.record().value == value.substr(1000, kMiB));
    const ReadResult all = part(0, -1);
    ASSERT_NE(all.holder(), nullptr);
    EXPECT_TRUE(all.record().value == value);
  }
}

// The writer has every turn that the copying leaves it.
TEST_P(StagedKvTest, WhoIsAlwaysFasterIsNotSoForEver) {
  const std::string value(500'000, 'v');
  ASSERT_TRUE(worker_->Set("k", value).ok());
  bool stop = false;
  Gate gate(worker_.executor());
  const auto write = [](Kv* kv, Executor* executor, const bool* stop) -> Task<void> {
    while (!*stop) {
      EXPECT_TRUE((co_await kv->Set({0, "k"}, {.head = "theirs"})).ok());
      co_await executor->Yield();
    }
  };
  ASSERT_TRUE(worker_.executor().Spawn(gate, write(&worker_->kv(), &worker_.executor(), &stop)));
  const auto attempt = [](StagedKv* staged, std::string_view value, bool* stored) -> Task<void> {
    EXPECT_TRUE((co_await staged->Load()).ok());
    const NewRecord record{.head = value};
    EXPECT_TRUE((co_await staged->Set({0, "k"}, record)).ok());
    EXPECT_TRUE((co_await staged->Store(stored)).ok());
  };
  int attempts = 0;
  bool stored = false;
  while (!stored && attempts < 50) {
    ++attempts;
    Run(attempt(&staged_, value, &stored));
  }
  stop = true;
  Run([](Gate* end) -> Task<void> { co_await end->Close(); }(&gate));
  EXPECT_TRUE(stored);
  EXPECT_GT(attempts, 2) << "nobody was in the way";
}

TEST_P(StagedKvTest, WhatIsTooLargeIsRefusedAtOnce) {
  ASSERT_TRUE(worker_->Set("k", "1").ok());
  ASSERT_TRUE(Load());
  EXPECT_EQ(Run(staged_.Set({0, "k"}, {.gap_bytes = uint64_t{kMaxValueBytes} + 1})).code(),
            StatusCode::kTooLarge);
  EXPECT_EQ(Read(staged_, "k"), "1");
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  StagedKv impossible(worker_->kv(), {0, long_key});
  EXPECT_TRUE(Run(impossible.Load()).ok());
  EXPECT_EQ(Read(impossible, long_key), "(nil)");
  EXPECT_EQ(Write(impossible, long_key, "v").code(), StatusCode::kTooLarge);
}

}  // namespace
}  // namespace onetrip
