"""Hand-written and random streams over sets.

Sets that are named `i` and a digit hold few members, all of them integers: both servers keep their
order. The order of the others (t, u, table) no server promises; differences.toml has the rule.
"""

import random

from steps import Batch, command

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
NAMES = ["sadd", "srem", "smove", "sismember", "smismember", "scard", "spop", "srandmember",
         "smembers", "sscan", "sinter", "sinterstore", "sunion", "sunionstore", "sdiff",
         "sdiffstore", "sintercard"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def arity_cases():
    for name in NAMES:
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(7)]
        yield "COMMAND INFO of " + name, [
            ("COMMAND", "INFO", name), ("COMMAND", "GETKEYS", name, "a", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "2", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "2", "b"), ("COMMAND", "GETKEYS", name, "a", "b", "c"),
            ("COMMAND", "GETKEYSANDFLAGS", name, "1", "b", "c")]


def basic_cases():
    yield "SADD and its relatives", [
        "SADD t a", "SADD t a b c", "SADD t d d d", "SMEMBERS t", "SCARD t", "SISMEMBER t a",
        "SISMEMBER t z", "SISMEMBER none a", "SMISMEMBER t a z a", "SMISMEMBER none a b",
        "SCARD none", "SMEMBERS none", "TYPE t", "SREM t a a z", "SREM t z", "SREM none a",
        "SMEMBERS t", "SREM t b c d e", "EXISTS t", "TYPE t", "SADD i1 3 1 2", "SMEMBERS i1",
        "SREM i1 1 2 3 4", "EXISTS i1", "SREM i1 1"]
    yield "an empty member and any bytes", [
        ("SADD", "t", ""), ("SISMEMBER", "t", ""), ("SADD", "t", b"\x00\r\n\xff", b"\xff"),
        ("SISMEMBER", "t", b"\x00\r\n\xff"), ("SMISMEMBER", "t", "", b"\xff", b"\x00"), "SMEMBERS t",
        ("SREM", "t", ""), ("SREM", "t", b"\xff"), "SMEMBERS t", "SCARD t"]
    for length in (1, 63, 64, 127, 128, 129, 255, 16383, 16384, 70000, 2100000):
        yield "members of %d bytes" % length, [
            ("SADD", "t", "before", "m" * length, "behind"), ("SISMEMBER", "t", "m" * length),
            "SISMEMBER t behind", "SCARD t", "SREM t before", ("SMOVE", "t", "u", "m" * length),
            ("SISMEMBER", "u", "m" * length), "SMEMBERS t", "SCARD u", "SUNION t u",
            "SDIFFSTORE t u t", "SCARD t", "SINTERCARD 2 t u", "SMEMBERS u"]


