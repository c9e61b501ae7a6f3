"""Hand-written and random streams of commands over streams."""

import random

from live_dump import rdb_string, with_footer
from steps import Batch, command

MAX = "18446744073709551615"
MAX_ID = MAX + "-" + MAX
NAMES = ["xadd", "xlen", "xrange", "xrevrange", "xdel", "xtrim", "xread", "xreadgroup", "xgroup", "xack",
         "xclaim", "xautoclaim", "xpending", "xinfo", "xsetid"]
IDS = ["0", "1", "0-0", "0-1", "1-0", "1-1", "5-*", "*", "0-*", "-", "+", "$", ">", "", "-1", "1-", "-1-1", "1--1",
       "1-1-1", "a", "1-a", "a-1", "007-1", "+7-1", " 7-1", "7- 1", "7-007", "1--05", MAX, MAX + "-0", MAX_ID,
       MAX + "0", "1-" + MAX, "1-" + MAX + "0", "9223372036854775807-9223372036854775808", "9223372036854775808",
       "(1", "(1-1", "(-", "(+", "(", "(" + MAX_ID, "(0-0", "x" * 127, "1" * 128, "0" * 126 + "1", b"1\x00x", b"-\x00",
       b"1-1\x00"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def arity_cases():
    for name in NAMES:
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(12)]
        # The order of subcommands is drawn by each redis-server.
        described = [] if name in ("xgroup", "xinfo") else [("COMMAND", "INFO", name)]
        yield "COMMAND INFO of " + name, described + [
            ("COMMAND", "GETKEYS", name, *rest) for rest in (
                "abcdef", ("streams", "a", "b", "1", "2"), ("streams", "a"), ("streams",), ("count", "1", "x", "a", "1"),
                ("GROUP", "g", "c", "BLOCK", "1", "NOACK", "STREAMS", "a", "1"), ("create", "a", "b", "c"))]
    for container, names in (("xgroup", ("create", "setid", "destroy", "createconsumer", "delconsumer", "none")),
                             ("xinfo", ("stream", "groups", "consumers", "none"))):
        for name in names:
            yield "arity of %s %s" % (container, name), [tuple([container, name] + ["1"] * n) for n in range(9)] + [
                "XADD 1 1-1 a b"] + [tuple([container, name] + ["1"] * n) for n in range(9)]
            yield "COMMAND INFO of %s %s" % (container, name), [
                ("COMMAND", "INFO", "%s|%s" % (container, name)), ("COMMAND", "GETKEYS", container, name, *"abcd"),
                ("COMMAND", "GETKEYSANDFLAGS", container, name, *"abcd")]


