"""A memory node is lost for good, and another takes its place under load."""

import os
import subprocess

from local_cluster import wait_until
from node_lost import Load, check, fill, is_redundant, kill_node, node_state
from registry import FABRICS, test


def replace(cluster, started):
    fill(cluster)
    load = Load(cluster)
    try:
        load.progress(200)
        command = kill_node(cluster, 1)
        wait_until(lambda: node_state(cluster, 1) == "out", "the map without the node")
        load.progress(200)
        # Fresh memory, so it is another node.
        with open(os.path.join(cluster.directory, "spare.log"), "wb") as log:
            started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log))
        wait_until(lambda: is_redundant(cluster), "full redundancy", 120)
        assert node_state(cluster, 3) == "up", cluster.status()["memnodes"]
        load.progress(200)
        kill_node(cluster, 0)
        wait_until(lambda: node_state(cluster, 0) == "out", "the map without the other node")
        load.progress(500)
    finally:
        load.stop()
        check(cluster, load)


for _fabric in FABRICS:
    @test("%s: a memory node is lost for good, a fresh one takes its place, then another dies"
          % _fabric)
    def _replace(context, fabric=_fabric):
        started = []
        os.environ["ONETRIP_REPLACE_NODE_AFTER_S"] = "1"
        try:
            with context.cluster(fabric=fabric) as cluster:
                try:
                    replace(cluster, started)
                finally:
                    cluster.down()
        finally:
            del os.environ["ONETRIP_REPLACE_NODE_AFTER_S"]
            for process in started:
                process.terminate()
                process.wait(timeout=60)
