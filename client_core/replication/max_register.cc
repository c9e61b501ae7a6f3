#include "client_core/replication/max_register.h"

#include <numeric>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {

void MaxRegister::Start(Task<void> step) {
  if (context_.fabric.completes_inline()) {
    CHECK(step.Start());
    return;
  }
  // A closed gate drops the step, whose share then reports failure.
  (void)context_.executor.Spawn(gate_, std::move(step));
}

uint64_t MaxRegister::WidenNs() const {
  return std::clamp(round_trip_ns_ * kWidenFactor, options_.widen_min_ns, options_.widen_max_ns);
}

void MaxRegister::Measure(uint64_t duration_ns) {
  // Waits that were cut short by widening say little; what they say must not count for much.
  const uint64_t bounded_ns = std::min(duration_ns, round_trip_ns_ * kWidenFactor);
  round_trip_ns_ = std::max<uint64_t>((round_trip_ns_ * 7 + bounded_ns) / 8, 1);
}

void MaxRegister::Order(const RegisterHandle& handle, const QuorumCall& call,
                        std::array<uint8_t, kMaxReplicas>* order) {
  const int count = call.replicas();
  const int first = InNOut::InPlaceReplica(handle.ref, count);
  for (int i = 0; i < count; ++i) (*order)[i] = static_cast<uint8_t>((first + i) % count);
  if (context_.fabric.completes_inline()) return;
  const uint64_t now_ns = context_.executor.NowNs();
  std::stable_partition(order->begin(), order->begin() + count, [&](uint8_t replica) {
    const size_t node = call.node(replica).value;
    return node >= avoid_until_ns_.size() || avoid_until_ns_[node] <= now_ns;
  });
}

void MaxRegister::Avoid(const RegisterOperation& operation, const RegisterHandle& handle,
                        const QuorumCall& call) {
  const uint64_t now_ns = context_.executor.NowNs();
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (call.counts(replica) || !call.asked(replica)) continue;
    const size_t node = call.node(replica).value;
    if (node >= avoid_until_ns_.size()) avoid_until_ns_.resize(node + 1);
    const bool asks_already = avoid_until_ns_[node] > now_ns;
    avoid_until_ns_[node] = now_ns + options_.avoid_ns;
    if (asks_already) continue;
    (void)context_.executor.Spawn(
        gate_, AskAgain(handle.ref, replica, call.nodes(), operation.shared_pin));
  }
}

// Its answer comes behind the late one: one hiccup must not cost a second round trip for every
// value that is in place there, for as long as a dead node would be avoided.
Task<void> MaxRegister::AskAgain(RegisterRef ref, int replica, ReplicaNodes nodes, SharedPin pin) {
  QuorumCall call(context_.executor, nodes, pin);
  co_await in_n_out_.Read(call.Ask(replica), ref);
  if (call.reply(replica).state == ReplicaReply::State::kFailed) co_return;
  avoid_until_ns_[nodes.node[replica].value] = 0;
}

Tuple MaxRegister::Largest(const QuorumCall& call) {
  Tuple m;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (!call.counts(replica) || call.reply(replica).largest <= m.word) continue;
    m.word = call.reply(replica).largest;
    m.lane = call.reply(replica).lane;
  }
  return m;
}

int MaxRegister::Holders(const QuorumCall& call, MetaWord word) {
  int holders = 0;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    holders += Holds(call, replica, word) ? 1 : 0;
  }
  return holders;
}

RegisterStep MaxRegister::End(RegisterOperation& operation, const QuorumCall& call, int needed) {
  uint32_t round_trips = 1;
  RegisterStep step;
  bool foreign = false;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    const ReplicaReply& reply = call.reply(replica);
    if (call.counts(replica)) round_trips = std::max(round_trips, reply.round_trips);
    if (reply.state == ReplicaReply::State::kSealed) step.seal = reply.seal;
    foreign |= reply.foreign;
  }
  operation.round_trips += round_trips;
  if (call.counted() >= needed) {
    step.seal = 0;
  } else if (foreign) {
    step = {Status(StatusCode::kNotFound, "this memory is another register's by now"), 0};
  } else if (step.seal == 0) {
    step.status = Status(StatusCode::kUnavailable, "too few replicas of a register answered");
  }
  return step;
}

