"""Backing files that did not keep what their nodes left in them: found at the start, said, repaired
from the other nodes; and nothing is given up when too many are damaged."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

from local_cluster import wait_until
from registry import test
from resp_client import Client
from start_failures import free_port

NODES = 3
MEMORY_OFFSET = 2 << 20
CHUNK = 1 << 20
MARK = b"a value that is easily found in a file"
GROUP = 100

# Registers, records with and without a deadline, objects and extents.
WRITES = ([("SET", "register%d" % i, MARK + b" %d" % i) for i in range(GROUP)]
          + [("INCRBY", "counter%d" % i, str(i)) for i in range(GROUP)]
          + [("SET", "large%d" % i, bytes([i]) * (50000 * i)) for i in range(1, 8)]
          + [("SET", "extents", b"0123456789abcdef" * (3 << 14)), ("APPEND", "register1", " and more"),
             ("SET", "deadline", "v", "EX", "100000"), ("SETRANGE", "sparse", "1000", "x"),
             ("MSET", "several1", "v1", "several2", "v2"), ("DEL", "register2")])
READS = ([("GET", "register%d" % i) for i in range(GROUP)]
         + [("GET", "counter%d" % i) for i in range(GROUP)]
         + [("GET", "large%d" % i) for i in range(1, 8)]
         + [("GET", key) for key in ("extents", "deadline", "sparse", "several1", "several2")]
         + [("DBSIZE",)])


class Processes:
    """A master, memory nodes with backing files and an agent, each started and ended by itself."""

    def __init__(self, context, fabric, persistent=True):
        self.context = context
        self.persistent = persistent
        self.fabric = fabric
        self.directory = tempfile.mkdtemp(prefix="onetrip_damaged.")
        os.chmod(self.directory, 0o700)
        self.master = "127.0.0.1:%d" % free_port()
        self.port = free_port()
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error is not None:
            for name in sorted(os.listdir(self.directory)):
                if name.endswith(".log"):
                    print("    %s ends with:\n      %s" % (
                        name, "\n      ".join(self.log(name[:-4]).splitlines()[-4:])))
        for process in self.running.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def log(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def _start(self, name, program, *arguments):
        with open(self.path(name + ".log"), "wb") as log:
            self.running[name] = subprocess.Popen(
                [os.path.join(self.context.bin_dir, program)] + list(arguments),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start_master(self):
        self._start("master", "onetrip-master", "--listen", self.master, "--data-dir",
                    self.path("m"), "--nodes", str(NODES))

    def start_node(self, node, *arguments):
        name = "node-%d" % node
        self._start(name, "onetrip-memnode", "--master", self.master, "--memory", "64MiB",
                    "--fabric", self.fabric, "--listen", "127.0.0.1:0", "--socket",
                    self.path(name + ".sock"),
                    *(["--backing", self.path(name)] if self.persistent else []), *arguments)

    def start_agent(self):
        self._start("agent", "onetrip-agent", "--master", self.master, "--fabric", self.fabric,
                    "--port", str(self.port), "--unixsocket", self.path("agent.sock"))

    def await_ready(self, name):
        wait_until(lambda: " is ready: " in self.log(name) or self.running[name].poll() is not None,
                   name + " is ready", 60)
        assert self.running[name].poll() is None, self.log(name)

    def end(self, name, number=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(number)
        code = process.wait(timeout=60)
        assert number != signal.SIGTERM or code == 0, (name, code, self.log(name))

    def stop_all(self):
        for name in ["agent"] + ["node-%d" % node for node in range(NODES)] + ["master"]:
            if name in self.running:
                self.end(name)

    def status(self):
        done = subprocess.run([os.path.join(self.context.bin_dir, "onetrip"), "status", "--json",
                               "--master", self.master], capture_output=True, timeout=60,
                              check=False, text=True)
        return json.loads(done.stdout) if done.stdout else None

    def state(self, pid):
        """The state of the memory node of this process."""
        status = self.status()
        nodes = status["memnodes"] if status else []
        return "".join(node["state"] for node in nodes if node["pid"] == pid)

    def await_state(self, node, state):
        pid = self.running["node-%d" % node].pid
        wait_until(lambda: self.state(pid) == state, "node-%d is %s" % (node, state), 60)

    def await_redundancy(self):
        def is_redundant():
            status = self.status()
            return status and status["regions_fully_redundant"] == status["regions"] > 0
        wait_until(is_redundant, "full redundancy", 120)

    def connect(self):
        return Client(port=self.port, timeout_s=30.0)

    def flip_bit(self, node, offset):
        with open(self.path("node-%d" % node), "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 4]))

    def find(self, node, what):
        with open(self.path("node-%d" % node), "rb") as file:
            offset = file.read().find(what)
        assert offset >= MEMORY_OFFSET, "no %s in node-%d" % (what, node)
        return offset


def read_all(processes):
    with processes.connect() as client:
        replies = [client.call(*command) for command in READS]
    assert not any(reply.is_error for reply in replies), replies
    return [reply.value for reply in replies]


def form_and_fill(processes):
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node)
    processes.start_agent()
    processes.await_ready("agent")
    with processes.connect() as client:
        for command in WRITES:
            reply = client.call(*command)
            assert not reply.is_error, (command[:2], reply.value)
    written = read_all(processes)
    processes.stop_all()
    return written


def expect_error(processes, node, *words):
    """One line of the node's log."""
    lines = [line for line in processes.log("node-%d" % node).splitlines() if " error " in line]
    assert len(lines) == 1, processes.log("node-%d" % node)
    for word in (processes.path("node-%d" % node), "is damaged") + words:
        assert word in lines[0], (word, lines[0])