def add_cases():
    yield "XADD and its relatives", [
        "XADD s 1-1 a 1", "XADD s 1-2 a 2 b 3", "XADD s 1-2 a 1", "XADD s 1-1 a 1", "XADD s 0-5 a 1", "XADD s 1 a 1",
        "XADD s 2 a 1", "XADD s 2-* a 1", "XADD s 1-* a 1", "XADD s 3-* a 1", "XADD s 3-* b 1", "XLEN s", "XRANGE s - +",
        "XADD s 4-4 a", "XADD s 4-4 a 1 b", "XADD s 4-4", "XADD s", "XADD s NOMKSTREAM", "XADD s *", "XADD s * a",
        "XADD none NOMKSTREAM 1-1 a 1", "EXISTS none", "XADD none nomkstream * a 1", "XADD s NOMKSTREAM 5-5 a 1",
        "XADD s 0-0 a 1", "XADD n 0-0 a 1", "EXISTS n", "XADD n 0-* a 1", "XADD n 0-* a 1", "XRANGE n - +", "XLEN none",
        "XINFO STREAM s", "TYPE s", "OBJECT ENCODING s", "OBJECT REFCOUNT s", "XADD z 0-1 a 1", "XADD z 0 a 1"]
    yield "XADD to the last id", [
        ("XADD", "s", MAX + "-1", "a", "1"), ("XADD", "s", "*", "a", "1"), ("XADD", "s", MAX + "-*", "a", "1"),
        "XRANGE s - +", ("XADD", "s", MAX_ID, "a", "1"), "XADD s * a 1", "XADD s 1-1 a 1", ("XADD", "s", MAX_ID, "a", "1"),
        "XLEN s", "XINFO STREAM s", ("XREAD", "STREAMS", "s", MAX_ID), ("XREAD", "STREAMS", "s", MAX + "-1"),
        "XREAD STREAMS s $", ("XRANGE", "s", "(" + MAX_ID, "+"), ("XRANGE", "s", "-", "(0-0"),
        ("XRANGE", "s", MAX_ID, MAX_ID), ("XSETID", "s", MAX_ID), "XDEL s " + MAX_ID, "XADD s * a 1", "XINFO STREAM s"]
    for id_text in IDS:
        yield "the id %r" % (id_text,), [
            "XADD s 1-1 a b", "XADD s 7-1 c d", ("XRANGE", "s", id_text, "+"), ("XRANGE", "s", "-", id_text),
            ("XREVRANGE", "s", "+", id_text), ("XREVRANGE", "s", id_text, "-"), ("XDEL", "s", id_text), "XLEN s",
            ("XTRIM", "s", "MINID", id_text), "XLEN s", ("XSETID", "s", id_text), ("XREAD", "STREAMS", "s", id_text),
            ("XGROUP", "CREATE", "s", "g", id_text), ("XGROUP", "CREATE", "s", "g", "0"),
            ("XGROUP", "SETID", "s", "g", id_text), "XINFO GROUPS s", ("XACK", "s", "g", id_text),
            ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", id_text), ("XPENDING", "s", "g", id_text, "+", "9"),
            ("XPENDING", "s", "g", "-", id_text, "9"), ("XCLAIM", "s", "g", "c", "0", id_text, "JUSTID"),
            ("XAUTOCLAIM", "s", "g", "c", "0", id_text, "JUSTID")]
        if id_text not in ("*",):
            yield "XADD with the id %r" % (id_text,), [
                ("XADD", "s", id_text, "a", "b"), "XRANGE s - +", "XADD t 5-5 a b", ("XADD", "t", id_text, "c", "d"),
                "XRANGE t - +", "XINFO STREAM t"]
    yield "fields of any bytes", [
        ("XADD", "s", "1-1", "", ""), ("XADD", "s", "1-2", b"\x00\r\n\xff", b"\xff\x00"), ("XADD", "s", "1-3", "", "x"),
        ("XADD", "s", "1-4", "1", "-1", "127", "128", "-4096", "4095", "4096", "-4097", "32767", "32768", "-32768",
         "-32769", "8388607", "8388608", "2147483647", "2147483648", "-2147483649", "9223372036854775807",
         "-9223372036854775808", "9223372036854775808", "007", "-0", "+1", " 1"), "XRANGE s - +", "XREVRANGE s + -",
        "DUMP s", "XADD s 1-5 a 1 a 2 a 3", "XRANGE s 1-5 1-5", "XDEL s 1-2", "DUMP s"]
    for length in (0, 1, 62, 63, 64, 65, 126, 127, 128, 4091, 4092, 4093, 4095, 4096, 16383, 70000, 2100000):
        yield "an entry of %d bytes" % length, [
            "XADD s 1-1 a b", ("XADD", "s", "2-1", "f" * length, "v" * length), "XADD s 3-1 a b",
            ("XADD", "s", "4-1", "f" * length, "w"), "XRANGE s - + COUNT 9", "XINFO STREAM s", "XREVRANGE s + - COUNT 2",
            "XTRIM s MAXLEN ~ 1", "XLEN s", "XDEL s 2-1", "XLEN s", "XRANGE s - +"]
    wide = ["XADD", "s", "1-1"] + [str(i) for i in range(600)]
    yield "an entry of many fields", [tuple(wide), tuple(["XADD", "s", "1-2"] + wide[3:]), "XRANGE s - +", "DUMP s",
                                      "XADD s 1-3 a b", "XREVRANGE s + - COUNT 2", "XDEL s 1-1", "XRANGE s - +"]


def fill(key, count, step=1):
    return batches([("XADD", key, "%d-%d" % (i * step, i % 3), "f", str(i), "g", "v" * (i % 70))
                    for i in range(1, count + 1)])


def range_cases():
    ends = ["-", "+", "0", "1", "50", "50-1", "(50", "(50-1", "100-1", "(100", "151", "999", "(-", MAX_ID]
    steps = []
    for first in ends:
        for last in ends:
            steps += [("XRANGE", "s", first, last, "COUNT", "3"), ("XREVRANGE", "s", last, first, "COUNT", "3"),
                      ("XRANGE", "s", first, last), ("XREVRANGE", "s", last, first)]
    yield "XRANGE and XREVRANGE", fill("s", 250) + batches(steps) + [
        "XDEL s 50-2 100-1 1-1 250-1"] + batches(steps)
    yield "the options of XRANGE", ["XADD s 1-1 a 1", "XADD s 2-1 a 1"] + [
        "%s %s %s" % (name, key, rest) for name in ("XRANGE", "XREVRANGE") for key in ("s", "none") for rest in (
            "- + COUNT", "- + COUNT 0", "- + COUNT -1", "- + COUNT x", "- + COUNT 1 COUNT 2", "- + COUNT 1 x", "- + x",
            "- + COUNT 9223372036854775807", "- + COUNT 9223372036854775808", "- + count 1", "+ - COUNT 1", "+ -", "+ +")]


