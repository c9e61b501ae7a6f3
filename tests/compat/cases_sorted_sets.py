"""Hand-written and random streams over sorted sets."""

import random

from cases_hashes import batches

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
NAMES = ["zadd", "zincrby", "zrem", "zscore", "zmscore", "zcard", "zcount", "zlexcount", "zrange",
         "zrangestore", "zrangebyscore", "zrevrangebyscore", "zrangebylex", "zrevrangebylex", "zrevrange",
         "zrank", "zrevrank", "zpopmin", "zpopmax", "zmpop", "zrandmember", "zremrangebyrank",
         "zremrangebyscore", "zremrangebylex", "zscan", "zunion", "zinter", "zintercard", "zdiff",
         "zunionstore", "zinterstore", "zdiffstore", "bzpopmin", "bzpopmax", "bzmpop"]
SCORES = ["1", "-1", "0", "-0", "1.5", "3.0e3", "inf", "-inf", "+inf", "Infinity", "nan", "-nan", "0x10",
          "1e400", "1e-400", "1e308", "5e-324", "x", "", " 1", "1 ", "1_0", "0.1", "123456789012345678",
          "1e17", "4611686018427387904", "4611686018427387905", "9007199254740993", "1e20", "-1e20",
          "3.0000000000000004", "+5", ".5", "5.", "1,5"]


def arity_cases():
    for name in NAMES:
        # A command that waits is given no time to do so.
        yield "arity of " + name, [tuple([name] + ["x" if name[0] == "b" else "1"] * count) for count in range(7)
                                   if not (name == "zrandmember" and count == 2)]
        yield "COMMAND INFO of " + name, [
            ("COMMAND", "INFO", name), ("COMMAND", "GETKEYS", name, "2", "2", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "a", "2", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "a", "9", "b", "c", "d"),
            ("COMMAND", "GETKEYS", name, "a", "x", "b", "c", "d")]


def add_cases():
    yield "ZADD and its relatives", [
        "ZADD z 1 a", "ZADD z 2 a 3 b", "ZADD z 1 c 2 c 3 c", "ZRANGE z 0 -1 WITHSCORES", "ZCARD z",
        "ZSCORE z a", "ZSCORE z none", "ZSCORE none a", "ZMSCORE z a none b a", "ZMSCORE none a b",
        "ZRANK z a", "ZRANK z c", "ZRANK z none", "ZRANK none a", "ZREVRANK z a", "ZREVRANK z c",
        "ZREVRANK z none", "ZREVRANK none a", "ZCARD none", "ZREM z a a none", "ZREM z none",
        "ZREM none a", "ZRANGE z 0 -1", "ZREM z b c", "EXISTS z", "TYPE z", "ZADD z 0 b 0 a 0 aa 0 B",
        ("ZADD", "z", "0", "", "0", b"\x00\xff\r\n", "0", b"\xff"), "ZRANGE z 0 -1 WITHSCORES",
        ("ZSCORE", "z", ""), ("ZRANK", "z", b"\xff"), ("ZREM", "z", "", b"\xff"), "ZRANGE z 0 -1"]
    options = ["NX", "XX", "GT", "LT", "CH", "INCR", "nx", "XX CH", "GT CH", "LT CH", "XX GT", "XX LT",
               "NX XX", "NX GT", "NX LT", "GT LT", "NX INCR", "XX INCR", "GT INCR", "LT INCR", "CH CH",
               "XX GT INCR", "XX LT CH INCR", "NX NX", "WHAT", "NX CH"]
    steps = []
    for option in options:
        for score, member in (("5", "a"), ("1", "a"), ("-2", "a"), ("7", "new"), ("x", "a"), ("nan", "a")):
            steps += ["DEL z", "ZADD z 3 a 4 b", "ZADD z %s %s %s" % (option, score, member),
                      "ZRANGE z 0 -1 WITHSCORES"]
        steps += ["DEL z", "ZADD z %s 1 a" % option, "EXISTS z", "ZADD z %s 1 a 2" % option,
                  "ZADD z %s 1 a 2 b 0 a" % option, "ZADD z %s" % option, "ZADD z %s 1" % option,
                  "ZRANGE z 0 -1 WITHSCORES", "SET s v", "ZADD s %s 1 a" % option,
                  "ZADD s %s x a" % option]
    yield "ZADD with options", batches(steps)
    steps = []
    for score in SCORES:
        steps += [("ZADD", "z", score, "m"), "ZSCORE z m", "ZSCAN z 0", "ZRANGE z 0 -1 WITHSCORES",
                  ("ZINCRBY", "z", score, "m"), "ZINCRBY z 1.1 m", ("ZADD", "z", "INCR", score, "m"),
                  ("ZADD", "table", score, "m"), "ZSCORE table m", "ZSCAN table 0 COUNT 10", "DEL z table",
                  ("ZINCRBY", "z", score, "other"), ("ZADD", "z", "1", "first", score, "second"),
                  "ZRANGE z 0 -1 WITHSCORES", "DEL z", ("ZADD", "table", "0", "x" * 65), "DEL z"]
    yield "scores", batches(steps)
    steps = []
    for old in ("0", "1.5", "inf", "-inf", "1e308", "-0"):
        for amount in SCORES:
            steps += [("ZADD", "z", old, "m"), ("ZINCRBY", "z", amount, "m"), "ZSCORE z m",
                      ("ZADD", "z", "GT", "INCR", amount, "m"), ("ZADD", "z", "LT", "INCR", amount, "m"),
                      "ZSCORE z m"]
    yield "ZINCRBY", batches(steps) + ["ZINCRBY z nx a", "ZINCRBY z 1 nx", "ZINCRBY none 3 n", "ZRANGE none 0 -1"]


