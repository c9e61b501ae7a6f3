"""Servers under comparison: how each is started, asked, measured and stopped.

A Server owns one child process on a free port of 127.0.0.1 and ends exactly that process. The raw
RESP client here knows only what the preload and the checks need.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1  # From linux/prctl.h.
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Anything that makes the numbers worthless; its text is shown to the user."""


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def encode(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Client:
    """A blocking RESP2 client for status, bulk and integer replies; an error reply raises."""

    def __init__(self, port, timeout_s=30):
        self.sock = socket.create_connection((HOST, port), timeout=timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.sock.makefile("rb", buffering=1 << 16)

    def close(self):
        self.stream.close()
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def read(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise BenchError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise BenchError("error reply: " + rest.decode(errors="replace"))
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.stream.read(size + 2)[:-2]
        raise BenchError("unexpected reply: %r" % line)

    def call(self, *args):
        self.send(encode(*args))
        return self.read()


def end_with_parent():
    """Runs in the child: a server must not outlive a comparison that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One child process. `command` may contain {port} and {dir} (a private scratch directory).
    Port 0: a free one."""

    def __init__(self, name, command, port=0):
        self.name = name
        self.port = port or free_port()
        self.directory = tempfile.mkdtemp(prefix="compare_redis.")
        self.command = [word.format(port=self.port, dir=self.directory) for word in command]
        self.log_path = os.path.join(self.directory, "server.log")
        self.process = None

    def start(self, ready_within_s=60):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, preexec_fn=end_with_parent)
        deadline = time.monotonic() + ready_within_s
        while True:
            if self.process.poll() is not None:
                raise BenchError("%s ended at start: %s" % (self.name, self.log_tail()))
            try:
                client = Client(self.port, timeout_s=5)
                try:
                    if client.call("PING") == b"PONG":
                        return
                finally:
                    client.close()
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise BenchError("%s is not ready after %d s: %s"
                                 % (self.name, ready_within_s, self.log_tail()))
            time.sleep(0.02)

    def log_tail(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-400:].strip()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_s(self):
        """User and system time of all its threads so far."""
        with open("/proc/%d/stat" % self.process.pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S

    def rss_bytes(self):
        with open("/proc/%d/statm" % self.process.pid) as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self):
        """Number of open descriptors: shows clients coming and going without asking the server."""
        try:
            return len(os.listdir("/proc/%d/fd" % self.process.pid))
        except OSError:
            raise BenchError("%s ended during a run: %s" % (self.name, self.log_tail()))

    def idle_files(self):
        """Open descriptors once the clients of earlier runs are gone: the same for 20 ms."""
        seen = self.open_files()
        steady = 0
        for _ in range(1000):
            time.sleep(0.005)
            now = self.open_files()
            steady = steady + 1 if now == seen else 0
            seen = now
            if steady == 4:
                return seen
        raise BenchError("%s keeps opening and closing files" % self.name)

    def preload(self, keys, value_bytes):
        """Writes the keys that redis-benchmark draws from: key:%012d and counter:%012d."""
        client = Client(self.port)
        value = b"x" * value_bytes
        batch = 1000
        for first in range(0, keys, batch):
            last = min(first + batch, keys)
            client.send(b"".join(
                encode("SET", "key:%012d" % i, value) + encode("SET", "counter:%012d" % i, 0)
                for i in range(first, last)))
            for _ in range(2 * (last - first)):
                if client.read() != b"OK":
                    raise BenchError("%s: a preloading SET was not answered OK" % self.name)
        client.close()

    def fill(self, prefix, keys, *words):
        """Runs `COMMAND KEY REST...` of `words` (the command first) on PREFIX:%012d for each key."""
        client = Client(self.port)
        batch = 1000
        for first in range(0, keys, batch):
            last = min(first + batch, keys)
            client.send(b"".join(encode(words[0], "%s:%012d" % (prefix, i), *words[1:])
                                 for i in range(first, last)))
            for _ in range(last - first):
                client.read()
        client.close()

    def ask(self, *words):
        """Runs one command; returns its reply."""
        client = Client(self.port)
        reply = client.call(*words)
        client.close()
        return reply

    def check_values(self, keys, value_bytes, samples=500):
        """Every sampled GET must return a value of full length; redis-benchmark's are random."""
        client = Client(self.port)
        step = max(1, keys // samples)
        wanted = list(range(0, keys, step))
        client.send(b"".join(encode("GET", "key:%012d" % i) for i in wanted))
        for i in wanted:
            value = client.read()
            if value is None or len(value) != value_bytes:
                raise BenchError("%s: GET key:%012d returned %r" % (self.name, i, value))
        client.close()