def trim_cases():
    options = ["MAXLEN 5", "MAXLEN = 5", "MAXLEN ~ 5", "MAXLEN ~ 150", "MAXLEN 0", "MAXLEN ~ 0", "MAXLEN 1000",
               "MAXLEN -1", "MAXLEN x", "MAXLEN", "MAXLEN ~", "MAXLEN =", "MAXLEN ~ x", "MAXLEN ~ 5 LIMIT 100",
               "MAXLEN ~ 5 LIMIT 99", "MAXLEN ~ 5 LIMIT 0", "MAXLEN ~ 5 LIMIT -1", "MAXLEN ~ 5 LIMIT x",
               "MAXLEN ~ 5 LIMIT", "MAXLEN = 5 LIMIT 10", "MAXLEN 5 LIMIT 0", "LIMIT 5", "LIMIT 0", "LIMIT 5 MAXLEN ~ 5",
               "MINID 100", "MINID = 100-2", "MINID ~ 100", "MINID ~ 101-0", "MINID ~ 210", "MINID 250", "MINID 0",
               "MINID 999", "MINID -", "MINID +", "MINID x", "MINID", "MINID ~", "MINID ~ 150 LIMIT 100",
               "MINID ~ 201 LIMIT 199", "MAXLEN 5 MINID 1", "MINID 1 MAXLEN 5", "MAXLEN 5 MAXLEN 6", "maxlen ~ 120 limit 1000",
               "MAXLEN ~ 9223372036854775807", "MAXLEN 9223372036854775808", "x 5", "NOMKSTREAM MAXLEN 3", "= 5", "~ 5"]
    for option in options:
        yield "XTRIM and XADD with %s" % option, fill("s", 250) + [
            "XTRIM none " + option, "XTRIM s " + option, "XINFO STREAM s", "XLEN s", "XTRIM s " + option,
            "XADD s %s 900-1 a 1" % option, "XINFO STREAM s", "XDEL s 245-2 246-0 900-1", "XADD s %s 901-1 a 1" % option,
            "XADD s %s NOMKSTREAM 902-1 a 1" % option, "XRANGE s - + COUNT 5", "XINFO STREAM s", "DUMP s",
            "XADD new %s NOMKSTREAM 902-1 a 1" % option, "XADD new %s 902-1 a 1" % option, "XINFO STREAM new"]
    for entries, size in ((1, 4096), (10, 4096), (0, 4096), (100, 100), (100, 0), (0, 200), (130, 0), (300, 0)):
        limits = "CONFIG SET stream-node-max-entries %d stream-node-max-bytes %d" % (entries, size)
        yield "nodes of %d entries and %d bytes" % (entries, size), [limits] + fill("s", 280) + [
            "XINFO STREAM s", "XTRIM s MAXLEN ~ 55", "XINFO STREAM s", "XDEL s 270-0 260-2", "XTRIM s MINID 275",
            "XINFO STREAM s", "XADD s MAXLEN ~ 3 900-1 a b", "XINFO STREAM s", "XRANGE s - +", "DUMP s",
            "XTRIM s MAXLEN ~ 3 LIMIT 2", "XLEN s", "XTRIM s MINID ~ 901", "XLEN s",
            "CONFIG SET stream-node-max-entries 100 stream-node-max-bytes 4096"]
    yield "XDEL", fill("s", 205, 7) + [
        "XDEL s 7-1", "XDEL s 7-1", "XDEL s 7", "XDEL s 14-2 21-0 21-0 5-5", "XINFO STREAM s", "XDEL s 28-1 x 35-2", "XLEN s",
        "XDEL none 1-1", "XDEL none x", "XDEL s", "XDEL s 1435-1", "XINFO STREAM s", "XRANGE s - + COUNT 3",
        "XREVRANGE s + - COUNT 3"] + batches([("XDEL", "s", str(7 * i) + "-" + str(i % 3)) for i in range(1, 206)]) + [
            "XINFO STREAM s", "EXISTS s", "DUMP s", "XADD s 9999-1 a b", "XINFO STREAM s"]
    yield "XSETID behind entries that were deleted", [
        "XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XDEL s 3-0", "XSETID s 2-0", "XADD s 2-5 f w", "XADD s 3-0 f x",
        "XRANGE s - +", "XREVRANGE s + -", "XRANGE s 2-1 3", "XREAD STREAMS s 2-0", "XDEL s 2-5", "XADD s 3-1 f y", "XRANGE s - +",
        "XTRIM s MAXLEN 2", "XRANGE s - +", "XLEN s", "XDEL s 2-0 3-0 3-1", "XSETID s 1", "XADD s 1-1 f z", "XRANGE s - +",
        "XADD t 1-0 f v", "XADD t 2-0 f v", "XADD t 3-0 f v", "XDEL t 3-0", "XTRIM t MINID 3", "XLEN t", "XSETID t 0-1",
        "XADD t 0-2 f v", "XLEN t", "XRANGE t - +"]
    yield "XSETID", [
        "XSETID none 1-1", "XSETID none x", "XADD s 1-1 a b", "XADD s 5-5 a b", "XSETID s 4-4", "XSETID s 5-5", "XSETID s 6-6",
        "XADD s 6-6 a b", "XADD s 6-7 a b", "XSETID s 9 ENTRIESADDED 2", "XSETID s 9 ENTRIESADDED 3", "XINFO STREAM s",
        "XSETID s 9 ENTRIESADDED -1", "XSETID s 9 ENTRIESADDED x", "XSETID s 9 ENTRIESADDED", "XSETID s 9 MAXDELETEDID 10",
        "XSETID s 9 MAXDELETEDID 8-8", "XSETID s 9 MAXDELETEDID x", "XSETID s 9 MAXDELETEDID", "XINFO STREAM s",
        "XSETID s 9 ENTRIESADDED 100 MAXDELETEDID 9", "XINFO STREAM s", "XSETID s 9 MAXDELETEDID 0-0", "XSETID s 9 x y",
        "XSETID s - ", "XSETID s", "XINFO STREAM s", "XDEL s 1-1 5-5 6-7", "XSETID s 2-2", "XINFO STREAM s",
        "XSETID s 2-2 ENTRIESADDED 0", "XADD s 3-3 a b", "XINFO STREAM s", "SET k v", "XSETID k 1-1"]


