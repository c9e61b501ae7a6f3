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

int MaxRegister::Order(GlobalAddr addr, const QuorumCall& call,
                       std::array<uint8_t, kMaxReplicas>* order) {
  const int count = call.replicas();
  const int first = InNOut::InPlaceReplica(addr, count);
  for (int i = 0; i < count; ++i) (*order)[i] = static_cast<uint8_t>((first + i) % count);
  if (context_.fabric.completes_inline()) return count;
  const uint64_t now_ns = context_.executor.NowNs();
  const auto* avoided =
      std::stable_partition(order->begin(), order->begin() + count, [&](uint8_t replica) {
        const size_t node = call.node(replica).value;
        return node >= avoid_until_ns_.size() || avoid_until_ns_[node] <= now_ns;
      });
  return static_cast<int>(avoided - order->begin());
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
  if (call.seen(replica).state == ReplicaSeen::State::kFailed) co_return;
  avoid_until_ns_[nodes.node[replica].value] = 0;
}

Tuple MaxRegister::Largest(const QuorumCall& call) {
  const WordInLane largest = LargestOf(call.seen());
  Tuple m;
  m.word = largest.word;
  m.lane = largest.lane;
  return m;
}

RegisterStep MaxRegister::End(RegisterOperation& operation, const QuorumCall& call, int needed) {
  uint32_t round_trips = call.is_beside() ? 0 : 1;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (call.counts(replica)) round_trips = std::max(round_trips, call.reply(replica).round_trips);
  }
  operation.round_trips += round_trips;
  const StepVerdict verdict = JudgeStep(call.seen(), needed);
  switch (verdict.end) {
    case StepVerdict::End::kDone:
      break;
    case StepVerdict::End::kForeign:
      return {Status(StatusCode::kNotFound, "this memory is another register's by now"), 0};
    case StepVerdict::End::kSealed:
      return {Status::Ok(), verdict.seal};
    case StepVerdict::End::kTooFew:
      return {Status(StatusCode::kUnavailable, "too few replicas of a register answered"), 0};
  }
  return {};
}

void MaxRegister::NoteLanes(RegisterHandle& handle, const std::byte* image) {
  const uint8_t own = InNOut::LaneOf(context_.membership.id, handle.ref.shape);
  uint8_t lane = 0;
  handle.lane_word = std::max(handle.lane_word, InNOut::LaneIn(handle.ref, image, own));
  handle.times.seen =
      std::max(handle.times.seen, InNOut::LargestIn(handle.ref, image, &lane).time());
}

// Appendix A, READ up to the write-back: inner reads of a majority.
Task<RegisterStep> MaxRegister::ReadLanes(RegisterOperation& operation, RegisterHandle& handle,
                                          QuorumCall* call, Tuple* m) {
  const int needed = majority(handle.ref);
  const int all = context_.view().replicas;
  std::array<uint8_t, kMaxReplicas> order{};
  const int prompt = Order(handle.ref.addr, *call, &order);
  const bool asks_all = prompt == all && (handle.contended > 0 || options_.ask_all);
  const MetaWord beside = m->has_value ? MetaWord() : BufferBeside(handle);
  const auto ask = [this, call, asks_all, beside, first = order[0], ref = handle.ref](int replica) {
    QuorumCall::Share share = call->Ask(replica);
    RoundTripPtr batch;
    if (replica == first && !beside.is_empty()) {
      batch = in_n_out_.ReadBufferBeside(share, ref, beside);
    }
    Start(in_n_out_.Read(std::move(share), ref, /*looks_twice=*/asks_all, std::move(batch)));
  };
  const int at_first = call->any_asked() ? 0 : std::min(needed, call->replicas());
  for (int i = 0; i < (asks_all ? all : at_first); ++i) {
    if (!call->asked(order[i])) ask(order[i]);
  }
  if (call->counted() < needed) {
    co_await WaitAndWiden(operation, *call, needed, ask);
    if (call->all_asked() && !asks_all) Avoid(operation, handle, *call);
  }
  const RegisterStep step = End(operation, *call, needed);
  if (!step.done()) co_return step;
  Tuple largest = Largest(*call);
  if (asks_all && (AllHoldFirsthand(call->seen(), largest.word) || !call->counts(order[0]))) {
    co_await call->Wait(all, WidenDeadlineNs());
    if (call->counted() < all && call->sealed() == 0) Avoid(operation, handle, *call);
    largest = Largest(*call);
    const int enough = Planted(Bug::kMajorityIsEverywhere) ? needed : all;
    largest.everywhere = IsEverywhere(call->seen(), largest.word, enough);
  }
  if (m->word.AsGuess() == largest.word.AsGuess()) {
    m->word = std::max(m->word, largest.word);
    m->lane = largest.lane;
    m->everywhere = largest.everywhere;
  } else {
    *m = largest;
  }
  for (int replica = 0; replica < call->replicas(); ++replica) {
    if (!call->counts(replica)) continue;
    const std::byte* const image = call->reply(replica).image;
    if (image != nullptr) NoteLanes(handle, image);
  }
  NotePastFirst(handle, *call);
  co_return step;
}

