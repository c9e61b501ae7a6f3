"""The kinds of faults: each is drawn from a seed, done to the cluster, and healed again.

A fault has a place: of faults in the same place there is one at a time, so that the cluster can
always go on after a while. One on memory nodes is over when every region has all replicas again.
"""

import functools
import os
import signal
import subprocess
import time

from live import Skip
from local_cluster import wait_until
from resp_client import ConnectionClosed, NoReply

# How long the cluster may take to be whole again.
REDUNDANT_S = 120
SETTLE_S = 0.5
AGENT_END_S = 30
# How an agent ends that was expelled: by itself, or by the memory nodes whose memory it maps.
EXPELLED = (70, -9)
# Until one is refused; then smaller ones, for which there is still room.
FILL_BYTES = (1 << 18, 1 << 14, 1 << 9)
FILL_KEYS = 4
DELETE_KEYS = 16


class Fault:
    place = ""
    # The weight of drawing it, against the others.
    weight = 4

    def __init__(self, rng, world):
        self.world = world
        self.draw(rng)

    @staticmethod
    def require():
        """Raises Skip where it cannot be done."""

    def draw(self, rng):
        """Everything that is random about it."""

    def text(self):
        """The fault in words, for the schedule."""
        raise NotImplementedError

    def run(self):
        """Does it and undoes it."""
        raise NotImplementedError


class NodeFault(Fault):
    place = "memory nodes"

    def draw_seat(self, rng):
        self.seat = rng.randrange(len(self.world.fleet.named("memnode")))

    @functools.cached_property
    def node(self):
        """The node in the seat when the fault begins: another one may have been put there since it
        was drawn."""
        return self.world.fleet.named("memnode")[self.seat]

    def await_redundancy(self):
        # The master may take the node for lost only now, and two at once are no majority.
        time.sleep(SETTLE_S)
        wait_until(self.world.fleet.is_redundant, "full redundancy", REDUNDANT_S)


class NodeKill(NodeFault):
    weight = 6

    def draw(self, rng):
        self.draw_seat(rng)
        self.away_s = rng.choice((0.0, 0.3, 1.5, 4.0)) + rng.random() / 4

    def text(self):
        return "kill %s, start it after %.1f s" % (self.node.name, self.away_s)

    def run(self):
        with self.world.in_hand(self.node):
            self.node.kill()
            time.sleep(self.away_s)
            self.node.start()
            self.await_redundancy()


class NodePause(NodeFault):
    weight = 5

    def draw(self, rng):
        self.draw_seat(rng)
        self.still_s = rng.choice((0.05, 0.5, 1.5, 4.0)) * (0.5 + rng.random())

    def text(self):
        return "stop %s for %.1f s" % (self.node.name, self.still_s)

    def run(self):
        with self.world.in_hand(self.node):
            self.node.freeze()
            time.sleep(self.still_s)
            self.node.send(signal.SIGCONT)
            time.sleep(SETTLE_S)
            wait_until(lambda: self.node.poll() is not None or self.world.fleet.is_redundant(),
                       "full redundancy", REDUNDANT_S)
            if self.node.poll() is not None:
                self.world.say("%s has ended with code %d" % (self.node.name,
                                                             self.node.exit_code))
                self.node.start()
                self.await_redundancy()


class NodeTerm(NodeKill):
    """Ends in order, and says goodbye."""
    weight = 3

    def text(self):
        return "end %s by SIGTERM, start it after %.1f s" % (self.node.name, self.away_s)

    def run(self):
        with self.world.in_hand(self.node):
            self.node.end_in_order()
            time.sleep(self.away_s)
            self.node.start()
            self.await_redundancy()


class NodeWipe(NodeKill):
    """The node's memory is gone: with fresh memory it is another node, which takes the place of the
    first."""
    weight = 2

    def text(self):
        return "kill %s, remove its memory, start it after %.1f s" % (self.node.name, self.away_s)

    def run(self):
        with self.world.in_hand(self.node):
            self.node.kill()
            os.remove(self.node.backing())
            time.sleep(self.away_s)
            self.node.start()
            self.await_redundancy()


class NodeMoves(NodeFault):
    """A memory node is added and given its share of regions; then one drains, and is switched
    off."""
    weight = 2

    def draw(self, rng):
        self.draw_seat(rng)

    def text(self):
        return "start a spare memory node, then drain %s" % self.node.name

    def run(self):
        with self.world.in_hand(self.node):
            self.world.fleet.replace_by_moves(self.node)
            self.await_redundancy()


