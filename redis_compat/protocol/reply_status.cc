#include "redis_compat/protocol/reply_status.h"

#include "client_core/base/check.h"
#include "client_core/layout/record.h"

namespace onetrip {
namespace {

constexpr char kTryAgain[] = "TRYAGAIN The operation was not executed; the cluster was busy";
constexpr char kUnknown[] = "UNKNOWN The operation may or may not have been executed";
constexpr char kPartly[] = "UNKNOWN The operation was executed for some of the keys only";

}  // namespace

void ReplyStatus(ReplyWriter& out, Status status, StorageStep step) {
  CHECK(!status.ok());
  switch (status.code()) {
    case StatusCode::kOutOfMemory:
      // A refusal would deny what the command has done to its first keys.
      if (step == StorageStep::kLaterWrite) return out.Error(kPartly);
      return out.Error(kOomError);
    case StatusCode::kTooLarge:
      return out.Error(step == StorageStep::kLaterWrite ? kPartly : kTooLongError);
    case StatusCode::kUnknownOutcome:
      return out.Error(step == StorageStep::kRead ? kTryAgain : kUnknown);
    case StatusCode::kUnavailable:
      return out.Error(step == StorageStep::kLaterWrite ? kPartly : kTryAgain);
    case StatusCode::kFenced:
      // Nothing was sent, but this agent will not serve again: no word that asks to repeat.
      return out.Error(step == StorageStep::kLaterWrite
                           ? kPartly
                           : "ERR The agent has lost its lease; the operation was not executed");
    case StatusCode::kCorrupt:
      return out.Error("ERR The stored data of this key is damaged");
    case StatusCode::kInvalidArgument:
      return out.Error("ERR invalid argument");
    case StatusCode::kOk:
    case StatusCode::kNotFound:
    case StatusCode::kInternal:
      break;
  }
  out.Error("ERR internal error");
}

void ReplyWriteFailure(ReplyWriter& out, size_t key_bytes, Status status, StorageStep step) {
  if (status.code() == StatusCode::kTooLarge && key_bytes > kMaxKeyBytes &&
      step != StorageStep::kLaterWrite) {
    return out.Error("ERR key exceeds maximum allowed size");
  }
  ReplyStatus(out, status, step);
}

}  // namespace onetrip
