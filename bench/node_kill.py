#!/usr/bin/env python3
"""What agents' clients notice of a memory node that is killed: GET and SET of keys that are there.

  bench/node_kill.py [--fabric shm|tcp] [--seconds 6] [--keys 1000] [--node 0]

One client per agent of a cluster of two overwrites and reads keys that both agents know, in turn.
First for --seconds without an event, then as long with a memory node killed by SIGKILL after a
third. Prints of both, for GET and for SET: operations, failures, p50, p99, p99.9, the longest.
Exit code 1 if an operation failed.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time

import compare_redis
from cluster_processes import Cluster
from compare_servers import BenchError, Client

VALUE = "v" * 64
COMMANDS = ("GET", "SET")


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
                    key = "key:%d" % rng.randrange(self.keys)
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
    if event is not None:
        event()
    for load in loads:
        load.join()
    return loads


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
    parser = argparse.ArgumentParser(prog="bench/node_kill.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="tcp", choices=("shm", "tcp", "mixed"))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--node", type=int, default=0, help="which memory node is killed")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    cluster = Cluster("cluster", arguments.bin, arguments.fabric, "256MiB", agents=2)

    def event():
        time.sleep(arguments.seconds / 3)
        os.kill(cluster.record["memnodes"][arguments.node]["pid"], signal.SIGKILL)

    try:
        cluster.start()
        for agent in range(2):
            client = Client(cluster.port + agent)
            for i in range(arguments.keys):
                client.call("SET", "key:%d" % i, VALUE)
            client.close()
        run_load(cluster, 1.0, arguments.keys)
        clean = show("without event", run_load(cluster, arguments.seconds, arguments.keys))
        clean &= show("node killed",
                      run_load(cluster, arguments.seconds, arguments.keys, event))
        return 0 if clean else 1
    except (BenchError, OSError) as error:
        print("node_kill: %s" % error, file=sys.stderr)
        return 1
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
