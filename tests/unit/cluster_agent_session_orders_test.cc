// AgentSession under every order of events, up to a length: the master quiesces, commits, asks for
// repairs and asks for all of it again as on a new stream, while two workers, of which one leaves
// and another joins, take their time over each thing.
//
// The process around the session is modelled as GrpcMasterClient has it: a worker takes its orders
// in turn; an order to quiesce is carried out when the worker is still, or counts as carried out
// when a later one has taken its place; what workers answer comes back later, in order.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/cluster/agent_session.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr int kLength = kSlowdown == 1 ? 6 : 5;

struct ModelWorker {
  struct Order {
    std::variant<QuiesceOrder, ViewOrder, RepairOrder> body;
    uint64_t number = 0;  // ticket, or repair
  };
  std::deque<Order> orders;
  uint64_t epoch = 0;  // the epoch of its view
  bool quiesces = false;
  bool still = false;
  std::optional<uint64_t> waits;  // ticket of the order to quiesce that it carries out
  std::deque<Order> repairs;      // that it is at
};

bool NeedsQuiesce(const ModelWorker::Order& repair) {
  return IsUnderHold(std::get<RepairOrder>(repair.body).kind);
}

// The agent's process and the master, small enough to be copied for every branch.
class AgentModel {
 public:
  AgentModel() {
    Join(1);
    Join(2);
  }

  using Action = bool (AgentModel::*)();  // false: there is nothing to do
  static const std::vector<std::pair<const char*, Action>>& Actions() {
    static const std::vector<std::pair<const char*, Action>> actions = {
        {"hold", &AgentModel::Hold},
        {"commit", &AgentModel::Commit},
        {"new stream", &AgentModel::NewStream},
        {"repair", &AgentModel::AskForRepair},
        {"scrub", &AgentModel::AskForScrub},
        {"1 takes an order", &AgentModel::FirstTakesOrder},
        {"2 takes an order", &AgentModel::SecondTakesOrder},
        {"1 is still", &AgentModel::FirstIsStill},
        {"2 is still", &AgentModel::SecondIsStill},
        {"a repair ends", &AgentModel::EndRepair},
        {"an answer comes", &AgentModel::TakeAnswer},
        {"2 leaves", &AgentModel::SecondLeaves},
        {"3 joins", &AgentModel::ThirdJoins}};
    return actions;
  }

  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  // All that can still happen without the master happens. Then everything must be as it last said.
  void ComeToRest() {
    bool more = true;
    while (more) {
      more = TakeAnswer();
      for (const auto& [id, worker] : workers_) more |= TakeOrder(id) || IsStill(id);
      more |= EndRepair();
    }
    for (const auto& [id, worker] : workers_) {
      if (worker.epoch != committed_ && told_view_) Wrong("a worker has an old view at rest");
      if (worker.quiesces != holding_) Wrong("a worker does not go on, or does, at rest");
    }
    if (told_view_ && in_force_ != committed_) Wrong("the view is not told to be in force");
    if (holding_ && held_ != committed_ + 1) Wrong("the quiesce is not acknowledged");
    if (repair_ != 0 && answered_ != repair_) Wrong("the repair is not answered");
  }

 private:
  struct Answer {
    bool is_repair = false;
    uint64_t number = 0;
  };

  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // ---- The master ----

  bool Hold() {
    if (holding_) return false;
    holding_ = true;
    SendHold();
    return true;
  }
  void SendHold() {
    Event([this] { session_.OnHold({Epoch{committed_ + 1}, HoldKind::kAll, {}}); });
  }
  bool Commit() {
    if (committed_ == 3) return false;
    ++committed_;
    holding_ = false;
    SendView();
    return true;
  }
  void SendView() {
    told_view_ = true;
    auto view = std::make_shared<View>();
    view->epoch = Epoch{committed_};
    Event([this, &view] { session_.OnView(view); });
  }
  // All that it has said before may have been lost: it says it again.
  bool NewStream() {
    if (streams_ == 2) return false;
    ++streams_;
    Event([this] { session_.OnWelcome(0); });
    SendView();
    if (holding_) SendHold();
    if (repair_ != 0 && answered_ != repair_) SendRepair();
    return true;
  }
  bool AskForRepair() {
    // Not before all have quiesced.
    return holding_ && held_ == committed_ + 1 && Ask(RepairKind::kResolveSlots);
  }
  bool AskForScrub() { return Ask(RepairKind::kScrubRegisters); }
  bool Ask(RepairKind kind) {
    // One at a time is all that it wants; it may give one up that still runs here.
    if (repair_ == 2) return false;
    ++repair_;
    repair_kind_ = kind;
    SendRepair();
    return true;
  }
  void SendRepair() {
    Event([this] { session_.OnRepair({repair_, {repair_kind_, std::make_shared<const View>()}}); });
  }

