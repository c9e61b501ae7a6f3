// onetrip: for people: a cluster on this host, and what any cluster is doing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "client_core/base/version.h"
#include "tool/check.h"
#include "tool/master.h"
#include "tool/node.h"
#include "tool/status.h"
#include "tool/up.h"

namespace onetrip {
namespace {

constexpr int kNotServing = static_cast<int>(Service::kNotServing);

int Fail(const std::string& command, const std::string& reason) {
  std::fprintf(stderr, "onetrip %s: %s\n", command.c_str(), reason.c_str());
  return 1;
}

void AddUp(CLI::App& app, UpOptions* options) {
  CLI::App* up =
      app.add_subcommand("up",
                         "Start a cluster of processes on this host, or what is missing of one. "
                         "The directory remembers "
                         "what the cluster is made of; options that differ from that are refused");
  up->add_option("--dir", options->dir, "Where its description, secret, logs and state go")
      ->capture_default_str();
  up->add_option("--memnodes", options->memnodes, "Memory nodes; 3 by default")
      ->check(CLI::Range(1, 64));
  up->add_option("--agents", options->agents, "Agents, each with a port of its own; 2 by default")
      ->check(CLI::Range(1, 256));
  up->add_option("--replicas", options->replicas,
                 "Copies of every key; by default 3, or as many as there are memory nodes")
      ->check(CLI::Range(1, 5));
  up->add_option("--fabric", options->fabric,
                 "How agents reach memory nodes: shm (the default), tcp, or mixed, where they take "
                 "turns")
      ->check(CLI::IsMember({"shm", "tcp", "mixed"}));
  up->add_option("--port", options->port,
                 "Port of the first agent, the others follow; 7000 by default")
      ->check(CLI::Range(1, 65535));
  up->add_option("--bind", options->bind, "Address that agents listen on; 127.0.0.1 by default");
  up->add_option("--memory", options->memory,
                 "Memory of each memory node, such as 512MiB; 1GiB by default");
  up->add_option("--engine", options->engine, "The agents' engine, as onetrip-agent takes it");
  up->add_option("--threads", options->threads, "Workers of each agent; 1 by default")
      ->check(CLI::Range(1, 64));
  up->add_flag("--persistent", options->persistent,
               "Keep the memory in files, so that the next `up` finds what `down` left; the "
               "directory remembers that");
  up->add_option("--timeout", options->timeout_s, "Seconds until the start counts as failed")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

void AddDown(CLI::App& app, DownOptions* options) {
  CLI::App* down = app.add_subcommand(
      "down",
      "Stop the cluster that `up` has started, and remove the files that it made; of a persistent "
      "one they stay");
  down->add_option("--dir", options->dir, "Its directory")->capture_default_str();
  down->add_option("--grace-ms", options->grace_ms,
                   "Time for all agents, all memory nodes, and the master to end in order")
      ->capture_default_str();
}

void AddRestart(CLI::App& app, RestartOptions* options) {
  CLI::App* restart = app.add_subcommand(
      "restart", "End one process of a cluster that `up` has started, and start it as it was");
  restart
      ->add_option("name", options->name,
                   "Its name in `onetrip status`: master, memnode-0, agent-1")
      ->required();
  restart->add_option("--dir", options->dir, "The cluster's directory")->capture_default_str();
  restart->add_flag("--force", options->force,
                    "Also a memory node that holds what is on too few others, and in no file");
  restart->add_option("--timeout", options->timeout_s, "Seconds until the start counts as failed")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

void AddStatus(CLI::App& app, StatusOptions* options) {
  CLI::App* status =
      app.add_subcommand("status",
                         "Show nodes, agents, memory and speed. Exit code 0: it serves and "
                         "nothing is missing; 1: degraded; 2: it does not "
                         "serve, or cannot be asked");
  CLI::Option* dir =
      status->add_option("--dir", options->dir, "Directory of a cluster that `up` has started")
          ->capture_default_str();
  status->add_option("--master", options->master, "HOST:PORT of the master of any other cluster")
      ->excludes(dir);
  status->add_option("--secret-file", options->secret_file, "That cluster's secret");
  status->add_option("--password", options->password, "The agents' password, if they have one")
      ->envname("ONETRIP_PASSWORD");
  status->add_flag("--json", options->json, "For programs");
  status
      ->add_option("--watch", options->watch_s,
                   "Show it again every so many seconds (2 by default) until Ctrl-C")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(1, 3600));
}

void AddCheck(CLI::App& app, CheckOptions* options) {
  CLI::App* check = app.add_subcommand(
      "check",
      "Have an agent walk the whole pool of a cluster that is quiet, and count what is named there "
      "and what is wrong. Exit code 0: nothing is; 1: something is, or nothing could be counted");
  CLI::Option* dir =
      check->add_option("--dir", options->dir, "Directory of a cluster that `up` has started")
          ->capture_default_str();
  check->add_option("--master", options->master, "HOST:PORT of the master of any other cluster")
      ->excludes(dir);
  check->add_option("--secret-file", options->secret_file, "That cluster's secret");
  check->add_option("--password", options->password, "The agents' password, if they have one")
      ->envname("ONETRIP_PASSWORD");
}

// What both commands about one memory node take.
void AddNodeOptions(CLI::App* command, NodeOptions* options) {
  CLI::Option* dir =
      command->add_option("--dir", options->dir, "Directory of a cluster that `up` has started")
          ->capture_default_str();
  command->add_option("--master", options->master, "HOST:PORT of the master of any other cluster")
      ->excludes(dir);
  command->add_option("--secret-file", options->secret_file, "That cluster's secret");
  command->add_flag("!--no-wait", options->wait,
                    "Ask for it and go; `onetrip status` shows how far it is");
}

void AddNodeCommands(CLI::App& app, NodeOptions* options) {
  CLI::App* node = app.add_subcommand("node", "Add memory nodes to a cluster, or drain them");
  node->require_subcommand(1);
  CLI::App* add = node->add_subcommand(
      "add",
      "Use a memory node's memory, while clients go on: regions are added as far as it and the "
      "others have room for them, and those move that are in the way. Without a number one more is "
      "started in --dir, like the others; with --master, start onetrip-memnode there first");
  add->add_option("node", options->node,
                  "Its number in `onetrip status`, or its name in --dir: a spare, one that was "
                  "drained, or one that holds regions, if room is left for more of them");
  add->add_flag("--spare", options->spare,
                "Start one more and leave it a spare, which takes the place of a node that is lost "
                "or drained");
  AddNodeOptions(add, options);
  CLI::App* drain = node->add_subcommand(
      "drain",
      "Give a memory node's regions to the others, while clients go on. If they have no room for "
      "them the capacity shrinks, as long as what is in use fits. When it has none its "
      "process "
      "is ended, if `up` or `node add` has started it and this command waits; else it may be "
      "switched off. It is given no regions until `node add` names it, or it comes with other "
      "memory");
  drain->add_option("node", options->node, "Its number in `onetrip status`, or its name in --dir")
      ->required();
  AddNodeOptions(drain, options);
  CLI::App* keep = node->add_subcommand(
      "keep", "Take back what `node add` or `node drain` asked for: it keeps the regions it has");
  keep->add_option("node", options->node, "Its number in `onetrip status`, or its name in --dir")
      ->required();
  AddNodeOptions(keep, options);
  CLI::App* accept = node->add_subcommand(
      "accept-loss",
      "Go on without the memory nodes that are lost for good, when the cluster waits for them "
      "since "
      "regions have no majority of their replicas left. Says what is lost, and does it with --yes");
  accept->add_flag("--yes", options->yes, "What it says is accepted");
  AddNodeOptions(accept, options);
}

void AddMasterCommands(CLI::App& app, BackupOptions* options) {
  CLI::App* master = app.add_subcommand("master", "Back up the master's state, or make it anew");
  master->require_subcommand(1);
  CLI::App* backup = master->add_subcommand("backup",
                                            "Copy the running master's master.db to a file, which "
                                            "a master can be started from as long as "
                                            "nothing has happened since");
  backup->add_option("file", options->file, "Where the copy goes")->required();
  CLI::Option* dir =
      backup->add_option("--dir", options->dir, "Directory of a cluster that `up` has started")
          ->capture_default_str();
  backup->add_option("--master", options->master, "HOST:PORT of the master of any other cluster")
      ->excludes(dir);
  backup->add_option("--secret-file", options->secret_file, "That cluster's secret");
  CLI::App* rebuild = master->add_subcommand(
      "rebuild",
      "Make the state of a master whose data directory is lost anew, from what memory nodes and "
      "agents know. Give --listen with the master's address, --data-dir with the new directory and "
      "--secret-file as to onetrip-master; the running members come by themselves. --state FILE, "
      "any number of times, names the IMAGE.state beside the image of a memory node that does not "
      "run; --wait-s N (30) is how long those are waited for who have not answered; --force goes "
      "on with what too few memory nodes know");
  rebuild->prefix_command();
}

int Run(int argc, char** argv) {
  CLI::App app{"Onetrip: Redis-compatible storage on replicated memory nodes", "onetrip"};
  app.set_version_flag("--version", "onetrip " ONETRIP_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  UpOptions up;
  DownOptions down;
  StatusOptions status;
  AddUp(app, &up);
  AddDown(app, &down);
  AddStatus(app, &status);
  CheckOptions check;
  AddCheck(app, &check);
  RestartOptions restart;
  AddRestart(app, &restart);
  NodeOptions node;
  AddNodeCommands(app, &node);
  BackupOptions backup;
  AddMasterCommands(app, &backup);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "onetrip: %s; see onetrip --help\n", error.what());
    // Whoever asks how a cluster does must not take this for an answer.
    return argc > 1 && std::string(argv[1]) == "status" ? kNotServing : 1;
  }
  std::string reason;
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "up") {
    if (!Up(up, &reason).ok()) return Fail(command, reason);
  } else if (command == "down") {
    if (!Down(down, &reason).ok()) return Fail(command, reason);
  } else if (command == "node") {
    const std::string what = app.get_subcommands().front()->get_subcommands().front()->get_name();
    const auto run = what == "add"           ? AddNode
                     : what == "drain"       ? DrainNode
                     : what == "accept-loss" ? AcceptLoss
                                             : KeepNode;
    const bool ok = run(node, &reason).ok();
    if (!ok) return Fail("node " + what, reason);
  } else if (command == "master") {
    const CLI::App* const what = app.get_subcommands().front()->get_subcommands().front();
    const bool ok = what->get_name() == "backup" ? BackUpMaster(backup, &reason).ok()
                                                 : RebuildMaster(what->remaining(), &reason).ok();
    if (!ok) return Fail("master " + what->get_name(), reason);
  } else if (command == "check") {
    const Result<bool> sound = CheckPool(check, &reason);
    if (!sound.ok()) return Fail(command, reason);
    return *sound ? 0 : 1;
  } else if (command == "restart") {
    if (!Restart(restart, &reason).ok()) return Fail(command, reason);
  } else {
    const Result<Service> service = ShowStatus(status, &reason);
    if (service.ok()) return static_cast<int>(*service);
    Fail(command, reason);
    return kNotServing;
  }
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Run(argc, argv); }
