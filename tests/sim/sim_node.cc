#include "tests/sim/sim_node.h"

#include <algorithm>
#include <utility>

#include "client_core/cluster/node_session.h"

namespace onetrip {
namespace {

// A fence takes at most this long.
constexpr uint64_t kDutyNsMax = 50'000;
// Until a node that was refused starts again.
constexpr uint64_t kStartAgainNs = 500'000;

}  // namespace

class SimNode::Life final : private ControlLink::Owner {
 public:
  explicit Life(SimNode& node)
      : node_(node),
        session_(Offer(node)),
        link_(node.world_, node.world_, node.master_, node.settings_, MemberKind::kMemoryNode,
              "node " + std::to_string(node.number_), *this) {}

  ControlLink& link() { return link_; }
  void Resume() { DoDuties(); }

 private:
  struct Duty {
    uint64_t time_ns;
    std::function<void()> run;
  };

  // The adopted memory of an earlier life, or fresh memory.
  static NodeOffer Offer(const SimNode& node) {
    NodeOffer offer;
    offer.bytes = node.bytes_;
    offer.incarnation = 100 + node.number_;
    offer.adopted = node.id_.has_value();
    offer.owner_cluster = node.id_.has_value() ? SimMaster::kCluster : 0;
    offer.owner_node = node.id_.value_or(NodeId{0});
    return offer;
  }

  void OnWelcome() override {
    session_.OnWelcome(NodeAge{});
    PerformEffects();
  }

  void OnMessage(const MasterMessage& message) override {
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      session_.OnView(committed->view);
    } else if (const auto* fence = std::get_if<FenceMessage>(&message)) {
      session_.OnFence(*fence);
    }
    PerformEffects();
  }

  void PerformEffects() {
    for (const NodeEffect& effect : session_.TakeEffects()) {
      std::visit([this](const auto& one) { Perform(one); }, effect);
    }
  }

  void Perform(const FencedMessage& message) { link_.Send(message); }

  void Perform(const node_effect::AskForPlace& ask) {
    link_.Ask(ask.request, /*timeout_ms=*/0, [this](Status status, const ReplyMessage* reply) {
      if (reply != nullptr) {
        const auto& joined = std::get<NodeJoined>(reply->body);
        session_.OnPlace({joined.view->cluster, joined.node, *joined.view, joined.expelled});
      } else {
        session_.OnNoPlace(status, "refused", link_.attending());
      }
      PerformEffects();
    });
  }

  void Perform(const node_effect::TakePlace& take) {
    const NodePlace& place = take.place;
    if (!std::exchange(node_.id_, place.node).has_value()) {
      node_.events_.placed(place.node, place.view);
    } else {
      TakeView(place.view);
    }
    AddDuty([this, expelled = place.expelled] {
      for (const WorkerId worker : expelled) node_.events_.refuse(*node_.id_, worker);
      node_.events_.reachable(*node_.id_, true);
      session_.OnServes({.tcp_host = "10.0.0." + std::to_string(node_.number_),
                         .tcp_port = node_.port_,
                         .shm_path = {},
                         .host_id = {}});
      PerformEffects();
    });
  }

  void Perform(const node_effect::TakePlaceAgain& take) {
    TakeView(*take.view);
    AddDuty([this, expelled = take.expelled] {
      for (const WorkerId worker : expelled) node_.events_.refuse(*node_.id_, worker);
      session_.OnTakenUp();
      PerformEffects();
    });
  }

  void Perform(const node_effect::AskToServe& ask) {
    link_.Ask(ServeNodeRequest{ask.address}, node_.settings_.request_ms,
              [this](Status status, const ReplyMessage* /*reply*/) {
                session_.OnServeAnswer(status, "refused", link_.attending());
                PerformEffects();
              });
  }

  void Perform(const node_effect::Serve& /*serve*/) { node_.serving_ = true; }

  void Perform(const node_effect::Fence& fence) {
    AddDuty([this, order = fence.fence] {
      const bool done = node_.world_.rng().Below(100) >= node_.settings_.fence_fails_percent;
      for (const WorkerId worker : order.workers) {
        if (done) node_.events_.refuse(*node_.id_, worker);
      }
      const Status status =
          done ? Status::Ok() : Status(StatusCode::kUnavailable, "fencing takes longer");
      session_.OnFenced(order.id, status, done ? "" : "not yet");
      PerformEffects();
    });
  }

  void Perform(const node_effect::UseView& use) { TakeView(*use.view); }
  void Perform(const node_effect::OpenAnother& /*open*/) { link_.OpenAnother(); }
  void Perform(const node_effect::GiveUp& end) { OnExpelled(end.reason); }
  void Perform(const node_effect::Complain& /*complain*/) {}

  void TakeView(const View& view) {
    if (view.IsOut(*node_.id_)) node_.events_.close(*node_.id_);
    node_.events_.viewed(*node_.id_, view);
  }

  // A process that is refused before it has a place ends; its supervisor starts it again.
  void OnExpelled(const std::string& /*reason*/) override {
    node_.world_.At(node_.world_.NowNs() + kStartAgainNs, StartAgain, &node_);
    node_.Crash();
  }
  static void StartAgain(void* arg) {
    SimNode& node = *static_cast<SimNode*>(arg);
    if (!node.up()) node.Start();
  }

  [[nodiscard]] uint64_t KnownEpoch() const override { return session_.epoch(); }
  void Report(MemberReport* report) override {
    if (session_.in_place()) report->node = node_.events_.usage(*node_.id_);
  }

  void AddDuty(std::function<void()> run) {
    uint64_t time_ns = node_.world_.NowNs() + node_.world_.rng().Below(kDutyNsMax);
    if (!duties_.empty()) time_ns = std::max(time_ns, duties_.back().time_ns);
    duties_.push_back({time_ns, std::move(run)});
    node_.world_.At(time_ns, OnDuty, this);
  }
  static void OnDuty(void* life) { static_cast<Life*>(life)->DoDuties(); }
  void DoDuties() {
    while (node_.life_ == this && !node_.paused_ && !duties_.empty() &&
           duties_.front().time_ns <= node_.world_.NowNs()) {
      const std::function<void()> run = std::move(duties_.front().run);
      duties_.pop_front();
      run();
    }
  }

  SimNode& node_;
  std::deque<Duty> duties_;
  NodeSession session_;
  ControlLink link_;
};

SimNode::SimNode(SimExecutor& world, SimMaster& master, const ControlSettings& settings,
                 uint32_t number, uint64_t bytes, Events events)
    : world_(world),
      master_(master),
      settings_(settings),
      number_(number),
      bytes_(bytes),
      events_(std::move(events)) {}

SimNode::~SimNode() = default;

void SimNode::Start() {
  CHECK(!up());
  if (lost_) return;
  ++port_;
  lives_.push_back(std::make_unique<Life>(*this));
  life_ = lives_.back().get();
  life_->link().SetPaused(paused_);
  life_->link().Open();
}

void SimNode::Crash() {
  if (!up()) return;
  serving_ = false;
  std::exchange(life_, nullptr)->link().Die();
  if (id_.has_value()) events_.reachable(*id_, false);
}

void SimNode::Lose() {
  lost_ = true;
  Crash();
}

void SimNode::BreakControl() {
  if (up()) life_->link().Break();
}

void SimNode::SetPaused(bool paused) {
  paused_ = paused;
  if (!up()) return;
  life_->link().SetPaused(paused);
  if (!paused && up()) life_->Resume();
}

}  // namespace onetrip