  // ---- Workers ----

  void Join(uint32_t id) {
    workers_[id].epoch = session_.view()->epoch.value;
    Event([this, id] { session_.OnJoined(WorkerId{id}); });
  }
  bool ThirdJoins() {
    if (workers_.contains(3)) return false;
    Join(3);
    return true;
  }
  // It has nothing under way; what it has not taken yet never comes.
  bool SecondLeaves() {
    const auto found = workers_.find(2);
    if (found == workers_.end() || !found->second.repairs.empty()) return false;
    const ModelWorker worker = std::move(found->second);
    workers_.erase(found);
    if (worker.waits.has_value()) Carried(2, *worker.waits);
    for (const ModelWorker::Order& order : worker.orders) {
      if (std::holds_alternative<RepairOrder>(order.body)) {
        answers_.push_back({true, order.number});
      } else {
        Carried(2, order.number);
      }
    }
    Event([this] { session_.OnLeft(WorkerId{2}, 0); });
    return true;
  }

  bool FirstTakesOrder() { return TakeOrder(1); }
  bool SecondTakesOrder() { return TakeOrder(2); }
  bool TakeOrder(uint32_t id) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.orders.empty()) return false;
    ModelWorker& worker = found->second;
    const ModelWorker::Order order = std::move(worker.orders.front());
    worker.orders.pop_front();
    if (std::holds_alternative<QuiesceOrder>(order.body)) {
      const std::optional<uint64_t> before = std::exchange(worker.waits, order.number);
      if (before.has_value()) Carried(id, *before);
      worker.quiesces = true;
      worker.still = false;
    } else if (const auto* view = std::get_if<ViewOrder>(&order.body)) {
      worker.epoch = view->view->epoch.value;
      if (view->ends_quiesce) GoOn(id, worker);
      Carried(id, order.number);
    } else {
      worker.repairs.push_back(order);
    }
    return true;
  }
  void GoOn(uint32_t id, ModelWorker& worker) {
    for (const auto& [other, one] : workers_) {
      for (const ModelWorker::Order& repair : one.repairs) {
        if (NeedsQuiesce(repair)) Wrong("a worker goes on beside a repair");
      }
    }
    if (worker.waits.has_value()) Carried(id, *std::exchange(worker.waits, {}));
    worker.quiesces = worker.still = false;
  }
  bool FirstIsStill() { return IsStill(1); }
  bool SecondIsStill() { return IsStill(2); }
  bool IsStill(uint32_t id) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || !found->second.waits.has_value()) return false;
    found->second.still = true;
    Carried(id, *std::exchange(found->second.waits, {}));
    return true;
  }
  bool EndRepair() {
    for (auto& [id, worker] : workers_) {
      if (worker.repairs.empty()) continue;
      answers_.push_back({true, worker.repairs.front().number});
      worker.repairs.pop_front();
      return true;
    }
    return false;
  }
  void Carried(uint32_t id, uint64_t ticket) {
    std::set<uint32_t>& open = open_[ticket];
    open.erase(id);
    if (open.empty()) answers_.push_back({false, ticket});
  }

  // ---- The session ----

  bool TakeAnswer() {
    if (answers_.empty()) return false;
    const Answer answer = answers_.front();
    answers_.pop_front();
    Event([this, &answer] {
      if (answer.is_repair) {
        session_.OnRepairEnded(answer.number, Status::Ok());
      } else {
        session_.OnCarriedOut(answer.number);
      }
    });
    return true;
  }

  template <typename Fn>
  void Event(Fn fn) {
    fn();
    for (const AgentEffect& effect : session_.TakeEffects()) {
      if (const auto* tell = std::get_if<agent_effect::TellWorkers>(&effect)) {
        Tell(*tell);
      } else if (const auto* start = std::get_if<agent_effect::StartQuiesced>(&effect)) {
        workers_.at(start->worker.value).quiesces = workers_.at(start->worker.value).still = true;
      } else if (const auto* repair = std::get_if<agent_effect::StartRepair>(&effect)) {
        workers_.at(repair->worker.value).orders.push_back({repair->order, repair->id});
      } else if (const auto* message = std::get_if<AgentMessage>(&effect)) {
        Hear(*message);
      } else if (std::holds_alternative<agent_effect::Complain>(effect)) {
        Wrong("it complains");
      }
    }
  }
  void Tell(const agent_effect::TellWorkers& tell) {
    for (const WorkerId worker : tell.workers) {
      open_[tell.ticket].insert(worker.value);
      if (const auto* quiesce = std::get_if<QuiesceOrder>(&tell.order)) {
        workers_.at(worker.value).orders.push_back({*quiesce, tell.ticket});
      } else {
        workers_.at(worker.value).orders.push_back({std::get<ViewOrder>(tell.order), tell.ticket});
      }
    }
  }
  void Hear(const AgentMessage& message) {
    if (const auto* held = std::get_if<ViewHeldMessage>(&message)) {
      held_ = held->epoch.value;
      if (!holding_ || held_ != committed_ + 1) return;  // the master does not listen any more
      for (const auto& [id, worker] : workers_) {
        if (!worker.quiesces || !worker.still) Wrong("a quiesce is acknowledged too early");
      }
    } else if (const auto* in_force = std::get_if<ViewInForceMessage>(&message)) {
      in_force_ = in_force->epoch.value;
      for (const auto& [id, worker] : workers_) {
        if (worker.epoch < in_force_) Wrong("a view is said to be in force too early");
      }
    } else if (const auto* repaired = std::get_if<RepairedMessage>(&message)) {
      if (repaired->id != repair_) Wrong("an old repair is answered");
      answered_ = repaired->id;
    }
  }

  AgentSession session_;
  std::map<uint32_t, ModelWorker> workers_;
  std::map<uint64_t, std::set<uint32_t>> open_;  // workers that owe a ticket's order
  std::deque<Answer> answers_;                   // on their way to the session
  std::string wrong_;
  // The master.
  uint64_t committed_ = 1;
  bool told_view_ = false;
  bool holding_ = false;
  uint64_t repair_ = 0;  // asked for last
  RepairKind repair_kind_ = RepairKind::kResolveSlots;
  int streams_ = 1;
  // Heard last.
  uint64_t held_ = 0;
  uint64_t in_force_ = 0;
  uint64_t answered_ = 0;
};

