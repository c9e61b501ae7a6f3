#include "master/rebuild_server.h"

#include <utility>

#include "client_core/base/address.h"
#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "master/master_server.h"

namespace onetrip {
namespace {

// A copy of the state of the largest cluster there can be, and some.
constexpr int kMessageBytesMax = 64 << 20;
constexpr uint32_t kLeaseMs = 1000;
constexpr const char* kComeAgain = "the master's state is being rebuilt; come again";

}  // namespace

RebuildServer::RebuildServer(Secret secret, Rebuild rebuild)
    : secret_(std::move(secret)), rebuild_(std::move(rebuild)) {}

Result<std::unique_ptr<RebuildServer>> RebuildServer::Start(const std::string& listen,
                                                            Secret secret, Rebuild rebuild,
                                                            std::string* reason) {
  if (!MayTalk(!secret.empty(), IsLoopbackAddress(listen))) {
    *reason = "will not listen on " + listen +
              " without a secret: give a --secret-file, or a numeric loopback address";
    return Status(StatusCode::kInvalidArgument, "no secret");
  }
  std::unique_ptr<RebuildServer> made(new RebuildServer(std::move(secret), std::move(rebuild)));
  made->thread_ = std::thread([server = made.get()] { server->Run(); });
  StreamServerOptions options;
  options.listen = listen;
  options.message_bytes_max = kMessageBytesMax;
  Result<std::unique_ptr<StreamServer>> server = StreamServer::Start(options, *made, reason);
  if (!server.ok()) return server.status();
  made->server_ = std::move(*server);
  return made;
}

RebuildServer::~RebuildServer() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (server_ != nullptr) server_->Stop();
}

Rebuild RebuildServer::Collected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rebuild_;
}

void RebuildServer::Post(std::function<void()> task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

void RebuildServer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    std::deque<std::function<void()>> tasks = std::exchange(tasks_, {});
    const bool last = stopping_;
    lock.unlock();
    for (const std::function<void()>& task : tasks) task();
    if (last) break;
    lock.lock();
  }
  for (auto& [id, entry] : streams_) entry.stream->End(kComeAgain);
  streams_.clear();
}

StreamId RebuildServer::Opened(std::shared_ptr<MemberStream> stream) {
  StreamId id = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return 0;
    id = next_stream_++;
  }
  Post([this, id, stream = std::move(stream)] {
    Entry& entry = streams_[id];
    entry.stream = stream;
    entry.admission = std::make_unique<Admission>(secret_);
  });
  return id;
}

bool RebuildServer::Said(StreamId stream, std::unique_ptr<control::FromMember> message) {
  Post([this, stream, said = std::shared_ptr<control::FromMember>(std::move(message))] {
    OnSaid(stream, *said);
  });
  return false;
}

void RebuildServer::Closed(StreamId stream) {
  Post([this, stream] { End(stream, "", /*refuse=*/false); });
}

void RebuildServer::Gone(StreamId stream) {
  Post([this, stream] { streams_.erase(stream); });
}

void RebuildServer::OnSaid(StreamId id, const control::FromMember& message) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Entry& entry = found->second;
  if (!entry.proved) {
    if (const auto refusal = entry.admission->OnMessage(message)) {
      LogWarning("refused " + entry.stream->peer() + ": " + *refusal);
      return End(id, *refusal, /*refuse=*/true);
    }
    if (entry.admission->state() == Admission::State::kProof) {
      control::FromMaster challenge;
      challenge.mutable_challenge()->set_nonce(entry.admission->nonce());
      entry.stream->Send(challenge);
    } else if (entry.admission->hello().kind == MemberKind::kOther) {
      return End(id, kComeAgain, /*refuse=*/true);
    } else {
      OnProved(entry);
    }
  } else if (message.has_recalled()) {
    const MemberHello& hello = entry.admission->hello();
    std::string reason;
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string who =
        std::string(hello.kind == MemberKind::kAgent ? "agent" : "memory node") + " (process " +
        std::to_string(hello.pid) + " on " + hello.host + ")";
    if (rebuild_.Add(hello, message.recalled(), &reason).ok()) {
      LogInfo("heard the " + who + ", which keeps version " +
              std::to_string(message.recalled().version()));
    } else {
      LogWarning("the " + who + " counts for nothing: " + reason);
    }
    entry.stream->End(kComeAgain);
    streams_.erase(found);
    return;
  }
  entry.stream->ReadNext();
}

void RebuildServer::OnProved(Entry& entry) {
  const MemberHello& hello = entry.admission->hello();
  entry.proved = true;
  control::FromMaster message;
  control::Verdict* const verdict = message.mutable_verdict();
  // The member goes on with what it says of itself; no time is told, for no process knows it.
  verdict->set_welcome(true);
  verdict->set_cluster(hello.cluster);
  verdict->set_epoch(hello.epoch);
  verdict->set_life(hello.life);
  verdict->set_member(hello.member);
  verdict->set_lease_ms(kLeaseMs);
  verdict->set_mac(entry.admission->MasterProof(*verdict));
  entry.stream->Send(message);
  message.Clear();
  message.mutable_recall();
  entry.stream->Send(message);
}

void RebuildServer::End(StreamId id, const std::string& why, bool refuse) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (refuse) {
    control::FromMaster message;
    message.mutable_verdict()->set_reason(why);
    message.mutable_verdict()->set_retry(true);
    found->second.stream->Send(message);
  }
  found->second.stream->End(why);
  streams_.erase(found);
}

}  // namespace onetrip