void MaxRegister::NotePastFirst(RegisterHandle& handle, const QuorumCall& call) {
  const int in_place = InNOut::InPlaceReplica(handle.ref.addr, call.replicas());
  const MetaWord largest = call.seen(in_place).largest;
  if (!call.counts(in_place) || largest.is_empty() || largest.is_in_register()) return;
  const std::byte* const image = call.reply(in_place).image;
  if (image != nullptr && !InNOut::IsOf(handle.ref, image)) return;
  handle.past_first = call.nodes().epoch;
}

void MaxRegister::BeginRead(SlotWord word, const RegisterShape& expected, QuorumCall* call) {
  std::array<uint8_t, kMaxReplicas> order{};
  (void)Order(word.addr(), *call, &order);
  const int count = std::min(MajorityAt(word.addr()), call->replicas());
  for (int i = 0; i < count; ++i) {
    Start(in_n_out_.ReadNamed(call->Ask(order[i]), word, expected));
  }
}

// Appendix A, READ: what is returned is at a majority before it is returned.
Task<RegisterStep> MaxRegister::Read(RegisterOperation& operation, RegisterHandle& handle, Tuple* m,
                                     QuorumCall* begun) {
  for (uint32_t restart = 0; restart <= options_.restarts_max; ++restart) {
    QuorumCall own = NewCall(operation, handle.ref);
    const bool is_begun = begun != nullptr;
    QuorumCall& call = is_begun ? *std::exchange(begun, nullptr) : own;
    const RegisterStep read = co_await ReadLanes(operation, handle, &call, m);
    const bool failed = !read.done() && read.seal == 0;
    if (is_begun && (failed || !IsOf(handle.ref, call))) {
      *m = Tuple();
      continue;
    }
    if (!read.done() || m->word.is_empty()) co_return read;
    TakeInPlace(handle, call, m);
    TakeBeside(handle, call, m);
    // PROTOCOLS, "Registers": bytes that are on no reachable replica belong to a word that was not
    // at a majority.
    if (!m->has_value) {
      // Not in the condition: gcc 12 builds a broken frame for some such awaits.
      const bool fetched = co_await FetchValue(operation, handle, call, m);
      if (!fetched) {
        ++restarts_;
        *m = Tuple();
        continue;
      }
    }
    if (HoldersOf(call.seen(), m->word) >= majority(handle.ref) || Planted(Bug::kNoWriteBack)) {
      co_return RegisterStep();
    }
    co_return co_await WriteBack(operation, handle, call, *m);
  }
  co_return RegisterStep{
      Status(StatusCode::kUnavailable, "no replica that answers has the value of a register"), 0};
}

bool MaxRegister::IsOf(const RegisterRef& ref, const QuorumCall& call) {
  if (Planted(Bug::kReadBesideOfAny)) return true;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    const std::byte* image = call.reply(replica).image;
    if (image != nullptr && !InNOut::IsOf(ref, image)) return false;
  }
  return true;
}

void MaxRegister::TakeInPlace(const RegisterHandle& handle, const QuorumCall& call, Tuple* m) {
  const int in_place = InNOut::InPlaceReplica(handle.ref.addr, call.replicas());
  if (m->has_value || !options_.in_place || !call.counts(in_place) ||
      call.reply(in_place).image == nullptr ||
      !InNOut::ReadInPlace(handle.ref, call.reply(in_place).image, m->word, &m->value)) {
    return;
  }
  m->has_value = true;
  m->in_place = true;
  m->holder = call.reply(in_place).round_trip;
}

