"""Memory nodes that join add memory: a full cluster of three gets two more, and holds more keys."""

import threading
import time

from local_cluster import wait_until
from registry import test

BATCH = 50
VALUE = b"v" * 1000
# Over tcp new keys take longer: fewer of them.
VALUES = {"shm": VALUE, "tcp": b"v" * 6000}
# In seconds, for one node, on a machine that is busy otherwise; what takes longest is that every key
# becomes a record first.
TOO_LONG_S = 100


class Filler:
    """Sets keys on all agents until each has refused most of several batches in a row for want of memory: the last
    keys that fit come one by one, each behind a wait."""

    def __init__(self, cluster, value, agents=2):
        self.cluster, self.value, self.agents = cluster, value, agents
        self.keys = []
        self.next = 0

    def fill(self):
        refused = 0
        clients = [self.cluster.connect(agent=agent, timeout_s=60.0)
                   for agent in range(self.agents)]
        try:
            while refused < 4 * self.agents:
                client = clients[self.next % self.agents]
                names = ["key%d.%d" % (self.next, i) for i in range(BATCH)]
                self.next += 1
                replies = client.pipeline([("SET", name, self.value) for name in names])
                done = 0
                for name, reply in zip(names, replies):
                    if reply.is_error:
                        assert b"OOM" in reply.value, reply.value
                    else:
                        done += 1
                        self.keys.append(name)
                refused = 0 if done > BATCH // 4 else refused + 1
        finally:
            for client in clients:
                client.close()
        return len(self.keys)

    def overwrite(self, count):
        """Keys that were there before others fit, which lie where there is no room left."""
        for agent in range(self.agents):
            with self.cluster.connect(agent=agent, timeout_s=60.0) as client:
                for first in range(0, count, BATCH):
                    for reply in client.pipeline([("SET", name, self.value)
                                                  for name in self.keys[first:first + BATCH]]):
                        assert reply.value == b"OK", reply.value

    def check(self):
        for agent in range(self.agents):
            with self.cluster.connect(agent=agent, timeout_s=60.0) as client:
                for first in range(0, len(self.keys), 200):
                    some = self.keys[first:first + 200]
                    for name, reply in zip(some, client.pipeline([("GET", n) for n in some])):
                        assert reply.value == self.value, (name, reply.value)


class Reader(threading.Thread):
    """Reads and overwrites keys that there are, all the time: nothing may fail."""

    def __init__(self, cluster, agent, filler):
        super().__init__()
        self.cluster, self.agent = cluster, agent
        self.keys, self.value = list(filler.keys), filler.value
        self.over = threading.Event()
        self.commands = 0
        self.errors = []

    def run(self):
        with self.cluster.connect(agent=self.agent, timeout_s=60.0) as client:
            while not self.over.is_set():
                key = self.keys[(self.commands * 7919) % len(self.keys)]
                reply = client.call("GET", key)
                if reply.value != self.value:
                    self.errors.append((key, reply.value))
                self.commands += 1

    def stop(self):
        self.over.set()
        self.join()


def until_a_key_fits(cluster, began, value):
    with cluster.connect(agent=0, timeout_s=60.0) as client:
        def fits():
            reply = client.call("SET", "first", value)
            assert not reply.is_error or b"OOM" in reply.value, reply.value
            return not reply.is_error
        wait_until(fits, "room for a key", within_s=30)
    return time.monotonic() - began


