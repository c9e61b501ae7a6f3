// SessionLoop: where a session thread waits: for gRPC's events, for what other threads post, and
// for a time. Private to control/. gRPC stays in session_loop.cc.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_SESSION_LOOP_H_
#define ONETRIP_CLIENT_CORE_CONTROL_SESSION_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace grpc {
class CompletionQueue;
}  // namespace grpc

namespace onetrip {

class SessionLoop {
 public:
  // gRPC says that an operation that was begun with this tag has ended.
  using EventFn = std::function<void(void* tag, bool ok)>;

  SessionLoop();
  SessionLoop(const SessionLoop&) = delete;
  SessionLoop& operator=(const SessionLoop&) = delete;
  ~SessionLoop();

  // `fn` runs in the session thread's next turn. False after Close(), and nothing is done. Any
  // thread.
  bool Post(std::function<void()> fn);

  // The rest belongs to the session thread.

  [[nodiscard]] grpc::CompletionQueue* queue();
  void RunPosted();
  // Waits for one event, something posted, or the time.
  void Wait(uint64_t wait_ns, const EventFn& on_event);
  // Nothing more is taken; what was taken can still be run.
  void Close();
  // Takes the last events for `wait_ns` at most. False: gRPC has not given back all of them; the
  // queue stays its own, and so must what the events would name.
  bool End(uint64_t wait_ns, const EventFn& on_event);

 private:
  struct Grpc;
  const std::unique_ptr<Grpc> grpc_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::function<void()>> posted_;
  bool closed_ = false;
  bool alarm_set_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_SESSION_LOOP_H_
