// A master on the bench of a fuzz target: its effects go to a disk in memory, and everything that
// it says goes through the codec as it would to a member. Whatever members say, it can always be
// started again from its disk.
#ifndef ONETRIP_TESTS_FUZZ_MASTER_CHECKS_H_
#define ONETRIP_TESTS_FUZZ_MASTER_CHECKS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "client_core/base/check.h"
#include "client_core/control/control.pb.h"
#include "master/coordinator.h"
#include "master/durable_change.h"
#include "master/message_codec.h"
#include "tests/fuzz/view_checks.h"

namespace onetrip {

inline void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.find('\n') == std::string::npos);
}

// CHECKs that what is kept of a change by members is the change.
inline void CheckChangeTravels(const DurableChange& change) {
  const std::string bytes = EncodeChange(change);
  const Result<DurableChange> told = DecodeChange(bytes);
  CHECK(told.ok());
  CHECK(told->cluster == change.cluster && told->nodes == change.nodes);
  CHECK(told->regions == change.regions && told->seats == change.seats);
  CHECK(told->agents == change.agents && told->former == change.former);
  CHECK(told->lives == change.lives);
}

class FuzzMaster {
 public:
  static constexpr uint64_t kFreshCluster = 0xc0ffee;
  using OnSend = std::function<void(StreamId, const MasterMessage&)>;

  // Goes on from `disk`; false: that makes no sense, and it says why.
  bool Start(const CoordinatorOptions& options, DurableState disk) {
    options_ = options;
    disk_ = std::move(disk);
    return Restart();
  }
  // As after a kill.
  bool Restart() {
    std::string reason;
    Result<Coordinator> made = Coordinator::Create(options_, disk_, kFreshCluster, ++life_, now_us_,
                                                   kUnixUs + now_us_, &reason);
    if (!made.ok()) {
      CheckLine(reason);
      return false;
    }
    coordinator_ = std::move(made.value());
    closed_.clear();
    Settle();
    return true;
  }

  // Takes the effects of what has been done to coordinator(): disk first, then messages.
  void Settle() {
    CoordinatorEffects effects = coordinator_.TakeEffects();
    CheckChangeTravels(effects.change);
    ApplyChange(effects.change, &disk_);
    for (const CoordinatorEffects::Close& close : effects.closes) closed_.insert(close.stream);
    for (const CoordinatorEffects::Send& send : effects.sends) {
      CheckMessage(send.message);
      if (on_send) on_send(send.stream, send.message);
    }
  }
  void Pass(uint64_t ms) {
    now_us_ += ms * 1000;
    coordinator_.OnTick(now_us_);
    Settle();
  }

  Coordinator& coordinator() { return coordinator_; }
  [[nodiscard]] uint64_t now_us() const { return now_us_; }
  [[nodiscard]] const DurableState& disk() const { return disk_; }
  // Streams that this life has closed.
  [[nodiscard]] const std::set<StreamId>& closed() const { return closed_; }
  OnSend on_send;

 private:
  static constexpr uint64_t kUnixUs = 1'700'000'000'000'000;

  void CheckMessage(const MasterMessage& message) const {
    control::FromMaster encoded;
    EncodeMasterMessage(message, &encoded);
    control::FromMaster parsed;
    CHECK(encoded.kind_case() != control::FromMaster::KIND_NOT_SET);
    CHECK(parsed.ParseFromString(encoded.SerializeAsString()));
    CHECK(parsed.SerializeAsString() == encoded.SerializeAsString());
    const View* view = nullptr;
    if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
      view = committed->view.get();
    } else if (const auto* repair = std::get_if<RepairMessage>(&message)) {
      view = repair->order.view.get();
    } else if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
      const auto* joined = std::get_if<NodeJoined>(&reply->body);
      if (joined != nullptr) view = joined->view.get();
    }
    if (view == nullptr) return;
    CheckView(*view);
    CheckViewTravels(*view);
    // No view is in force that a master of after a kill would not know.
    const bool is_in_force = !std::holds_alternative<RepairMessage>(message);
    CHECK(!is_in_force || view->epoch.value <= disk_.cluster.epoch);
  }

  CoordinatorOptions options_;
  DurableState disk_;
  Coordinator coordinator_;
  uint64_t life_ = 0;
  uint64_t now_us_ = 1'000'000;
  std::set<StreamId> closed_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_FUZZ_MASTER_CHECKS_H_
