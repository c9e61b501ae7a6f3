#!/usr/bin/env python3
"""Clients of all agents add elements to shared collections and take them out while agents are killed.

  tests/nemesis/collections_kill.py [--bin build/release/bin] [--kills 500 | --seconds 20] [--fabric shm|tcp] [--seed N]

Of each type there are two collections: one that is mostly short, and one of thousands of elements, a
tree. Every element is added once. Agents end by SIGKILL, one or two at a time, and are started again.
At the end every agent reads all collections. Exit code 0 when

  - each element whose addition was acknowledged is there, or was taken out once; as many may be gone
    besides as commands that take one had no known outcome;
  - nothing is there, or was taken out, that was not added, and nothing twice, or both;
  - what was removed by name, and acknowledged, is not there;
  - `onetrip check` finds nothing wrong, and no memory that is lost: what the dead had taken has been
    taken over, and what they had taken out of the index was found.
"""

import argparse
import collections
import multiprocessing
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

KINDS = (b"list", b"hash", b"set", b"zset", b"stream")
SHORT, LONG = b"short", b"long"
LONG_ELEMENTS = 3000
WHOLE_S = 120
LOOKS_S = 60


def key_of(kind, size):
    return kind + b":" + size


class Seen:
    """The outcome of one client's commands on one collection."""

    def __init__(self):
        self.added = set()       # acknowledged
        self.maybe_added = set()
        self.taken = []          # as replies say
        self.maybe_taken = 0     # commands that take one, of unknown outcome
        self.removed = set()     # by name, acknowledged
        self.maybe_removed = set()
        self.ids = {}            # of a stream's entries: by element


class Worker:
    """The client of one agent."""

    def __init__(self, agent, connection, seed, stop):
        self.agent = agent
        self.connection = connection
        self.stop = stop
        self.rng = random.Random(seed)
        self.number = 0
        self.seen = collections.defaultdict(Seen)
        self.done = self.unknown = self.refused = 0
        self.odd = []

    def element(self):
        self.number += 1
        return b"a%d-%d" % (self.agent, self.number)

    def add(self, kind, key):
        """One command, the elements that it adds, and the kind of command."""
        elements = [self.element() for _ in range(self.rng.choice((1, 1, 1, 2, 5)))]
        if kind == b"list":
            return [self.rng.choice((b"LPUSH", b"RPUSH")), key] + elements, elements
        if kind == b"hash":
            return [b"HSET", key] + [word for one in elements for word in (one, b"v" + one)], elements
        if kind == b"set":
            return [b"SADD", key] + elements, elements
        if kind == b"zset":
            return [b"ZADD", key] + [word for one in elements
                                     for word in (b"%d" % self.rng.randrange(1000), one)], elements
        return [b"XADD", key, b"*", b"e", elements[0]], elements[:1]

    def take(self, kind, key):
        if kind == b"list":
            return [self.rng.choice((b"LPOP", b"RPOP")), key]
        return {b"set": [b"SPOP", key], b"zset": [self.rng.choice((b"ZPOPMIN", b"ZPOPMAX")), key]}[kind]

    def remove(self, kind, key, seen):
        """An own element, by name; None: there is none."""
        left = sorted(seen.added - seen.removed - seen.maybe_removed)
        if not left:
            return None, None
        element = self.rng.choice(left[-50:])
        if kind == b"hash":
            return [b"HDEL", key, element], element
        return [b"XDEL", key, seen.ids[element]], element

    def step(self):
        kind = self.rng.choice(KINDS)
        key = key_of(kind, self.rng.choice((SHORT, LONG)))
        seen = self.seen[key]
        by_name = kind in (b"hash", b"stream")
        # About as many as are added: two by a command, and one entry of a stream.
        takes = self.rng.random() < (0.5 if kind == b"stream" else 0.68)
        if takes and by_name:
            words, element = self.remove(kind, key, seen)
            if words is None:
                return
            self.note_removal(seen, element, self.call(words))
        elif takes:
            self.note_taken(seen, self.call(self.take(kind, key)))
        else:
            words, elements = self.add(kind, key)
            self.note_added(kind, seen, elements, self.call(words))

    def call(self, words):
        """The reply; None: not known what became of it; an Exception: nothing did."""
        # An agent that is not there has not got it.
        while not self.connection.open():
            if self.stop.is_set():
                return Exception("TRYAGAIN")
        replies = self.connection.call_all([request(*words)])
        reply = replies[0] if replies else None
        if isinstance(reply, Exception):
            if "UNKNOWN" in str(reply).split(" ")[0]:
                reply = None
            elif not str(reply).startswith(("TRYAGAIN", "OOM", "LOADING", "CLUSTERDOWN")):
                self.odd.append("%s: %s" % (b" ".join(words[:2]).decode(), reply))
            time.sleep(0.005)
        self.done += 1
        self.unknown += reply is None
        self.refused += isinstance(reply, Exception)
        return reply

    @staticmethod
    def note_added(kind, seen, elements, reply):
        if reply is None:
            seen.maybe_added.update(elements)
        elif not isinstance(reply, Exception):
            seen.added.update(elements)
            if kind == b"stream":
                seen.ids[elements[0]] = reply

    @staticmethod
    def note_taken(seen, reply):
        if reply is None:
            seen.maybe_taken += 1
        elif not isinstance(reply, Exception) and reply not in (NIL, []):
            seen.taken.append(reply[0] if isinstance(reply, list) else reply)

    def note_removal(self, seen, element, reply):
        if reply is None:
            seen.maybe_removed.add(element)
        elif not isinstance(reply, Exception):
            seen.removed.add(element)
            if reply != b"1":
                self.odd.append("%s was acknowledged, and is not there to be removed" % element.decode())


