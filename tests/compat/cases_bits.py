"""Hand-written and enumerated streams over the commands on bits."""

import itertools
import random

from steps import Batch, command

BIG = "9223372036854775807"
SMALL = "-9223372036854775808"
STRINGS = [b"", b"\x00", b"\xff", b"\x80", b"\x01", b"\xff\xff\xff", b"\x00\x00\x00\x00",
           b"\xff" * 20 + b"\xf0\x0f", b"\x00" * 19 + b"\x10\xff", b"foobar",
           bytes(range(256)), b"\xff" * 64]
INDEXES = ["0", "1", "2", "7", "8", "9", "19", "20", "63", "64", "-1", "-2", "-8", "-20", "-1000",
           "1000", BIG, SMALL]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def bit_cases():
    steps = []
    for offset in ("0", "1", "7", "8", "100", "8388607", "8388608", "-1", "x", "", "1.5", BIG,
                   "4294967296", "007", "#1"):
        for bit in ("1", "0", "2", "-1", "x", ""):
            steps += [("SETBIT", "k", offset, bit), ("GETBIT", "k", offset)]
        steps += ["STRLEN k", "DEL k", ("GETBIT", "none", offset)]
    yield "SETBIT and GETBIT at their edges", batches(steps)
    steps = []
    for value in STRINGS:
        steps += [("SET", "k", value), "SETBIT k 3 1", "GET k", "SETBIT k 3 0", "GET k",
                  "SETBIT k 100 1", "GETBIT k 100", "GETBIT k 101", "GET k"]
    steps += ["SET k v EX 1000", "SETBIT k 1 1", "TTL k"]
    yield "SETBIT on strings", batches(steps)


def range_cases():
    for name, first in (("BITCOUNT", []), ("BITPOS", ["0"]), ("BITPOS", ["1"])):
        steps = []
        for value in STRINGS:
            steps.append(("SET", "k", value))
            steps.append(tuple([name, "k"] + first))
            for start in INDEXES:
                steps.append(tuple([name, "k"] + first + [start]))
                for end in INDEXES[:: 2 if len(value) > 30 else 1]:
                    steps.append(tuple([name, "k"] + first + [start, end]))
                    steps.append(tuple([name, "k"] + first + [start, end, "BIT"]))
        for more in (["x"], ["0", "x"], ["x", "0"], ["0", "-1", "what"], ["0", "-1", "byte"],
                     ["0", "-1", "bit", "x"], ["-1", "-2"], ["-1", "-2", "what"]):
            steps.append(tuple([name, "k"] + first + more))
            steps.append(tuple([name, "none"] + first + more))
        yield "%s %s of every part" % (name, "".join(first)), batches(steps, 200)
    yield "BITPOS of no bit", ["SET k v", "BITPOS k 2", "BITPOS k -1", "BITPOS k x",
                               "BITPOS none 1", "BITPOS none 0", "BITPOS none 2"]


def combine_cases():
    steps = []
    for operation in ("AND", "OR", "XOR", "not", "NAND", ""):
        for first, second in itertools.product(STRINGS[:9], STRINGS[3:8]):
            steps += [("SET", "a", first), ("SET", "b", second),
                      ("BITOP", operation, "d", "a", "b", "none"), "GET d"]
            steps += [("BITOP", operation, "d", "a"), "GET d"]
        steps += ["SET d v EX 1000", ("BITOP", operation, "d", "none"), "EXISTS d",
                  "SET d v EX 1000", ("BITOP", operation, "d", "a", "d"), "TTL d", "GET d"]
    yield "BITOP", batches(steps)


def field_cases():
    types = ["u1", "i1", "u7", "i8", "u8", "i16", "u32", "i33", "u63", "i64"]
    values = ["0", "1", "-1", "127", "128", "255", "256", "-128", "-129", "65535", BIG, SMALL]
    for overflow in ("", "OVERFLOW WRAP ", "OVERFLOW SAT ", "OVERFLOW FAIL "):
        steps = []
        for kind, value in itertools.product(types, values):
            steps += ["BITFIELD k %sSET %s 3 %s GET %s 3" % (overflow, kind, value, kind),
                      "BITFIELD k %sINCRBY %s 3 %s GET %s 3" % (overflow, kind, value, kind),
                      "BITFIELD k %sINCRBY %s #1 %s" % (overflow, kind, value), "GET k"]
        yield "BITFIELD %sof every type" % overflow, batches(steps)
    bad = ["BITFIELD k", "BITFIELD k GET", "BITFIELD k GET u8", "BITFIELD k GET u64 0",
           "BITFIELD k GET i65 0", "BITFIELD k GET i0 0", "BITFIELD k GET 8 0", "BITFIELD k GET u 0",
           "BITFIELD k GET U8 0", "BITFIELD k GET u8 -1", "BITFIELD k GET u8 x",
           "BITFIELD k GET u8 #x", "BITFIELD k GET u8 #-1", "BITFIELD k GET u8 8388608",
           "BITFIELD k GET u8 8388600", "BITFIELD k SET u8 0", "BITFIELD k SET u8 0 x",
           "BITFIELD k INCRBY u8 0 1.5", "BITFIELD k OVERFLOW", "BITFIELD k OVERFLOW what",
           "BITFIELD k OVERFLOW SAT", "BITFIELD k what u8 0", "BITFIELD k GET u8 0 GET u8",
           "BITFIELD k SET u8 0 300 GET u8 0 what", "BITFIELD_RO k GET u8 0",
           "BITFIELD_RO k SET u8 0 1", "BITFIELD_RO k GET u8 0 SET u8 0 1",
           "BITFIELD_RO k OVERFLOW SAT GET u8 0", "BITFIELD_RO none GET u8 0", "BITFIELD_RO k",
           "BITFIELD none GET u8 100", "EXISTS none", "BITFIELD none OVERFLOW FAIL SET u1 30 7",
           "GET none", "BITFIELD k GET u8 #1048575", "BITFIELD k get u8 0 Set u8 8 7"]
    yield "BITFIELD at its edges", [step for item in bad for step in (item, "GET k")] + [
        "SET k v EX 1000", "BITFIELD k SET u8 0 7", "TTL k"]
    draw = random.Random(7)
    steps = []
    for _ in range(600):
        parts = []
        for _ in range(draw.randint(1, 4)):
            kind = draw.choice(types)
            offset = draw.choice(["", "#"]) + str(draw.randint(0, 20))
            parts += draw.choice([
                ["GET", kind, offset], ["SET", kind, offset, draw.choice(values)],
                ["INCRBY", kind, offset, draw.choice(values)],
                ["OVERFLOW", draw.choice(["WRAP", "SAT", "FAIL"])]])
        steps.append(tuple(["BITFIELD", draw.choice("ab")] + parts))
        if draw.random() < 0.05:
            steps.append("DEL a")
    yield "BITFIELD at random", batches(steps + ["GET a", "GET b"])


def cases():
    for family in (bit_cases, range_cases, combine_cases, field_cases):
        yield from family()
