// The arguments of XREAD and XREADGROUP.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_READ_TERMS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_READ_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

struct StreamReadTerms {
  uint64_t count = 0;  // entries of each stream; 0: all
  bool waits = false;
  bool no_ack = false;
  std::optional<std::string_view> group;
  std::string_view consumer;
  // Keys are argv[first_key] and so on; their ids are as far behind as there are keys.
  size_t first_key = 0;
  size_t keys = 0;
};

// `for_group`: XREADGROUP.
StreamReadTerms ReadStreamReadTerms(CommandContext& context, ArgumentReader& arguments,
                                    bool for_group);

// Answers with streams and what was read from each, or that there was nothing.
class StreamReadReply {
 public:
  // Both outlive it.
  StreamReadReply(CommandContext& context, const StreamReadTerms& terms)
      : context_(context), terms_(terms), out_(buffer_, context.out.protocol()) {}
  // Where the entries of a stream, as one array, are to be written.
  ReplyWriter& Next(std::string_view key);
  // False: there was nothing.
  [[nodiscard]] bool has_any() const { return streams_ > 0; }
  void Finish();

 private:
  CommandContext& context_;
  const StreamReadTerms& terms_;
  OutputBuffer buffer_;
  ReplyWriter out_;
  size_t streams_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_READ_TERMS_H_
