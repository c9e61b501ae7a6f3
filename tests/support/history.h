// The record of what clients saw: commands as they sent them, replies as they got them, and when.
//
// One common order of all starts and ends decides which operation came before which; true time
// (virtual in a simulation) decides what may have expired. What the end of an operation means is
// read off its reply by a pure function, so that every harness judges alike. A History belongs to
// one thread.
#ifndef ONETRIP_TESTS_SUPPORT_HISTORY_H_
#define ONETRIP_TESTS_SUPPORT_HISTORY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetrip {

using Command = std::vector<std::string>;

enum class Ending : uint8_t {
  kAnswered,    // The reply is what the command did.
  kUnknown,     // May take effect at any time after its start, even after the reply, or never.
  kNotApplied,  // Surely without effect.
  kFault,       // A reply that no fault excuses (damaged data, an internal error): the run failed.
};

struct HistoryOp {
  static constexpr uint64_t kNever = ~uint64_t{0};

  Command argv;
  std::string reply;  // RESP2; empty: none came
  uint32_t client = 0;
  uint32_t database = 0;  // or 1: the other one
  uint64_t start = 0;     // a position in the common order of all starts and ends
  uint64_t end = kNever;
  uint64_t start_ns = 0;  // on true time
  uint64_t end_ns = kNever;
  Ending ending = Ending::kUnknown;
};

// Tells what `reply` (RESP2, empty for a lost connection or a dead agent) says about `argv`. A
// write to several keys that ran out of memory or met a limit may have written some of them before.
Ending ClassifyReply(const Command& argv, std::string_view reply);

// The name of a command, which is not case-sensitive, in lower case.
std::string CommandName(const Command& argv);

// A command that leaves its keys as they are, whatever the reply.
bool IsReadOnly(const Command& argv);

// Records one run. Positions are handed out in the order of the calls.
class History {
 public:
  // The command is about to be sent. Returns its index.
  size_t Start(uint32_t client, Command argv, uint64_t now_ns, uint32_t database = 0);

  // The reply has arrived whole. REQUIRES: no reply was given for `index` before. An operation for
  // which this is never called stays kUnknown.
  void Finish(size_t index, std::string reply, uint64_t now_ns);

  [[nodiscard]] const std::vector<HistoryOp>& ops() const { return ops_; }
  // The position that the next event gets.
  [[nodiscard]] uint64_t position() const { return position_; }
  void Clear();

 private:
  std::vector<HistoryOp> ops_;
  uint64_t position_ = 0;
};

// One operation on one line, without a line end; long values are cut.
std::string DescribeOp(const HistoryOp& op);

// The timeline: one line an operation, in the order of their starts.
std::string DescribeHistory(const std::vector<HistoryOp>& ops);

// `bytes` in double quotes, everything unprintable escaped as redis-cli does; after `bytes_max`
// bytes the rest is replaced by its size.
std::string Quote(std::string_view bytes, size_t bytes_max = ~size_t{0});

// RESP2 replies.
inline constexpr std::string_view kRespOk = "+OK\r\n";
inline constexpr std::string_view kRespNil = "$-1\r\n";
inline constexpr std::string_view kRespNullArray = "*-1\r\n";
std::string RespInteger(int64_t value);
std::string RespBulk(std::string_view value);
// `message` starts with its error word, without the dash.
std::string RespError(std::string_view message);
std::string RespArray(const std::vector<std::string>& elements);

// The elements of a RESP2 array reply, each in RESP2. False if it is none, or not well-formed.
bool SplitArray(std::string_view reply, std::vector<std::string>* elements);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_HISTORY_H_
