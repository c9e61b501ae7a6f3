"""Several workers of one agent on the same keys: sums are exact, values whole, winners single."""

import threading
import time

from live import test
from resp_client import encode, parse

THREADS = ("--threads", "2")


def in_parallel(server, count, work):
    """Runs work(client, number) on `count` connections at once; re-raises the first failure."""
    failures = []

    def run(number):
        try:
            with server.connect(60) as client:
                work(client, number)
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def burst(client, command, count):
    """Sends `count` times the command as one pipeline: the raw replies."""
    client.send_raw(encode(command) * count)
    return [client.read_raw() for _ in range(count)]


@test("two threads: INCR from eight connections sums exactly, every number once")
def increments(context):
    with context.agent(*THREADS) as server:
        seen = [None] * 8

        def work(client, number):
            seen[number] = [int(raw[1:-2]) for _ in range(20)
                            for raw in burst(client, [b"INCR", b"n"], 250)]

        in_parallel(server, 8, work)
        numbers = sorted(n for part in seen for n in part)
        assert numbers == list(range(1, 40001)), "lost or doubled increments"
        for part in seen:
            assert part == sorted(part), "a connection saw the counter go back"
        with server.connect() as client:
            assert client.call("GET", "n").value == b"40000"


@test("two threads: INCRBY, DECRBY and INCRBYFLOAT on one key keep the sum")
def mixed_sums(context):
    with context.agent(*THREADS) as server:
        commands = [[b"INCRBY", b"n", b"7"], [b"DECRBY", b"n", b"5"], [b"INCR", b"n"], [b"DECR",
            b"n"]]
        sums = [0] * 8

        def work(client, number):
            for raw in burst(client, commands[number % 4], 3000):
                # Where there is too much to do some may be refused; they are not executed then.
                assert raw.startswith((b":", b"-TRYAGAIN")), raw
                sums[number] += (7, -5, 1, -1)[number % 4] if raw.startswith(b":") else 0

        in_parallel(server, 8, work)
        with server.connect() as client:
            assert client.call("GET", "n").value == b"%d" % sum(sums)
        halves = [0] * 4

        def work_on_float(client, number):
            for raw in burst(client, [b"INCRBYFLOAT", b"f", b"0.5"], 1000):
                assert raw.startswith((b"$", b"-TRYAGAIN")), raw
                halves[number] += 1 if raw.startswith(b"$") else 0

        in_parallel(server, 4, work_on_float)
        with server.connect() as client:
            assert float(client.call("GET", "f").value) == sum(halves) / 2


@test("two threads: values written by many are never mixed or torn")
def whole_values(context):
    sizes = [1, 63, 64, 65, 500, 4000, 70000]
    with context.agent(*THREADS) as server:
        def work(client, number):
            letter = bytes([65 + number])
            for turn in range(150):
                size = sizes[(turn + number) % len(sizes)]
                client.send_raw(encode([b"SET", b"k%d" % (turn % 3), letter * size])
                                + encode([b"GET", b"k%d" % (turn % 3)])
                                + encode([b"MGET", b"k0", b"k1", b"k2"]))
                assert client.read_raw() == b"+OK\r\n"
                check_whole(parse(client.read_raw()).value)
                for part in parse(client.read_raw()).value:
                    check_whole(part.value or b"")

        def check_whole(value):
            assert value == value[:1] * len(value), "mixed: %r..%r" % (value[:20], value[-20:])
            assert len(value) in sizes + [0], "torn: %d bytes" % len(value)

        in_parallel(server, 8, work)


@test("two threads: APPEND loses no byte")
def appends(context):
    with context.agent(*THREADS) as server:
        in_parallel(server, 6, lambda client, i: burst(
            client, [b"APPEND", b"log", bytes([97 + i]) * 10], 300))
        with server.connect() as client:
            value = client.call("GET", "log").value
            assert len(value) == 18000, len(value)
            for i in range(6):
                assert value.count(bytes([97 + i])) == 3000
            blocks = [value[j:j + 10] for j in range(0, len(value), 10)]
            assert all(block == block[:1] * 10 for block in blocks), "appends are interleaved"


