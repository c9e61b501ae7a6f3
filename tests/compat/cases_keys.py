"""Hand-written streams over walks, databases, and commands that bring a value to another key."""

import random

from steps import Batch, Sleep, command, on, walk

ROWS = ["scan", "keys", "randomkey", "rename", "renamenx", "copy", "move", "msetnx", "lcs", "dump",
        "restore", "object|encoding", "object|freq", "object|idletime", "object|refcount",
        "memory|usage", "memory|stats", "memory|doctor", "memory|purge", "memory|malloc-stats",
        "pfadd", "pfcount", "pfmerge"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def both_forms(key, value):
    """A key that was set blindly, and one that was made by a read-modify-write."""
    return [("SET", key, value), ("SETNX", key + "2", value)]


def walk_cases():
    few = ["SET k%d v" % i for i in range(8)] + ["SETNX n%d v" % i for i in range(8)]
    yield "SCAN of few keys", few + [
        walk(), walk("MATCH k*"), walk("MATCH *1"), walk("MATCH"), walk("COUNT 1"),
        walk("COUNT 1000 TYPE string"), walk("TYPE hash"), walk("TYPE STRING"), walk("TYPE what"),
        walk("MATCH *"), walk("match [kn]3 count 3"), walk("MATCH k3"), walk("MATCH nothing*"),
        "SCAN 0 COUNT 1000", "SCAN 0 COUNT 1000 MATCH *2", "SCAN 0 MATCH a MATCH k1 COUNT 1000"]
    yield "SCAN of no key", ["SCAN 0", "SCAN 0 COUNT 100 MATCH a*", walk()]
    yield "SCAN with bad arguments", [
        "SCAN", "SCAN x", "SCAN 0x", ("SCAN", " 0"), ("SCAN", ""), "SCAN -1x", "SCAN 1.5",
        "SCAN 99999999999999999999", "SCAN 0 COUNT", "SCAN 0 COUNT 0", "SCAN 0 COUNT -1",
        "SCAN 0 COUNT x", "SCAN 0 COUNT 99999999999999999999", "SCAN 0 MATCH", "SCAN 0 TYPE",
        "SCAN 0 what", "SCAN 0 what 1", "SCAN 0 COUNT 1 what", "SCAN 0 COUNT 9223372036854775807",
        "SCAN 0 COUNT 5 COUNT x"]
    many = batches(["SET key:%d v" % i for i in range(3000)]
                   + ["SETNX other:%d v" % i for i in range(3000)], 500)
    yield "SCAN of many keys", many + [
        walk(), walk("COUNT 1"), walk("COUNT 100"), walk("COUNT 100000"), walk("MATCH *77*"),
        "DBSIZE"] + batches(["DEL key:%d other:%d" % (i, i + 1) for i in range(0, 3000, 2)]) + [
            walk(), walk("MATCH other:* COUNT 7"), "DBSIZE"]
    yield "SCAN shows neither expired nor removed keys", [
        "SET a 1 PX 30", "SET b 1", "SET b 2 PX 30", "SET c 1", "EXPIRE c 100", "SET d 1", "DEL d",
        "SETNX e 1", "DEL e", "SET f 1", "GETDEL f", "SET g 1", Sleep(80), walk(), "KEYS *",
        "SCAN 0 COUNT 100"]
    patterns = ["*", "k*", "*[13579]", "?1", "k[^1]", "\\*", "none", "", "[", "k1", "**", "k\\1"]
    yield "KEYS", few + [("KEYS", pattern) for pattern in patterns] + ["KEYS", "KEYS a b"]
    yield "KEYS and an empty key", [
        ("SET", "", "v"), "KEYS *", "KEYS **", "KEYS ***", "KEYS ?", ("KEYS", ""), "SCAN 0 MATCH *",
        "SCAN 0 MATCH **"]
    yield "KEYS of names of any bytes", [
        ("SET", b"bin\x00\r\n\xff", "v"), ("SET", "", "v"), ("SET", b"k" * 400, "v"),
        ("SET", b"\xc3\xa9", "v"), ("KEYS", "*"), ("KEYS", b"bin\x00*"), ("KEYS", b"\xc3*"),
        ("KEYS", "k" * 400), walk()]
    yield "RANDOMKEY", ["RANDOMKEY", "SET k v", "RANDOMKEY", "RANDOMKEY", "DEL k", "RANDOMKEY",
                        "SET k v PX 20", Sleep(60), "RANDOMKEY", "SELECT 3", "SETNX a 1",
                        "RANDOMKEY", "SELECT 0", "RANDOMKEY", "RANDOMKEY x"]


def database_cases():
    fill = []
    for database in range(16):
        fill += ["SELECT %d" % database, "SET k d%d" % database, "SET only%d v" % database,
                 "SETNX n v", "DBSIZE"]
    look = []
    for database in (0, 1, 7, 15):
        look += ["SELECT %d" % database, "GET k", "DBSIZE", "KEYS *", walk(), "RANDOMKEY x"]
    yield "databases are apart", fill + look + [
        "SELECT 7", "FLUSHDB"] + look + ["FLUSHALL"] + look
    yield "databases of two connections", [
        on(0, "SELECT 1"), on(1, "SELECT 2"), on(0, "SET k one"), on(1, "SET k two"),
        on(0, "GET k"), on(1, "GET k"), on(1, "FLUSHDB"), on(0, "GET k"), on(1, "GET k"),
        on(0, "DBSIZE"), on(1, "DBSIZE"), on(0, "RESET"), on(0, "GET k")]
    yield "SWAPDB: arguments", [
        "SET k zero", "SWAPDB", "SWAPDB 0", "SWAPDB 0 1 2", "SWAPDB a b", "SWAPDB 0 b", "SWAPDB b 0",
        "SWAPDB 0 16", "SWAPDB 16 0", "SWAPDB -1 0", "SWAPDB 0 -1", "SWAPDB 99999999999 0",
        "SWAPDB 0 99999999999", "SWAPDB 3000000000 0", "SWAPDB -3000000000 0", "SWAPDB 1.5 0",
        "SWAPDB 0 99999999999999999999", 'SWAPDB "" 0', 'SWAPDB 0 ""', "SWAPDB 16 16", "SWAPDB 00 1",
        "SWAPDB +1 0", "SWAPDB 0 0", "SWAPDB 15 15", "GET k", "swapdb 0 1", "GET k", "SWAPDB 1 0",
        "GET k", "COMMAND INFO swapdb", "COMMAND GETKEYS SWAPDB 0 1"]
    swapped = both_forms("k", "zero") + ["SET e v EX 1000", "SELECT 1", "SET k one", "SET one v",
                                         "SELECT 0", "SWAPDB 0 1"]
    both = ["SELECT 1"] + look + ["TTL e", "SELECT 0"]
    yield "SWAPDB", swapped + look + both + [
        "GET k", "APPEND k x", "DEL one", "SET new v", "DBSIZE", "SELECT 1", "DEL k2", "DBSIZE",
        "SELECT 0", "SWAPDB 1 0"] + look + both + [
        "SWAPDB 0 7", "SWAPDB 7 15", "SWAPDB 15 3", "SELECT 3", "KEYS *", "DBSIZE", "TTL e",
        "FLUSHDB", "SWAPDB 3 0", "SELECT 0", "DBSIZE", "SET k v", "DBSIZE", "SWAPDB 0 1", "DBSIZE",
        "FLUSHALL"] + look
    yield "SWAPDB of two connections", [
        on(0, "SET k zero"), on(1, "SELECT 1"), on(1, "SET k one"), on(0, "SWAPDB 0 1"),
        on(1, "GET k"), on(0, "GET k"), on(1, "FLUSHDB"), on(1, "DBSIZE"), on(0, "DBSIZE"),
        on(1, "SWAPDB 1 0"), on(0, "GET k"), on(1, "GET k"), on(0, "MULTI"), on(0, "SET k 1"),
        on(0, "SWAPDB 0 1"), on(0, "GET k"), on(0, "SWAPDB 0 x"), on(0, "EXEC"), on(1, "GET k")]
    steps = both_forms("k", "v") + ["SET e v EX 1000"]
    steps += ["MOVE k 1", "MOVE k 1", "MOVE k2 1", "MOVE e 1", "EXISTS k k2 e", "SELECT 1", "GET k",
              "GET k2", "TTL e", "SET b one", "SELECT 0", "SET b zero", "MOVE b 1", "GET b",
              "MOVE none 1", "MOVE b 0", "MOVE b 16", "MOVE b -1", "MOVE b x", "MOVE b", "DBSIZE",
              "MOVE b 99999999999", "SELECT 1", "DBSIZE", "MOVE k 0", "GET k", "SELECT 0", "GET k"]
    yield "MOVE", steps


def move_cases():
    for name in ("RENAME", "RENAMENX"):
        steps = both_forms("k", "v") + ["SET e v EX 1000", "SETNX t old"]
        steps += [name + pair for pair in (
            " k a", " k a", " k2 a", " a a", " none none", " none a", " e t", " a", " a b c")]
        steps += ["GET a", "GET k2", "TTL e", "TTL t", "GET t", "EXISTS k k2 e a t", "DBSIZE",
                  "SET big 1", "INCR big", name + " big big2", "INCR big2", "KEYS *",
                  (name, b"\x00", "x"), ("SET", b"\x00", "v"), (name, b"\x00", b"\xff"),
                  ("GET", b"\xff")]
        yield name, steps
    steps = both_forms("k", "v") + ["SET e v EX 1000", "SETNX t old"]
    steps += ["COPY" + arguments for arguments in (
        " k a", " k a", " k a REPLACE", " k2 b", " none x", " none k REPLACE", " k k", " k k REPLACE",
        " e f", " e t", " e t replace", " k c DB 1", " k k DB 1", " k k DB 0", " k c DB 1 REPLACE",
        " k c REPLACE DB 1", " k c DB 16", " k c DB -1", " k c DB x", " k c DB", " k c what", " k",
        " k c DB 1 DB 2", " k c DB 99999999999", "")]
    steps += ["GET a", "GET b", "TTL f", "TTL t", "TTL e", "SET a w", "GET k", "KEYS *", "SELECT 1",
              "KEYS *", "GET c", "SELECT 2", "KEYS *"]
    yield "COPY", steps
    steps = ["MSETNX a 1 b 2", "MGET a b", "MSETNX b 3 c 4", "MGET a b c", "MSETNX c 1 c 2", "GET c",
             "MSETNX d 1 e", "MSETNX d", "MSETNX", "SET t v PX 20", Sleep(50), "MSETNX t 1 u 2",
             "MGET t u", "MSETNX z 1 y 2 x 3 a 4", "MGET x y z", "DBSIZE", ("MSETNX", "", ""),
             "EXISTS z"]
    yield "MSETNX", steps


def lcs_cases():
    texts = ["", "a", "abc", "ohmytext", "mynewtext", "xxabcyyabc", "abcabcabc", "zabczzabcz",
             "aaaa", "bbbb", "abab" * 5, "hello world", "low hold re"]
    steps = []
    for first in texts:
        for second in texts:
            steps += [("SET", "a", first), ("SETNX", "fresh", "x"), ("SET", "b", second), "LCS a b"]
            steps += ["LCS a b " + options for options in (
                "LEN", "IDX", "IDX WITHMATCHLEN", "IDX MINMATCHLEN 2",
                "IDX MINMATCHLEN 3 WITHMATCHLEN")]
    yield "LCS", batches(steps, 200)
    yield "LCS with bad arguments", ["SET a abc", "SET b abd"] + [
        "LCS" + arguments for arguments in (
            "", " a", " a none", " none none", " none a IDX", " a b IDX LEN", " a b LEN IDX",
            " a b what", " a b MINMATCHLEN", " a b MINMATCHLEN x", " a b IDX MINMATCHLEN -5",
            " a b MINMATCHLEN 2", " a b WITHMATCHLEN", " a b LEN WITHMATCHLEN", " a a idx")]
    draw = random.Random(3)
    steps = []
    for _ in range(150):
        for key in ("a", "b"):
            steps.append(("SET", key, bytes(draw.choices(b"abcd", k=draw.randint(0, 60)))))
        steps += ["LCS a b", "LCS a b LEN", "LCS a b IDX WITHMATCHLEN"]
    yield "LCS at random", batches(steps, 100)


# Values in every form of the serialization: integers of each width, lengths of one, two and five
# bytes; and what looks like an integer and is none.
DUMPED = ["", "0", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32768", "-32769",
          "2147483647", "2147483648", "-2147483648", "-2147483649", "12345678901", "007", "+1",
          "1.0", "-0", "a", b"\x00\xff\r\n", "abcdefghij0123456789", "9223372036854775807",
          bytes(range(63)), bytes(range(64)), bytes(range(256))]


def payload(data, version=10):
    """Serialized data with its version and checksum, as DUMP ends."""
    data += version.to_bytes(2, "little")
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95ac9329ac4bc9b5 if crc & 1 else 0)
    return data + crc.to_bytes(8, "little")




