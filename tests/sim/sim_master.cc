#include "tests/sim/sim_master.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "tests/sim/control_text.h"
#include "tests/support/durable_change.h"

namespace onetrip {
namespace {

constexpr StreamId kToolStream = UINT64_MAX;

}  // namespace

SimMaster::SimMaster(SimExecutor& world, const ControlSettings& settings, const ClusterShape& shape,
                     Trace& trace)
    : world_(world), settings_(settings), trace_(trace) {
  options_.replicas = shape.replicas;
  options_.nodes = shape.nodes;
  options_.lease_ms = settings.lease_ms;
  options_.grace_ms = settings.grace_ms;
  options_.hold_timeout_ms = settings.hold_timeout_ms;
  options_.copy_hold_timeout_ms = settings.copy_hold_timeout_ms;
  options_.flush_wait_ms = settings.flush_wait_ms;
  options_.ack_timeout_ms = settings.ack_timeout_ms;
  options_.fence_retry_ms = settings.fence_retry_ms;
  options_.time_lead_ms = settings.time_lead_ms;
  options_.replace_after_ms = settings.replace_after_ms;
  options_.reach_settle_ms = settings.reach_settle_ms;
  options_.reach_flap_ms = 4 * settings.reach_settle_ms;
  options_.reach_back_ms = settings.reach_back_ms;
  options_.repair_retry_ms = settings.fence_retry_ms;
  options_.repair_timeout_ms = 1000;
  options_.node_wait_ms = settings.lease_ms;
  options_.copy_pause_ms = 1;
  options_.leave_again_ms = settings.lease_ms;
  Restart();
}

SimMaster::~SimMaster() = default;

ControlConnection& SimMaster::Dial(const std::string& name, ControlConnection::MemberEnd& end) {
  const StreamId id = connections_.size() + 1;
  connections_.push_back(std::make_unique<ControlConnection>(
      world_, settings_, id, name, static_cast<ControlConnection::MasterEnd&>(*this), end));
  return *connections_.back();
}

void SimMaster::Fail(std::string text) {
  if (failure_.empty()) failure_ = "the master: " + std::move(text);
}

// ---- Its life ----

void SimMaster::Crash() {
  if (!up()) return;
  trace_.Note("the master dies");
  // A write under way may have reached the disk: it was all of it or nothing.
  if (writing_.has_value() && !writing_->before.has_value() && world_.rng().Below(2) == 0) {
    Save(writing_->effects.change);
  }
  coordinator_.reset();
  writing_.reset();
  inbox_.clear();
  retries_.clear();
  batch_ = 0;
  tick_due_ = false;
  paused_ = false;
  for (const auto& connection : connections_) connection->KillMaster();
}

void SimMaster::Impersonate(Impostor impostor) {
  if (!up()) return;
  Crash();
  if (impostor == Impostor::kStranger) {
    trace_.Note("a stranger answers in the master's place");
    stranger_answers_ = true;
    return;
  }
  const bool is_empty = impostor == Impostor::kEmptyDirectory;
  trace_.Note(is_empty ? "a master starts on an empty data directory" : "... on an old copy");
  DurableState own = std::exchange(disk_, is_empty ? DurableState() : old_copy_);
  // One impostor may follow the other: the disk is that of the master before the first.
  if (!set_aside_.has_value()) set_aside_ = std::move(own);
  Begin(is_empty ? kCluster + 1 : kCluster);
  // The operator starts it again and again, until its own epochs have passed what members know.
  while (!is_empty && up() && coordinator_->view().epoch <= newest_view_->epoch) {
    Crash();
    Begin(kCluster);
  }
}

void SimMaster::Restart() {
  if (set_aside_.has_value()) Crash();
  if (set_aside_.has_value()) disk_ = std::move(*std::exchange(set_aside_, {}));
  stranger_answers_ = false;
  if (!up()) Begin(kCluster);
}

void SimMaster::Save(const DurableChange& change) {
  const bool is_forming = disk_.cluster.epoch == 0;
  ApplyChange(change, &disk_);
  // Every member has heard of more by the time that the operator starts a master on it.
  if (is_forming && !set_aside_.has_value()) old_copy_ = disk_;
}

void SimMaster::Begin(uint64_t cluster) {
  std::string reason;
  // The process that starts it again may have a wall clock that is wrong.
  uint64_t unix_us = world_.clock().UnixUs();
  if (disk_.cluster.cluster != 0) {
    const uint64_t wrong_us = world_.rng().Below(2 * settings_.time_lead_ms * 1000);
    unix_us = wrong_us % 2 == 0 ? unix_us - wrong_us : unix_us + 100 * wrong_us;
  }
  Result<Coordinator> made =
      Coordinator::Create(options_, disk_, cluster, ++lives_, NowUs(), unix_us, &reason);
  if (!made.ok()) return Fail("it cannot start: " + reason);
  coordinator_ = std::move(made.value());
  ++changes_;
  // This life may hear of the time from a member that heard none for long.
  told_us_ -= std::min(told_us_, settings_.time_lead_ms * 1000);
  trace_.Note("the master starts, epoch " + std::to_string(coordinator_->view().epoch.value));
  // Its process is not there for any member before these are durable.
  CoordinatorEffects effects = coordinator_->TakeEffects();
  Save(effects.change);
  effects.change = {};
  Perform(std::move(effects));
  next_tick_ns_ = world_.NowNs() + TickNs();
  world_.At(next_tick_ns_, OnTickTime, this);
}

void SimMaster::AskToMoveRegions(uint32_t node, NodeWish wish) {
  if (!up()) return;
  Enqueue([this, node, wish] {
    DriveUntilItHappens([node, wish](Coordinator& coordinator, uint64_t now_us) {
      coordinator.Attend(now_us, kToolStream, MemberHello());
      coordinator.OnMessage(now_us, kToolStream, RequestMessage{1, MoveRegionsRequest{node, wish}});
      coordinator.OnStreamClosed(now_us, kToolStream);
    });
  });
}

bool SimMaster::SettledMoves(std::vector<NodeId>* drained) const {
  // Views that it knows and that no member has heard of may be lost with it.
  if (!up() || writing_.has_value() || newest_view_->epoch != coordinator_->view().epoch) {
    return false;
  }
  if (std::exchange(unsettled_as_of_, changes_) == changes_) return false;
  const StatusReply reply = coordinator_->Status(NowUs());
  if (!reply.moving.empty() && !reply.moving.ends_with("no room for them")) return false;
  unsettled_as_of_.reset();
  for (const MemberStatusInfo& member : reply.status.members) {
    if (member.state == "drained") drained->push_back(NodeId{static_cast<uint16_t>(member.node)});
  }
  return true;
}

void SimMaster::SetPaused(bool paused) {
  paused_ = paused;
  Work();
}

void SimMaster::OnTickTime(void* arg) {
  SimMaster& master = *static_cast<SimMaster*>(arg);
  // The tick may be one of an earlier life.
  if (!master.up() || master.world_.NowNs() < master.next_tick_ns_) return;
  master.tick_due_ = true;
  master.next_tick_ns_ += master.TickNs();
  master.world_.At(master.next_tick_ns_, OnTickTime, arg);
  master.Work();
}

void SimMaster::Enqueue(std::function<void()> work) {
  inbox_.push_back(std::move(work));
  Work();
}

void SimMaster::Work() {
  while (up() && !paused_ && !writing_.has_value()) {
    if (batch_ > 0) {
      --batch_;
      const std::function<void()> work = std::move(inbox_.front());
      inbox_.pop_front();
      work();
    } else if (std::exchange(tick_due_, false)) {
      // After all that has come: a renewal that is here counts.
      Tick();
    } else if (!inbox_.empty()) {
      batch_ = inbox_.size();
    } else {
      break;
    }
  }
}

void SimMaster::Tick() {
  for (const EventFn& event : std::exchange(retries_, {})) {
    inbox_.emplace_back([this, event] { DriveUntilItHappens(event); });
  }
  Drive([](Coordinator& coordinator, uint64_t now_us) { coordinator.OnTick(now_us); }, nullptr);
}

// ---- What processes say ----

void SimMaster::Heard(ControlConnection& connection, FromMemberMessage message) {
  if (!up()) {
    if (stranger_answers_ && std::holds_alternative<MemberHello>(message)) {
      connection.SendToMember(
          SimVerdict{{.expelled = true, .reason = "a stranger says so"}, false, kCluster, ~0ULL});
    }
    connection.CloseMaster("nobody listens");
    return;
  }
  Enqueue([this, &connection, message = std::move(message)] {
    if (!connection.master_open()) return;
    if (const auto* hello = std::get_if<MemberHello>(&message)) {
      OnHello(connection, *hello);
    } else if (const auto* said = std::get_if<MemberMessage>(&message)) {
      OnMessage(connection, *said);
    } else {
      OnEnd(connection, std::get<ConnectionEnd>(message).has_ended);
    }
  });
}

void SimMaster::OnHello(ControlConnection& connection, const MemberHello& hello) {
  auto attendance = std::make_shared<Attendance>();
  Drive(
      [attendance, hello, id = connection.id()](Coordinator& coordinator, uint64_t now_us) {
        *attendance = coordinator.Attend(now_us, id, hello);
      },
      [this, attendance, &connection](bool happened) {
        if (!happened) *attendance = {.retry = true, .reason = "the master cannot write now"};
        trace_.Note(connection.name() +
                    (attendance->welcome ? " is welcome, member " : " is not ") +
                    std::to_string(attendance->member) + attendance->reason);
        if (attendance->welcome) {
          WatchTime(std::min(coordinator_->TimeUs(NowUs()), attendance->time_us_max));
        }
        connection.SendToMember(SimVerdict{*attendance, true, coordinator_->cluster(),
                                           coordinator_->view().epoch.value, coordinator_->life()});
        if (!attendance->welcome) connection.CloseMaster(attendance->reason);
      });
}

void SimMaster::OnMessage(ControlConnection& connection, const MemberMessage& message) {
  const StreamId id = connection.id();
  const EventFn event = [id, message](Coordinator& coordinator, uint64_t now_us) {
    coordinator.OnMessage(now_us, id, message);
  };
  const bool renews = std::holds_alternative<RenewMessage>(message);
  if (!renews) trace_.Note(connection.name() + " > master: " + DescribeControl(message));
  if (const auto* repaired = std::get_if<RepairedMessage>(&message)) {
    if (repaired->done && repaired->id == take_over_) ++taken_over_;
  }
  const auto* request = std::get_if<RequestMessage>(&message);
  if (request == nullptr && !renews) return DriveUntilItHappens(event);
  Drive(event, [this, &connection, renews, number = request == nullptr ? 0 : request->id](bool ok) {
    if (ok) return;
    if (renews) return Fail("a renewal was to be durable");
    connection.SendToMember(MasterMessage(ReplyMessage{
        number, StatusCode::kUnavailable, "the master cannot write its state now", {}}));
  });
}

void SimMaster::OnEnd(ControlConnection& connection, bool has_ended) {
  trace_.Note("the master hears the end of " + connection.name());
  connection.CloseMaster("");
  DriveUntilItHappens([id = connection.id(), has_ended](Coordinator& coordinator, uint64_t now_us) {
    coordinator.OnStreamClosed(now_us, id, has_ended);
  });
}

// ---- Event, store, messages ----

void SimMaster::DriveUntilItHappens(const EventFn& event) {
  Drive(event, [this, event](bool happened) {
    if (!happened) retries_.push_back(event);
  });
}

void SimMaster::Drive(const EventFn& event, const SettleFn& settle) {
  Writing writing{{}, settle, {}};
  if (store_failing_) writing.before = *coordinator_;
  event(*coordinator_, NowUs());
  ++changes_;
  writing.effects = coordinator_->TakeEffects();
  if (writing.effects.change.empty()) {
    if (settle) settle(true);
    return Perform(std::move(writing.effects));
  }
  if (Planted(Bug::kAcknowledgedBeforeDurable) && !store_failing_) {
    if (settle) settle(true);
    CoordinatorEffects early = std::exchange(writing.effects, {});
    writing.effects.change = std::exchange(early.change, {});
    writing.settle = nullptr;
    Perform(std::move(early));
  }
  writing_ = std::move(writing);
  written_ns_ = world_.NowNs() + world_.rng().Below(settings_.write_ns_max + 1);
  if (settings_.write_ns_max == 0) return OnWritten(this);
  world_.At(written_ns_, OnWritten, this);
}

void SimMaster::OnWritten(void* arg) {
  SimMaster& master = *static_cast<SimMaster*>(arg);
  // The write may be one of an earlier life.
  if (!master.writing_.has_value() || master.world_.NowNs() < master.written_ns_) return;
  Writing writing = std::move(*master.writing_);
  master.writing_.reset();
  const bool happened = !writing.before.has_value();
  if (happened) {
    master.Save(writing.effects.change);
  } else {
    master.coordinator_ = std::move(*writing.before);
    ++master.changes_;
  }
  if (writing.settle) writing.settle(happened);
  if (happened) master.Perform(std::move(writing.effects));
  master.Work();
}

void SimMaster::Perform(CoordinatorEffects effects) {
  for (const CoordinatorEffects::LogLine& line : effects.logs) {
    if (line.level == LogLevel::kError) Fail("an ERROR line: " + line.text);
    if (trace_.keeps_lines()) trace_.Note("the master says: " + line.text);
  }
  for (CoordinatorEffects::Send& send : effects.sends) {
    if (send.stream == kToolStream) {
      if (trace_.keeps_lines()) trace_.Note("the tool hears: " + DescribeControl(send.message));
      continue;
    }
    ControlConnection& connection = *connections_.at(send.stream - 1);
    Watch(connection, send.message);
    connection.SendToMember(std::move(send.message));
  }
  for (const CoordinatorEffects::Close& close : effects.closes) {
    connections_.at(close.stream - 1)->CloseMaster(close.reason);
  }
}

// ---- What it must never say ----

void SimMaster::Watch(const ControlConnection& connection, const MasterMessage& message) {
  if (const auto* renewed = std::get_if<RenewedMessage>(&message)) {
    return WatchTime(renewed->time_us);
  }
  trace_.Note("master > " + connection.name() + ": " + DescribeControl(message));
  if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
    if (committed->view != newest_view_) WatchView(*committed->view);
    if (std::exchange(newest_view_, committed->view) != committed->view && on_view_) on_view_();
  } else if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
    const auto* joined = std::get_if<WorkerJoined>(&reply->body);
    if (joined != nullptr && !workers_given_.insert(joined->worker.value).second) {
      Fail("it gave out worker " + std::to_string(joined->worker.value) + " twice");
    }
  } else if (std::holds_alternative<ExpelledMessage>(message)) {
    ++expelled_;
  } else if (const auto* repair = std::get_if<RepairMessage>(&message)) {
    if (repair->order.kind == RepairKind::kTakeOverBlocks) take_over_ = repair->id;
  }
}

