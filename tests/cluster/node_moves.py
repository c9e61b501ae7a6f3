"""A cluster grows and shrinks under load: a node is added and given its share of regions, another
is drained and killed, and then a third one is lost."""

import os
import signal

from local_cluster import is_gone, wait_until
from node_lost import Load, check, fill, is_redundant, kill_node, node_state
from registry import test


def node(cluster, *arguments):
    code, output, error = cluster.tool("node", *arguments, "--dir", cluster.path)
    assert code == 0, (arguments, output, error)
    return output


def grow_and_shrink(cluster):
    fill(cluster)
    load = Load(cluster)
    try:
        load.progress(50)
        output = node(cluster, "add")
        assert "memory node 3 has its share" in output, output
        assert "the capacity has grown" in output, output
        held = [one["regions"] for one in cluster.status()["memnodes"]]
        assert len(held) == 4 and max(held) - min(held) <= 1, held
        # All four are full, so the capacity would shrink; a fifth takes what the second one gives.
        capacity = cluster.status()["regions"]
        node(cluster, "add", "--spare")
        load.progress(50)
        shown = cluster.status()
        assert shown["state"] == "serving" and shown["moving"] == "", shown
        # A drain by the master's address ends no process.
        master = cluster.processes()["master"]["address"]
        code, output, error = cluster.tool("node", "drain", "1", "--master", master,
                                           *cluster.secret())
        assert code == 0 and "memory node 1 is drained" in output, (output, error)
        assert cluster.status()["regions"] == capacity, cluster.status()
        shown = cluster.status()["memnodes"][1]
        assert shown["state"] == "drained" and shown["regions"] == 0, shown
        os.kill(shown["pid"], signal.SIGKILL)
        wait_until(lambda: is_gone(shown["pid"]), "the drained node's end")
        load.progress(100)
        assert cluster.status()["state"] == "serving", cluster.status()
        assert node_state(cluster, 1) == "drained" and is_redundant(cluster), cluster.status()
        assert load.unknown == 0, load.unknown
        kill_node(cluster, 0)
        wait_until(lambda: node_state(cluster, 0) == "out", "the map without another node")
        load.progress(100)
    finally:
        load.stop()
        check(cluster, load)


for _fabric in ("tcp", "mixed"):
    @test("%s: a memory node is added, another drained and killed under load, then a third dies"
          % _fabric)
    def _grow_and_shrink(context, fabric=_fabric):
        with context.cluster(fabric=fabric) as cluster:
            grow_and_shrink(cluster)


@test("onetrip node: what it says, what it refuses, and which process it ends")
def commands(context):
    with context.cluster(memory="64MiB") as cluster:
        code, _, error = cluster.tool("node", "drain", "1", "--dir", cluster.path)
        assert code == 1 and "there are 2 memory nodes for them; add 1" in error, error
        code, _, error = cluster.tool("node", "drain", "9", "--dir", cluster.path)
        assert code == 1 and "there is no memory node 9" in error, error
        code, _, error = cluster.tool("node", "drain", "--dir", cluster.path)
        assert code == 1 and "NODE is missing" in error, error
        code, _, error = cluster.tool("node", "add", "--master", "127.0.0.1:1")
        assert code == 1 and "start onetrip-memnode by hand" in error, error
        with cluster.connect(agent=0) as client:
            assert client.call("SET", "k", "v").value == b"OK"
        output = node(cluster, "add")
        assert "memory node 3 has its share: " in output, output
        assert "the capacity has grown from 64 to 80 MiB" in output, output
        shown = cluster.status()
        assert shown["regions"] == 5 and shown["region_bytes"] == 5 << 24, shown
        assert sum(one["unusable_bytes"] for one in shown["memnodes"]) == 1 << 24, shown
        code, _, error = cluster.tool("node", "add", "3", "--spare", "--dir", cluster.path)
        assert code == 1 and "none is to be named with it" in error, error
        output = node(cluster, "add", "0")
        assert "the capacity is what it was, 80 MiB" in output, output
        output = node(cluster, "add", "--spare")
        assert "memory node 4 has been started" in output, output
        assert cluster.status()["memnodes"][4]["state"] == "spare"
        pid = cluster.status()["memnodes"][2]["pid"]
        output = node(cluster, "drain", "2")
        assert "it may be switched off" in output and "(pid %d) has been ended" % pid in output, output
        assert is_gone(pid)
        assert pid not in [process["pid"] for process in cluster.processes().values()]
        assert cluster.status()["state"] == "serving"
        assert "memory node 5 has its share" in node(cluster, "add")
        with cluster.connect(agent=1) as client:
            assert client.call("GET", "k").value == b"v"


@test("a node drains where agents write one copy, without registers (raw)")
def raw_drains(context):
    with context.cluster(fabric="shm", memnodes=2, memory="64MiB",
                         extra=("--replicas", "1", "--engine", "raw")) as cluster:
        with cluster.connect(agent=0, timeout_s=30.0) as client:
            for i in range(2000):
                assert client.call("SET", "key%d" % i, "v%d" % i).value == b"OK"
        output = node(cluster, "drain", "1")
        assert "memory node 1 is drained" in output, output
        with cluster.connect(agent=1, timeout_s=30.0) as client:
            for i in range(2000):
                assert client.call("GET", "key%d" % i).value == b"v%d" % i, i