def integer_cases():
    numbers = ["0", "1", "-1", "10", "9", "-10", "-9", "100", BIG, SMALL, "-" + BIG, "12345678901"]
    yield "integers stand in order", [
        tuple(["SADD", "i1"] + numbers), "SMEMBERS i1", "OBJECT ENCODING i1", "SADD i1 5 -5 7 6",
        "SMEMBERS i1", "SREM i1 10 -10 5 99", "SMEMBERS i1", "SADD i1 10 10 -10", "SMEMBERS i1",
        "SINTER i1", "SUNION i1", "SDIFF i1", "SSCAN i1 0", "SRANDMEMBER i1 1000", "SPOP i1 1000",
        "EXISTS i1"]
    for odd in ("007", "+1", " 1", "1 ", "-0", "1.0", "9223372036854775808", "-", "", "1e3", "a"):
        yield "%r is no integer" % odd, [
            "SADD t 2 1", ("SISMEMBER", "t", odd), ("SREM", "t", odd), "OBJECT ENCODING t",
            ("SADD", "t", odd), "OBJECT ENCODING t", "SMEMBERS t", ("SREM", "t", odd),
            "OBJECT ENCODING t", "SMEMBERS t", ("SADD", "u", odd), "OBJECT ENCODING u",
            ("SADD", "table", odd, "1"), "OBJECT ENCODING table", ("SADD", "u", "1", odd),
            "SINTER u t", "SINTERSTORE i1 u t", "OBJECT ENCODING i1", "SMEMBERS i1"]
    for count in (1, 511, 512, 513, 2000):
        members = [str(i * 7919 % 10007) for i in range(count)]
        yield "a set of %d integers" % count, [
            tuple(["SADD", "table"] + members), "OBJECT ENCODING table", "SCARD table",
            "SMEMBERS table", "SUNION table", "SDIFF table", "SINTER table", "SINTERSTORE t table",
            "OBJECT ENCODING t", "SUNIONSTORE t table", "OBJECT ENCODING t", "SDIFFSTORE t table u",
            "OBJECT ENCODING t", "SISMEMBER table 0", "SISMEMBER table 7919",
            tuple(["SREM", "table"] + members[1:]), "OBJECT ENCODING table", "SMEMBERS table",
            "SUNIONSTORE i1 table", "OBJECT ENCODING i1", "SADD table 5", "OBJECT ENCODING table"]
    yield "one by one beyond the threshold", batches(
        [step for i in range(515) for step in ("SADD table %d" % (i * 7919 % 10007), "SCARD table",
                                               "OBJECT ENCODING table")]) + ["SMEMBERS table"]
    yield "the threshold is Redis's parameter", [
        "CONFIG SET set-max-intset-entries 3", "SADD t 1 2 3", "OBJECT ENCODING t", "SADD t 3",
        "OBJECT ENCODING t", "SADD t 4", "OBJECT ENCODING t", "SADD u 1 2 3 4", "OBJECT ENCODING u",
        "SREM u 4 3 2", "OBJECT ENCODING u", "SINTERSTORE i1 t u", "OBJECT ENCODING i1",
        "SADD i2 1 2 3", "CONFIG SET set-max-intset-entries 2", "SADD i2 3", "OBJECT ENCODING i2",
        "SMEMBERS i2", "SINTER i2", "SREM i2 1", "OBJECT ENCODING i2", "SADD i2 1",
        "OBJECT ENCODING i2", "CONFIG SET set-max-intset-entries 0", "SADD w 1",
        "OBJECT ENCODING w", "CONFIG SET set-max-intset-entries 512"]


def pop_cases():
    yield "SPOP", [
        "SPOP none", "SPOP none 3", "SPOP none 0", "SPOP none x", "SPOP none -1", "SPOP none 1 2",
        "SADD t a", "SPOP t 0", "SPOP t x", "SPOP t -1", "SPOP t 1 2", "SPOP t " + BIG, "EXISTS t",
        "SPOP t " + SMALL, "SPOP t 9223372036854775808", "SADD t a", "SPOP t", "EXISTS t",
        "SADD t a b c", "SPOP t 3", "EXISTS t", "SADD t a b 1 2", "SPOP t 5", "EXISTS t",
        "SADD i1 3 2 1", "SPOP i1 3", "EXISTS i1", "SADD table 3 2 1 x", "SREM table x",
        "SPOP table 9", "SET s v", "SPOP s", "SPOP s 1", "SPOP s x", "SPOP s 0"]
    steps = []
    for count in (1, 2, 50, 79, 80, 83, 84, 99):
        for extra in ("x", "500"):
            steps += [tuple(["SADD", "random", extra] + [str(i) for i in range(99)]),
                      "SREM random x", "OBJECT ENCODING random", "SPOP random %d" % count,
                      "SCARD random", "OBJECT ENCODING random", "SRANDMEMBER random 7",
                      "SRANDMEMBER random -7", "SPOP random", "SCARD random", "DEL random"]
    yield "SPOP takes as many as it is told", batches(steps)
    yield "SRANDMEMBER", [
        "SRANDMEMBER none", "SRANDMEMBER none 3", "SRANDMEMBER none -3", "SRANDMEMBER none x",
        "SADD i1 1", "SRANDMEMBER i1", "SRANDMEMBER i1 1", "SRANDMEMBER i1 5", "SRANDMEMBER i1 0",
        "SRANDMEMBER i1 -3", "SRANDMEMBER i1 x", "SRANDMEMBER i1 1 what", "SRANDMEMBER i1 x what",
        "SRANDMEMBER i1 " + BIG, "SRANDMEMBER i1 " + SMALL, "SADD t a b c", "SRANDMEMBER t 3",
        "SRANDMEMBER t 10", "SET s v", "SRANDMEMBER s", "SRANDMEMBER s 1", "SRANDMEMBER s x"]