def dump_cases():
    steps = []
    for value in DUMPED:
        steps += [("SET", "k", value), "DUMP k", ("SETNX", "f", value), "DUMP f", "DEL f"]
    yield "DUMP", batches(steps) + ["DUMP none", "DUMP", "DUMP k k"]
    sound = payload(b"\x00\xc0\x05")
    steps = []
    for arguments in ([], ["REPLACE"], ["replace"], ["ABSTTL"], ["IDLETIME", "5"], ["FREQ", "5"],
                      ["IDLETIME", "-1"], ["FREQ", "256"], ["FREQ", "x"], ["IDLETIME"], ["what"],
                      ["IDLETIME", "5", "FREQ", "5"], ["REPLACE", "ABSTTL"]):
        for ttl in ("0", "100000", "-1", "x", "1", "33177117420000"):
            steps += [("RESTORE", "k", ttl, sound, *arguments), "GET k", "EXISTS k",
                      ("RESTORE", "new", ttl, sound, *arguments), "EXISTS new", "DEL new k",
                      "SET k old"]
    yield "RESTORE", [step for step in steps if step[:3] != ("RESTORE", "k", "1")
                      and step[:3] != ("RESTORE", "new", "1")]
    yield "RESTORE with a deadline", [
        ("RESTORE", "k", "100000", sound), "TTL k", "GET k", "RESTORE k 0", "RESTORE k",
        ("RESTORE", "k", "33177117420000", sound, "REPLACE", "ABSTTL"), "PEXPIRETIME k",
        ("RESTORE", "k", "1000", sound, "REPLACE", "ABSTTL"), "EXISTS k",
        ("RESTORE", "k", "1000", sound, "ABSTTL"), "EXISTS k",
        ("RESTORE", "k", "20", sound), "GET k", Sleep(60), "GET k",
        ("RESTORE", "k", "9223372036854775807", sound), "GET k", "EXISTS k", "SET k old",
        ("RESTORE", "k", "9223372036854775807", sound, "REPLACE"), "GET k",
        ("RESTORE", "k", "9223372036854775807", sound, "ABSTTL"), "GET k", "PEXPIRETIME k", "EXPIRETIME k",
        "PEXPIREAT k 9223372036854775300", "EXPIRETIME k", "PEXPIREAT k 9223372036854775308",
        "EXPIRETIME k"]
    damaged = [sound[:i] for i in range(len(sound))] + [
        sound[:i] + bytes([sound[i] ^ 1]) + sound[i + 1:] for i in range(len(sound))]
    yield "RESTORE of what is damaged", [("RESTORE", "k", "0", data) for data in damaged] + [
        "EXISTS k"]
    foreign = [b"\x00\xc4ab", b"\x00\xc3\x02\x05ab", b"\x00\xc3\x02\x02\x01a", b"\x00\xc3\x05\x06\x00a\x40\x00",
               b"\x00\xc3\x04\x07\x00a\x60\x00", b"\x00\xc3\x04\x06\x00a\x60\x05",
               b"\x00\xc3\x06\x20\x00a\xe0\x14\x00", b"\x00\xc3\x05\x1f\x00a\xe0\x14\x00",
               b"\x00\x40\x02ab", b"\x00\x80\x00\x00\x00\x02ab",
               b"\x00\x81\x00\x00\x00\x00\x00\x00\x00\x02ab", b"\x00\x02abc"]
    yield "RESTORE of what Redis never makes", [
        item for data in foreign for item in (
            ("RESTORE", "k", "0", payload(data), "REPLACE"), "GET k")] + [
        ("RESTORE", "v", "0", payload(b"\x00\x02ab", version)) for version in (11, 9, 6, 1, 10)]