class TwoNodes(NodeFault):
    """Without a majority nothing is written; it is there again soon."""
    weight = 2

    def draw(self, rng):
        self.seats = rng.sample(range(len(self.world.fleet.named("memnode"))), 2)
        self.between_s = rng.choice((0.0, 0.02, 0.5)) * rng.random()
        self.away_s = rng.random()

    @functools.cached_property
    def nodes(self):
        return [self.world.fleet.named("memnode")[seat] for seat in self.seats]

    def text(self):
        return "kill %s and %.2f s later %s, start both after %.1f s" % (
            self.nodes[0].name, self.between_s, self.nodes[1].name, self.away_s)

    def run(self):
        with self.world.in_hand(*self.nodes):
            self.nodes[0].kill()
            time.sleep(self.between_s)
            self.nodes[1].kill()
            time.sleep(self.away_s)
            for node in self.nodes:
                node.begin()
            for node in self.nodes:
                node.await_ready()
            self.await_redundancy()


class AgentFault(Fault):
    place = "agents"

    def draw(self, rng):
        self.number = rng.randrange(len(self.world.fleet.addresses))
        self.agent = self.world.fleet.named("agent")[self.number]
        self.draw_time(rng)

    def draw_time(self, rng):
        """How long it takes."""


class AgentKill(AgentFault):
    weight = 5

    def draw_time(self, rng):
        self.away_s = rng.choice((0.0, 0.5, 2.0)) * rng.random()

    def text(self):
        return "kill %s, start it after %.1f s" % (self.agent.name, self.away_s)

    def run(self):
        with self.world.in_hand(self.agent), self.world.agent_down(self.number):
            self.agent.kill()
            time.sleep(self.away_s)
            self.agent.start()


class AgentTerm(AgentKill):
    weight = 3

    def text(self):
        return "end %s by SIGTERM, start it after %.1f s" % (self.agent.name, self.away_s)

    def run(self):
        # It cannot say goodbye to a master that is away, nor while its writes do not come to an end.
        with self.world.in_hand(self.agent), self.world.agent_down(self.number):
            self.agent.send(signal.SIGTERM)
            self.agent.await_end(AGENT_END_S)
            if self.agent.exit_code not in (0, *EXPELLED):
                raise AssertionError("%s ended by SIGTERM with code %d: %s" % (
                    self.agent.name, self.agent.exit_code, self.agent.last_words()))
            time.sleep(self.away_s)
            self.agent.start()


class AgentPause(AgentFault):
    """Shorter than its lease: it works on."""
    weight = 3

    def draw_time(self, rng):
        self.still_s = 0.02 + rng.random() * 0.5

    def text(self):
        return "stop %s for %.2f s" % (self.agent.name, self.still_s)

    def run(self):
        with self.world.in_hand(self.agent):
            with self.world.agent_down(self.number):
                self.agent.freeze()
                time.sleep(self.still_s)
                self.agent.send(signal.SIGCONT)
            # A host that is busy may have made it too long all the same.
            time.sleep(1.0)
            if self.agent.poll() is not None:
                with self.world.agent_down(self.number):
                    self.agent.start()


class AgentExpelled(AgentFault):
    """Longer than its lease: it ends by itself, or is ended, and is started again. If the master was
    away for a part of that, it may keep its seat."""

    def draw_time(self, rng):
        self.still_s = 2.0 + rng.random() * 4

    def text(self):
        return "stop %s for %.1f s, beyond its lease" % (self.agent.name, self.still_s)

    def run(self):
        with self.world.in_hand(self.agent), self.world.agent_down(self.number):
            self.agent.freeze()
            time.sleep(self.still_s)
            self.agent.send(signal.SIGCONT)
            wait_until(lambda: self.agent.poll() is not None or self.keeps_its_seat(),
                       "%s ends, or has its seat" % self.agent.name, AGENT_END_S)
            if self.agent.poll() is not None:
                self.agent.start()

    def keeps_its_seat(self):
        status = self.world.fleet.status()
        return status["master"]["state"] == "up" and any(
            agent["state"] == "up" and agent["pid"] == self.agent.pid
            for agent in status["agents"])


class MasterFault(Fault):
    place = "the master"
    weight = 3

    def draw(self, rng):
        self.master = self.world.fleet.processes["master"]
        self.away_s = rng.choice((0.0, 0.4, 1.5, 3.0)) * (0.5 + rng.random())


class MasterKill(MasterFault):
    def text(self):
        return "kill the master, start it after %.1f s" % self.away_s

    def run(self):
        with self.world.in_hand(self.master):
            self.master.kill()
            time.sleep(self.away_s)
            self.master.start()


