// Status and Result: how an expected failure travels.
//
// A Status is two words, never allocates and is cheap to return from every operation of the data
// path; its message is a string literal. Programmer errors are not Statuses: see check.h.
#ifndef ONETRIP_CLIENT_CORE_BASE_STATUS_H_
#define ONETRIP_CLIENT_CORE_BASE_STATUS_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "client_core/base/check.h"

namespace onetrip {

enum class StatusCode : uint8_t {
  kOk,
  kNotFound,
  kUnavailable,     // Surely not applied: refused or never sent.
  kUnknownOutcome,  // Sent, not confirmed: may take effect, now or later.
  kOutOfMemory,     // Nothing was applied; reads and deletes still work.
  kTooLarge,        // Key or value above a documented limit.
  kInvalidArgument,
  kFenced,   // The lease ran out or the cluster expelled this worker.
  kCorrupt,  // Bytes of remote memory that no correct writer wrote.
  kInternal,
};

// The code's name in lower case, for messages: "out of memory".
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  // `message` must be a string literal (or live as long as the process).
  constexpr explicit Status(StatusCode code, const char* message = "")
      : message_(message), code_(code) {}

  static constexpr Status Ok() { return Status(); }

  [[nodiscard]] constexpr bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] constexpr StatusCode code() const { return code_; }
  [[nodiscard]] constexpr const char* message() const { return message_; }

  friend constexpr bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_; }

 private:
  const char* message_ = "";
  StatusCode code_ = StatusCode::kOk;
};

// A value or the Status that explains its absence. REQUIRES: T is default constructible and
// movable.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(status) {      // NOLINT(google-explicit-constructor)
    CHECK(!status.ok());
  }

  [[nodiscard]] bool ok() const { return status_.ok(); }
  [[nodiscard]] const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& value() {
    CHECK(ok());
    return value_;
  }
  const T& value() const {
    CHECK(ok());
    return value_;
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }

 private:
  T value_{};
  Status status_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_STATUS_H_
