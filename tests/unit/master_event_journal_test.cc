// A journal that takes events back is as if they had never been.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/layout/global_addr.h"
#include "master/durable_change.h"
#include "master/event_journal.h"

namespace onetrip {
namespace {

using Event = CoordinatorEvent;

constexpr uint64_t kStartUs = 1'000'000;

Coordinator Fresh() {
  CoordinatorOptions options;
  options.lease_ms = 10'000;  // renewals are rare here
  std::string reason;
  Result<Coordinator> made =
      Coordinator::Create(options, {}, 0xc0ffee, 1, kStartUs, kStartUs, &reason);
  EXPECT_TRUE(made.ok()) << reason;
  return std::move(made.value());
}

// Everything that operators and the store can tell of what has happened.
std::string TextOf(const Coordinator& coordinator, uint64_t now_us) {
  const StatusReply status = coordinator.Status(now_us);
  std::string text = status.status.state + "|" + status.waiting_for + "|" + status.unreached + "|" +
                     std::to_string(coordinator.view().epoch.value) + "|" +
                     std::to_string(coordinator.TimeUs(now_us));
  for (const MemberStatusInfo& member : status.status.members) {
    text += "|" + std::to_string(member.member) + member.state +
            std::to_string(member.lease_left_ms) + "," + std::to_string(member.workers);
  }
  return text;
}

std::string TextOf(const CoordinatorEffects& effects) {
  std::string text = EncodeChange(effects.change);
  for (const auto& send : effects.sends) {
    text += "|" + std::to_string(send.stream) + ":" + std::to_string(send.message.index());
  }
  for (const auto& close : effects.closes) {
    text += "|" + std::to_string(close.stream) + close.reason;
  }
  for (const auto& line : effects.logs) text += "|" + line.text;
  return text;
}

MemberHello Hello(MemberKind kind) {
  MemberHello hello;
  hello.kind = kind;
  hello.pid = 4711;
  hello.host = "testhost";
  hello.engine = kind == MemberKind::kAgent ? "swarm" : "";
  return hello;
}

constexpr StreamId kNodes = 3;  // streams 1 to 3; those after them are agents

Event Ask(uint64_t now_us, StreamId stream, RequestMessage request) {
  return {now_us, Event::Says{stream, std::move(request)}};
}

// Events that make a cluster of three nodes, and agents on the streams up to `streams`.
std::vector<Event> Forming(StreamId streams) {
  std::vector<Event> events;
  for (StreamId node = 1; node <= kNodes; ++node) {
    events.push_back({kStartUs, Event::Attends{node, Hello(MemberKind::kMemoryNode)}});
    const JoinNodeRequest offer{.bytes = 4 * kRegionBytes, .incarnation = 100 + node};
    events.push_back(Ask(kStartUs, node, {1, offer}));
  }
  for (StreamId node = 1; node <= kNodes; ++node) {
    NodeAddress address;
    address.tcp_host = "127.0.0.1";
    address.tcp_port = static_cast<uint16_t>(7000 + node);
    events.push_back(Ask(kStartUs, node, {2, ServeNodeRequest{address}}));
  }
  for (StreamId agent = kNodes + 1; agent <= streams; ++agent) {
    events.push_back({kStartUs, Event::Attends{agent, Hello(MemberKind::kAgent)}});
  }
  return events;
}

// An event for a cluster whose streams have numbers below `next`; an agent that comes has that one.
Event RandomEvent(Rng& rng, uint64_t now_us, uint64_t epoch, StreamId next) {
  const StreamId agent = kNodes + 1 + rng.Below(next - kNodes - 1);
  switch (rng.Below(12)) {
    case 0:
      return {now_us, Event::Tick()};
    case 1:
      return Ask(now_us, agent, {rng.Below(1000), JoinWorkerRequest()});
    case 2:
      return Ask(now_us, agent, {rng.Below(1000), FlushRequest()});
    case 3:
      if (rng.Below(100) == 0) return {now_us, Event::Closed{agent, rng.Below(2) == 0}};
      return {now_us, Event::Attends{next, Hello(MemberKind::kAgent)}};
    case 4:
      return {now_us, Event::Says{1 + rng.Below(kNodes), RenewMessage{1, {}, false}}};
    case 5:
      return {now_us, Event::Says{agent, RenewMessage{1, {}, false}}};
    case 6:
    case 7:
      return {now_us, Event::Says{agent, ViewHeldMessage{Epoch{epoch + 1}}}};
    default:
      return {now_us, Event::Says{agent, ViewInForceMessage{Epoch{epoch}}}};
  }
}

TEST(EventJournal, WhatIsTakenBackHasNotHappened) {
  uint64_t epochs = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    EventJournal journal(Fresh());
    EventJournal plain(Fresh());  // never takes anything back
    CoordinatorEffects effects;
    CoordinatorEffects expected;
    EXPECT_EQ(TextOf(journal.TakeStartEffects()), TextOf(plain.TakeStartEffects()));
    StreamId next = kNodes + 4;
    const std::vector<Event> forming = Forming(next - 1);
    uint64_t now_us = kStartUs;
    for (size_t step = 0; step < 600; ++step) {
      const bool forms = step < forming.size();
      if (!forms) now_us += rng.Below(20'000);
      const uint64_t epoch = plain.coordinator().view().epoch.value;
      while (rng.Below(4) == 0) {
        journal.Apply(RandomEvent(rng, now_us, epoch, next), &effects);
        journal.Revert();
      }
      const Event event = forms ? forming[step] : RandomEvent(rng, now_us, epoch, next);
      if (!forms && std::holds_alternative<Event::Attends>(event.what) && next < 10) ++next;
      const Attendance got = journal.Apply(event, &effects);
      const Attendance want = plain.Apply(event, &expected);
      ASSERT_EQ(got.member, want.member) << "seed " << seed << " step " << step;
      ASSERT_EQ(TextOf(effects), TextOf(expected)) << "seed " << seed << " step " << step;
      ASSERT_EQ(TextOf(journal.coordinator(), now_us), TextOf(plain.coordinator(), now_us));
    }
    EXPECT_TRUE(plain.coordinator().has_map());
    epochs += plain.coordinator().view().epoch.value;
  }
  // The clusters have changed, too.
  EXPECT_GT(epochs, 80U);
}

}  // namespace
}  // namespace onetrip
