// ControlConnection: one stream between a process and the master, in virtual time.
//
// Messages take a drawn latency and keep their order, each way by itself. When an end closes or its
// process dies, what it has sent still arrives, then its end does. When the connection breaks, of
// each way a prefix arrives, and either end notices in its own time: until then it takes the other
// for alive.
#ifndef ONETRIP_TESTS_SIM_CONTROL_CONNECTION_H_
#define ONETRIP_TESTS_SIM_CONTROL_CONNECTION_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>

#include "client_core/coro/sim_executor.h"
#include "master/coordinator.h"
#include "tests/sim/control_settings.h"

namespace onetrip {

// Nothing more comes.
struct ConnectionEnd {
  std::string reason;
  bool has_ended = false;  // the process behind it, and that can be told
};
// The answer to a HELLO; see Verdict in control.proto.
struct SimVerdict {
  Attendance attendance;
  bool is_proved = false;
  uint64_t cluster = 0;
  uint64_t epoch = 0;
  uint64_t life = 0;
};
using FromMemberMessage = std::variant<MemberHello, MemberMessage, ConnectionEnd>;
using FromMasterMessage = std::variant<SimVerdict, MasterMessage, ConnectionEnd>;

// Lives as long as the world: events refer to it.
class ControlConnection {
 public:
  // Both ends are called from the world's loop, and may send or close at once.
  class MasterEnd {
   public:
    virtual ~MasterEnd() = default;
    virtual void Heard(ControlConnection& connection, FromMemberMessage message) = 0;
  };
  class MemberEnd {
   public:
    virtual ~MemberEnd() = default;
    virtual void Heard(ControlConnection& connection, FromMasterMessage message) = 0;
  };

  // `id`: the stream's; `name`: of the process, for people.
  ControlConnection(SimExecutor& world, const ControlSettings& settings, StreamId id,
                    std::string name, MasterEnd& master, MemberEnd& member)
      : world_(world),
        settings_(settings),
        id_(id),
        name_(std::move(name)),
        master_(&master),
        member_(&member) {}
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  [[nodiscard]] StreamId id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns true if the master has not closed its end, nor heard of the other's.
  [[nodiscard]] bool master_open() const { return master_ != nullptr; }

  // Without effect once the sender's end is closed.
  void SendToMaster(FromMemberMessage message);
  void SendToMember(FromMasterMessage message);

  // The member's end closes, or its process is dead, which the master may see: it hears nothing any
  // more.
  void CloseMember(const std::string& reason, bool has_ended = false);
  void CloseMaster(const std::string& reason);
  // The master's process dies: of what it has sent last, some may be lost.
  void KillMaster();
  void Break();

 private:
  template <typename Message>
  struct Way {
    struct Item {
      uint64_t arrival_ns;
      Message message;
    };
    std::deque<Item> items;
    uint64_t last_arrival_ns = 0;
    bool ended = false;  // nothing more can be put on it
  };

  template <typename Message>
  void Put(Way<Message>& way, void (*arrive)(void*), Message message, uint64_t most_ns);
  template <typename Message>
  void Cut(Way<Message>& way);
  static void ArriveAtMaster(void* connection);
  static void ArriveAtMember(void* connection);

  SimExecutor& world_;
  const ControlSettings& settings_;
  const StreamId id_;
  const std::string name_;
  MasterEnd* master_;  // null: closed
  MemberEnd* member_;  // null: closed
  Way<FromMemberMessage> to_master_;
  Way<FromMasterMessage> to_member_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_CONTROL_CONNECTION_H_
