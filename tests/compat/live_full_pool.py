"""Commands on a full pool: what leaves a key no larger works, the rest changes nothing and says so."""

import time

from live import test
from live_memory import BATCH, OOM, fill, value_of

SIZE = 1000


def info(client, section):
    text = client.call("INFO", section).value.decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def fill_to_the_brim(*clients):
    """Through each of them, with values of many sizes, as registers and as records: nothing that
    grows finds room."""
    stored, _ = fill(clients[0], "k", SIZE)
    for number, client in enumerate(clients):
        for size in (200000, 20000, 5000, SIZE, 300, 100, 10):
            fill(client, "r%d.%d." % (number, size), size)
            key, reply = 0, None
            while reply is None or not reply.is_error:
                reply = client.call("APPEND", "a%d.%d.%d" % (number, size, key), b"a" * size)
                key += 1
            assert reply.value == OOM, reply.value
    return stored


def expect(client, command, value):
    reply = client.call(*command)
    assert reply.value == value, (command, reply.value)


def check_unchanged(client, keys):
    for first in range(0, len(keys), BATCH):
        part = keys[first:first + BATCH]
        for key, reply in zip(part, client.pipeline([("GET", key) for key in part])):
            assert reply.value == value_of(key, SIZE), "%s: %r" % (key, reply.value)


def check_what_works(client, keys):
    """Checks every one of `keys`: far more than the reserve could hold."""
    commands = {
        "EXPIRE": lambda key: (("EXPIRE", key, 1000), b"1"),
        "PEXPIRE": lambda key: (("PEXPIRE", key, 10 ** 6), b"1"),
        "EXPIREAT": lambda key: (("EXPIREAT", key, int(time.time()) + 1000), b"1"),
        "GETEX": lambda key: (("GETEX", key, "EX", 1000), value_of(key, SIZE)),
        "SETRANGE": lambda key: (("SETRANGE", key, 0, value_of(key, SIZE)[:10]),
                                 b"%d" % len(value_of(key, SIZE))),
        "SETBIT": lambda key: (("SETBIT", key, 0, 0), b"0"),
        "RENAME": lambda key: (("RENAME", key, key + "x"), b"OK"),
        "GETDEL": lambda key: (("GETDEL", key), value_of(key, SIZE)),
        "GETSET": lambda key: (("SET", key, "s", "GET"), value_of(key, SIZE)),
        "MOVE": lambda key: (("MOVE", key, 1), b"1"),
    }
    each = len(keys) // len(commands)
    # Where three threads have few objects of a class each, one change in thousands may be refused.
    refused = 0
    for turn, (name, command) in enumerate(commands.items()):
        mine = keys[turn * each:(turn + 1) * each]
        wanted = [command(key) for key in mine]
        for first in range(0, each, BATCH):
            part = wanted[first:first + BATCH]
            for (call, value), reply in zip(part, client.pipeline([call for call, _ in part])):
                if reply.value == OOM and refused < 5:
                    refused += 1
                    continue
                assert reply.value == value, (name, call[1], reply.value[:100], first)
        if name in ("EXPIRE", "PEXPIRE", "EXPIREAT", "GETEX"):
            without = sum(client.call("TTL", key).value == b"-1" for key in mine[::50])
            assert without <= refused, name
            assert client.call("PERSIST", mine[0]).value == b"1" or refused, name
        if name == "RENAME":
            assert int(client.call("EXISTS", *mine).value) <= refused
            for key in mine[::50] if not refused else []:
                expect(client, ("GET", key + "x"), value_of(key, SIZE))


def until_refused(client, prefix, call_of):
    """How many keys are made by `call_of(key)` first: compaction may still find room for some."""
    for number in range(20000):
        key = prefix + str(number)
        reply = client.call(*call_of(key))
        if reply.is_error:
            assert reply.value == OOM, (call_of(key)[0], reply.value)
            assert client.call("EXISTS", key).value == b"0"
            return number
    raise AssertionError("%s finds room for ever" % call_of(key)[0])