void MaxRegister::TakeBeside(const RegisterHandle& handle, const QuorumCall& call, Tuple* m) {
  for (int replica = 0; replica < call.replicas() && !m->has_value; ++replica) {
    const ReplicaReply& reply = call.reply(replica);
    if (!call.counts(replica) || reply.buffer == nullptr) continue;
    const bool is_its = reply.buffer_of.AsGuess() == m->word.AsGuess();
    if (!is_its && !Planted(Bug::kBesideOfAnyWrite)) continue;
    m->has_value = InNOut::TakeBuffer(handle.ref, reply.buffer, reply.buffer_of, &m->value);
    m->holder = reply.round_trip;
  }
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
        call.counts(replica) && call.seen(replica).largest.AsGuess() == m->word.AsGuess();
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
    m->has_value = InNOut::TakeBuffer(handle.ref, reply.image, m->word, &m->value);
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
  const int needed = majority(handle.ref) - HoldersOf(call.seen(), m.word);
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (call.seen(replica).Holds(m.word)) {
      back.Exclude(replica);
      continue;
    }
    RoundTripPtr batch =
        Planted(Bug::kWriteBackWithoutBytes)
            ? context_.fabric.NewRoundTrip()
            : in_n_out_.WriteBuffer(handle.ref, call.node(replica), m.word, m.value);
    // Only its writer puts a guess there first-hand.
    const MetaWord word = m.word.verified() ? m.word : m.word.AsGuess();
    if (!batch) {
      back.Exclude(replica);
      continue;
    }
    const MetaWord own_lane = call.seen(replica).own_lane;
    const bool own =
        !own_lane.is_empty() && m.lane == InNOut::LaneOf(context_.membership.id, handle.ref.shape);
    const LaneWrite write{
        .word = word,
        .expected = own ? own_lane : InNOut::LaneIn(handle.ref, call.reply(replica), m.lane),
        .lane = m.lane};
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
                                      const QuorumCall* before, QuorumCall* call,
                                      const RoundTripPtr& begun) {
  const int needed = majority(handle.ref);
  const uint8_t lane = InNOut::LaneOf(value.worker, handle.ref.shape);
  const int in_place = options_.in_place ? InNOut::InPlaceReplica(handle.ref.addr, call->replicas())
                                         : call->replicas();
  const bool copies = MayCopyInPlace(handle) && call->nodes().epoch == context_.view().epoch;
  for (int replica = 0; replica < call->replicas(); ++replica) {
    RoundTripPtr batch = in_n_out_.WriteBuffer(handle.ref, call->node(replica), word, value);
    if (!batch) {
      call->Exclude(replica);
      continue;
    }
    RoundTripPtr behind;
    RemoteAddr at;
    if (replica == in_place && in_n_out_.Find(call->node(replica), handle.ref.addr, &at)) {
      if (!copies) behind = context_.fabric.NewRoundTrip();
      InNOut::AddInPlace(copies ? *batch : *behind, handle.ref, at, word, value);
      if (behind && behind->empty()) behind = {};
    }
    const bool known = before != nullptr && before->counts(replica);
    const LaneWrite write{.word = word,
                          .expected = known ? before->seen(replica).own_lane : handle.lane_word,
                          .lane = lane,
                          .read_lanes = read_lanes,
                          .earlier = begun
                                         ? InNOut::LookBack(handle.ref, *begun, call->node(replica))
                                         : EarlierLook()};
    Start(in_n_out_.Write(call->Ask(replica), handle.ref, write, std::move(batch),
                          std::move(behind)));
  }
  WriteBeside(operation, handle.ref, call->nodes(), word, value);
  handle.lane_word = std::max(handle.lane_word, word);
  if (call->counted() < needed) {
    co_await WaitAndWiden(operation, *call, needed, [](int /*replica*/) {});
  }
  NotePastFirst(handle, *call);
  co_return End(operation, *call, needed);
}

bool MaxRegister::HasBeside(const RegisterRef& ref, GlobalAddr buffer) {
  const View& view = context_.view();
  if (view.LiveReplicas(ref.addr) == view.replicas || Planted(Bug::kBytesNotBeside)) return false;
  const ReplicaNodes nodes = ReplicaNodes::Of(view, ref.addr);
  const ReplicaNodes holders = ReplicaNodes::Of(view, buffer);
  return !std::all_of(holders.node.begin(), holders.node.begin() + holders.count,
                      [&](NodeId node) { return nodes.Include(node); });
}