def read_cases():
    ids = ["0", "0-0", "1-1", "2-1", "3", "$", ">", "x", "-", "+", MAX_ID]
    steps = ["XREAD %s STREAMS %s %s" % (options, key, i) for options in ("", "COUNT 1", "COUNT 0", "COUNT -1", "count 2")
             for key in ("s", "none") for i in ids]
    yield "XREAD", ["XADD s 1-1 a 1", "XADD s 2-1 a 1 b 2", "XADD s 3-1 c 1"] + steps + [
        "XADD t 5-5 x y", "XREAD STREAMS s t 0 0", "XREAD STREAMS t s 0 0", "XREAD STREAMS s t 9 0", "XREAD STREAMS s t 9 9",
        "XREAD STREAMS s s 0 2", "XREAD STREAMS s none t 0 0 0", "XREAD COUNT 1 STREAMS s t 0 0", "XREAD STREAMS s t 0",
        "XREAD STREAMS s t 0 x", "XREAD STREAMS s t x 0", "XREAD STREAMS s t 0 >", "XREAD STREAMS s t $ 0", "SET k v",
        "XREAD STREAMS s k 0 0", "XREAD STREAMS k s x 0", "XREAD STREAMS s k x 0", "XREAD STREAMS k 0"]
    yield "the options of XREAD", ["XADD s 1-1 a 1"] + ["XREAD " + rest for rest in (
        "COUNT x STREAMS s 0", "COUNT", "COUNT 1", "STREAMS", "STREAMS s", "STREAMS s 0 x", "BLOCK x STREAMS s 0",
        "BLOCK -1 STREAMS s 0", "BLOCK 1.5 STREAMS s 0", "BLOCK STREAMS s 0", "BLOCK 0 STREAMS s 0", "BLOCK 100 STREAMS s 0",
        "BLOCK 0 COUNT 1 STREAMS s 0", "GROUP g c STREAMS s 0", "NOACK STREAMS s 0", "x STREAMS s 0", "GROUP g STREAMS s",
        "BLOCK 9223372036854775808 STREAMS s 0", "COUNT 1 COUNT 2 BLOCK 1 BLOCK 2 STREAMS s 0")]
    yield "XREAD inside a transaction does not wait", [
        "XADD s 1-1 a 1", "XGROUP CREATE s g $", "MULTI", "XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS s 0",
        "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XADD s 2-1 b 2", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
        "XREAD BLOCK 100 STREAMS s 2", "XDEL s 1-1", "XTRIM s MAXLEN 0", "XLEN s", "EXEC", "XLEN s", "WATCH s",
        "XADD s 9-9 a b", "MULTI", "XLEN s", "EXEC"]


def group_cases():
    yield "XGROUP", [
        "XGROUP CREATE s g 0", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s g x",
        "XLEN s", "XINFO STREAM s", "XINFO GROUPS s", "XADD s 1-1 a b", "XADD s 2-2 a b", "XGROUP CREATE s h 0",
        "XGROUP CREATE s i $", "XGROUP CREATE s j 1-1 ENTRIESREAD 1", "XGROUP CREATE s k 1 ENTRIESREAD -1",
        "XGROUP CREATE s l 1 ENTRIESREAD -2", "XGROUP CREATE s l 1 ENTRIESREAD x", "XGROUP CREATE s l 1 ENTRIESREAD",
        "XGROUP CREATE s l 1 ENTRIESREAD 5 MKSTREAM", "XGROUP CREATE s m 1 x", "XGROUP CREATE s m 1 MKSTREAM MKSTREAM",
        "XGROUP CREATE s n 1 MKSTREAM MKSTREAM MKSTREAM MKSTREAM", "XGROUP CREATE s n - ", "XGROUP CREATE s n + ",
        "XGROUP CREATE s n 7777777", "XINFO GROUPS s", "XGROUP SETID s g 1-1", "XGROUP SETID s g $", "XGROUP SETID s g -",
        "XGROUP SETID s g +", "XGROUP SETID s g x", "XGROUP SETID s none 0", "XGROUP SETID none g 0",
        "XGROUP SETID s g 1 ENTRIESREAD 1", "XGROUP SETID s g 1 ENTRIESREAD -7", "XGROUP SETID s g 1 MKSTREAM",
        "XGROUP SETID s g 1 ENTRIESREAD 1 ENTRIESREAD 2", "XGROUP DESTROY s none", "XGROUP DESTROY none g",
        "XGROUP DESTROY s h", "XGROUP DESTROY s h", "XGROUP CREATECONSUMER s g c", "XGROUP CREATECONSUMER s g c",
        "XGROUP CREATECONSUMER s none c", "XGROUP CREATECONSUMER none g c", "XGROUP DELCONSUMER s g c",
        "XGROUP DELCONSUMER s g c", "XGROUP DELCONSUMER s none c", "XGROUP DELCONSUMER none g c", "XINFO GROUPS s",
        "XINFO CONSUMERS s g", "XINFO CONSUMERS s none", "XINFO CONSUMERS none g", "XINFO GROUPS none", "XINFO STREAM none",
        "XINFO STREAM s x", "XINFO STREAM s FULL x", "XINFO STREAM s FULL COUNT", "XINFO STREAM s FULL COUNT x",
        "XINFO STREAM s FULL COUNT -1", "XINFO STREAM s FULL COUNT 0", "XINFO STREAM s full count 1", "XINFO STREAM s FULL",
        "XINFO STREAM s FULL COUNT 1 2", "XINFO none s", "XGROUP none s g", "XINFO", "XGROUP", "XINFO HELP x", "XGROUP HELP x",
        ("XGROUP", "CREATE", "s", b"a\x00b", "0"), ("XGROUP", "CREATE", "s", b"\xff\r\n", "0"), ("XGROUP", "CREATE", "s", "", "0"),
        ("XGROUP", "SETID", "s", b"a\x00c", "0"), ("XGROUP", "SETID", b"no\r\n\x00c", b"\xff\r\n\x00b", "0"),
        ("XGROUP", "SETID", "s", b"\xff\r\n\x00b", "0"), "XINFO GROUPS s", "XGROUP DESTROY s i", "XINFO STREAM s FULL"]
    names = [b"c%d" % i for i in (5, 3, 9, 1)] + [b"", b"\x00", b"\xff", b"c", b"cc", b"b\r\n"]
    yield "names of consumers", ["XADD s 1-1 a b", "XGROUP CREATE s g 0"] + [
        ("XGROUP", "CREATECONSUMER", "s", "g", name) for name in names] + ["XINFO CONSUMERS s g", "XINFO STREAM s FULL"] + [
            ("XREADGROUP", "GROUP", "g", names[2], "STREAMS", "s", ">"), "XADD s 2-2 a b",
            ("XREADGROUP", "GROUP", "g", names[5], "STREAMS", "s", ">"), "XPENDING s g",
            ("XGROUP", "CREATECONSUMER", "s", "g", "0"), "XPENDING s g", "XINFO STREAM s FULL"] + [
                ("XGROUP", "DELCONSUMER", "s", "g", name) for name in names] + ["XPENDING s g", "XINFO STREAM s FULL"]


