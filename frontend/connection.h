// Connection: one client from accept to close, served by one coroutine on its worker.
//
// The coroutine reads, parses a run of commands, lets the store prefetch their keys, executes them
// in order, or several at a time where each would wait for the network (Overlap), and appends their
// replies to the output buffer. The worker flushes that once per loop
// turn, so the replies of a turn leave in one system call. While a command waits (for a memory
// node, or for room in the output) nothing is read: the client's own socket buffer holds it back.
#ifndef ONETRIP_FRONTEND_CONNECTION_H_
#define ONETRIP_FRONTEND_CONNECTION_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/task.h"
#include "client_core/store/store.h"
#include "frontend/client_socket.h"
#include "frontend/client_watch.h"
#include "frontend/connection_host.h"
#include "frontend/flush_queue.h"
#include "frontend/overlap.h"
#include "frontend/query_buffer.h"
#include "frontend/request_memory.h"
#include "redis_compat/dispatch/client_info.h"
#include "redis_compat/dispatch/session.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/reply_flow.h"
#include "redis_compat/protocol/resp.h"

namespace onetrip {

class Connection final : private ReplyFlow {
 public:
  // Takes over an accepted, non-blocking socket. `unix_path` names the unix socket it came in by,
  // empty for TCP; it outlives the connection.
  Connection(ConnectionHost& host, UniqueFd fd, uint64_t id, std::string_view unix_path);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // REQUIRES: Run() has ended, or never began.
  ~Connection() override;

  // Serves the client until either side ends it; what was answered is sent before it returns,
  // unless the client is gone, was killed or does not take it. Once.
  Task<void> Run();

  // Ends it: at the end of the command that runs now, if any, without sending what is left. Takes
  // effect in the flush of this turn or later, so the caller may be another connection.
  void Kill();
  // Ends it after the replies to what has been executed; nothing more is read.
  void Finish();

  // Sends bytes that answer nothing, behind the reply that is being written now, if any.
  void Push(std::string_view bytes);

  // Sends what waits. The worker calls it, through the flush queue.
  void Flush();

  // Once a second: closes it when idle for too long, over a soft output limit for too long, or in
  // the way of others that wait for memory for large values, and gives back memory that an idle
  // client does not need.
  void Tend(uint64_t now_ns);

  [[nodiscard]] const Session& session() const { return session_; }
  void Describe(uint64_t now_ns, ClientSnapshot* snapshot) const;
  [[nodiscard]] size_t query_buffer_bytes() const { return input_.capacity(); }
  [[nodiscard]] size_t output_buffer_bytes() const { return output_.size(); }
  [[nodiscard]] size_t memory_bytes() const;

 private:
  friend class FlushQueue;

  // Commands parsed ahead, so that the keys of all of them can be prefetched before the first runs,
  // or that all of them wait for the network at the same time.
  static constexpr size_t kBatchMax = 16;
  static constexpr size_t kNetworkBatchMax = 64;
  // A read takes no more than this, or what the running command is known to need: one client's
  // pipeline must not keep the others waiting.
  static constexpr size_t kReadMaxBytes = size_t{16} << 10;
  // Unsent output that is worth a system call before the turn ends.
  static constexpr size_t kFlushEarlyBytes = size_t{1} << 20;
  // Unsent output beyond which nothing more is executed until the client has taken some of it.
  static constexpr size_t kPauseBytes = kMostBytes;
  // For so long a command waits for a client that takes nothing of its replies.
  static constexpr uint64_t kTakesNothingNs = 1'000'000'000;
  // Buffers of a client that has been idle so long are given back.
  static constexpr uint64_t kReleaseAfterNs = 2'000'000'000;
  // A connection that monitors may leave this unsent: Redis's limit for replicas, of which Redis
  // takes it for one.
  static constexpr size_t kMonitorOutputMaxBytes = size_t{256} << 20;
  // How often a paused client looks whether the pause is over.
  static constexpr uint64_t kPauseLookNs = 5'000'000;

  enum class State : uint8_t {
    kOpen,
    kFinishing,  // Sends what is left, then ends.
    kDropped,    // Ends without another byte.
  };
  enum class WaitFor : uint8_t { kNothing, kInput, kOutput };

  struct BatchCommand {
    size_t first_argument;
    size_t argument_count;
    const CommandRow* row = nullptr;  // null: not looked up yet, or unknown
    Key key{};                        // argv[1], if it is one and was prefetched
  };