// Appendix A, READ up to the write-back: inner reads of a majority.
Task<RegisterStep> MaxRegister::ReadLanes(RegisterOperation& operation, RegisterHandle& handle,
                                          QuorumCall* call, Tuple* m) {
  const int needed = majority();
  std::array<uint8_t, kMaxReplicas> order{};
  Order(handle, *call, &order);
  const auto ask = [this, call, ref = handle.ref](int replica) {
    Start(in_n_out_.Read(call->Ask(replica), ref));
  };
  for (int i = 0; i < std::min(needed, call->replicas()); ++i) ask(order[i]);
  if (call->counted() < needed) {
    co_await WaitAndWiden(operation, *call, needed, ask);
    if (call->all_asked()) Avoid(operation, handle, *call);
  }
  const RegisterStep step = End(operation, *call, needed);
  if (!step.done()) co_return step;
  const Tuple largest = Largest(*call);
  if (m->word.AsGuess() == largest.word.AsGuess()) {
    m->word = std::max(m->word, largest.word);
    m->lane = largest.lane;
  } else {
    *m = largest;
  }
  handle.times.seen = std::max(handle.times.seen, m->word.time());
  // What our own lane holds makes the next write's CAS succeed at once.
  for (int replica = 0; replica < call->replicas(); ++replica) {
    if (!call->counts(replica)) continue;
    const uint8_t lane = InNOut::LaneOf(context_.membership.id, handle.ref.shape);
    handle.lane_word =
        std::max(handle.lane_word, InNOut::LaneIn(handle.ref, call->reply(replica), lane));
  }
  co_return step;
}

// Appendix A, READ: what is returned is at a majority before it is returned.
Task<RegisterStep> MaxRegister::Read(RegisterOperation& operation, RegisterHandle& handle,
                                     Tuple* m) {
  for (uint32_t restart = 0; restart <= options_.restarts_max; ++restart) {
    QuorumCall call = NewCall(operation, handle.ref);
    const RegisterStep read = co_await ReadLanes(operation, handle, &call, m);
    if (!read.done() || m->word.is_empty()) co_return read;
    TakeInPlace(handle, call, m);
    // PROTOCOLS 3.2: bytes that are on no reachable replica belong to a word that was not at a
    // majority.
    if (!m->has_value) {
      // Not in the condition: gcc 12 builds a broken frame for some such awaits.
      const bool fetched = co_await FetchValue(operation, handle, call, m);
      if (!fetched) {
        ++restarts_;
        *m = Tuple();
        continue;
      }
    }
    if (Holders(call, m->word) >= majority() || Planted(Bug::kNoWriteBack)) {
      co_return RegisterStep();
    }
    co_return co_await WriteBack(operation, handle, call, *m);
  }
  co_return RegisterStep{
      Status(StatusCode::kUnavailable, "no replica that answers has the value of a register"), 0};
}

void MaxRegister::TakeInPlace(const RegisterHandle& handle, const QuorumCall& call, Tuple* m) {
  const int in_place = InNOut::InPlaceReplica(handle.ref, call.replicas());
  if (m->has_value || !options_.in_place || !call.counts(in_place) ||
      call.reply(in_place).image == nullptr ||
      !InNOut::ReadInPlace(handle.ref, call.reply(in_place).image, m->word, &m->value)) {
    return;
  }
  // A copy is made only of what is verified.
  m->word = m->word.AsVerified();
  m->has_value = true;
  m->in_place = true;
  m->holder = call.reply(in_place).round_trip;
}

Task<bool> MaxRegister::Value(RegisterOperation& operation, const RegisterHandle& handle,
                              const QuorumCall& call, Tuple* m) {
  TakeInPlace(handle, call, m);
  if (m->has_value) co_return true;
  co_return co_await FetchValue(operation, handle, call, m);
}