def encoding_cases():
    def members(count, first=0):
        return [item for i in range(first, count) for item in (str(i % 7), "m%d" % i)]
    for count in (1, 127, 128, 129, 3000):
        yield "a sorted set of %d members" % count, [
            tuple(["ZADD", "table"] + members(count)), "OBJECT ENCODING table", "ZCARD table",
            "ZRANGE table 0 -1 WITHSCORES", "ZREVRANGE table 0 -1", "ZRANGEBYSCORE table 2 (4 WITHSCORES",
            "ZREVRANGEBYSCORE table 4 2 LIMIT 3 10", "ZCOUNT table 3 3", "ZSCORE table m0",
            "ZRANK table m%d" % (count - 1), "ZADD table -0 m0 -0 zero", "ZSCORE table m0",
            "ZSCORE table zero", "ZSCAN table 0 COUNT 10000", "ZUNION 1 table WITHSCORES",
            "ZUNIONSTORE other 1 table WEIGHTS -1", "OBJECT ENCODING other", "ZSCORE other m0",
            "ZRANGESTORE part table 0 -1", "OBJECT ENCODING part", "ZRANGESTORE part table 0 9",
            "OBJECT ENCODING part", "ZRANGE part 0 -1 WITHSCORES", "ZREMRANGEBYRANK table 1 -1",
            "OBJECT ENCODING table", "ZPOPMIN table", "EXISTS table", "ZADD table 1 a",
            "OBJECT ENCODING table"]
    for length in (0, 1, 63, 64, 65, 127, 128, 129, 16384, 70000):
        yield "members of %d bytes" % length, [
            ("ZADD", "z", "1", "before", "2", "x" * length, "3", "behind"), "OBJECT ENCODING z",
            ("ZSCORE", "z", "x" * length), "ZRANGE z 0 -1 WITHSCORES", "ZREVRANGE z 0 0",
            ("ZREM", "z", "x" * length), "OBJECT ENCODING z", "ZPOPMAX z 5"]
    yield "the thresholds are Redis's parameters", [
        "CONFIG SET zset-max-listpack-entries 3 zset-max-listpack-value 5", "ZADD z 1 a 2 b 3 c",
        "OBJECT ENCODING z", "ZADD z 4 a", "OBJECT ENCODING z", "ZADD z 4 d", "OBJECT ENCODING z",
        "ZADD y 1 12345", "OBJECT ENCODING y", "ZADD y 1 123456", "OBJECT ENCODING y",
        "ZUNIONSTORE u 2 z y", "OBJECT ENCODING u", "ZINTERSTORE u 1 z", "OBJECT ENCODING u",
        "ZREM z b c", "ZUNIONSTORE u 1 z", "OBJECT ENCODING u", "ZRANGESTORE u z 0 -1", "OBJECT ENCODING u",
        "ZADD small XX 1 toolong", "EXISTS small", "ZADD zeros -0 a -0 b -0 c -0 d -0 e",
        "ZRANGE zeros 0 -1 WITHSCORES", "CONFIG SET zset-max-ziplist-entries 0", "ZADD none -0 a",
        "OBJECT ENCODING none", "ZSCORE none a",
        "CONFIG SET zset-max-ziplist-entries 128 zset-max-ziplist-value 64"]


