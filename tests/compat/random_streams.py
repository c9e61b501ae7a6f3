"""Random command streams from a seed: few keys and few values, so that commands meet.

Commands whose replies are inherently unlike (INFO, CLIENT LIST) appear too; the rules of
differences.toml make them comparable.
"""

import random

from resp_client import encode
from steps import Batch, Raw, command

KEYS = [b"a", b"b", b"c", b"n", b"f", b"long:" + b"k" * 300, b"bin\x00\r\n\xff", b""]
NUMBERS = [b"0", b"1", b"-1", b"10", b"12345", b"-12345", b"9223372036854775807",
           b"-9223372036854775808", b"9223372036854775806", b"9223372036854775808", b"007", b"+1",
           b" 1", b"1 ", b"1.0", b"1e3", b"abc", b"", b"-0", b"18446744073709551616"]
FLOATS = [b"0", b"1", b"-1", b"0.1", b"-0.1", b"3.0e3", b"1e-5", b"1e17", b"1e18", b"5.0", b"1e300",
          b"1.7976931348623157e308", b"inf", b"-inf", b"nan", b"abc", b"", b" 1", b"1 ", b"0x10",
          b"10.5000", b"1.1e1", b"1e-20", b"3.14159265358979"]
VALUES = [b"", b"x", b"hello", b"10", b"-5", b"3.5", b"9223372036854775807", b"bin\x00\x01\xff\r\n",
          b"v" * 64, b"w" * 1000, b"y" * 5000, b"10.50", b"1e2", b"  7", b"*1\r\n$4\r\nPING\r\n"]
OFFSETS = [b"0", b"1", b"2", b"5", b"-1", b"-2", b"-5", b"63", b"64", b"100", b"-100", b"1000",
           b"9223372036854775807", b"-9223372036854775808", b"x", b"", b"1.5"]
WRITE_OFFSETS = [b"0", b"1", b"5", b"63", b"64", b"70", b"500", b"-1", b"2097152", b"1048575", b"x",
                 b"9223372036854775807", b"536870912"]
