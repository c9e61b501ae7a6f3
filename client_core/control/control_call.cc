#include "client_core/control/control_call.h"

#include <grpcpp/grpcpp.h>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/control/control.grpc.pb.h"
#include "client_core/control/control_mac.h"
#include "client_core/control/refusal.h"

namespace onetrip {
namespace {

// A view of the largest cluster there can be, and some.
constexpr int kMessageBytesMax = 16 << 20;

std::shared_ptr<grpc::Channel> Dial(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // One attempt per call: the back-off is ours, and no other call's failure counts.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Its pings would double what an idle stream costs; the messages are small.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetServiceConfigJSON("{}");
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// gRPC's words in one line.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

struct ControlCall::Grpc {
  explicit Grpc(const std::string& address) : channel(Dial(address)), stub(channel) {}

  std::shared_ptr<grpc::Channel> channel;
  control::Master::Stub stub;
  grpc::ClientContext context;
  control::Hello hello;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<control::FromMember, control::FromMaster>> stream;
  control::FromMaster incoming;
  std::deque<control::FromMember> outgoing;  // front: being written, if anything is
  grpc::Status status;
};

ControlCall::ControlCall(const std::string& address, const control::Hello& hello,
                         const Secret& secret, grpc::CompletionQueue* events, Owner* owner)
    : secret_(secret), owner_(owner), grpc_(std::make_unique<Grpc>(address)) {
  grpc_->hello = hello;
  grpc_->hello.set_nonce(ControlNonce());
  control::FromMember first;
  *first.mutable_hello() = grpc_->hello;
  grpc_->outgoing.push_back(std::move(first));
  grpc_->stream = grpc_->stub.PrepareAsyncAttend(&grpc_->context, events);
  ++under_way_;
  grpc_->stream->StartCall(&start_);
}

ControlCall::~ControlCall() { CHECK(state_ == State::kEnded); }

void ControlCall::OnEvent(void* tag, bool ok) {
  const Tag* event = static_cast<Tag*>(tag);
  event->call->Handle(event->kind, ok);
}

void ControlCall::Handle(Kind kind, bool ok) {
  --under_way_;
  switch (kind) {
    case Kind::kStart:
      if (ok && state_ == State::kHandshake) {
        Read();
        WriteNext();
      }
      break;
    case Kind::kRead:
      if (!ok || state_ == State::kEnding) break;
      if (state_ == State::kHandshake) {
        Handshake(grpc_->incoming);
      } else {
        owner_->OnCallMessage(grpc_->incoming);
      }
      if (state_ != State::kEnding) Read();
      break;
    case Kind::kWrite:
      writing_ = false;
      grpc_->outgoing.pop_front();
      if (ok && state_ != State::kEnding) WriteNext();
      if (ok) break;
      // The messages that the master sent before it closed the stream are still to be read; the
      // read behind them fails.
      can_write_ = false;
      grpc_->outgoing.clear();
      return FinishIfIdle();
    case Kind::kFinish:
      state_ = State::kEnded;
      if (!refusal_.reason.empty() || refusal_.final) return;
      refusal_.reason = grpc_->status.ok() || grpc_->status.error_message().empty()
                            ? "the master closed the stream"
                            : OneLine(grpc_->status.error_message());
      return;
  }
  // The first of the others that fails is the end, and the status tells why.
  if (!ok) state_ = State::kEnding;
  FinishIfIdle();
}

void ControlCall::FinishIfIdle() {
  if (state_ != State::kEnding || under_way_ != 0 || finishing_) return;
  finishing_ = true;
  ++under_way_;
  grpc_->stream->Finish(&grpc_->status, &finish_);
}

void ControlCall::Read() {
  ++under_way_;
  grpc_->stream->Read(&grpc_->incoming, &read_);
}

void ControlCall::WriteNext() {
  if (writing_ || grpc_->outgoing.empty()) return;
  writing_ = true;
  ++under_way_;
  grpc_->stream->Write(grpc_->outgoing.front(), &write_);
}

void ControlCall::Send(const control::FromMember& message) {
  if (state_ == State::kEnding || state_ == State::kEnded || !can_write_) return;
  if (grpc_->outgoing.size() >= kQueueMax) return Cancel(false, "the master reads nothing");
  grpc_->outgoing.push_back(message);
  WriteNext();
}

bool ControlCall::flushed() const { return grpc_->outgoing.empty(); }

void ControlCall::Cancel(bool final, const std::string& reason) {
  if (state_ == State::kEnding || state_ == State::kEnded) return;
  refusal_ = {final, reason, false};
  state_ = State::kEnding;
  grpc_->context.TryCancel();
  FinishIfIdle();
}

void ControlCall::Handshake(const control::FromMaster& message) {
  if (message.kind_case() == control::FromMaster::kVerdict) return OnVerdict(message.verdict());
  if (message.kind_case() != control::FromMaster::kChallenge || challenged_ ||
      message.challenge().nonce().size() != kControlNonceBytes) {
    return Cancel(false, "what answers there does not speak as a master does");
  }
  challenged_ = true;
  master_nonce_ = message.challenge().nonce();
  control::FromMember proof;
  proof.mutable_proof()->set_mac(MemberMac(secret_, master_nonce_, grpc_->hello));
  asked_ns_ = SystemClock().NowNs();
  Send(proof);
}

void ControlCall::Refused(bool final, const std::string& reason) {
  Cancel(final, reason);
  refusal_.said = true;
}

void ControlCall::OnVerdict(const control::Verdict& verdict) {
  const control::Hello& hello = grpc_->hello;
  const bool is_proved =
      challenged_ &&
      ControlMacMatches(verdict.mac(), MasterMac(secret_, master_nonce_, hello, verdict));
  RefusalFacts facts;
  facts.was_member = hello.member() != 0;
  facts.is_node = hello.role() == control::ROLE_MEMORY_NODE;
  facts.is_proved = is_proved;
  facts.is_cluster = verdict.cluster() == hello.cluster();
  facts.is_older = verdict.epoch() < hello.epoch();
  if (!verdict.welcome()) {
    facts.is_expelled = verdict.expelled();
    facts.may_retry = verdict.retry();
    std::string why = "refused by the master: " +
                      OneLine(verdict.reason().empty() ? "without a reason" : verdict.reason());
    if (facts.was_member && !is_proved) {
      why += " (whoever says so has not proved that it knows the cluster's secret)";
    }
    return Refused(EndsProcess(facts), why);
  }
  const std::string wrong = WhyNotBelieved(verdict, is_proved);
  if (!wrong.empty()) return Refused(EndsProcess(facts), wrong);
  was_up_ = true;
  state_ = State::kUp;
  owner_->OnCallUp(verdict, asked_ns_);
}

std::string ControlCall::WhyNotBelieved(const control::Verdict& verdict, bool is_proved) const {
  const control::Hello& hello = grpc_->hello;
  if (!is_proved) {
    return "the master does not know the cluster's secret; give both the same --secret-file";
  }
  if (hello.cluster() != 0 && hello.cluster() != verdict.cluster()) {
    return "the master is that of another cluster; check its address and its data directory";
  }
  if (verdict.epoch() < hello.epoch()) {
    return "the master knows the cluster map of epoch " + std::to_string(verdict.epoch()) +
           " only, this process that of " + std::to_string(hello.epoch()) +
           ": its data directory is an old copy; restore the newest one";
  }
  return "";
}

}  // namespace onetrip
