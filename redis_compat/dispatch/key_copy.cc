#include "redis_compat/dispatch/key_copy.h"

namespace onetrip {

Task<Status> ReadCopy(Kv& kv, Key key, RecordCopy* copy) {
  *copy = RecordCopy();
  ReadResult result;
  const Status status = co_await kv.Get(key, &result);
  if (result.found()) {
    RecordView record = result.record();
    if (result.holder() != nullptr) record.holder = &result.holder();
    *copy = RecordCopy::Of(record);
    copy->is_register = result.shape().lanes > 0;
  }
  co_return status;
}

}  // namespace onetrip
