#!/usr/bin/env python3
"""How long commands on a million elements keep the agent's thread from its other clients.

  bench/turns.py [--elements 1000000] [--repeat 5] [--limit 1.0]

As root, with perf and tracefs. An embedded agent of one worker has a hash, a set, a list and a
sorted set. For each command the kernel's tracepoints tell when the worker returned from epoll_wait
and when it called it again: that is a turn of its loop, in which nothing else is served. Counted is
the thread's CPU time in a turn: the time in which it was switched out is taken off, and that of
interrupts that came while it ran (not softirqs of the network, which are its own). Time that a
hypervisor takes a virtual processor away is not known, so each command runs --repeat times, and
"least max" is the least of the runs' longest turns, minimum over the repetitions of the maximum.

Another client's PINGs meanwhile, one after the other, are the control; they see all of the noise.
Whole reads end with their last byte. DEL and expiry, of collections made for each run, end when the
pool has its memory back; INFO and DBSIZE are asked for twenty times a second until then, also in
the row of "nothing".

Exit code 1 if the least max of a command is above --limit, or nothing could be measured.
"""

import argparse
import contextlib
import multiprocessing
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import compare_redis
from compare_servers import BenchError, Client, Server, encode

WHOLE = ("HGETALL hash", "SMEMBERS set", "LRANGE list 0 -1", "ZRANGE zset 0 -1")
KINDS = ("hash", "set", "list", "zset")
FILL_AT_ONCE = 250_000
PING_PAUSE_S = 0.0002
PINGS = 500
LOOK_S = 0.05
SETTLED_LOOKS = 6
NOTHING_S = 1.0
GIVE_UP_S = 60
END = b"thatisall"
# Softirqs 2 and 3, NET_TX and NET_RX, are how the thread's own sends reach a client of this host.
ITS_OWN = "common_pid == %d"
EVENTS = [("syscalls:sys_%s_%s" % (way, call), ITS_OWN) for way in ("enter", "exit")
          for call in ("epoll_wait", "epoll_pwait", "epoll_pwait2")]
EVENTS += [("sched:sched_switch", "prev_pid == %d || next_pid == %d")]
EVENTS += [("irq:%s" % name, ITS_OWN) for name in ("irq_handler_entry", "irq_handler_exit")]
EVENTS += [("irq:%s" % name, ITS_OWN + " && vec != 2 && vec != 3")
           for name in ("softirq_entry", "softirq_exit")]
EVENTS += [("irq_vectors:%s_%s" % (vector, way), ITS_OWN) for way in ("entry", "exit")
           for vector in ("local_timer", "reschedule", "call_function", "call_function_single")]
LINE = re.compile(r"\s*(\d+)\.(\d+):\s+\w+:(\w+):\s?(.*)")
SWITCH = re.compile(r"prev_pid=(\d+) .*next_pid=(\d+)")


def usable():
    """Raises what is missing on this machine."""
    if os.geteuid() != 0:
        raise BenchError("tracepoints take root")
    if shutil.which("perf") is None:
        raise BenchError("there is no perf (Debian: linux-perf)")
    if not any(os.path.isdir(path + "/events/syscalls") for path in
               ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")):
        raise BenchError("no tracefs with syscalls' tracepoints: mount -t tracefs nodev "
                         "/sys/kernel/tracing; or, for this program alone, unshare -m sh -c "
                         "'mount -t tracefs nodev /sys/kernel/tracing && exec bench/turns.py'")


class Trace:
    """perf on one thread, for the time of a `with`; then `turns`: [(begin, wall, out, irq)] in ns."""

    def __init__(self, tid, path):
        self.tid = tid
        self.path = path
        self.turns = []
        self.process = self.tell = self.hear = None

    def __enter__(self):
        told, self.tell = os.pipe()
        self.hear, acknowledge = os.pipe()
        command = ["perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "4096", "-D", "-1",
                   "--control", "fd:%d,%d" % (told, acknowledge), "-o", self.path]
        for event, only in EVENTS:
            command += ["-e", event, "--filter", only.replace("%d", str(self.tid))]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        pass_fds=(told, acknowledge), text=True)
        os.close(told)
        os.close(acknowledge)
        self.say(b"enable\n")
        if not os.read(self.hear, 16):
            raise BenchError("perf record: " + self.process.communicate()[1].strip())
        return self

    def say(self, word):
        with contextlib.suppress(BrokenPipeError):
            os.write(self.tell, word)

    def __exit__(self, kind, *_):
        self.say(b"stop\n")
        said = self.process.communicate()[1]
        os.close(self.tell)
        os.close(self.hear)
        if kind is None:
            self.read(said)

    def read(self, said):
        if self.process.returncode != 0:
            raise BenchError("perf record: " + said.strip())
        done = subprocess.run(["perf", "script", "-i", self.path, "--ns", "-F", "time,event,trace",
                               "--show-lost-events"], capture_output=True, check=False, text=True)
        if done.returncode != 0:
            raise BenchError("perf script: " + done.stderr.strip())
        if "PERF_RECORD_LOST" in done.stdout or "lost" in said.lower():
            raise BenchError("perf lost events: " + said.strip())
        self.turns = turns_of(done.stdout.splitlines(), self.tid)
        if not self.turns:
            raise BenchError("perf saw no turn of thread %d; is this a container with process ids "
                             "of its own?" % self.tid)


