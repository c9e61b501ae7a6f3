"""A cluster of real processes on this host, started and stopped by `onetrip up` and `down`."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import servers
from resp_client import Client


class LocalCluster:
    """Use it with `with`. connect() takes the agents in turn, so that a test written for one server
    drives all of them."""

    def __init__(self, bin_dir, memnodes=3, agents=2, fabric="shm", memory="256MiB", extra=()):
        self.bin_dir = bin_dir
        self.directory = tempfile.mkdtemp(prefix="onetrip_cluster.")
        self.path = os.path.join(self.directory, "c")
        self.agents = agents
        self.flags = ["--memnodes", str(memnodes), "--agents", str(agents), "--fabric", fabric,
                      "--memory", memory, "--timeout", "60"] + list(extra)
        self.output = ""
        self.port = 0
        self._turn = itertools.count()

    def tool(self, *arguments):
        """Runs `onetrip`: (exit code, stdout, stderr)."""
        done = subprocess.run([os.path.join(self.bin_dir, "onetrip")] + list(arguments),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              check=False, text=True)
        return done.returncode, done.stdout, done.stderr

    def up(self):
        # Below the ports that the system gives to outgoing connections; a port may be taken all the
        # same, and then others are tried.
        for _ in range(5):
            self.port = random.randrange(10000, 30000)
            code, self.output, error = self.tool("up", "--dir", self.path, "--port",
                                                 str(self.port), *self.flags)
            if code == 0:
                return self
            if "is taken" not in error:
                break
        raise servers.StartFailed("onetrip up: %s" % error)

    def down(self):
        return self.tool("down", "--dir", self.path)

    def __enter__(self):
        return self.up()

    def __exit__(self, error, *_):
        try:
            if error is not None:
                self.show_logs()
            self.down()
            self.kill_all()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def status(self):
        return self.service()[1]

    def service(self):
        """The exit code of `onetrip status` (0 serving, 1 degraded, 2 not serving), and what it
        shows."""
        code, output, error = self.tool("status", "--json", "--dir", self.path)
        assert code in (0, 1, 2) and output, (code, error)
        return code, json.loads(output)

    def secret(self):
        """The flags by which a process or a tool shows that it belongs to the cluster."""
        return ["--secret-file", os.path.join(self.path, "secret")]

    def record(self):
        with open(os.path.join(self.path, "cluster.json"), encoding="utf-8") as file:
            return json.load(file)

    def processes(self):
        """name -> what the record says of it."""
        record = self.record()
        return {process["name"]: process
                for process in [record["master"]] + record["memnodes"] + record["agents"]}

    def connect(self, timeout_s=10.0, agent=None):
        number = next(self._turn) % self.agents if agent is None else agent
        return Client(port=self.port + number, timeout_s=timeout_s)

    def command_line(self, name):
        """How the process was started."""
        with open("/proc/%d/cmdline" % self.processes()[name]["pid"], "rb") as file:
            return [part.decode() for part in file.read().split(b"\0")[:-1]]

    def send_signal(self, name, number):
        os.kill(self.processes()[name]["pid"], number)

    def log(self, name):
        with open(self.processes()[name]["log"], encoding="utf-8", errors="replace") as file:
            return file.read()

    def show_logs(self):
        """Prints the last words of the processes of a cluster that failed a test."""
        try:
            for name in self.processes():
                print("    log of %s ends with:\n      %s" % (
                    name, "\n      ".join(self.log(name).splitlines()[-4:])), flush=True)
        except OSError as error:
            print("    no logs: %s" % error)

    def kill_all(self):
        """Kills what `down` has left behind, if anything."""
        try:
            processes = self.processes()
        except OSError:
            return
        for process in processes.values():
            if not process["pid"]:
                continue
            try:
                os.kill(process["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass


def wait_until(condition, what, within_s=30.0):
    """Looks again and again until `condition` is true; fails when it has not become so in time."""
    deadline = time.monotonic() + within_s
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, "not within %.0f s: %s" % (within_s, what)
        time.sleep(0.01)


def is_gone(pid):
    """Also of what the record says was ended: None."""
    if not pid:
        return True
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
