#!/usr/bin/env python3
"""What agents' clients notice of a master that is killed and started again.

  bench/master_restart.py [--fabric shm|tcp] [--seconds 10]

One client per agent of a cluster of two sends INCR and GET in turn. First for --seconds without an
event, then as long with the master killed by SIGKILL after a third and started again after half of
it. Prints for both: operations, failures, p50, p99, p99.9, the longest.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time

import compare_redis
from cluster_processes import Cluster
from compare_servers import BenchError, Client


class Load(threading.Thread):
    def __init__(self, port, seconds):
        super().__init__()
        self.port = port
        self.seconds = seconds
        self.latencies_us = []
        self.failures = []

    def run(self):
        try:
            client = Client(self.port)
            end = time.perf_counter() + self.seconds
            commands = (("INCR", "n"), ("GET", "n"))
            turn = 0
            while time.perf_counter() < end:
                started = time.perf_counter()
                client.call(*commands[turn % 2])
                self.latencies_us.append((time.perf_counter() - started) * 1e6)
                turn += 1
            client.close()
        except (BenchError, OSError) as error:
            self.failures.append(error)


def run_load(cluster, seconds, event=None):
    loads = [Load(cluster.port + i, seconds) for i in range(2)]
    for load in loads:
        load.start()
    if event is not None:
        event()
    for load in loads:
        load.join()
    failures = [failure for load in loads for failure in load.failures]
    return sorted(us for load in loads for us in load.latencies_us), failures


def show(name, latencies, failures):
    at = lambda share: latencies[min(len(latencies) - 1, int(share * len(latencies)))]
    print("%-16s %8d operations, %d failed, us: p50 %.0f, p99 %.0f, p99.9 %.0f, longest %.0f" % (
        name, len(latencies), len(failures), at(0.5), at(0.99), at(0.999), latencies[-1]))


def main():
    parser = argparse.ArgumentParser(prog="bench/master_restart.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp", "mixed"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    cluster = Cluster("cluster", arguments.bin, arguments.fabric, "256MiB", agents=2)
    restarted = []

    def event():
        master = cluster.record["master"]
        with open("/proc/%d/cmdline" % master["pid"], "rb") as file:
            command = [part.decode() for part in file.read().split(b"\0")[:-1]]
        command[command.index("--listen") + 1] = master["address"]
        time.sleep(arguments.seconds / 3)
        os.kill(master["pid"], signal.SIGKILL)
        time.sleep(arguments.seconds / 6)
        restarted.append(subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))

    try:
        cluster.start()
        run_load(cluster, 1.0)
        show("without event", *run_load(cluster, arguments.seconds))
        latencies, failures = run_load(cluster, arguments.seconds, event)
        show("master restarted", latencies, failures)
        for failure in failures:
            print("  %s" % failure)
        return 1 if failures else 0
    except (BenchError, OSError) as error:
        print("master_restart: %s" % error, file=sys.stderr)
        return 1
    finally:
        cluster.stop()
        for process in restarted:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