void MaxRegister::WriteBeside(RegisterOperation& operation, const RegisterRef& ref,
                              const ReplicaNodes& nodes, MetaWord word, const WrittenValue& value) {
  const GlobalAddr buffer = word.buffer(ref.addr);
  if (!HasBeside(ref, buffer)) return;
  const ReplicaNodes holders = ReplicaNodes::Of(context_.view(), buffer);
  for (int replica = 0; replica < holders.count; ++replica) {
    const NodeId node = holders.node[replica];
    RoundTripPtr batch;
    if (!nodes.Include(node)) batch = in_n_out_.WriteBuffer(ref, node, word, value);
    if (!batch) continue;
    (void)context_.executor.Spawn(gate_, FinishBeside(node, buffer + kBufferBulkOffset,
                                                      std::move(batch), operation.shared_pin));
  }
}

// A fenced worker has ended for all others, and a scrub repairs what it leaves, as it does for a
// worker that cannot finish before it leaves.
Task<void> MaxRegister::FinishBeside(NodeId node, GlobalAddr to, RoundTripPtr batch,
                                     SharedPin /*pin*/) {
  const FabricOp& bytes = batch->op(0);
  RoundTripPtr post = batch;
  uint64_t gives_up_ns = LeaseGuard::kForever;
  while (true) {
    const Status status = co_await context_.fabric.Post(post);
    if (status.ok() || status.code() == StatusCode::kFenced) co_return;
    const uint64_t now_ns = context_.executor.NowNs();
    if (gate_.closed() && gives_up_ns == LeaseGuard::kForever) {
      gives_up_ns = now_ns + context_.options.op_timeout_ms * 1'000'000;
    }
    RemoteAddr at;
    if (now_ns >= gives_up_ns || !in_n_out_.Find(node, to, &at)) co_return;
    co_await context_.executor.SleepFor(options_.widen_max_ns);
    if (!in_n_out_.Find(node, to, &at)) co_return;
    post = context_.fabric.NewRoundTrip();
    post->Write(at, bytes.local, bytes.bytes);
  }
}

Task<Status> MaxRegister::MakeWhole(RegisterOperation& operation, const RegisterRef& ref,
                                    const Tuple& m) {
  CHECK(m.has_value && !m.word.is_empty());
  const ValuePlace place = PlaceOfValue(ref.addr, ref.shape, m.word);
  const ReplicaNodes nodes = ReplicaNodes::Of(context_.view(), place.addr);
  RoundTripPtr look = context_.fabric.NewRoundTrip();
  std::array<const std::byte*, kMaxReplicas> images{};
  for (int replica = 0; replica < nodes.count; ++replica) {
    images[replica] = look->Read(context_.view().Locate(place.addr, replica), place.bytes);
  }
  Status status = co_await Post(context_, operation, look);
  for (int replica = 0; replica < nodes.count && status.ok(); ++replica) {
    WrittenValue value;
    if (DecodePlaced(ref.birth, m.word, images[replica], place.bytes, &value)) continue;
    const RoundTripPtr mend = in_n_out_.WriteBuffer(ref, nodes.node[replica], m.word, m.value);
    if (mend) status = co_await Post(context_, operation, mend);
  }
  co_return status;
}

Task<RegisterStep> MaxRegister::Announce(RegisterOperation& operation, RegisterHandle& handle,
                                         QuorumCall& call, Tuple* m) {
  if (HoldersOf(call.seen(), m->word) >= majority(handle.ref)) co_return RegisterStep();
  const bool fetched = co_await FetchValue(operation, handle, call, m);
  if (fetched) co_return co_await WriteBack(operation, handle, call, *m);
  ++restarts_;
  *m = Tuple();
  co_return co_await Read(operation, handle, m);
}

void MaxRegister::Verify(RegisterOperation& operation, const RegisterHandle& handle,
                         const Tuple& m) {
  Start(in_n_out_.Verify(handle.ref, m.lane, m.word, operation.shared_pin));
}

void MaxRegister::CopyInPlace(RegisterOperation& operation, const RegisterHandle& handle,
                              const Tuple& m) {
  if (!options_.in_place || !MayCopyInPlace(handle)) return;
  Start(in_n_out_.CopyInPlace(handle.ref, m.word, m.value, context_.view().epoch,
                              operation.shared_pin));
}

}  // namespace onetrip
