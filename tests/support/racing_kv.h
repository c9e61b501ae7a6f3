// RacingKv: a store on which another client is faster, `races` times.
#ifndef ONETRIP_TESTS_SUPPORT_RACING_KV_H_
#define ONETRIP_TESTS_SUPPORT_RACING_KV_H_

#include <string>

#include "client_core/store/forwarding_store.h"

namespace onetrip {

// Right behind each of the first `races` reads of a key by itself, another client writes `value` to
// it.
class RacingKv final : public ForwardingKv {
 public:
  RacingKv(Kv& store, int races, std::string value)
      : ForwardingKv(store), races_(races), value_(std::move(value)) {}

  Task<Status> Get(Key key, ReadResult* result) override {
    const Status status = co_await store_.Get(key, result);
    if (races_ <= 0) co_return status;
    --races_;
    co_return co_await store_.Set(key, {.head = value_});
  }
  bool GetFast(Key /*key*/, ReadResult* /*result*/) override { return false; }

 private:
  int races_;
  const std::string value_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_RACING_KV_H_