def range_cases():
    steps = ["ZADD z 1 a 2 b 2 bb 3 c 4 d 5 e 6 f", "ZADD l 0 a 0 b 0 bb 0 c 0 d 0 e 0 f"]
    for first in ("0", "1", "-1", "-3", "-100", "6", "7", "100", BIG, SMALL, "x", "1.5", "", "(1"):
        for last in ("0", "2", "-1", "-2", "-100", "6", "100", BIG, SMALL, "x"):
            steps += [("ZRANGE", "z", first, last, "WITHSCORES"), ("ZREVRANGE", "z", first, last),
                      ("ZRANGE", "z", first, last, "REV"), ("ZRANGESTORE", "d", "z", first, last, "REV"),
                      "ZRANGE d 0 -1 WITHSCORES", ("ZRANGE", "none", first, last)]
    yield "ranges by rank", batches(steps)
    steps = steps[:2]
    for low in ("1", "2", "(2", "-inf", "inf", "(inf", "(-inf", "0", "9", "2.5", "x", "(", "", " 1", "1 ",
                "nan", "(nan", "((1", "[1", "1e400", "-1e400", "0x2"):
        for high in ("1", "4", "(4", "+inf", "-inf", "9", "", "x", "(2"):
            steps += [("ZRANGEBYSCORE", "z", low, high, "WITHSCORES"),
                      ("ZREVRANGEBYSCORE", "z", high, low), ("ZCOUNT", "z", low, high),
                      ("ZRANGE", "z", low, high, "BYSCORE", "LIMIT", "1", "2"),
                      ("ZRANGE", "z", high, low, "BYSCORE", "REV", "LIMIT", "1", "2", "WITHSCORES"),
                      ("ZRANGESTORE", "d", "z", low, high, "BYSCORE"), "ZRANGE d 0 -1 WITHSCORES"]
    yield "ranges by score", batches(steps)
    steps = steps[:2]
    for low in ("-", "+", "[b", "(b", "[bb", "(", "[", "x", "", "b", "-x", "+x", "[zz", b"[\x00", b"-\x00"):
        for high in ("-", "+", "[b", "(b", "[e", "(e", "(", "[", "x", "", b"[\xff", b"+\x00a"):
            steps += [("ZRANGEBYLEX", "l", low, high), ("ZREVRANGEBYLEX", "l", high, low),
                      ("ZLEXCOUNT", "l", low, high), ("ZRANGE", "l", low, high, "BYLEX", "LIMIT", "1", "2"),
                      ("ZRANGE", "l", high, low, "REV", "BYLEX", "LIMIT", "1", "3"),
                      ("ZRANGESTORE", "d", "l", low, high, "BYLEX"), "ZRANGE d 0 -1 WITHSCORES",
                      ("ZRANGEBYLEX", "z", low, high), ("ZREVRANGEBYLEX", "z", high, low),
                      ("ZLEXCOUNT", "z", low, high)]
    yield "ranges by bytes", batches(steps)
    steps = steps[:2]
    for offset in ("0", "1", "6", "7", "100", "-1", BIG, SMALL, "x"):
        for count in ("0", "1", "3", "100", "-1", "-5", BIG, SMALL, "x"):
            steps += ["ZRANGEBYSCORE z 2 6 LIMIT %s %s" % (offset, count),
                      "ZREVRANGEBYSCORE z 6 2 LIMIT %s %s" % (offset, count),
                      "ZRANGEBYLEX l [b + LIMIT %s %s" % (offset, count),
                      "ZREVRANGEBYLEX l + [b LIMIT %s %s" % (offset, count),
                      "ZRANGE z 0 -1 LIMIT %s %s" % (offset, count),
                      "ZRANGESTORE d z 2 6 BYSCORE LIMIT %s %s" % (offset, count), "ZRANGE d 0 -1"]
    yield "LIMIT", batches(steps)
    yield "options of ranges", batches(steps[:2] + [
        "ZRANGE z 0 -1 WITHSCORES WITHSCORES", "ZRANGE z 0 -1 REV REV", "ZRANGE z 1 3 BYSCORE BYSCORE",
        "ZRANGE z - + BYLEX BYSCORE", "ZRANGE z - + BYLEX WITHSCORES", "ZRANGE z - + BYLEX REV",
        "ZRANGE z + - BYLEX REV", "ZRANGE z 0 -1 LIMIT", "ZRANGE z 0 -1 LIMIT 1", "ZRANGE z 0 -1 what",
        "ZRANGE z x y BYSCORE WITHSCORES", "ZRANGE z x y BYLEX", "ZRANGE z 0 -1 LIMIT 5 -1",
        "ZREVRANGE z 0 -1 REV", "ZREVRANGE z 0 -1 BYSCORE", "ZREVRANGE z 0 -1 LIMIT 0 1",
        "ZRANGEBYSCORE z 1 3 REV", "ZRANGEBYSCORE z 1 3 BYLEX", "ZRANGEBYSCORE z 1 3 WITHSCORES LIMIT 0 1",
        "ZRANGEBYSCORE z 1 3 LIMIT 0 1 WITHSCORES", "ZRANGEBYSCORE z 1 3 LIMIT 5 5 LIMIT 0 1",
        "ZRANGEBYLEX l - + WITHSCORES", "ZRANGEBYLEX l - + WITHSCORES what", "ZRANGEBYLEX none x y",
        "ZRANGEBYSCORE none x y", "ZRANGE none 0 x", "ZRANGESTORE d z 0 -1 WITHSCORES",
        "ZRANGESTORE d z 0 -1 REV", "ZRANGESTORE d none 0 -1", "EXISTS d", "SET d v", "ZRANGESTORE d z 0 1",
        "TYPE d", "SET d v", "ZRANGESTORE d none 0 -1", "EXISTS d", "SET s v", "ZRANGESTORE d s 0 -1",
        "ZRANGESTORE s z 5 9", "TYPE s", "EXPIRE z 100", "ZRANGESTORE z z 1 3", "TTL z", "ZRANGE z 0 -1",
        "ZRANGESTORE z z (2 inf BYSCORE", "ZRANGE z 0 -1", "ZRANGESTORE z z 9 9", "EXISTS z",
        "ZRANGESTORE z z 0 -1", "SET z v", "ZRANGESTORE z z 0 -1", "GET z"])
    steps = []
    for name, ends in (("ZREMRANGEBYRANK", ("0 1", "-2 -1", "2 1", "0 -1", "100 200", "-100 0", "x 1", "0 y",
                                           "%s %s" % (SMALL, BIG))),
                       ("ZREMRANGEBYSCORE", ("1 2", "(1 (3", "-inf inf", "3 1", "x 1", "1 y", "(2 2")),
                       ("ZREMRANGEBYLEX", ("- +", "[b (d", "(b [bb", "+ -", "x +", "- y", "[zz +"))):
        for end in ends:
            for key in ("z", "l", "none", "s"):
                steps += ["DEL z l", "SET s v", "ZADD z 1 a 2 b 2 bb 3 c 4 d",
                          "ZADD l 0 a 0 b 0 bb 0 c 0 d", "%s %s %s" % (name, key, end),
                          "ZRANGE z 0 -1 WITHSCORES", "ZRANGE l 0 -1", "EXISTS z l"]
    yield "removing ranges", batches(steps)