SET_OPTIONS = [[b"NX"], [b"XX"], [b"GET"], [b"KEEPTTL"],
               [b"EXAT", b"33177117420"], [b"PXAT", b"33177117420000"], [b"EX", b"0"],
               [b"PX", b"-1"], [b"EX", b"abc"], [b"EX"], [b"nx"], [b"get"], [b"bogus"],
               [b"EX", b"9223372036854775807"], [b"EXAT", b"0"], [b"PXAT", b"-5"],
               [b"EX", b"9223372036854776"]]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        # GT and LT compare with the deadline that is there: no two alike from now on, for whether
        # a millisecond passes between two commands is no server's promise.
        self.periods = list(range(6000, 606000, 60))
        self.random.shuffle(self.periods)
        pick = self.random.choice
        key, value, number, real = (lambda: pick(KEYS)), (lambda: pick(VALUES)), (
            lambda: pick(NUMBERS)), (lambda: pick(FLOATS))
        keys = lambda most: [key() for _ in range(self.random.randint(1, most))]
        # Weight, and what makes the arguments.
        self.makers = [
            (12, lambda: [b"GET", key()]),
            (10, lambda: [b"SET", key(), value()]),
            (8, lambda: [b"SET", key(), value()] + self.set_options()),
            (3, lambda: [b"SET", key(), number()]),
            (3, lambda: [b"DEL"] + keys(4)),
            (2, lambda: [b"UNLINK"] + keys(3)),
            (3, lambda: [b"EXISTS"] + keys(5)),
            (2, lambda: [b"TYPE", key()]),
            (3, lambda: [b"MGET"] + keys(6)),
            (3, lambda: [b"MSET"] + [item for k in keys(5) for item in (k, value())]),
            (2, lambda: [b"SETNX", key(), value()]),
            (2, lambda: [b"GETSET", key(), value()]),
            (3, lambda: [b"GETDEL", key()]),
            (5, lambda: [b"INCR", key()]),
            (4, lambda: [b"DECR", key()]),
            (5, lambda: [b"INCRBY", key(), number()]),
            (5, lambda: [b"DECRBY", key(), number()]),
            (6, lambda: [b"INCRBYFLOAT", key(), real()]),
            (5, lambda: [b"APPEND", key(), value()]),
            (3, lambda: [b"STRLEN", key()]),
            (5, lambda: [b"GETRANGE", key(), pick(OFFSETS), pick(OFFSETS)]),
            (5, lambda: [b"SETRANGE", key(), pick(WRITE_OFFSETS), value()]),
            (4, lambda: [b"TTL", key()]),
            (4, lambda: pick([
                [b"EXPIRE", key(), self.seconds()], [b"PEXPIRE", key(), self.milliseconds()],
                [pick([b"EXPIRE", b"PEXPIRE"]), key(), pick([b"0", b"-1", b"x", b"9223372036854775807"])]])
             + pick([[], [], [b"NX"], [b"XX"], [b"GT"], [b"LT"], [b"lt"], [b"what"]])),
            (3, lambda: [pick([b"EXPIREAT", b"PEXPIREAT"]), key(), pick(
                [b"33177117420", b"33177117420000", b"33177117421000", b"1", b"-5", b"9223372036854775",
                 b"9223372036854775807"])]
             + pick([[], [], [b"NX"], [b"XX"], [b"GT"], [b"LT"]])),
            (2, lambda: [b"PERSIST", key()]),
            (1, lambda: [b"EXPIRETIME", key()]),
            (2, lambda: [b"SETBIT", key(), pick(OFFSETS), pick([b"0", b"1", b"1", b"2"])]),
            (1, lambda: [b"GETBIT", key(), pick(OFFSETS)]),
            (1, lambda: [b"BITCOUNT", key()] + pick(
                [[], [pick(OFFSETS), pick(OFFSETS)], [pick(OFFSETS), pick(OFFSETS), b"BIT"]])),
            (1, lambda: [b"BITPOS", key(), pick([b"0", b"1"])] + pick(
                [[], [pick(OFFSETS)], [pick(OFFSETS), pick(OFFSETS), b"bit"]])),
            (1, lambda: [b"BITOP", pick([b"AND", b"OR", b"XOR", b"NOT"]), key()] + keys(3)),
            (2, lambda: [b"SETEX", key(), pick([self.seconds(), b"0", b"x"]), value()]),
            (2, lambda: [b"PSETEX", key(), pick([self.milliseconds(), b"-1", b""]), value()]),
            (3, lambda: [b"GETEX", key()] + pick(
                [[], [b"PERSIST"], [b"EX", self.seconds()], [b"PX", self.milliseconds()], [b"EX", b"0"],
                 [b"PXAT", b"33177117420000"], [b"EXAT", b"5"], [b"what"]])),
            (1, lambda: [b"TOUCH"] + keys(4)),
            (3, lambda: [b"PTTL", key()]),
            (2, lambda: [b"DBSIZE"]),
            (1, lambda: [b"SCAN", b"0", b"COUNT", b"1000000"] + pick(
                [[], [b"MATCH", b"*"], [b"MATCH", b"**"], [b"MATCH", b"[a-c]"], [b"TYPE", b"string"],
                 [b"what"]])),
            (1, lambda: [b"KEYS", pick([b"*", b"[ab]", b"long*", b"", b"?"])]),
            (2, lambda: [pick([b"RENAME", b"RENAMENX"]), key(), key()]),
            (2, lambda: [b"COPY", key(), key()] + pick(
                [[], [], [b"REPLACE"], [b"DB", b"1"], [b"DB", b"0", b"REPLACE"], [b"what"]])),
            (1, lambda: [b"MOVE", key(), pick([b"0", b"1", b"15", b"16"])]),
            (2, lambda: [b"PFADD", key()] + [value() for _ in range(self.random.randint(0, 3))]),
            (1, lambda: [b"PFCOUNT"] + keys(3)),
            (1, lambda: [b"PFMERGE", key()] + keys(2)),
            (1, lambda: [b"OBJECT", b"ENCODING", b"none"]),
            (1, lambda: [b"RESTORE", key(), pick([b"0", b"x", b"-1"]), value()]),
            (1, lambda: [b"MSETNX"] + [item for k in keys(3) for item in (k, value())]),
            (1, lambda: [b"LCS", pick(KEYS[:3]), pick(KEYS[:3])] + pick(
                [[], [b"LEN"], [b"IDX"], [b"IDX", b"WITHMATCHLEN", b"MINMATCHLEN", b"2"]])),
            (1, lambda: pick([[b"FLUSHDB"], [b"FLUSHALL"], [b"FLUSHDB", b"ASYNC"],
                              [b"FLUSHALL", b"sync"], [b"FLUSHALL", b"what"]])),
            (1, lambda: [b"SWAPDB", pick([b"0", b"1", b"0", b"15"]), pick(
                [b"1", b"0", b"15", b"16", b"x"])]),
            (2, lambda: [b"SELECT", pick([b"0", b"1", b"15", b"16", b"-1", b"x", b"0"])]),
            (1, lambda: pick([[b"PING"], [b"PING", value()], [b"ping", b"a", b"b"]])),
            (1, lambda: [b"ECHO", value()]),
            (1, lambda: [b"TIME"]),
            (1, lambda: [b"HELLO"] + pick([[], [b"2"], [b"3"], [b"4"], [b"x"],
                                           [b"3", b"SETNAME", b"me"], [b"3", b"AUTH", b"u"]])),
            (1, lambda: [b"RESET"]),
            (1, lambda: [b"AUTH"] + pick([[], [b"p"], [b"default", b"p"], [b"u", b"p", b"q"]])),
            (2, lambda: [b"CLIENT"] + pick([
                [b"GETNAME"], [b"SETNAME", b"n"], [b"SETNAME", b"a b"], [b"ID"], [b"INFO"],
                [b"LIST"], [b"NO-EVICT", b"on"], [b"NO-EVICT", b"x"], [b"KILL", b"1.2.3.4:5"],
                [b"WHAT"], []])),
            (1, lambda: [b"COMMAND"] + pick([
                [b"COUNT"], [b"INFO", b"get"], [b"GETKEYS", b"MSET", b"a", b"b", b"c", b"d"],
                [b"GETKEYS", b"GET"], [b"GETKEYS", b"PFMERGE", b"a"], [b"WHAT"]])),
            (1, lambda: [b"CONFIG"] + pick([
                [b"GET", b"nothing-of-this-name"], [b"GET"], [b"SET", b"no-such", b"1"],
                [b"GET", b"save"], [b"RESETSTAT"], [b"WHAT"]])),
            (1, lambda: [b"INFO"] + pick([[], [b"server"], [b"nothing"]])),
            (2, self.bad_arity),
            (1, lambda: [pick([b"NOSUCH", b"get ", b"", b"G\x00T", b"SETT"])] + keys(3)),
        ]
        self.weights = [weight for weight, _ in self.makers]

    def seconds(self):
        return b"%d" % self.periods.pop()

    def milliseconds(self):
        return b"%d000" % self.periods.pop()

    def set_options(self):
        options = []
        for _ in range(self.random.randint(1, 3)):
            options += self.random.choice(
                SET_OPTIONS + [[b"EX", self.seconds()], [b"PX", self.milliseconds()]])
        return options

    def bad_arity(self):
        name = self.random.choice([b"GET", b"SET", b"DEL", b"MSET", b"INCR", b"APPEND", b"TTL",
                                   b"GETRANGE", b"SETRANGE", b"ECHO", b"DBSIZE", b"TYPE", b"MGET"])
        return [name] + [self.random.choice(KEYS) for _ in range(self.random.choice([0, 1, 3, 5]))]

    def transaction(self, connection):
        """Over any keys; with WATCH over one, which others may change."""
        if self.random.random() < 0.5:
            body = [self.one(connection) for _ in range(self.random.randint(0, 6))]
            return [command((b"MULTI",), connection)] + [
                step for step in body if step.args[0].upper() not in UNLIKE | {b"RESET"}
            ] + [command((self.random.choice([b"EXEC", b"EXEC", b"DISCARD"]),), connection)]
        key = self.random.choice(KEYS[:3])
        on_key = [[b"GET", key], [b"SET", key, b"5"], [b"INCR", key], [b"APPEND", key, b"x"],
                  [b"DEL", key], [b"EXISTS", key, key], [b"GETDEL", key], [b"PERSIST", key],
                  [b"MSET", key, b"1", key, b"2"], [b"PING"], [b"ECHO", b"e"], [b"STRLEN", key],
                  [b"GETRANGE", key, b"0", b"-2"], [b"SETRANGE", key, b"3", b"yy"], [b"UNWATCH"],
                  [b"SETNX", key, b"n"], [b"SET", key, b"v", b"EX", self.seconds()], [b"TYPE", key]]
        steps = [command((b"WATCH", key), connection)]
        if self.random.random() < 0.3:
            steps.append(command(tuple(self.random.choice(on_key[:5])), connection + 1))
        steps.append(command((b"MULTI",), connection))
        for _ in range(self.random.randint(0, 6)):
            steps.append(command(tuple(self.random.choice(on_key)), connection))
        return steps + [command((b"EXEC",), connection)]

    def one(self, connection):
        maker = self.random.choices(self.makers, self.weights)[0][1]
        args = maker()
        if self.random.random() < 0.1:
            args[0] = args[0].swapcase()
        return command(tuple(args), connection)

    def stream(self, length):
        """Steps on up to three connections; some of them are sent as one pipeline."""
        steps = []
        connections = self.random.randint(1, 3)
        while len(steps) < length:
            connection = self.random.randrange(connections)
            if self.random.random() < 0.05:
                steps += self.transaction(connection)
            elif self.random.random() < 0.15:
                size = self.random.randint(2, 24)
                steps.append(Batch(tuple(self.one(connection) for _ in range(size)), connection))
            else:
                steps.append(self.one(connection))
        return steps