def delivery_cases():
    steps = ["XADD s %d-0 a %d" % (i, i) for i in range(1, 16)] + ["XGROUP CREATE s g 0", "XGROUP CREATE s h 5 ENTRIESREAD 5"]
    yield "XREADGROUP", steps + ["XREADGROUP " + rest for rest in (
        "GROUP g c COUNT 2 STREAMS s >", "GROUP g d COUNT 3 STREAMS s >", "GROUP g c STREAMS s 0", "GROUP g c STREAMS s 1",
        "GROUP g d COUNT 1 STREAMS s 0", "GROUP g e STREAMS s 0", "GROUP h c NOACK COUNT 2 STREAMS s >",
        "GROUP h c STREAMS s 0", "GROUP g c STREAMS s $", "GROUP g c STREAMS s x", "GROUP g c STREAMS s -",
        "GROUP none c STREAMS s >", "GROUP g c STREAMS none >", "COUNT 1 STREAMS s > x", "NOACK COUNT 1 STREAMS s >",
        "GROUP g c COUNT x STREAMS s >", "GROUP g c STREAMS s s >", "GROUP g c BLOCK -1 STREAMS s >",
        "GROUP g c BLOCK 0 COUNT 1 STREAMS s >", "GROUP g c x STREAMS s >", "GROUP g c COUNT 1 STREAMS s s > >",
        "GROUP g c COUNT 1 STREAMS s none > >", "GROUP g c COUNT 1 STREAMS s s > $", "GROUP g c STREAMS s s 0 >",
        "GROUP g c STREAMS s >", "GROUP g c NOACK STREAMS s 0", "GROUP g c COUNT 1 STREAMS s s > 0",
        "GROUP g c BLOCK 5 STREAMS s 0", "GROUP g c STREAMS s " + MAX_ID, "GROUP g f STREAMS s >",
        "GROUP g c GROUP h d STREAMS s 0")] + [
            "XINFO STREAM s FULL", "XINFO GROUPS s", "XPENDING s g", "XPENDING s h", "XDEL s 1-0 2-0 4-0",
            "XREADGROUP GROUP g c STREAMS s 0", "XREADGROUP GROUP g d STREAMS s 0", "XGROUP SETID s g 0",
            "XREADGROUP GROUP g d COUNT 4 STREAMS s >", "XPENDING s g", "XINFO STREAM s FULL COUNT 3", "SET k v",
            "XREADGROUP GROUP g c STREAMS k >", "XREADGROUP GROUP g c STREAMS s k > >", "XREADGROUP GROUP g c STREAMS k s x >"]
    yield "XACK and XPENDING", steps + [
        "XREADGROUP GROUP g c COUNT 5 STREAMS s >", "XREADGROUP GROUP g d COUNT 5 STREAMS s >", "XPENDING s g",
        "XACK s g 1-0", "XACK s g 1-0", "XACK s g 2-0 2-0 3-0 99-9", "XACK s g 4-0 x", "XACK s none 1-0", "XACK none g 1-0",
        "XACK s none x", "XACK none g x", "XACK s g", "XPENDING s g", "XPENDING s none", "XPENDING none g"] + [
            "XPENDING s g " + rest for rest in (
                "- + 10", "- + 2", "- + 0", "- + -1", "- + x", "- +", "-", "5 7 10", "(5-0 (7-0 10", "(5 (7 10", "- + 10 c",
                "- + 10 d", "- + 10 none", "- + 10 c x", "- + 10 c x y z", "IDLE 0 - + 10", "IDLE 100000 - + 10", "IDLE -5 - + 10",
                "IDLE x - + 10", "IDLE 0 - + 10 c", "IDLE 0 - +", "IDLE 0 - + 10 c d", "IDLE 1 2 3", "x + 10", "- x 10", "+ - 10",
                "idle 0 - + 1", "(+ + 1")] + ["XACK s g 4-0 5-0 6-0 7-0 8-0 9-0 10-0", "XPENDING s g", "XPENDING s g - + 10"]
    yield "counts of what was read", [
        "XGROUP CREATE s g $ MKSTREAM", "XINFO GROUPS s", "XADD s 1-0 a b", "XADD s 2-0 a b", "XADD s 3-0 a b", "XADD s 4-0 a b",
        "XADD s 5-0 a b", "XGROUP CREATE s g1 0", "XGROUP CREATE s g2 0 ENTRIESREAD 3", "XGROUP CREATE s g3 3-0",
        "XGROUP CREATE s g4 5-0", "XGROUP CREATE s g5 9-0", "XINFO GROUPS s", "XREADGROUP GROUP g1 c COUNT 1 STREAMS s >",
        "XREADGROUP GROUP g2 c COUNT 1 STREAMS s >", "XREADGROUP GROUP g3 c COUNT 1 STREAMS s >", "XINFO GROUPS s", "XDEL s 3-0",
        "XINFO GROUPS s", "XREADGROUP GROUP g1 c COUNT 1 STREAMS s >", "XREADGROUP GROUP g2 c COUNT 1 STREAMS s >", "XINFO GROUPS s",
        "XREADGROUP GROUP g1 c COUNT 1 STREAMS s >", "XREADGROUP GROUP g3 c STREAMS s >", "XINFO GROUPS s", "XADD s 6-0 a b",
        "XINFO GROUPS s", "XDEL s 1-0", "XINFO GROUPS s", "XTRIM s MAXLEN 1", "XINFO GROUPS s", "XTRIM s MAXLEN 0", "XINFO GROUPS s",
        "XADD s 7-0 a b", "XINFO GROUPS s", "XINFO STREAM s FULL"]


