#include "tool/commands.h"

#include <cstdlib>
#include <limits>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

using Type = ParameterType;

template <typename Number>
Number ToNumber(const std::string& text) {
  return static_cast<Number>(std::strtoull(text.c_str(), nullptr, 10));
}

// The row of a program's parameter, for a flag of the same name and meaning.
ParameterRow Like(ParameterUser user, const char* name, const char* help) {
  const ParameterRow* row = FindParameter(user, name);
  CHECK(row != nullptr);
  ParameterRow like = *row;
  like.help = help;
  like.is_required = false;
  return like;
}

// Flags that several commands have; `Of` is the member of ToolOptions with their fields.
template <auto Of>
ToolFlag Directory(const char* help) {
  return {{.name = "dir", .type = Type::kPath, .default_text = "onetrip-cluster", .help = help},
          [](ToolOptions& options, const std::string& text) { (options.*Of).dir = text; }};
}
template <auto Of>
ToolFlag StartTimeout() {
  return {{.name = "timeout",
           .type = Type::kInteger,
           .default_text = "30",
           .unit = "s",
           .min = 1,
           .max = 3600,
           .help = "Give a start up when it has taken this long"},
          [](ToolOptions& options, const std::string& text) {
            (options.*Of).timeout_s = ToNumber<uint64_t>(text);
          }};
}
template <auto Of>
ToolFlag Password() {
  return {{.name = "password",
           .help = "The agents' password, if they have one; also from ONETRIP_PASSWORD"},
          [](ToolOptions& options, const std::string& text) { (options.*Of).password = text; }};
}
// A cluster in a directory, or any other.
template <auto Of>
std::vector<ToolFlag> WhichCluster() {
  return {
      Directory<Of>("Directory of a cluster that `onetrip up` has started"),
      {Like(kUserAgent, "master", "HOST:PORT of the master of any other cluster"),
       [](ToolOptions& options, const std::string& text) { (options.*Of).master = text; }},
      {{.name = "secret-file", .type = Type::kPath, .help = "The secret of that other cluster"},
       [](ToolOptions& options, const std::string& text) { (options.*Of).secret_file = text; }}};
}

