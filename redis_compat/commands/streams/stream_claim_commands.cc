// XCLAIM and XAUTOCLAIM: pending entries go from one consumer to another.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

// True if the entry was given to its consumer long enough ago. Times wrap, as Redis's do.
bool IsIdle(const StreamPending& pending, int64_t now_ms, int64_t idle_ms_min) {
  const auto idle = static_cast<uint64_t>(now_ms) - static_cast<uint64_t>(pending.delivered_ms);
  return idle_ms_min == 0 || static_cast<int64_t>(idle) >= idle_ms_min;
}

class ClaimMutation : public GroupMutation {
 public:
  explicit ClaimMutation(CommandContext& context)
      : GroupMutation(context),
        context_(context),
        now_ms_(StreamNowMs(context)),
        out_(buffer_, context.out.protocol()) {}
  void Reply() { context_.out.buffer().AppendAll(buffer_); }

 protected:
  [[nodiscard]] int64_t now_ms() const { return now_ms_; }
  // Where the reply is to be written, anew in each EditGroup().
  ReplyWriter& BeginReply() {
    buffer_.Clear();
    return out_;
  }
  // The consumer in argv[3], which is made, or seen now.
  uint32_t SeeClaimer(StreamGroupEdit& group) {
    return group.SeeConsumer(context_.argv[3], now_ms_);
  }
  // For the end of EditGroup().
  Change Claimed(StreamEdit& stream, StreamGroupEdit& group) {
    share_ = CountMemory(context_, buffer_.size());
    return PutGroup(stream, group);
  }
  static void TellClaimed(ReplyWriter& out, const StreamEntry& entry, bool id_alone) {
    id_alone ? ReplyStreamId(out, entry.id) : ReplyEntry(out, entry);
  }

 private:
  CommandContext& context_;
  const int64_t now_ms_;
  OutputBuffer buffer_;
  ReplyWriter out_;
  MemoryBudget::Share share_;  // counts `buffer_`
};

struct ClaimTerms {
  static constexpr int64_t kNotGiven = -1;
  int64_t idle_ms_min = 0;
  std::vector<EntryId> ids;
  bool force = false;
  bool id_alone = false;
  int64_t delivered_ms = kNotGiven;
  int64_t deliveries = kNotGiven;
  EntryId last_id;
};

constexpr IntegerRange AnyInteger(const char* error) { return {.not_integer = error}; }

// False: it is no option of XCLAIM.
bool TakeClaimOption(ArgumentReader& arguments, int64_t now_ms, ClaimTerms* terms) {
  if (arguments.Flag("FORCE", &terms->force) || arguments.Flag("JUSTID", &terms->id_alone)) {
    return true;
  }
  int64_t idle_ms = 0;
  if (arguments.Integer("IDLE", &idle_ms,
                        AnyInteger("ERR Invalid IDLE option argument for XCLAIM"))) {
    const auto delivered = static_cast<uint64_t>(now_ms) - static_cast<uint64_t>(idle_ms);
    terms->delivered_ms = static_cast<int64_t>(delivered);
    return true;
  }
  if (arguments.Word("LASTID", 1)) {
    terms->last_id = ReadStreamId(arguments, arguments.Take());
    return true;
  }
  return arguments.Integer("TIME", &terms->delivered_ms,
                           AnyInteger("ERR Invalid TIME option argument for XCLAIM")) ||
         arguments.Integer("RETRYCOUNT", &terms->deliveries,
                           AnyInteger("ERR Invalid RETRYCOUNT option argument for XCLAIM"));
}

// From argv[4] on. `argv` outlives it.
ClaimTerms ReadClaim(ArgumentReader& arguments, std::span<const std::string_view> argv,
                     int64_t now_ms) {
  ClaimTerms terms;
  terms.idle_ms_min = std::max<int64_t>(
      0, arguments.TakeInteger(AnyInteger("ERR Invalid min-idle-time argument for XCLAIM")));
  EntryId id;
  while (arguments.HasMore() && ParseStreamId(argv[argv.size() - arguments.left()], {}, &id)) {
    terms.ids.push_back(id);
    arguments.Take();
  }
  while (arguments.HasMore()) {
    if (TakeClaimOption(arguments, now_ms, &terms)) continue;
    std::string error = "ERR Unrecognized XCLAIM option '";
    arguments.Fail(error.append(UntilNul(arguments.Take())).append("'"));
  }
  // One that is given, but not sound, is now.
  const bool is_sound = terms.delivered_ms >= 0 && terms.delivered_ms <= now_ms;
  if (!is_sound) terms.delivered_ms = now_ms;
  return terms;
}

class Claim final : public ClaimMutation {
 public:
  explicit Claim(CommandContext& context) : ClaimMutation(context), argv_(context.argv) {}

