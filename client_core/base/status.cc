#include "client_core/base/status.h"

namespace onetrip {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kUnknownOutcome:
      return "unknown outcome";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kTooLarge:
      return "too large";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kFenced:
      return "fenced";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace onetrip
