#!/usr/bin/env python3
"""Loads keys by all agents of a cluster while its processes are killed at random, and reads them back.

  tests/nemesis/load.py [--bin build/release/bin] [--minutes 60] [--agents 4] [--fabric shm|tcp] [--seed N]

A round: every agent's client SETs --keys new keys, those refused again and again; when all are
acknowledged, every agent reads all that another one has written; then FLUSHALL. Meanwhile agents, memory nodes
and the master end by SIGKILL or SIGTERM, one after the other, and are started again; a memory node only when
the cluster is whole. At the end of the last round `onetrip check` walks the quiet cluster before the
keys are flushed. Exit code 0 when nothing was lost, nothing refused for longer than two
minutes, and the check finds nothing. Prints what it did.
"""

import argparse
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../" + folder)
                for folder in ("cluster", "compat")]

from local_cluster import LocalCluster, is_gone, wait_until  # noqa: E402

BATCH = 256
REFUSED_S = 120.0
# Gigabytes are copied after each kill of a memory node, on a host that may have more to do.
WHOLE_S = 600


class Connection:
    """To one agent, from now on: opened anew whenever it breaks."""

    def __init__(self, port):
        self.port = port
        self.file = None
        self.socket = None

    def close(self):
        for thing in (self.file, self.socket):
            if thing is not None:
                thing.close()
        self.file = self.socket = None

    def open(self):
        """True if it is, or can be opened now; else it waits a little."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10)
                self.file = self.socket.makefile("rb")
            return True
        except OSError:
            self.close()
            time.sleep(0.05)
            return False

    def call_all(self, requests):
        """One reply for each request, or None for all when the connection broke: bytes, None for nil,
        an Exception for an error."""
        if not self.open():
            return None
        try:
            self.socket.sendall(b"".join(requests))
            return [self.reply() for _ in requests]
        except OSError:
            self.close()
            time.sleep(0.05)
            return None

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("closed")
        if line[:1] == b"-":
            return Exception(line[1:-2].decode())
        if line[:1] != b"$":
            return line[1:-2]
        size = int(line[1:])
        return None if size < 0 else self.file.read(size + 2)[:-2]


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def key_of(turn, agent, number):
    return b"key:%d:%d:%d" % (turn, agent, number)


def until_done(connection, todo, ask, judge, what):
    """Asks for each number of `todo` until judge(number, reply) says that it is done; returns the
    longest time for which one was refused."""
    longest = 0.0
    for first in range(0, len(todo), BATCH):
        left = todo[first:first + BATCH]
        since = time.monotonic()
        while left:
            replies = connection.call_all([ask(number) for number in left])
            if replies is not None:
                left = [number for number, reply in zip(left, replies) if not judge(number, reply)]
            if not left:
                break
            time.sleep(0.01)
            waited = time.monotonic() - since
            longest = max(longest, waited)
            if waited > REFUSED_S:
                raise AssertionError("%s: %d refused for %.0f s, now: %s" % (
                    what, len(left), waited, replies and replies[:3]))
    return longest


def work(agent, options, port, barrier, stop, results):
    """The client of one agent, a process."""
    connections = [Connection(port + i) for i in range(options.agents)]
    value = b"v" * 40
    try:
        turn = 0
        while not stop.is_set():
            until_done(connections[agent], range(options.keys),
                       lambda n: request(b"SET", key_of(turn, agent, n), value + b"%d" % n),
                       lambda _, reply: reply == b"OK", "SET by agent %d" % agent)
            barrier.wait()
            reader, writer = agent, (agent + 1) % options.agents
            lost = []

            def is_read(number, reply):
                if isinstance(reply, Exception):
                    return False
                if reply != value + b"%d" % number:
                    lost.append((key_of(turn, writer, number), reply))
                return True

            until_done(connections[reader], range(options.keys),
                       lambda n: request(b"GET", key_of(turn, writer, n)), is_read,
                       "GET by agent %d" % agent)
            if lost:
                raise AssertionError("lost: %d keys, the first %r" % (len(lost), lost[:3]))
            last = barrier.wait() == 0
            turn += 1
            results.put((agent, options.keys, None))
            barrier.wait()
            if stop.is_set():
                return
            if last:
                until_done(connections[agent], [0], lambda _: request(b"FLUSHALL"),
                           lambda _, reply: reply == b"OK", "FLUSHALL")
            barrier.wait()
    except (AssertionError, threading.BrokenBarrierError) as error:
        barrier.abort()
        results.put((agent, 0, str(error) or "another failed"))


class Killer:
    def __init__(self, cluster, rng):
        self.cluster = cluster
        self.rng = rng
        self.counts = {}

    def await_whole(self):
        try:
            wait_until(lambda: self.cluster.service()[0] == 0, "the cluster is whole", WHOLE_S)
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, self.cluster.tool(
                "status", "--dir", self.cluster.path)[1])) from error

    def strike(self):
        names = list(self.cluster.processes())
        name = self.rng.choice(names)
        number = self.rng.choice((signal.SIGKILL, signal.SIGTERM))
        if name.startswith("memnode"):
            self.await_whole()
        pid = self.cluster.processes()[name]["pid"]
        os.kill(pid, number)
        wait_until(lambda: is_gone(pid), "%s ends by %s" % (name, number.name), 30)
        time.sleep(self.rng.random() * 2)
        code, _, error = self.cluster.tool("restart", name, "--dir", self.cluster.path)
        assert code == 0, "onetrip restart %s: %s" % (name, error)
        what = "%s of %s" % (number.name, name.rstrip("0123456789-"))
        self.counts[what] = self.counts.get(what, 0) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--keys", type=int, default=125000, help="of each agent and round")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp"))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    options = parser.parse_args()
    print("seed %d" % options.seed, flush=True)
    rng = random.Random(options.seed)
    done, failures = 0, []
    with LocalCluster(os.path.abspath(options.bin), agents=options.agents, fabric=options.fabric,
                      memory=options.memory) as cluster:
        killer = Killer(cluster, rng)
        stop = multiprocessing.Event()
        barrier = multiprocessing.Barrier(options.agents)
        results = multiprocessing.Queue()
        clients = [multiprocessing.Process(
            target=work, args=(i, options, cluster.port, barrier, stop, results))
            for i in range(options.agents)]
        for client in clients:
            client.start()
        deadline = time.monotonic() + options.minutes * 60
        told = 0
        while time.monotonic() < deadline and not failures:
            try:
                killer.strike()
            except AssertionError as error:
                failures.append(str(error))
            time.sleep(rng.random() * 3)
            while not results.empty():
                _, keys, failure = results.get()
                done += keys
                failures += [failure] if failure else []
            if done - told >= 1000000:
                told = done
                print("%d keys, %s" % (done, killer.counts), flush=True)
        stop.set()
        while any(client.is_alive() for client in clients):
            while not results.empty():
                _, keys, failure = results.get()
                done += keys
                failures += [failure] if failure else []
            time.sleep(0.1)
        if not failures:
            killer.await_whole()
            code, output, error = cluster.tool("check", "--dir", cluster.path)
            print(output.strip(), flush=True)
            if code != 0:
                failures.append("onetrip check: %d: %s" % (code, error))
        if failures:
            cluster.show_logs()
    print("%d keys written and read back, %s" % (done, killer.counts))
    for failure in failures:
        print("failed: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