def turns_of(lines, tid):
    """Of what `perf script` prints: [(begin, wall, switched out, interrupts)], in nanoseconds."""
    turns = []
    begin = out_since = irq_since = None
    out = irq = depth = 0
    for line in lines:
        found = LINE.match(line)
        if found is None:
            continue
        now = int(found.group(1)) * 1_000_000_000 + int(found.group(2))
        event = found.group(3)
        if event.startswith("sys_exit_epoll"):
            begin, out, irq, depth, out_since = now, 0, 0, 0, None
        elif begin is None:
            continue
        elif event.startswith("sys_enter_epoll"):
            turns.append((begin, now - begin, out, irq))
            begin = None
        elif event == "sched_switch":
            switch = SWITCH.search(found.group(4))
            if int(switch.group(1)) == tid:
                out_since = now
            elif out_since is not None:
                out += now - out_since
                out_since = None
        elif event.endswith("entry"):
            irq_since = irq_since if depth else now
            depth += 1
        elif depth:
            depth -= 1
            irq += 0 if depth else now - irq_since
    return turns


def ping(port, pipe):
    """A process: [(when, ns)] of PINGs until it is told to end."""
    client = Client(port)
    found = []
    pipe.send(None)
    while not pipe.poll():
        started = time.monotonic_ns()
        client.call("PING")
        found.append((started, time.monotonic_ns() - started))
        time.sleep(PING_PAUSE_S)
    pipe.send(found)


@contextlib.contextmanager
def pings(port, found):
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=ping, args=(port, there), daemon=True)
    process.start()
    try:
        here.recv()
        yield
        here.send(None)
        found += here.recv()
    finally:
        process.terminate()
        process.join()


def elements(kind, first, last):
    """A command that adds them, without the key."""
    numbers = range(first, last)
    if kind == "hash":
        return "HSET", [word for i in numbers for word in ("field:%07d" % i, "value:%d" % i)]
    if kind == "zset":
        return "ZADD", [word for i in numbers for word in (str(i), "member:%07d" % i)]
    return {"set": "SADD", "list": "RPUSH"}[kind], ["member:%07d" % i for i in numbers]


def fill(client, kind, key, count):
    for first in range(0, count, FILL_AT_ONCE):
        verb, words = elements(kind, first, min(first + FILL_AT_ONCE, count))
        client.call(verb, key, *words)


def copy(client, kind, count):
    """The key "gone", a copy. It is packed until something changes, and then a tree again."""
    if client.call("COPY", kind, "gone") != 1:
        raise BenchError("COPY has not made a copy")
    verb, words = elements(kind, count, count + 1)
    client.call(verb, "gone", *words)


def worker_of(pid, client):
    """The thread that each PING wakes up."""
    def sleeps():
        found = {}
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid)) as file:
                found[int(tid)] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(),
                                                re.M).group(1))
        return found
    before = sleeps()
    for _ in range(PINGS):
        client.call("PING")
    return max((count - before.get(tid, 0), tid) for tid, count in sleeps().items())[1]


def info(client, field):
    return int(re.search(r"^%s:(\d+)" % field, client.call("INFO", "onetrip").decode(),
                         re.M).group(1))


def settle(client, keys):
    """Until that number of keys is left, and the pool's live bytes are the same for some looks."""
    deadline = time.monotonic() + GIVE_UP_S
    before, same = None, 0
    while same < SETTLED_LOOKS:
        live = info(client, "pool_live_bytes")
        same = same + 1 if live == before and client.call("DBSIZE") == keys else 0
        before = live
        if time.monotonic() > deadline:
            raise BenchError("the memory is not back after %d s" % GIVE_UP_S)
        time.sleep(LOOK_S)


