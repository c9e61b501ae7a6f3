#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "client_core/base/rng.h"
#include "frontend/query_buffer.h"

namespace onetrip {
namespace {

void Put(QueryBuffer& buffer, std::string_view text) {
  const std::span<char> room = buffer.Room(text.size());
  ASSERT_GE(room.size(), text.size());
  std::copy(text.begin(), text.end(), room.begin());
  buffer.Commit(text.size());
}

TEST(QueryBufferTest, StartsWithSixteenKibibytesAndGrowsToWhatIsWanted) {
  QueryBuffer buffer;
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.Room(1).size(), QueryBuffer::kFirstBytes);
  EXPECT_GE(buffer.Room(1 << 20).size(), size_t{1} << 20);
}

TEST(QueryBufferTest, KeepsTheDataWhenItMoves) {
  QueryBuffer buffer;
  Put(buffer, "hello world");
  buffer.Consume(6);
  Put(buffer, std::string(100'000, 'x'));
  EXPECT_EQ(buffer.data().substr(0, 7), "worldxx");
  EXPECT_EQ(buffer.size(), 100'005U);
}

TEST(QueryBufferTest, WhatWasWantedComesWithoutAMoveInWhateverPieces) {
  for (const size_t wanted : {size_t{20'000}, size_t{300'000}, size_t{3} << 20}) {
    QueryBuffer buffer;
    (void)buffer.Room(wanted);
    const char* const start = buffer.data().data();
    for (size_t left = wanted; left > 0; left -= (left + 1) / 2) {
      EXPECT_TRUE(buffer.Fits(left));
      Put(buffer, std::string((left + 1) / 2, 'x'));
      ASSERT_EQ(buffer.data().data(), start) << left << " of " << wanted << " to come";
    }
  }
}

TEST(QueryBufferTest, ReusesTheFrontInsteadOfGrowing) {
  QueryBuffer buffer;
  for (int i = 0; i < 1000; ++i) {
    Put(buffer, std::string(1000, 'a'));
    buffer.Consume(i == 0 ? 990 : 1000);
  }
  EXPECT_EQ(buffer.size(), 10U);
  EXPECT_EQ(buffer.capacity(), QueryBuffer::kFirstBytes);
}

TEST(QueryBufferTest, ReleaseGivesTheMemoryBack) {
  QueryBuffer buffer;
  Put(buffer, "abc");
  buffer.Consume(3);
  buffer.Release();
  EXPECT_EQ(buffer.capacity(), 0U);
  Put(buffer, "def");
  EXPECT_EQ(buffer.data(), "def");
}

TEST(QueryBufferTest, GivesBackWhatALargeCommandTook) {
  QueryBuffer buffer;
  Put(buffer, std::string(10 << 20, 'x'));
  buffer.Shrink();
  EXPECT_GE(buffer.capacity(), size_t{10} << 20) << "it is not done yet";
  Put(buffer, "next command");
  buffer.Consume(10 << 20);
  buffer.Shrink();
  EXPECT_EQ(buffer.capacity(), QueryBuffer::kFirstBytes);
  EXPECT_EQ(buffer.data(), "next command");
  Put(buffer, std::string(2 << 20, 'x'));
  buffer.Consume(buffer.size());
  buffer.Shrink();
  EXPECT_EQ(buffer.capacity(), 0U);
}

TEST(QueryBufferTest, GoesOnInACopyThatOthersMade) {
  QueryBuffer buffer;
  Put(buffer, "done" + std::string(3 << 20, 'x'));
  buffer.Consume(4);
  EXPECT_TRUE(buffer.Fits(1000)) << "what comes behind a large argument";
  ASSERT_FALSE(buffer.Fits(3 << 20));
  LargeMemory larger(buffer.BytesFor(3 << 20));
  std::memcpy(larger.start(), buffer.data().data(), buffer.size());
  buffer.TakeCopy(std::move(larger));
  EXPECT_EQ(buffer.data(), std::string(3 << 20, 'x'));
  EXPECT_TRUE(buffer.Fits(3 << 20));
  Put(buffer, "tail");
  EXPECT_TRUE(buffer.data().ends_with("xtail"));
}

TEST(QueryBufferTest, BehavesAsAQueueOfBytesUnderRandomUse) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    QueryBuffer buffer;
    std::string model;
    for (int step = 0; step < 2000; ++step) {
      if (rng.Below(2) == 0) {
        std::string text(rng.Below(3000), '\0');
        for (char& byte : text) byte = static_cast<char>(rng.Next());
        Put(buffer, text);
        model += text;
      } else {
        const size_t bytes = rng.Below(model.size() + 1);
        buffer.Consume(bytes);
        model.erase(0, bytes);
      }
      ASSERT_EQ(buffer.data(), model) << "seed " << seed;
    }
  }
}

TEST(QueryBufferTest, GivesBackWhatItHasNotNeededForAWhile) {
  QueryBuffer buffer;
  const auto hold = [&buffer](size_t bytes) {
    Put(buffer, std::string(bytes, 'x'));
    buffer.Consume(bytes);
  };
  hold(400'000);
  const size_t most = buffer.capacity();
  buffer.ShrinkToRecent();
  EXPECT_EQ(buffer.capacity(), most) << "it was needed just now";
  hold(40'000);
  buffer.ShrinkToRecent();
  EXPECT_GE(buffer.capacity(), 40'000U);
  EXPECT_LT(buffer.capacity(), most / 2);
  Put(buffer, "data");
  buffer.ShrinkToRecent();
  EXPECT_GE(buffer.capacity(), 40'000U) << "it holds something";
  buffer.Consume(4);
  buffer.ShrinkToRecent();
  buffer.ShrinkToRecent();
  EXPECT_EQ(buffer.capacity(), QueryBuffer::kFirstBytes);
}

}  // namespace
}  // namespace onetrip