NIL = object()


class ArrayConnection(Connection):
    """Arrays are lists; a nil is told from a connection that broke."""

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("closed")
        if line[:1] == b"*":
            return [self.reply() for _ in range(int(line[1:]))]
        if line[:1] == b"-":
            return Exception(line[1:-2].decode())
        if line[:1] != b"$":
            return line[1:-2]
        size = int(line[1:])
        return NIL if size < 0 else self.file.read(size + 2)[:-2]


def work(agent, port, seed, stop, results):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(agent, ArrayConnection(port), seed, stop)
    while not stop.is_set():
        worker.step()
    worker.connection.close()
    results.put((agent, dict(worker.seen), worker.done, worker.unknown, worker.refused, worker.odd))


def read_all(connection, kind, key):
    """The elements, one for each time that they are there."""
    words = {b"list": [b"LRANGE", key, b"0", b"-1"], b"hash": [b"HGETALL", key],
             b"set": [b"SMEMBERS", key], b"zset": [b"ZRANGE", key, b"0", b"-1"],
             b"stream": [b"XRANGE", key, b"-", b"+"]}[kind]
    deadline = time.monotonic() + WHOLE_S
    while True:
        replies = connection.call_all([request(*words)])
        if replies and isinstance(replies[0], list):
            break
        assert time.monotonic() < deadline, "%s is not read: %s" % (key.decode(), replies)
        time.sleep(0.1)
    found = replies[0]
    if kind == b"hash":
        odd = [found[i] for i in range(0, len(found), 2) if found[i + 1] != b"v" + found[i]]
        assert not odd, "%s has a wrong value of %r" % (key.decode(), odd[:3])
        return found[::2]
    return [entry[1][1] for entry in found] if kind == b"stream" else found


def judge(key, there, seen, first):
    """Failures of one collection. `first`: elements that it began with."""
    added = set(first).union(*(one.added for one in seen))
    maybe_added = set().union(*(one.maybe_added for one in seen))
    removed = set().union(*(one.removed for one in seen))
    maybe_removed = set().union(*(one.maybe_removed for one in seen))
    taken = [element for one in seen for element in one.taken]
    maybe_taken = sum(one.maybe_taken for one in seen)
    times = collections.Counter(there) + collections.Counter(taken) + collections.Counter(removed)
    twice = [element for element, count in times.items() if count > 1]
    strange = [element for element in times if element not in added and element not in maybe_added]
    gone = [element for element in added if element not in times and element not in maybe_removed]
    failures = []
    if twice:
        failures.append("%s: twice: %r" % (key.decode(), twice[:5]))
    if strange:
        failures.append("%s: never added: %r" % (key.decode(), strange[:5]))
    if len(gone) > maybe_taken:
        failures.append("%s: %d are gone, and %d commands may have taken one: %r" % (
            key.decode(), len(gone), maybe_taken, gone[:5]))
    return failures, len(added), len(there), len(taken) + len(removed), len(gone)


def check_the_judge():
    """It can say no."""
    seen = Seen()
    seen.added, seen.taken, seen.maybe_added = {b"a", b"b", b"c"}, [b"b"], {b"d"}
    good = [b"a", b"c"]
    assert not judge(b"k", good, [seen], [])[0] and not judge(b"k", good + [b"d"], [seen], [])[0]
    for bad in ([b"a"], good + [b"b"], good + [b"a"], good + [b"e"]):
        assert judge(b"k", bad, [seen], [])[0], "%r passes" % bad
    seen.maybe_taken = 1
    assert not judge(b"k", [b"a"], [seen], [])[0] and judge(b"k", [], [seen], [])[0]


class Killer(threading.Thread):
    """Kills one agent after the other and starts it again."""

    def __init__(self, cluster, numbers, rng, stop):
        super().__init__()
        self.cluster, self.numbers, self.rng, self.stop_event = cluster, numbers, rng, stop
        self.kills = 0
        self.failure = None

    def run(self):
        try:
            while not self.stop_event.is_set():
                self.strike("agent-%d" % self.rng.choice(self.numbers))
                time.sleep(self.rng.random() * 0.4)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = "%s: %s" % (type(error).__name__, error)

    def strike(self, name):
        pid = self.cluster.processes()[name]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_gone(pid), "the end of " + name, 30)
        self.kills += 1
        for attempt in range(10):
            code, _, error = self.cluster.tool("restart", name, "--dir", self.cluster.path)
            if code == 0:
                return
            time.sleep(0.2 * attempt)
        raise AssertionError("onetrip restart %s: %s" % (name, error))


