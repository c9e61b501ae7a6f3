"""Values move between redis-server and the agent by DUMP and RESTORE, in both directions."""

import random

from live import test
from servers import agent, redis_server


def values():
    draw = random.Random(5)
    yield from (b"", b"0", b"-129", b"2147483648", b"007", b"x" * 20, b"x" * 21, b"abc" * 5000,
                bytes(range(256)) * 3, b"\x00" * 20000, bytes(draw.randbytes(5000)))
    for _ in range(40):
        words = [bytes(draw.choices(b"abcdefg", k=draw.randint(1, 9))) for _ in range(20)]
        yield b" ".join(draw.choice(words) for _ in range(draw.randint(1, 400)))


@test("values move by DUMP and RESTORE")
def values_move(context):
    servers = [redis_server(context.redis_binary).start(), agent(context.agent_binary).start()]
    try:
        clients = [server.connect() for server in servers]
        for value in values():
            for source, target in (clients, clients[::-1]):
                source.call("SET", "k", value)
                target.call("DEL", "k")
                payload = source.call("DUMP", "k").value
                assert target.call("RESTORE", "k", "0", payload).value == b"OK", value[:50]
                assert target.call("GET", "k").value == value
        for source, target in (clients, clients[::-1]):
            for count in (10, 2000):
                source.call("PFADD", "h", *("%d" % i for i in range(count)))
                payload = source.call("DUMP", "h").value
                assert target.call("RESTORE", "h", "0", payload, "REPLACE").value == b"OK"
                assert target.call("PFCOUNT", "h").value == source.call("PFCOUNT", "h").value
                assert target.call("PFADD", "h", "5").value == b"0"
        for client in clients:
            client.close()
    finally:
        for server in servers:
            server.stop()
