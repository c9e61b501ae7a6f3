// Every fabric backend provides order, atomicity, transfers of any length and alignment.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/support/fabric_backends.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

std::byte* Filled(RoundTrip& round_trip, uint64_t bytes, uint64_t seed) {
  std::byte* to = round_trip.Reserve(bytes);
  Rng rng(seed);
  for (uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(rng.Next());
  return to;
}

TEST_P(FabricTest, OperationsOfABatchTakeEffectInTheOrderTheyWereAdded) {
  RoundTripPtr rt = fabric_->NewRoundTrip();
  const RemoteAddr at{kNode0, 64};
  const uint64_t* before = rt->ReadWord(at);
  rt->WriteWord(at, 5);
  const uint64_t* written = rt->ReadWord(at);
  const size_t faa = rt->Faa(at, 10);
  const size_t cas = rt->Cas(at, 15, 100);
  const size_t failing_cas = rt->Cas(at, 15, 200);
  const uint64_t* after = rt->ReadWord(at);
  ASSERT_TRUE(Post(rt).ok());
  EXPECT_EQ(*before, 0U);
  EXPECT_EQ(*written, 5U);
  EXPECT_EQ(rt->op(faa).result, 5U);
  EXPECT_EQ(rt->op(cas).result, 15U);
  EXPECT_EQ(rt->op(failing_cas).result, 100U);
  EXPECT_EQ(*after, 100U);
  EXPECT_EQ(node(0).word(64), 100U);
  EXPECT_EQ(node(1).word(64), 0U);
}

// Operations of every kind, length and alignment on a few bytes of three nodes, against a model
// that executes them one by one.
TEST_P(FabricTest, RandomBatchesEqualASequentialExecution) {
  constexpr uint64_t kBytes = 192;
  const int seeds = Scaled(300) / (1 + GetParam().slowness / 1000);
  for (int seed = 0; seed < seeds; ++seed) {
    StartWorld(static_cast<uint64_t>(seed));
    Rng rng(static_cast<uint64_t>(seed));
    std::vector<std::byte> model[3];
    for (size_t i = 0; i < 3; ++i) model[i].assign(node(i).base(), node(i).base() + kBytes);
    for (int batch = 0; batch < 10; ++batch) {
      RoundTripPtr rt = fabric_->NewRoundTrip();
      std::vector<std::vector<std::byte>> expected;
      while (rt->HasRoom(1)) {
        const NodeId to{static_cast<uint16_t>(rng.Below(3))};
        std::byte* memory = model[to.value].data();
        const bool is_bulk = rng.Below(2) == 0;
        const uint64_t bytes = is_bulk ? rng.Below(kBytes / 2) : 8;
        const uint64_t offset = is_bulk ? rng.Below(kBytes - bytes + 1) : rng.Below(kBytes / 8) * 8;
        std::byte* at = memory + offset;
        uint64_t word = 0;
        if (!is_bulk) std::memcpy(&word, at, 8);
        std::vector<std::byte> result(at, at + bytes);
        if (is_bulk && rng.Below(2) == 0) {
          rt->Read({to, offset}, static_cast<uint32_t>(bytes));
        } else if (is_bulk) {
          const std::byte* from = Filled(*rt, bytes, rng.Next());
          rt->Write({to, offset}, from, static_cast<uint32_t>(bytes));
          std::copy_n(from, bytes, at);
        } else if (fabric_->traits().has_max && rng.Below(3) == 0) {
          // Around the word that is there: one of its four forms, or another word.
          const uint64_t desired =
              rng.Below(2) == 0 ? (word & ~kMaxNoteBits) + rng.Below(12) - 4 : rng.Next();
          rt->Max({to, offset}, desired);
          if (word < desired - desired % 4) std::memcpy(at, &desired, 8);
        } else if (rng.Below(2) == 0) {
          const uint64_t addend = rng.Next();
          rt->Faa({to, offset}, addend);
          word += addend;
          std::memcpy(at, &word, 8);
        } else {
          const uint64_t desired = rng.Next();
          const bool wins = rng.Below(2) == 0;
          rt->Cas({to, offset}, wins ? word : word + 1, desired);
          if (wins) std::memcpy(at, &desired, 8);
        }
        expected.push_back(std::move(result));
      }
      ASSERT_TRUE(Post(rt).ok()) << "seed " << seed;
      for (size_t i = 0; i < rt->size(); ++i) {
        const FabricOp& op = rt->op(i);
        if (op.kind == FabricOpKind::kWrite || op.bytes == 0) continue;
        const void* got = op.kind == FabricOpKind::kRead ? static_cast<const void*>(op.local)
                                                         : static_cast<const void*>(&op.result);
        ASSERT_EQ(std::memcmp(got, expected[i].data(), op.bytes), 0)
            << "seed " << seed << " op " << i;
      }
      for (size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(std::memcmp(node(i).base(), model[i].data(), kBytes), 0) << "seed " << seed;
      }
    }
  }
}

Task<void> PostAndCheckWord(Fabric* fabric, RoundTripPtr rt, size_t op, uint64_t expected) {
  EXPECT_TRUE((co_await fabric->Post(rt)).ok());
  EXPECT_EQ(rt->op(op).result, expected);
}

TEST_P(FabricTest, BatchesOfOneChannelTakeEffectInTheOrderTheyWerePosted) {
  for (int seed = 0; seed < Scaled(200); ++seed) {
    StartWorld(static_cast<uint64_t>(seed));
    node(0).set_word(0, 0);
    std::vector<Task<void>> tasks;
    for (uint64_t i = 0; i < 20; ++i) {
      RoundTripPtr rt = fabric_->NewRoundTrip();
      // Bulk ahead of the word, so that a batch takes its time.
      rt->Read({kNode0, 128}, 512);
      const size_t op = rt->Cas({kNode0, 0}, i, i + 1);
      tasks.push_back(PostAndCheckWord(fabric_.get(), std::move(rt), op, i));
    }
    RunAll(std::move(tasks));
    EXPECT_EQ(node(0).word(0), 20U) << "seed " << seed;
  }
}

Task<void> CasOnce(Fabric* fabric, uint64_t desired, std::vector<uint64_t>* winners) {
  RoundTripPtr rt = fabric->NewRoundTrip();
  rt->Cas({NodeId{0}, 8}, 0, desired);
  EXPECT_TRUE((co_await fabric->Post(rt)).ok());
  if (rt->op(0).result == 0) winners->push_back(desired);
}

TEST_P(FabricTest, OneOfManyCasOnAWordSucceeds) {
  for (int seed = 0; seed < Scaled(200); ++seed) {
    StartWorld(static_cast<uint64_t>(seed));
    node(0).set_word(8, 0);
    std::vector<std::unique_ptr<Fabric>> fabrics;
    std::vector<uint64_t> winners;
    std::vector<Task<void>> tasks;
    for (uint64_t i = 1; i <= 8; ++i) {
      fabrics.push_back(NewFabric());
      tasks.push_back(CasOnce(fabrics.back().get(), i, &winners));
    }
    RunAll(std::move(tasks));
    ASSERT_EQ(winners.size(), 1U) << "seed " << seed;
    EXPECT_EQ(node(0).word(8), winners[0]) << "seed " << seed;
  }
}

// Increments a word by FAA and another one by CAS, `rounds` times each.
Task<void> Increment(Fabric* fabric, int rounds, std::vector<uint64_t>* seen) {
  for (int i = 0; i < rounds; ++i) {
    RoundTripPtr rt = fabric->NewRoundTrip();
    rt->Faa({NodeId{1}, 16}, 1);
    const uint64_t* word = rt->ReadWord({NodeId{1}, 24});
    EXPECT_TRUE((co_await fabric->Post(rt)).ok());
    seen->push_back(rt->op(0).result);
    uint64_t expected = *word;
    while (true) {
      RoundTripPtr attempt = fabric->NewRoundTrip();
      attempt->Cas({NodeId{1}, 24}, expected, expected + 1);
      EXPECT_TRUE((co_await fabric->Post(attempt)).ok());
      if (attempt->op(0).result == expected) break;
      expected = attempt->op(0).result;
    }
  }
}

void ExpectEveryNumberOnce(const std::vector<std::vector<uint64_t>>& seen, uint64_t count) {
  std::set<uint64_t> numbers;
  for (const auto& some : seen) numbers.insert(some.begin(), some.end());
  ASSERT_EQ(numbers.size(), count);
  EXPECT_EQ(*numbers.rbegin(), count - 1);
}

using Steps = std::vector<std::pair<uint64_t, uint64_t>>;

// Raises a word by MAX to every number that is `first` modulo `fabrics`, from the last two bits
// on, and notes what it replaced and by what.
Task<void> Raise(Fabric* fabric, uint64_t first, uint64_t fabrics, uint64_t rounds, Steps* steps) {
  for (uint64_t i = 0; i < rounds; ++i) {
    RoundTripPtr rt = fabric->NewRoundTrip();
    const uint64_t desired = 4 * (1 + first + fabrics * i) + i % 4;
    rt->Max({NodeId{1}, 16}, desired);
    EXPECT_TRUE((co_await fabric->Post(rt)).ok());
    if (rt->op(0).took()) steps->emplace_back(rt->op(0).result, desired);
  }
}

// Returns where the steps lead that begin at 0, each where another one has ended.
uint64_t EndOf(const std::vector<Steps>& steps) {
  std::map<uint64_t, uint64_t> chain;
  for (const Steps& some : steps) {
    for (const auto& [from, to] : some) EXPECT_TRUE(chain.emplace(from, to).second) << from;
  }
  uint64_t word = 0;
  for (const auto& [from, to] : chain) {
    EXPECT_EQ(from, word);
    word = to;
  }
  return word;
}

TEST_P(FabricTest, AMaxReplacesEveryWordOnce) {
  if (!fabric_->traits().has_max) GTEST_SKIP() << "this backend has no MAX";
  constexpr uint64_t kFabrics = 6;
  constexpr uint64_t kRounds = 100;
  std::vector<std::unique_ptr<Fabric>> fabrics;
  std::vector<Steps> steps(kFabrics);
  std::vector<Task<void>> tasks;
  for (uint64_t i = 0; i < kFabrics; ++i) {
    fabrics.push_back(NewFabric());
    tasks.push_back(Raise(fabrics.back().get(), i, kFabrics, kRounds, &steps[i]));
  }
  RunAll(std::move(tasks));
  const uint64_t end = EndOf(steps);
  EXPECT_EQ(end / 4, kFabrics * kRounds);
  EXPECT_EQ(node(1).word(16), end);
}

TEST_P(FabricTest, IncrementsOverSeveralChannelsAddUp) {
  constexpr int kFabrics = 6;
  constexpr int kRounds = 100;
  std::vector<std::unique_ptr<Fabric>> fabrics;
  std::vector<std::vector<uint64_t>> seen(kFabrics);
  std::vector<Task<void>> tasks;
  for (auto& numbers : seen) {
    fabrics.push_back(NewFabric());
    tasks.push_back(Increment(fabrics.back().get(), kRounds, &numbers));
  }
  RunAll(std::move(tasks));
  ExpectEveryNumberOnce(seen, kFabrics * kRounds);
  EXPECT_EQ(node(1).word(16), uint64_t{kFabrics * kRounds});
  EXPECT_EQ(node(1).word(24), uint64_t{kFabrics * kRounds});
}

TEST_P(FabricTest, IncrementsOverSeveralThreadsAddUp) {
  if (!GetParam().threads) GTEST_SKIP() << "one executor runs all of this backend's workers";
  constexpr int kThreads = 4;
  const int rounds = std::max(1, Scaled(50'000) / GetParam().slowness);
  std::vector<std::vector<uint64_t>> seen(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, rounds, &seen] {
      const auto world = GetParam().make(static_cast<uint64_t>(i));
      const auto fabric = world->NewFabric(endpoints());
      BlockOn(world->executor(), Increment(fabric.get(), rounds, &seen[static_cast<size_t>(i)]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto sum = kThreads * static_cast<uint64_t>(rounds);
  ExpectEveryNumberOnce(seen, sum);
  EXPECT_EQ(node(1).word(24), sum);
}

TEST_P(FabricTest, AMaxOfOneOfSeveralThreadsReplacesEveryWordOnce) {
  if (!fabric_->traits().has_max) GTEST_SKIP() << "this backend has no MAX";
  if (!GetParam().threads) GTEST_SKIP() << "one executor runs all of this backend's workers";
  constexpr uint64_t kThreads = 4;
  const auto rounds = static_cast<uint64_t>(std::max(1, Scaled(50'000) / GetParam().slowness));
  std::vector<Steps> steps(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, rounds, &steps] {
      const auto world = GetParam().make(i);
      const auto fabric = world->NewFabric(endpoints());
      BlockOn(world->executor(), Raise(fabric.get(), i, kThreads, rounds, &steps[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t end = EndOf(steps);
  EXPECT_EQ(end / 4, kThreads * rounds);
  EXPECT_EQ(node(1).word(16), end);
}

TEST_P(FabricTest, LargeAndUnalignedTransfersTouchTheirBytesOnly) {
  constexpr uint32_t kLengths[] = {
      0, 1, 7, 8, 9, 15, 16, 17, 63, 100, 1000, 4096, 65'537, 1 << 20, (1 << 20) + 13};
  for (const uint32_t bytes : kLengths) {
    for (const uint64_t offset : {0, 1, 3, 7, 8, 13}) {
      // The bytes around hold a pattern that must survive.
      std::memset(node(2).base(), 0xa5, kMemoryBytes);
      std::vector<std::byte> expected(kMemoryBytes, std::byte{0xa5});
      RoundTripPtr rt = fabric_->NewRoundTrip();
      const std::byte* from = Filled(*rt, bytes, offset + bytes);
      std::copy_n(from, bytes, expected.begin() + static_cast<ptrdiff_t>(offset));
      rt->Write({NodeId{2}, offset}, from, bytes);
      const std::byte* back = rt->Read({NodeId{2}, offset}, bytes);
      ASSERT_TRUE(Post(rt).ok());
      ASSERT_EQ(std::memcmp(back, from, bytes), 0) << bytes << " at " << offset;
      ASSERT_EQ(std::memcmp(node(2).base(), expected.data(), kMemoryBytes), 0)
          << bytes << " at " << offset;
    }
  }
}

constexpr uint64_t kPattern[2] = {0x1111111111111111, 0x2222222222222222};
constexpr uint32_t kTornWords = 512;

Task<void> WritePatterns(Fabric* fabric, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    RoundTripPtr rt = fabric->NewRoundTrip();
    auto* words = reinterpret_cast<uint64_t*>(rt->Reserve(kTornWords * 8));
    std::fill_n(words, kTornWords, kPattern[i % 2]);
    rt->Write({NodeId{0}, 4096}, reinterpret_cast<std::byte*>(words), kTornWords * 8);
    EXPECT_TRUE((co_await fabric->Post(rt)).ok());
  }
}

// Counts reads that saw both patterns. The read begins and ends within words.
Task<void> ReadPatterns(Fabric* fabric, int rounds, int* mixed) {
  for (int i = 0; i < rounds; ++i) {
    RoundTripPtr rt = fabric->NewRoundTrip();
    const std::byte* bytes = rt->Read({NodeId{0}, 4096 + 5}, kTornWords * 8 - 8);
    EXPECT_TRUE((co_await fabric->Post(rt)).ok());
    size_t of_second = 0;
    for (uint32_t word = 0; word + 1 < kTornWords - 1; ++word) {
      uint64_t value = 0;
      std::memcpy(&value, bytes + 3 + word * 8, 8);
      EXPECT_TRUE(value == kPattern[0] || value == kPattern[1]) << std::hex << value;
      of_second += value == kPattern[1];
    }
    *mixed += of_second != 0 && of_second != kTornWords - 2;
  }
}

TEST_P(FabricTest, BulkMayBeTornButItsWordsAreNot) {
  BlockOn(executor(), WritePatterns(fabric_.get(), 1));
  const auto other = NewFabric();
  int mixed = 0;
  std::vector<Task<void>> tasks;
  tasks.push_back(WritePatterns(fabric_.get(), 200));
  tasks.push_back(ReadPatterns(other.get(), 200, &mixed));
  RunAll(std::move(tasks));
  // A backend on which time passes shows readers the middle of a write.
  EXPECT_GT(mixed, GetParam().has_time ? 0 : -1);
}

TEST_P(FabricTest, BulkRacingAcrossThreadsKeepsItsWordsWhole) {
  if (!GetParam().threads) GTEST_SKIP() << "one executor runs all of this backend's workers";
  BlockOn(executor(), WritePatterns(fabric_.get(), 1));
  const int rounds = std::max(1, Scaled(5000) / GetParam().slowness);
  std::thread writer([this, rounds] {
    const auto world = GetParam().make(2);
    const auto fabric = world->NewFabric(endpoints());
    BlockOn(world->executor(), WritePatterns(fabric.get(), rounds));
  });
  int mixed = 0;
  BlockOn(executor(), ReadPatterns(fabric_.get(), rounds, &mixed));
  writer.join();
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricTest, testing::ValuesIn(kFabricBackends),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
