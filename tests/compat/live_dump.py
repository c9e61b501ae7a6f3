"""Collections move between redis-server and the agent by DUMP and RESTORE, in both directions.

What an agent has restored is dumped from it and read by redis-server, beside the original.
"""

import random
import struct

from live import test
from servers import agent, redis_server


def crc64(data):
    crc = 0
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >> 8)
    return crc


def crc_table():
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x95ac9329ac4bc9b5 if byte & 1 else 0)
        yield byte


CRC_TABLE = list(crc_table())


def with_footer(body):
    body += struct.pack("<H", 10)
    return body + struct.pack("<Q", crc64(body))


def rdb_string(text):
    return b"\x80" + struct.pack(">I", len(text)) + text


def ziplist(texts):
    """An encoding that Redis 7.0 reads and no longer writes."""
    entries, last = b"", 0
    for text in texts:
        entry = bytes([last]) if last < 254 else b"\xfe" + struct.pack("<I", last)
        if text.isdigit() and int(text) <= 12:
            entry += bytes([0xf1 + int(text)])
        elif text.lstrip(b"-").isdigit() and b"%d" % int(text) == text:
            form, code = next((f, c) for f, c, bits in (("<b", 0xfe, 8), ("<h", 0xc0, 16), ("<i", 0xd0, 32),
                                                        ("<q", 0xe0, 64)) if abs(int(text)) < 1 << bits - 1)
            entry += bytes([code]) + struct.pack(form, int(text))
        elif len(text) < 64:
            entry += bytes([len(text)]) + text
        elif len(text) < 16384:
            entry += struct.pack(">H", 0x4000 | len(text)) + text
        else:
            entry += b"\x80" + struct.pack(">I", len(text)) + text
        last = len(entry)
        entries += entry
    head = struct.pack("<IIH", len(entries) + 11, 10 + len(entries) - last, len(texts))
    return rdb_string(head + entries + b"\xff")


