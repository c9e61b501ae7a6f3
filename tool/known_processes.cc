#include "tool/known_processes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "client_core/base/host_id.h"

namespace onetrip {
namespace {

// The first unnamed member that fits.
template <typename Member, typename Fits>
Member* FindUnnamed(std::vector<Member>& members, const Fits& fits) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return member.name.empty() && fits(member);
  });
  return found == members.end() ? nullptr : &*found;
}

// Gives each process that has no member yet the first one that fits it.
template <typename Member, typename Fits>
void NameBy(const std::vector<ProcessRecord>& processes, std::vector<Member>& members,
            const Fits& fits) {
  for (const ProcessRecord& process : processes) {
    const bool has_one = std::any_of(members.begin(), members.end(), [&](const Member& member) {
      return member.name == process.name;
    });
    if (has_one) continue;
    Member* const member =
        FindUnnamed(members, [&](const Member& one) { return fits(process, one); });
    if (member != nullptr) member->name = process.name;
  }
}

template <typename Member>
bool IsMember(const ProcessRecord& process, const std::vector<Member>& members) {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.name == process.name; });
}

MemnodeOverview MemnodeRow(const ProcessRecord& process, bool runs, const char* running) {
  MemnodeOverview row;
  row.name = process.name;
  row.node = process.node;
  row.pid = runs ? static_cast<uint64_t>(process.pid) : 0;
  row.address = process.address;
  row.state = runs ? running : "missing";
  return row;
}

AgentOverview AgentRow(const ProcessRecord& process, bool runs, const char* running) {
  AgentOverview row;
  row.name = process.name;
  row.pid = runs ? static_cast<uint64_t>(process.pid) : 0;
  row.address = process.address;
  row.state = runs ? running : "missing";
  return row;
}

}  // namespace

void NameMembers(const ClusterRecord& record, const ProcessQuestions& ask, Overview* overview) {
  auto& memnodes = overview->memnodes;
  auto& agents = overview->agents;
  const auto has_pid = [&](const ProcessRecord& process, const auto& member) {
    return member.host == ask.host && process.pid > 0 &&
           member.pid == static_cast<uint64_t>(process.pid);
  };
  NameBy(record.memnodes, memnodes, has_pid);
  NameBy(record.agents, agents, has_pid);
  // Started again by hand: the command line tells.
  NameBy(record.memnodes, memnodes, [&](const ProcessRecord& process, const MemnodeOverview& one) {
    return one.host == ask.host && ask.socket_of(one.pid) == ask.socket(process.number);
  });
  NameBy(record.agents, agents, [&](const ProcessRecord& process, const AgentOverview& one) {
    return one.host == ask.host && one.address == process.address;
  });
  // One that is gone, and that the master still expects.
  NameBy(record.memnodes, memnodes, [](const ProcessRecord& process, const MemnodeOverview& one) {
    return process.node.has_value() && one.node == process.node;
  });
  for (const ProcessRecord& process : record.memnodes) {
    if (IsMember(process, memnodes)) continue;
    MemnodeOverview row = MemnodeRow(process, ask.is_running(process), "starting");
    // The number may be another's by now.
    row.node.reset();
    memnodes.push_back(std::move(row));
  }
  for (const ProcessRecord& process : record.agents) {
    if (IsMember(process, agents)) continue;
    agents.push_back(AgentRow(process, ask.is_running(process), "starting"));
  }
}

void ListProcesses(const ClusterRecord& record, const ProcessQuestions& ask, Overview* overview) {
  overview->replicas = record.shape.replicas;
  overview->master.pid =
      ask.is_running(record.master) ? static_cast<uint64_t>(record.master.pid) : 0;
  overview->master.state = overview->master.pid != 0 ? "away" : "down";
  for (const ProcessRecord& process : record.memnodes) {
    overview->memnodes.push_back(MemnodeRow(process, ask.is_running(process), "running"));
  }
  for (const ProcessRecord& process : record.agents) {
    overview->agents.push_back(AgentRow(process, ask.is_running(process), "running"));
  }
}

ProcessQuestions SystemQuestions(const std::string& dir) {
  const std::string absolute = std::filesystem::absolute(dir).lexically_normal().string();
  ProcessQuestions ask;
  ask.host = HostName();
  ask.is_running = IsRunning;
  ask.socket_of = [](uint64_t pid) -> std::string {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    std::string word;
    while (std::getline(file, word, '\0')) {
      if (word == "--socket" && std::getline(file, word, '\0')) return word;
    }
    return {};
  };
  ask.socket = [absolute](size_t number) {
    return absolute + "/run/node-" + std::to_string(number) + ".sock";
  };
  return ask;
}

}  // namespace onetrip
