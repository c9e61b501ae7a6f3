#include "redis_compat/commands/streams/stream_trim_terms.h"

#include <algorithm>

#include "redis_compat/commands/streams/stream_terms.h"

namespace onetrip {
namespace {

// No more entries than those of this many nodes go by "~", unless LIMIT says otherwise.
constexpr uint64_t kNodesMax = 100;
constexpr uint64_t kEntriesMax = 1'000'000;
constexpr uint64_t kEntriesOfAnyNodes = 10'000;

uint64_t UsualLimit(uint64_t node_entries) {
  if (node_entries == 0) return kEntriesOfAnyNodes;
  return std::min(kNodesMax * std::min(node_entries, kEntriesMax), kEntriesMax);
}

}  // namespace

bool TrimOptions::Take(ArgumentReader& arguments) {
  if (arguments.Word("MAXLEN", 1)) {
    BeginWith(arguments, StreamTrim::By::kLength);
    trim_.length = static_cast<uint64_t>(
        arguments.TakeInteger({.min = 0, .out_of_range = "ERR The MAXLEN argument must be >= 0."}));
  } else if (arguments.Word("MINID", 1)) {
    BeginWith(arguments, StreamTrim::By::kId);
    trim_.id = ReadStreamId(arguments, arguments.Take());
  } else if (arguments.Word("LIMIT", 1)) {
    trim_.limit = static_cast<uint64_t>(
        arguments.TakeInteger({.min = 0, .out_of_range = "ERR The LIMIT argument must be >= 0."}));
    has_limit_ = true;
  } else {
    return false;
  }
  return true;
}

void TrimOptions::BeginWith(ArgumentReader& arguments, StreamTrim::By by) {
  arguments.Require(trim_.by == StreamTrim::By::kNothing,
                    "ERR syntax error, MAXLEN and MINID options at the same time are not "
                    "compatible");
  trim_.by = by;
  trim_.whole_nodes = arguments.Word("~", 1);
  if (!trim_.whole_nodes) arguments.Word("=", 1);
}

StreamTrim TrimOptions::Finish(ArgumentReader& arguments, bool must_trim,
                               const StreamNodeLimits& limits) {
  const bool trims = trim_.by != StreamTrim::By::kNothing;
  arguments.Require(
      trims || trim_.limit == 0,
      "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  arguments.Require(trims || !must_trim,
                    "ERR syntax error, XTRIM must be called with a trimming strategy");
  arguments.Require(!has_limit_ || trim_.whole_nodes,
                    "ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (trim_.whole_nodes && !has_limit_) trim_.limit = UsualLimit(limits.entries);
  return trim_;
}

}  // namespace onetrip
