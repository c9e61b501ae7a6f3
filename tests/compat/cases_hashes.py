"""Hand-written and random streams over hashes."""

import random

from steps import Batch, Walk, command


def HashWalk(args):  # pylint: disable=invalid-name
    return Walk(tuple(arg.encode() for arg in args), by="HSCAN")

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
NAMES = ["hset", "hsetnx", "hget", "hmget", "hmset", "hgetall", "hdel", "hlen", "hexists", "hkeys",
         "hvals", "hincrby", "hincrbyfloat", "hstrlen", "hrandfield", "hscan"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def arity_cases():
    for name in NAMES:
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(7)
                                   if not (name == "hrandfield" and count == 2)]
        yield "COMMAND INFO of " + name, [("COMMAND", "INFO", name),
                                          ("COMMAND", "GETKEYS", name, "a", "b", "c", "d")]


def basic_cases():
    yield "HSET and its relatives", [
        "HSET h a 1", "HSET h a 2 b 3", "HSET h c 1 c 2 c 3", "HGETALL h", "HLEN h", "HGET h a",
        "HGET h none", "HGET none a", "HMGET h a none c a", "HMGET none a b", "HKEYS h", "HVALS h",
        "HGETALL none", "HKEYS none", "HVALS none", "HLEN none", "HEXISTS h a", "HEXISTS h z",
        "HEXISTS none a", "HSTRLEN h a", "HSTRLEN h z", "HSTRLEN none a", "HSETNX h a 9",
        "HSETNX h d 9", "HSETNX new d 9", "HMSET h e 1 f 2", "HMSET h e", "HSET h e", "HSET h e 1 f",
        "HMSET h e 1 f", "TYPE h", "HDEL h a a z", "HDEL h z", "HDEL none a", "HGETALL h",
        "HDEL h b c d e f", "EXISTS h", "TYPE h", "HDEL new d", "EXISTS new"]
    yield "an empty field, an empty value, any bytes", [
        ("HSET", "h", "", ""), ("HGET", "h", ""), ("HSET", "h", b"\x00\r\n\xff", b"\xff\x00"),
        ("HGET", "h", b"\x00\r\n\xff"), "HGETALL h", ("HSTRLEN", "h", b"\x00\r\n\xff"),
        ("HDEL", "h", ""), "HGETALL h"]
    yield "a field keeps its place", [
        "HSET h a 1 b 2 c 3", "HSET h b other", "HGETALL h", "HDEL h a", "HSET h a again",
        "HGETALL h", "HINCRBY h c 1", "HGETALL h"]
    for length in (0, 1, 62, 63, 64, 65, 127, 128, 129, 255, 256, 16383, 16384, 70000, 2100000):
        yield "values of %d bytes" % length, [
            ("HSET", "h", "before", "1", "long", "v" * length, "behind", "2"), "HGET h before",
            "HGET h long", "HGET h behind", "HSTRLEN h long", ("HSET", "h", "x" * length, "3"),
            ("HGET", "h", "x" * length), "HLEN h", "HGET h behind", "OBJECT ENCODING h",
            "HDEL h long", ("HDEL", "h", "x" * length), "HGETALL h", "OBJECT ENCODING h"]


def number_cases():
    steps = []
    for old in ("5", "0", "-5", BIG, SMALL, "abc", "", "1.5", " 1", "007", "+1"):
        for amount in ("1", "-1", "0", BIG, SMALL, "x", "", "1.5", "9223372036854775808"):
            steps += [("HSET", "h", "n", old), ("HINCRBY", "h", "n", amount), "HGET h n"]
    yield "HINCRBY", batches(steps) + ["HINCRBY h new 7", "HINCRBY none n 3", "HGETALL none"]
    steps = []
    for old in ("5", "0", "-5.5", "1e300", "abc", "", "inf", "3.0e3", " 1", "1.7976931348623157e308"):
        for amount in ("1", "-1.25", "1e-5", "1e300", "nan", "inf", "-inf", "x", "", "0x10",
                       "1e4932"):
            steps += [("HSET", "h", "n", old), ("HINCRBYFLOAT", "h", "n", amount), "HGET h n"]
    yield "HINCRBYFLOAT", batches(steps) + ["HINCRBYFLOAT h new 7.5", "HINCRBYFLOAT none n 3",
                                            "HGETALL none"]