def check_what_is_refused(client, keys):
    """Nothing has changed where a command says so, and no word of some of the keys only."""
    big = b"b" * 1000000
    before = int(client.call("DBSIZE").value)
    calls = [("APPEND", keys[0], big), ("SETRANGE", keys[0], 1000000, "x"),
             ("MSET", "m1", big, keys[1], big, "m2", big, "m3", big),
             ("MSET", *[part for i in range(4000) for part in ("m%d" % i, value_of("m", SIZE))]),
             ("MSETNX", "m1", big, "m2", big), ("SETBIT", keys[2], 8 * 1000000, 1),
             ("BITFIELD", keys[2], "SET", "u8", 8 * 1000000, 1), ("SETNX", "m1", big)]
    for call in calls:
        reply = client.call(*call)
        assert reply.value == OOM, (call[0], reply.value)
    assert client.call("EXISTS", "m1", "m2", "m3").value == b"0"
    dump = client.call("DUMP", keys[3]).value
    made = until_refused(client, "copied", lambda key: ("COPY", keys[0], key))
    made += until_refused(client, "restored", lambda key: ("RESTORE", key, 0, dump))
    made += until_refused(client, "hll", lambda key: ("PFADD", key, "a"))
    assert int(client.call("DBSIZE").value) == before + made
    check_unchanged(client, keys[:4])


@test("used_memory is near maxmemory when a pool of one size is full, and falls with DEL")
def used_is_true(context):
    with context.agent("--memory", "64MiB", "--threads", "2") as server, \
            server.connect(60) as client:
        stored, _ = fill(client, "k", SIZE)
        memory = info(client, "memory")
        used, limit = int(memory["used_memory"]), int(memory["maxmemory"])
        assert limit * 0.97 <= used <= limit, (used, limit)
        warning = info(client, "onetrip")["pool_warning"]
        assert warning.startswith("writes are refused with -OOM") and "node add" in warning, warning
        for first in range(0, len(stored) // 2, 500):
            client.call("DEL", *stored[first:first + 500])
        time.sleep(1)
        half = int(info(client, "memory")["used_memory"])
        assert used * 0.4 < half < used * 0.6, (used, half)
        assert client.call("FLUSHALL").value == b"OK"
        time.sleep(1)
        flushed = int(info(client, "memory")["used_memory"])
        assert flushed < used * 0.1, (used, flushed)


for _threads in ("1", "3"):
    @test("on a full pool works what leaves a key no larger, with %s threads" % _threads)
    def works(context, threads=_threads):
        with context.agent("--memory", "64MiB", "--threads", threads) as server, \
                server.connect(120) as client, server.connect(120) as other:
            stored = fill_to_the_brim(client, other)
            check_what_is_refused(client, stored[:10])
            check_what_works(client, stored[10:])
            check_unchanged(other, stored[:10])


@test("MSET on a full pool sets all keys or none, over old keys and new ones")
def mset(context):
    with context.agent("--memory", "64MiB") as server, server.connect(120) as client:
        # Without a shortage before: the pool becomes full amid one of them.
        number, reply = 0, None
        while reply is None or not reply.is_error:
            keys = ["n%d" % (number + i) for i in range(64)]
            reply = client.call("MSET", *[part for key in keys for part in (key, value_of(key))])
            number += 64
        assert reply.value == OOM, reply.value
        assert client.call("DBSIZE").value == b"%d" % (number - 64)
        # Room for some of them.
        client.call("DEL", *["n%d" % i for i in range(40)])
        time.sleep(0.3)
        for turn in range(20):
            keys = ["n%d" % (100 + i) for i in range(50)] + ["t%d.%d" % (turn, i) for i in range(50)]
            value = b"%d" % turn * 900
            reply = client.call("MSET", *[part for key in keys for part in (key, value)])
            got = [part.value for part in client.call("MGET", *keys).value]
            if reply.is_error:
                assert reply.value == OOM, reply.value
                assert got[50:] == [None] * 50 and value not in got, turn
            else:
                assert got == [value] * 100, turn
