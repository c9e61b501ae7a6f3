#!/usr/bin/env python3
"""Clients of two agents push to one list of a million elements and pop from it; nothing may get lost.

  bench/shared_list.py [--fabric shm|tcp] [--elements 1000000] [--seconds 10] [--clients 2]
  bench/shared_list.py --selftest

A cluster of two agents, three memory nodes and one list. --clients processes of each agent send, for
--seconds, pipelines of RPUSH, LPUSH, LPOP and RPOP, of one element each, at random; every element
is pushed once. TRYAGAIN says that nothing was done: it is counted, and the command sent again. Then
all clients pop until the list is empty. Prints what was acknowledged per second.

Exit code 0 when each element that was pushed came out exactly once, by any client, nothing came out
that was not pushed, both agents find no list any more, and `onetrip check` finds nothing wrong.
Commands of unknown outcome, which a machine with too much to do may have, are counted: an element
each may be missing, or come out although its push was not acknowledged.

--selftest tampers with small lists, by a client of its own, and the judge must notice.
"""

import argparse
import array
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import time

import compare_redis
from cluster_processes import Cluster
from compare_servers import HOST, BenchError, Client, encode

KEY = b"list"
AGENTS = 2
NUMBER_BITS = 40
NAME_BYTES = 17          # "CCC:NNNNNNNNNNNN:"
DRAIN_AT_ONCE = 100      # elements of a pop
DRAIN_PIPELINE = 4
FILL_AT_ONCE = 100
FILL_PIPELINE = 20
CHECK_S = 60
NIL = b"$-1"


class Elements:
    """Names of one length: the number of the client that pushes it, and one of that client's."""

    def __init__(self, value_bytes):
        self.padding = b"x" * (value_bytes - NAME_BYTES)
        self.header = b"$%d\r\n" % value_bytes

    def name(self, client, number):
        return b"%03d:%012d:%s" % (client, number, self.padding)

    def code(self, name):
        """A number for each name; None: no client makes such a name."""
        try:
            client, number = int(name[:3]), int(name[4:NAME_BYTES - 1])
        except ValueError:
            return None
        return client << NUMBER_BITS | number if self.name(client, number) == name else None


