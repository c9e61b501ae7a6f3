"""How much memory is used is one figure: the same through every agent and in the status, within a
second of what has changed it; and the same for keys."""

import signal
import time

from local_cluster import is_gone, wait_until
from registry import FABRICS, test

VALUE = b"v" * 1000
BATCH = 200
SETTLED_S = 1.0  # after what has changed
FIELDS = ("used_memory", "maxmemory", "used_memory_dataset")
POOL_FIELDS = ("pool_used_bytes", "pool_free_block_bytes", "pool_free_in_blocks_bytes",
               "pool_coming_back_bytes", "pool_reserve_bytes", "pool_used_percent")


def figures(cluster):
    """Returns for every agent what INFO says, and DBSIZE."""
    found = []
    for agent in range(2):
        with cluster.connect(agent=agent, timeout_s=60.0) as client:
            text = client.call("INFO", "everything").value.decode()
            info = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
            found.append([int(info[name]) for name in FIELDS + POOL_FIELDS]
                         + [int(client.call("DBSIZE").value)])
    return found


def settled(cluster):
    """The figure that all tell, a second after the last change."""
    time.sleep(SETTLED_S)
    first, second = figures(cluster)
    assert first == second, (first, second)
    memory = cluster.status()["memory"]
    by_name = dict(zip(FIELDS + POOL_FIELDS, first))
    assert memory["used_bytes"] == by_name["used_memory"] == by_name["pool_used_bytes"], memory
    assert memory["capacity_bytes"] == by_name["maxmemory"], memory
    assert by_name["used_memory"] <= by_name["maxmemory"], by_name
    return by_name["used_memory"], by_name["maxmemory"]


def fill(client, name):
    """SETs until the pool is full; says how many were stored."""
    stored = 0
    while True:
        replies = client.pipeline([("SET", "%s%d" % (name, stored + i), VALUE)
                                   for i in range(BATCH)])
        stored += sum(1 for reply in replies if not reply.is_error)
        refused = [reply.value for reply in replies if reply.is_error]
        assert all(b"OOM" in value for value in refused), refused
        if refused:
            return stored


def delete(client, name, keys):
    for first in range(0, keys, BATCH):
        client.call("DEL", *["%s%d" % (name, i) for i in range(first, min(first + BATCH, keys))])


for _fabric in FABRICS:
    @test("%s: all agents and the status tell the same used_memory, which is near maxmemory when "
          "the pool is full" % _fabric)
    def _same(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster, \
                cluster.connect(agent=0, timeout_s=60.0) as first, \
                cluster.connect(agent=1, timeout_s=60.0) as second:
            empty, limit = settled(cluster)
            assert empty < limit * 0.05, (empty, limit)
            first.pipeline([("SET", "a%d" % i, VALUE) for i in range(5000)])
            used, _ = settled(cluster)
            assert used > empty + 5000 * len(VALUE), (empty, used)
            # Deleted by the other agent.
            delete(second, "a", 5000)
            used, _ = settled(cluster)
            assert used < empty + limit * 0.05, (empty, used)
            stored = fill(first, "a")
            stored += fill(second, "b")
            used, limit = settled(cluster)
            assert used >= limit * 0.97, (used, limit)
            status = cluster.status()
            assert "are refused with -OOM" in status["short_of_memory"], status["short_of_memory"]
            assert "onetrip node add" in status["short_of_memory"]
            # Once for 80 and once for 95 percent, or for both at once; again when agents have made
            # room by compaction, and it is used up, too.
            log = cluster.log("master")
            assert 1 <= log.count("% of the memory is used, ") <= 10, log
            delete(second, "a", stored)
            used, _ = settled(cluster)
            wait_until(lambda: "of the memory is used again" in cluster.log("master"), "all clear")
            # Not at once: what was refused is told for some seconds.
            wait_until(lambda: cluster.status()["short_of_memory"] == "", "nothing is short")

    @test("%s: what an agent that was killed had free is used until it is taken over" % _fabric)
    def _killed(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster:
            with cluster.connect(agent=1, timeout_s=60.0) as client:
                client.pipeline([("SET", "a%d" % i, VALUE) for i in range(10000)])
                delete(client, "a", 9000)
            before, limit = settled(cluster)
            pid = cluster.processes()["agent-1"]["pid"]
            cluster.send_signal("agent-1", signal.SIGKILL)
            wait_until(lambda: is_gone(pid), "the end of the agent")

            def taken_over():
                used = cluster.status()["memory"]["used_bytes"]
                return abs(used - before) < limit * 0.05
            wait_until(taken_over, "what it had free is free again")
            with cluster.connect(agent=0, timeout_s=60.0) as client:
                assert client.call("DBSIZE").value == b"1000"
