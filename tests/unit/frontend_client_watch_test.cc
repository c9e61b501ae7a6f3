// ClientWatch: which clients are closed though they have done nothing wrong, and when.
#include <gtest/gtest.h>

#include <cstdint>

#include "frontend/client_watch.h"

namespace onetrip {
namespace {

constexpr uint64_t kS = 1'000'000'000;
constexpr ClientBounds kNoBounds{};

TEST(ClientWatch, AnIdleClientStaysWithoutATimeout) {
  ClientWatch watch;
  EXPECT_EQ(watch.Judge({.now_ns = 1000 * kS, .awaits_input = true}, kNoBounds),
            ClientVerdict::kStays);
}

TEST(ClientWatch, AnIdleClientIsClosedBehindTheTimeoutUnlessACommandRuns) {
  ClientWatch watch;
  const ClientBounds bounds{.timeout_s = 5};
  ClientSigns signs{.now_ns = 15 * kS, .last_activity_ns = 10 * kS, .awaits_input = true};
  EXPECT_EQ(watch.Judge(signs, bounds), ClientVerdict::kStays);
  signs.now_ns += 1;
  EXPECT_EQ(watch.Judge(signs, bounds), ClientVerdict::kIdle);
  signs.awaits_input = false;
  EXPECT_EQ(watch.Judge(signs, bounds), ClientVerdict::kStays);
}

TEST(ClientWatch, TheSoftLimitCountsFromWhenItWasPassedAndBeginsAnewBelowIt) {
  ClientWatch watch;
  const ClientBounds bounds{.output_soft_bytes = 100, .output_soft_s = 2};
  EXPECT_EQ(watch.Judge({.now_ns = 1 * kS, .output_bytes = 101}, bounds), ClientVerdict::kStays);
  EXPECT_EQ(watch.Judge({.now_ns = 3 * kS, .output_bytes = 101}, bounds), ClientVerdict::kStays);
  EXPECT_EQ(watch.Judge({.now_ns = 4 * kS, .output_bytes = 101}, bounds),
            ClientVerdict::kOverLimit);
  EXPECT_EQ(watch.Judge({.now_ns = 5 * kS, .output_bytes = 100}, bounds), ClientVerdict::kStays);
  EXPECT_EQ(watch.Judge({.now_ns = 6 * kS, .output_bytes = 101}, bounds), ClientVerdict::kStays);
}

TEST(ClientWatch, APausedClientThatTakesNothingIsClosed) {
  ClientWatch watch;
  ClientSigns signs{.now_ns = ClientWatch::kStalledNs + kS, .last_sent_ns = kS, .is_paused = true};
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.now_ns += 1;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kOverLimit);
  signs.is_paused = false;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
}

TEST(ClientWatch, LastRepliesHaveAFewSeconds) {
  ClientWatch watch;
  ClientSigns signs{.now_ns = kS + ClientWatch::kLingerNs, .finishing_since_ns = kS};
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.now_ns += 1;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kLingers);
}

TEST(ClientWatch, WhoKeepsOthersWaitingMustMoveBytes) {
  constexpr uint64_t kEnough = ClientWatch::kInTheWayNs / kS * ClientWatch::kLeastBytesPerS;
  ClientWatch watch;
  ClientSigns signs{.now_ns = kS, .moved_bytes = 7, .keeps_others_waiting = true};
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.now_ns += ClientWatch::kInTheWayNs;
  signs.moved_bytes += kEnough;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.now_ns += ClientWatch::kInTheWayNs;
  signs.moved_bytes += kEnough - 1;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kInTheWay);
}

TEST(ClientWatch, TimeInWhichNoneWaitedDoesNotCount) {
  ClientWatch watch;
  ClientSigns signs{.now_ns = kS, .keeps_others_waiting = true};
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.keeps_others_waiting = false;
  signs.now_ns += ClientWatch::kInTheWayNs;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
  signs.keeps_others_waiting = true;
  signs.now_ns += 1;
  EXPECT_EQ(watch.Judge(signs, kNoBounds), ClientVerdict::kStays);
}

}  // namespace
}  // namespace onetrip
