#!/usr/bin/env python3
"""Wears memory out, in many variants; afterwards agents can fill the pool as if it were fresh.

  tests/nemesis/wear.py [--bin build/release/bin] [--count 20] [--seed N] [--only restarts,deletes,...]

A variant draws one of the sequences below, a fabric, 2 to 4 agents of 1 to 4 threads, the size of the pool and how
agents end. It fills a fresh pool to know what fits, runs the sequence on another one, and then lets every agent
in turn fill the pool, over as many connections as it has threads, and delete that by another agent; each
must get in --percent of what a fresh pool takes (less after a change of value size), within
--within seconds of the deletes and however long the SETs take. `onetrip check` must find nothing lost at last.
Exit code 0 when all that holds in all variants. A variant is repeated by its seed, with --count 1.
"""

import argparse
import os
import random
import signal
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../" + folder)
                for folder in ("cluster", "compat")]

from cache_life import check_until_nothing_is_lost  # noqa: E402
from load import Connection, request  # noqa: E402
from local_cluster import LocalCluster, is_gone, wait_until  # noqa: E402

BATCH = 64
BATCH_BYTES = 1 << 20
SMALLER_AFTER_CHANGE = 5  # per cent
RESTART_SIZES = (20, 60, 90, 200, 350, 700, 1100, 2500, 5000, 9000, 20000, 40000)


class Wrong(Exception):
    pass


def is_oom(reply):
    return isinstance(reply, Exception) and "OOM" in str(reply)