def pop_cases():
    steps = []
    for name in ("ZPOPMIN", "ZPOPMAX"):
        for count in ("", "0", "1", "2", "10", BIG, "-1", SMALL, "x", "1.5", "1 2"):
            steps += ["DEL z", "ZADD z 1 a 2 b 2.5 c inf d", "%s z %s" % (name, count),
                      "ZRANGE z 0 -1 WITHSCORES", "%s none %s" % (name, count), "SET s v",
                      "%s s %s" % (name, count)]
    for where in ("MIN", "MAX", "min", "WHAT"):
        for tail in ("", " COUNT 1", " COUNT 2", " count 100", " COUNT 0", " COUNT -1", " COUNT x", " COUNT",
                     " what", " COUNT 1 COUNT 1", " COUNT " + BIG):
            steps += ["DEL z", "ZADD z 1 a 2 b 3 c", "ZMPOP 1 z %s%s" % (where, tail), "EXISTS z",
                      "ZMPOP 2 none z %s%s" % (where, tail), "ZMPOP 3 none z s %s%s" % (where, tail),
                      "ZMPOP 2 none gone %s%s" % (where, tail), "ZMPOP 2 s z %s%s" % (where, tail)]
    steps += ["ZMPOP %s z MIN" % keys for keys in ("0", "-1", "2", "3", "x", BIG, "1.5")]
    steps += ["BZMPOP 0 %s z MIN" % keys for keys in ("0", "-1", "2", "3", "x", BIG, "1.5")]
    steps += ["BZMPOP x 0 z MIN", "BZMPOP x 1 z WHAT", "BZMPOP x 1 z MIN what", "BZMPOP -1 1 z MIN"]
    for timeout in ("0", "1", "0.001", "-0.0001", "-1", "x", "", "inf", "-inf", "nan", "1e300", "1e-5000", " 1",
                    "0x1", "9999999999"):
        steps += ["DEL z", "ZADD z 1 a 2.5 b 3 c", ("BZPOPMIN", "z", timeout), ("BZPOPMAX", "none", "z", timeout),
                  ("BZPOPMIN", "s", "z", timeout), ("BZMPOP", timeout, "1", "z", "MAX"), "EXISTS z",
                  "MULTI", ("BZPOPMIN", "z", timeout), ("BZPOPMAX", "z", timeout),
                  ("BZMPOP", timeout, "1", "z", "MAX"), ("BZMPOP", timeout, "1", "z", "MAX", "COUNT", "3"), "EXEC",
                  "ZADD z 1 a", "MULTI", ("BZPOPMIN", "z", timeout), "ZCARD z", "EXEC"]
    yield "taking members out", batches(steps)
    yield "waiting for members", ["BZPOPMIN none 0.001", "BZPOPMAX none 0.001", "BZMPOP 0.001 1 none MIN"]


