"""Two of three memory nodes are lost with their memory: nothing happens before the operator accepts
that, then the cluster goes on with the third."""

import os
import signal

from local_cluster import is_gone, wait_until
from node_lost import is_redundant
from registry import test

KEYS = 2000


def kill(cluster, name):
    pid = cluster.processes()[name]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the end of " + name)


def accept(cluster, *arguments):
    return cluster.tool("node", "accept-loss", "--dir", cluster.path, *arguments)


def check(client, keys, prefix=b"v"):
    for i in keys:
        reply = client.call("GET", "key%d" % i)
        assert reply.value == b"%s%d" % (prefix, i), (i, reply.value)


for _fabric in ("shm", "tcp"):
    @test("%s: two of three memory nodes are lost for good, and that is accepted" % _fabric)
    def _accept_loss(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="64MiB") as cluster:
            code, _, error = accept(cluster, "--yes")
            assert code == 1 and "there is no loss to accept" in error, error
            with cluster.connect(agent=0, timeout_s=30.0) as client:
                for i in range(KEYS):
                    assert client.call("SET", "key%d" % i, "v%d" % i).value == b"OK"
                for i in range(100):
                    assert client.call("INCR", "counter%d" % i).value == b"1"
                # All that was acknowledged is on all nodes before the first one goes.
                check(client, range(KEYS))
            kill(cluster, "memnode-0")
            kill(cluster, "memnode-2")
            wait_until(lambda: cluster.service()[0] == 2, "it does not serve")
            waiting_for = wait_until(
                lambda: "accept-loss" in cluster.status()["waiting_for"], "it says what helps")
            assert waiting_for
            # Not without a word.
            code, _, error = accept(cluster)
            assert code == 1 and "Nothing has been done" in error, error
            assert "would be given up" in error and "--yes" in error, error
            assert cluster.service()[0] == 2
            code, output, error = accept(cluster, "--yes")
            assert code == 0 and "the cluster goes on" in output, (output, error)
            # With one replica of everything; the next master knows that.
            if fabric == "shm":
                kill(cluster, "master")
                code, output, error = cluster.tool("restart", "master", "--dir", cluster.path)
                assert code == 0, (output, error)
                wait_until(lambda: cluster.service()[0] != 2, "it serves again")
            for agent in range(2):
                with cluster.connect(agent=agent, timeout_s=30.0) as client:
                    check(client, range(KEYS))
                    for i in range(100):
                        assert client.call("INCR", "counter%d" % i).value == b"%d" % (2 + agent)
                    for i in range(agent, KEYS, 2):
                        assert client.call("SET", "key%d" % i, "w%d" % i).value == b"OK"
                    check(client, range(agent, KEYS, 2), b"w")
                    for i in range(agent, KEYS, 2):
                        assert client.call("SET", "key%d" % i, "v%d" % i).value == b"OK"
            # Two more: the copies come back, and then any of them may be lost.
            code, output, error = cluster.tool("up", "--dir", cluster.path)
            assert code == 0, (output, error)
            wait_until(lambda: cluster.status()["state"] == "serving" and is_redundant(cluster),
                       "all copies are back", 60)
            kill(cluster, "memnode-1")
            for agent in range(2):
                with cluster.connect(agent=agent, timeout_s=30.0) as client:
                    check(client, range(KEYS))


@test("a loss of which nothing is left cannot be accepted")
def nothing_left(context):
    with context.cluster(fabric="tcp", memory="64MiB") as cluster:
        for name in ("memnode-0", "memnode-1", "memnode-2"):
            kill(cluster, name)
        wait_until(lambda: cluster.service()[0] == 2, "it does not serve")
        wait_until(lambda: "nothing to go on with" in accept(cluster, "--yes")[2], "it is refused")
        assert accept(cluster, "--yes")[0] == 1