def fill(connection):
    """The long collections, to begin with; their elements."""
    first = {}
    for kind in KINDS:
        key = key_of(kind, LONG)
        worker = Worker(9, None, 1, None)
        elements = [b"first-%d" % i for i in range(LONG_ELEMENTS)]
        for one in elements:
            worker.element = lambda one=one: one
            worker.rng.choice = lambda choices: choices[0]
            words, _ = worker.add(kind, key)
            replies = connection.call_all([request(*words)])
            assert replies and not isinstance(replies[0], Exception), replies
        first[key] = elements
    return first


def check(cluster, failures):
    wait_until(lambda: cluster.service()[0] == 0, "the cluster is whole", WHOLE_S)
    # Blocks of the dead are taken over, and lost objects looked for, within seconds.
    deadline = time.monotonic() + LOOKS_S
    while True:
        code, output, error = cluster.tool("check", "--dir", cluster.path)
        if code != 0 or "lost_bytes:0\n" in output or time.monotonic() >= deadline:
            break
        time.sleep(1)
    print(output.strip(), flush=True)
    if code != 0:
        failures.append("onetrip check: %d: %s" % (code, error))
    if "wrong:0\n" not in output or "lost_bytes:0\n" not in output:
        failures.append("onetrip check: something is wrong, or lost")


def end(cluster, options, results, first, failures):
    """Judges everything."""
    total = collections.Counter()
    for port in range(options.agents):
        connection = ArrayConnection(cluster.port + port)
        for kind in KINDS:
            for size in (SHORT, LONG):
                key = key_of(kind, size)
                seen = [result[1][key] for result in results if key in result[1]]
                wrong, added, there, taken, gone = judge(
                    key, read_all(connection, kind, key), seen, first.get(key, []))
                failures += ["agent %d: %s" % (port, text) for text in wrong]
                if port == 0:
                    total.update(added=added, there=there, taken=taken, gone=gone)
                    print("%s: %d added, %d there, %d taken, %d gone by commands of unknown outcome" % (
                        key.decode(), added, there, taken, gone))
        connection.close()
    check(cluster, failures)
    return total


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--kills", type=int, default=0, help="ends with that number of them")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp"))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    return parser.parse_args()


def run(cluster, options):
    """Failures, kills."""
    rng = random.Random(options.seed)
    connection = ArrayConnection(cluster.port)
    first = fill(connection)
    connection.close()
    stop, stop_killers = multiprocessing.Event(), threading.Event()
    queue = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=work, args=(
        agent, cluster.port + agent, rng.random(), stop, queue)) for agent in range(options.agents)]
    for client in clients:
        client.start()
    # Each has its own agents in hand: two are down at a time, at most.
    half = options.agents // 2
    killers = [Killer(cluster, numbers, random.Random(rng.random()), stop_killers)
               for numbers in (range(half), range(half, options.agents))]
    for killer in killers:
        killer.start()
    deadline = time.monotonic() + (options.seconds if options.kills == 0 else 1e9)
    told = 0
    while time.monotonic() < deadline and not any(killer.failure for killer in killers):
        kills = sum(killer.kills for killer in killers)
        if options.kills and kills >= options.kills:
            break
        if kills >= told + 50:
            told = kills
            print("%d kills" % kills, flush=True)
        time.sleep(0.05)
    stop_killers.set()
    for killer in killers:
        killer.join()
    time.sleep(1)
    stop.set()
    results = [queue.get(timeout=60) for _ in clients]
    for client in clients:
        client.join()
    failures = [killer.failure for killer in killers if killer.failure]
    failures += ["client %d: %s" % (result[0], text) for result in results for text in result[5][:5]]
    total = end(cluster, options, results, first, failures)
    done, unknown, refused = (sum(result[i] for result in results) for i in (2, 3, 4))
    print("%d kills; %d commands, %d of unknown outcome, %d refused; %d elements added, %d taken, %d there, "
          "%d gone by commands of unknown outcome" % (
              sum(killer.kills for killer in killers), done, unknown, refused,
              total["added"], total["taken"], total["there"], total["gone"]), flush=True)
    return failures


def main():
    options = parse()
    print("seed %d" % options.seed, flush=True)
    check_the_judge()
    with LocalCluster(os.path.abspath(options.bin), agents=options.agents, fabric=options.fabric,
                      memory=options.memory) as cluster:
        failures = run(cluster, options)
        if failures:
            cluster.show_logs()
    for failure in failures:
        print("failed: " + failure)
    print("%d passed, %d failed, 0 skipped" % (not failures, bool(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
