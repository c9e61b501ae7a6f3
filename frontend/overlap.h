// Overlap: the commands of one connection that are under way at the same time, so that a pipeline
// waits for the network once for several of them rather than for each.
//
// Two of them have the same key only if both change it by one read-modify-write, which take effect
// in the order of the commands, in which their replies are taken, too.
// A client that is alone on its keys cannot tell that one was done before the other; others can,
// and two reads of one pipeline may be of different moments. Each reply waits in a buffer of its
// own for those before it. Thread rule: the connection's worker.
#ifndef ONETRIP_FRONTEND_OVERLAP_H_
#define ONETRIP_FRONTEND_OVERLAP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client_core/coro/executor.h"
#include "client_core/coro/sync.h"
#include "client_core/coro/task.h"
#include "client_core/store/store.h"
#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/reply_flow.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

class Overlap {
 public:
  class Call final : public ReplyTurn {
   public:
    // `overlap` outlives the call.
    Call(Overlap& overlap, std::string_view key, int protocol)
        : key_(key), out_(*overlap.NewBuffer(), protocol), overlap_(overlap) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() override { overlap_.free_.push_back(&out_.buffer()); }

    [[nodiscard]] ReplyWriter& out() { return out_; }
    [[nodiscard]] InOrder& in_order() { return in_order_; }
    // The command's; it is there from when the caller has made it.
    std::optional<CommandContext> context;

    [[nodiscard]] bool has_come() const override { return &overlap_.calls_.front() == this; }
    Task<void> Await() override {
      const uint64_t begun_ns = overlap_.executor_.NowNs();
      while (!has_come()) co_await overlap_.AwaitEnd();
      awaited_ns_ += overlap_.executor_.NowNs() - begun_ns;
    }
    // How long it has awaited its turn.
    [[nodiscard]] uint64_t awaited_ns() const { return awaited_ns_; }

   private:
    friend class Overlap;
    std::string_view key_;
    ReplyWriter out_;
    Overlap& overlap_;
    InOrder in_order_{&overlap_};
    uint64_t awaited_ns_ = 0;
    bool is_done_ = false;
  };

  explicit Overlap(Executor& executor) : executor_(executor), gate_(executor), ended_(executor) {}
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  [[nodiscard]] bool empty() const { return calls_.empty(); }
  // True if a command with that key is under way.
  [[nodiscard]] bool Has(std::string_view key) const;
  // The same, unless whatever mutation of the key begins now comes behind it.
  [[nodiscard]] bool MustAwait(std::string_view key) const;
  // Another call, the last one. `key` stays where it is until the call is done.
  Call& Add(std::string_view key, int protocol) {
    return calls_.emplace_back(*this, key, protocol);
  }
  // Holds the coroutines that await calls.
  [[nodiscard]] Gate& gate() { return gate_; }
  // `call`, whose command has run, is done. Appends the replies to `output` whose turn has come,
  // and forgets their calls.
  void End(Call& call, OutputBuffer& output);
  // Returns when another call has ended, at the latest.
  Task<void> AwaitEnd() {
    ended_.Reset();
    co_await ended_.Wait();
  }

  [[nodiscard]] size_t memory_bytes() const;

 private:
  // Most replies are short.
  static constexpr size_t kChunkBytes = 256;

  OutputBuffer* NewBuffer();

  Executor& executor_;
  Gate gate_;
  Event ended_;
  std::vector<std::unique_ptr<OutputBuffer>> buffers_;
  std::vector<OutputBuffer*> free_;
  std::deque<Call> calls_;  // in the order of the commands
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_OVERLAP_H_