def flipped_bit(processes, written):
    offset = processes.find(1, MARK)
    processes.flip_bit(1, offset)
    processes.start_master()
    processes.start_node(1)
    processes.start_node(0)
    processes.await_ready("node-0")
    processes.await_state(1, "damaged")
    waits = processes.status()["waiting_for"]
    assert "is damaged" in waits and "must be back" in waits, waits
    chunk = (offset - MEMORY_OFFSET) // CHUNK * CHUNK + MEMORY_OFFSET
    expect_error(processes, 1, "bytes %d to %d " % (chunk, chunk + CHUNK - 1))
    # Killed meanwhile, it is as damaged as before.
    processes.end("node-1", signal.SIGKILL)
    processes.start_node(1)
    processes.await_state(1, "damaged")
    assert "comes with damaged memory" in processes.log("master")
    # Without any agent: the others serve.
    processes.start_node(2)
    processes.await_ready("node-1")
    processes.await_state(1, "copying")
    processes.start_agent()
    processes.await_ready("agent")
    assert read_all(processes) == written
    processes.await_redundancy()
    processes.await_state(1, "up")
    assert read_all(processes) == written
    processes.stop_all()


def cut(processes, written):
    size = os.path.getsize(processes.path("node-2"))
    offset = processes.find(2, MARK)
    os.truncate(processes.path("node-2"), offset)
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node)
    processes.start_agent()
    processes.await_ready("agent")
    expect_error(processes, 2, "it was cut: bytes %d to %d " % (offset, size - 1))
    assert os.path.getsize(processes.path("node-2")) == size
    assert read_all(processes) == written
    processes.await_redundancy()
    processes.await_state(2, "up")


def two_damaged(processes, written):
    # Nothing is kept there: what is accepted as it is has all the data.
    processes.flip_bit(0, MEMORY_OFFSET + 4095)
    # The file's own header.
    processes.flip_bit(1, 33)
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node)
    processes.await_ready("node-2")
    for node in (0, 1):
        processes.await_state(node, "damaged")
    waits = processes.status()["waiting_for"]
    assert "memory nodes " in waits and "--accept-damaged" in waits, waits
    assert waits in processes.log("master")
    for node in (0, 1):
        expect_error(processes, node)
    processes.end("node-0")
    processes.start_node(0, "--accept-damaged", "yes")
    processes.start_agent()
    processes.await_ready("agent")
    assert "accepted as it is" in processes.log("master")
    processes.await_redundancy()
    assert read_all(processes) == written
    processes.stop_all()


def broken_header(processes, written):
    # It died, so there are no checksums, and the host has not been restarted: the map tells.
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node)
    for node in range(NODES):
        processes.await_ready("node-%d" % node)
    processes.end("node-1", signal.SIGKILL)
    processes.stop_all()
    processes.flip_bit(1, MEMORY_OFFSET)
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node)
    processes.start_agent()
    processes.await_ready("agent")
    expect_error(processes, 1, " has no header of its own")
    processes.await_redundancy()
    assert read_all(processes) == written
    processes.stop_all()


for _fabric in ("tcp", "shm"):
    @test("%s: backing files lose a bit, or their end: found, said, repaired from the others"
          % _fabric)
    def _damaged(context, fabric=_fabric):
        with Processes(context, fabric) as processes:
            written = form_and_fill(processes)
            two_damaged(processes, written)
            flipped_bit(processes, written)
            broken_header(processes, written)
            cut(processes, written)
            # All of it is on the other two.
            processes.end("node-0", signal.SIGKILL)
            assert read_all(processes) == written
            with processes.connect() as client:
                assert client.call("SET", "register0", "new").value == b"OK"
                assert client.call("INCR", "counter0").value == b"1"
                assert client.call("GET", "register0").value == b"new"