@test("two threads: one SETNX wins, one GETDEL gets the value")
def single_winners(context):
    with context.agent(*THREADS) as server:
        rounds = 300
        wins, gets = [None] * 6, [None] * 6

        def claim(client, number):
            client.send_raw(b"".join(encode([b"SETNX", b"lock%d" % r, b"%d" % number])
                                     for r in range(rounds)))
            wins[number] = [client.read_raw() == b":1\r\n" for _ in range(rounds)]

        def take(client, number):
            client.send_raw(b"".join(encode([b"GETDEL", b"lock%d" % r]) for r in range(rounds)))
            gets[number] = [client.read_raw() for _ in range(rounds)]

        in_parallel(server, 6, claim)
        for r in range(rounds):
            assert sum(part[r] for part in wins) == 1, "lock%d has several winners or none" % r
        in_parallel(server, 6, take)
        for r in range(rounds):
            winner = [n for n in range(6) if wins[n][r]][0]
            answers = [part[r] for part in gets if part[r] != b"$-1\r\n"]
            assert answers == [b"$1\r\n%d\r\n" % winner], (r, answers, winner)


def wait_for_count(client, count):
    deadline = time.monotonic() + 10
    while client.call("DBSIZE").value != b"%d" % count:
        assert time.monotonic() < deadline, (client.call("DBSIZE").value, count)
        time.sleep(0.01)


@test("two threads: DEL and SET of the same keys leave the count right")
def delete_and_set(context):
    with context.agent(*THREADS) as server:
        def work(client, number):
            for turn in range(100):
                keys = [b"k%d" % ((turn * 7 + i * number) % 60) for i in range(20)]
                client.send_raw(b"".join(encode([b"SET", key, b"v"]) for key in keys[::2])
                                + b"".join(encode([b"DEL", key]) for key in keys[1::2]))
                for _ in keys:
                    assert client.read_raw()[:1] in (b"+", b":")

        in_parallel(server, 6, work)
        with server.connect() as client:
            there = int(client.call("EXISTS", *["k%d" % i for i in range(60)]).value)
            # Agents publish their counts behind the answers.
            wait_for_count(client, there)
            deleted = int(client.call("DEL", *["k%d" % i for i in range(60)]).value)
            assert deleted == there
            wait_for_count(client, 0)


@test("two threads: a key that expired never comes back")
def expiry(context):
    with context.agent(*THREADS) as server:
        with server.connect() as client:
            for i in range(200):
                client.send("SET", "k%d" % i, "v", "PX", 1 + i)
            for _ in range(200):
                assert client.read_raw() == b"+OK\r\n"
        gone = [[False] * 200 for _ in range(4)]

        def work(client, number):
            now = time.monotonic()
            while time.monotonic() < now + 0.6 or (not all(gone[number]) and
                                                   time.monotonic() < now + 30):
                keys = ["k%d" % i for i in range(200)]
                for i, reply in enumerate(client.call("MGET", *keys).value):
                    if reply.value is None:
                        gone[number][i] = True
                    else:
                        assert not gone[number][i], "k%d came back" % i

        in_parallel(server, 4, work)
        assert all(all(part) for part in gone), "not every key expired"
        with server.connect() as client:
            assert client.call("DBSIZE").value == b"0"


@test("two threads: SWAPDB amid increments loses none and takes along what was there")
def swap_amid_increments(context):
    with context.agent(*THREADS) as server:
        def work(client, number):
            for turn in range(15):
                if number > 0:
                    for raw in burst(client, [b"INCR", b"n"], 40):
                        assert raw.startswith(b":"), raw
                    continue
                assert client.call("SET", "mark", turn).value == b"OK"
                assert client.call("SWAPDB", "0", "1").value == b"OK"
                with server.connect() as other:
                    assert other.call("SELECT", "1").value == b"OK"
                    assert other.call("GET", "mark").value == b"%d" % turn
                    before = b"%d" % (turn - 1) if turn > 0 else None
                    assert other.call("SELECT", "0").value == b"OK"
                    assert other.call("GET", "mark").value == before

        in_parallel(server, 4, work)
        with server.connect() as client:
            total = 0
            for database in ("0", "1"):
                assert client.call("SELECT", database).value == b"OK"
                total += int(client.call("GET", "n").value or 0)
                keys = client.call("KEYS", "*").value
                assert client.call("DBSIZE").value == b"%d" % len(keys), keys
            assert total == 3 * 15 * 40, total


@test("two threads: FLUSHALL amid writes leaves a store that works")
def flush_amid_writes(context):
    with context.agent(*THREADS) as server:
        def work(client, number):
            for turn in range(40):
                if number == 0:
                    assert client.call("FLUSHALL").value == b"OK"
                else:
                    for i in range(50):
                        client.send("SET", "k%d" % (i * number), b"x" * 100)
                    for _ in range(50):
                        assert client.read_raw() == b"+OK\r\n"

        in_parallel(server, 4, work)
        with server.connect() as client:
            client.call("FLUSHALL")
            assert client.call("DBSIZE").value == b"0"
            assert client.call("SET", "k", "v").value == b"OK"
            assert client.call("GET", "k").value == b"v"