def claim_cases():
    steps = ["XADD s %d-0 a %d" % (i, i) for i in range(1, 16)] + [
        "XGROUP CREATE s g 0", "XREADGROUP GROUP g c COUNT 10 STREAMS s >", "XDEL s 3-0 8-0"]
    yield "XCLAIM", steps + ["XCLAIM s g " + rest for rest in (
        "d 0 1-0", "d 0 1-0 2-0 3-0 4-0", "d 0 3-0", "d 100000 1-0", "d -5 1-0 JUSTID", "d 0 1-0 JUSTID", "d 0 99-0",
        "d 0 12-0", "d 0 12-0 FORCE", "d 0 13-0 FORCE JUSTID", "d 0 99-0 FORCE", "e 0 12-0 IDLE 1000", "e 0 12-0 TIME 1000",
        "e 0 12-0 TIME -1", "e 0 12-0 TIME 9999999999999999", "e 0 12-0 IDLE -1", "e 0 12-0 RETRYCOUNT 7", "e 0 12-0 RETRYCOUNT -7",
        "e 0 12-0 RETRYCOUNT 7 JUSTID", "e 0 12-0 LASTID 99-9", "e 0 12-0 LASTID 1-1", "e 0 12-0 LASTID x", "e 0 12-0 LASTID",
        "e 0 12-0 IDLE x", "e 0 12-0 TIME x", "e 0 12-0 RETRYCOUNT x", "e 0 12-0 x", "e 0 x 12-0", "e 0 12-0 FORCE 13-0",
        "e x 12-0", "e 0 force", "f 0 77-7", "f 0 -", "f 0 5-0 5-0", "e 0 12-0 IDLE 9223372036854775807",
        "e 0 12-0 IDLE -9223372036854775808")] + [
            "XCLAIM s none d 0 1-0", "XCLAIM none g d 0 1-0", "XCLAIM none g d x 1-0", "XCLAIM s none d x x", "XPENDING s g",
            "XPENDING s g - + 20", "XINFO STREAM s FULL COUNT 0", "XINFO GROUPS s", "SET k v", "XCLAIM k g d 0 1-0"]
    yield "XAUTOCLAIM", steps + ["XAUTOCLAIM s g " + rest for rest in (
        "d 0 0 COUNT 2", "d 0 2-0 COUNT 2", "d 0 4-0 COUNT 3 JUSTID", "d 0 0", "d 100000 0", "e 0 0 JUSTID COUNT 1", "e 0 (1-0 COUNT 1",
        "e 0 - COUNT 1", "e 0 + COUNT 1", "e x 0", "e 0 x", "e -1 0 COUNT 1", "e 0 0 COUNT 0", "e 0 0 COUNT -1", "e 0 0 COUNT x",
        "e 0 0 COUNT", "e 0 0 x", "e 0 0 COUNT 576460752303423488", "e 0 0 COUNT 576460752303423487", "e 0 99-0", "e 0 0 justid",
        "e 0 (" + MAX_ID)] + [
            "XAUTOCLAIM s none d 0 0", "XAUTOCLAIM none g d 0 0", "XAUTOCLAIM none g d x 0", "XPENDING s g", "XPENDING s g - + 20",
            "XINFO STREAM s FULL COUNT 0", "XTRIM s MAXLEN 0", "XAUTOCLAIM s g d 0 0 COUNT 3", "XAUTOCLAIM s g d 0 4-0", "XPENDING s g",
            "SET k v", "XAUTOCLAIM k g d 0 0"]
    many = batches([("XADD", "s", "%d-0" % i, "a", "b") for i in range(1, 400)])
    yield "XAUTOCLAIM goes on where it has stopped", many + [
        "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >", "XAUTOCLAIM s g d 0 0 JUSTID", "XAUTOCLAIM s g d 0 101 JUSTID",
        "XAUTOCLAIM s g e 100000 0 COUNT 3 JUSTID", "XAUTOCLAIM s g e 100000 0 COUNT 30 JUSTID", "XAUTOCLAIM s g e 0 395 JUSTID",
        "XPENDING s g"]


