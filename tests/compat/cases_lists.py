"""Hand-written and random streams over lists."""

import random

from steps import Batch, command, on

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
NAMES = ["lpush", "rpush", "lpushx", "rpushx", "lpop", "rpop", "llen", "lrange", "lindex", "lset",
         "linsert", "lrem", "ltrim", "lpos", "lmpop", "lmove", "rpoplpush", "blpop", "brpop",
         "blmove", "brpoplpush", "blmpop"]
TIMES = ["x", "", "-1", "-0.0001", "-0.001", "0.0001", "nan", "inf", "-inf", "1e400", "1e30", " 1",
         "1 ", "0x10", "9223372036854775", "9223372036854776", "9223372036854775.808", "1e-4960",
         "00", "1e2"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def arity_cases():
    for name in NAMES:
        # Beyond its arity a command that waits in Redis would.
        most = {"blpop": 3, "brpop": 3, "blmpop": 5, "blmove": 8, "brpoplpush": 4}.get(name, 7)
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(most)
                                   if not (name[0] == "b" and count == most - 1)]
        yield "COMMAND INFO of " + name, [
            ("COMMAND", "INFO", name), ("COMMAND", "GETKEYS", name, "a", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "2", "a", "b", "LEFT"), ("COMMAND", "GETKEYS", name, "1", "1", "b", "LEFT"),
            ("COMMAND", "GETKEYS", name, "a", "b", "LEFT", "RIGHT", "5")]