class MasterPause(MasterFault):
    def text(self):
        return "stop the master for %.1f s" % self.away_s

    def run(self):
        with self.world.in_hand(self.master):
            self.master.freeze()
            time.sleep(self.away_s)
            self.master.send(signal.SIGCONT)


class MemoryFull(Fault):
    """Writes are refused until the keys that fill the memory are deleted."""
    place = "memory"
    weight = 2

    def draw(self, rng):
        self.full_s = 0.3 + rng.random() * 1.5
        self.name = "fill%d:" % rng.randrange(10 ** 9)

    def text(self):
        return "fill the memory, for %.1f s" % self.full_s

    def call(self, *commands):
        """The replies, by whatever agent answers."""
        for _ in range(100):
            for address in self.world.fleet.addresses:
                try:
                    with self.world.connect(address) as client:
                        return [client.call(*command) for command in commands]
                except (OSError, ConnectionClosed, NoReply):
                    time.sleep(0.05)
        raise AssertionError("no agent answers")

    def run(self):
        keys = []
        with self.world.memory_full():
            try:
                deadline = time.monotonic() + 30
                for value_bytes in FILL_BYTES:
                    while time.monotonic() < deadline and not self.fill(keys, value_bytes):
                        pass
                self.world.say("the memory is full with %d keys" % len(keys))
                time.sleep(self.full_s)
            finally:
                for begin in range(0, len(keys), DELETE_KEYS):
                    self.delete(keys[begin:begin + DELETE_KEYS])
            # Freed memory is there for other workers when no worker can be reading it any more.
            wait_until(self.takes_writes, "the memory takes writes again", 30)

    def fill(self, keys, value_bytes):
        """A few more keys; true if one of them was refused."""
        some = ["%s%d" % (self.name, len(keys) + i) for i in range(FILL_KEYS)]
        keys += some
        replies = self.call(*[("SET", key, b"f" * value_bytes) for key in some])
        return any(reply.is_error and reply.value.startswith(b"OOM") for reply in replies)

    def delete(self, keys):
        def gone():
            return not any(reply.is_error
                           for reply in self.call(*[("DEL", key) for key in keys]))
        wait_until(gone, "what has filled the memory is deleted", 60)

    def takes_writes(self):
        return not any(reply.is_error
                       for reply in self.call(*[("SET", self.name + "last", b"1")] * FILL_KEYS))


class ConnectionsCut(Fault):
    """Every tcp connection of a memory node or the master is reset. To the master an agent whose
    connection ends has ended: it is expelled."""
    place = "connections"
    weight = 3

    @staticmethod
    def require():
        done = subprocess.run(["ss", "-K", "-t", "dst", "127.0.0.1", "dport", "=", ":1"],
                              capture_output=True, check=False, text=True)
        if done.returncode != 0 or done.stderr.strip():
            raise Skip("this host does not let connections be cut: " + done.stderr.strip())

    def draw(self, rng):
        self.seat = rng.randrange(len(self.world.fleet.named("memnode")) + 1)
        self.times = rng.choice((1, 1, 3, 10))

    @functools.cached_property
    def victim(self):
        return (self.world.fleet.named("memnode") + [self.world.fleet.processes["master"]])[self.seat]

    def text(self):
        return "cut the connections of %s, %d times" % (self.victim.name, self.times)

    def run(self):
        if not self.victim.name.startswith("master"):
            return self.cut()
        with self.world.agents_may_be_expelled():
            self.cut()
            # By then each of them has heard of it.
            time.sleep(2.0)
        return None

    def cut(self):
        for _ in range(self.times):
            for port in ports_of(self.victim):
                subprocess.run(["ss", "-K", "-t", "state", "established",
                                "( sport = :%d or dport = :%d )" % (port, port)],
                               capture_output=True, check=False)
            time.sleep(0.1)


def ports_of(process):
    """On which it listens."""
    done = subprocess.run(["ss", "-Hltnp"], capture_output=True, check=False, text=True)
    return [int(line.split()[3].rpartition(":")[2]) for line in done.stdout.splitlines()
            if "pid=%d," % process.pid in line]


KINDS = {
    "node-kill": NodeKill,
    "node-pause": NodePause,
    "node-term": NodeTerm,
    "node-wipe": NodeWipe,
    "node-moves": NodeMoves,
    "two-nodes": TwoNodes,
    "agent-kill": AgentKill,
    "agent-term": AgentTerm,
    "agent-pause": AgentPause,
    "agent-expelled": AgentExpelled,
    "master-kill": MasterKill,
    "master-pause": MasterPause,
    "memory-full": MemoryFull,
    "connections-cut": ConnectionsCut,
}
