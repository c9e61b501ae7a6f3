"""An agent that stood still for longer than its lease: nothing of it counts any more."""

import os
import signal
import subprocess

from local_cluster import is_gone, wait_until
from registry import test
from resp_client import ConnectionClosed, encode

EXPELLED = 70


class Sleeper:
    """The cluster's second agent, started again as a child of this process, whose exit code counts;
    use it with `with`."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.command = cluster.command_line("agent-1")
        self.log_path = os.path.join(cluster.directory, "sleeper.log")
        pid = cluster.processes()["agent-1"]["pid"]
        cluster.send_signal("agent-1", signal.SIGTERM)
        wait_until(lambda: is_gone(pid), "the end of the agent before it")
        self.process = self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        before = self.log().count(" is ready: ")
        wait_until(lambda: self.log().count(" is ready: ") > before or process.poll() is not None,
                   "the agent is ready")
        assert process.poll() is None, self.log()
        return process

    def freeze(self):
        """Returns when all of its threads stand still: the signal alone tells one of them."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def state(self):
        states = [agent["state"] for agent in self.cluster.status()["agents"]
                  if agent["pid"] == self.process.pid]
        return states[0] if states else "gone"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


@test("tcp: an agent that wakes up after its lease ends with code 70 and says why")
def wakes_up(context):
    with context.cluster(fabric="tcp") as cluster, Sleeper(cluster) as sleeper:
        with cluster.connect(agent=0) as other, cluster.connect(agent=1) as client:
            assert client.call("SET", "k", "before").value == b"OK"
            sleeper.freeze()
            # Taken by the kernel: the agent finds it when it wakes up.
            client.send_raw(encode([b"SET", b"k", b"too late"]))
            wait_until(lambda: sleeper.state() == "gone", "it is expelled and fenced")
            # A worker that waits for all agents need not wait for that one.
            assert other.call("FLUSHALL").value == b"OK"
            assert other.call("SET", "k", "after").value == b"OK"
            sleeper.process.send_signal(signal.SIGCONT)
            assert sleeper.process.wait(timeout=30) == EXPELLED, sleeper.log()
            try:
                reply = client.read_raw()
                assert reply[:1] == b"-", reply
            except (ConnectionClosed, OSError):
                pass
            assert other.call("GET", "k").value == b"after"
        lines = [line for line in sleeper.log().splitlines() if "taken this agent for dead" in line]
        assert len(lines) == 1 and "lease" in lines[0], sleeper.log()
        # A fresh start is a new member.
        sleeper.process = sleeper.start()
        with cluster.connect(agent=1) as client:
            assert client.call("GET", "k").value == b"after"


@test("shm: an agent that stands still beyond its lease is ended by the memory nodes")
def never_wakes_up(context):
    with context.cluster(fabric="shm") as cluster, Sleeper(cluster) as sleeper:
        with cluster.connect(agent=0) as other, cluster.connect(agent=1) as client:
            assert client.call("SET", "k", "before").value == b"OK"
            sleeper.freeze()
            # It could write the memory as soon as it woke up: it must not wake up.
            assert sleeper.process.wait(timeout=60) == -signal.SIGKILL
            wait_until(lambda: sleeper.state() == "gone", "it is fenced everywhere")
            assert other.call("FLUSHALL").value == b"OK"
        for node in range(3):
            assert "fenced workers" in cluster.log("memnode-%d" % node)
        assert "lease" in cluster.log("master"), cluster.log("master")