def payload(kind, nodes=(), head=b"", groups=b"\x00"):
    body = bytes([kind, len(nodes)])
    for (ms, seq), node in nodes:
        body += b"\x10" + ms.to_bytes(8, "big") + seq.to_bytes(8, "big") + rdb_string(node)
    return with_footer(body + head + groups)


def dump_cases():
    # One entry, 1-1 a 1, as Redis has it.
    node = bytes.fromhex("1e000000" "0c00" "0101" "0001" "0101" "816102" "0001" "0201" "0001" "0001" "0101" "0401" "ff")
    # A group g at 1-1 with the consumer c, which was seen at 2000 and has 1-1 pending, given three times, last at 1000.
    raw = (1).to_bytes(8, "big") * 2
    group = (b"\x01\x01g\x01\x01%s\x01" + raw + (1000).to_bytes(8, "little") + b"\x03" + b"\x01\x01c"
             + (2000).to_bytes(8, "little") + b"\x01" + raw)
    new = b"\x01\x01\x01\x01\x01\x00\x00\x01"
    sound = payload(19, [((1, 1), node)], new, group % b"\x01")
    old = payload(15, [((1, 1), node)], b"\x01\x01\x01", group % b"")
    for name, data in (("of Redis 7", sound), ("of Redis 5", old), ("without entries", payload(19, [], b"\x00\x05\x05" + b"\x00" * 5)),
                       ("that knows not what was read", payload(19, [((1, 1), node)], new, group % (b"\x81" + b"\xff" * 8)))):
        yield "RESTORE of a stream %s" % name, [
            ("RESTORE", "s", "0", data), "TYPE s", "XRANGE s - +", "XINFO STREAM s", "DUMP s", "XINFO STREAM s FULL", "XPENDING s g",
            "XREADGROUP GROUP g c STREAMS s 0", "XADD s 7-7 a b", "XREADGROUP GROUP g d STREAMS s >", "XACK s g 1-1", "XPENDING s g",
            "XDEL s 1-1", "XINFO STREAM s", ("RESTORE", "s", "0", data), ("RESTORE", "s", "0", data, "REPLACE"), "DUMP s"]
    cut = [sound[2:n] for n in range(2, len(sound) - 11, 3)]
    yield "RESTORE of a damaged stream", ["CONFIG SET sanitize-dump-payload yes"] + [
        ("RESTORE", "s", "0", with_footer(b"\x13\x01"[:2] + part)) for part in cut] + [
            ("RESTORE", "s", "0", data) for data in (
                payload(19, [((1, 1), node[:-1] + b"\xfe")], new), payload(19, [((1, 1), b"")], new), payload(19, [], new),
                payload(19, [((1, 1), node), ((1, 1), node)], new), payload(19, [((1, 1), node[:5] + b"\x01" + node[6:])], new),
                payload(19, [((1, 1), node)], new, b"\x02" + (group % b"\x01")[1:] * 2),
                payload(19, [((1, 1), node)], new, (group % b"\x01")[:-16] + b"\x00" * 16))] + [
                    "EXISTS s", "CONFIG SET sanitize-dump-payload no"]