  struct Waiting {
    Connection& connection;
    WaitFor what;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
      connection.waiter_ = handle;
      connection.wait_for_ = what;
    }
    void await_resume() const noexcept {}
  };

  // Resumes the coroutine if it waits. The connection may be gone afterwards.
  void Wake();
  // The same in a turn of its own: what it then has to send is flushed before the loop may sleep.
  void WakeLater();
  void OnReadable();
  void OnWritable() { Flush(); }

  // Parses commands into the batch, up to its end, the end of the input or an error.
  void ParseBatch();
  void PrefetchBatch();
  [[nodiscard]] std::span<const std::string_view> ArgumentsOf(const BatchCommand& command) const {
    return {arguments_.data() + command.first_argument, command.argument_count};
  }
  Task<void> ExecuteBatch();
  // True if the command may run beside those before it: no transaction takes it, and its reply is
  // sent.
  [[nodiscard]] bool MayOverlap(const BatchCommand& command) const;
  // True if something is won by it: the store waits for a network, or the command before or behind
  // it changes the same key, and one write does for both. REQUIRES: MayOverlap().
  [[nodiscard]] bool GainsByOverlap(size_t index) const;
  // True if one before it has to end first. REQUIRES: MayOverlap().
  [[nodiscard]] bool MustAwaitKey(const BatchCommand& command) const;
  // REQUIRES: it need not wait for its key.
  void BeginOverlapped(const BatchCommand& command);
  Task<void> EndOverlapped(Overlap::Call& call);
  // Returns when all of them have been answered.
  Task<void> AwaitOverlapped();
  // Bytes of requests that the open transaction keeps.
  [[nodiscard]] uint64_t QueuedBytes() const {
    return session_.transaction == nullptr ? 0 : session_.transaction->queued_bytes;
  }
  // Lets a large request go on: takes memory for it as its bytes arrive, and sets input_needed_ to
  // what may come before it takes more.
  Task<void> PrepareLargeInput();
  [[nodiscard]] bool KeepsOthersWaiting() const;
  void ReleaseIdleBuffers(uint64_t idle_ns);
  // Returns when CLIENT PAUSE lets the command run.
  Task<void> WaitForPause(std::span<const std::string_view> argv);
  Task<bool> AwaitTaken() override;
  Task<void> Relieve() override {
    if (output_.size() > kFlushEarlyBytes) co_await RelieveOutput();
  }
  // True if it is time to go on without: its client may want to send more before it takes anything.
  [[nodiscard]] bool TakesNothing(uint64_t now_ns) const {
    return state_ == State::kOpen && output_.size() <= kMostBytes &&
           now_ns > socket_.last_sent_ns() + kTakesNothingNs;
  }
  // After a command whose replies have piled up: sends, and waits if the client does not keep up.
  Task<void> RelieveOutput();
  Task<void> SendRest();
  // Sends as much as the socket takes. False when the connection is broken.
  bool Send();
  void Drop() {
    state_ = State::kDropped;
    open_ = false;
    session_.abandoned = true;
    // A command that still runs may wait for what its own replies keep. What it answers from now
    // on is not sent either: it would stand where what is gone now was owed.
    output_.Clear();
  }
  void DropIfOverHardLimit();
  void CloseForOutput();  // Counts and logs it.

  ConnectionHost& host_;
  ClientSocket socket_;
  std::string_view unix_path_;
  FdWatcher watcher_;
  Session session_;
  RespParser parser_;
  QueryBuffer input_;
  RequestMemory request_memory_;
  OutputBuffer output_;

  State state_ = State::kOpen;
  bool open_ = true;  // state_ is kOpen; for those who wait
  WaitFor wait_for_ = WaitFor::kNothing;
  size_t resume_bytes_ = 0;  // Unsent output at which kOutput has been waited for.
  bool flush_queued_ = false;
  bool executing_ = false;  // between commands: some are under way
  bool paused_ = false;
  std::string pushed_;  // Waits for the running command's reply.
  std::coroutine_handle<> waiter_;
  size_t input_needed_ = 1;  // Bytes to come before parsing again makes sense.

  std::vector<BatchCommand> batch_;  // as many as it may have
  size_t batch_size_ = 0;
  size_t batch_bytes_ = 0;  // Input that the batch occupies.
  RespResult batch_end_ = RespResult::kNeedMore;
  std::vector<std::string_view> arguments_;  // All of the batch.

  const bool waits_for_network_;
  std::unique_ptr<Overlap> overlap_;  // null: nothing has overlapped lately

  ClientWatch watch_;
  uint64_t finishing_since_ns_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_CONNECTION_H_