def algebra_cases():
    setup = ["DEL a b c d", "ZADD a 1 x 2 y 3 z", "ZADD b 10 y 20 z 30 w", "ZADD c inf x -inf y 0 z", "SET s v"]
    steps = list(setup)
    tails = ["", "WITHSCORES", "WEIGHTS 2 3", "WEIGHTS 2", "WEIGHTS 2 3 4", "WEIGHTS x 1", "WEIGHTS 1 nan",
             "WEIGHTS inf 0 WITHSCORES", "WEIGHTS -1 0 WITHSCORES", "WEIGHTS 0.5 1e308 WITHSCORES",
             "AGGREGATE SUM WITHSCORES", "AGGREGATE MIN WITHSCORES", "aggregate max withscores", "AGGREGATE",
             "AGGREGATE WHAT", "WEIGHTS 1 2 AGGREGATE MAX WITHSCORES WITHSCORES", "LIMIT 1", "LIMIT 0",
             "LIMIT -1", "LIMIT x", "LIMIT", "LIMIT 1 LIMIT 2", "what", "WEIGHTS 3 inf AGGREGATE MIN",
             "WEIGHTS 0 0 AGGREGATE MAX WITHSCORES"]
    for tail in tails:
        for name in ("ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD"):
            for keys in ("a b", "b a", "a c", "c c", "a none", "none a", "none gone", "a s", "s a"):
                steps.append("%s 2 %s %s" % (name, keys, tail))
        for name in ("ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"):
            for keys in ("a b", "a c", "c c", "a none", "none gone", "s a"):
                steps += ["%s d 2 %s %s" % (name, keys, tail), "ZRANGE d 0 -1 WITHSCORES"]
    yield "unions, intersections, differences", batches(steps)
    steps = list(setup)
    for name in NAMES[25:29]:
        steps += [" ".join([name, count, "a b c"]) for count in ("0", "-1", "x", "1", "3", "4", "", BIG)]
    for name in NAMES[29:32]:
        steps += [" ".join([name, "d", count, "a b c"]) for count in ("0", "-1", "x", "1", "3", "4", "", BIG)]
        steps += ["EXPIRE d 100", name + " d 1 a", "TTL d", "SET d v", name + " d 1 a", "ZRANGE d 0 -1",
                  "SET d v", name + " d 1 none", "EXISTS d", name + " d 1 d", "EXISTS d", "SET d v",
                  name + " d 1 d", name + " d 2 a d", "GET d", "DEL d", "ZADD d 5 x 6 q", "EXPIRE d 100",
                  name + " d 2 a d", "ZRANGE d 0 -1 WITHSCORES", "TTL d", name + " d 2 d d WEIGHTS 1 2",
                  name + " d 2 d d", "ZRANGE d 0 -1 WITHSCORES", name + " a 3 a b c",
                  "ZRANGE a 0 -1 WITHSCORES", "DEL a", "ZADD a 1 x 2 y 3 z"]
    yield "stores", batches(steps)
    yield "sums in Redis's order", batches([
        "ZADD a 1e300 m 0.1 n 1 o 2 p 3 q", "ZADD b -1e300 m 0.2 n 1 o", "ZADD c 3 m 0.3 n",
        "ZADD e 0.7 n", "ZUNION 4 a b c e WITHSCORES", "ZUNION 4 e c b a WITHSCORES",
        "ZUNION 4 b e a c WITHSCORES", "ZINTER 3 a b c WITHSCORES", "ZINTER 3 c a b WITHSCORES",
        "ZINTER 4 a b c e WITHSCORES", "ZUNION 3 c c c WEIGHTS 0.1 0.2 0.3 WITHSCORES",
        "ZINTER 3 c c c WEIGHTS 0.3 0.2 0.1 WITHSCORES"])


