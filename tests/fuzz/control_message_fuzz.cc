// Fuzz target: whatever processes say to a master, before and after they have proved themselves, in
// whatever order, on however many streams: the master goes on, no process is welcome without the
// secret, the master's messages can be told and make sense, and it can be started again from what
// it has stored.
//
// The first byte says what is there at first (Start); then records: a byte that names the event
// (Event), one that chooses the stream, and what belongs to the event.
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/control/control_mac.h"
#include "master/admission.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/master_checks.h"

namespace onetrip {
namespace {

enum Start : uint8_t {
  kFormed = 1,    // a cluster of memory nodes and agents, each with one worker
  kObedient = 2,  // members do what the master asks of them at once
  kSingle = 4,    // one replica on one node, instead of three
};
enum Event : uint8_t {
  kSay,      // two bytes that count, and a FromMember
  kProve,    // the same; what it says of a secret is made true
  kConnect,  // a stranger
  kAttend,   // a byte for the kind, one for the member that has proved itself
  kOffer,    // the stream offers a memory node's memory, and serves
  kClose,    // ... and the process has ended, if the stream's byte is above 127
  kPass,     // two bytes: milliseconds
  kRestart,
  kEvents,
};
constexpr int kEventsMax = 100;
constexpr size_t kStreamsMax = 64;
constexpr size_t kAnswersMax = 2000;

const Secret& TheSecret() {
  static const Secret secret("what all of them know");
  return secret;
}

// The answer of a member that does as it is told.
std::optional<MemberMessage> AnswerTo(const MasterMessage& message) {
  if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
    return ViewHeldMessage{hold->epoch};
  }
  if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
    return ViewInForceMessage{committed->view->epoch};
  }
  if (const auto* fence = std::get_if<FenceMessage>(&message)) {
    return FencedMessage{fence->id, true, ""};
  }
  if (const auto* repair = std::get_if<RepairMessage>(&message)) {
    return RepairedMessage{repair->id, true, ""};
  }
  if (const auto* reach = std::get_if<ReachMessage>(&message)) return ReachedMessage{reach->id};
  return std::nullopt;
}

class Bench {
 public:
  explicit Bench(uint8_t start) : obedient_((start & kObedient) != 0) {
    CoordinatorOptions options;
    if ((start & kSingle) != 0) options.nodes = 1;
    if ((start & kSingle) != 0) options.replicas = 1;
    master_.on_send = [this](StreamId stream, const MasterMessage& message) {
      const std::optional<MemberMessage> answer = AnswerTo(message);
      if (obedient_ && answer.has_value()) answers_.emplace_back(stream, *answer);
    };
    CHECK(master_.Start(options, DurableState()));
    if ((start & kFormed) != 0) Form(options.nodes);
  }

  void Run(FuzzInput* input) {
    const uint8_t event = input->TakeByte() % kEvents;
    const uint8_t chosen = input->TakeByte();
    Stream* const stream = streams_.empty() ? nullptr : &streams_[chosen % streams_.size()];
    if (event == kSay || event == kProve) {
      control::FromMember message;
      const bool parsed = message.ParseFromString(input->TakeText(input->Take<uint16_t>()));
      if (parsed && stream != nullptr) Say(stream, &message, event == kProve);
    } else if (event == kConnect) {
      Connect();
    } else if (event == kAttend) {
      const uint8_t kind = input->TakeByte() % 3;
      Attend(static_cast<MemberKind>(kind), input->TakeByte());
    } else if (event == kOffer) {
      if (stream != nullptr && stream->welcome) Offer(*stream, chosen);
    } else if (event == kClose) {
      if (stream != nullptr) Close(stream, chosen > 127);
    } else if (event == kPass) {
      master_.Pass(input->Take<uint16_t>());
    } else {
      streams_.clear();
      answers_.clear();
      CHECK(master_.Restart());
    }
    Answer();
  }

  // Tasks that are left take their time, and then there is another master.
  void End() {
    for (int i = 0; i < 12; ++i) {
      master_.Pass(1000);
      Answer();
    }
    (void)master_.coordinator().Status(master_.now_us());
    CheckView(master_.coordinator().view());
    master_.coordinator().OnStop(master_.now_us());
    master_.Settle();
    CHECK(master_.Restart());
  }

 private:
  struct Stream {
    StreamId id = 0;
    std::unique_ptr<Admission> admission;  // until it is welcome
    bool welcome = false;
  };

  void Form(uint16_t nodes) {
    for (uint16_t node = 0; node < nodes; ++node) {
      Attend(MemberKind::kMemoryNode, 0);
      Offer(streams_.back(), static_cast<uint8_t>(node));
    }
    for (int agent = 0; agent < 2; ++agent) {
      Attend(MemberKind::kAgent, 0);
      master_.coordinator().OnMessage(master_.now_us(), streams_.back().id,
                                      RequestMessage{1, JoinWorkerRequest()});
      master_.Settle();
      Answer();
    }
  }

  Stream& Connect() {
    if (streams_.size() >= kStreamsMax) streams_.erase(streams_.begin());
    return streams_.emplace_back(Stream{++last_stream_, std::make_unique<Admission>(TheSecret())});
  }

