#!/usr/bin/env python3
"""What a cluster of processes costs when it has nothing to do.

  bench/idle_cost.py [--fabric shm,tcp] [--seconds 20] [--limit 2.0]

Starts master, three memory nodes and two agents by `onetrip up`, lets them settle, and prints for
each process the share of one core (CPU time, not time that passed), how often its threads went to
sleep each second, and its resident memory beside the pool. Beside them a process runs that does
nothing but wake up ten times a second: what a wake-up costs depends on the machine, on virtual ones
by several times from minute to minute, and its share tells which minute this was.

Exit code 1 when a cluster took more than --limit percent of a core.
"""

import argparse
import os
import subprocess
import sys
import time

import compare_redis
from cluster_processes import MIB, Cluster, cpu_of, memory_of, pages_of, wakeups_of
from compare_servers import BenchError

WAKE = "import time\nwhile True: time.sleep(0.1)"


def snapshot(pids):
    return {name: (cpu_of(pid), wakeups_of(pid)) for name, pid in pids.items()}


def measure(cluster, seconds, settle_s=3.0):
    """Prints the cluster's cost at rest; percent of a core, all processes together."""
    pids = cluster.pids()
    wake = subprocess.Popen([sys.executable, "-c", WAKE])
    try:
        time.sleep(settle_s)
        all_pids = dict(pids, **{"(10 wake-ups/s)": wake.pid})
        began = time.monotonic()
        before = snapshot(all_pids)
        time.sleep(seconds)
        after = snapshot(all_pids)
        passed_s = time.monotonic() - began
    finally:
        wake.kill()
        wake.wait()
    shares = {name: 100 * (after[name][0] - before[name][0]) / passed_s for name in all_pids}
    rates = {name: (after[name][1] - before[name][1]) / passed_s for name in all_pids}
    print("  %-16s %10s %12s %22s  %s" % ("process", "% of core", "wake-ups/s",
                                          "MiB beside the pool", "pages of the pool"))
    for name, pid in pids.items():
        resident, pool = memory_of(pid, cluster.pool_bytes)
        print("  %-16s %10.2f %12.1f %22.1f  %s" % (
            name, shares[name], rates[name], (resident - pool) / MIB,
            pages_of(pid, cluster.pool_bytes)))
    total = sum(shares[name] for name in pids)
    print("  %-16s %10.2f %12.1f" % ("all of them", total, sum(rates[name] for name in pids)))
    for name in sorted(set(all_pids) - set(pids)):
        print("  %-16s %10.2f %12.1f" % (name, shares[name], rates[name]))
    return total


def main():
    parser = argparse.ArgumentParser(prog="bench/idle_cost.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="shm,tcp")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured (default 20)")
    parser.add_argument("--memory", default="256MiB", help="of each memory node (default 256MiB)")
    parser.add_argument("--limit", type=float, default=0.0,
                        help="percent of a core that is too much; 0: none (default)")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    worst = 0.0
    try:
        for fabric in arguments.fabric.split(","):
            cluster = Cluster("idle", arguments.bin, fabric, arguments.memory, agents=2)
            try:
                cluster.start()
                print("idle cluster over %s, up in %.2f s, measured for %.0f s, load %.2f:" % (
                    fabric, cluster.start_s, arguments.seconds, os.getloadavg()[0]))
                worst = max(worst, measure(cluster, arguments.seconds))
            finally:
                cluster.stop()
    except (BenchError, OSError) as error:
        print("idle_cost: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if 0 < arguments.limit < worst else 0


if __name__ == "__main__":
    sys.exit(main())
