"""Memory does not wear out: freed memory is for any worker, whichever had it, and however agents
end."""

import concurrent.futures
import random
import re
import signal
import time

from agent_memory import Lives
from live_memory import BATCH, OOM
from local_cluster import is_gone, wait_until
from registry import test

LANES = 8
SIZES = (20, 60, 90, 200, 350, 700, 1100, 2500, 5000, 9000, 20000, 40000)


def value_of(key, size):
    return (key.encode() + b"/") * (size // (len(key) + 1)) + b"v" * (size % (len(key) + 1))


def is_set(client, key, value):
    """False: there is no memory for it."""
    reply = client.call("SET", key, value)
    assert not reply.is_error or reply.value == OOM, reply.value
    return not reply.is_error


def in_lanes(cluster, agent, work):
    """What work(client, lane) returns, run at a time over LANES connections of one agent: one alone waits for
    the network most of the time."""
    def run(lane):
        with cluster.connect(agent=agent, timeout_s=60.0) as client:
            return work(client, lane)
    with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        return list(pool.map(run, range(LANES)))


def fill_for(cluster, agent, prefix, size, seconds):
    """How many keys of that size the agent gets in before time is up, or the pool stays full."""
    until = time.monotonic() + seconds

    def fill(client, lane):
        stored, number, refused_since = [], 0, None
        while time.monotonic() < until:
            keys = ["%s%d-%d" % (prefix, lane, i) for i in range(number, number + BATCH // LANES)]
            number += len(keys)
            replies = client.pipeline([("SET", key, value_of(key, size)) for key in keys])
            for key, reply in zip(keys, replies):
                if reply.is_error:
                    assert reply.value == OOM, reply.value
                else:
                    stored.append(key)
            full = all(reply.is_error for reply in replies)
            if full and refused_since is not None and time.monotonic() - refused_since > 2:
                break
            if not full:
                refused_since = None
            elif refused_since is None:
                refused_since = time.monotonic()
        return stored
    return sum(in_lanes(cluster, agent, fill), [])


def for_each(cluster, agent, keys, command_of, expected_of):
    def work(client, lane):
        mine = keys[lane::LANES]
        for first in range(0, len(mine), BATCH):
            part = mine[first:first + BATCH]
            for key, reply in zip(part, client.pipeline([command_of(key) for key in part])):
                assert reply.value == expected_of(key), "%s: %r" % (key, reply.value[:40])
    in_lanes(cluster, agent, work)


def check(cluster, agent, keys, size):
    for_each(cluster, agent, keys, lambda key: ("GET", key), lambda key: value_of(key, size))


def delete(cluster, agent, keys):
    for_each(cluster, agent, keys, lambda key: ("DEL", key), lambda _: b"1")


def fresh_pool(context, size, **options):
    with context.cluster(**options) as cluster:
        return len(fill_for(cluster, 0, "k", size, 120))


def expect_nothing_lost(cluster):
    """Workers look in turn for memory that a worker died with, or gave away in a shortage, so it
    takes some seconds."""
    def lost():
        code, output, error = cluster.tool("check", "--dir", cluster.path)
        assert code == 0, (output, error)
        return int(re.search(r"^lost_bytes:(\d+)", output, re.MULTILINE).group(1))
    wait_until(lambda: lost() == 0, "the end of looks for what is lost", within_s=120)


# Over tcp new keys take longer: fewer of them.
for _fabric, _memory, _small in (("shm", "64MiB", 64), ("tcp", "32MiB", 240)):
    @test("%s: an agent that is restarted in order, again and again, costs no memory" % _fabric, alone=True)
    def _restarts(context, fabric=_fabric, memory=_memory):
        with context.cluster(fabric=fabric, memory=memory) as cluster, Lives(cluster) as lives:
            pid = cluster.processes()["agent-1"]["pid"]
            cluster.send_signal("agent-1", signal.SIGTERM)
            wait_until(lambda: is_gone(pid), "the end of the agent")
            for life in range(24):
                lives.start()
                with cluster.connect(agent=1, timeout_s=60.0) as client:
                    for i in range(24):
                        key = "%d-%d" % (life % 2, i)
                        reply = client.call("SET", key, value_of(key, SIZES[i % len(SIZES)]))
                        assert not reply.is_error, (life, i, reply.value)
                lives.process.terminate()
                lives.process.wait()
                lives.process = None
            with cluster.connect(agent=0, timeout_s=60.0) as client:
                for life in range(2):
                    for i in range(24):
                        key = "%d-%d" % (life, i)
                        assert client.call("GET", key).value == \
                            value_of(key, SIZES[i % len(SIZES)]), key

    @test("%s: what one agent deletes, another one may use" % _fabric, alone=True)
    def _freed_by_another(context, fabric=_fabric, memory=_memory):
        with context.cluster(fabric=fabric, memory=memory) as cluster:
            keys = fill_for(cluster, 0, "a", 1000, 120)
            rng = random.Random(1)
            rng.shuffle(keys)
            gone = keys[:len(keys) * 9 // 10]
            left = keys[len(gone):]
            delete(cluster, 1, gone)
            now = fill_for(cluster, 1, "b", 1000, 120)
            assert len(now) + len(left) >= len(keys) * 0.9, (len(now), len(left), len(keys))
            check(cluster, 0, left, 1000)
            check(cluster, 0, now, 1000)
            expect_nothing_lost(cluster)

    @test("%s: small values that are mostly deleted make room for large ones" % _fabric, alone=True)
    def _classes(context, fabric=_fabric, memory=_memory, small=_small):
        fresh = fresh_pool(context, 4096, fabric=fabric, memory=memory)
        with context.cluster(fabric=fabric, memory=memory) as cluster:
            keys = fill_for(cluster, 0, "a", small, 240)
            rng = random.Random(2)
            rng.shuffle(keys)
            gone = keys[:len(keys) * 9 // 10]
            left = keys[len(gone):]
            delete(cluster, 0, gone)
            now = fill_for(cluster, 1, "b", 4096, 120)
            assert len(now) >= fresh * 0.75, (len(now), fresh)
            check(cluster, 1, left, small)
            check(cluster, 0, now, 4096)

    @test("%s: what an agent has unlinked when it is killed comes back" % _fabric, alone=True)
    def _killed(context, fabric=_fabric, memory=_memory):
        fresh = fresh_pool(context, 6000, fabric=fabric, memory=memory)
        with context.cluster(fabric=fabric, memory=memory) as cluster, Lives(cluster) as lives:
            for turn in range(6):
                with cluster.connect(agent=0, timeout_s=60.0) as client:
                    # Large values: a few rounds would take all memory.
                    keys = ["k%d-%d" % (turn, i) for i in range(7)]
                    for key in keys:
                        wait_until(lambda key=key: is_set(client, key, b"v" * 900_000),
                                   "room for %s" % key)
                with cluster.connect(agent=1, timeout_s=60.0) as client:
                    reply = client.call("DEL", *keys)
                    assert reply.value == b"7", (turn, reply.value)
                lives.kill()
                lives.start()
            with cluster.connect(agent=1, timeout_s=60.0) as client:
                # A worker that was killed may not have counted what it has deleted.
                left = client.call("KEYS", "*").value
                assert not left, left
            now = fill_for(cluster, 1, "n", 6000, 120)
            assert len(now) >= fresh * 0.9, (len(now), fresh)
            check(cluster, 1, now, 6000)
            expect_nothing_lost(cluster)