def stream(seed, length=150):
    return Generator(seed).stream(length)


# Their replies hold values that no two servers share; raw bytes are compared as they are.
UNLIKE = {b"INFO", b"CLIENT", b"TIME", b"TTL", b"PTTL", b"HELLO", b"COMMAND", b"CONFIG", b"SCAN", b"KEYS"}
NOISE = [b"\r\n", b"\n", b"\r", b"*", b"$", b"-", b"0", b"9", b"\x01", b"\xff", b" ", b'"', b"'",
         b"*3\r\n", b"$-1\r\n", b"*-1\r\n", b"PING\r\n", b"\\x"]


def damaged_stream(seed, commands=12):
    """Valid commands as bytes, damaged in a few places and cut into pieces: parsers must agree."""
    generator = Generator(seed)
    rng = generator.random
    parts = []
    while len(parts) < commands:
        args = generator.one(0).args
        if args[0].upper() not in UNLIKE:
            parts.append(encode(args) if rng.random() < 0.8 else b" ".join(
                arg for arg in args if arg and not set(arg) & set(b" \r\n\x00'\"")) + b"\r\n")
    # Redis waits for ever behind a NUL byte in a line (differences.toml has that case), and a value
    # that is read as HELLO would be answered with ids.
    data = bytearray(b"".join(parts).replace(b"\x00", b"\x01").replace(b"hello", b"howdy"))
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.choice(rng.choice(NOISE))
        elif kind == 1:
            del data[at:at + rng.randint(1, 4)]
        elif kind == 2:
            data[at:at] = rng.choice(NOISE)
        else:
            data[at:at] = data[at:at + rng.randint(1, 30)]
    cuts = sorted(rng.sample(range(len(data)), rng.randint(0, 2)))
    return [Raw(bytes(data[start:end])) for start, end in zip([0] + cuts, cuts + [len(data)])]
