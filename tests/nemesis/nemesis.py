#!/usr/bin/env python3
"""Breaks a cluster of processes at random while clients work on it, and judges what they saw.

  tests/nemesis/nemesis.py --minutes 2 [--seed N] [--fabric shm|tcp|mixed | --hosts] [--kinds KIND,KIND...]

Every fault is drawn from the seed and printed as it happens; when it happens depends on how long
the cluster takes to heal. Exit code 0 when all is well; the last line is `N passed, N failed, N skipped`.
"""

import argparse
import contextlib
import functools
import os
import random
import re
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[1:1] = [os.path.join(TESTS, "cluster"), os.path.join(TESTS, "compat")]

# pylint: disable=wrong-import-position
import faults  # noqa: E402
import fleet  # noqa: E402
import partitions  # noqa: E402
import state  # noqa: E402
from client import NemesisClient, print_report  # noqa: E402
from live import Skip  # noqa: E402
from local_cluster import LocalCluster, wait_until  # noqa: E402
from report import Report  # noqa: E402
from resp_client import Client  # noqa: E402

PROGRAMS = ("onetrip", "onetrip-master", "onetrip-memnode", "onetrip-agent")
AGENTS = 3
AT_ONCE = 2
CALM_S = 2.0
WHOLE_S = 120
# A fault that has a process in hand may move all of its regions first.
TAKE_S = 300
KINDS = {**faults.KINDS, **state.KINDS, **partitions.KINDS}
# Not done where every process has a host of its own.
ONE_HOST = {"connections-cut", "node-moves", *state.KINDS}


class World:
    """The cluster, the client and what faults need to know of each other."""

    def __init__(self, cluster_fleet, client):
        self.fleet = cluster_fleet
        self.client = client
        self.started = time.monotonic()
        self.surprises = []
        self.failures = []
        self.log = []  # (kind, text, begin, end)
        self.expelled = 0
        self.starved = 0
        self._may_expel = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._watch_processes)

    def say(self, text):
        with self._lock:
            print("%8.2f s  %s" % (time.monotonic() - self.started, text), flush=True)

    @contextlib.contextmanager
    def in_hand(self, *processes):
        """Waits for those that are being started again: two faults that start one would start two.
        Each takes the master last, for two that wait for each other would wait for ever."""
        processes = sorted(processes, key=lambda process: (process.name == "master", process.name))
        for process in processes:
            wait_until(functools.partial(self._take, process),
                       "%s is nobody else's" % process.name, TAKE_S)
        try:
            yield
        finally:
            for process in processes:
                process.in_hand = False

    def _take(self, process):
        with self._lock:
            free = not process.in_hand
            process.in_hand = True
        return free

    @contextlib.contextmanager
    def agents_may_be_expelled(self):
        with self._lock:
            self._may_expel += 1
        try:
            yield
        finally:
            with self._lock:
                self._may_expel -= 1

    @contextlib.contextmanager
    def agent_down(self, number):
        self.client.tell("down %d" % number)
        try:
            yield
        finally:
            self.client.tell("up %d" % number)

    @contextlib.contextmanager
    def memory_full(self):
        self.client.tell("full")
        try:
            yield
        finally:
            self.client.tell("free")

    @staticmethod
    def connect(address):
        if address.startswith("/"):
            return Client(path=address, timeout_s=8.0)
        host, _, port = address.rpartition(":")
        return Client(host=host, port=int(port), timeout_s=8.0)

    def run(self, kind, fault):
        """In a thread of its own."""
        begin = time.monotonic()
        self.say("%s: %s" % (kind, fault.text()))
        try:
            fault.run()
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append("%s: %s: %s" % (fault.text(), type(error).__name__, error))
            self.say("FAILED: " + self.failures[-1])
        self.say("%s is over after %.1f s" % (kind, time.monotonic() - begin))
        self.log.append((kind, fault.text(), begin, time.monotonic()))

    def start_watching(self):
        self._watch.start()

    def stop_watching(self):
        self._stop.set()
        self._watch.join()

    def _watch_processes(self):
        """No process ends that no fault has in hand; one that ends all the same is restarted."""
        restarts = []
        while not self._stop.wait(0.05):
            for process in self.fleet.processes.values():
                if process.in_hand or process.poll() is None:
                    continue
                # A fault may have taken it in hand between the two looks.
                time.sleep(0.02)
                if not self._take(process):
                    continue
                if process.poll() is None:
                    process.in_hand = False
                    continue
                self._note_end(process)
                restarts.append(threading.Thread(target=self._restart, args=(process,)))
                restarts[-1].start()
        for restart in restarts:
            restart.join()

    def _restart(self, process):
        down = contextlib.nullcontext()
        if process.name.startswith("agent"):
            down = self.agent_down(self.fleet.named("agent").index(process))
        try:
            with down:
                process.start()
        except AssertionError as error:
            self.failures.append(str(error))
        finally:
            process.in_hand = False

    def _note_end(self, process):
        if self._may_expel and process.exit_code in faults.EXPELLED:
            self.expelled += 1
            self.say("%s was expelled" % process.name)
            return
        if process.exit_code in faults.EXPELLED and self.was_silent(process):
            self.starved += 1
            self.say("%s was silent for longer than its lease, and expelled" % process.name)
            return
        self.surprises.append("%s ended by itself with code %d at %.2f s: %s" % (
            process.name, process.exit_code, time.monotonic() - self.started,
            process.last_words()))
        self.say(self.surprises[-1])

    def was_silent(self, process):
        """True if the master expelled the agent since it heard nothing of it in time: on a host
        that has too much to do that may happen to any agent."""
        said = r"\(process %d on \S+\) is expelled: (its lease|it has lost its stream)" % process.pid
        log = self.fleet.processes["master"].log_since(0).decode(errors="replace")
        return process.name.startswith("agent") and re.search(said, log) is not None


