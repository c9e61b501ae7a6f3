"""Starts and stops the servers under test: redis-server as the reference, and the agent.

Each server has a private scratch directory and a free port of 127.0.0.1,
and is ended by process id.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from resp_client import Client

HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1  # From linux/prctl.h.


class StartFailed(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def end_with_parent():
    """Runs in the child: a server must not outlive a test run that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A child process that speaks RESP. `flags` may contain {port} and {dir}."""

    def __init__(self, name, binary, flags, password=None):
        self.name = name
        self.password = password
        self.directory = tempfile.mkdtemp(prefix="onetrip_compat.")
        self.port = free_port()
        self.command = [binary] + [flag.format(port=self.port, dir=self.directory)
                                   for flag in flags]
        self.log_path = os.path.join(self.directory, "log")
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    @property
    def socket_path(self):
        return os.path.join(self.directory, "sock")

    def start(self, ready_within_s=60.0):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.directory,
                                            preexec_fn=end_with_parent)
        deadline = time.monotonic() + ready_within_s
        while True:
            if self.process.poll() is not None:
                raise StartFailed("%s ended with exit code %d: %s"
                                  % (self.name, self.process.returncode, self.log_tail()))
            try:
                with self.connect(timeout_s=5) as client:
                    client.call("PING")
                    return self
            except OSError:
                pass
            if time.monotonic() > deadline:
                self.stop()
                raise StartFailed("%s is not ready after %.0f s" % (self.name, ready_within_s))
            time.sleep(0.02)

    def connect(self, timeout_s=10.0, authenticated=True):
        client = Client(port=self.port, timeout_s=timeout_s)
        if self.password and authenticated:
            client.call("AUTH", self.password)
        return client

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log_tail(self, size=2000):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-size:].strip()

    def stop(self):
        """Ends the process; its exit code (negative: the signal), None when it never started."""
        code = None
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            code = self.process.returncode
        shutil.rmtree(self.directory, ignore_errors=True)
        return code

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def redis_server(binary="redis-server", password=None):
    """The reference. Values end at 2 MiB on both, so that a stream which reaches the limit stays short."""
    flags = ["--port", "{port}", "--bind", HOST, "--dir", "{dir}", "--save", "",
             "--appendonly", "no", "--proto-max-bulk-len", "2097152",
             "--enable-debug-command", "yes", "--rdbcompression", "no"]
    if password:
        flags += ["--requirepass", password]
    return Server("redis-server", binary, flags, password)


def agent(binary, password=None, extra=()):
    """The agent under test; a redis-server binary works too, which is how the harness is proven."""
    if "redis-server" in os.path.basename(binary):
        return redis_server(binary, password)
    flags = ["--port", "{port}"] + list(extra)
    if "--memory" not in extra:
        flags += ["--memory", "256MiB"]
    if "--proto-max-bulk-len" not in extra:
        flags += ["--proto-max-bulk-len", "2MiB"]
    if password:
        flags += ["--requirepass", password]
    return Server("agent", binary, flags, password)