def scan_cases():
    yield "SSCAN", [
        "SSCAN none 0", "SSCAN none x", "SSCAN none 0 what", "SADD i1 1 2 12", "SSCAN i1 0",
        "SSCAN i1 0 MATCH 1*", "SSCAN i1 0 COUNT 1", "SSCAN i1 0 COUNT 0", "SSCAN i1 0 COUNT x",
        "SSCAN i1 0 TYPE set", "SSCAN i1 0 what", "SSCAN i1 x", "SSCAN i1 0 MATCH", "SSCAN i1 5",
        "SSCAN i1 0 MATCH z*", "SET s v", "SSCAN s 0", "SSCAN s x", "SADD one a", "SSCAN one 0",
        "SADD i2 5 1 3", "SSCAN i2 0 COUNT 1"]


def move_cases():
    yield "SMOVE", [
        "SMOVE none t a", "SADD t a b c 1", "SMOVE t u a", "SMEMBERS t", "SMEMBERS u", "SMOVE t u a",
        "SMOVE t u z", "SMOVE t t b", "SMOVE t t z", "SMOVE none none z", "SMOVE t u b",
        "SMOVE t u c", "SMOVE t i1 1", "EXISTS t", "SMEMBERS i1", "OBJECT ENCODING i1",
        "OBJECT ENCODING u", "SMOVE i1 u 1", "SMEMBERS u", "EXISTS i1", "SADD i1 1 2 3",
        "SADD i2 3 4", "SMOVE i1 i2 3", "SMOVE i1 i2 1", "SMEMBERS i1", "SMEMBERS i2",
        "SMOVE u i2 b", "OBJECT ENCODING i2", "SET s v", "SMOVE s t a", "SMOVE u s a", "SMOVE u s z",
        "SMOVE none s a", "SMOVE s s a", "SMOVE s none a", "SMEMBERS u", "EXPIRE u 100",
        "SMOVE i1 u 2", "TTL u", "SMOVE u i9 2", "TTL i9"]


