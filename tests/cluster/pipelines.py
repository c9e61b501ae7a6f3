"""Pipelines over a network: commands on different keys run together, and the connection cannot tell."""

import concurrent.futures
import random
import re
import socket
import threading

import random_streams
import rules
import servers
from agent_memory import Lives
from differential import Pair
from registry import test
from resp_client import encode, parse, to_bytes
from steps import Batch

SEEDS = 24
MIB = 1 << 20


class AgentOfCluster:
    """An agent that runs already, in the place of one that a Pair starts."""

    name = "agent"

    def __init__(self, cluster):
        self.cluster = cluster

    def start(self):
        with self.connect() as client:
            assert client.call("CONFIG", "SET", "proto-max-bulk-len", "2097152").value == b"OK"
        return self

    def connect(self, timeout_s=60.0, authenticated=True):
        del authenticated
        return self.cluster.connect(agent=0, timeout_s=timeout_s)

    def alive(self):
        return True

    def stop(self):
        return 0


def overlapped(client):
    return int(re.search(rb"commands_overlapped:(\d+)", client.call("INFO", "onetrip").value).group(1))


def pipelines(seed):
    """Mostly long ones, of commands that meet on few keys."""
    generator = random_streams.Generator(seed)
    steps = []
    for _ in range(16):
        size = generator.random.randint(2, 60)
        steps.append(Batch(tuple(generator.one(0) for _ in range(size)), 0))
        if generator.random.random() < 0.3:
            steps += generator.transaction(0)
    return steps


def as_redis(context, fabric):
    with context.cluster(fabric=fabric, memory="256MiB") as cluster:
        pair = Pair(servers.redis_server(), AgentOfCluster(cluster), rules.Judge(rules.load())).start()
        try:
            for seed in range(SEEDS):
                pair.run(pipelines(seed), 2 + seed % 2)
        finally:
            pair.redis.stop()
        with cluster.connect(agent=0) as client:
            # Over shm those that change one key do so, and few of these follow each other.
            assert overlapped(client) > (100 if fabric == "tcp" else 0), overlapped(client)


for _fabric in ("shm", "tcp"):
    @test("%s: pipelines are answered as by redis-server" % _fabric)
    def _as_redis(context, fabric=_fabric):
        as_redis(context, fabric)

    @test("%s: changes of one key in a pipeline take effect in their order" % _fabric)
    def _in_order(context, fabric=_fabric):
        """A list, far beyond a packed one, with other clients at it, is what its client has made it."""
        with context.cluster(fabric=fabric, memory="256MiB") as cluster:
            stop = threading.Event()

            def disturb():
                with cluster.connect(agent=0, timeout_s=60.0) as client:
                    while not stop.is_set():
                        client.pipeline([("INCR", "count"), ("LPUSH", "list", "other"), ("LPOP", "list")] * 10)
            others = [threading.Thread(target=disturb) for _ in range(4)]
            for other in others:
                other.start()
            with cluster.connect(agent=0, timeout_s=60.0) as client:
                for begin in range(0, 20000, 200):
                    replies = client.pipeline([("RPUSH", "list", "%06d" % i) for i in range(begin, begin + 200)])
                    sizes = [reply.value for reply in replies]
                    assert not any(reply.is_error for reply in replies), sizes[:3]
                stop.set()
                for other in others:
                    other.join()
                elements = [element.value for element in client.call("LRANGE", "list", "0", "-1").value]
                kept = [element for element in elements if element != b"other"]
                assert kept == [b"%06d" % i for i in range(20000)], len(kept)
                taken = client.pipeline([("RPOP", "list") for _ in range(300)])
                assert [reply.value for reply in taken] == kept[:-301:-1]


@test("tcp: pipeline-overlap no runs one command after the other")
def _strict(context):
    commands = [("SET", "key%d" % i, "v") for i in range(200)]
    with context.cluster(fabric="tcp", memory="64MiB") as cluster, \
            cluster.connect(agent=0, timeout_s=60.0) as client:
        assert client.call("CONFIG", "SET", "pipeline-overlap", "no").value == b"OK"
        assert all(reply.value == b"OK" for reply in client.pipeline(commands))
        assert overlapped(client) == 0, overlapped(client)
        assert client.call("CONFIG", "SET", "pipeline-overlap", "yes").value == b"OK"
        assert all(reply.value == b"OK" for reply in client.pipeline(commands))
        assert overlapped(client) > 100, overlapped(client)


@test("tcp: long and short values in one pipeline, in whatever order they come")
def _long_values(context):
    """Each of the long ones needs most of the memory that there is for such."""
    sizes = (5, 3 * MIB, 100, 2 * MIB, 1000, 3 * MIB, 1, 2 * MIB)
    with context.cluster(fabric="tcp", memory="256MiB") as cluster, Lives(cluster) as lives:
        lives.command += ["--large-value-memory", "4MiB"]
        lives.kill()
        lives.start()
        values = {"key%d" % i: (b"%d-" % i) * (size // 2) for i, size in enumerate(sizes)}
        with cluster.connect(agent=1, timeout_s=60.0) as client:
            for key, value in values.items():
                assert client.call("SET", key, value).value == b"OK"

        # Clients that leave: what was read for them keeps no memory from others.
        for turn in range(6):
            client = cluster.connect(agent=1)
            client.send_raw(b"".join(encode([b"GET", b"key%d" % ((turn + i) % len(sizes))]) for i in range(16)))
            client.close()

        def read(seed):
            rng = random.Random(seed)
            with cluster.connect(agent=1, timeout_s=60.0) as client:
                for _ in range(3):
                    commands = [rng.choice([("GET", key), ("SET", key, values[key], "GET"), ("STRLEN", key)])
                                for key in rng.choices(list(values), k=12)]
                    # The agent need not keep replies that are not taken.
                    sender = threading.Thread(target=lambda sent=commands: client.send_raw(
                        b"".join(encode([to_bytes(arg) for arg in one]) for one in sent)))
                    sender.start()
                    for one in commands:
                        value = parse(client.read_raw()).value
                        wanted = b"%d" % len(values[one[1]]) if one[0] == "STRLEN" else values[one[1]]
                        assert value == wanted, (one[:2], value[:60])
                    sender.join()
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            list(pool.map(read, range(6)))


@test("tcp: a client that leaves amid its pipeline takes nothing with it")
def _left(context):
    with context.cluster(fabric="tcp", memory="64MiB") as cluster:
        for turn in range(20):
            client = cluster.connect(agent=0)
            client.send_raw(b"".join(encode([b"SET", b"key%d" % i, b"%d" % turn]) for i in range(300)))
            if turn % 2 == 0:
                client.sock.shutdown(socket.SHUT_RDWR)
            client.close()
        with cluster.connect(agent=0, timeout_s=60.0) as client:
            replies = client.pipeline([("INCR", "key%d" % i) for i in range(300)])
            assert not any(reply.is_error for reply in replies), [r.value for r in replies if r.is_error][:3]
            assert client.call("DBSIZE").value == b"300"
