// The options by which XADD and XTRIM say what goes from a stream.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TRIM_TERMS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TRIM_TERMS_H_

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/values/stream_edit.h"

namespace onetrip {

class TrimOptions {
 public:
  // Takes one option. False: none comes next.
  bool Take(ArgumentReader& arguments);
  // Checks them together, once all were taken. `must_trim`: they say that something goes.
  StreamTrim Finish(ArgumentReader& arguments, bool must_trim, const StreamNodeLimits& limits);

 private:
  void BeginWith(ArgumentReader& arguments, StreamTrim::By by);

  StreamTrim trim_;
  bool has_limit_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TRIM_TERMS_H_
