"""Every process on a host of its own, and faults of the network between them.

A host is a network namespace (tests/cluster/hosts.py). What one host sends to another is dropped by a
route, so that connections stay and no process is told. Clients reach the agents by unix sockets,
which no partition cuts.
"""

import collections
import contextlib
import itertools
import json
import os
import subprocess
import threading
import time

from faults import AgentFault, Fault, NodeFault
from fleet import Fleet, Process
from hosts import Network, ip
from refusals import write_secret


class HostsFleet(Fleet):
    def __init__(self, network, bin_dir):
        super().__init__()
        self.network = network
        self.bin_dir = bin_dir
        self.secret = write_secret(os.path.join(network.directory, "secret"),
                                   "the secret of many hosts, shared by all")
        self.hosts = {}
        self._drops = collections.Counter()
        self._lock = threading.Lock()

    def path(self, name):
        return os.path.join(self.network.directory, name)

    def address(self, name):
        return self.network.address(self.hosts[name])

    def add(self, name, program, *flags):
        """The next host gets the process; it is not started yet."""
        self.hosts[name] = len(self.hosts)
        command = ["ip", "netns", "exec", self.network.space(self.hosts[name]),
                   os.path.join(self.bin_dir, program), "--secret-file", self.secret]
        command += [flag.format(address=self.address(name)) for flag in flags]
        log = self.path(name + ".log")
        with open(log, "wb"):
            pass
        self.processes[name] = Process(name, 0, command, log)
        return self.processes[name]

    def add_all(self, memnodes, agents, memory, threads):
        self.add("master", "onetrip-master", "--listen", "{address}:7400", "--data-dir",
                 self.path("master"), "--nodes", str(memnodes)).start()
        join = ("--master", self.address("master") + ":7400", "--fabric", "tcp")
        for i in range(memnodes):
            name = "memnode-%d" % i
            self.add(name, "onetrip-memnode", "--memory", memory, "--listen", "{address}:7500",
                     "--backing", self.path(name + ".img"), *join).begin()
        for process in self.named("memnode"):
            process.await_ready()
        for i in range(agents):
            name = "agent-%d" % i
            self.addresses.append(self.path(name + ".sock"))
            self.add(name, "onetrip-agent", "--port", "6379", "--unixsocket", self.addresses[i],
                     "--threads", str(threads), *join).start()

    def status(self):
        done = subprocess.run(
            ["ip", "netns", "exec", self.network.space(self.hosts["master"]),
             os.path.join(self.bin_dir, "onetrip"), "status", "--json", "--master",
             self.address("master") + ":7400", "--secret-file", self.secret],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
        if not done.stdout:
            # There is no process to ask but the master.
            return {"master": {"state": "away"}, "memnodes": [], "agents": [], "regions": 0,
                    "regions_fully_redundant": 0}
        return json.loads(done.stdout)

    def drop(self, source, target, undo=False):
        """Messages of the process `source` to `target` get nowhere, until every fault that wanted
        that has undone it."""
        with self._lock:
            before = self._drops[source, target]
            self._drops[source, target] += -1 if undo else 1
            if before != (1 if undo else 0):
                return
            self._change_route(source, target, undo)

    def _change_route(self, source, target, undo):
        ip("-n", self.network.space(self.hosts[source]), "route", "del" if undo else "add",
           "blackhole", self.address(target) + "/32")

    @contextlib.contextmanager
    def cut(self, pairs):
        """Pairs of a source and a target, one way each."""
        done = []
        try:
            for pair in pairs:
                self.drop(*pair)
                done.append(pair)
            yield
        finally:
            for pair in done:
                self.drop(*pair, undo=True)


@contextlib.contextmanager
def hosts_fleet(bin_dir, memnodes, agents, memory, threads):
    with Network(1 + memnodes + agents) as network:
        fleet = HostsFleet(network, bin_dir)
        try:
            fleet.add_all(memnodes, agents, memory, threads)
            yield fleet
        except BaseException:
            fleet.show_logs()
            raise
        finally:
            fleet.kill_all()


def both_ways(ones, others):
    return [pair for one, other in itertools.product(ones, others) if one != other
            for pair in ((one, other), (other, one))]


def names(processes):
    return [process.name for process in processes]


class CutAgentFromNode(NodeFault):
    """Everybody else reaches both."""
    weight = 4

    def draw(self, rng):
        self.agent = rng.choice(names(self.world.fleet.named("agent")))
        self.node = rng.choice(names(self.world.fleet.named("memnode")))
        self.cut_s = rng.choice((0.2, 1.0, 4.0)) * (0.5 + rng.random())
        pairs = both_ways([self.agent], [self.node])
        self.pairs = rng.choice((pairs, pairs[:1], pairs[1:]))

    def text(self):
        return "cut %s for %.1f s" % (
            ", ".join("%s -> %s" % pair for pair in self.pairs), self.cut_s)

    def run(self):
        with self.world.agents_may_be_expelled():
            with self.world.fleet.cut(self.pairs):
                time.sleep(self.cut_s)
            self.await_redundancy()


class CutNodeFromMaster(CutAgentFromNode):
    """The agents reach the node, but beyond its lease it is put out."""

    def draw(self, rng):
        super().draw(rng)
        pairs = both_ways(["master"], [self.node])
        self.pairs = rng.choice((pairs, pairs[:1], pairs[1:]))


class CutNode(CutAgentFromNode):
    """No process reaches the node, and it reaches none."""

    def draw(self, rng):
        super().draw(rng)
        self.pairs = both_ways([self.node], list(self.world.fleet.processes))

    def text(self):
        return "cut %s from everybody for %.1f s" % (self.node, self.cut_s)


class CutAgent(AgentFault):
    """Cut from a majority of the memory nodes, from the master, or from all of these; beyond its
    lease it is expelled, and ends when it hears of it."""
    weight = 4

    def draw_time(self, rng):
        self.cut_s = rng.choice((0.2, 1.0, 4.0)) * (0.5 + rng.random())
        nodes = names(self.world.fleet.named("memnode"))
        self.others = rng.choice((rng.sample(nodes, len(nodes) // 2 + 1), ["master"],
                                  nodes + ["master"]))

    def text(self):
        return "cut %s from %s for %.1f s" % (self.agent.name, ", ".join(self.others), self.cut_s)

    def run(self):
        with self.world.agents_may_be_expelled():
            with self.world.agent_down(self.number):
                with self.world.fleet.cut(both_ways([self.agent.name], self.others)):
                    time.sleep(self.cut_s)
            # By then it knows whether it was expelled, for connections come back late.
            time.sleep(2 + 2 * self.cut_s)


class CutMaster(Fault):
    """Cut from all processes: it may take them all for dead."""
    place = "the master"
    weight = 2

    def draw(self, rng):
        self.cut_s = rng.choice((0.2, 1.0, 4.0)) * (0.5 + rng.random())

    def text(self):
        return "cut the master from everybody for %.1f s" % self.cut_s

    def run(self):
        with self.world.agents_may_be_expelled():
            with self.world.fleet.cut(both_ways(["master"], list(self.world.fleet.processes))):
                time.sleep(self.cut_s)
            time.sleep(2 + 2 * self.cut_s)


KINDS = {
    "cut-agent-node": CutAgentFromNode,
    "cut-node-master": CutNodeFromMaster,
    "cut-node": CutNode,
    "cut-agent": CutAgent,
    "cut-master": CutMaster,
}