def join_two(cluster, value):
    filler = Filler(cluster, value)
    full = filler.fill()
    assert full > 5000, full
    before = cluster.status()
    reader = Reader(cluster, 1, filler)
    reader.start()
    began = time.monotonic()
    helped = {}
    try:
        for number in (3, 4):
            asked = time.monotonic()
            adds = threading.Thread(target=lambda: helped.update(
                {number: cluster.tool("node", "add", "--dir", cluster.path)}))
            adds.start()
            if number == 3:
                helped["fits"] = until_a_key_fits(cluster, asked, value)
            adds.join()
            code, output, error = helped[number]
            assert code == 0 and "memory node %d has its share" % number in output, (output, error)
            assert "the capacity has grown" in output, output
            assert time.monotonic() - asked < TOO_LONG_S, time.monotonic() - asked
    finally:
        reader.stop()
    took = time.monotonic() - began
    assert not reader.errors, reader.errors[:3]
    after = cluster.status()
    assert after["regions"] == before["regions"] * 3 // 2, (before, after)
    assert after["region_bytes"] == after["regions"] * (16 << 20), after
    filler.overwrite(400)
    more = filler.fill()
    print("    %d keys, then %d; room for the first after %.1f s, both nodes joined after %.1f s, "
          "%d reads meanwhile" % (full, more, helped["fits"], took, reader.commands))
    # Six regions in the place of four.
    assert more > full * 1.45, (full, more)
    filler.check()
    code, text, error = cluster.tool("check", "--dir", cluster.path)
    counts = dict(line.split(":", 1) for line in text.splitlines())
    assert code == 0 and counts["wrong"] == "0", (text, error)
    return filler


for _fabric in ("shm", "tcp"):
    @test("%s: a full cluster of three memory nodes gets two more, and more keys fit" % _fabric)
    def _join(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster:
            join_two(cluster, VALUES[fabric])


def drain_two(cluster, value):
    for _ in range(2):
        code, output, error = cluster.tool("node", "add", "--dir", cluster.path)
        assert code == 0, (output, error)
    big = cluster.status()["regions"]
    filler = Filler(cluster, value)
    full = filler.fill()
    code, output, error = cluster.tool("node", "drain", "4", "--dir", cluster.path)
    assert code != 0 and "are in use" in error and "would be left" in error, (output, error)
    assert cluster.status()["regions"] == big
    kept = full * 55 // 100
    gone, filler.keys = filler.keys[kept:], filler.keys[:kept]
    with cluster.connect(agent=0, timeout_s=60.0) as client:
        for first in range(0, len(gone), 200):
            client.pipeline([("DEL", name) for name in gone[first:first + 200]])
    reader = Reader(cluster, 1, filler)
    reader.start()
    began = time.monotonic()
    try:
        for number in (4, 3):
            def drains():
                helped = cluster.tool("node", "drain", str(number), "--dir", cluster.path)
                # How much is in use the master hears twice a second.
                return helped if helped[0] == 0 or "are in use" not in helped[2] else None
            code, output, error = wait_until(drains, "a drain", within_s=TOO_LONG_S)
            assert code == 0 and "is drained" in output, (output, error)
            assert "the capacity has shrunk" in output, output
    finally:
        reader.stop()
    took = time.monotonic() - began
    assert not reader.errors, reader.errors[:3]
    after = cluster.status()
    assert after["regions"] == big * 2 // 3, (big, after)
    print("    %d of %d keys; both nodes drained after %.1f s, %d reads meanwhile"
          % (kept, full, took, reader.commands))
    filler.check()
    code, text, error = cluster.tool("check", "--dir", cluster.path)
    counts = dict(line.split(":", 1) for line in text.splitlines())
    assert code == 0 and counts["wrong"] == "0", (text, error)
    more = filler.fill()
    assert more > kept, (kept, more)
    filler.check()


for _fabric in ("shm", "tcp"):
    @test("%s: five memory nodes become three again, and the capacity what it was" % _fabric)
    def _drain(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster:
            drain_two(cluster, VALUES[fabric])


@test("what joined is there after a restart of everything with persistent memory")
def _persistent(context):
    with context.cluster(fabric="shm", memory="64MiB", extra=["--persistent"]) as cluster:
        filler = join_two(cluster, VALUE)
        regions = cluster.status()["regions"]
        code, output, error = cluster.down()
        assert code == 0 and "data stays" in output, (output, error)
        code, output, error = cluster.tool("up", "--dir", cluster.path)
        assert code == 0, (output, error)
        wait_until(lambda: cluster.service()[0] == 0, "all is well", within_s=60)
        assert cluster.status()["regions"] == regions, cluster.status()
        filler.check()