 private:
  // Redis reads the arguments once it has found the group.
  Change EditGroup(StreamEdit& stream, StreamGroupEdit& group) override {
    ArgumentReader arguments(argv_, 4);
    const ClaimTerms terms = ReadClaim(arguments, argv_, now_ms());
    if (!arguments.ok()) return RefuseAs(std::string(arguments.error()));
    bool changed = terms.last_id > group.head().last_id;
    if (changed) group.set_last_id(terms.last_id);
    ArrayReply reply(BeginReply());
    for (const EntryId& id : terms.ids) {
      StreamEntry entry;
      StreamPending pending;
      const bool is_there = stream.Find(id, &entry);
      const bool is_pending = group.FindPending(id, &pending);
      if (!is_there) {
        // It is gone, and waits no more.
        if (is_pending) group.Remove(pending);
        changed = changed || is_pending;
        continue;
      }
      if (is_pending ? !IsIdle(pending, now_ms(), terms.idle_ms_min) : !terms.force) continue;
      if (!is_pending) pending = {.id = id, .deliveries = 1};
      Give(group, pending, terms);
      changed = true;
      TellClaimed(reply.Next(), entry, terms.id_alone);
    }
    reply.Finish();
    return changed ? Claimed(stream, group) : Change::Keep();
  }

  void Give(StreamGroupEdit& group, StreamPending pending, const ClaimTerms& terms) {
    pending.consumer = SeeClaimer(group);
    pending.delivered_ms = terms.delivered_ms;
    if (terms.deliveries >= 0) {
      pending.deliveries = static_cast<uint64_t>(terms.deliveries);
    } else if (!terms.id_alone) {
      ++pending.deliveries;
    }
    group.Put(pending);
  }

  const std::span<const std::string_view> argv_;
};

struct AutoClaimTerms {
  int64_t idle_ms_min = 0;
  EntryId first;
  uint64_t count = 0;
  bool id_alone = false;
};

AutoClaimTerms ReadAutoClaim(ArgumentReader& arguments) {
  constexpr int64_t kCountMax = INT64_MAX / 16;
  AutoClaimTerms terms;
  terms.idle_ms_min = std::max<int64_t>(
      0, arguments.TakeInteger(AnyInteger("ERR Invalid min-idle-time argument for XAUTOCLAIM")));
  terms.first = ReadStreamRange(arguments, arguments.Take(), std::nullopt).first;
  int64_t count = 100;
  while (arguments.HasMore()) {
    const bool known =
        arguments.Integer("COUNT", &count, RangeWithError(1, kCountMax, "ERR COUNT must be > 0")) ||
        arguments.Flag("JUSTID", &terms.id_alone);
    if (!known) arguments.SyntaxError();
  }
  terms.count = static_cast<uint64_t>(count);
  return terms;
}

class AutoClaim final : public ClaimMutation {
 public:
  AutoClaim(CommandContext& context, const AutoClaimTerms& terms)
      : ClaimMutation(context), terms_(terms) {}

 private:
  Change EditGroup(StreamEdit& stream, StreamGroupEdit& group) override {
    // Redis makes room for as many at once.
    constexpr uint64_t kCountWithRoom = uint64_t{1} << 40;
    if (terms_.count > kCountWithRoom) {
      return Refuse("ERR Insufficient memory, failed allocating transient memory, COUNT too high.");
    }
    ReplyWriter& out = BeginReply();
    out.Array(3);
    OutputBuffer claimed_bytes;
    ReplyWriter claimed_out(claimed_bytes, out.protocol());
    ArrayReply claimed(claimed_out);
    std::vector<EntryId> deleted;
    EntryId next;
    ClaimIdle(stream, group, &claimed, &deleted, &next);
    const bool changed = claimed.elements() + deleted.size() > 0;
    claimed.Finish();
    ReplyStreamId(out, next);
    out.buffer().AppendAll(claimed_bytes);
    out.Array(deleted.size());
    for (const EntryId& id : deleted) ReplyStreamId(out, id);
    return changed ? Claimed(stream, group) : Change::Keep();
  }

  // `next`: where to go on, or 0-0.
  void ClaimIdle(StreamEdit& stream, StreamGroupEdit& group, ArrayReply* claimed,
                 std::vector<EntryId>* deleted, EntryId* next) {
    constexpr uint64_t kAttemptsPerEntry = 10;
    uint64_t attempts = terms_.count * kAttemptsPerEntry;
    uint64_t count = terms_.count;
    stream.WantPending(group.head().number, terms_.first,
                       std::min<uint64_t>(attempts, group.head().pending));
    StreamPendings pendings(stream, group.head().number, terms_.first);
    StreamPending pending;
    for (; attempts > 0 && count > 0 && pendings.Next(&pending); --attempts) {
      StreamEntry entry;
      if (!stream.Find(pending.id, &entry)) {
        deleted->push_back(pending.id);
        group.Remove(pending);
        --count;
        continue;
      }
      if (!IsIdle(pending, now_ms(), terms_.idle_ms_min)) continue;
      pending.consumer = SeeClaimer(group);
      pending.delivered_ms = now_ms();
      pending.deliveries += terms_.id_alone ? 0 : 1;
      group.Put(pending);
      TellClaimed(claimed->Next(), entry, terms_.id_alone);
      --count;
    }
    if (pendings.Next(&pending)) *next = pending.id;
  }

  const AutoClaimTerms& terms_;
};

}  // namespace

Task<void> XClaimCommand(CommandContext& context) {
  Claim mutation(context);
  const bool done = co_await Mutate(context, mutation);
  if (done) mutation.Reply();
}

Task<void> XAutoClaimCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 4);
  const AutoClaimTerms terms = ReadAutoClaim(arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  AutoClaim mutation(context, terms);
  const bool done = co_await Mutate(context, mutation);
  if (done) mutation.Reply();
}

}  // namespace onetrip