def wrong_type_cases():
    calls = ["XADD k 1-1 a b", "XADD k x a b", "XADD k * a", "XLEN k", "XRANGE k - +", "XRANGE k x +", "XREVRANGE k + -",
             "XDEL k 1-1", "XDEL k x", "XTRIM k MAXLEN 1", "XTRIM k x", "XREAD STREAMS k 0", "XREADGROUP GROUP g c STREAMS k >",
             "XGROUP CREATE k g 0", "XGROUP CREATE k g 0 MKSTREAM", "XGROUP SETID k g 0", "XGROUP DESTROY k g",
             "XGROUP CREATECONSUMER k g c", "XGROUP DELCONSUMER k g c", "XACK k g 1-1", "XACK k g x", "XCLAIM k g c 0 1-1",
             "XAUTOCLAIM k g c 0 0", "XPENDING k g", "XPENDING k g - + 1", "XINFO STREAM k", "XINFO GROUPS k", "XINFO CONSUMERS k g",
             "XSETID k 1-1", "XADD k NOMKSTREAM 1-1 a b"]
    yield "commands on streams and other values", [step for make in ("SET k v", "RPUSH k a", "SADD k a", "ZADD k 1 a", "HSET k a 1")
                                                   for step in ["DEL k", make] + calls] + ["DEL k"]
    yield "a stream and other commands", ["XADD s 1-1 a b"] + [call for call in (
        "GET s", "APPEND s x", "INCR s", "STRLEN s", "SETRANGE s 0 x", "GETDEL s", "GETEX s", "GETBIT s 0", "BITCOUNT s", "PFADD s a",
        "LPUSH s a", "LLEN s", "SADD s a", "SCARD s", "ZADD s 1 a", "ZCARD s", "HSET s a 1", "HLEN s", "SORT s", "MGET s", "LPOP s",
        "SUNION s", "ZUNION 1 s", "GEOPOS s a", "LCS s s", "BITFIELD s GET u8 0", "SET s x GET")] + ["XRANGE s - +"]
    yield "a stream and commands on any key", [
        "XADD s 1-1 a b", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >", "EXPIRE s 100", "XADD s 2-1 a b", "TTL s", "XDEL s 1-1",
        "XACK s g 1-1", "TTL s", "PERSIST s", "COPY s t", "XRANGE t - +", "XINFO GROUPS t", "RENAME t u", "XLEN u", "COPY s u", "COPY s u REPLACE",
        "MOVE u 1", "SELECT 1", "XLEN u", "SELECT 0", "SCAN 0 COUNT 100 TYPE stream", "SCAN 0 COUNT 100 TYPE string", "OBJECT FREQ s",
        "TOUCH s", "EXISTS s", "SET s now", "DEL s", "XADD s 1-1 a b", "UNLINK s", "XADD s 1-1 a b", "PEXPIRE s 0", "EXISTS s",
        "XADD s 1-1 a b", "SETNX s v", "MSETNX s v i v", "XTRIM s MAXLEN 0", "EXISTS s", "XLEN s", "DEBUG OBJECT none", "KEYS *", "DBSIZE"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    steps = ["XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE t g $ MKSTREAM"]
    adds = pick([1, 3, 12])
    names = ["a", "b", "c"]
    now = 0
    some_id = lambda: "%d-%d" % (rng.randint(0, now), rng.randint(0, 2))
    end = lambda: pick(["-", "+", some_id(), "(" + some_id(), str(rng.randint(0, now + 1))])
    for _ in range(400):
        key = pick("st")
        now += rng.randint(0, 1)
        fields = lambda: [pick(["f", "f", "1", "g", "v" * 70]) for _ in range(2 * rng.randint(1, pick([1, 1, 3])))]
        trim = lambda: pick([[], [], ["MAXLEN", pick("=~"), str(rng.randint(0, 150))],
                             ["MINID", pick("=~"), some_id()], ["MAXLEN", "~", "5", "LIMIT", str(rng.randint(0, 200))]])
        steps.append(tuple(pick([
            lambda: ["XADD", key] + trim() + ["%d-*" % now] + fields()] + adds * [
            lambda: ["XADD", key, "%d-*" % now, "f", "g"],
            lambda: ["XADD", key, "%d-*" % now] + fields()] + [
            lambda: ["XADD", key, some_id(), "f", "g"],
            lambda: ["XDEL", key] + [some_id() for _ in range(rng.randint(1, 4))],
            lambda: ["XTRIM", key] + (trim() or ["MAXLEN", "100"]), lambda: ["XLEN", key],
            lambda: ["XRANGE", key, end(), end()], lambda: ["XREVRANGE", key, end(), end(), "COUNT", "5"],
            lambda: ["XREAD", "COUNT", "3", "STREAMS", "s", "t", some_id(), some_id()],
            lambda: ["XREADGROUP", "GROUP", "g", pick(names), "COUNT", str(rng.randint(1, 5)), "STREAMS", key, ">"],
            lambda: ["XREADGROUP", "GROUP", "g", pick(names), "NOACK", "COUNT", "2", "STREAMS", "s", "t", ">", ">"],
            lambda: ["XREADGROUP", "GROUP", "g", pick(names), "STREAMS", key, some_id()],
            lambda: ["XACK", key, "g", some_id(), some_id()],
            lambda: ["XCLAIM", key, "g", pick(names), "0", some_id(), some_id()] + pick([[], ["FORCE"], ["JUSTID"]]),
            lambda: ["XAUTOCLAIM", key, "g", pick(names), "0", some_id(), "COUNT", "3"], lambda: ["XPENDING", key, "g"],
            lambda: ["XPENDING", key, "g", end(), end(), "7"], lambda: ["XINFO", "STREAM", key],
            lambda: ["XINFO", "STREAM", key, "FULL"], lambda: ["XINFO", "GROUPS", key],
            lambda: pick([["XLEN", key], ["XLEN", key], ["XSETID", key, some_id()],
                          ["XGROUP", "SETID", key, "g", some_id()], ["XGROUP", "DELCONSUMER", key, "g", pick(names)]])])()))
    return steps + ["XINFO STREAM s FULL COUNT 0", "XINFO STREAM t FULL COUNT 0"]


def random_cases():
    for seed in range(24):
        yield "random streams of entries %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, add_cases, range_cases, trim_cases, read_cases, group_cases, delivery_cases, claim_cases,
                 dump_cases, wrong_type_cases, random_cases):
        for name, steps in make():
            yield "streams: " + name, steps