def object_cases():
    steps = []
    for value in DUMPED + ["9999", "10000", "x" * 44, "x" * 45]:
        steps += [("SET", "k", value), "OBJECT ENCODING k", "OBJECT REFCOUNT k",
                  "OBJECT IDLETIME k", "OBJECT FREQ k", "MEMORY USAGE k"]
    yield "OBJECT of a string", batches(steps)
    yield "OBJECT and MEMORY at their edges", [
        "OBJECT", "OBJECT what k", "OBJECT ENCODING", "OBJECT ENCODING a b", "OBJECT ENCODING none",
        "OBJECT REFCOUNT none", "OBJECT IDLETIME none", "OBJECT FREQ none", "MEMORY", "MEMORY what",
        "MEMORY USAGE", "MEMORY USAGE none", "MEMORY USAGE none SAMPLES", "SET k v",
        "MEMORY USAGE k SAMPLES x", "MEMORY USAGE k SAMPLES -1", "MEMORY USAGE k what 5",
        "MEMORY USAGE k SAMPLES 5", "MEMORY USAGE k samples 0", "MEMORY PURGE", "MEMORY PURGE x",
        "MEMORY STATS x", "MEMORY DOCTOR x"]


def hyperloglog_cases():
    draw = random.Random(11)
    yield "PFADD and PFCOUNT", [
        "PFADD a", "GET a", "PFADD a", "PFADD a x", "GET a", "PFADD a x", "GET a", "PFCOUNT a",
        "GET a", "PFCOUNT a", "PFADD a x y z", "GET a", "PFCOUNT a none", "PFCOUNT none",
        "PFCOUNT none none", "EXISTS none", ("PFADD", "a", ""), "PFCOUNT a", "TYPE a", "STRLEN a",
        "EXPIRE a 1000", "PFADD a w", "TTL a", "PFCOUNT a", "TTL a", "PFADD", "PFCOUNT", "PFMERGE",
        "PFMERGE b", "GET b", "PFMERGE b a", "GET b", "PFCOUNT b", "TTL b", "PFMERGE a none",
        "TTL a", "SET s x", "PFADD s y", "PFCOUNT s", "PFCOUNT a s", "PFMERGE a s", "PFMERGE s a",
        "GET s", "APPEND a junk", "PFCOUNT a", "PFADD a more", "PFCOUNT a b", "PFMERGE c a"]
    yield "PFDEBUG", [
        "PFDEBUG", "PFDEBUG ENCODING", "PFDEBUG ENCODING none", "PFDEBUG BOGUS none",
        "PFADD a x y z", "PFDEBUG BOGUS a", "PFDEBUG encoding a", "PFDEBUG DECODE a",
        "PFDEBUG DECODE a b", "EXPIRE a 1000", "PFDEBUG GETREG a", "PFDEBUG ENCODING a", "TTL a",
        "PFDEBUG DECODE a", "PFDEBUG GETREG a", "PFCOUNT a", "PFADD b", "PFDEBUG DECODE b",
        "PFDEBUG TODENSE b", "PFDEBUG TODENSE b", "PFDEBUG ENCODING b", "GET b", "SET s x",
        "PFDEBUG ENCODING s", "PFDEBUG GETREG s", "PFDEBUG BOGUS s", "PFDEBUG TODENSE none"]
    for name, count, in_one in (("few", 40, 1), ("some", 700, 3), ("many", 6000, 50)):
        steps = []
        for i in range(count):
            key = draw.choice(["a", "a", "b"])
            steps.append(("PFADD", key, *(b"%x" % draw.getrandbits(40) for _ in range(in_one))))
            if draw.random() < 20 / count:
                steps += ["GET a", "PFCOUNT a", "GET a", "PFCOUNT a b"]
        yield "PFADD of %s elements" % name, batches(steps, 100) + [
            "GET a", "GET b", "PFCOUNT a", "PFCOUNT b", "PFMERGE c b", "GET c", "PFMERGE b a",
            "GET b", "PFMERGE d a b c", "GET d", "PFCOUNT d", "PFCOUNT a b c d"]
    header = b"HYLL\x01\x00\x00\x00" + b"\x00" * 7 + b"\x80"
    steps = []
    for data in (b"", b"HYLL", header, header[:15], header + b"\x7f\xff",
                 header + b"\x7f\xff\x00", header + b"\x7f\xfe", header + b"\x7f\xfe\x80",
                 header + b"\x7f\xfb\xfb", header + b"\x7f\xfc\xfb", b"hyll" + header[4:],
                 header[:4] + b"\x02" + header[5:], header[:4] + b"\x00" + header[5:],
                 header[:4] + b"\x00" + header[5:] + b"\xff" * 12288,
                 header[:4] + b"\x00" + header[5:] + b"\x00" * 12287):
        steps += [("SET", "k", data), "PFCOUNT k", "PFCOUNT k none", ("SET", "k", data),
                  "PFADD k a b c", "GET k", ("SET", "k", data), "PFMERGE to k", "GET to",
                  "PFMERGE k", "GET k", "SET s x", "PFMERGE s k", "PFMERGE k s", "PFMERGE to s k",
                  "PFMERGE to k s", "DEL to s", ("SET", "k", data), "PFDEBUG ENCODING k",
                  "PFDEBUG DECODE k", "PFDEBUG TODENSE k", "GET k"]
    yield "HyperLogLogs that are none", batches(steps)


