"""A master or a memory node that is not there at start: which address, tried for how long, exit
code 1; and whoever comes late is found."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from local_cluster import is_gone, wait_until
from refusals import run
from registry import test


def one_line(output):
    """The program's own word; other lines are the log's."""
    lines = [line for line in output.splitlines() if line.startswith("onetrip-")]
    assert len(lines) == 1, output
    return lines[0]


def attempts_in(line):
    found = re.search(r"\((\d+) attempts", line)
    assert found, "no number of attempts: " + line
    return int(found.group(1))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def environment(**values):
    """For processes that `onetrip up` starts."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]


def agent_like(cluster, *changes):
    """The command line of another agent of the cluster, without a port."""
    command = cluster.command_line("agent-0")
    command[command.index("--port") + 1] = "0"
    return command + ["--unixsocket", os.path.join(cluster.directory, "extra.sock")] + list(changes)


@test("no master: the address, the attempts in growing steps, exit code 1")
def no_master(context):
    for command in (["onetrip-agent", "--port", "0"], ["onetrip-memnode", "--memory", "64MiB"]):
        began = time.monotonic()
        code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:]
                           + ["--master", "127.0.0.1:1", "--connect-timeout-ms", "700"])
        line = one_line(output)
        assert code == 1 and line.startswith(command[0] + ": "), output
        assert "the master at 127.0.0.1:1 cannot be reached" in line, line
        assert "in 700 ms" in line, line
        # Steps of 10 ms, doubling, each shortened by half at most: more than nine do not fit in.
        assert 2 <= attempts_in(line) <= 9, line
        assert time.monotonic() - began >= 0.7
        # The same reason again and again is logged once.
        assert output.count("trying again") <= 2, output


@test("something that is no master: it is told apart from one that is not there")
def no_master_but_somebody(context):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = "127.0.0.1:%d" % mute.getsockname()[1]
        for command in (["onetrip-agent", "--port", "0"], ["onetrip-memnode", "--memory", "64MiB"]):
            code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:]
                               + ["--master", address, "--connect-timeout-ms", "700"])
            line = one_line(output)
            assert code == 1 and address in line and "no answer" in line, output


@test("a master that comes late is found by all who wait for it")
def late_master(context):
    directory = tempfile.mkdtemp(prefix="onetrip_late.")
    port = free_port()
    processes = []

    def start(name, *arguments):
        log = os.path.join(directory, "%s-%d.log" % (name, len(processes)))
        with open(log, "wb") as file:
            process = subprocess.Popen([os.path.join(context.bin_dir, name)] + list(arguments),
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        processes.append(process)
        return process, log

    def says(log, word):
        with open(log, errors="replace") as file:
            return word in file.read()

    try:
        master = "127.0.0.1:%d" % port
        waiting = [start("onetrip-memnode", "--memory", "64MiB", "--fabric", "tcp", "--master",
                         master, "--connect-timeout-ms", "60000") for _ in range(3)]
        waiting.append(start("onetrip-agent", "--port", "0", "--unixsocket",
                             os.path.join(directory, "agent.sock"), "--fabric", "tcp", "--master",
                             master, "--connect-timeout-ms", "60000"))
        for _, log in waiting:
            wait_until(lambda log=log: says(log, "trying again"), "%s waits" % log)
        start("onetrip-master", "--listen", master, "--data-dir", os.path.join(directory, "m"))
        for process, log in waiting:
            wait_until(lambda log=log: says(log, " is ready: "), "%s is ready" % log)
            assert process.poll() is None
    finally:
        # In this order no process waits for another: agent, memory nodes, master.
        for process in processes[3:4] + processes[:3] + processes[4:]:
            process.terminate()
            process.wait(timeout=20)
        shutil.rmtree(directory, ignore_errors=True)


@test("shm: a memory node whose socket is gone: its path, how long it was tried, exit code 1")
def no_node_over_shm(context):
    with context.cluster(fabric="shm") as cluster:
        path = os.path.join(cluster.path, "run", "node-1.sock")
        hidden = path + ".hidden"
        command = agent_like(cluster, "--connect-timeout-ms", "500")
        os.rename(path, hidden)
        code, output = run(command)
        line = one_line(output)
        assert code == 1 and "memory node" in line and path in line, output
        assert "(tried for 500 ms)" in line, line
        os.rename(hidden, path)
        # Nothing is left of the attempt: the others work, and its place can be taken.
        with cluster.connect() as client:
            assert client.call("SET", "k", "v").value == b"OK"
            assert client.call("FLUSHALL").value == b"OK"


@test("tcp: a memory node that does not answer: its address, for how long, exit code 1")
def no_node_over_tcp(context):
    # Its lease must not run out meanwhile.
    with environment(ONETRIP_LEASE_MS="60000"), context.cluster(fabric="tcp") as cluster:
        host, _, port = cluster.processes()["memnode-1"]["address"].rpartition(":")
        cluster.send_signal("memnode-1", signal.SIGSTOP)
        try:
            code, output = run(agent_like(cluster, "--connect-timeout-ms", "1000"))
        finally:
            cluster.send_signal("memnode-1", signal.SIGCONT)
        line = one_line(output)
        assert code == 1 and "memory node" in line and "tried for 1000 ms" in line, output
        assert re.search(r"%s(:| port )%s\b" % (re.escape(host), port), line), line
        with cluster.connect() as client:
            assert client.call("SET", "k", "v").value == b"OK"


def lose_node(cluster, name):
    """Kills it; which node it was."""
    pid = cluster.processes()[name]["pid"]
    lost = [node["node"] for node in cluster.status()["memnodes"] if node["pid"] == pid][0]
    cluster.send_signal(name, signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the node's end")
    return lost


def wait_for_status(cluster, why):
    wait_until(lambda: cluster.status()["waiting_for"] == why, "the status says " + why)
    code, table, _ = cluster.tool("status", "--dir", cluster.path)
    assert code != 0 and "waiting for: " + why in table, table


@test("memory nodes that are lost: agents join without one, not without two; status says why")
def lost_nodes(context):
    # Agents that end wait so long for what the lost node may still do.
    with environment(ONETRIP_OP_TIMEOUT_MS="500"), context.cluster(fabric="tcp") as cluster:
        assert cluster.status()["waiting_for"] == ""
        code, table, _ = cluster.tool("status", "--dir", cluster.path)
        assert code == 0 and "waiting for" not in table, table
        first = lose_node(cluster, "memnode-1")
        wait_for_status(cluster, "16 regions lack a replica until memory node %d is back or another"
                        " with room for them joins" % first)
        joined = subprocess.Popen(agent_like(cluster, "--connect-timeout-ms", "20000"),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len([agent for agent in cluster.status()["agents"]
                                    if agent["state"] == "up"]) == 3, "the third agent is up")
        finally:
            joined.terminate()
            joined.wait(timeout=20)
        why = "memory node %d is not there" % lose_node(cluster, "memnode-2")
        wait_for_status(cluster, why + ", and 16 regions have no majority without it; if it is lost"
                        " for good: onetrip node accept-loss")
        code, output = run(agent_like(cluster, "--connect-timeout-ms", "500"))
        line = one_line(output)
        assert code == 1 and "cannot join the cluster" in line and why in line, output