  // As a process of the cluster does it; `member` 0 is a new one.
  void Attend(MemberKind kind, uint64_t member) {
    constexpr std::array kRoles = {control::ROLE_AGENT, control::ROLE_MEMORY_NODE,
                                   control::ROLE_TOOL};
    Stream& stream = Connect();
    control::FromMember message;
    control::Hello& hello = *message.mutable_hello();
    hello.set_protocol(kControlProtocol);
    hello.set_role(kind == MemberKind::kAgent        ? kRoles[0]
                   : kind == MemberKind::kMemoryNode ? kRoles[1]
                                                     : kRoles[2]);
    hello.set_nonce(std::string(kControlNonceBytes, 'n'));
    hello.set_member(member);
    if (member != 0) hello.set_cluster(master_.coordinator().cluster());
    if (member != 0) hello.set_time_us(master_.coordinator().TimeUs(master_.now_us()));
    hello.set_life(member == 0 ? 0 : master_.coordinator().life());
    if (kind == MemberKind::kAgent) hello.set_engine("swarm");
    Say(&stream, &message, true);
    control::FromMember proof;
    (void)proof.mutable_proof();
    Say(&stream, &proof, true);
  }

  void Say(Stream* stream, control::FromMember* message, bool make_true) {
    if (stream->admission != nullptr) return Introduce(stream, message, make_true);
    if (!stream->welcome || master_.closed().contains(stream->id)) return;
    const std::optional<MemberMessage> said = DecodeMemberMessage(*message);
    if (!said.has_value()) return;
    // The master's own thread answers these.
    const auto* request = std::get_if<RequestMessage>(&*said);
    if (request != nullptr && std::holds_alternative<BackupRequest>(request->body)) return;
    master_.coordinator().OnMessage(master_.now_us(), stream->id, *said);
    master_.Settle();
  }

  void Introduce(Stream* stream, control::FromMember* message, bool make_true) {
    Admission& admission = *stream->admission;
    if (admission.state() == Admission::State::kHello && message->has_hello()) {
      said_[stream->id] = message->hello();
    }
    const bool may_prove = admission.state() == Admission::State::kProof;
    if (may_prove && message->has_proof() && make_true) {
      message->mutable_proof()->set_mac(
          MemberMac(TheSecret(), admission.nonce(), said_[stream->id]));
    }
    const std::optional<std::string> refusal = admission.OnMessage(*message);
    CHECK(refusal.has_value() == (admission.state() == Admission::State::kRefused));
    if (refusal.has_value()) CheckLine(*refusal);
    if (admission.state() == Admission::State::kProof) return;
    // No process guesses a MAC over a nonce that is fresh.
    if (!refusal.has_value()) CHECK(may_prove && make_true);
    if (!refusal.has_value()) Welcome(stream, admission);
    stream->admission.reset();
  }

  void Welcome(Stream* stream, const Admission& admission) {
    const Attendance attendance =
        master_.coordinator().Attend(master_.now_us(), stream->id, admission.hello());
    CHECK(attendance.welcome != !attendance.reason.empty());
    if (!attendance.welcome) CheckLine(attendance.reason);
    control::Verdict verdict;
    verdict.set_welcome(attendance.welcome);
    verdict.set_reason(attendance.reason);
    CHECK(ControlMacMatches(admission.MasterProof(verdict),
                            MasterMac(TheSecret(), admission.nonce(), said_[stream->id], verdict)));
    stream->welcome = attendance.welcome;
    master_.Settle();
  }

  void Offer(const Stream& stream, uint8_t memory) {
    JoinNodeRequest join{.bytes = 3 * kRegionBytes, .incarnation = 100U + memory % 8};
    master_.coordinator().OnMessage(master_.now_us(), stream.id, RequestMessage{1, join});
    master_.Settle();
    const NodeAddress address{"10.0.0." + std::to_string(memory), 7000, "", ""};
    master_.coordinator().OnMessage(master_.now_us(), stream.id,
                                    RequestMessage{2, ServeNodeRequest{address}});
    master_.Settle();
  }

  void Close(Stream* stream, bool has_ended) {
    const StreamId id = stream->id;
    const bool was_welcome = stream->welcome;
    streams_.erase(streams_.begin() + (stream - streams_.data()));
    if (!was_welcome) return;
    master_.coordinator().OnStreamClosed(master_.now_us(), id, has_ended);
    master_.Settle();
  }

  void Answer() {
    for (size_t i = 0; !answers_.empty() && i < kAnswersMax; ++i) {
      const auto [stream, answer] = std::move(answers_.front());
      answers_.pop_front();
      if (master_.closed().contains(stream)) continue;
      master_.coordinator().OnMessage(master_.now_us(), stream, answer);
      master_.Settle();
    }
    answers_.clear();
  }

  const bool obedient_;
  FuzzMaster master_;
  std::vector<Stream> streams_;
  StreamId last_stream_ = 0;
  std::map<StreamId, control::Hello> said_;
  std::deque<std::pair<StreamId, MemberMessage>> answers_;
};

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  onetrip::SilenceProtobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::FuzzInput input(data, size);
  onetrip::Bench bench(input.TakeByte());
  for (int event = 0; event < onetrip::kEventsMax && !input.empty(); ++event) bench.Run(&input);
  bench.End();
  return 0;
}
