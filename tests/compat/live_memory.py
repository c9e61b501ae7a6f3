"""A small pool: full, freed, overwritten. Nothing half-written, nothing lost, memory comes back."""

import concurrent.futures
import random
import threading
import time

from live import run_program, test

OOM = b"OOM command not allowed when used memory > 'maxmemory'."
BATCH = 200


def value_of(key, size=1000):
    return (key.encode() + b"/") * (size // (len(key) + 1) + 1)


def fill(client, prefix, size=1000, most=200000):
    """SETs until the first OOM: (acknowledged keys, refused keys of the last batches)."""
    stored, refused = [], []
    number = 0
    while not refused and number < most:
        keys = ["%s%d" % (prefix, i) for i in range(number, number + BATCH)]
        number += BATCH
        replies = client.pipeline([("SET", key, value_of(key, size)) for key in keys])
        for key, reply in zip(keys, replies):
            if reply.is_error:
                assert reply.value == OOM, reply.value
                refused.append(key)
            else:
                stored.append(key)
    assert refused, "no OOM after %d keys" % number
    return stored, refused


def check_values(client, keys, size=1000):
    for first in range(0, len(keys), BATCH):
        part = keys[first:first + BATCH]
        for key, reply in zip(part, client.pipeline([("GET", key) for key in part])):
            assert reply.value == value_of(key, size), "%s: %r" % (key, reply.value)


def check_commands_of_full_pool(client, keys):
    """Writes say OOM and nothing else, or find room; reads and DEL go on. Takes three keys away."""
    big = b"x" * 3000
    replies = client.pipeline([
        ("SET", "new", big), ("SETNX", "new", big), ("SETEX", "new", 100, big),
        ("SET", keys[0], big, "GET"), ("GETSET", keys[0], big), ("MSET", "m1", big, "m2", big),
        ("MSETNX", "m1", big, "m2", big), ("APPEND", keys[0], big), ("SETRANGE", keys[0], 0, big),
        ("SETBIT", "new bits", 30000, 1), ("BITFIELD", "new bits", "SET", "u8", 30000, 1),
        ("BITOP", "AND", "new bits", keys[0], keys[1]), ("COPY", keys[0], "new"),
        ("RENAME", keys[0], "new"), ("MOVE", keys[0], 1), ("PFADD", "new hll", "a", "b"),
        ("RESTORE", "new dump", 0, client.call("DUMP", keys[2]).value), ("EXPIRE", keys[1], 100)])
    refused = [reply.value for reply in replies if reply.is_error]
    assert set(refused) == {OOM} and len(refused) >= 10, refused
    replies = client.pipeline([
        ("MGET", keys[2], "none"), ("TTL", keys[2]), ("TYPE", keys[2]), ("DUMP", keys[2]),
        ("GETRANGE", keys[2], 0, 5), ("SCAN", 0), ("TOUCH", keys[2]), ("RANDOMKEY",),
        ("UNLINK", keys[2]), ("DEL", keys[0], keys[1], "new", "new bits", "new hll",
         "new dump", "m1", "m2")])
    assert not any(reply.is_error for reply in replies), replies


@test("CONFIG SET promises no limit of memory and no eviction that there is not")
def limits_of_memory(context):
    with context.agent("--memory", "64MiB") as server, server.connect() as client:
        def shown(name):
            return client.call("CONFIG", "GET", name).pairs()[name.encode()].value
        pool = shown("maxmemory")
        assert b"\r\nmaxmemory:%s\r\n" % pool in client.call("INFO", "memory").value
        for name, value, same in (("maxmemory", "1mb", pool), ("maxmemory", "0", pool),
                                  ("maxmemory-policy", "allkeys-lru", b"noeviction"),
                                  ("maxmemory-clients", "1mb", b"0")):
            reply = client.call("CONFIG", "SET", name, value)
            assert reply.is_error and reply.value.startswith(
                b"ERR CONFIG SET failed (possibly related to argument '%s') - " % name.encode()
                ), reply.value
            assert shown(name) == same, shown(name)
            assert client.call("CONFIG", "SET", name, same).value == b"OK"


@test("a full pool of one replica behaves like one of three")
def full_pool_of_one(context):
    full_pool(context, "--replicas", "1")


@test("a full pool answers OOM; reads and DEL go on; DEL gives memory back")
def full_pool(context, *extra):
    with context.agent("--memory", "64MiB", *extra) as server, server.connect(30) as client:
        stored, refused = fill(client, "k")
        # Each replica holds every key, in place and in a buffer: 64 MiB must take far more than a
        # fifth of that in values.
        assert len(stored) > 20000, "only %d values of 1000 bytes fit in 64 MiB" % len(stored)
        check_values(client, stored)
        for reply in client.pipeline([("GET", key) for key in refused]):
            assert reply.value is None, "a refused SET left a value"
        assert client.call("DBSIZE").value == b"%d" % len(stored)
        assert client.call("EXISTS", stored[0]).value == b"1"
        assert client.call("STRLEN", stored[0]).value == b"%d" % len(value_of(stored[0]))
        check_commands_of_full_pool(client, stored[-3:])
        del stored[-3:]
        # Refused writes leave what was there.
        for command in (("APPEND", stored[1], b"x" * 100000), ("SETRANGE", stored[1], 300000, "x"),
                        ("SET", stored[1], b"y" * 500000)):
            reply = client.call(*command)
            if reply.is_error:
                assert reply.value == OOM, reply.value
            else:
                client.call("SET", stored[1], value_of(stored[1]))
        check_values(client, stored[1:2])
        half = stored[::2]
        deleted = sum(int(reply.value) for reply in client.pipeline([("DEL", k) for k in half]))
        assert deleted == len(half), "DEL deleted %d of %d" % (deleted, len(half))
        assert client.call("DBSIZE").value == b"%d" % (len(stored) - len(half))
        again, _ = fill(client, "again")
        assert len(again) > len(half) * 0.8, (
            "after %d DELs only %d SETs found room" % (len(half), len(again)))
        check_values(client, stored[1::2])
        check_values(client, again)


@test("FLUSHALL of a full pool gives all of it back")
def flush_full_pool(context):
    with context.agent("--memory", "64MiB") as server, server.connect(60) as client:
        first, _ = fill(client, "a", size=4000)
        assert client.call("FLUSHALL").value == b"OK"
        assert client.call("DBSIZE").value == b"0"
        assert client.call("GET", first[0]).value is None
        second, _ = fill(client, "b", size=4000)
        assert len(second) > len(first) * 0.8, "%d, then %d" % (len(first), len(second))
        check_values(client, second, 4000)


@test("a full pool of one size takes other sizes once keys are deleted")
def other_sizes(context):
    with context.agent("--memory", "64MiB") as server, server.connect(60) as client:
        small, _ = fill(client, "s", size=400, most=500000)
        for first in range(0, len(small), 1000):
            client.call("DEL", *small[first:first + 1000])
        assert client.call("DBSIZE").value == b"0"
        large, _ = fill(client, "l", size=50000)
        assert len(large) * 50000 > 20 << 20, "only %d values of 50 kB fit" % len(large)
        check_values(client, large, 50000)


@test("a million overwrites of few keys do not exhaust a small pool")
def overwrites(context):
    with context.agent("--memory", "64MiB") as server:
        code, out, err = run_program(
            ["redis-benchmark", "-p", str(server.port), "-q", "-t", "set", "-n", "1000000", "-r",
            "10",
             "-d", "500", "-P", "50", "-c", "10"])
        assert code == 0 and "rror" not in out + err, (out + err)[-300:]
        with server.connect() as client:
            assert client.call("DBSIZE").value == b"10"
            assert client.call("SET", "after", b"x" * 100000).value == b"OK"


@test("values that grow by APPEND through every size give their old memory back")
def growing_values(context):
    with context.agent("--memory", "64MiB") as server, server.connect(30) as client:
        for turn in range(12):
            key = "grow%d" % (turn % 3)
            client.call("DEL", key)
            replies = client.pipeline([("APPEND", key, b"z" * 5000)] * 200)
            assert replies[-1].value == b"1000000", replies[-1].value
        assert client.call("STRLEN", "grow0").value == b"1000000"


@test("expired keys give their memory back to those that need it")
def expired_keys(context):
    with context.agent("--memory", "64MiB") as server, server.connect(30) as client:
        for turn in range(4):
            # The same names again: the room of what expired must be found on the way.
            commands = [("SET", "e%d" % i, b"x" * 1000, "PX", 20) for i in range(10000)]
            for first in range(0, len(commands), 1000):
                replies = client.pipeline(commands[first:first + 1000])
                bad = [reply.value for reply in replies if reply.is_error]
                assert not bad, "turn %d: %r" % (turn, bad[0])


@test("a value above the limit is refused and the connection goes on")
def value_too_large(context):
    with context.agent("--proto-max-bulk-len", "512MiB") as server, server.connect() as client:
        client.call("SET", "k", "abc")
        too_long = b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"
        assert client.call("SETRANGE", "k", 512 << 20, "y").value == too_long
        assert client.call("CONFIG", "SET", "proto-max-bulk-len", 1 << 20).value == b"OK"
        assert client.call("SET", "k", b"x" * (1 << 20)).value == b"OK"
        assert client.call("APPEND", "k", "y").value == too_long
        assert client.call("SETRANGE", "k", 1 << 20, "y").value == too_long
        assert client.call("STRLEN", "k").value == b"%d" % (1 << 20)
        assert client.call("CONFIG", "SET", "proto-max-bulk-len", 1 << 30).is_error
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n")
        data, closed = client.read_available(0.5)
        assert data == b"-ERR Protocol error: invalid bulk length\r\n" and closed, (data, closed)


def longest_ping_ms(client, run):
    """(longest, all): the longest PING of `client` while run() does what it does on a thread beside, and how long
    that takes."""
    longest = 0
    thread = threading.Thread(target=run)
    started = time.monotonic()
    thread.start()
    while thread.is_alive():
        begun = time.monotonic()
        client.call("PING")
        longest = max(longest, time.monotonic() - begun)
    thread.join()
    return longest * 1000, (time.monotonic() - started) * 1000


@test("values of 64 MiB come and go, and others are served meanwhile")
def large_values(context):
    large = random.Random(7).randbytes(64 << 20)
    with context.agent("--proto-max-bulk-len", "512MiB", "--memory", "256MiB") as server, \
            server.connect(60) as client, server.connect(60) as other:
        replies = {}
        for name, call in {"SET": ("SET", "k", large), "GET": ("GET", "k"),
                           "APPEND": ("APPEND", "k", "tail"),
                           "SETRANGE": ("SETRANGE", "k", 1 << 20, "middle"),
                           "BITCOUNT": ("BITCOUNT", "k"), "DUMP": ("DUMP", "k")}.items():
            run = lambda: replies.__setitem__(name, client.call(*call).value)
            longest, whole = longest_ping_ms(other, run)
            # Milliseconds if nothing else runs here, which is no promise of this machine's. An agent that does not
            # serve others meanwhile answers when it is done.
            assert longest < max(1000, whole * .8), "%s: a PING took %.0f ms of %.0f" % (name, longest, whole)
        assert replies["SET"] == b"OK" and replies["GET"] == large
        assert replies["APPEND"] == b"%d" % (len(large) + 4)
        changed = bytearray(large + b"tail")
        changed[1 << 20:(1 << 20) + 6] = b"middle"
        assert client.call("GET", "k").value == bytes(changed)
        assert client.call("GETRANGE", "k", 63 << 20, (63 << 20) + 9).value == \
            bytes(changed[63 << 20:(63 << 20) + 10])
        assert client.call("RESTORE", "k", 0, replies["DUMP"], "REPLACE").value == b"OK"
        client.pipeline([("MULTI",), ("SETRANGE", "k", 0, "first"), ("GET", "k")])
        changed[0:5] = b"first"
        executed = [reply.value for reply in client.call("EXEC").value]
        assert executed == [b"%d" % len(changed), bytes(changed)]
        # One value does not count, two do; MGET sends one after the other.
        limits = "client-output-buffer-limit"
        assert client.call("CONFIG", "SET", limits, "normal 1mb 0 0").value == b"OK"
        assert client.call("GET", "k").value == bytes(changed)
        reply = client.call("MGET", "k", "none", "k", "k")
        assert [part.value for part in reply.value] == [bytes(changed), None] + [bytes(changed)] * 2
        with server.connect(60) as greedy:
            greedy.pipeline([("MULTI",), ("GET", "k"), ("SETRANGE", "k", 0, "first"), ("GET", "k")])
            greedy.send("EXEC")
            _, closed = greedy.read_available(5)
            assert closed
        assert client.call("CONFIG", "SET", limits, "normal 1gb 0 0").value == b"OK"
        assert client.call("RENAME", "k", "r").value == b"OK"
        # A value that does not fit is refused and leaves nothing behind.
        for _ in range(3):
            for turn in range(4):
                reply = client.call("SET", "full%d" % turn, large)
                assert reply.value == b"OK" or reply.value.startswith(b"OOM"), reply.value
            assert reply.value.startswith(b"OOM"), reply.value
            assert client.call("SETRANGE", "huge", 500 << 20, "x").value.startswith(b"OOM")
            assert client.call("DEL", "full0", "full1", "full2", "full3").value != b"0"
        assert client.call("GET", "r").value == bytes(changed)
        info = dict(line.split(b":", 1) for line in client.call("INFO", "onetrip").value.split()
                    if b":" in line)
        assert info[b"large_value_request_bytes"] == b"0", info
        assert info[b"large_value_read_bytes"] == b"0", info


@test("large values wait for each other where memory for them is short")
def large_values_wait(context):
    value = random.Random(8).randbytes(6 << 20)
    with context.agent("--proto-max-bulk-len", "512MiB", "--large-value-memory", "16MiB") as server:
        clients = [server.connect(60) for _ in range(12)]

        def work(client, key):
            for _ in range(3):
                assert client.call("SET", key, value).value == b"OK"
                assert client.call("GET", key).value == value
                assert client.call("APPEND", key, "x").value == b"%d" % (len(value) + 1)
                assert client.call("MGET", key, key, key).value[2].value == value + b"x"

        with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
            list(pool.map(work, clients, ["k%d" % i for i in range(len(clients))]))
        for client in clients:
            client.close()

