// ShmSegment: a memory node of this host as an agent's process sees it: the node's memory, mapped
// here, and a unix socket to the node.
//
// Operations on the memory need no other process; over the socket the agent only asks for blocks,
// one question at a time, and a thread of the segment waits for the answers. The node's death
// closes the socket, which makes the segment unreachable at once and for good: the agent attaches
// anew to a node that comes back at the same place. One segment serves all workers of the process,
// each of which must be made known to the node, which fences a worker by ending this process.
// Thread-safe.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_SHM_SEGMENT_H_
#define ONETRIP_CLIENT_CORE_FABRIC_SHM_SEGMENT_H_

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client_core/base/status.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/control.h"
#include "client_core/layout/shm_wire.h"
#include "client_core/layout/types.h"

namespace onetrip {

struct ShmAttachOptions {
  std::string path;  // names the node's socket
  uint64_t cluster = 0;
  NodeId node{};
  WorkerId worker{};
  Epoch epoch{};             // the epoch of the worker's map
  uint64_t incarnation = 0;  // the memory's, as the worker's map names it; 0: any
  // Gives the mapping up as soon as the node is lost, so that a node that comes back to its file
  // need not end this process first; the addresses stay valid, with other memory behind them. Only
  // for users who believe an operation if the segment is reachable after it, too.
  bool release_when_lost = false;
  uint64_t timeout_ms = 2000;  // for the node's every answer; a node that is silent so long is lost
};

class ShmSegment final : public MemoryEndpoint {
 public:
  // Attaches to the node that listens at `options.path`; blocks until it has answered. On failure
  // *reason says in one line which node, and what is wrong. kUnavailable: no node is there, or not
  // yet. kFenced: the node does not accept the worker or its map any more. kInvalidArgument: no
  // retry will help.
  static Result<std::unique_ptr<ShmSegment>> Attach(const ShmAttachOptions& options,
                                                    std::string* reason);
  // Unmaps, then tells the node that this process is no danger to it any more. REQUIRES: no thread
  // uses the memory.
  ~ShmSegment() override;

  [[nodiscard]] std::byte* base() const override { return base_; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  // Asks the node; ends when it has answered or was lost, which it is when it has not answered
  // within the timeout.
  std::shared_ptr<const PendingControl> Start(const ControlRequest& request) override;
  // Waits for that. When the node is lost meanwhile the segment is unreachable afterwards, the
  // outcome is kConflict and means nothing: it may have been done.
  ControlReply Handle(const ControlRequest& request) override;

  // Makes one more worker of this process known; blocks. Failures as for Attach.
  Status AddWorker(WorkerId worker, Epoch epoch, std::string* reason);

  // Names the memory: another one means that the node has lost what it held. Constant.
  [[nodiscard]] uint64_t incarnation() const { return incarnation_; }

 private:
  explicit ShmSegment(const ShmAttachOptions& options) : options_(options) {}
  Status Connect(std::string* reason);
  Status SayHello(std::string* reason);
  Status Map(const ShmVerdict& verdict, const UniqueFd& memory, std::string* reason);
  // Takes the answer; null: there is none, and the segment is unreachable.
  using AnswerFn = std::function<void(const ShmFrame* answer)>;
  struct Question {
    ShmFrame frame;
    AnswerFn done;
  };
  // Sends `frame`, numbered, when its turn comes. `done` is called once, by the watcher or at once.
  void Ask(ShmFrame frame, AnswerFn done);
  // REQUIRES: mutex_ is held.
  void SendFirst();
  void OnAnswer(const ShmFrame& answer);
  // False: the connection is at its end.
  bool ReadSome(ShmFrame* answer, size_t* have) const;
  void WakeWatcher() const;
  bool Send(const ShmFrame& frame);
  // `*memory`: a descriptor that came along.
  bool Receive(ShmFrame* frame, UniqueFd* memory);
  void Lose(const char* why);
  // Reads answers until the node is lost or this object ends, then fails what is left.
  void Watch();
  // Until the first question must be answered, for poll().
  int AnswerWithinMs();
  [[nodiscard]] std::string Name() const;

  const ShmAttachOptions options_;
  UniqueFd socket_;
  bool welcome_ = false;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t incarnation_ = 0;
  std::atomic<bool> lost_{false};
  std::atomic<bool> ending_{false};
  UniqueFd wake_;  // eventfd of the watcher
  std::thread watcher_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<Question> questions_;  // the first one has been sent
  uint32_t sequence_ = 0;           // the last sent question's
  std::chrono::steady_clock::time_point answer_end_;
  bool closed_ = false;  // nothing is asked any more
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_SHM_SEGMENT_H_