def zipmap(texts, free):
    made = bytes([min(len(texts) // 2, 254)])
    for i, text in enumerate(texts):
        made += bytes([len(text)]) if len(text) < 254 else b"\xfe" + struct.pack("<I", len(text))
        made += bytes([free]) + text + b"f" * free if i % 2 else text
    return rdb_string(made + b"\xff")


def old_payloads(draw):
    """Payloads of types that only older servers have made."""
    for count in (1, 20, 150):
        texts = [b"%d" % i + draw.choice((b"", b"", b"x" * draw.choice((1, 62, 253, 300)))) for i in range(2 * count)]
        texts += [b"-1", b"-200", b"70000", b"-5000000000", b"007", b"y" * 17000]
        pairs = [b"m%d" % i if i % 2 == 0 else draw.choice((b"0", b"-0", b"1.5", b"inf", b"-inf", b"300", b"-1e+300"))
                 for i in range(2 * count)]
        length = b"\x80" + struct.pack(">I", 2)
        yield with_footer(b"\x09" + zipmap(texts, 0))
        yield with_footer(b"\x09" + zipmap(texts, 2))
        yield with_footer(b"\x0a" + ziplist(texts))
        yield with_footer(b"\x0c" + ziplist(pairs))
        yield with_footer(b"\x0d" + ziplist(texts))
        yield with_footer(b"\x0e" + length + ziplist(texts) + ziplist(pairs))
        scores = b"".join(rdb_string(m) + bytes([len(s)]) + s for m, s in zip(pairs[::2], (b"1.5", b"-0", b"7") * 50))
        yield with_footer(b"\x03\x80" + struct.pack(">I", count) + scores)


def texts_of(draw, count):
    kinds = (
        lambda i: b"%d" % i, lambda i: b"-%d" % (i * 1000003), lambda i: b"%d" % (i << 50), lambda i: b"t%d" % i,
        lambda i: b"0%d" % i, lambda i: b"%d:" % i + b"abc" * draw.choice((5, 30, 100)),
        lambda i: b"%d:" % i + draw.randbytes(draw.choice((3, 60, 70, 200))), lambda i: b"\x00\xff%d\r\n" % i,
    )
    return [draw.choice(kinds)(i) for i in range(1, count + 1)]


def fill(client, draw):
    """Keys of all types and encodings in redis-server."""
    for count in (1, 2, 12, 127, 128, 129, 600):
        texts = texts_of(draw, count)
        yield client, "RPUSH", b"list%d" % count, texts + texts[:3]
        yield client, "SADD", b"set%d" % count, texts
        for bits in (1, 20, 50):
            numbers = [b"%d" % ((i - count // 2) << bits) for i in range(count)]
            yield client, "SADD", b"ints%d_%d" % (bits, count), numbers
        yield client, "HSET", b"hash%d" % count, [part for text in texts for part in (text, draw.choice(texts))]
        small = [b"%d" % i for i in range(2 * count)]
        yield client, "HSET", b"small%d" % count, small
        scores = (b"0", b"-0", b"1", b"inf", b"-inf", b"0.1", b"1e300", b"-3.25", b"100000", b"5e-324")
        yield client, "ZADD", b"zset%d" % count, [p for text in texts for p in (draw.choice(scores), text)]
        yield client, "ZADD", b"ranks%d" % count, [p for i in range(count) for p in (b"%d" % (i // 3), b"m%d" % i)]
    yield client, "RPUSH", b"long", [b"a" * 5000, b"", draw.randbytes(9000), b"1", b"b" * 70000, b"c" * 300000]
    yield client, "HSET", b"longs", [b"a" * 70, b"b" * 64, b"c", b"d" * 100000, b"", b""]
    yield client, "ZADD", b"longer", [b"1", b"a" * 65, b"2", b""]
    for count in (1, 99, 100, 101, 350):
        yield from fill_stream(client, draw, b"stream%d" % count, count)
    yield client, "XGROUP", b"CREATE", [b"empty", b"group", b"0", b"MKSTREAM"]
    yield client, "SADD", b"edges", [b"-9223372036854775808", b"9223372036854775807", b"9223372036854775808", b""]
    yield client, "SADD", b"extremes", [b"-9223372036854775808", b"9223372036854775807", b"-1", b"0"]


def fill_stream(client, draw, key, count):
    """Entries with their gaps, two groups, consumers with pending entries and one without."""
    for i in range(1, count + 1):
        names = [b"name", b"12"] if draw.random() < 0.8 else [b"other", draw.randbytes(5)]
        yield client, "XADD", key, [b"%d-%d" % (i, i % 3)] + [part for name in names for part in (name, texts_of(draw, 1)[0])]
    for name, start in ((b"group", b"0"), (b"a longer name of a group, which Redis may compress " * 3, b"$")):
        yield client, "XGROUP", b"CREATE", [key, name, start]
    for name, some in ((b"one", b"3"), (b"another", b"40"), (b"", b"2")):
        yield client, "XREADGROUP", b"GROUP", [b"group", name, b"COUNT", some, b"STREAMS", key, b">"]
    yield client, "XGROUP", b"CREATECONSUMER", [key, b"group", b"idle"]
    yield client, "XDEL", key, [b"%d-%d" % (i, i % 3) for i in range(2, count, 7)]


def contents_of_stream(client, key):
    """Its entries, and all that it knows of groups, times too."""
    calls = (("XRANGE", key, "-", "+"), ("XINFO", "STREAM", key, "FULL", "COUNT", "0"), ("XINFO", "GROUPS", key))
    return [client.call(*call) for call in calls]


def contents(client, key):
    kind = client.call("TYPE", key).value
    if kind == b"stream":
        return kind, contents_of_stream(client, key)
    if kind == b"list":
        return kind, [item.value for item in client.call("LRANGE", key, "0", "-1").value]
    if kind == b"set":
        return kind, sorted(item.value for item in client.call("SMEMBERS", key).value)
    call = ("ZRANGE", key, "0", "-1", "WITHSCORES") if kind == b"zset" else ("HGETALL", key)
    items = [item.value for item in client.call(*call).value]
    if kind == b"zset":
        # Redis makes 0 of -0 when a sorted set becomes compact, and leaves it in one that is.
        items[1::2] = map(float, items[1::2])
    # Sorted sets as well: Redis believes an order that is damaged.
    return kind, sorted(zip(items[::2], items[1::2]))


def passes_through(redis, target, payload, name):
    """Brings a payload into the agent, and what that dumps back beside what redis-server has of it."""
    assert redis.call("RESTORE", "as_is", "0", payload, "REPLACE").value == b"OK", name
    assert target.call("RESTORE", "k", "0", payload, "REPLACE").value == b"OK", name
    for call in (("TYPE",), ("OBJECT", "ENCODING")):
        told = target.call(*call, "k").value, redis.call(*call, "as_is").value
        assert told[0] == told[1], (name, told)
    dumped = target.call("DUMP", "k").value
    assert redis.call("RESTORE", "back", "0", dumped, "REPLACE").value == b"OK", name
    assert contents(redis, "back") == contents(redis, "as_is"), name
    if target.call("TYPE", "k").value == b"stream":
        assert contents(target, "k") == contents(redis, "as_is"), name
    # The agent understands its own payloads, too, and gives the same again, once a -0 is a 0.
    for last in (False, True):
        assert target.call("RESTORE", "k", "0", dumped, "REPLACE").value == b"OK", name
        before, dumped = dumped, target.call("DUMP", "k").value
        assert dumped == before or not last, name
    told = target.call("OBJECT", "ENCODING", "k").value, redis.call("OBJECT", "ENCODING", "back").value
    assert told[0] == told[1], (name, told)


class Both:
    """redis-server and the agent, and a client of each."""

    def __init__(self, context):
        self.servers = [redis_server(context.redis_binary), agent(context.agent_binary)]

    def __enter__(self):
        self.clients = [server.start().connect(timeout_s=60) for server in self.servers]
        assert self.clients[0].call("CONFIG", "SET", "sanitize-dump-payload", "yes").value == b"OK"
        return self.clients

    def __exit__(self, *_):
        for server in self.servers:
            server.stop()


@test("collections move by DUMP and RESTORE")
def collections_move(context):
    with Both(context) as (redis, target):
        for client, command, key, arguments in fill(redis, random.Random(7)):
            client.call(command, key, *arguments)
        keys = [item.value for item in redis.call("KEYS", "*").value]
        for compressed in ("yes", "no"):
            redis.call("CONFIG", "SET", "rdbcompression", compressed)
            for key in keys:
                passes_through(redis, target, redis.call("DUMP", key).value, key)
        # Where the limits are others, so is what becomes of a payload.
        limits = ("hash-max-listpack-entries", "5", "hash-max-listpack-value", "200", "zset-max-listpack-entries",
                  "5", "zset-max-listpack-value", "200", "set-max-intset-entries", "5")
        for client in (redis, target):
            assert client.call("CONFIG", "SET", *limits).value == b"OK"
        for key in keys:
            passes_through(redis, target, redis.call("DUMP", key).value, key)


@test("payloads of older servers are restored")
def older_payloads(context):
    with Both(context) as (redis, target):
        for number, payload in enumerate(old_payloads(random.Random(8))):
            passes_through(redis, target, payload, "payload %d, type %d" % (number, payload[0]))


@test("RESTORE of a collection keeps to its options")
def options(context):
    with Both(context) as (redis, target):
        redis.call("RPUSH", "l", "a", "1")
        redis.call("HSET", "h", "a", "1")
        first, second = (redis.call("DUMP", key).value for key in ("l", "h"))
        for client in (redis, target):
            assert client.call("RESTORE", "k", "0", first, "IDLETIME", "5").value == b"OK"
            assert client.call("RESTORE", "k", "0", second).value == b"BUSYKEY Target key name already exists."
            assert client.call("RESTORE", "k", "50000", second, "REPLACE", "FREQ", "5").value == b"OK"
            assert client.call("TYPE", "k").value == b"hash" and 0 < int(client.call("PTTL", "k").value) <= 50000
            assert client.call("RESTORE", "k", "33177117420000", first, "REPLACE", "ABSTTL").value == b"OK"
            assert client.call("TYPE", "k").value == b"list" and int(client.call("PTTL", "k").value) > 10**12
            assert client.call("RESTORE", "k", "1", first, "REPLACE", "ABSTTL").value == b"OK"
            assert client.call("EXISTS", "k").value == b"0"


@test("damaged payloads of collections are refused")
def damaged_payloads(context):
    draw = random.Random(9)
    with Both(context) as (redis, target):
        for client, command, key, arguments in fill(redis, draw):
            if len(arguments) < 40:
                client.call(command, key, *arguments)
        keys = sorted(item.value for item in redis.call("KEYS", "*").value)
        payloads = [redis.call("DUMP", key).value for key in keys] + [p for p in old_payloads(draw) if len(p) < 10000]
        refused = 0
        for payload in payloads:
            for _ in range(30):
                body = bytearray(payload[:-10])
                for _ in range(draw.randint(1, 2)):
                    body[draw.randrange(min(len(body), 300))] = draw.choice((draw.randrange(256), 0, 0xff))
                if body[0] in (0, 6, 7, 15, 19):
                    continue
                damaged = with_footer(bytes(body))
                replies = [client.call("RESTORE", "d", "0", damaged, "REPLACE").value for client in (redis, target)]
                assert replies[1] in (b"OK", b"ERR Bad data format"), replies
                refused += replies[1] != b"OK"
                # An agent looks at scores and lengths more closely.
                if replies[1] == b"OK":
                    assert replies[0] == b"OK", (damaged, replies)
                    passes_through(redis, target, damaged, damaged)
        assert refused > 200, refused
