#include "tests/sim/sim_node.h"

#include <algorithm>
#include <utility>

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
  void OnWelcome() override {
    in_place_ = false;
    JoinNodeRequest offer;
    offer.bytes = node_.bytes_;
    offer.incarnation = 100 + node_.number_;
    offer.adopted = node_.id_.has_value();
    offer.owner_cluster = node_.id_.has_value() ? SimMaster::kCluster : 0;
    offer.owner_node = node_.id_.has_value() ? node_.id_->value : 0;
    link_.Ask(offer, /*timeout_ms=*/0,
              [this](Status status, const ReplyMessage* reply) { OnPlace(status, reply); });
  }

  void OnPlace(Status status, const ReplyMessage* reply) {
    // The stream broke: the next one asks again.
    if (status.code() == StatusCode::kUnknownOutcome) return;
    if (!status.ok() && is_placed_) return link_.OpenAnother();
    if (!status.ok()) return OnExpelled("refused");
    is_placed_ = true;
    const auto& joined = std::get<NodeJoined>(reply->body);
    epoch_ = joined.view->epoch.value;
    if (!std::exchange(node_.id_, joined.node).has_value()) {
      node_.events_.placed(joined.node, *joined.view);
    } else {
      UseView(*joined.view);
    }
    in_place_ = true;
    AddDuty([this, expelled = joined.expelled] {
      for (const WorkerId worker : expelled) node_.events_.refuse(*node_.id_, worker);
      if (!std::exchange(open_, true)) node_.events_.reachable(*node_.id_, true);
      Serve();
    });
  }

  void UseView(const View& view) {
    if (view.IsOut(*node_.id_)) node_.events_.close(*node_.id_);
    node_.events_.viewed(*node_.id_, view);
  }

  void Serve() {
    if (!in_place_) return;
    const NodeAddress address{.tcp_host = "10.0.0." + std::to_string(node_.number_),
                              .tcp_port = node_.port_,
                              .shm_path = {},
                              .host_id = {}};
    link_.Ask(ServeNodeRequest{address}, node_.settings_.request_ms,
              [this](Status status, const ReplyMessage* /*reply*/) {
                if (status.code() == StatusCode::kUnknownOutcome) return;
                if (!status.ok()) return link_.OpenAnother();
                node_.serving_ = true;
              });
  }

  void OnMessage(const MasterMessage& message) override {
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      epoch_ = committed->view->epoch.value;
      UseView(*committed->view);
    } else if (const auto* fence = std::get_if<FenceMessage>(&message)) {
      AddDuty([this, fence = *fence] {
        const bool done = node_.world_.rng().Below(100) >= node_.settings_.fence_fails_percent;
        for (const WorkerId worker : fence.workers) {
          if (done) node_.events_.refuse(*node_.id_, worker);
        }
        link_.Send(FencedMessage{fence.id, done, done ? "" : "not yet"});
      });
    }
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

  [[nodiscard]] uint64_t KnownEpoch() const override { return epoch_; }
  void Report(MemberReport* report) override {
    if (in_place_) report->node = node_.events_.usage(*node_.id_);
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
  bool in_place_ = false;   // the master has answered JoinNode on this stream
  bool is_placed_ = false;  // ... on some stream of this life
  bool open_ = false;       // workers can reach it
  uint64_t epoch_ = 0;
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