class Pipeline:
    """A connection on which replies are a status, a number, an error, or elements without \\r\\n."""

    def __init__(self, port):
        self.socket = socket.create_connection((HOST, port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 18)

    def call(self, commands):
        """One reply for each, as its first line; with elements, if it has some: (line, elements)."""
        self.socket.sendall(b"".join(commands))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.line()
        kind = line[:1]
        if kind == b"$" and line != NIL:
            return line, [self.line()]
        if kind == b"*" and line[1:2] != b"-":
            return line, [self.element() for _ in range(int(line[1:]))]
        return line, []

    def element(self):
        self.line()
        return self.line()

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the agent closed the connection")
        return line[:-2]


class Worker:
    """One client. What it pushed has the numbers from 0 to `pushed`."""

    def __init__(self, client, port, options):
        self.client = client
        self.elements = Elements(options.value_size)
        self.pipeline = options.pipeline
        self.connection = Pipeline(port)
        self.rng = random.Random(client)
        self.pushed = 0
        self.acknowledged = self.popped = self.nil = self.again = 0
        self.names = []        # popped
        self.maybe_pushed = []
        self.maybe_popped = 0
        self.left = []         # numbers whose push has to be sent again

    def push(self, number):
        verb = b"$5\r\nRPUSH\r\n" if self.rng.getrandbits(1) else b"$5\r\nLPUSH\r\n"
        return b"*3\r\n%s$%d\r\n%s\r\n%s%s\r\n" % (
            verb, len(KEY), KEY, self.elements.header, self.elements.name(self.client, number))

    def pop(self, count=1):
        verb = b"RPOP" if self.rng.getrandbits(1) else b"LPOP"
        return encode(verb, KEY) if count == 1 else encode(verb, KEY, count)

    def next_push(self):
        if self.left:
            return self.left.pop()
        self.pushed += 1
        return self.pushed - 1

    def step(self):
        """One pipeline of pushes and pops, about as many of each."""
        numbers = [self.next_push() if self.rng.getrandbits(1) else None
                   for _ in range(self.pipeline)]
        self.send(numbers)

    def send(self, numbers):
        """A push for each number, a pop for each None."""
        commands = [self.pop() if number is None else self.push(number) for number in numbers]
        for number, (line, found) in zip(numbers, self.connection.call(commands)):
            if line[:1] == b"-":
                self.refused(line, number)
            elif number is not None:
                self.acknowledged += 1
            else:
                self.took(line, found)

    def took(self, line, found):
        self.popped += len(found)
        self.nil += not found
        self.names += found
        if line[:1] not in (b"$", b"*"):
            raise BenchError("a pop is answered %r" % line)

    def refused(self, line, number):
        if line.startswith(b"-TRYAGAIN"):
            self.again += 1
            if number is not None:
                self.left.append(number)
        elif not line.startswith(b"-UNKNOWN"):
            raise BenchError("error reply: " + line.decode(errors="replace"))
        elif number is None:
            self.maybe_popped += 1
        else:
            self.maybe_pushed.append(number)

    def finish_pushes(self):
        while self.left:
            numbers, self.left = self.left[:self.pipeline], self.left[self.pipeline:]
            self.send(numbers)

    def drain(self):
        """Pops until the list is empty."""
        before = self.nil
        while self.nil == before:
            commands = [self.pop(DRAIN_AT_ONCE) for _ in range(DRAIN_PIPELINE)]
            for line, found in self.connection.call(commands):
                if line[:1] != b"-":
                    self.took(line, found)
                else:
                    # It may have taken as many.
                    self.maybe_popped += (DRAIN_AT_ONCE - 1) * line.startswith(b"-UNKNOWN")
                    self.refused(line, None)

    def result(self):
        """What the judge has to know. Names become numbers, but for those that no client has."""
        codes, strange = array.array("Q"), []
        for name in self.names:
            code = self.elements.code(name)
            if code is None:
                strange.append(name)
            else:
                codes.append(code)
        return {"client": self.client, "pushed": self.pushed, "maybe_pushed": self.maybe_pushed,
                "codes": codes, "strange": strange, "maybe_popped": self.maybe_popped}


def work(client, port, options, barrier, results):
    """A process: pushes and pops, then helps to drain."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = Worker(client, port, options)
        barrier.wait()
        started = time.monotonic()
        while time.monotonic() - started < options.seconds:
            worker.step()
        figures = {"seconds": time.monotonic() - started, "pushes": worker.acknowledged,
                   "pops": worker.popped, "nil": worker.nil, "again": worker.again}
        worker.finish_pushes()
        barrier.wait()
        started, before = time.monotonic(), worker.popped
        worker.drain()
        figures.update(drain_seconds=time.monotonic() - started, drained=worker.popped - before,
                       again_at_end=worker.again - figures["again"])
        results.send((worker.result(), figures))
    except Exception as error:  # pylint: disable=broad-except
        barrier.abort()
        results.send((None, "client %d: %s: %s" % (client, type(error).__name__, error)))


def fill(port, client, options):
    """The elements that the list begins with, as a client that pushed them."""
    worker = Worker(client, port, options)
    for first in range(0, options.elements, FILL_AT_ONCE * FILL_PIPELINE):
        last = min(first + FILL_AT_ONCE * FILL_PIPELINE, options.elements)
        left = [encode(b"RPUSH", KEY, *[worker.elements.name(client, number) for number in
                                        range(begin, min(begin + FILL_AT_ONCE, last))])
                for begin in range(first, last, FILL_AT_ONCE)]
        while left:
            replies = worker.connection.call(left)
            odd = [line for line, _ in replies if line[:1] != b":" and
                   not line.startswith(b"-TRYAGAIN")]
            if odd:
                raise BenchError("a push into the first elements is answered %r" % odd[0])
            left = [command for command, (line, _) in zip(left, replies) if line[:1] != b":"]
    worker.pushed = options.elements
    return worker.result()


def judge(results):
    """Failures, and how many elements were pushed and came out."""
    times = {one["client"]: bytearray(one["pushed"]) for one in results}
    strange = [name for one in results for name in one["strange"]]
    doubled = []
    for one in results:
        for code in one["codes"]:
            client, number = code >> NUMBER_BITS, code & ((1 << NUMBER_BITS) - 1)
            if client not in times or number >= len(times[client]):
                strange.append((client, number))
            elif times[client][number]:
                doubled.append((client, number))
            else:
                times[client][number] = 1
    maybe = {(one["client"], number) for one in results for number in one["maybe_pushed"]}
    missing = [(client, number) for client, seen in times.items() if not all(seen)
               for number, count in enumerate(seen) if not count]
    missing = [element for element in missing if element not in maybe]
    maybe_popped = sum(one["maybe_popped"] for one in results)
    failures = []
    if doubled:
        failures.append("doubled: %d elements, such as %r" % (len(doubled), doubled[:3]))
    if strange:
        failures.append("never pushed: %d elements, such as %r" % (len(strange), strange[:3]))
    if len(missing) > maybe_popped:
        failures.append("missing: %d elements, such as %r, and %d may have been popped by commands "
                        "of unknown outcome" % (len(missing), missing[:3], maybe_popped))
    return failures, {"pushed": sum(map(len, times.values())), "unknown": len(maybe) + maybe_popped,
                      "out": sum(len(one["codes"]) + len(one["strange"]) for one in results),
                      "missing": len(missing), "doubled": len(doubled), "strange": len(strange)}


def run_clients(port, options, tamper=None):
    """[(result, figures)] of all clients. `tamper` acts while they push and pop."""
    barrier = multiprocessing.Barrier(AGENTS * options.clients)
    clients = []
    for client in range(AGENTS * options.clients):
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(daemon=True, target=work, args=(
            client, port + client % AGENTS, options, barrier, there))
        process.start()
        there.close()
        clients.append((process, here))
    if tamper is not None:
        time.sleep(options.seconds / 2)
        tamper(port, options)
    try:
        outcomes = [here.recv() for _, here in clients]
    except EOFError as error:
        raise BenchError("a client's process has ended") from error
    for process, _ in clients:
        process.join()
    broken = [figures for result, figures in outcomes if result is None]
    if broken:
        raise BenchError("; ".join(sorted(broken, key=lambda text: "BrokenBarrier" in text)))
    return outcomes


def check_pool(cluster):
    """Failures that `onetrip check` finds, once what the list took has been given back."""
    deadline = time.monotonic() + CHECK_S
    while True:
        done = subprocess.run([cluster.tool, "check", "--dir", cluster.path], capture_output=True,
                              check=False, text=True)
        good = done.returncode == 0 and "lost_bytes:0\n" in done.stdout
        if good or time.monotonic() > deadline:
            break
        time.sleep(1)
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    print("onetrip check: exit code %d, wrong %s, lost bytes %s" % (
        done.returncode, found.get("wrong"), found.get("lost_bytes")))
    return [] if good else ["onetrip check: " + (done.stderr or done.stdout).strip()]


def left_over(port):
    found = []
    for agent in range(AGENTS):
        client = Client(port + agent)
        length = client.call("LLEN", KEY)
        client.close()
        if length:
            found.append("agent %d still finds %d elements" % (agent, length))
    return found


def show(outcomes, totals):
    every = [figures for _, figures in outcomes]
    total = lambda field: sum(figures[field] for figures in every)
    rate = lambda field: sum(figures[field] / figures["seconds"] for figures in every)
    print("%.0f pushes/s, %.0f pops/s, %.0f/s together; %d pushes, %d pops, %d found it empty, "
          "%d TRYAGAIN" % (rate("pushes"), rate("pops"), rate("pushes") + rate("pops"),
                           total("pushes"), total("pops"), total("nil"), total("again")))
    print("drained: %d elements in %.1f s, %d TRYAGAIN" % (
        total("drained"), max(figures["drain_seconds"] for figures in every),
        total("again_at_end")))
    print("%(pushed)d elements pushed, %(out)d came out; %(missing)d missing, %(doubled)d doubled, "
          "%(strange)d never pushed; %(unknown)d of unknown outcome" % totals, flush=True)


def measure(cluster, options):
    """Failures."""
    filler = AGENTS * options.clients
    started = time.monotonic()
    first = fill(cluster.port, filler, options)
    print("%d elements of %d bytes in one list after %.1f s" % (
        options.elements, options.value_size, time.monotonic() - started), flush=True)
    outcomes = run_clients(cluster.port, options)
    failures, totals = judge([result for result, _ in outcomes] + [first])
    show(outcomes, totals)
    return failures + left_over(cluster.port) + check_pool(cluster)


def push_a_second_time(port, options):
    client = Client(port)
    client.call("RPUSH", KEY, Elements(options.value_size).name(
        AGENTS * options.clients, options.elements // 2))
    client.close()


def push_a_stranger(port, options):
    client = Client(port)
    client.call("LPUSH", KEY, Elements(options.value_size).name(0, (1 << NUMBER_BITS) - 1))
    client.call("LPUSH", KEY, b"z" * options.value_size)
    client.close()


def pop_one(port, _):
    client = Client(port)
    client.call("LPOP", KEY)
    client.close()


def nothing(_port, _options):
    """The control: without it the judge finds nothing."""


def selftest(cluster, options):
    """Failures: tamperings that the judge does not notice."""
    failures = []
    for tamper, word in ((nothing, ""), (push_a_second_time, "doubled"),
                         (push_a_stranger, "never pushed"), (pop_one, "missing")):
        first = fill(cluster.port, AGENTS * options.clients, options)
        found, _ = judge([result for result, _ in run_clients(cluster.port, options, tamper)]
                         + [first])
        found += left_over(cluster.port)
        good = len(found) == bool(word) and all(word in failure for failure in found)
        print("%s told apart: %s: %s" % ("ok" if good else "NOT", tamper.__name__.replace("_", " "),
                                         "; ".join(found) or "nothing found"), flush=True)
        if not good:
            failures.append(tamper.__name__)
    print("%d passed, %d failed" % (4 - len(failures), len(failures)))
    return failures


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/shared_list.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp", "mixed"))
    parser.add_argument("--elements", type=int, default=1_000_000,
                        help="that the list begins with (default 1000000)")
    parser.add_argument("--seconds", type=float, default=10.0,
                        help="of pushes and pops (default 10)")
    parser.add_argument("--clients", type=int, default=2, help="of each agent (default 2)")
    parser.add_argument("--pipeline", type=int, default=16,
                        help="commands on their way of a client (default 16)")
    parser.add_argument("--value-size", type=int, default=64,
                        help="bytes of an element, at least %d (default 64)" % NAME_BYTES)
    parser.add_argument("--memory", default="1GiB", help="of each memory node (default 1GiB)")
    parser.add_argument("--port", type=int, default=0,
                        help="of the first agent; the other has the next; 0: free ones (default)")
    parser.add_argument("--selftest", action="store_true",
                        help="with 10,000 elements and half a second for each tampering")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    if arguments.value_size < NAME_BYTES or not 1 <= arguments.clients <= 400:
        parser.error("--value-size is at least %d, --clients 1 to 400" % NAME_BYTES)
    if arguments.selftest:
        arguments.elements, arguments.seconds = 10_000, 0.5
    return arguments


def main():
    arguments = parse_arguments()
    cluster = Cluster("list", arguments.bin, arguments.fabric, arguments.memory, AGENTS,
                      arguments.port)
    try:
        cluster.start()
        print("%d agents over %s, %d clients of each, pipelines of %d, load %.2f:" % (
            AGENTS, arguments.fabric, arguments.clients, arguments.pipeline, os.getloadavg()[0]))
        failures = (selftest if arguments.selftest else measure)(cluster, arguments)
        for failure in failures:
            print("failed: " + failure)
        return 1 if failures else 0
    except (BenchError, OSError) as error:
        print("shared_list: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
