"""The processes of a cluster one by one: killed, frozen, thawed, started again."""

import ctypes
import os
import re
import signal
import subprocess
import threading
import time

from local_cluster import wait_until

READY = b" is ready: "
START_S = 60
END_S = 30
MOVES_S = 240
# How a process ends that has met what it takes for impossible, or what is so.
CRASHES = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}
_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """A process that `onetrip up` leaves behind becomes a child of this one, which sees its end."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Process:
    """One seat of the cluster: the same command line in every life."""

    def __init__(self, name, pid, command, log):
        self.name = name
        self.pid = pid
        self.command = command
        self.log_path = log
        # A fault has it in hand: its end is no surprise.
        self.in_hand = False
        self.exit_code = None
        # The last words of each life that crashed: a fault that has it in hand may not look.
        self.crashes = []
        # Where the log of this life begins.
        self.begin_bytes = 0
        self._lock = threading.Lock()

    def poll(self):
        """The exit code, negative for a signal; None while it lives."""
        with self._lock:
            if self.exit_code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid == self.pid:
                    self.exit_code = os.waitstatus_to_exitcode(status)
                    if self.exit_code in CRASHES:
                        self.crashes.append("%s ended with code %d: %s" % (
                            self.name, self.exit_code, self.last_words()))
            return self.exit_code

    def send(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.await_end()

    def await_end(self, within_s=END_S):
        wait_until(lambda: self.poll() is not None, "the end of " + self.name, within_s)

    def end_in_order(self):
        self.send(signal.SIGTERM)
        self.await_end()
        assert self.exit_code == 0, "%s ended by SIGTERM with code %d: %s" % (
            self.name, self.exit_code, self.last_words())

    def backing(self):
        """The file that a memory node keeps its memory in."""
        return self.command[self.command.index("--backing") + 1]

    def freeze(self):
        """Returns when all of its threads stand still: the signal alone tells one of them."""
        self.send(signal.SIGSTOP)
        wait_until(lambda: self.poll() is not None or self._is_stopped(),
                   "%s stands still" % self.name)

    def _is_stopped(self):
        with open("/proc/%d/stat" % self.pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def start(self):
        """A new life; returns when it is ready."""
        self.begin()
        self.await_ready()

    def begin(self):
        self.begin_bytes = os.path.getsize(self.log_path)
        with open(self.log_path, "ab") as log:
            # A session of its own, as `onetrip up` gives it: Linux shares processors by session, and
            # the one of this program is full of clients and of what else its terminal does.
            child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=log, start_new_session=True)
        # Waited for by pid, as those are that were adopted.
        child.returncode = 0
        with self._lock:
            self.pid, self.exit_code = child.pid, None

    def await_ready(self):
        """A process that cannot join at this moment ends, and is started once more."""
        deadline = time.monotonic() + START_S
        while READY not in self.log_since(self.begin_bytes):
            assert time.monotonic() < deadline, "%s is not ready within %d s: %s" % (
                self.name, START_S, self.last_words())
            time.sleep(0.01)
            if self.poll() is not None:
                time.sleep(0.2)
                self.begin()

    def log_since(self, begin):
        with open(self.log_path, "rb") as file:
            file.seek(begin)
            return file.read()

    def last_words(self):
        return "\n      ".join(self.log_since(0).decode(errors="replace").splitlines()[-4:])

    def errors(self):
        """The lines of its log that a human must act upon."""
        return re.findall(r"^.*\b(?:ERROR|CHECK failed)\b.*$",
                          self.log_since(0).decode(errors="replace"), re.MULTILINE)


class Fleet:
    """Everybody by name. A subclass fills `processes`, in the order of a start, and `addresses`,
    where clients reach the agents. `retired` are those that others have replaced."""

    def __init__(self):
        self.processes = {}
        self.retired = []
        self.addresses = []

    def everybody(self):
        return list(self.processes.values()) + self.retired

    def status(self):
        """The answer of `onetrip status --json`."""
        raise NotImplementedError

    def named(self, kind):
        return [process for name, process in self.processes.items() if name.startswith(kind)]

    def show_logs(self):
        for process in self.processes.values():
            print("    log of %s ends with:\n      %s" % (process.name, process.last_words()))

    def is_whole(self):
        status = self.status()
        members = status["memnodes"] + status["agents"]
        return (status["master"]["state"] == "up" and
                status["regions_fully_redundant"] == status["regions"] and
                sum(member["state"] == "up" for member in members) == len(self.processes) - 1)

    def is_redundant(self):
        status = self.status()
        return (status["master"]["state"] == "up" and
                status["regions_fully_redundant"] == status["regions"] and
                # Numbers of nodes that others have replaced may be there still.
                all(node["state"] == "up" or node["regions"] == 0
                    for node in status["memnodes"]))

    def end(self):
        """Ends everything as an operator does; the names of those that did not end cleanly."""
        late = []
        for kind in ("agent", "memnode", "master"):
            for process in self.named(kind):
                process.send(signal.SIGCONT)
                process.send(signal.SIGTERM)
            for process in self.named(kind):
                try:
                    process.await_end()
                except AssertionError:
                    process.kill()
                if process.exit_code != 0:
                    late.append("%s: exit code %d" % (process.name, process.exit_code))
        return late

    def kill_all(self):
        for process in self.everybody():
            process.send(signal.SIGKILL)


class LocalFleet(Fleet):
    """The processes of a LocalCluster, which is up."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster = cluster
        for name, record in cluster.processes().items():
            command = cluster.command_line(name)
            if name == "master":
                # The members come back to where it was.
                command[command.index("--listen") + 1] = record["address"]
            self.processes[name] = Process(name, record["pid"], command, record["log"])
        self._memnodes = len(self.named("memnode"))
        self.addresses = ["127.0.0.1:%d" % (cluster.port + i) for i in range(cluster.agents)]

    def status(self):
        return self.cluster.status()

    def replace_by_moves(self, process):
        """Another memory node is started, a spare; then `process` is drained to it and ended. (Given
        its share it would add regions, and there would be no room to drain.) The other has its seat
        from the beginning, so that the watch starts it again if it ends."""
        other = self._start_sibling(process)
        try:
            self._drain(process)
            process.end_in_order()
            os.remove(process.backing())
        finally:
            other.in_hand = False

    def _start_sibling(self, process):
        number = self._memnodes
        self._memnodes += 1
        command = list(process.command)
        for flag in ("--socket", "--backing"):
            path = command.index(flag) + 1
            command[path] = re.sub(r"node-\d+", "node-%d" % number, command[path])
        name = "memnode-%d" % number
        log = os.path.join(os.path.dirname(process.log_path), name + ".log")
        with open(log, "wb"):
            pass
        other = Process(name, 0, command, log)
        other.in_hand = True
        other.start()
        self.retired.append(process)
        # In one step, for others look through these.
        self.processes = {name if one is process else seat: other if one is process else one
                          for seat, one in self.processes.items()}
        return other

    def _drain(self, process):
        """`onetrip node drain` of it, again and again: the master may be away, and the spare on its
        way."""
        master = self.processes["master"].command
        deadline = time.monotonic() + MOVES_S
        while True:
            number = next((node["node"] for node in self.status()["memnodes"]
                           if node["pid"] == process.pid), None)
            said = "the master does not know " + process.name
            if number is not None:
                done = subprocess.run(
                    [os.path.join(self.cluster.bin_dir, "onetrip"), "node", "drain", str(number),
                     "--master", master[master.index("--listen") + 1], *self.cluster.secret()],
                    stdin=subprocess.DEVNULL, capture_output=True, timeout=MOVES_S, check=False,
                    text=True)
                if done.returncode == 0:
                    return
                said = "onetrip node drain %d: %s%s" % (number, done.stdout, done.stderr)
            assert time.monotonic() < deadline, said
            time.sleep(0.5)