def set_cases():
    yield "sorted sets with sets", batches([
        "SADD s x y 7", "SADD n 1 2 3 7", "ZADD z 5 x 6 7 8 w", "ZUNION 2 s z WITHSCORES",
        "ZUNION 2 z n WITHSCORES", "ZINTER 3 s n z WITHSCORES", "ZINTER 2 s z WEIGHTS 10 1 WITHSCORES",
        "ZDIFF 2 z s WITHSCORES", "ZDIFF 2 n z WITHSCORES", "ZINTERCARD 2 s n", "ZUNIONSTORE d 2 s n",
        "ZRANGE d 0 -1 WITHSCORES", "ZUNIONSTORE s 2 s z WEIGHTS 2 3 AGGREGATE MAX", "TYPE s",
        "ZRANGE s 0 -1 WITHSCORES", "ZDIFFSTORE n 1 n", "ZRANGE n 0 -1 WITHSCORES"])


def random_member_cases():
    yield "ZRANDMEMBER", [
        "ZRANDMEMBER none", "ZRANDMEMBER none 3", "ZRANDMEMBER none -3", "ZRANDMEMBER none 3 WITHSCORES",
        "ZADD one 1.5 a", "ZRANDMEMBER one", "ZRANDMEMBER one 1", "ZRANDMEMBER one 5", "ZRANDMEMBER one 0",
        "ZRANDMEMBER one -3", "ZRANDMEMBER one -3 WITHSCORES", "ZRANDMEMBER one 2 withscores",
        "ZRANDMEMBER one x", "ZRANDMEMBER one 1 what", "ZRANDMEMBER one 1 WITHSCORES x",
        "ZRANDMEMBER one x what", "ZRANDMEMBER one " + BIG, "ZRANDMEMBER one %s WITHSCORES" % BIG,
        "ZRANDMEMBER one " + SMALL, "ZRANDMEMBER one 4611686018427387904 WITHSCORES", "ZADD z 1 a 2 b 3 c",
        "ZRANDMEMBER z 3", "ZRANDMEMBER z 10 WITHSCORES", "SET s v", "ZRANDMEMBER s", "ZRANDMEMBER s 1",
        "ZRANDMEMBER s x"]
    yield "ZSCAN", [
        "ZSCAN none 0", "ZSCAN none x", "ZSCAN none 0 what", "ZADD z 1 a 2.5 b inf ab", "ZSCAN z 0",
        "ZSCAN z 0 MATCH a*", "ZSCAN z 0 COUNT 1", "ZSCAN z 0 COUNT 0", "ZSCAN z 0 COUNT x",
        "ZSCAN z 0 TYPE zset", "ZSCAN z 0 what", "ZSCAN z x", "ZSCAN z 0 MATCH", "ZSCAN z 5",
        "ZSCAN z 0 MATCH z*", "SET s v", "ZSCAN s 0", "ZSCAN s x"]