def algebra_cases():
    names = ["SINTER", "SUNION", "SDIFF"]
    steps = ["SADD t a b c 1 2", "SADD u b c d 2 3", "SADD table c", "SADD i1 1 2 3", "SADD i2 3 4 2"]
    for name in names:
        steps += [name + " " + keys for keys in (
            "t", "t u", "u t", "t u table", "table t", "t none", "none t", "none", "none none",
            "t t", "t u t", "i1", "i1 i2", "i2 i1", "i1 i1", "i1 none", "i1 t", "t i1 u", "i1 i2 i1")]
        for keys in ("t", "t u", "t none", "none t", "none", "i1 i2", "i1 t", "t i1", "t t",
                     "i2 i1 none", "dest t", "dest none", "dest dest", "t dest", "dest"):
            steps += ["DEL dest", "SADD dest b 2 x", "EXPIRE dest 100", name + "STORE dest " + keys,
                      "SCARD dest", "SUNION dest t", "SISMEMBER dest 2", "SISMEMBER dest b",
                      "OBJECT ENCODING dest", "TTL dest", "EXISTS dest"]
        steps += ["SET s v", name + "STORE s t u", "TYPE s", "SET s v", name + "STORE s none none",
                  "EXISTS s", "SET s v", name + "STORE s t s", name + "STORE s s", "GET s",
                  name + "STORE dest s", name + " t s", name + " none s", name + " s none",
                  name + "STORE dest none s", name + "STORE dest t s", name + "STORE s s none",
                  "DEL s", name + "STORE i3 i1 i2", "SMEMBERS i3", name + "STORE i1 i1 i3",
                  "SMEMBERS i1", name + "STORE i3 i3", "SMEMBERS i3", "SADD i1 1 2 3"]
    yield "SINTER, SUNION, SDIFF and where they are stored", batches(steps)
    yield "SINTERCARD", [
        "SADD t a b c 1 2", "SADD u b c d 2 3", "SINTERCARD 1 t", "SINTERCARD 2 t u",
        "SINTERCARD 2 t none", "SINTERCARD 2 none t", "SINTERCARD 2 t u LIMIT 0",
        "SINTERCARD 2 t u LIMIT 1", "SINTERCARD 2 t u LIMIT 2", "SINTERCARD 2 t u limit 100",
        "SINTERCARD 2 t u LIMIT -1", "SINTERCARD 2 t u LIMIT x", "SINTERCARD 2 t u LIMIT",
        "SINTERCARD 2 t u LIMIT 1 LIMIT 3", "SINTERCARD 2 t u LIMIT 1 x", "SINTERCARD 2 t u what",
        "SINTERCARD 0 t", "SINTERCARD -1 t", "SINTERCARD x t", "SINTERCARD 3 t u", "SINTERCARD 3 t",
        "SINTERCARD 1 t u", "SINTERCARD 2 t LIMIT 1", "SINTERCARD 2 LIMIT t LIMIT 1",
        "SINTERCARD " + BIG + " t", "SET s v", "SINTERCARD 2 t s", "SINTERCARD 2 none s",
        "SINTERCARD 1 s LIMIT x"]
    many = [str(i) for i in range(600)]
    yield "a difference by either way shows in its encoding", [
        tuple(["SADD", "table"] + many), "SADD i1 1 2 3 4 5", "SADD t x", "SADD u 600",
        "SADD w 1 2 3 4 5 x"] + [step for keys in (
            "table t", "table table", "w t", "t w", "i1 t", "w t t t", "w t none t none",
            "table t u t", "table t u t i1", "w t u i1", "w u u", "i1 u w", "w none",
        ) for step in ("SDIFFSTORE dest " + keys, "OBJECT ENCODING dest", "SCARD dest")] + [
            tuple(["SADD", "v"] + many[5:]), "SDIFFSTORE dest table v t u", "OBJECT ENCODING dest",
            "SDIFFSTORE dest table v", "OBJECT ENCODING dest", "SMEMBERS dest",
            "SDIFFSTORE table table v", "OBJECT ENCODING table", "SMEMBERS table"]