class SessionExplorer {
 public:
  // Everything that can follow `process` within `length` events.
  void Explore(const AgentModel& process, int length) {
    ++states_;
    AgentModel rest = process;
    rest.ComeToRest();
    Check(rest);
    if (length == 0) return;
    for (const auto& [name, action] : AgentModel::Actions()) {
      AgentModel next = process;
      if (!(next.*action)()) continue;
      path_.emplace_back(name);
      Check(next);
      if (!failed_) Explore(next, length - 1);
      path_.pop_back();
      if (failed_) return;
    }
  }
  [[nodiscard]] uint64_t states() const { return states_; }

 private:
  void Check(const AgentModel& process) {
    if (process.wrong().empty() || failed_) return;
    failed_ = true;
    std::string events;
    for (const std::string& event : path_) events += event + "; ";
    ADD_FAILURE() << process.wrong() << " after: " << events;
  }

  uint64_t states_ = 0;
  bool failed_ = false;
  std::vector<std::string> path_;
};

// Every order of kLength events behind `first`.
void ExploreFrom(const std::vector<std::string>& first) {
  AgentModel process;
  for (const std::string& event : first) {
    for (const auto& [name, action] : AgentModel::Actions()) {
      if (name == event) {
        ASSERT_TRUE((process.*action)()) << event;
      }
    }
  }
  SessionExplorer explorer;
  explorer.Explore(process, kLength);
  EXPECT_GT(explorer.states(), 1000U);
}

const std::vector<std::string> kQuiesced = {"hold",       "1 takes an order", "2 takes an order",
                                            "1 is still", "2 is still",       "an answer comes"};

TEST(AgentSessionOrdersTest, FromTheStart) { ExploreFrom({}); }

TEST(AgentSessionOrdersTest, FromAQuiesce) { ExploreFrom(kQuiesced); }

TEST(AgentSessionOrdersTest, FromARepairForWhichAllQuiesce) {
  std::vector<std::string> first = kQuiesced;
  first.insert(first.end(), {"repair", "1 takes an order"});
  ExploreFrom(first);
}

TEST(AgentSessionOrdersTest, FromAViewThatWaitsForARepair) {
  std::vector<std::string> first = kQuiesced;
  first.insert(first.end(), {"repair", "1 takes an order", "commit"});
  ExploreFrom(first);
}

}  // namespace
}  // namespace onetrip
