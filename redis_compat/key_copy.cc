#include "redis_compat/key_copy.h"

namespace onetrip {

Task<Status> ReadCopy(Kv& kv, Key key, RecordCopy* copy) {
  ReadResult result;
  const Status status = co_await kv.Get(key, &result);
  *copy = result.found() ? RecordCopy::Of(result.record()) : RecordCopy();
  co_return status;
}

}  // namespace onetrip
