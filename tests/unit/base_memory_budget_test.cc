// MemoryBudget: which task gets a share, and when; LargeMemory: memory of any size.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "client_core/base/large_memory.h"
#include "client_core/base/memory_budget.h"

namespace onetrip {
namespace {

using Share = MemoryBudget::Share;
using Ticket = MemoryBudget::Ticket;

TEST(MemoryBudgetTest, SharesFitAndGoBackWithTheirOwner) {
  auto budget = std::make_shared<MemoryBudget>(100);
  Share first;
  {
    Share second;
    EXPECT_TRUE(Ticket(budget, 60).Take(&first));
    EXPECT_TRUE(Ticket(budget, 40).Take(&second));
    EXPECT_EQ(budget->used_bytes(), 100U);
    Share third;
    EXPECT_FALSE(Ticket(budget, 1).Take(&third));
  }
  EXPECT_EQ(budget->used_bytes(), 60U);
  Share moved = std::move(first);
  EXPECT_EQ(budget->used_bytes(), 60U);
  moved = {};
  EXPECT_EQ(budget->used_bytes(), 0U);
}

TEST(MemoryBudgetTest, WhatIsTooLargeGoesAlone) {
  auto budget = std::make_shared<MemoryBudget>(100);
  Share small;
  ASSERT_TRUE(Ticket(budget, 1).Take(&small));
  Share large;
  Ticket turn(budget, 1000);
  EXPECT_FALSE(turn.Take(&large));
  small = {};
  EXPECT_TRUE(turn.Take(&large));
  EXPECT_EQ(large.bytes(), 1000U);
  Share other;
  EXPECT_FALSE(Ticket(budget, 1).Take(&other));
}

TEST(MemoryBudgetTest, NobodyOvertakesWhoWaits) {
  auto budget = std::make_shared<MemoryBudget>(100);
  Share held;
  ASSERT_TRUE(Ticket(budget, 50).Take(&held));
  Share large;
  Share small;
  std::optional<Ticket> first;
  first.emplace(budget, 80);
  Ticket second(budget, 10);
  EXPECT_FALSE(first->Take(&large));
  EXPECT_FALSE(second.Take(&small)) << "it would fit";
  EXPECT_EQ(budget->waiting(), 2U);
  first.reset();  // given up
  EXPECT_TRUE(second.Take(&small));
  EXPECT_EQ(budget->waiting(), 0U);
}

TEST(MemoryBudgetTest, AShareGrowsWhetherItFitsOrNot) {
  auto budget = std::make_shared<MemoryBudget>(100);
  Share share;
  ASSERT_TRUE(Ticket(budget, 90).Take(&share));
  share.Grow(90);
  EXPECT_EQ(share.bytes(), 180U);
  EXPECT_EQ(budget->used_bytes(), 180U);
  Share kept = Share::TakeNow(budget, 50);
  EXPECT_EQ(kept.bytes(), 50U);
  EXPECT_EQ(budget->used_bytes(), 230U);
  share = {};
  kept = {};
  EXPECT_EQ(budget->used_bytes(), 0U);
  EXPECT_EQ(Share::TakeNow(nullptr, 50).bytes(), 0U);
}

TEST(MemoryBudgetTest, SharesThatGrowWaitForRoomButNotAllOfThemForEachOther) {
  const auto budget = std::make_shared<MemoryBudget>(100);
  MemoryBudget::Share a;
  MemoryBudget::Share b;
  EXPECT_TRUE(MemoryBudget::Ticket(budget, 40).Take(&a));
  EXPECT_TRUE(MemoryBudget::Ticket(budget, 40).Take(&b));
  EXPECT_TRUE(MemoryBudget::Growth(a, 20).Take());  // fits
  {
    MemoryBudget::Growth more_a(a, 50);
    MemoryBudget::Growth more_b(b, 50);
    MemoryBudget::Ticket other(budget, 1);
    EXPECT_EQ(budget->waiting(), 3U);
    EXPECT_FALSE(more_b.Take());  // is not the next
    EXPECT_TRUE(more_a.Take());   // does not fit: the one that may
    EXPECT_EQ(a.bytes(), 110U);
    EXPECT_EQ(budget->used_bytes(), 150U);
    EXPECT_FALSE(more_b.Take());
    EXPECT_TRUE(MemoryBudget::Growth(a, 10).Take());  // again, before others
    MemoryBudget::Share moved = std::move(a);
    EXPECT_FALSE(more_b.Take());
    moved = {};
    MemoryBudget::Share none;
    EXPECT_FALSE(other.Take(&none));  // not while a share waits to grow
    EXPECT_TRUE(more_b.Take());
    EXPECT_EQ(b.bytes(), 90U);
    EXPECT_TRUE(other.Take(&none));
  }
  b = {};
  EXPECT_EQ(budget->used_bytes(), 0U);
  EXPECT_EQ(budget->waiting(), 0U);
}

TEST(LargeMemoryTest, WhatTheHostDoesNotHaveIsNotThere) {
  EXPECT_EQ(LargeMemory::TryMake(size_t{1} << 60).start(), nullptr);
  EXPECT_NE(LargeMemory::TryMake(size_t{8} << 20).start(), nullptr);
}

TEST(LargeMemoryTest, MemoryOfAnySizeCanBeFilledAndMoved) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, (size_t{4} << 20) - 1, size_t{9} << 20}) {
    LargeMemory memory(bytes);
    ASSERT_EQ(memory.bytes(), bytes);
    std::memset(memory.start(), 7, bytes);
    LargeMemory moved = std::move(memory);
    EXPECT_EQ(memory.start(), nullptr);
    EXPECT_EQ(moved.start()[bytes - 1], std::byte{7});
    memory = std::move(moved);
    EXPECT_EQ(memory.bytes(), bytes);
  }
}

}  // namespace
}  // namespace onetrip