def wrong_type_cases():
    calls = ["ZADD s 1 a", "ZADD s x a", "ZINCRBY s 1 a", "ZREM s a", "ZSCORE s a", "ZMSCORE s a b", "ZCARD s",
             "ZCOUNT s 0 1", "ZLEXCOUNT s - +", "ZRANGE s 0 -1", "ZRANGESTORE d s 0 -1", "ZRANK s a",
             "ZREVRANK s a", "ZPOPMIN s", "ZPOPMIN s 0", "ZMPOP 1 s MIN", "ZREMRANGEBYRANK s 0 -1",
             "ZUNION 1 s", "ZUNIONSTORE d 1 s", "BZPOPMIN s 0", "BZMPOP 0 1 s MIN", "GET z", "APPEND z x", "INCR z",
             "HGET z a", "HSET z a 1", "ZADD h 1 a", "ZRANGE h 0 -1", "ZUNION 1 h", "ZUNIONSTORE h 1 h",
             "STRLEN z", "GETRANGE z 0 1", "SETRANGE z 0 x", "GETDEL z", "MGET z s", "PFADD z a"]
    yield "sorted sets and wrong types", (["SET s v", "ZADD z 1 a", "HSET h a 1"] + calls
                                          + ["TYPE s", "TYPE z", "ZRANGE z 0 -1 WITHSCORES", "GET s"])
    yield "a sorted set and commands on any key", [
        "ZADD z 1 a 2 b", "EXPIRE z 100", "ZADD z 3 c", "TTL z", "ZPOPMIN z", "TTL z", "ZREMRANGEBYRANK z 0 0",
        "TTL z", "PERSIST z", "COPY z y", "ZRANGE y 0 -1 WITHSCORES", "RENAME y k", "ZRANGE k 0 -1", "MOVE k 1",
        "SELECT 1", "ZCARD k", "SELECT 0", "SCAN 0 COUNT 100 TYPE zset", "SET z now", "GET z", "DEL z",
        "ZADD z 1 a", "UNLINK z", "EXISTS z", "ZADD z 1 a", "PEXPIRE z 0", "EXISTS z"]
    yield "one source, named many times", [
        tuple(["ZADD", "z"] + [word for i in range(2000) for word in (str(i), "m%d" % i)]),
        tuple(["ZINTERCARD", "1500"] + ["z"] * 1500), tuple(["ZDIFF", "1500"] + ["z"] * 1500),
        tuple(["ZINTERSTORE", "t", "1500"] + ["z"] * 1500), "ZRANGE t 0 3 WITHSCORES"]
    yield "SORT of a sorted set", [
        "ZADD z 3 1 2 2 1 3 0 10", "SORT z", "SORT z DESC", "SORT z BY nosort", "SORT z BY nosort DESC",
        "SORT z BY nosort LIMIT 1 2", "SORT z BY nosort DESC LIMIT 1 2", "SORT z ALPHA", "SORT z STORE l", "LRANGE l 0 -1",
        "SORT l BY nosort STORE z", "TYPE z"]
    yield "transactions on a sorted set", [
        "ZADD z 1 a", "MULTI", "ZADD z 2 b", "ZINCRBY z 5 a", "ZRANGE z 0 -1 WITHSCORES", "ZUNIONSTORE z 2 z z",
        "ZRANGESTORE z z 0 0", "ZRANGE z 0 -1 WITHSCORES", "ZPOPMAX z", "EXISTS z", "BZPOPMIN z 0", "ZADD z 1 z",
        "EXEC", "ZRANGE z 0 -1", "WATCH z", "ZADD z 1 q", "MULTI", "ZCARD z", "EXEC", "MULTI", "BZPOPMAX z y 0",
        "BZPOPMAX z y 0", "BZPOPMAX z y 0", "ZMPOP 2 z y MAX", "EXEC"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    few = seed % 2 == 0
    members = ["a", "b", "c", "", "7", "f" * 70, b"\x00\xff"] + ["x%d" % i for i in range(rng.choice([1, 30, 400]))]
    scores = ["0", "1", "2", "3", "-1", "1.5", "inf", "-inf", "-0", "0.1", "1e20", "100"]
    same = seed % 3 == 0
    keys = ["z", "y"]
    rank = lambda: str(rng.randint(-8, 8))
    bound = lambda: pick(["", "("]) + pick(scores)
    lex = lambda: pick(["-", "+", "[a", "(a", "[c", "(x1", "[x2", "(x300", "["])
    limit = lambda: pick([[], [], ["LIMIT", str(rng.randint(-1, 5)), str(rng.randint(-1, 5))]])
    with_scores = lambda: pick([[], ["WITHSCORES"]])
    score = lambda: "0" if same else pick(scores)
    some = lambda most: [pick(members) for _ in range(rng.randint(1, most))]
    pairs = lambda most: [item for m in some(most) for item in (score(), m)]
    lex_key = lambda: pick(keys) if same else "none"
    sources = lambda: ["2", pick(keys), pick(keys)]
    combined = lambda: pick([[], ["WEIGHTS", pick(scores), pick(scores)]]) + pick(
        [[], ["AGGREGATE", pick(["SUM", "MIN", "MAX"])]])
    make = [
        lambda: ["ZADD", pick(keys)] + pairs(pick([1, 3, 40, 200 if few else 3])),
        lambda: ["ZADD", pick(keys)] + pairs(3),
        lambda: ["ZADD", pick(keys), pick(["NX", "XX", "GT", "LT", "CH"])] + pairs(3),
        lambda: ["ZADD", pick(keys), pick(["GT", "LT", "NX", "XX"]), "INCR", score(), pick(members)],
        lambda: ["ZINCRBY", pick(keys), score(), pick(members)],
        lambda: ["ZREM", pick(keys)] + some(pick([1, 20])), lambda: ["ZSCORE", pick(keys), pick(members)],
        lambda: ["ZMSCORE", pick(keys)] + some(20), lambda: ["ZCARD", pick(keys)],
        lambda: [pick(["ZRANK", "ZREVRANK"]), pick(keys), pick(members)],
        lambda: ["ZRANGE", pick(keys), rank(), rank()] + pick([[], ["REV"]]) + with_scores(),
        lambda: ["ZRANGEBYSCORE", pick(keys), bound(), bound()] + limit() + with_scores(),
        lambda: ["ZREVRANGEBYSCORE", pick(keys), bound(), bound()] + limit() + with_scores(),
        lambda: [pick(["ZRANGEBYLEX", "ZREVRANGEBYLEX"]), lex_key(), lex(), lex()] + limit(),
        lambda: ["ZLEXCOUNT", lex_key(), lex(), lex()], lambda: ["ZCOUNT", pick(keys), bound(), bound()],
        lambda: ["ZREMRANGEBYRANK", pick(keys), rank(), rank()],
        lambda: ["ZREMRANGEBYSCORE", pick(keys), bound(), bound()],
        lambda: ["ZREMRANGEBYLEX", lex_key(), lex(), lex()],
        lambda: ["ZRANGESTORE", pick(keys), pick(keys), rank(), rank()],
        lambda: ["ZRANGESTORE", pick(keys), pick(keys), bound(), bound(), "BYSCORE"] + limit(),
        lambda: [pick(["ZPOPMIN", "ZPOPMAX"]), pick(keys)] + pick([[], ["3"]]),
        lambda: ["ZMPOP"] + sources() + [pick(["MIN", "MAX"]), "COUNT", "2"],
        lambda: [pick(["ZUNION", "ZINTER"])] + sources() + combined() + with_scores(),
        lambda: ["ZDIFF"] + sources() + with_scores(), lambda: ["ZINTERCARD"] + sources(),
        lambda: [pick(["ZUNIONSTORE", "ZINTERSTORE"]), pick(keys)] + sources() + combined(),
        lambda: ["ZDIFFSTORE", "d"] + sources(), lambda: ["ZRANGE", pick(keys), "0", "-1", "WITHSCORES"],
        lambda: ["OBJECT", "ENCODING", pick(keys)], lambda: ["TYPE", pick(keys)]]
    return [tuple(pick(make)()) for _ in range(300)]


def random_cases():
    for seed in range(16):
        yield "random sorted sets %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, add_cases, encoding_cases, range_cases, pop_cases, algebra_cases, set_cases,
                 random_member_cases, wrong_type_cases, random_cases):
        yield from make()