def break_things(world, rng, kinds, until):
    """Draws faults until it is time, and waits for their end."""
    if not kinds:
        return
    running = []
    weights = [KINDS[kind].weight for kind in kinds]
    while time.monotonic() < until and not world.failures:
        time.sleep(rng.choice((0.0, 0.3, 1.0)) * rng.random())
        kind = rng.choices(kinds, weights)[0]
        fault = KINDS[kind](rng, world)
        # If two may not happen beside each other, the later one waits.
        while True:
            running = [one for one in running if one[0].is_alive()]
            if len(running) < AT_ONCE and all(one[1].place != fault.place for one in running):
                break
            time.sleep(0.02)
        if time.monotonic() >= until:
            break
        thread = threading.Thread(target=world.run, args=(kind, fault), daemon=True)
        thread.start()
        running.append((thread, fault))
    for thread, _ in running:
        thread.join()


def usable_kinds(names, report):
    kinds = []
    for kind in names:
        try:
            KINDS[kind].require()
            kinds.append(kind)
        except Skip as skip:
            report.skipped(kind, skip)
    return kinds


def check(report, name, problems):
    if problems:
        report.failing(name, "\n    ".join(problems))
    else:
        report.passing(name, 0)


@contextlib.contextmanager
def local_fleet(arguments, fabric):
    with LocalCluster(arguments.bin, memnodes=arguments.memnodes, agents=AGENTS, fabric=fabric,
                      memory=arguments.memory,
                      extra=["--persistent", "--threads", str(arguments.threads)]) as cluster:
        processes = fleet.LocalFleet(cluster)
        try:
            yield processes
        finally:
            processes.kill_all()


def run(arguments, report):
    rng = random.Random(arguments.seed)
    fabric = arguments.fabric or rng.choice(("shm", "tcp", "mixed"))
    # Draws from a generator of their own, so that the faults do not depend on them.
    drawn = random.Random(-1 - arguments.seed)
    arguments.threads = arguments.threads or drawn.choice((1, 4))
    if arguments.flush_all is None:
        arguments.flush_all = drawn.randrange(5) == 0
    # Kinds that only a network of hosts makes possible, and kinds that are only done on one host.
    unfit = ONE_HOST if arguments.hosts else partitions.KINDS
    kinds = usable_kinds([kind for kind in arguments.kinds if kind not in unfit], report)
    fleet.adopt_orphans()
    if arguments.hosts:
        fabric = "tcp between hosts"
        a_fleet = partitions.hosts_fleet(arguments.bin, arguments.memnodes, AGENTS,
                                         arguments.memory, arguments.threads)
    else:
        a_fleet = local_fleet(arguments, fabric)
    print("nemesis: seed %d, fabric %s, agents of %d threads, %s%.1f minutes, faults: %s" % (
        arguments.seed, fabric, arguments.threads,
        "FLUSHALL and little else, " if arguments.flush_all else "", arguments.minutes,
        ", ".join(kinds)), flush=True)
    with a_fleet as processes, contextlib.ExitStack() as stack:
        client = NemesisClient(arguments.client, processes.addresses, arguments.seed,
                               arguments.out, ["--flush-all"] if arguments.flush_all else [])
        stack.callback(client.kill)
        world = World(processes, client)
        for number in range(len(processes.addresses)):
            client.tell("up %d" % number)
        world.start_watching()
        try:
            break_things(world, rng, kinds, world.started + arguments.minutes * 60)
            healed = heal(world)
            findings = client.finish()
        finally:
            world.stop_watching()
        print_report(findings, world.log, world.started)
        print("agents expelled by what cut them off: %d, since they were silent: %d" % (
            world.expelled, world.starved))
        check(report, "what clients saw is explained, nothing is lost, sums are right",
              findings["failures"])
        check(report, "the faults were healed", world.failures + healed)
        check(report, "no process ended by itself", world.surprises)
        check(report, "every process ends cleanly", processes.end())
        check(report, "no process crashed, in whatever life",
              [crash for process in processes.everybody() for crash in process.crashes])
        errors = ["%s: %s" % (process.name, line) for process in processes.everybody()
                  for line in process.errors()]
        if errors:
            print("lines of log that a human must act upon, %d:\n    %s" % (
                len(errors), "\n    ".join(errors[:10])))
        if report.failures:
            keep_logs(processes, arguments.out)