Task<bool> MaxRegister::FetchValue(RegisterOperation& operation, const RegisterHandle& handle,
                                   const QuorumCall& call, Tuple* m) {
  QuorumCall fetch = NewCall(operation, call);
  int first = -1;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    const bool holds =
        call.counts(replica) && call.reply(replica).largest.AsGuess() == m->word.AsGuess();
    if (!holds) {
      fetch.Exclude(replica);
    } else if (first < 0) {
      first = replica;
    }
  }
  if (first < 0) co_return false;
  const auto ask = [this, &fetch, ref = handle.ref, word = m->word](int replica) {
    Start(in_n_out_.ReadBuffer(fetch.Ask(replica), ref, word));
  };
  ask(first);
  if (fetch.counted() == 0) co_await WaitAndWiden(operation, fetch, 1, ask);
  if (!End(operation, fetch, 1).done()) co_return false;
  for (int replica = 0; replica < fetch.replicas(); ++replica) {
    if (!fetch.counts(replica)) continue;
    const ReplicaReply& reply = fetch.reply(replica);
    m->has_value = DecodeBuffer(reply.image, handle.ref.shape.buffer_bytes - kBufferBulkOffset,
                                {handle.ref.birth.value + m->word.time()}, &m->value);
    CHECK(m->has_value);
    m->holder = reply.round_trip;
    m->in_place = false;
    break;
  }
  co_return true;
}

// A write-back carries the bytes, goes to the lane where m was seen, and reads the seal.
Task<RegisterStep> MaxRegister::WriteBack(RegisterOperation& operation,
                                          const RegisterHandle& handle, const QuorumCall& call,
                                          const Tuple& m) {
  QuorumCall back = NewCall(operation, call);
  const int needed = majority() - Holders(call, m.word);
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (Holds(call, replica, m.word)) {
      back.Exclude(replica);
      continue;
    }
    RoundTripPtr batch =
        Planted(Bug::kWriteBackWithoutBytes)
            ? context_.fabric.NewRoundTrip()
            : in_n_out_.WriteBuffer(handle.ref, call.node(replica), m.word, m.value);
    if (!batch) {
      back.Exclude(replica);
      continue;
    }
    const LaneWrite write{m.word, InNOut::LaneIn(handle.ref, call.reply(replica), m.lane), m.lane,
                          false};
    Start(in_n_out_.Write(back.Ask(replica), handle.ref, write, std::move(batch)));
  }
  if (back.counted() < needed) {
    co_await WaitAndWiden(operation, back, needed, [](int /*replica*/) {});
  }
  co_return End(operation, back, needed);
}

// Appendix A, WRITE.
Task<RegisterStep> MaxRegister::Write(RegisterOperation& operation, RegisterHandle& handle,
                                      MetaWord word, WrittenValue value, bool read_lanes,
                                      const QuorumCall* before, QuorumCall* call) {
  const int needed = majority();
  const uint8_t lane = InNOut::LaneOf(value.worker, handle.ref.shape);
  for (int replica = 0; replica < call->replicas(); ++replica) {
    RoundTripPtr batch = in_n_out_.WriteBuffer(handle.ref, call->node(replica), word, value);
    if (!batch) {
      call->Exclude(replica);
      continue;
    }
    const bool known = before != nullptr && before->counts(replica);
    const MetaWord expected = known ? before->reply(replica).own_lane : handle.lane_word;
    Start(in_n_out_.Write(call->Ask(replica), handle.ref, {word, expected, lane, read_lanes},
                          std::move(batch)));
  }
  handle.lane_word = std::max(handle.lane_word, word);
  if (call->counted() < needed) {
    co_await WaitAndWiden(operation, *call, needed, [](int /*replica*/) {});
  }
  co_return End(operation, *call, needed);
}

Task<RegisterStep> MaxRegister::Announce(RegisterOperation& operation, RegisterHandle& handle,
                                         QuorumCall& call, Tuple* m) {
  if (Holders(call, m->word) >= majority()) co_return RegisterStep();
  const bool fetched = co_await FetchValue(operation, handle, call, m);
  if (fetched) co_return co_await WriteBack(operation, handle, call, *m);
  ++restarts_;
  *m = Tuple();
  co_return co_await Read(operation, handle, m);
}

void MaxRegister::Verify(RegisterOperation& operation, const RegisterHandle& handle,
                         const Tuple& m) {
  Start(in_n_out_.Verify(handle.ref, m.lane, m.word, m.value, operation.shared_pin));
}

}  // namespace onetrip