def row_cases():
    yield "COMMAND INFO of commands on keys", ["COMMAND INFO " + row for row in ROWS] + [
        "COMMAND GETKEYS RENAME a b", "COMMAND GETKEYS COPY a b DB 1", "COMMAND GETKEYS MOVE a 1",
        "COMMAND GETKEYS MSETNX a 1 b 2", "COMMAND GETKEYS LCS a b IDX", "COMMAND GETKEYS SCAN 0",
        "COMMAND GETKEYS OBJECT ENCODING a", "COMMAND GETKEYS MEMORY USAGE a SAMPLES 5",
        "COMMAND GETKEYS PFDEBUG GETREG a",
        "COMMAND GETKEYS PFMERGE a", "COMMAND GETKEYSANDFLAGS PFMERGE a",
        "COMMAND GETKEYS PFMERGE a b c", "COMMAND GETKEYSANDFLAGS PFMERGE a b c",
        "COMMAND GETKEYSANDFLAGS RENAME a b", "COMMAND GETKEYSANDFLAGS COPY a b",
        "COMMAND GETKEYSANDFLAGS LCS a b"]


def cases():
    for family in (walk_cases, database_cases, move_cases, lcs_cases, dump_cases, object_cases,
                   hyperloglog_cases, row_cases):
        yield from family()