def encoding_cases():
    def fields(count):
        return [item for i in range(count) for item in ("f%d" % i, "v%d" % i)]
    for count in (1, 511, 512, 513, 2000):
        yield "a hash of %d fields" % count, [
            tuple(["HSET", "table"] + fields(count)), "OBJECT ENCODING table", "HLEN table",
            "HGETALL table", "HKEYS table", "HVALS table", "HGET table f0",
            "HGET table f%d" % (count - 1), tuple(["HDEL", "table"] + ["f%d" % i for i in range(1, count)]),
            "HGETALL table", "OBJECT ENCODING table", "HDEL table f0", "OBJECT ENCODING table",
            "HSET table f 1", "OBJECT ENCODING table"]
    yield "the thresholds are Redis's parameters", [
        "CONFIG SET hash-max-listpack-entries 3 hash-max-listpack-value 5", "HSET h a 1 b 2 c 3",
        "OBJECT ENCODING h", "HSET h d 4", "OBJECT ENCODING h", "HSET g a 12345", "OBJECT ENCODING g",
        "HSET g a 123456", "OBJECT ENCODING g", "HSET i 123456 a", "OBJECT ENCODING i",
        "HINCRBY j n 12345", "OBJECT ENCODING j", "HINCRBY j n 100000", "OBJECT ENCODING j",
        "CONFIG SET hash-max-ziplist-entries 512 hash-max-ziplist-value 64"]


def random_element_cases():
    yield "HRANDFIELD", [
        "HRANDFIELD none", "HRANDFIELD none 3", "HRANDFIELD none -3", "HRANDFIELD none 3 WITHVALUES",
        "HSET one a 1", "HRANDFIELD one", "HRANDFIELD one 1", "HRANDFIELD one 5", "HRANDFIELD one 0",
        "HRANDFIELD one -3", "HRANDFIELD one -3 WITHVALUES", "HRANDFIELD one 2 withvalues",
        "HRANDFIELD one x", "HRANDFIELD one 1 what", "HRANDFIELD one 1 WITHVALUES x",
        "HRANDFIELD one x what", "HRANDFIELD one " + BIG, "HRANDFIELD one %s WITHVALUES" % BIG,
        "HRANDFIELD one " + SMALL, "HRANDFIELD one 4611686018427387904 WITHVALUES",
        "HRANDFIELD one -4611686018427387904 WITHVALUES", "HSET h a 1 b 2 c 3",
        "HRANDFIELD h 3", "HRANDFIELD h 10 WITHVALUES", "SET s v", "HRANDFIELD s", "HRANDFIELD s 1",
        "HRANDFIELD s x"]


def scan_cases():
    yield "HSCAN", [
        "HSCAN none 0", "HSCAN none x", "HSCAN none 0 what", "HSET h a 1 b 2 ab 3", "HSCAN h 0",
        "HSCAN h 0 MATCH a*", "HSCAN h 0 COUNT 1", "HSCAN h 0 COUNT 0", "HSCAN h 0 COUNT x",
        "HSCAN h 0 TYPE hash", "HSCAN h 0 what", "HSCAN h x", "HSCAN h 0 MATCH", "HSCAN h 5",
        "HSCAN h 0 MATCH z*", "SET s v", "HSCAN s 0", "HSCAN s x"]


def same_position_cases():
    """XXH3 without a seed gives these fields one hash."""
    prefix, tail = bytes.fromhex("b8fe6c3923a44bbe"), b"0123456789abcdef"
    fields = [prefix + b"%08d" % i + tail for i in range(30)] + [b"f%d" % i for i in range(600)]
    yield "HSCAN of fields with one hash", [
        tuple(["HSET", "table"] + [word for field in fields for word in (field, "v")]),
        HashWalk(("table",)), HashWalk(("table", "COUNT", "1")), HashWalk(("table", "COUNT", "100"))]