def wrong_type_cases():
    steps = ["SET s v", "SADD t a"]
    calls = ["SADD s a", "SREM s a", "SISMEMBER s a", "SMISMEMBER s a b", "SCARD s", "SMEMBERS s",
             "SINTER s", "SUNION s t", "SDIFF t s", "SINTERSTORE d s", "SUNIONSTORE d t s",
             "SDIFFSTORE d s t", "GET t", "GETSET t x", "APPEND t x", "INCR t", "STRLEN t",
             "GETRANGE t 0 1", "SETRANGE t 0 x", "GETDEL t", "GETEX t", "SETBIT t 0 1", "GETBIT t 0",
             "BITCOUNT t", "MGET t s", "PFADD t a", "PFCOUNT t", "SET t x GET", "HSET t a 1",
             "HGET t a", "HSET h a 1", "SADD h a", "SMEMBERS h", "SINTER h t", "SMOVE t h a"]
    yield "wrong types", steps + calls + ["TYPE s", "TYPE t", "SMEMBERS t", "GET s", "EXISTS d"]
    yield "a set and commands on any key", [
        "SADD i1 2 1", "EXPIRE i1 100", "SADD i1 3", "TTL i1", "SREM i1 1", "TTL i1", "PERSIST i1",
        "TTL i1", "COPY i1 i2", "SMEMBERS i2", "RENAME i2 i3", "SMEMBERS i3", "COPY i1 i3",
        "COPY i1 i3 REPLACE", "MOVE i3 1", "SELECT 1", "SMEMBERS i3", "SELECT 0",
        "SCAN 0 COUNT 100 TYPE set", "OBJECT REFCOUNT i1", "TOUCH i1", "EXISTS i1", "SET i1 now",
        "GET i1", "DEL i1", "SADD i1 1", "UNLINK i1", "EXISTS i1", "SADD i1 1", "PEXPIRE i1 0",
        "EXISTS i1", "SADD i1 1", "SETNX i1 v", "EXPIRE i1 100", "SPOP i1", "SADD i1 1", "TTL i1"]
    yield "transactions on a set", [
        "SADD i1 1", "MULTI", "SADD i1 2", "SREM i1 1", "SMEMBERS i1", "SCARD i1", "SMOVE i1 i1 2",
        "SUNIONSTORE i1 i1 i1", "SINTERCARD 1 i1", "SPOP i1", "EXISTS i1", "SADD i1 7 5", "EXEC",
        "SMEMBERS i1", "WATCH i1", "SADD i1 9", "MULTI", "SCARD i1", "EXEC", "WATCH i1", "MULTI",
        "SUNIONSTORE i1 i1", "SPOP i1 3", "EXEC", "MULTI", "SADD i2 4 3", "SUNION i1 i2",
        "SUNIONSTORE i3 i1 i2", "SMOVE i2 i3 3", "EXEC", "SMEMBERS i3"]
    many = ["m%d" % i for i in range(5000)]
    yield "thousands of members in one call", [
        tuple(["SADD", "table"] + many), "SCARD table", tuple(["SMISMEMBER", "table"] + many[::7]),
        tuple(["SADD", "table"] + many + ["one more"]), tuple(["SREM", "table"] + many[::2]),
        "SMEMBERS table", tuple(["SADD", "i1"] + [str(i * 31 % 501) for i in range(5000)]),
        "SMEMBERS i1", tuple(["SREM", "i1"] + [str(i) for i in range(0, 501, 3)]), "SMEMBERS i1"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    numbers = [str(i) for i in range(-5, rng.choice([3, 30, 250]))] + [BIG, SMALL, "1000"]
    words = ["a", "b", "c", "", "m" * 70, b"\x00\xff", "01"] + numbers[:20] + [
        "x%d" % i for i in range(rng.choice([1, 30, 600]))]
    kinds = [(["i1", "i2", "i3"], numbers), (["t", "u"], words)]
    steps = []
    for _ in range(300):
        keys, members = pick(kinds)
        # Any set may be a source of what is stored in t or u.
        sources = keys if rng.random() < 0.7 else ["i1", "i2", "t", "u", "none"]
        target = pick(keys if sources is keys else ["t", "u"])
        key = pick(keys)
        some = lambda most: [pick(members) for _ in range(rng.randint(1, most))]
        several = lambda: [pick(sources) for _ in range(rng.randint(1, 4))]
        steps.append(tuple(pick([
            lambda: ["SADD", key] + some(pick([1, 1, 3, 40])), lambda: ["SADD", key, pick(members)],
            lambda: ["SADD", key] + some(5), lambda: ["SREM", key] + some(pick([1, 2, 30])),
            lambda: ["SISMEMBER", key, pick(members)], lambda: ["SMISMEMBER", key] + some(pick([2, 20])),
            lambda: ["SCARD", key], lambda: ["SMEMBERS", key],
            lambda: ["SMOVE", key, pick(keys), pick(members)],
            lambda: [pick(["SINTER", "SUNION", "SDIFF"])] + several(),
            lambda: [pick(["SINTER", "SUNION", "SDIFF"]) + "STORE", target] + several(),
            lambda: ["SINTERCARD", "2", key, pick(sources)] + pick([[], ["LIMIT", "3"]]),
            lambda: ["OBJECT", "ENCODING", key],
            lambda: pick([["DEL", key], ["SPOP", key, "100000"], ["SCARD", key], ["TYPE", key]])])()))
    return steps


def random_cases():
    for seed in range(16):
        yield "random sets %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, basic_cases, integer_cases, pop_cases, scan_cases, move_cases,
                 algebra_cases, wrong_type_cases, random_cases):
        yield from make()
