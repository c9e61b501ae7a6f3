"""A memory node dies under load: what was acknowledged stays, work goes on without it, and it
comes back with its memory."""

import random
import signal
import subprocess
import threading

from local_cluster import is_gone, wait_until
from master_restart import end, started_again
from registry import FABRICS, test
from several_agents import for_each_fabric

KEYS = 200
VALUE = b"v" * 64


class Load:
    """On every agent until stop(): SET and GET of known keys, each client its own, and INCR of one
    counter. Errors of INCR are counted, for what a node that dies leaves half done may be unknown.
    So may be a SET which the death meets while another agent changes the form of its key; it is
    sent again, and there may be one. Any other error is a failure."""

    UNKNOWN_SETS_MAX = 1

    def __init__(self, cluster):
        self.rounds = 0
        self.added = 0
        self.unknown = 0
        self.unknown_sets = 0
        self.last = {}
        self._failures = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(cluster, i))
                         for i in range(cluster.agents)]
        for thread in self._threads:
            thread.start()

    def _run(self, cluster, number):
        rng = random.Random(number)
        try:
            with cluster.connect(agent=number, timeout_s=30.0) as client:
                while not self._stop.is_set():
                    for _ in range(8):
                        key = "own%d:%d" % (number, rng.randrange(KEYS))
                        value = b"%d:%s" % (rng.randrange(10 ** 9), VALUE)
                        reply = client.call("SET", key, value)
                        if reply.is_error and reply.value.startswith(b"UNKNOWN"):
                            self.unknown_sets += 1
                            assert self.unknown_sets <= self.UNKNOWN_SETS_MAX, reply.value
                            reply = client.call("SET", key, value)
                        assert reply.value == b"OK", "SET %s: %s" % (key, reply.value)
                        self.last[key] = value
                        reply = client.call("GET", key)
                        assert reply.value == value, "GET %s: %s" % (key, reply.value)
                    reply = client.call("INCR", "counter")
                    with self._lock:
                        if reply.is_error:
                            self.unknown += 1
                        else:
                            self.added += 1
                        self.rounds += 1
        except BaseException as error:  # pylint: disable=broad-except
            self._failures.append(error)

    def progress(self, count):
        """Waits until `count` more rounds are done."""
        goal = self.rounds + count
        wait_until(lambda: self.rounds >= goal or self._failures, "%d rounds of load" % count, 60)
        if self._failures:
            self.stop()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]


def node_state(cluster, node):
    return cluster.status()["memnodes"][node]["state"]


def kill_node(cluster, node):
    """Kills the process that has become node `node`; how it was started."""
    pid = cluster.status()["memnodes"][node]["pid"]
    names = [name for name, process in cluster.processes().items() if process["pid"] == pid]
    command = cluster.command_line(names[0])
    cluster.send_signal(names[0], signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the node's end")
    return command


def is_redundant(cluster):
    status = cluster.status()
    return status["regions_fully_redundant"] == status["regions"]


def check(cluster, load):
    for number in range(cluster.agents):
        with cluster.connect(agent=number, timeout_s=30.0) as client:
            for key, value in load.last.items():
                reply = client.call("GET", key)
                assert reply.value == value, "GET %s: %s" % (key, reply.value)
            counter = int(client.call("GET", "counter").value)
            assert load.added <= counter <= load.added + load.unknown, (counter, load.added)


def fill(cluster):
    """With every key of Load, known to all agents."""
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        for number in range(cluster.agents):
            for i in range(KEYS):
                key = "own%d:%d" % (number, i)
                assert first.call("SET", key, VALUE).value == b"OK"
                assert second.call("GET", key).value == VALUE


def lose_and_return(cluster):
    fill(cluster)
    load = Load(cluster)
    node = None
    try:
        load.progress(200)
        command = kill_node(cluster, 1)
        wait_until(lambda: node_state(cluster, 1) == "out", "the map without the node")
        # More than there was free memory for: it is recycled without the node.
        load.progress(3000)
        assert not is_redundant(cluster)
        log = open(cluster.directory + "/memnode-1-again.log", "wb")
        node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: is_redundant(cluster), "full redundancy", 120)
        load.progress(200)
        # Now another one may die.
        kill_node(cluster, 0)
        wait_until(lambda: node_state(cluster, 0) == "out", "the map without the other node")
        load.progress(500)
    finally:
        load.stop()
        try:
            check(cluster, load)
        finally:
            if node is not None:
                node.terminate()
                node.wait(timeout=60)


for _fabric in FABRICS:
    @test("%s: a memory node dies under load and comes back with its memory, then another dies"
          % _fabric)
    def _lose(context, fabric=_fabric):
        with context.cluster(fabric=fabric, extra=["--persistent"]) as cluster:
            lose_and_return(cluster)


@for_each_fabric("an agent that starts where a memory node has ended in order is served")
def agent_starts_without_a_node(cluster):
    with cluster.connect(agent=0) as client:
        for i in range(KEYS):
            assert client.call("SET", "k%d" % i, VALUE).value == b"OK"
    command = cluster.command_line("agent-0")
    for name in ("agent-0", "agent-1", "memnode-0"):
        end(cluster, name)
    with started_again(cluster, command, number=0):
        with cluster.connect(agent=0) as client:
            for i in range(KEYS):
                assert client.call("GET", "k%d" % i).value == VALUE, i
