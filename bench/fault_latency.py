#!/usr/bin/env python3
"""What agents' clients notice of a process that dies or stands still.

  bench/fault_latency.py [--fault node-killed] [--fabric shm|tcp] [--seconds 6] [--keys 1000]

One client per agent of a cluster of two reads and overwrites keys that both agents know (registers)
and increments counters of its own (slots), in turn. First for --seconds without an event, then as
long with the fault after a third: a memory node, the second agent or the master is killed by
SIGKILL, or a memory node stands still for 3 s. An agent that was killed is started again at
once. Prints of both, for GET, SET and INCR: operations,
failures, p50, p99, p99.9, the longest; and what the master says of it, in ms from the fault on.
Of an agent that is killed the own client does not count. --fill SETs of random keys ahead of it make
the index, which is looked through afterwards, as large as one likes. Exit code 1 if an operation failed.
"""

import argparse
import contextlib
import datetime
import os
import random
import signal
import subprocess
import sys
import threading
import time

import compare_redis
from cluster_processes import Cluster
from compare_servers import BenchError, Client

VALUE = "v" * 64
COMMANDS = ("GET", "SET", "INCR")
FAULTS = ("node-killed", "node-stopped", "agent-killed", "master-killed")
STOPPED_S = 3.0


class Load(threading.Thread):
    def __init__(self, port, seconds, keys):
        super().__init__()
        self.port = port
        self.seconds = seconds
        self.keys = keys
        self.latencies_us = {command: [] for command in COMMANDS}
        self.failures = []

    def run(self):
        try:
            client = Client(self.port)
            rng = random.Random(self.port)
            end = time.perf_counter() + self.seconds
            while time.perf_counter() < end:
                for command in COMMANDS:
                    number = rng.randrange(self.keys)
                    key = "key:%d" % number
                    if command == "INCR":
                        key = "counter:%d:%d" % (self.port, number)
                    words = (command, key, VALUE) if command == "SET" else (command, key)
                    started = time.perf_counter()
                    try:
                        client.call(*words)
                    except BenchError as error:
                        self.failures.append("%s %s: %s" % (command, key, error))
                    self.latencies_us[command].append((time.perf_counter() - started) * 1e6)
            client.close()
        except (BenchError, OSError) as error:
            self.failures.append(str(error))


def run_load(cluster, seconds, keys, event=None):
    loads = [Load(cluster.port + i, seconds, keys) for i in range(2)]
    for load in loads:
        load.start()
    struck = event() if event is not None else None
    for load in loads:
        load.join()
    return loads, struck


class Strike:
    """The fault, a third into the load. Returns when it struck, in seconds of the epoch."""

    def __init__(self, cluster, fault, seconds):
        self.fault = fault
        self.seconds = seconds
        victim = {"agent": cluster.record["agents"][1], "master": cluster.record["master"],
                  "node": cluster.record["memnodes"][0]}[fault.split("-")[0]]
        self.pid = victim["pid"]
        self.port = cluster.port + 1
        self.next_agent = None
        self.answers_ms = None

    def __call__(self):
        time.sleep(self.seconds / 3)
        with open("/proc/%d/cmdline" % self.pid, encoding="utf-8") as file:
            command = file.read().split("\0")[:-1]
        struck = time.time()
        if self.fault != "node-stopped":
            os.kill(self.pid, signal.SIGKILL)
            if self.fault == "agent-killed":
                self.start_again(command, struck)
            return struck
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(self.pid, signal.SIGCONT)
        return struck

    def start_again(self, command, struck):
        """Another agent in its place, until that answers."""
        self.next_agent = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
        while self.answers_ms is None:
            if self.next_agent.poll() is not None:
                raise BenchError("the next agent has ended with %d" % self.next_agent.returncode)
            try:
                with contextlib.closing(Client(self.port)) as client:
                    client.call("GET", "key:0")
                    self.answers_ms = (time.time() - struck) * 1e3
            except (BenchError, OSError):
                time.sleep(0.001)

    def end(self):
        if self.next_agent is not None:
            self.next_agent.terminate()
            self.next_agent.wait(30)


def show_log(path, struck, only=""):
    """The lines since the fault."""
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            if only not in line:
                continue
            try:
                at = datetime.datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S.%f").timestamp()
            except ValueError:
                continue
            if at >= struck - 0.001:
                print("  %8.0f ms  %s" % ((at - struck) * 1e3, line[24:].rstrip()))


def show(name, loads):
    failures = [failure for load in loads for failure in load.failures]
    for command in COMMANDS:
        latencies = sorted(us for load in loads for us in load.latencies_us[command])
        at = lambda share: latencies[min(len(latencies) - 1, int(share * len(latencies)))]
        print("%-14s %s %8d operations, us: p50 %.0f, p99 %.0f, p99.9 %.0f, longest %.0f" % (
            name, command, len(latencies), at(0.5), at(0.99), at(0.999), latencies[-1]))
    print("%-14s %d failed" % (name, len(failures)))
    for failure in failures[:10]:
        print("  %s" % failure)
    return not failures


def main():
    parser = argparse.ArgumentParser(prog="bench/fault_latency.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="tcp", choices=("shm", "tcp", "mixed"))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--fill", type=int, default=0)
    parser.add_argument("--memory", default="256MiB", help="of a memory node (default 256MiB)")
    parser.add_argument("--fault", default="node-killed", choices=FAULTS)
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    cluster = Cluster("cluster", arguments.bin, arguments.fabric, arguments.memory, agents=2)
    try:
        cluster.start()
        if arguments.fill:
            subprocess.run(["redis-benchmark", "-p", str(cluster.port), "-t", "set", "-P", "32", "-q",
                            "-n", str(arguments.fill), "-r", str(arguments.fill), "-d", "64"],
                           check=True, stdout=subprocess.DEVNULL, timeout=300)
            with contextlib.closing(Client(cluster.port)) as client:
                print("%d keys" % client.call("DBSIZE"))
        for agent in range(2):
            client = Client(cluster.port + agent)
            for i in range(arguments.keys):
                client.call("SET", "key:%d" % i, VALUE)
            client.close()
        run_load(cluster, 1.0, arguments.keys)
        loads, _ = run_load(cluster, arguments.seconds, arguments.keys)
        clean = show("without event", loads)
        strike = Strike(cluster, arguments.fault, arguments.seconds)
        loads, struck = run_load(cluster, arguments.seconds, arguments.keys, strike)
        if arguments.fault == "agent-killed":
            del loads[1]
        clean &= show(arguments.fault, loads)
        show_log(cluster.record["master"]["log"], struck)
        if arguments.fault == "agent-killed":
            show_log(cluster.record["agents"][0]["log"], struck, "took over")
            print("  %8.0f ms  an agent that was started in its place answers" % strike.answers_ms)
        strike.end()
        return 0 if clean else 1
    except (BenchError, OSError) as error:
        print("fault_latency: %s" % error, file=sys.stderr)
        return 1
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
