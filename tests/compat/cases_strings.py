"""Hand-written streams over the string and key commands, with their edges."""

import itertools
import random

from steps import Batch, Sleep, batch, command, on

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
FAR_S, FAR_MS = "33177117420", "33177117420000"
MIB = 1 << 20
# Nothing that could be compressed.
LARGE = random.Random(1).randbytes(3 * MIB // 2)


def arity_cases():
    names = {"get": 1, "set": 2, "del": 1, "unlink": 1, "exists": 1, "type": 1, "mget": 1,
    "mset": 2,
             "setnx": 2, "getset": 2, "getdel": 1, "incr": 1, "decr": 1, "incrby": 2, "decrby": 2,
             "incrbyfloat": 2, "append": 2, "strlen": 1, "getrange": 3, "setrange": 3, "ttl": 1,
             "pttl": 1, "expire": 2, "pexpire": 2, "expireat": 2, "pexpireat": 2,
             "expiretime": 1, "pexpiretime": 1, "persist": 1, "touch": 1, "setex": 3, "psetex": 3,
             "getex": 1, "substr": 3, "setbit": 3, "getbit": 2, "bitcount": 1, "bitpos": 2,
             "bitop": 3, "bitfield": 1, "bitfield_ro": 1, "ping": 0, "echo": 1, "select": 1, "dbsize": 0, "time": 0, "flushall": 0,
             "flushdb": 0, "auth": 1, "reset": 0, "client": 1, "config": 1, "command": 0}
    for name, wanted in names.items():
        steps = []
        # HELLO, AUTH, FLUSH and COMMAND have words of their own for extra arguments.
        for count in sorted({0, max(0, wanted - 1), wanted + 1, wanted + 2, wanted + 7}):
            if count == wanted:
                continue
            if name == "command" and count == 0 or name == "reset" and count == 0:
                continue
            steps.append(tuple([name] + ["1"] * count))
            steps.append(tuple([name.upper()] + ["1"] * count))
        yield "arity of " + name, steps


def set_option_cases():
    """Every ordered choice of up to three options, on a missing, a plain and an expiring key."""
    options = ["NX", "XX", "GET", "KEEPTTL", "EX 100", "PX 100000", "EXAT " + FAR_S,
               "PXAT " + FAR_MS]
    for size in (0, 1, 2, 3):
        steps = []
        for chosen in itertools.permutations(options, size):
            tail = "".join(" " + option for option in chosen)
            steps += ["SET missing new" + tail, "GET missing", "TTL missing", "DEL missing",
                      "SET plain old", "SET plain new" + tail, "GET plain", "TTL plain",
                      "SET timed old EX 5000", "SET timed new" + tail, "GET timed", "TTL timed"]
        # In pipelines: fewer round trips, and the replies must stay in order.
        yield "SET with %d options" % size, [
            Batch(tuple(command(step) for step in steps[i:i + 60]))
            for i in range(0, len(steps), 60)]
    bad = ["SET k v EX", "SET k v PX", "SET k v EXAT", "SET k v PXAT", "SET k v EX abc",
           "SET k v EX 0", "SET k v EX -1", "SET k v PX 0", "SET k v PX -100", "SET k v EXAT 0",
           "SET k v EXAT -1", "SET k v PXAT 0", "SET k v PXAT -1", "SET k v EX " + BIG,
           "SET k v EX 9223372036854775", "SET k v EX 9223372036854776", "SET k v PX " + BIG,
           "SET k v PX 9223372036854775806", "SET k v PX 9223370000000000000",
           "SET k v EXAT " + BIG, "SET k v EX 1.5", "SET k v EX 10 EX 10", "SET k v EX 10 PX 10000",
           "SET k v NX NX", "SET k v XX NX", "SET k v KEEPTTL EX 10", "SET k v KEEPTTL KEEPTTL",
           "SET k v GET GET", "SET k v bogus", "SET k v EX 10 bogus", "SET k v ex 10 nx",
           "SET k v eX 10 Get", "SET k v PERSIST", ("SET", "k", "v", ""),
           ("SET", "k", "v", "EX", ""), "SET k v EX +10", "SET k v EX 010",
           ("SET", "k", "v", "EX", " 10")]
    yield "SET with bad options", [step for item in bad for step in (item, "GET k", "TTL k",
        "DEL k")]
    yield "SET NX GET and XX GET", [
        "SET k 1 NX GET", "GET k", "SET k 2 NX GET", "GET k", "SET k 3 XX GET", "GET k", "DEL k",
        "SET k 4 XX GET", "GET k", "SET k 5 GET", "SET k 6 GET EX 100", "TTL k",
        "SET k 7 GET KEEPTTL", "TTL k", "SET k 8 GET", "TTL k"]


def deadline_cases():
    """EXPIRE and its relatives: every condition on a missing, a plain and an expiring key."""
    far = {"EXPIRE": "5000", "PEXPIRE": "5000000", "EXPIREAT": FAR_S, "PEXPIREAT": FAR_MS}
    conditions = [""] + [" " + " ".join(chosen) for size in (1, 2, 3)
                         for chosen in itertools.permutations(["NX", "XX", "GT", "LT"], size)]
    for name, time in far.items():
        steps = []
        for condition in conditions:
            for old in ("", " EX 100", " PXAT 33177117430000"):
                steps += ["SET k v" + old, "%s k %s%s" % (name, time, condition), "TTL k"]
            steps += ["DEL k", "%s k %s%s" % (name, time, condition), "EXISTS k"]
        yield name + " with conditions", [
            Batch(tuple(command(step) for step in steps[i:i + 60]))
            for i in range(0, len(steps), 60)]
        steps = []
        # A number so small that the key may be gone before it is looked at says nothing.
        for time in ("0", "-1", "100000", "abc", "", "1.5", BIG, SMALL, "9223372036854775",
                     "9223372036854776", "-9223372036854775", "-9223372036854776",
                     "9223372036854775806", "+1", "01"):
            steps += ["SET k v", (name, "k", time, "GT"), (name, "k", time), (name, "none", time),
                      "EXISTS k"]
        for bad in ("nx", "bogus", "NX XX", "GT LT", "NX GT", "XX GT", "XX LT", "NX NX", "GT GT"):
            steps += ["SET k v", "%s k %s %s" % (name, far[name], bad), "TTL k",
                      "%s k abc %s" % (name, bad), "%s none %s %s" % (name, far[name], bad)]
        if name.endswith("AT"):  # A relative time would be greater once a millisecond has passed.
            again = "%s k %s " % (name, far[name])
            steps += ["SET k v", again, again + "GT", again + "LT"]
        yield name + " at its edges", steps
    yield "EXPIRETIME, PERSIST and TOUCH", [
        "EXPIRETIME no", "PEXPIRETIME no", "PERSIST no", "SET k v", "EXPIRETIME k",
        "PEXPIRETIME k", "PERSIST k", "PEXPIREAT k 33177117420499", "EXPIRETIME k",
        "PEXPIRETIME k", "PEXPIREAT k 33177117420500", "EXPIRETIME k", "PEXPIRETIME k",
        "PERSIST k", "TTL k", "PERSIST k", "GET k", "TOUCH k no k", "TOUCH no",
        "EXPIREAT k " + FAR_S, "SET k w KEEPTTL", "EXPIRETIME k", "APPEND k x", "EXPIRETIME k",
        "SET n 1 EXAT " + FAR_S, "INCR n", "EXPIRETIME n", "EXPIRE n -1", "GET n", "DBSIZE"]
    yield "SETEX and PSETEX", [step for name in ("SETEX", "PSETEX") for time in (
        "100000", "0", "-1", "abc", "", BIG, "9223372036854775", "9223372036854776", "1.5")
        for step in ((name, "k", time, "v"), "GET k", "DEL k")] + [
            "SET k old", "SETEX k 5000 new", "TTL k", "GET k", "PSETEX k 5000000 newer", "TTL k"]
    steps = []
    for options in ("", " EX 5000", " PX 5000000", " EXAT " + FAR_S, " PXAT " + FAR_MS, " PERSIST",
                    " EX 0", " EX -1", " EX abc", " EX", " EX " + BIG, " EXAT 1", " PXAT 1",
                    " PERSIST PERSIST", " PERSIST EX 10", " EX 10 PERSIST", " EX 10 EX 5000",
                    " EX 10 PX 10", " NX", " KEEPTTL", " ex 5000", " persist"):
        for old in ("SET k v", "SET k v EX 100", "DEL k"):
            steps += [old, "GETEX k" + options, "TTL k"]
    yield "GETEX", steps
    yield "SUBSTR", ["SET k hello", "SUBSTR k 1 3", "SUBSTR k -3 -1", "SUBSTR no 0 -1",
                     "SUBSTR k x 1"]


def expiry_cases():
    yield "TTL and PTTL", [
        "TTL no", "PTTL no", "SET k v", "TTL k", "PTTL k", "SET k v EX 100", "TTL k", "PTTL k",
        "SET k v PX 1500", "TTL k", "SET k v PX 1400", "TTL k", "SET k v PX 90000", "TTL k",
        "SET k w", "TTL k", "SET k v EX 100", "APPEND k x", "TTL k", "SETRANGE k 0 zz", "TTL k",
        "SET k 10 EX 100", "INCR k", "TTL k", "INCRBYFLOAT k 1.5", "TTL k", "GETSET k 1", "TTL k",
        "SET k v EX 100", "MSET k w", "TTL k", "SET k v EX 100", "SETNX k w", "TTL k"]
    yield "keys expire", [
        "SET a v PX 30", "SET b 5 PX 30", "SET c v PX 30", "SET d v PX 30", "SET e v PX 30",
        "SET f v PX 30", "SET g v PX 30", "SET h v PX 30", "SET i v PX 100000", "SET j v PX 30",
        Sleep(80), "GET a", "INCR b", "TTL b", "EXISTS c", "SET d w XX", "GET d", "SET d w NX",
        "TTL d", "APPEND e x", "TTL e", "DEL f", "GETDEL g", "TYPE h", "STRLEN h", "TTL h",
        "PTTL h", "GET i", "MGET a c i", "GETSET j n", "TTL j",
        # Reading what expired is what removes it from the count.
        "MGET a b c d e f g h i j", "DBSIZE"]
    yield "deadlines in the past", [
        "SET k v EXAT 1", "GET k", "TTL k", "EXISTS k", "SET k v PXAT 1000", "GET k", "SET k v",
        "SET k w GET EXAT 1", "GET k", "DBSIZE"]
    yield "SET drops an old deadline", [
        "SET k v PX 40", "SET k v", Sleep(80), "GET k", "SET m v PX 40", "SET m v KEEPTTL",
        Sleep(80), "GET m", "SET n v PX 40", "SET n v PX 100000", Sleep(80), "GET n"]


def number_cases():
    values = ["0", "1", "-1", "5", BIG, SMALL, "9223372036854775806", "9223372036854775808",
              "-9223372036854775809", "007", "+1", "-0", "1.0", "1e3", "abc", "0x10", "--1", "-",
              "18446744073709551616"]
    steps = []
    for value in values:
        for name in ("INCR", "DECR"):
            steps += ["SET n " + value, name + " n", "GET n"]
        for amount in ("1", "-1", "0", BIG, SMALL, "1.5", "abc", "9223372036854775808", "+5", "01"):
            steps += ["SET n " + value, "INCRBY n " + amount, "GET n", "SET n " + value,
                      "DECRBY n " + amount, "GET n"]
    steps += [("SET", "n", " 1"), "INCR n", ("SET", "n", "1 "), "INCR n", ("SET", "n", ""),
        "INCR n",
              ("SET", "n", b"1\x00"), "INCR n", ("INCRBY", "n", ""), ("INCRBY", "n", " 1"), "DEL n",
              "INCR n", "DEL n", "DECR n", "DEL n", "INCRBY n -7", "DEL n", "DECRBY n 7",
              "DECRBY n " + SMALL, "GET n"]
    yield "integers at their limits", steps
    reals = ["0", "1", "-1", "10.50", "3.0e3", "5.0e3", "1e17", "1e18", "123456789012345678", "0.1",
             "-0.1", "0.3", "1e-5", "1e-17", "1e-20", "1e300", "1e308", "1e4931", "-1e4931",
             "1e-4940", "inf", "+inf", "-inf", "infinity", "nan", "abc", "0x10", "0x1p3", "1.",
             ".5", "-.5", "1e", "e5", "1.5abc", "+1.5", "--1", "1_000",
             "3.141592653589793238462643383279", "1,5", "9223372036854775807",
             "0.000000000000000001", "17179869184.0625"]
    steps = []
    for value in reals:
        steps += ["DEL f", "INCRBYFLOAT f " + value, "GET f", "INCRBYFLOAT f 1",
            "INCRBYFLOAT f 0.2",
                  "INCRBYFLOAT f -1.2", "SET f " + value, "INCRBYFLOAT f 0", "GET f",
                  "INCRBYFLOAT f " + value, "INCRBYFLOAT f -" + value.lstrip("+-"), "STRLEN f"]
    steps += [("SET", "f", " 1"), "INCRBYFLOAT f 1", ("SET", "f", "1 "), "INCRBYFLOAT f 1",
              ("SET", "f", ""), "INCRBYFLOAT f 1", ("SET", "f", b"1\x00"), "INCRBYFLOAT f 1",
              ("INCRBYFLOAT", "f", ""), ("INCRBYFLOAT", "f", " 1"), ("INCRBYFLOAT", "f", b"1\x002"),
              "SET f 1", "INCR f", "INCRBYFLOAT f 1.5", "INCR f", "INCRBYFLOAT f 0.5", "INCR f"]
    yield "INCRBYFLOAT formats", steps


def range_cases():
    offsets = ["0", "1", "4", "5", "6", "-1", "-2", "-5", "-6", "100", "-100", BIG, SMALL,
               "9223372036854775808", "abc", "1.5", "2147483648", "-2147483649"]
    steps = ["SET k hello"]
    steps += ["GETRANGE k %s %s" % pair for pair in itertools.product(offsets, offsets)]
    steps += ["GETRANGE no 0 -1", "GETRANGE no 0 abc", "GETRANGE k 3 1", "GETRANGE k -1 -3",
              ("SET", "e", ""), "GETRANGE e 0 -1", "GETRANGE e 0 0", "SET n 12345",
              "GETRANGE n 1 3", ("SET", "b", bytes(range(256))), "GETRANGE b 0 -1",
              "GETRANGE b 10 13"]
    yield "GETRANGE", steps
    steps = []
    for offset in ("0", "1", "5", "6", "10", "-1", "abc", "1.5", "100", BIG, SMALL, "1048575",
                   "1048576", "536870911", "4294967296", "9223372036854775808"):
        for value in ("", "X", "XYZ"):
            steps += ["SET k hello", ("SETRANGE", "k", offset, value), "STRLEN k",
                "GETRANGE k 0 20",
                      "DEL k", ("SETRANGE", "k", offset, value), "EXISTS k", "STRLEN k",
                      "GETRANGE k -5 -1"]
    yield "SETRANGE", steps
    yield "APPEND and STRLEN", [
        "APPEND k hello", "APPEND k -world", "GET k", "STRLEN k", "STRLEN no", ("APPEND", "no", ""),
        "EXISTS no", "GET no", ("APPEND", "k", ""), "APPEND n 1", "INCR n", "APPEND n 0", "INCR n",
        ("APPEND", "b", bytes(range(256))), ("APPEND", "b", b"\x00\r\n"), "GET b", "STRLEN b"]


def size_cases():
    """The agent keeps values above 1 MiB in several objects. Both end at 2 MiB here (servers.py)."""
    yield "values above 1 MiB", [
        ("SET", "k", LARGE), "GET k", "STRLEN k", "GETRANGE k 1048000 1048700", "GETRANGE k -5 -1",
        "TTL k", "TYPE k", "OBJECT ENCODING k", "GETBIT k 12000000", "BITCOUNT k",
        "BITCOUNT k 1000000 1200000", "BITPOS k 1 1048576", "BITPOS k 0", "APPEND k tail", "GET k",
        "SETRANGE k 1200000 middle", "GETRANGE k 1199990 1200010", "SETBIT k 9000001 1", "GET k",
        "BITFIELD k GET u8 8400000 SET u16 8400008 4660 INCRBY i32 12000000 77", "GET k",
        "EXPIRE k 1000", "PERSIST k", "GET k", "COPY k c", "GET c", "RENAME k r", "EXISTS k",
        "GET r", "DUMP r", "BITOP XOR x c r", "BITCOUNT x", "BITOP NOT x c", "GET x",
        ("GETSET", "r", b"short"), "GET r", ("SET", "r", LARGE, "GET"), ("SET", "r", LARGE, "NX"),
        ("SETNX", "r", LARGE), "GETEX r PERSIST", "GETDEL r", "EXISTS r", "INCR c", "INCRBYFLOAT c 1",
        "PFCOUNT c", "MULTI", "APPEND c 1", "STRLEN c", "GETRANGE c 0 5", "EXEC", "GET c",
        "MULTI", "GET c", ("SET", "d", b"1"), "EXEC", ("MSET", "a", LARGE, "b", LARGE),
        "MGET a b no a", ("MSETNX", "m", LARGE, "n", b"1"), "GET m", "DEL a b c d m n x",
        ("SET", "k", b"small"), "SETRANGE k 1500000 far", "GETRANGE k 0 10", "STRLEN k", "DBSIZE"]
    yield "values up to 2 MiB", [
        ("SET", "k", b"x" * (2 * MIB)), "STRLEN k", "APPEND k y", "SETRANGE k 2097151 z", "SETRANGE k 2097151 zz",
        ("APPEND", "k", ""), "SETBIT k 16777215 1", "SETBIT k 16777216 1", "GETRANGE k -3 -1", "DEL k"]
    yield "values of about 1 MiB", [
        ("SET", "k", b"x" * MIB), "STRLEN k", "GET k", "GETRANGE k 1048570 2000000", "APPEND k y",
        "STRLEN k", "SETRANGE k 1048575 z", "GETRANGE k -3 -1", "SETRANGE k 1048575 zz", "STRLEN k",
        ("SET", "k", b"y" * (MIB - 1)), "APPEND k 1", "APPEND k 2", "STRLEN k", "GETDEL k",
        "SETRANGE e 1048575 a", "STRLEN e", "SETRANGE e 1048576 a", ("APPEND", "e", ""), "STRLEN e",
        ("MSET", "a", b"a" * MIB, "b", b"b" * MIB), "MGET a b a", ("GETSET", "a", b"z" * MIB),
        ("SET", "a", b"n", "GET"), "GET a", ("ECHO", b"e" * MIB)]
    sizes = [0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 128, 240, 255, 256, 257, 500, 1000, 1023,
    1024,
             1025, 2047, 2048, 4095, 4096, 4097, 8000, 16383, 16384, 16385, 32768, 65535, 65536,
             65537,
             100000, 131072, 262143, 262144, 524287, 524288, 1000000, 1048575]
    steps = []
    for size in sizes:
        value = bytes((size + i) % 251 for i in range(min(size, 251))) * (size // 251 + 1)
        steps += [("SET", "k", value[:size]), "GET k", "STRLEN k", ("SET", "s%d" % size,
            value[:size])]
    steps += ["GET s%d" % size for size in sizes]
    steps += [("MGET",) + tuple("s%d" % size for size in sizes[:30]), "DBSIZE"]
    yield "value sizes", steps
    lengths = [0, 1, 8, 16, 63, 64, 200, 255, 256, 1000, 1023, 1024, 4000, 4096, 16000, 65535]
    steps = []
    for length in lengths:
        steps += [("SET", b"K" * length, str(length)), ("GET", b"K" * length),
                  ("INCR", b"K" * length), ("EXISTS", b"K" * length)]
    steps += [("MGET",) + tuple(b"K" * length for length in lengths), "DBSIZE"]
    steps += [("DEL", b"K" * length) for length in lengths] + ["DBSIZE"]
    yield "key lengths", steps
    long = b"K" * 65536
    yield "a key of 64 KiB", [("GET", long), ("EXISTS", long), ("DEL", long), ("TTL", long),
                              ("SET", long, "1")]


def key_cases():
    yield "GET SET DEL", [
        "GET k", "SET k v", "GET k", "SET k w", "GET k", "DEL k", "GET k", "DEL k", "SET a 1",
        "SET b 2", "DEL a b c", "DEL a a", "SET a 1", "DEL a a", "SET a 1", "UNLINK a b a",
        "EXISTS a", "SET a 1", "EXISTS a a b a", "TYPE a", "TYPE b", "GETDEL a", "GETDEL a",
        "EXISTS a", "set A 1", "gEt A", "get a", "SeT a 2", "GET A"]
    yield "binary keys and values", [
        ("SET", b"\x00", b"\x00\x01"), ("GET", b"\x00"), ("SET", b"\r\n", b"\r\n\r\n"),
        ("GET", b"\r\n"), ("SET", b"", b""), ("GET", b""), ("EXISTS", b""), ("DEL", b""),
        ("GET", b""), ("SET", bytes(range(256)), bytes(reversed(range(256)))),
        ("GET", bytes(range(256))), ("MGET", b"\x00", b"\r\n", b"", bytes(range(256))),
        ("STRLEN", b"\x00"), ("GETSET", b"\xff\xfe", b"\xc3\x28"), ("GET", b"\xff\xfe"),
        ("APPEND", b"\xff\xfe", b"\x00"), ("GETRANGE", b"\xff\xfe", "0", "-1"),
        ("SETNX", b"\x00", "n"), "DBSIZE"]
    yield "MGET and MSET", [
        "MGET a", "MGET a b a", "MSET a 1 b 2", "MGET a b c", "MSET a 1 b", "MSET a", "MGET a b",
        "MSET a 1 a 2 a 3", "GET a", ("MSET", "e", ""), "GET e", ("MGET", "e", "no", "e"),
        ("MSET",) + tuple(str(i) for i in range(400)),
        ("MGET",) + tuple(str(i) for i in range(400)),
        ("DEL",) + tuple(str(i) for i in range(0, 400, 2)), "DBSIZE",
        ("EXISTS",) + tuple(str(i) for i in range(0, 400, 2)), "MSET a 1 b 2 c", "mset x 9",
        "GET x"]
    yield "SETNX GETSET GETDEL", [
        "SETNX k v", "SETNX k w", "GET k", "SETNX k w", "GETSET k x", "GET k", "GETSET n y",
        "GET n", "GETDEL k", "GETDEL k", "GETSET k z EX", "GETDEL n", "EXISTS k n", "SETNX k 1",
        "INCR k"]
    yield "databases", [
        "SELECT 0", "SET k zero", "SELECT 1", "GET k", "SET k one", "DBSIZE", "SELECT 15", "GET k",
        "DBSIZE", "SELECT 16", "SELECT -1", "SELECT abc", "SELECT 1.0", ("SELECT", ""),
        "SELECT 9223372036854775807", "SELECT 4294967296", "SELECT 99999999999999999999",
        "SELECT 01", "SET k fifteen", "SELECT 1", "GET k", "SELECT 0", "GET k", "DBSIZE",
        "SELECT 1", "FLUSHDB", "DBSIZE", "GET k", "SELECT 0", "GET k", "FLUSHALL", "DBSIZE",
        "SELECT 15", "GET k", on(1, "GET k"), on(1, "SET k other"), "SELECT 0", "GET k"]
    yield "FLUSHALL and FLUSHDB", [
        "SET a 1", "SET b 2", "DBSIZE", "FLUSHDB", "DBSIZE", "GET a", "SET a 1", "FLUSHDB ASYNC",
        "GET a", "SET a 1", "FLUSHDB SYNC", "GET a", "SET a 1", "FLUSHALL async", "GET a",
        "FLUSHALL sync", "FLUSHALL foo", "FLUSHDB foo", "FLUSHALL SYNC ASYNC",
        "FLUSHDB ASYNC ASYNC", "SET a 1", "GET a", "DBSIZE"]
    many = [("SET", "key:%d" % i, "value:%d" % i) for i in range(3000)]
    yield "three thousand keys", (
        [batch(*many[i:i + 500]) for i in range(0, 3000, 500)] + ["DBSIZE"]
        + [batch(*[("GET", "key:%d" % i) for i in range(j, j + 500)]) for j in range(0, 3500, 500)]
        + [batch(*[("DEL", "key:%d" % i) for i in range(0, 3000, 2)]), "DBSIZE"]
        + [batch(*[("GET", "key:%d" % i) for i in range(0, 3000, 7)]), "FLUSHALL", "DBSIZE"])


def cases():
    for family in (key_cases, arity_cases, set_option_cases, deadline_cases, expiry_cases,
                   number_cases, range_cases,
                   size_cases):
        yield from family()
