"""Agents that die leave their memory to the others: what their keys do not need is used again."""

import signal
import subprocess

from local_cluster import is_gone, wait_until
from registry import FABRICS, test

VALUE = b"x" * 3000


class Lives:
    """The cluster's second agent, killed and started again; use it with `with`."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.command = cluster.command_line("agent-1")
        self.log_path = cluster.directory + "/lives.log"
        self.process = None

    def kill(self):
        if self.process is None:
            pid = self.cluster.processes()["agent-1"]["pid"]
            self.cluster.send_signal("agent-1", signal.SIGKILL)
            wait_until(lambda: is_gone(pid), "the end of the agent")
        else:
            self.process.kill()
            self.process.wait()
            self.process = None

    def start(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        wait_until(lambda: b" is ready: " in self.log() or self.process.poll() is not None,
                   "the agent is ready")
        assert self.process.poll() is None, self.log()

    def log(self):
        with open(self.log_path, "rb") as log:
            return log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def granted(cluster):
    """Bytes, as soon as the master has heard of all of them."""
    counts = []

    def known():
        counts[:] = [node["granted_bytes"] for node in cluster.status()["memnodes"]]
        return None not in counts
    wait_until(known, "the blocks granted on every memory node")
    return sum(counts)


def fill(client, name):
    """Writes keys until the pool is full; says how many."""
    count = 0
    while True:
        reply = client.call("SET", "%s%d" % (name, count), VALUE)
        if reply.is_error:
            assert b"OOM" in reply.value, reply.value
            return count
        count += 1


for _fabric in FABRICS:
    @test("%s: an agent that is killed again and again takes no more memory than a few lives"
          % _fabric)
    def _lives(context, fabric=_fabric):
        with context.cluster(fabric=fabric) as cluster, Lives(cluster) as lives:
            after = []
            for life in range(8):
                if life > 0:
                    lives.start()
                with cluster.connect(agent=1) as client:
                    for i in range(400):
                        assert client.call("SET", "k%d" % i, b"%d.%d" % (life, i)).value == b"OK"
                        if i % 4 == 0:
                            assert not client.call("INCR", "n%d" % i).is_error
                        if i % 4 == 1:
                            assert client.call("SET", "long%d" % i, VALUE).value == b"OK"
                lives.kill()
                with cluster.connect(agent=0) as client:
                    for i in range(400):
                        assert client.call("GET", "k%d" % i).value == b"%d.%d" % (life, i)
                after.append(granted(cluster))
            # The last life's memory is taken over behind its end. How many blocks are half full
            # then depends on which agent was killed when; lives that leave all of theirs behind
            # take four times as much.
            wait_until(lambda: granted(cluster) <= after[3] * 2, "as much as after four lives")

    @test("%s: the pool that an agent filled before it was killed is there for others" % _fabric)
    def _full(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster, Lives(cluster) as lives:
            with cluster.connect(agent=1) as client:
                count = fill(client, "first")
            assert count > 1000, count
            lives.kill()
            with cluster.connect(agent=0) as client:
                for i in range(0, count, 97):
                    assert client.call("GET", "first%d" % i).value == VALUE, i
                assert client.call("FLUSHALL").value == b"OK"
                # The index is swept, and memory comes back, behind the answer.
                wait_until(lambda: fill(client, "second") > count * 0.8, "nearly all of it", 60)
