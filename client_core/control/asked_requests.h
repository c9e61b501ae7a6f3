// AskedRequests: all that a process has asked the master and has no answer to yet. Private to
// control/.
//
// Pure: it sends nothing and knows no clock. One thread. An answer may ask again.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_ASKED_REQUESTS_H_
#define ONETRIP_CLIENT_CORE_CONTROL_ASKED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client_core/base/status.h"
#include "client_core/control/control_stream.h"

namespace onetrip {

class AskedRequests {
 public:
  static constexpr uint64_t kNever = ~uint64_t{0};

  AskedRequests();
  AskedRequests(const AskedRequests&) = delete;
  AskedRequests& operator=(const AskedRequests&) = delete;
  ~AskedRequests();

  [[nodiscard]] size_t size() const { return asked_.size(); }

  // Gives `request` its number and keeps it; TakeUnsent() has it next. `answer` is called once.
  void Add(const control::Request& request, uint64_t deadline_ns, ControlStream::Answer answer);
  // Hands everything that was not handed out yet to `send`, in the order of asking: from here on
  // the master may have done it.
  void TakeUnsent(const std::function<void(const control::FromMember&)>& send);

  // Calls the answer that waits for this reply; one that came too late is dropped.
  void OnReply(const control::Reply& reply);
  // Answers what is not answered at `now_ns`. `master` and `last_error` are for people.
  void OnTime(uint64_t now_ns, const std::string& master, const std::string& last_error);
  // Answers everything, or what was sent: kUnknownOutcome then, else kUnavailable.
  void Fail(bool sent_only, const char* why);

  // The earliest deadline; kNever: there is none.
  [[nodiscard]] uint64_t NextTimeNs() const;

 private:
  struct Asked;
  std::map<uint64_t, std::unique_ptr<Asked>> asked_;  // by number
  uint64_t next_ = 1;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_ASKED_REQUESTS_H_
