// Who may attend, on which stream, and which engines may work together.
#ifndef ONETRIP_MASTER_ATTENDANCE_H_
#define ONETRIP_MASTER_ATTENDANCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "master/state.h"

namespace onetrip::master {

// Why an agent of this engine may not work on this cluster's memory; nothing: it may.
[[nodiscard]] std::optional<std::string> RefuseEngine(const ClusterState& state,
                                                      const std::string& engine);
// True if the process that says `hello` is refused before its membership is looked at; then
// *attendance is the verdict.
bool TurnsAway(ClusterState& state, Effects& effects, const MemberHello& hello,
               Attendance* attendance);
// The verdict on an agent or a memory node. REQUIRES: TurnsAway() has said no.
Attendance AttendAsMember(ClusterState& state, Effects& effects, uint64_t now_us, StreamId stream,
                          const MemberHello& hello);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_ATTENDANCE_H_
