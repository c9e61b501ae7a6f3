"""The master dies and comes back under load: no client notices."""

import contextlib
import signal
import subprocess
import threading
import time

from live import Skip
from local_cluster import is_gone, wait_until
from registry import test
from several_agents import for_each_fabric


class Load:
    """INCR and GET on every agent until stop(); whatever is not an answer is a failure."""

    def __init__(self, cluster):
        self.done = 0
        self.longest_s = 0.0
        self._failures = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(cluster, i))
                         for i in range(cluster.agents)]
        for thread in self._threads:
            thread.start()

    def _run(self, cluster, number):
        try:
            with cluster.connect(agent=number) as client:
                while not self._stop.is_set():
                    started = time.monotonic()
                    reply = client.call("INCR", "n")
                    assert not reply.is_error, reply.value
                    reply = client.call("GET", "n")
                    assert not reply.is_error, reply.value
                    self.longest_s = max(self.longest_s, time.monotonic() - started)
                    self.done += 1
        except BaseException as error:  # pylint: disable=broad-except
            self._failures.append(error)

    def progress(self, count):
        """Waits until `count` more rounds are done."""
        goal = self.done + count
        wait_until(lambda: self.done >= goal or self._failures, "%d rounds of load" % count)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]


def restart_master(cluster):
    """Starts the master again where it was; the process."""
    command = cluster.master_command
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def kill_master(cluster):
    command = cluster.command_line("master")
    command[command.index("--listen") + 1] = cluster.record()["master"]["address"]
    cluster.master_command = command
    pid = cluster.record()["master"]["pid"]
    cluster.send_signal("master", signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the master's end")


def all_are_up(cluster):
    status = cluster.status()
    return status["master"]["state"] == "up" and all(
        member["state"] == "up" for member in status["memnodes"] + status["agents"])


@for_each_fabric("the master is killed and restarted under load")
def killed_and_restarted(cluster):
    load = Load(cluster)
    master = None
    try:
        load.progress(200)
        with cluster.connect(agent=0) as client:
            assert client.call("SELECT", "2").value == b"OK"
            assert client.call("SET", "x", "two").value == b"OK"
            assert client.call("SWAPDB", "2", "3").value == b"OK"
        kill_master(cluster)
        load.progress(200)
        status = cluster.status()
        assert status["master"]["state"] != "up", status["master"]
        master = restart_master(cluster)
        wait_until(lambda: all_are_up(cluster), "every member is back")
        load.progress(200)
        with cluster.connect(agent=1) as client:
            assert client.call("SET", "x", "1").value == b"OK"
            assert client.call("FLUSHDB").value == b"OK"
            assert client.call("GET", "x").value is None
            assert client.call("SELECT", "3").value == b"OK"
            assert client.call("GET", "x").value == b"two"
            assert client.call("SWAPDB", "2", "3").value == b"OK"
            assert client.call("GET", "x").value is None
            assert client.call("DBSIZE").value == b"0"
        load.progress(200)
    finally:
        try:
            load.stop()
        finally:
            if master is not None:
                cluster.down()
                master.terminate()
                master.wait(timeout=20)


def cut_connections(address):
    """Both ends of every tcp connection with the master at `address` are told that it broke."""
    port = address.rpartition(":")[2]
    done = subprocess.run(["ss", "-K", "-t", "state", "established",
                           "( sport = :%s or dport = :%s )" % (port, port)],
                          capture_output=True, check=False, text=True)
    if done.returncode != 0 or done.stderr.strip():
        raise Skip("this host does not let connections be cut: " + done.stderr.strip())


@for_each_fabric("connections that break while the master stands still expel nobody")
def broken_while_master_stood_still(cluster):
    load = Load(cluster)
    try:
        load.progress(100)
        seats = {agent["pid"]: agent["member"] for agent in cluster.status()["agents"]}
        cluster.send_signal("master", signal.SIGSTOP)
        try:
            # For longer than half a lease, by which it knows that it did.
            time.sleep(1.5)
            cut_connections(cluster.record()["master"]["address"])
            load.progress(100)
        finally:
            cluster.send_signal("master", signal.SIGCONT)
        wait_until(lambda: all_are_up(cluster), "every member is back")
        assert seats == {agent["pid"]: agent["member"] for agent in cluster.status()["agents"]}
        load.progress(100)
    finally:
        load.stop()


@for_each_fabric("connections to the master that break expel nobody")
def connections_break(cluster):
    load = Load(cluster)
    try:
        load.progress(100)
        before = cluster.status()
        for _ in range(5):
            cut_connections(cluster.record()["master"]["address"])
            load.progress(100)
        wait_until(lambda: all_are_up(cluster), "every member is back")
        after = cluster.status()
        assert before["epoch"] == after["epoch"], (before, after)
        for kind in ("agents", "memnodes"):
            assert ({member["pid"] for member in before[kind]}
                    == {member["pid"] for member in after[kind]})
        load.progress(100)
    finally:
        load.stop()


@test("a FLUSHALL without a master fails in time, says why, and loses nothing")
def flush_without_master(context):
    with context.cluster() as cluster:
        with cluster.connect(agent=0, timeout_s=60) as client:
            assert client.call("SET", "k", "v").value == b"OK"
            kill_master(cluster)
            reply = client.call("FLUSHALL")
            # Sent before the agent had heard of the master's end: the agent cannot tell then.
            if reply.value.startswith(b"UNKNOWN"):
                reply = client.call("FLUSHALL")
            assert reply.is_error and b"master" in reply.value, reply.value
            assert client.call("GET", "k").value == b"v"
            assert client.call("SET", "k", "w").value == b"OK"
        with cluster.connect(agent=1) as client:
            assert client.call("GET", "k").value == b"w"


@contextlib.contextmanager
def started_again(cluster, command, number=1):
    """The agent of `command` in another process; it answers before this goes on."""
    agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        def answers():
            try:
                with cluster.connect(agent=number) as client:
                    return client.call("INCR", "n").value == b"1"
            except OSError:
                return False
        wait_until(answers, "the new agent answers")
        yield
    finally:
        agent.terminate()
        agent.wait(timeout=20)


def end(cluster, name):
    """In order."""
    pid = cluster.processes()[name]["pid"]
    cluster.send_signal(name, signal.SIGTERM)
    wait_until(lambda: is_gone(pid), "the end of " + name)


@test("an agent that joins after the master's restart gets a worker id that nobody had")
def join_after_restart(context):
    with context.cluster(agents=2) as cluster:
        agent = cluster.command_line("agent-1")
        before = cluster.status()
        kill_master(cluster)
        master = restart_master(cluster)
        try:
            wait_until(lambda: all_are_up(cluster), "every member is back")
            end(cluster, "agent-1")
            with started_again(cluster, agent):
                members = {agent["member"] for agent in cluster.status()["agents"]
                           if agent["state"] == "up"}
                old = {agent["member"] for agent in before["agents"]}
                assert len(members - old) == 1, (members, old)
        finally:
            cluster.down()
            master.terminate()
            master.wait(timeout=20)


@test("an agent that joins as soon as the killed master is back has the time of the others")
def time_after_restart(context):
    # More than agents' clocks differ by, less than the master's notes of the time are ahead of it.
    slack_ms = 500
    with context.cluster(agents=2) as cluster:
        agent = cluster.command_line("agent-1")
        end(cluster, "agent-1")
        with cluster.connect(agent=0) as client:
            assert client.call("SET", "k", "v", "PX", "1000000").value == b"OK"
        kill_master(cluster)
        master = restart_master(cluster)
        try:
            with started_again(cluster, agent):
                with cluster.connect(agent=0) as one, cluster.connect(agent=1) as other:
                    first = int(one.call("PTTL", "k").value)
                    between = int(other.call("PTTL", "k").value)
                    last = int(one.call("PTTL", "k").value)
                assert last - slack_ms <= between <= first + slack_ms, (first, between, last)
        finally:
            cluster.down()
            master.terminate()
            master.wait(timeout=20)
