// Coordinator: the master as a pure state machine. Who is a member, who was
// expelled and must be fenced, which view is in force, and in which order everybody learns of it.
//
// No clock, no I/O, no thread: events go in with the time, effects come out. Whoever drives it
// makes the effects' change durable first and sends afterwards; when that fails, the event has not
// happened (event_journal.h). docs/MASTER.md tells the states. What it knows is in state.h; the
// parts, which are functions of that state, are in the other files of this folder and in work/.
#ifndef ONETRIP_MASTER_COORDINATOR_H_
#define ONETRIP_MASTER_COORDINATOR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "client_core/base/status.h"
#include "master/coordinator_effects.h"
#include "master/durable_state.h"
#include "master/messages.h"
#include "master/state.h"

namespace onetrip {

// Copyable. One thread. Every `now_us` is steady time in microseconds and never decreases.
class Coordinator {
 public:
  // Goes on from `durable`. A new cluster gets the name `fresh_cluster`, this life of its master
  // the name `fresh_life`, which is no other's and not 0. `unix_us` is the wall clock's time.
  // kCorrupt: `durable` makes no sense; kInvalidArgument: so do the options; *reason is one line.
  // The effects of the start are waiting in TakeEffects().
  static Result<Coordinator> Create(const CoordinatorOptions& options, const DurableState& durable,
                                    uint64_t fresh_cluster, uint64_t fresh_life, uint64_t now_us,
                                    uint64_t unix_us, std::string* reason);
  Coordinator() = default;

  // A process has proved itself on `stream`. The verdict goes out before the effects' messages.
  Attendance Attend(uint64_t now_us, StreamId stream, const MemberHello& hello);
  // Something was said on a stream that was welcomed; what ended in between is ignored.
  void OnMessage(uint64_t now_us, StreamId stream, const MemberMessage& message);
  // The process behind the stream lives: it has said something that OnMessage() may not have been
  // told of yet. Nothing but its lease changes.
  void OnHeard(uint64_t now_us, StreamId stream);
  // A process that says it is this member is in its handshake, as of now, and has not proved it:
  // the next OnTick() bears with the member, within bounds (leases.h). Unknown members are ignored.
  void OnHandshake(uint64_t member);
  // The stream has ended, whoever ended it. `has_ended`: so has the process, for certain.
  void OnStreamClosed(uint64_t now_us, StreamId stream, bool has_ended = false);
  // Time passes: leases, timeouts, retries. To be called every TickMs() while HasDeadlines().
  void OnTick(uint64_t now_us);
  // The master ends in order: the next one goes on with this time exactly.
  void OnStop(uint64_t now_us);

  [[nodiscard]] CoordinatorEffects TakeEffects() { return std::exchange(effects_, {}); }

  [[nodiscard]] uint64_t TickMs() const;
  [[nodiscard]] bool HasDeadlines() const { return !state_.members.empty(); }
  [[nodiscard]] uint64_t lease_ms() const { return state_.options.lease_ms; }
  [[nodiscard]] uint64_t cluster() const { return state_.record.cluster; }
  [[nodiscard]] bool has_map() const { return state_.has_map(); }
  // The newest view; without regions before there is a map.
  [[nodiscard]] const View& view() const { return state_.membership.view(); }
  // Cluster time, in microseconds since the Unix epoch.
  [[nodiscard]] uint64_t TimeUs(uint64_t now_us) const;
  // This life's name, of those that a master of the cluster has had.
  [[nodiscard]] uint64_t life() const { return state_.record.life; }
  // For people; the fields that only the process knows are left alone.
  [[nodiscard]] StatusReply Status(uint64_t now_us) const;
  // For tests: what must hold after every event is in WhatDoesNotHold().
  [[nodiscard]] const master::ClusterState& state() const { return state_; }

 private:
  void OnRequest(master::Member* member, uint64_t now_us, StreamId stream,
                 const RequestMessage& message);
  // Does what the queue and the members' answers allow now. Every event ends with it.
  void Pump(uint64_t now_us);

  master::ClusterState state_;
  CoordinatorEffects effects_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_COORDINATOR_H_