def heal(world):
    """Waits until all is well, and a little longer; what is not."""
    problems = []
    try:
        wait_until(world.fleet.is_whole, "everybody is up and every region redundant", WHOLE_S)
    except AssertionError as error:
        problems = [str(error), "the status is %s" % world.fleet.status()]
    time.sleep(CALM_S)
    world.say("healed; the last checks")
    return problems


def keep_logs(processes, out):
    """The logs outlive the cluster's folder."""
    target = os.path.join(out, "nemesis-logs-%d" % os.getpid())
    os.makedirs(target, exist_ok=True)
    for process in processes.everybody():
        with open(os.path.join(target, process.name + ".log"), "wb") as file:
            file.write(process.log_since(0))
    print("the logs are in " + target)


def main():
    build = os.path.join(os.path.dirname(TESTS), "build/release/bin")
    parser = argparse.ArgumentParser(prog="tests/nemesis/nemesis.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=build,
                        help="folder of the programs (default build/release/bin)")
    parser.add_argument("--client", help="nemesis_client (default: that of --bin)")
    parser.add_argument("--minutes", type=float, default=2, help="of faults (default 2)")
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6),
                        help="of faults and commands (default: a random one)")
    parser.add_argument("--fabric", choices=("shm", "tcp", "mixed"),
                        help="how agents reach memory nodes (default: drawn from the seed)")
    parser.add_argument("--threads", type=int, help="of each agent (default: 1 or 4, drawn)")
    parser.add_argument("--flush-all", action=argparse.BooleanOptionalAction,
                        help="FLUSHALL now and then, and of all work only the generations "
                        "(default: drawn, one run of five)")
    parser.add_argument("--hosts", action="store_true",
                        help="every process on a host of its own, a network namespace, between "
                        "which the network is cut")
    parser.add_argument("--memnodes", type=int, default=3, help="memory nodes (default 3)")
    parser.add_argument("--memory", default="256MiB", help="of each (default 256MiB)")
    parser.add_argument("--out", default=".",
                        help="folder for histories and logs of what failed (default .)")
    parser.add_argument("--kinds", default=",".join(KINDS),
                        help="kinds of faults (default %(default)s)")
    arguments = parser.parse_args()
    arguments.bin = os.path.abspath(arguments.bin)
    arguments.client = os.path.abspath(arguments.client or
                                       os.path.join(arguments.bin, "nemesis_client"))
    arguments.kinds = arguments.kinds.split(",")
    os.makedirs(arguments.out, exist_ok=True)
    for program in [os.path.join(arguments.bin, name) for name in PROGRAMS] + [arguments.client]:
        if not os.access(program, os.X_OK):
            parser.error("no %s; build it, or pass --bin and --client" % program)
    for kind in arguments.kinds:
        if kind not in KINDS:
            parser.error("no kind %s; there are %s" % (kind, ", ".join(KINDS)))
    report = Report(verbose=True)
    # A run that is interrupted leaves no processes and no network behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        run(arguments, report)
    except Skip as skip:
        report.skipped("nemesis", skip)
    for name in report.failures:
        print("failed: " + name)
    if report.skips:
        print("skipped: " + ", ".join(report.skips))
    print("%d passed, %d failed, %d skipped" % (report.passed, len(report.failures),
                                                len(report.skips)))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