def push_and_pop_cases():
    yield "pushes and pops", [
        "LPUSH l a", "LPUSH l b c d", "RPUSH l x y", "LRANGE l 0 -1", "LLEN l", "LLEN none", "LPUSHX none a",
        "RPUSHX none a b", "EXISTS none", "LPUSHX l q r", "RPUSHX l q r", "LRANGE l 0 -1", "LPOP l",
        "RPOP l", "LPOP none", "RPOP none", "LPOP none 0", "LPOP none 1", "RPOP none 5", "LPOP l 0",
        "RPOP l 0", "LPOP l 2", "RPOP l 3", "LRANGE l 0 -1", "LPOP l 100", "EXISTS l", "TYPE l",
        "RPUSH l 1 2 3", "RPOP l 3", "EXISTS l", "RPUSH l 1 2 3", "LPOP l 3 4", "LPOP l -1", "LPOP l x",
        "LPOP none -1", "LPOP none x", "LPOP l " + BIG, "RPUSH l 1 2 3", "LPOP l 9223372036854775808",
        "LPOP l " + SMALL, "LPOP l 01", ("LPOP", "l", ""), "RPOP l " + BIG, "EXISTS l", "RPUSH l a", "RPOP l",
        "EXISTS l", "LPUSH l a a a", "LRANGE l 0 -1", "TYPE l", "OBJECT ENCODING l"]
    yield "an empty element, any bytes", [
        ("RPUSH", "l", "", b"\x00\r\n\xff", "", "1", "01", "-0"), "LRANGE l 0 -1", ("LPOS", "l", ""), "LPOP l",
        ("LPOS", "l", b"\x00\r\n\xff"), "LPOS l 1", "LPOS l 01", "LPOS l -0", "LPOS l 0", ("LREM", "l", "0", ""),
        "LRANGE l 0 -1", ("LSET", "l", "0", ""), "LINDEX l 0", ("LINSERT", "l", "AFTER", "", b"\xff"),
        "LRANGE l 0 -1"]
    for length in (0, 1, 63, 64, 126, 127, 128, 129, 255, 256, 16381, 16383, 16384, 70000, 2100000):
        long = "v" * length
        yield "elements of %d bytes" % length, [
            ("RPUSH", "l", "before", long, "behind"), "LINDEX l 0", "LINDEX l 1", "LINDEX l -1",
            "LRANGE l 0 -1", ("LPUSH", "l", long), "LPOP l", "LLEN l", ("LPOS", "l", long),
            ("LSET", "l", "0", long), "RPOP l 2", "LINDEX l 0", ("RPUSH", "l", "a", long, "b"),
            ("LINSERT", "l", "BEFORE", "b", long), ("LREM", "l", "-1", long), "LRANGE l 0 -1",
            ("LREM", "l", "0", long), "LRANGE l 0 -1", ("RPUSH", "l", long), "LMOVE l l RIGHT LEFT",
            "LMOVE l g LEFT LEFT", "LRANGE g 0 -1", "LRANGE l 0 -1", "LTRIM l 1 1", "LRANGE l 0 -1"]
    for count in (1, 127, 128, 129, 500, 5000):
        many = ["e%d" % (i % 50) for i in range(count)]
        yield "%d elements at once" % count, [
            tuple(["RPUSH", "r"] + many), tuple(["LPUSH", "l"] + many), "LLEN r", "LRANGE r 0 -1",
            "LRANGE l 0 -1", "LRANGE r -3 -1", "LINDEX r %d" % (count // 2), "LINDEX r -%d" % (count // 3 + 1),
            "LPOS r e7 COUNT 0", "LPOS r e7 RANK -1 COUNT 0 MAXLEN 200", "LREM r -3 e7", "LREM r 3 e8",
            "LREM l 0 e9", "LRANGE r 0 -1", "LRANGE l 0 -1", "LPOP r 3", "RPOP r %d" % (count // 2),
            "LRANGE r 0 -1", "LTRIM l 5 -6", "LRANGE l 0 -1", "LMPOP 1 l RIGHT COUNT 100000", "EXISTS l"]


def index_cases():
    indexes = ["0", "1", "2", "3", "4", "5", "-1", "-4", "-5", "-6", BIG, SMALL, "x", "", "1.5", "9223372036854775808"]
    steps = ["RPUSH l a b c d e"]
    for index in indexes:
        steps += [("LINDEX", "l", index), ("LINDEX", "none", index), ("LSET", "l", index, "n" + index),
                  ("LSET", "none", index, "v"), "LRANGE l 0 -1"]
    yield "LINDEX and LSET", steps
    for name in ("LRANGE", "LTRIM"):
        steps = []
        for first in indexes:
            for last in indexes:
                steps += ["DEL l", "RPUSH l a b c d e", (name, "l", first, last), (name, "none", first, last),
                          "LRANGE l 0 -1", "EXISTS l"]
        yield name, batches(steps)


def search_cases():
    yield "LINSERT", [
        "LINSERT none BEFORE a b", "LINSERT none x a b", "RPUSH l a b a c", "LINSERT l BEFORE a 1",
        "LINSERT l AFTER a 2", "LINSERT l after c 3", "LINSERT l before none 4", "LINSERT l x a 5", "LRANGE l 0 -1",
        "LINSERT l AFTER b b", "LINSERT l BEFORE b b", "LRANGE l 0 -1"]
    steps = []
    for count in ("0", "1", "2", "3", "-1", "-2", "-3", "10", "-10", BIG, SMALL, "x", "", "-9223372036854775807"):
        steps += ["DEL l", "RPUSH l a b a c a d", ("LREM", "l", count, "a"), "LRANGE l 0 -1",
                  ("LREM", "l", count, "z"), ("LREM", "none", count, "a")]
    yield "LREM", batches(steps) + ["DEL l", "RPUSH l a a a", "LREM l 0 a", "EXISTS l"]
    steps = ["RPUSH l a b c 1 2 3 c c"]
    numbers = ("1", "2", "3", "4", "-1", "-2", "-4", "0", "x", BIG, "-9223372036854775807", "")
    for rank in numbers:
        steps += [("LPOS", "l", "c", "RANK", rank), ("LPOS", "none", "c", "RANK", rank)]
        for count in ("0", "1", "2", "-1", "x", BIG):
            steps += [("LPOS", "l", "c", "RANK", rank, "COUNT", count)]
            for most in ("0", "1", "4", "7", "-1", "y"):
                steps += [("LPOS", "l", "c", "MAXLEN", most, "COUNT", count, "RANK", rank)]
    yield "LPOS", batches(steps) + [
        "LPOS l c", "LPOS l z", "LPOS l z COUNT 0", "LPOS none c", "LPOS none c COUNT 0", "LPOS none c MAXLEN 1",
        "LPOS l c RANK", "LPOS l c COUNT", "LPOS l c MAXLEN", "LPOS l c WHAT 1", "LPOS l c RANK 1 RANK 2",
        "LPOS l c COUNT 1 COUNT 2", "LPOS l c rank 2", "LPOS l c COUNT 1 RANK", "LPOS l 1", "LPOS l c MAXLEN 2",
        "LPOS l c MAXLEN 3", "LPOS l c MAXLEN 2 COUNT 1"]


def move_cases():
    ends = ("LEFT", "RIGHT", "left", "x", "")
    steps = []
    for source in ends:
        for target in ends:
            for to in ("l", "g", "new"):
                steps += ["DEL l g new", "RPUSH l a b c", "RPUSH g x y", ("LMOVE", "l", to, source, target),
                          ("LMOVE", "none", to, source, target), "LRANGE l 0 -1", "LRANGE %s 0 -1" % to,
                          ("BLMOVE", "l", to, source, target, "0"), ("BLMOVE", "l", to, source, target, "x"),
                          "LRANGE l 0 -1", "LRANGE %s 0 -1" % to]
    yield "LMOVE and BLMOVE", batches(steps)
    yield "RPOPLPUSH and BRPOPLPUSH", [
        "RPOPLPUSH none g", "RPOPLPUSH none none", "RPUSH l a b c", "RPOPLPUSH l l", "LRANGE l 0 -1",
        "RPOPLPUSH l g", "BRPOPLPUSH l g 0", "BRPOPLPUSH l g x", "BRPOPLPUSH l g -1", "LRANGE l 0 -1",
        "LRANGE g 0 -1", "RPOPLPUSH l g", "EXISTS l", "RPOPLPUSH g g", "LRANGE g 0 -1", "EXPIRE g 100",
        "RPOPLPUSH g h", "TTL g", "TTL h", "RPUSH one a", "RPOPLPUSH one one", "LMOVE one one LEFT RIGHT",
        "LMOVE one one LEFT LEFT", "LRANGE one 0 -1", "SET s v", "RPOPLPUSH s g", "RPOPLPUSH g s", "RPOPLPUSH none s",
        "RPOPLPUSH s s", "LRANGE g 0 -1", "LMOVE s g LEFT x", "LMOVE g s LEFT LEFT", "LRANGE g 0 -1"]


def many_keys_cases():
    yield "LMPOP", [
        "LMPOP 1 none LEFT", "LMPOP 2 none nil RIGHT", "RPUSH l a b c d", "RPUSH g x y", "LMPOP 2 none l LEFT",
        "LMPOP 2 l g RIGHT COUNT 2", "LMPOP 2 g l RIGHT COUNT 1", "LMPOP 3 none g l LEFT COUNT 10", "EXISTS g",
        "LMPOP 1 l LEFT COUNT " + BIG, "LMPOP 2 l l LEFT", "LMPOP 0 l LEFT", "LMPOP -1 l LEFT", "LMPOP x l LEFT",
        "LMPOP 2 l LEFT", "LMPOP 1 l x", "LMPOP 1 l LEFT COUNT", "LMPOP 1 l LEFT COUNT 0", "LMPOP 1 l LEFT COUNT -1",
        "LMPOP 1 l LEFT COUNT x", "LMPOP 1 l LEFT COUNT 1 COUNT 1", "LMPOP 1 l LEFT what", "LMPOP 1 l g LEFT",
        "LMPOP 3 l g LEFT", "LMPOP 1000000 l g LEFT", "SET s v", "RPUSH l a", "LMPOP 2 s l LEFT", "LMPOP 2 l s LEFT",
        "LMPOP 2 l s LEFT", "LMPOP 2 none s LEFT", "LMPOP 1 s LEFT COUNT x", ("LMPOP", "", "l", "LEFT")]
    yield "BLMPOP that finds elements", [
        "RPUSH l a b c d", "BLMPOP 0 2 none l LEFT", "BLMPOP 1 2 l g RIGHT COUNT 2", "BLMPOP x 1 l LEFT",
        "BLMPOP -1 1 l LEFT", "BLMPOP x 0 l LEFT", "BLMPOP x 1 l what", "BLMPOP x 1 l LEFT COUNT 0",
        "BLMPOP 0 2 l LEFT", "BLMPOP 0 x l LEFT", "BLMPOP 0 1 l LEFT COUNT 1 COUNT 2", "BLMPOP 0 1 l LEFT COUNT",
        "SET s v", "BLMPOP 0 2 none s LEFT", "BLMPOP x 2 none s LEFT", "BLMPOP 0 2 l s LEFT COUNT 5", "EXISTS l"]
    yield "BLPOP and BRPOP that find elements", [
        "RPUSH l a b c d", "RPUSH g x y", "BLPOP l 0", "BRPOP l 0", "BLPOP none l g 0", "BRPOP none g l 1.5",
        "BRPOP l l 0", "EXISTS l", "BLPOP l g 0", "EXISTS g", "SET s v", "BLPOP s 0", "BLPOP none s l 0",
        "BRPOP s x", "RPUSH l a", "BLPOP l s 0"]
    steps = []
    for time in TIMES:
        steps += ["RPUSH l a b c d e", ("BLPOP", "l", time), ("BRPOP", "none", "l", time), ("BRPOPLPUSH", "l", "g", time),
                  ("BLMOVE", "l", "g", "LEFT", "LEFT", time), ("BLMPOP", time, "1", "l", "RIGHT"), "SET s v",
                  ("BLPOP", "s", time), ("BRPOPLPUSH", "s", "g", time), ("BLMPOP", time, "1", "s", "LEFT")]
    yield "times to wait", batches(steps)


def waiting_cases():
    yield "commands that find nothing inside a transaction", [
        "MULTI", "BLPOP none 0", "BRPOP none other 0", "BLMOVE none l LEFT LEFT 0", "BRPOPLPUSH none l 0",
        "BLMPOP 0 2 none other LEFT", "BLPOP none x", "RPUSH none a b", "BLPOP none 0", "BRPOPLPUSH none none 0",
        "BLMPOP 0 1 none LEFT", "BLPOP none 0", "EXEC", "MULTI", "BLPOP none 0", "BRPOPLPUSH none none 0",
        "BLMPOP 5 1 none LEFT COUNT 3", "EXEC", "SET s v", "MULTI", "BLPOP s 0", "BRPOPLPUSH s s 0",
        "BRPOPLPUSH none s 0", "EXEC"]
    # Redis waits for so long and answers that nothing came.
    yield "commands that find nothing", [
        "BLPOP none 0.01", "BRPOP none other 0.01", "BLMOVE none l LEFT LEFT 0.01", "BRPOPLPUSH none l 0.01",
        "BLMPOP 0.01 2 none other LEFT COUNT 2", "RPUSH l a", "BLPOP l 0.01", "blpop l 0.01"]


def wrong_type_cases():
    steps = ["SET s v", "RPUSH l a"]
    calls = ["LPUSH s a", "RPUSH s a", "LPUSHX s a", "RPUSHX s a", "LPOP s", "RPOP s", "LPOP s 0", "LPOP s 2",
             "LPOP s x", "LLEN s", "LRANGE s 0 -1", "LRANGE s x 0", "LINDEX s 0", "LINDEX s x", "LSET s 0 a",
             "LSET s x a", "LINSERT s BEFORE a b", "LINSERT s x a b", "LREM s 0 a", "LREM s x a", "LTRIM s 0 1",
             "LTRIM s 0 x", "LPOS s a", "LPOS s a RANK 0", "LPOS s a COUNT 0", "GET l", "GETSET l x", "APPEND l x",
             "INCR l", "STRLEN l", "GETRANGE l 0 1", "SETRANGE l 0 x", "GETDEL l", "GETEX l", "SETBIT l 0 1",
             "GETBIT l 0", "BITCOUNT l", "MGET l s", "HGET l a", "HSET l a 1", "HGETALL l", "HLEN l", "HSCAN l 0",
             "PFCOUNT l", "SET l x GET", "LCS l s", "HSET h a 1", "LPUSH h a", "LLEN h", "LRANGE h 0 -1", "LPOP h"]
    yield "wrong types and lists", steps + calls + ["TYPE s", "TYPE l", "LRANGE l 0 -1", "GET s"]
    yield "a list and commands on any key", [
        "RPUSH l a b", "EXPIRE l 100", "RPUSH l c", "TTL l", "LPOP l", "LSET l 0 x", "LTRIM l 0 0", "TTL l", "PERSIST l",
        "TTL l", "COPY l g", "LRANGE g 0 -1", "RENAME g k", "LRANGE k 0 -1", "COPY l k", "COPY l k REPLACE", "MOVE k 1",
        "SELECT 1", "LRANGE k 0 -1", "SELECT 0", "SCAN 0 COUNT 100 TYPE list", "SCAN 0 COUNT 100 TYPE string",
        "OBJECT REFCOUNT l", "TOUCH l", "EXISTS l", "SET l now", "GET l", "DEL l", "RPUSH l a", "UNLINK l", "EXISTS l",
        "RPUSH l a", "PEXPIRE l 0", "EXISTS l", "LPUSHX l a", "RPUSH l a", "SETNX l v", "MSETNX l v i v", "EXPIRE l 100",
        "LPOP l", "RPUSH l a", "TTL l"]
    yield "transactions on a list", [
        "RPUSH l a", "MULTI", "RPUSH l b c", "LPOP l", "LRANGE l 0 -1", "LMOVE l l LEFT RIGHT", "LINSERT l BEFORE b z",
        "LREM l 0 c", "LPOS l b", "LMPOP 1 l LEFT COUNT 5", "EXISTS l", "RPUSH l z", "EXEC", "LRANGE l 0 -1", "WATCH l",
        "RPUSH l q", "MULTI", "LRANGE l 0 -1", "EXEC", "MULTI", "RPUSH l 1 2 3", "LMOVE l g LEFT RIGHT", "RPOPLPUSH g l",
        "LMPOP 2 none l RIGHT", "EXEC", "LRANGE l 0 -1", "LRANGE g 0 -1"]
    yield "others see a list", ["RPUSH l a b", on(1, "LRANGE l 0 -1"), on(1, "LPOP l"), "LRANGE l 0 -1",
                                "WATCH l", on(1, "LSET l 0 x"), "MULTI", "LLEN l", "EXEC"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    longest = pick([130, 3000, 20000])
    elements = ["a", "b", "c", "1", "-7", "", "f" * 70, b"\x00\xff", "w" * 127, "z" * longest]
    elements += ["x%d" % i for i in range(pick([1, 40]))]
    keys = ["l", "g", "k"]
    key, end, one = (lambda: pick(keys)), (lambda: pick(["LEFT", "RIGHT"])), (lambda: pick(elements))
    index = lambda: str(pick([0, 0, 1, 2, 3, 10, 50, -1, -1, -2, -3, -10, -50]))
    some = lambda most: [one() for _ in range(rng.randint(1, most))]
    makers = [
        lambda: [pick(["LPUSH", "RPUSH"]), key()] + some(pick([1, 3, 40])),
        lambda: [pick(["LPUSHX", "RPUSHX"]), key()] + some(3),
        lambda: [pick(["LPOP", "RPOP"]), key()] + pick([[], [], [str(rng.randint(0, 12))]]),
        lambda: ["LLEN", key()],
        lambda: ["LRANGE", key(), index(), index()],
        lambda: ["LINDEX", key(), index()],
        lambda: ["LSET", key(), index(), one()],
        lambda: ["LINSERT", key(), pick(["BEFORE", "AFTER"]), one(), one()],
        lambda: ["LREM", key(), str(rng.randint(-3, 3)), one()],
        lambda: ["LPOS", key(), one()] + pick([[], ["RANK", str(pick([1, 2, -1, -2]))]])
        + pick([[], ["COUNT", str(rng.randint(0, 3))]]) + pick([[], ["MAXLEN", str(rng.randint(0, 20))]]),
        lambda: ["LMOVE", key(), key(), end(), end()],
        lambda: ["RPOPLPUSH", key(), key()],
        lambda: ["LMPOP", "2", key(), key(), end()] + pick([[], ["COUNT", str(rng.randint(1, 9))]]),
        lambda: pick([["LTRIM", key(), index(), index()], ["LTRIM", key(), "1", "-2"], ["LTRIM", key(), "0", "60"],
                      ["LTRIM", key(), "-60", "-1"], ["DEL", key()], ["TYPE", key()]]),
        # Something is there: Redis does not wait.
        lambda: ["EVERY", pick(keys)],
    ]
    steps = []
    for _ in range(300):
        made = pick(makers)()
        if made[0] == "EVERY":
            at = made[1]
            steps += [("RPUSH", at, one()), tuple(pick([
                ["BLPOP", at, "0"], ["BRPOP", at, key(), "0"], ["BLMOVE", at, key(), end(), end(), "0"],
                ["BRPOPLPUSH", at, key(), "0"], ["BLMPOP", "0", "2", key(), at, end(), "COUNT", "3"]]))]
        else:
            steps.append(tuple(made))
    return steps + [("LRANGE", each, "0", "-1") for each in keys]


def random_cases():
    for seed in range(16):
        yield "random lists %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, push_and_pop_cases, index_cases, search_cases, move_cases, many_keys_cases,
                 waiting_cases, wrong_type_cases, random_cases):
        yield from make()