def wrong_type_cases():
    steps = ["SET s v", "HSET h a 1"]
    calls = ["HSET s a 1", "HSETNX s a 1", "HGET s a", "HMGET s a", "HMSET s a 1", "HGETALL s",
             "HDEL s a", "HLEN s", "HEXISTS s a", "HKEYS s", "HVALS s", "HINCRBY s a 1",
             "HINCRBYFLOAT s a 1", "HSTRLEN s a", "HINCRBY s a x", "HINCRBYFLOAT s a x", "GET h",
             "GETSET h x", "APPEND h x", "INCR h", "STRLEN h", "GETRANGE h 0 1", "SETRANGE h 0 x",
             "GETDEL h", "GETEX h", "SETBIT h 0 1", "GETBIT h 0", "BITCOUNT h", "MGET h s", "PFADD h a",
             "PFCOUNT h", "SET h x GET", "LCS h s", "INCRBYFLOAT h 1", "BITFIELD h GET u8 0"]
    yield "wrong types", steps + calls + ["TYPE s", "TYPE h", "HGETALL h", "GET s"]
    yield "a hash and commands on any key", [
        "HSET h a 1 b 2", "EXPIRE h 100", "HSET h c 3", "TTL h", "PERSIST h", "TTL h", "COPY h g",
        "HGETALL g", "RENAME g k", "HGETALL k", "COPY h k", "COPY h k REPLACE", "MOVE k 1",
        "SELECT 1", "HGETALL k", "SELECT 0", "SCAN 0 COUNT 100 TYPE hash", "SET s v",
        "SCAN 0 COUNT 100 TYPE string", "OBJECT REFCOUNT h", "OBJECT FREQ h", "TOUCH h", "EXISTS h",
        "SET h now", "GET h", "DEL h", "HSET h a 1", "UNLINK h", "EXISTS h", "HSET h a 1",
        "PEXPIRE h 0", "EXISTS h", "HSET h a 1", "SETNX h v", "MSETNX h v i v", "GETDEL h"]
    yield "transactions on a hash", [
        "HSET h a 1", "MULTI", "HSET h b 2", "HINCRBY h a 5", "HGETALL h", "HDEL h a b", "EXISTS h",
        "HSET h z 1", "EXEC", "HGETALL h", "WATCH h", "HSET h q 1", "MULTI", "HGET h q", "EXEC"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    fields = ["a", "b", "c", "n", "", "f" * 70, b"\x00\xff"] + ["x%d" % i for i in range(rng.choice([1, 30, 600]))]
    values = ["", "1", "-7", "v", "w" * 64, "w" * 65, "12345678901", "2.5", "z" * 3000]
    keys = ["h", "g"]
    steps = []
    for _ in range(300):
        key = pick(keys)
        some = lambda most: [pick(fields) for _ in range(rng.randint(1, most))]
        steps.append(tuple(pick([
            lambda: ["HSET", key] + [item for f in some(pick([1, 1, 3, 40])) for item in (f, pick(values))],
            lambda: ["HSET", key, pick(fields), pick(values)],
            lambda: ["HSETNX", key, pick(fields), pick(values)],
            lambda: ["HGET", key, pick(fields)], lambda: ["HMGET", key] + some(pick([2, 20])),
            lambda: ["HDEL", key] + some(pick([1, 2, 30])), lambda: ["HLEN", key],
            lambda: ["HEXISTS", key, pick(fields)], lambda: ["HSTRLEN", key, pick(fields)],
            lambda: ["HINCRBY", key, pick(fields), pick(["1", "-3", BIG])],
            lambda: ["HINCRBYFLOAT", key, pick(fields), pick(["1", "-2.5", "1e3"])],
            lambda: [pick(["HGETALL", "HKEYS", "HVALS"]), key],
            lambda: ["OBJECT", "ENCODING", key],
            lambda: pick([["DEL", key], ["HLEN", key], ["HLEN", key], ["TYPE", key]])])()))
    return steps


def random_cases():
    for seed in range(12):
        yield "random hashes %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, basic_cases, number_cases, encoding_cases, random_element_cases,
                 scan_cases, same_position_cases, wrong_type_cases, random_cases):
        yield from make()
