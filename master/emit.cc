#include "master/emit.h"

#include <utility>

namespace onetrip::master {

void Send(Effects& effects, StreamId stream, MasterMessage message) {
  effects.sends.push_back({stream, std::move(message)});
}

void Reply(Effects& effects, StreamId stream, uint64_t request, StatusCode code,
           std::string reason) {
  Send(effects, stream, ReplyMessage{request, code, std::move(reason), {}});
}

void Close(ClusterState& state, Effects& effects, StreamId stream, std::string reason) {
  state.streams.erase(stream);
  effects.closes.push_back({stream, std::move(reason)});
}

void Log(Effects& effects, LogLevel level, std::string text) {
  effects.logs.push_back({level, std::move(text)});
}

}  // namespace onetrip::master