std::vector<ToolFlag> operator+(std::vector<ToolFlag> flags, const std::vector<ToolFlag>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

ToolCommand UpCommand() {
  ToolCommand up;
  up.text = {
      .name = "up",
      .summary = "Start a cluster of processes on this host, or what is missing of one",
      .help =
          "Starts a cluster of processes on this host, or what is missing of one. The directory "
          "remembers what the cluster is made of; flags that differ from that are refused.",
      .examples = {{"Three memory nodes, two agents on ports 7000 and 7001", "onetrip up"},
                   {"A larger one, which keeps its data over restarts",
                    "onetrip up --dir big --memnodes 5 --memory 8GiB --port 6379 --persistent"}}};
  up.flags = {
      Directory<&ToolOptions::up>("Where its description, secret, logs and state go"),
      {{.name = "memnodes",
        .type = Type::kInteger,
        .default_text = "3",
        .unit = "nodes",
        .min = 1,
        .max = 64,
        .help = "Memory nodes"},
       [](ToolOptions& to, const std::string& text) { to.up.memnodes = ToNumber<uint16_t>(text); }},
      {{.name = "agents",
        .type = Type::kInteger,
        .default_text = "2",
        .unit = "agents",
        .min = 1,
        .max = 256,
        .help = "Agents, each with a port of its own"},
       [](ToolOptions& to, const std::string& text) { to.up.agents = ToNumber<uint16_t>(text); }},
      {Like(kUserMaster, "replicas",
            "Copies of every key; fewer by default where there are fewer memory nodes"),
       [](ToolOptions& to, const std::string& text) { to.up.replicas = ToNumber<uint16_t>(text); }},
      {{.name = "fabric",
        .type = Type::kChoice,
        .default_text = "shm",
        .choices = "shm|tcp|mixed|verbs",
        .help = "How agents reach memory nodes; mixed: shm and tcp in turn; verbs: RDMA"},
       [](ToolOptions& to, const std::string& text) { to.up.fabric = text; }},
      {Like(kUserAgent, "device", "RDMA device, for verbs; empty for the only one of the host"),
       [](ToolOptions& to, const std::string& text) { to.up.device = text; }},
      {Like(
           kUserAgent, "gid-index",
           "Which GID of the RDMA device's port; -1 for the first of RoCE v2 with an IPv4 address"),
       [](ToolOptions& to, const std::string& text) { to.up.gid_index = ToNumber<int16_t>(text); }},
      {{.name = "port",
        .type = Type::kInteger,
        .default_text = "7000",
        .min = 1,
        .max = 65535,
        .help = "Port of the first agent; the others follow"},
       [](ToolOptions& to, const std::string& text) { to.up.port = ToNumber<uint16_t>(text); }},
      {Like(kUserAgent, "bind", "Address that agents listen on"),
       [](ToolOptions& to, const std::string& text) { to.up.bind = text; }},
      {Like(kUserMemnode, "memory", "Memory of each memory node"),
       [](ToolOptions& to, const std::string& text) { to.up.memory = text; }},
      {Like(kUserAgent, "engine", "How agents write keys, as onetrip-agent takes it"),
       [](ToolOptions& to, const std::string& text) { to.up.engine = text; }},
      {Like(kUserAgent, "threads", "Workers of each agent"),
       [](ToolOptions& to, const std::string& text) { to.up.threads = ToNumber<uint64_t>(text); }},
      {{.name = "persistent",
        .type = Type::kSwitch,
        .help =
            "Keep the memory in files, so that the next `up` finds what `down` left; the directory "
            "remembers that"},
       [](ToolOptions& to, const std::string&) { to.up.persistent = true; }},
      StartTimeout<&ToolOptions::up>()};
  up.starts_processes = true;
  return up;
}

ToolCommand DownCommand() {
  ToolCommand down;
  down.text = {
      .name = "down",
      .summary = "Stop the cluster that `up` has started",
      .help =
          "Stops the cluster that `up` has started, and removes the files that it made; of a "
          "persistent one they stay.",
      .examples = {{"The one in ./onetrip-cluster", "onetrip down"}}};
  down.flags = {Directory<&ToolOptions::down>("Its directory"),
                {{.name = "grace-ms",
                  .type = Type::kInteger,
                  .default_text = "10000",
                  .unit = "ms",
                  .help = "Time for all agents, all memory nodes, and the master to end in order"},
                 [](ToolOptions& to, const std::string& text) {
                   to.down.grace_ms = ToNumber<uint64_t>(text);
                 }}};
  return down;
}

ToolCommand StatusCommand() {
  ToolCommand status;
  status.text = {.name = "status",
                 .summary = "Show nodes, agents, memory and speed",
                 .help =
                     "Shows nodes, agents, memory and speed. Exit code 0: it serves and nothing is "
                     "missing; 1: "
                     "degraded; 2: it does not serve, or cannot be asked.",
                 .examples = {{"Every two seconds until Ctrl-C", "onetrip status --watch"},
                              {"For programs",
                               "onetrip status --json --master 10.0.0.1:7400 --secret-file "
                               "/etc/onetrip/secret"}}};
  status.flags = WhichCluster<&ToolOptions::status>() +
                 std::vector<ToolFlag>{
                     Password<&ToolOptions::status>(),
                     {{.name = "json", .type = Type::kSwitch, .help = "Print JSON, for programs"},
                      [](ToolOptions& to, const std::string&) { to.status.json = true; }},
                     {{.name = "watch",
                       .type = Type::kInteger,
                       .unit = "s",
                       .min = 1,
                       .max = 3600,
                       .implied_text = "2",
                       .help = "Show it again at this interval until Ctrl-C"},
                      [](ToolOptions& to, const std::string& text) {
                        to.status.watch_s = ToNumber<uint64_t>(text);
                      }}};
  return status;
}

ToolCommand CheckCommand() {
  ToolCommand check;
  check.text = {
      .name = "check",
      .summary = "Count what is named in the pool, and what is wrong",
      .help =
          "Has an agent walk the whole pool of a cluster that is quiet, and counts what is named "
          "there and what is wrong. Exit code 0: nothing is; 1: something is, or nothing could be "
          "counted.",
      .examples = {{"The one in ./onetrip-cluster", "onetrip check"}}};
  check.flags =
      WhichCluster<&ToolOptions::check>() + std::vector<ToolFlag>{Password<&ToolOptions::check>()};
  return check;
}

ToolCommand RestartCommand() {
  ToolCommand restart;
  restart.text = {
      .name = "restart",
      .words = "NAME",
      .summary = "End one process of a cluster that `up` has started, and start it as it was",
      .help =
          "Ends one process of a cluster that `up` has started, and starts it as it was. NAME is "
          "its "
          "name in `onetrip status`: master, memnode-0, agent-1.",
      .examples = {{"One memory node", "onetrip restart memnode-0"}}};
  restart.flags = {
      Directory<&ToolOptions::restart>("The cluster's directory"),
      {{.name = "force",
        .type = Type::kSwitch,
        .help = "Also a memory node that holds what is on too few others, and in no file"},
       [](ToolOptions& to, const std::string&) { to.restart.force = true; }},
      StartTimeout<&ToolOptions::restart>()};
  restart.set_word = [](ToolOptions& to, const std::string& text) { to.restart.name = text; };
  restart.needs_word = true;
  restart.starts_processes = true;
  return restart;
}

void SetNode(ToolOptions& options, const std::string& text) { options.node.node = text; }

std::vector<ToolFlag> NodeFlags() {
  return WhichCluster<&ToolOptions::node>() +
         std::vector<ToolFlag>{{{.name = "no-wait",
                                 .type = Type::kSwitch,
                                 .help = "Ask for it and go; `onetrip status` shows how far it is"},
                                [](ToolOptions& to, const std::string&) { to.node.wait = false; }}};
}

ToolCommand NodeAddCommand() {
  ToolCommand add;
  add.text = {
      .name = "node add",
      .words = "[NODE]",
      .summary = "Use the memory of one more memory node",
      .help =
          "Uses a memory node's memory, while clients go on: regions are added as far as it and "
          "the "
          "others have room for them, and those move that are in the way. NODE is its number in "
          "`onetrip status`, or its name in --dir: a spare, one that was drained, or one that "
          "holds "
          "regions, if room is left for more of them. Without NODE one more is started in --dir, "
          "like the others; with --master, start onetrip-memnode there first.",
      .examples = {{"One more in ./onetrip-cluster", "onetrip node add"}}};
  add.flags =
      NodeFlags() +
      std::vector<ToolFlag>{{{.name = "spare",
                              .type = Type::kSwitch,
                              .help = "Start one more and leave it a spare, which takes the place "
                                      "of a node that is lost or "
                                      "drained"},
                             [](ToolOptions& to, const std::string&) { to.node.spare = true; }}};
  add.set_word = SetNode;
  add.starts_processes = true;
  return add;
}

ToolCommand NodeDrainCommand() {
  ToolCommand drain;
  drain.text = {
      .name = "node drain",
      .words = "NODE",
      .summary = "Give a memory node's regions to the others",
      .help =
          "Gives a memory node's regions to the others, while clients go on. If they have no room "
          "for "
          "them the capacity shrinks, as long as what is in use fits. When it has none its process "
          "is "
          "ended, if `up` or `node add` has started it and this command waits; else it may be "
          "switched off. It is given no regions until `node add` names it, or it comes with other "
          "memory. NODE is its number in `onetrip status`, or its name in --dir.",
      .examples = {{"The second one", "onetrip node drain memnode-1"}}};
  drain.flags = NodeFlags();
  drain.set_word = SetNode;
  drain.needs_word = true;
  return drain;
}

ToolCommand NodeKeepCommand() {
  ToolCommand keep;
  keep.text = {.name = "node keep",
               .words = "NODE",
               .summary = "Take back what `node add` or `node drain` asked for",
               .help =
                   "Takes back what `node add` or `node drain` asked for: the node keeps the "
                   "regions it has. "
                   "NODE is its number in `onetrip status`, or its name in --dir.",
               .examples = {}};
  keep.flags = NodeFlags();
  keep.set_word = SetNode;
  keep.needs_word = true;
  return keep;
}

ToolCommand NodeAcceptLossCommand() {
  ToolCommand accept;
  accept.text = {.name = "node accept-loss",
                 .summary = "Go on without memory nodes that are lost for good",
                 .help =
                     "Goes on without the memory nodes that are lost for good, when the cluster "
                     "waits for them "
                     "since regions have no majority of their replicas left. Says what is lost, "
                     "and does it with "
                     "--yes.",
                 .examples = {{"What would be lost", "onetrip node accept-loss"}}};
  accept.flags =
      NodeFlags() + std::vector<ToolFlag>{
                        {{.name = "yes", .type = Type::kSwitch, .help = "What it says is accepted"},
                         [](ToolOptions& to, const std::string&) { to.node.yes = true; }}};
  return accept;
}

ToolCommand MasterBackupCommand() {
  ToolCommand backup;
  backup.text = {
      .name = "master backup",
      .words = "FILE",
      .summary = "Copy the running master's state to a file",
      .help =
          "Copies the running master's master.db to FILE. A master can be started from the copy as "
          "long as nothing has happened since.",
      .examples = {{"Every night", "onetrip master backup /var/backups/onetrip.db"}}};
  backup.flags = WhichCluster<&ToolOptions::backup>();
  backup.set_word = [](ToolOptions& to, const std::string& text) { to.backup.file = text; };
  backup.needs_word = true;
  return backup;
}

ToolCommand MasterRebuildCommand() {
  ToolCommand rebuild;
  rebuild.text = {
      .name = "master rebuild",
      .summary = "Make the state of a master whose data directory is lost anew",
      .help =
          "Makes the state of a master whose data directory is lost anew, from what memory nodes "
          "and "
          "agents know, by onetrip-master rebuild. Give --listen with the master's address, "
          "--data-dir with "
          "the new directory and --secret-file; the running members come by themselves.",
      .examples = {{"At the old address",
                    "onetrip master rebuild --listen 10.0.0.1:7400 --data-dir "
                    "/var/lib/onetrip/master --secret-file /etc/onetrip/secret"}}};
  const ProgramText master_program = DescribeProgram(kUserMaster);
  for (const char* command : {"rebuild", ""}) {
    const CommandText* text = FindCommandText(master_program, command);
    CHECK(text != nullptr);
    rebuild.text.parameters.insert(rebuild.text.parameters.end(), text->parameters.begin(),
                                   text->parameters.end());
  }
  rebuild.hands_on = true;
  return rebuild;
}

constexpr const char* kPrograms[] = {"onetrip", "onetrip-agent", "onetrip-memnode",
                                     "onetrip-master"};

void SetWord(ToolOptions& options, const std::string& text) { options.word = text; }

std::vector<ToolCommand> TextCommands() {
  ToolCommand help;
  help.text = {
      .name = "help",
      .words = "[COMMAND]",
      .summary = "Explain a command, or a program of the cluster",
      .help = "Explains a command of onetrip, or onetrip-agent, onetrip-memnode or onetrip-master.",
      .examples = {{"Of a command", "onetrip help node add"},
                   {"Of a program", "onetrip help onetrip-agent"}}};
  help.hands_on = true;
  help.text.choices = {"up",   "down",   "status",     "check", "restart",
                       "node", "master", "completion", "man"};
  for (const char* program : kPrograms) help.text.choices.emplace_back(program);
  ToolCommand completion;
  completion.text = {
      .name = "completion",
      .words = "bash|zsh|fish",
      .summary = "Print a script that completes commands and flags in a shell",
      .help =
          "Prints a script that completes the commands, flags and values of all programs in a "
          "shell.",
      .examples = {
          {"In the bash that runs", "source <(onetrip completion bash)"},
          {"In every bash", "onetrip completion bash > /etc/bash_completion.d/onetrip"},
          {"In zsh", "onetrip completion zsh > \"${fpath[1]}/_onetrip\""},
          {"In fish", "onetrip completion fish > ~/.config/fish/completions/onetrip.fish"}}};
  completion.text.choices = {"bash", "zsh", "fish"};
  completion.set_word = SetWord;
  completion.needs_word = true;
  ToolCommand man;
  man.text = {
      .name = "man",
      .words = "[PROGRAM]",
      .summary = "Print a manual page",
      .help =
          "Prints the manual page of onetrip, onetrip-agent, onetrip-memnode or onetrip-master.",
      .examples = {{"To read it", "onetrip man onetrip-agent | man -l -"},
                   {"To install it",
                    "onetrip man onetrip-agent > /usr/local/share/man/man8/onetrip-agent.8"}}};
  man.text.choices.assign(std::begin(kPrograms), std::end(kPrograms));
  man.set_word = SetWord;
  return {help, completion, man};
}

std::vector<ToolCommand> MakeCommands() {
  std::vector<ToolCommand> commands = {
      UpCommand(),           DownCommand(),         StatusCommand(),
      CheckCommand(),        RestartCommand(),      NodeAddCommand(),
      NodeDrainCommand(),    NodeKeepCommand(),     NodeAcceptLossCommand(),
      MasterBackupCommand(), MasterRebuildCommand()};
  for (ToolCommand& command : TextCommands()) commands.push_back(std::move(command));
  for (ToolCommand& command : commands) {
    for (const ToolFlag& flag : command.flags) command.text.parameters.push_back(&flag.row);
  }
  return commands;
}

}  // namespace

std::span<const ToolCommand> ToolCommands() {
  static const std::vector<ToolCommand> commands = MakeCommands();
  return commands;
}

const char* UpDefault(std::string_view flag) {
  for (const ToolFlag& known : ToolCommands().front().flags) {
    if (flag == known.row.name) return known.row.default_text;
  }
  CHECK(false);
  return "";
}

ProgramText DescribeTool() {
  ProgramText tool;
  tool.name = "onetrip";
  tool.summary = "run a Onetrip cluster on this host, and see how any cluster does";
  tool.help =
      "Onetrip: Redis-compatible storage on replicated memory nodes. Starts and stops a cluster on "
      "this host, shows how any cluster does, and changes its members.";
  tool.exit_codes =
      "0 when it is done. 1 when it is not; stderr says why. Status: 1 when the cluster is "
      "degraded, 2 when it does not serve or cannot be asked.";
  for (const ToolCommand& command : ToolCommands()) tool.commands.push_back(command.text);
  return tool;
}

}  // namespace onetrip