void SimMaster::WatchView(const View& view) {
  const auto [known, fresh] =
      views_.try_emplace(view.epoch.value, std::make_shared<const View>(view));
  const std::string epoch = std::to_string(view.epoch.value);
  if (!fresh) {
    const View& other = *known->second;
    if (other.keyspaces != view.keyspaces || other.live_seats != view.live_seats ||
        other.nodes != view.nodes || other.regions != view.regions ||
        other.records_only != view.records_only || other.leaving != view.leaving ||
        other.directory != view.directory) {
      Fail("there are two views of epoch " + epoch);
    }
    return;
  }
  if (std::next(known) != views_.end()) return Fail("the view of epoch " + epoch + " goes back");
  if (known == views_.begin()) return;
  const View& last = *std::prev(known)->second;
  // Views that no member was sent are between, perhaps; none that says who leaves.
  if (view.regions.size() + last.leaving < last.regions.size()) {
    Fail("the view of epoch " + epoch + " lacks regions");
  }
  shrunk_ += view.regions.size() < last.regions.size() ? 1 : 0;
  // Each is new, or one of the last view's, in whichever database.
  const KeyspaceId newest = *std::max_element(last.keyspaces.begin(), last.keyspaces.end());
  std::set<KeyspaceId> known_keyspaces(last.keyspaces.begin(), last.keyspaces.end());
  bool flushed = false;
  for (const KeyspaceId keyspace : view.keyspaces) {
    if (known_keyspaces.erase(keyspace) != 0) continue;
    flushed = true;
    if (keyspace <= newest) {
      Fail("the view of epoch " + epoch + " names a keyspace that was flushed, or one twice");
    }
  }
  flushes_ += flushed ? 1 : 0;
  swaps_ += !flushed && view.keyspaces != last.keyspaces ? 1 : 0;
}

void SimMaster::WatchTime(uint64_t time_us) {
  // The time of an impostor, which a process that is new may believe, is another cluster's.
  if (set_aside_.has_value() || time_us == 0) return;
  if (time_us < told_us_) Fail("the cluster's time went back");
  told_us_ = std::max(told_us_, time_us);
  // Every life may begin as far ahead as the stored time is; a wall clock moves nothing.
  const uint64_t ahead_us = (lives_ + 1) * settings_.time_lead_ms * 1000;
  if (time_us > world_.clock().UnixUs() + ahead_us) Fail("the cluster's time follows a wall clock");
}

}  // namespace onetrip
