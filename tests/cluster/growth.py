"""The index grows while agents end and memory nodes stand still: nothing is lost, and nothing is
refused for ever."""

import random
import signal
import threading
import time

from local_cluster import is_gone, wait_until
from registry import FABRICS, test
from resp_client import ConnectionClosed, NoReply

BATCH = 200


class Writer(threading.Thread):
    """Writes keys until it has written all, or its agent has ended; `acknowledged` are those that
    were answered OK, `refused` counts the others that were answered: their outcome is unknown."""

    def __init__(self, cluster, agent, name, numbers, *options):
        super().__init__()
        self.cluster, self.agent, self.name_, self.numbers = cluster, agent, name, numbers
        self.options = options
        self.acknowledged = {}
        self.refused = 0

    def run(self):
        try:
            with self.cluster.connect(agent=self.agent, timeout_s=30.0) as client:
                for first in range(0, len(self.numbers), BATCH):
                    keys = ["%s%d" % (self.name_, n) for n in self.numbers[first:first + BATCH]]
                    values = ["%s:%d" % (key, self.agent) for key in keys]
                    replies = client.pipeline([("SET", key, value) + self.options
                                                for key, value in zip(keys, values)])
                    for key, value, reply in zip(keys, values, replies):
                        if reply.value == b"OK":
                            self.acknowledged[key] = value.encode()
                        else:
                            self.refused += 1
        except (OSError, ConnectionClosed, NoReply):
            pass


def expect_all(cluster, agent, wanted):
    """Every key of `wanted` reads as it says."""
    lost = []
    with cluster.connect(agent=agent, timeout_s=30.0) as client:
        keys = list(wanted)
        for first in range(0, len(keys), BATCH):
            some = keys[first:first + BATCH]
            for key, reply in zip(some, client.pipeline([("GET", key) for key in some])):
                if reply.value != wanted[key]:
                    lost.append((key, reply.value))
    assert not lost, "%d of %d acknowledged keys are lost or wrong: %s" % (
        len(lost), len(wanted), lost[:3])


def expect_sound(cluster, keys, unknown=0):
    """`onetrip check` finds all of them and at most `unknown` more, and nothing wrong."""
    code, text, error = cluster.tool("check", "--dir", cluster.path)
    counts = dict(line.split(":", 1) for line in text.splitlines())
    assert code == 0 and counts["wrong"] == "0", (code, text, error)
    found = int(counts["records"]) + int(counts["registers"])
    assert keys <= found <= keys + unknown, (keys, unknown, text)
    assert int(counts["unfinished"]) <= unknown, (unknown, text)


for _fabric in FABRICS:
    for _signal in (signal.SIGKILL, signal.SIGTERM):
        @test("%s: an agent ends by %s while another one inserts and the index splits"
              % (_fabric, _signal.name))
        def _ends(context, fabric=_fabric, number=_signal):
            keys = 30000 if fabric == "shm" else 12000
            more = keys // 4
            with context.cluster(fabric=fabric) as cluster:
                first = Writer(cluster, 0, "k", range(keys))
                first.start()
                first.join()
                assert len(first.acknowledged) == keys, first.refused
                second = Writer(cluster, 1, "m", range(more))
                second.start()
                time.sleep(random.random() * 0.05)
                pid = cluster.processes()["agent-0"]["pid"]
                cluster.send_signal("agent-0", number)
                wait_until(lambda: is_gone(pid), "the end of the agent")
                second.join()
                assert second.refused == 0, second.refused
                wanted = dict(first.acknowledged, **second.acknowledged)
                expect_all(cluster, 1, wanted)
                # Other keys use the memory of the deleted keys again.
                gone = ["k%d" % n for n in range(0, keys, 2)]
                with cluster.connect(agent=1, timeout_s=30.0) as client:
                    for start in range(0, len(gone), BATCH):
                        client.pipeline([("DEL", key) for key in gone[start:start + BATCH]])
                for key in gone:
                    wanted.pop(key)
                third = Writer(cluster, 1, "x", range(keys), "EX", "1000")
                third.start()
                third.join()
                assert third.refused == 0, third.refused
                wanted.update(third.acknowledged)
                expect_all(cluster, 1, wanted)
                expect_sound(cluster, len(wanted))


@test("a split that two memory nodes interrupt for longer than operations wait is finished")
def _paused(context):
    with context.cluster(fabric="tcp", agents=2) as cluster:
        writers = [Writer(cluster, agent, "p%d." % agent, range(6000)) for agent in range(2)]
        for writer in writers:
            writer.start()
        time.sleep(0.5)
        for name in ("memnode-1", "memnode-2"):
            cluster.send_signal(name, signal.SIGSTOP)
        time.sleep(8)
        for name in ("memnode-1", "memnode-2"):
            cluster.send_signal(name, signal.SIGCONT)
        for writer in writers:
            writer.join()
        time.sleep(5)
        wanted = {}
        for writer in writers:
            wanted.update(writer.acknowledged)
        for agent in range(2):
            late = Writer(cluster, agent, "late%d." % agent, range(3000))
            late.start()
            late.join()
            assert late.refused == 0, "agent %d: %d of 3000 new keys refused" % (agent, late.refused)
            wanted.update(late.acknowledged)
        expect_all(cluster, 1, wanted)
        expect_sound(cluster, len(wanted), sum(writer.refused for writer in writers))