def value_of(key, size):
    return (key + b"/") * (size // (len(key) + 1)) + b"v" * (size % (len(key) + 1))


class Pool:
    """A cluster of the variant, and connections to each of its agents."""

    def __init__(self, options, variant):
        self.variant = variant
        self.cluster = LocalCluster(os.path.abspath(options.bin), agents=variant.agents,
                                    fabric=variant.fabric, memory="%dMiB" % variant.mib,
                                    extra=("--threads", str(variant.threads)))

    def __enter__(self):
        self.cluster.__enter__()
        self.connections = [[Connection(self.cluster.port + agent)
                             for _ in range(self.variant.threads)]
                            for agent in range(self.variant.agents)]
        return self

    def __exit__(self, *error):
        for connections in self.connections:
            for connection in connections:
                connection.close()
        return self.cluster.__exit__(*error)

    def call(self, agent, requests, thread=0):
        """Replies; waits for an agent that is just being started."""
        until = time.monotonic() + 30
        while True:
            replies = self.connections[agent][thread].call_all(requests)
            if replies is not None:
                return replies
            if time.monotonic() > until:
                raise Wrong("agent %d does not answer" % agent)

    def fill(self, agent, prefix, size, patience):
        """The keys that agent gets in, over all its connections in turn, until each has been refused
        everything for `patience` seconds."""
        batch = max(1, min(BATCH, BATCH_BYTES // size))
        stored, number = [], 0
        refused_since = None
        while refused_since is None or time.monotonic() - refused_since < patience:
            all_refused = True
            for thread in range(self.variant.threads):
                keys = [b"%s%d" % (prefix, i) for i in range(number, number + batch)]
                number += batch
                replies = self.call(agent, [request(b"SET", key, value_of(key, size))
                                            for key in keys], thread)
                for key, reply in zip(keys, replies):
                    if reply == b"OK":
                        all_refused = False
                        stored.append(key)
                    elif not is_oom(reply):
                        raise Wrong("SET answers %r" % reply)
            if not all_refused:
                refused_since = None
            elif refused_since is None:
                refused_since = time.monotonic()
        return stored

    def delete(self, agent, keys, thread=0):
        for first in range(0, len(keys), 1000):
            replies = self.call(agent, [request(b"DEL", *keys[first:first + 1000])], thread)
            if replies[0] != b"%d" % len(keys[first:first + 1000]):
                raise Wrong("DEL answers %r" % replies[0])

    def expect(self, agent, keys, size):
        """Checks the values of some of them."""
        for key in random.Random(1).sample(keys, min(500, len(keys))):
            if self.call(agent, [request(b"GET", key)])[0] != value_of(key, size):
                raise Wrong("%r is not what it was" % key)

    def end(self, agent, number):
        pid = self.cluster.processes()["agent-%d" % agent]["pid"]
        os.kill(pid, number)
        wait_until(lambda: is_gone(pid), "the end of agent %d" % agent)
        for connection in self.connections[agent]:
            connection.close()

    def start(self, agent):
        code, _, error = self.cluster.tool("restart", "agent-%d" % agent, "--dir",
                                           self.cluster.path)
        if code != 0:
            raise Wrong(error)

    def has_no_keys(self, agent):
        return self.call(agent, [request(b"KEYS", b"*")])[0] == b"0"


class Variant:
    def __init__(self, seed, only):
        rng = random.Random(seed)
        self.seed = seed
        self.rng = rng
        self.sequence = rng.choice(sorted(SEQUENCES))
        self.fabric = rng.choice(("shm", "tcp"))
        self.agents = rng.randint(2, 4)
        self.threads = rng.randint(1, 4)
        self.mib = rng.choice((64, 64, 64, 128, 128, 256, 256, 512, 1024, 2048))
        if self.fabric == "tcp":
            self.mib = min(self.mib, 128)  # slower
        self.signal = rng.choice((signal.SIGTERM, signal.SIGKILL))
        self.size = rng.choice((700, 1500, 3000, 6000)) if self.mib <= 256 else 6000
        self.is_wanted = not only or self.sequence in only

    def __str__(self):
        return "seed %d: %s, %s, %d agents x %d threads, %d MiB, values of %d, %s" % (
            self.seed, self.sequence, self.fabric, self.agents, self.threads, self.mib, self.size,
            self.signal.name)


# Each leaves an empty database, and says whether the size of values has changed.

def restarts(pool, variant):
    """An agent that has keys of many sizes ends, again and again."""
    for life in range(20):
        agent = life % variant.agents
        for i in range(24):
            key = b"%d-%d" % (life % 4, i)
            reply = pool.call(agent, [request(b"SET", key, value_of(key, RESTART_SIZES[i % 12]))],
                              i % variant.threads)[0]
            if reply != b"OK":
                raise Wrong("in life %d SET answers %r" % (life, reply))
        pool.end(agent, variant.signal)
        pool.start(agent)
    pool.delete(0, [b"%d-%d" % (life, i) for life in range(4) for i in range(24)])
    return True


def deletes(pool, variant):
    """One fills, another one deletes."""
    keys = pool.fill(0, b"a", variant.size, 1)
    variant.rng.shuffle(keys)
    gone, left = keys[:len(keys) * 9 // 10], keys[len(keys) * 9 // 10:]
    pool.delete(1, gone, variant.threads - 1)
    more = pool.fill(1, b"b", variant.size, 5)
    if len(more) + len(left) < 0.9 * len(keys):
        raise Wrong("of %d keys there were %d left, and only %d more fit" % (
            len(keys), len(left), len(more)))
    pool.expect(0, more, variant.size)
    pool.expect(1, left, variant.size)
    pool.delete(0, more + left)
    return False


def unlinked(pool, variant):
    """An agent ends right behind the reply of its DEL of 60 MB, or of as much as the pool has."""
    count = min(66, variant.mib * 6 // 10)
    for turn in range(4):
        keys = [b"k%d-%d" % (turn, i) for i in range(count)]
        for key in keys:
            wait_until(lambda key=key: pool.call(0, [request(b"SET", key, b"v" * 900_000)])[0] ==
                       b"OK", "room for %r" % key)
        pool.delete(1, keys)
        pool.end(1, variant.signal)
        pool.start(1)
    return True


def classes(pool, variant):
    """Small values that are mostly deleted at random."""
    size = 64 if variant.mib <= 128 and variant.fabric == "shm" else 500
    keys = pool.fill(0, b"a", size, 1)
    variant.rng.shuffle(keys)
    gone, left = keys[:len(keys) * 9 // 10], keys[len(keys) * 9 // 10:]
    pool.delete(0, gone)
    fresh = variant.fresh
    more = pool.fill(1, b"b", variant.size, 5)
    if len(more) < 0.85 * fresh * 0.9:  # a tenth of the old ones is still there
        raise Wrong("a fresh pool takes %d, and there were %d" % (fresh, len(more)))
    pool.expect(1, left, size)
    pool.delete(1, more + left)
    return True


def traffic(pool, variant):
    """An agent ends under its load, again and again."""
    for turn in range(8):
        agent = turn % variant.agents
        until = time.monotonic() + 1.5
        number = 0
        while time.monotonic() < until:
            keys = [b"t%d" % variant.rng.randrange(2000) for _ in range(BATCH)]
            pool.call(agent, [request(b"DEL", key) if number % 3 == 2 else
                              request(b"SET", key, value_of(key, variant.size)) for key in keys],
                      number % variant.threads)
            number += 1
        pool.end(agent, variant.signal)
        pool.start(agent)
    if pool.call(0, [request(b"FLUSHALL")])[0] != b"OK":
        raise Wrong("FLUSHALL is refused")
    return False


SEQUENCES = {"restarts": restarts, "deletes": deletes, "unlinked": unlinked, "classes": classes,
             "traffic": traffic}


def run(options, variant):
    with Pool(options, variant) as pool:
        variant.fresh = len(pool.fill(0, b"f", variant.size, 1))
    shares = []
    with Pool(options, variant) as pool:
        changes = SEQUENCES[variant.sequence](pool, variant)
        if not pool.has_no_keys(0):
            raise Wrong("behind the sequence keys are left")
        wanted = (options.percent - (SMALLER_AFTER_CHANGE if changes else 0)) / 100
        for agent in range(variant.agents):
            keys = pool.fill(agent, b"e%d-" % agent, variant.size, options.within)
            shares.append(100 * len(keys) / variant.fresh)
            if len(keys) < wanted * variant.fresh:
                raise Wrong("a fresh pool takes %d, and agent %d gets %d in" % (
                    variant.fresh, agent, len(keys)))
            pool.expect((agent + 1) % variant.agents, keys, variant.size)
            pool.delete((agent + 1) % variant.agents, keys)
        code, output, error = check_until_nothing_is_lost(pool.cluster)
        if code != 0 or "lost_bytes:0" not in output:
            raise Wrong("check: " + (output or error))
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--count", type=int, default=20, help="variants")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--only", default="", help="these sequences: " + ", ".join(sorted(SEQUENCES)))
    parser.add_argument("--percent", type=float, default=90)
    parser.add_argument("--within", type=float, default=5, help="seconds")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    unknown = sorted(set(only) - set(SEQUENCES))
    if unknown:
        parser.error("there is no sequence " + ", ".join(unknown))
    failed, seed, ran = 0, options.seed, 0
    while ran < options.count:
        variant = Variant(seed, only)
        seed += 1
        if not variant.is_wanted:
            continue
        ran += 1
        begin = time.monotonic()
        try:
            shares = run(options, variant)
            told = ", ".join("%.1f %%" % share for share in shares)
        except (Wrong, AssertionError, OSError) as error:
            failed += 1
            told = "FAILED: %s" % error
        print("%s: %s (%.0f s)" % (variant, told, time.monotonic() - begin), flush=True)
    print("%d passed, %d failed" % (ran - failed, failed))
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
