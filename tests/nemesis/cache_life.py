#!/usr/bin/env python3
"""A cache's life: values of mixed sizes that expire, in a pool that stays mostly full, while agents are restarted.

  tests/nemesis/cache_life.py [--bin build/release/bin] [--minutes 60] [--use 80] [--fabric shm|tcp] [--seed N]

Clients SET keys with deadlines, of 16 bytes to 64 KiB (log-uniform), at such a rate that about --use per cent of the
pool are in use; every --restart-s seconds an agent ends by SIGTERM or SIGKILL, and is started again.
Once a minute it prints what is used, what was refused (-OOM) and how long a SET took, beside the same on the
pool while it was nearly empty. Exit code 0 when nothing was refused, no value was wrong, and in the end, when all has expired
and agents have been killed, `onetrip check` finds nothing lost.
"""

import argparse
import math
import os
import random
import signal
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../" + folder)
                for folder in ("cluster", "compat")]

from load import Connection, request  # noqa: E402
from local_cluster import LocalCluster, is_gone, wait_until  # noqa: E402

SMALLEST, LARGEST = 16, 64 * 1024
# The memory that a value of this mix takes, per byte of it: size classes, headers, and the register
# beside its buffer.
OVERHEAD = 1.25
BATCH = 16


def mean_size():
    return (LARGEST - SMALLEST) / math.log(LARGEST / SMALLEST)


class Life:
    """Everything that all clients have seen since it was last asked."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()
        self.wrong = []

    def reset(self):
        with self.lock:
            self.done, self.refused, self.broken, self.took = 0, 0, 0, []

    def note(self, replies, took):
        with self.lock:
            if replies is None:
                self.broken += 1
                return
            self.done += sum(reply == b"OK" for reply in replies)
            for reply in replies:
                if isinstance(reply, Exception) and "OOM" in str(reply):
                    self.refused += 1
            self.took.append(took)

    def figures(self):
        with self.lock:
            took = sorted(self.took) or [0.0]
            return (self.done, self.refused, self.broken, 1000 * took[len(took) // 2],
                    1000 * took[int(len(took) * 0.99)])


def client(life, port, number, options, pace, stop):
    """Sets keys at the pace, and now and then reads one that it has set."""
    rng = random.Random(options.seed * 1000 + number)
    connection = Connection(port)
    sequence = 0
    known = {}
    begin = time.monotonic()
    while not stop.is_set():
        ahead = sequence / (pace() / options.clients) - (time.monotonic() - begin)
        if ahead > 0:
            stop.wait(min(ahead, 0.1))
            continue
        if ahead < -1:  # it was kept waiting: no storm afterwards
            begin, sequence = time.monotonic(), 0
        commands = []
        for _ in range(BATCH):
            size = int(math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST))))
            key = b"c%d:%d" % (number, rng.randrange(1 << 40))
            value = (key + b"/") * (size // (len(key) + 1) + 1)
            ttl = int(options.ttl * 1000 * rng.uniform(0.5, 1.5))
            commands.append((key, value, ttl))
        sequence += BATCH
        since = time.monotonic()
        replies = connection.call_all([request(b"SET", key, value, b"PX", b"%d" % ttl)
                                       for key, value, ttl in commands])
        life.note(replies, time.monotonic() - since)
        if replies is None:
            continue
        key, value, _ = commands[0]
        if replies[0] == b"OK":
            known[key] = value
        if len(known) > 50:
            key = rng.choice(list(known))
            found = connection.call_all([request(b"GET", key)])
            if found is not None and found[0] is not None and \
                    not isinstance(found[0], Exception) and found[0] != known[key]:
                life.wrong.append(key)
            del known[key]
    connection.close()


def used(cluster):
    return cluster.status()["memory"]["used_bytes"]


def restart(cluster, rng, turn, agents):
    name = "agent-%d" % (turn % agents)
    pid = cluster.processes()[name]["pid"]
    os.kill(pid, rng.choice((signal.SIGTERM, signal.SIGKILL)))
    wait_until(lambda: is_gone(pid), "the end of %s" % name)
    code, _, error = cluster.tool("restart", name, "--dir", cluster.path)
    assert code == 0, error


def check_until_nothing_is_lost(cluster, within_s=150):
    """Workers look in turn for memory that agents died with, within seconds; for memory that was
    lost in a shortage, when looks that find nothing follow one another at up to 64 s."""
    deadline = time.monotonic() + within_s
    while True:
        code, output, error = cluster.tool("check", "--dir", cluster.path)
        if code != 0 or "lost_bytes:0" in output or time.monotonic() > deadline:
            return code, output, error
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--memory", default="256MiB", help="of each memory node")
    parser.add_argument("--use", type=float, default=80, help="per cent of the pool in use")
    parser.add_argument("--ttl", type=float, default=20, help="seconds, on average")
    parser.add_argument("--restart-s", type=float, default=20)
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp"))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    options = parser.parse_args()
    print("seed %d" % options.seed, flush=True)
    rng = random.Random(options.seed)
    life, stop, refused = Life(), threading.Event(), 0
    with LocalCluster(os.path.abspath(options.bin), agents=options.agents, fabric=options.fabric,
                      memory=options.memory) as cluster:
        with cluster.connect(agent=0) as one:
            pool = int(one.call("INFO", "memory").value.decode().split("maxmemory:")[1].split("\r")[0])
        full_rate = pool * options.use / 100 / (mean_size() * OVERHEAD) / options.ttl
        rate = [full_rate / 16]
        clients = [threading.Thread(target=client, args=(
            life, cluster.port + i % options.agents, i, options, lambda: rate[0], stop))
            for i in range(options.clients)]
        for one in clients:
            one.start()
        time.sleep(20)
        print("nearly empty: %d done, %d refused, %d broken, SET x16 p50 %.2f ms, p99 %.2f ms" %
              life.figures(), flush=True)
        rate[0] = full_rate
        deadline = time.monotonic() + options.minutes * 60
        turn = 0
        life.reset()
        shown = time.monotonic()
        while time.monotonic() < deadline:
            time.sleep(options.restart_s)
            restart(cluster, rng, turn, options.agents)
            turn += 1
            if time.monotonic() - shown >= 60 or time.monotonic() >= deadline:
                shown = time.monotonic()
                figures = life.figures()
                refused += figures[1]
                print("%d %% used: %d done, %d refused, %d broken, SET x16 p50 %.2f ms, "
                      "p99 %.2f ms" % ((100 * used(cluster) // pool,) + figures), flush=True)
                life.reset()
        stop.set()
        for one in clients:
            one.join()
        with cluster.connect(agent=0, timeout_s=60.0) as one:
            # DBSIZE may miss what an agent had not counted when it was killed.
            wait_until(lambda: not one.call("KEYS", "*").value, "all keys have expired", 120)
        code, output, error = check_until_nothing_is_lost(cluster)
        print(output or error, flush=True)
    ok = refused == 0 and not life.wrong and code == 0 and "lost_bytes:0" in output
    print("%d restarts, %d refused, %d wrong values: %s" % (turn, refused, len(life.wrong),
                                                          "passed" if ok else "failed"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