class Runs:
    """The runs of one command."""

    def __init__(self, name):
        self.name = name
        self.turns = []        # of each run: CPU ns, sorted
        self.walls = []        # the longest, with all that came in between
        self.pings = []
        self.took_s = []

    def add(self, turns, found, took_s):
        self.turns.append(sorted(wall - out - irq for _, wall, out, irq in turns))
        self.walls.append(max(wall for _, wall, _, _ in turns))
        self.pings += [ns for _, ns in found]
        self.took_s.append(took_s)

    def least_max_us(self):
        return min(run[-1] for run in self.turns) / 1e3

    def show(self):
        every = sorted(ns for run in self.turns for ns in run)
        self.pings.sort()
        at = lambda values, share: values[min(len(values) - 1, int(share * len(values)))] / 1e3
        print("| %s | %.2f | %d | %.0f, %.0f | %.0f | **%.0f** | %.0f | %.0f, %.0f, %.0f |" % (
            self.name, statistics.median(self.took_s),
            statistics.median(len(run) for run in self.turns), at(every, 0.5), at(every, 0.99),
            at(every, 1), self.least_max_us(), max(self.walls) / 1e3, at(self.pings, 0.5),
            at(self.pings, 0.99), at(self.pings, 1)), flush=True)


class Bench:
    def __init__(self, server, arguments):
        self.port = server.port
        self.count = arguments.elements
        self.repeat = arguments.repeat
        self.data = os.path.join(server.directory, "perf.data")
        self.client = Client(self.port, timeout_s=GIVE_UP_S)
        for kind in KINDS:
            fill(self.client, kind, kind, self.count)
        self.tid = worker_of(server.process.pid, self.client)

    def run(self, runs, act):
        """One run; `act` returns when it is over."""
        found = []
        with pings(self.port, found):
            with Trace(self.tid, self.data) as trace:
                begin = time.monotonic_ns()
                act()
                end = time.monotonic_ns()
        inside = lambda timed: [one for one in timed if begin <= one[0] < end]
        runs.add(inside(trace.turns), inside(found), (end - begin) / 1e9)

    def whole(self, command):
        """Reads a reply as it comes, and does nothing with it."""
        self.client.send(encode(*command) + encode("ECHO", END))
        tail = b"\r\n$%d\r\n%s\r\n" % (len(END), END)
        last = first = b""
        while not last.endswith(tail):
            data = self.client.sock.recv(1 << 20)
            if not data:
                raise BenchError("the agent closed the connection")
            first = first or data[:40]
            last = (last + data)[-len(tail):]
        if first[:1] == b"-":
            raise BenchError("%s: %r" % (" ".join(command), first))

    def all_rows(self, also):
        nothing = Runs("nothing, for %.0f s" % NOTHING_S)
        for _ in range(self.repeat):
            self.run(nothing, self.look_on)
        yield nothing
        for command in WHOLE + tuple(also):
            runs = Runs(command)
            for _ in range(self.repeat):
                self.run(runs, lambda: self.whole(shlex.split(command)))
            yield runs
        for verb in ("DEL", "expiry"):
            for kind in KINDS:
                runs = Runs("%s of a %s" % (verb, kind))
                for _ in range(self.repeat):
                    copy(self.client, kind, self.count)
                    settle(self.client, len(KINDS) + 1)
                    self.run(runs, lambda: self.remove(verb))
                yield runs

    def look_on(self):
        end = time.monotonic() + NOTHING_S
        while time.monotonic() < end:
            settle(self.client, len(KINDS))

    def remove(self, verb):
        self.client.call(*(("DEL", "gone") if verb == "DEL" else ("PEXPIRE", "gone", "300")))
        settle(self.client, len(KINDS))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/turns.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--also", action="append", default=[], metavar="COMMAND",
                        help="one more, which leaves keys as they are, such as 'DUMP zset'")
    parser.add_argument("--limit", type=float, default=1.0,
                        help="ms that are too long for a turn; 0: none (default 1.0)")
    parser.add_argument("--memory", default="2GiB", help="of each memory node (default 2GiB)")
    parser.add_argument("--port", type=int, default=0, help="of the agent; 0: a free one (default)")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    server = Server("agent", [os.path.join(os.path.abspath(arguments.bin), "onetrip-agent"),
                              "--port", "{port}", "--memory", arguments.memory], arguments.port)
    try:
        usable()
        server.start()
        bench = Bench(server, arguments)
        print("%d elements in each collection, %d runs of each command, thread %d, load %.2f; us "
              "but for the seconds:\n" % (arguments.elements, arguments.repeat, bench.tid,
                                          os.getloadavg()[0]))
        print("| command | took s | turns | CPU of a turn: p50, p99 | max | least max | longest "
              "with all noise | PING: p50, p99, max |\n|---|---|---|---|---|---|---|---|", flush=True)
        long = []
        for runs in bench.all_rows(arguments.also):
            runs.show()
            if 0 < arguments.limit * 1e3 < runs.least_max_us():
                long.append(runs.name)
        if arguments.limit > 0:
            print("\nturns above %.1f ms of CPU in every run: %s" % (
                arguments.limit, ", ".join(long) or "none"))
        return 1 if long else 0
    except (BenchError, OSError) as error:
        print("turns: %s; the agent's last words: %s" % (error, server.log_tail()),
              file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
