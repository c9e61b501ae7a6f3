"""An agent and a memory node that do not hear each other, though the master hears both: the map goes
on without the node, or the cluster without the agent, within seconds; and all are back later."""

import contextlib
import json
import os
import subprocess
import time

from hosts import Network, ip
from local_cluster import wait_until
from refusals import write_secret
from registry import test

NODES = 3
# The time until an agent is sure, the master's, and a map without the node, on a busy host.
SOON_S = 15
EXPELLED_CODE = 70


class Hosts(Network):
    """The master and the memory nodes on hosts of their own, then the agents."""

    def __init__(self, bin_dir, agents):
        super().__init__(1 + NODES + agents)
        self.bin_dir = bin_dir
        self.agents = {}
        self.secret = None

    def __enter__(self):
        super().__enter__()
        self.secret = write_secret(os.path.join(self.directory, "secret"),
                                   "the secret of some hosts, shared by all")
        started = [("master", self.begin(0, "master", "onetrip-master", [
            "--listen", self.address(0) + ":7400", "--data-dir",
            os.path.join(self.directory, "master")], join=False))]
        self.await_ready(*started[0])
        for node in range(NODES):
            # One after the other, so that they are numbered like that.
            name = "memnode-%d" % node
            self.begin(1 + node, name, "onetrip-memnode", [
                "--memory", "128MiB", "--fabric", "tcp", "--listen",
                self.address(1 + node) + ":7500"])
            wait_until(lambda count=node + 1: len(self.status()["memnodes"]) == count,
                       "%s has joined" % name)
        for number in range(self.hosts - 1 - NODES):
            self.start_agent(number)
        for number, process in self.agents.items():
            self.await_ready("agent-%d" % number, process)
        return self

    def begin(self, host, name, program, flags, join=True):
        command = [os.path.join(self.bin_dir, program), "--secret-file", self.secret] + flags
        if join:
            command += ["--master", self.address(0) + ":7400"]
        return self.start(host, name, command)

    def host_of(self, agent):
        return 1 + NODES + agent

    def start_agent(self, agent, life=""):
        self.agents[agent] = self.begin(self.host_of(agent), "agent-%d%s" % (agent, life),
                                        "onetrip-agent", ["--port", "6379", "--fabric", "tcp"])
        return self.agents[agent]

    def status(self):
        done = subprocess.run(
            ["ip", "netns", "exec", self.space(0), os.path.join(self.bin_dir, "onetrip"), "status",
             "--json", "--master", self.address(0) + ":7400", "--secret-file", self.secret],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
        assert done.returncode in (0, 1, 2), done.stderr
        return json.loads(done.stdout)

    def state_of(self, node):
        return self.status()["memnodes"][node]["state"]

    @contextlib.contextmanager
    def cut(self, agent, *nodes):
        """Packets are dropped both ways; no process is told."""
        pairs = [pair for node in nodes for pair in
                 ((self.host_of(agent), 1 + node), (1 + node, self.host_of(agent)))]
        for source, target in pairs:
            ip("-n", self.space(source), "route", "add", "blackhole",
               self.address(target) + "/32")
        try:
            yield
        finally:
            for source, target in pairs:
                ip("-n", self.space(source), "route", "del", "blackhole",
                   self.address(target) + "/32")

    def ask(self, agent, command):
        lines = self.call(self.host_of(agent), 6379, [command])
        assert lines, "agent %d (which ended with %s) does not answer %s; it says %s" % (
            agent, self.agents[agent].poll(), command, self.log("agent-%d" % agent))
        return lines[0]

    def is_served(self, agent, name):
        """Returns true if an INCR and a new key are written at once."""
        return (self.ask(agent, b"INCR n\n").isdigit() and
                self.ask(agent, b"SET %s:%f v\n" % (name, time.monotonic())) == "OK")

    def await_served(self, agent, within_s=SOON_S):
        begin = time.monotonic()
        wait_until(lambda: self.is_served(agent, b"k"), "agent %d is served" % agent, within_s)
        return time.monotonic() - begin


@test("cuts: of two agents one does not reach a memory node: both are served without it")
def two_agents(context):
    with Hosts(context.bin_dir, agents=2) as hosts:
        assert hosts.is_served(0, b"a") and hosts.is_served(1, b"b")
        with hosts.cut(0, 2):
            # It notices by what it sends there.
            for agent in (0, 1):
                hosts.await_served(agent)
            wait_until(lambda: "does not reach memory node 2" in hosts.status()["unreached"],
                       "the status tells it", SOON_S)
            wait_until(lambda: hosts.state_of(2) == "out", "the node is out", SOON_S)
            for agent in (0, 1):
                hosts.await_served(agent)
                for _ in range(20):
                    assert hosts.is_served(agent, b"without")
            assert "do not reach it" in hosts.log("master"), "the master says why"
            assert all(process.poll() is None for process in hosts.agents.values())
        wait_until(lambda: hosts.status()["state"] == "serving", "all is whole again", 60)
        assert hosts.status()["unreached"] == ""
        assert hosts.is_served(0, b"again")


@test("cuts: the one agent of three that does not reach a memory node is expelled, and waits")
def three_agents(context):
    with Hosts(context.bin_dir, agents=3) as hosts:
        assert all(hosts.is_served(agent, b"first") for agent in range(3))
        with hosts.cut(0, 1):
            process = hosts.agents[0]
            begin = time.monotonic()
            while process.poll() is None and time.monotonic() < begin + SOON_S:
                subprocess.run(["ip", "netns", "exec", hosts.space(hosts.host_of(0)), "redis-cli",
                                "-t", "1", "INCR", "n"], capture_output=True, check=False)
            assert process.poll() == EXPELLED_CODE, process.poll()
            assert "does not reach memory node 1" in hosts.log("agent-0")
            # Back at once it is not let in, and says why; the others work.
            hosts.start_agent(0, life="-again")
            wait_until(lambda: "waits to join" in hosts.status()["unreached"], "it waits", SOON_S)
            assert "waits with joining the cluster: memory node 1 at" in hosts.log("agent-0-again")
            for agent in (1, 2):
                hosts.await_served(agent)
            assert hosts.state_of(1) == "up"
        hosts.await_ready("agent-0-again", hosts.agents[0])
        hosts.await_served(0)
        assert hosts.status()["state"] == "serving"
