"""A cluster whose pool is full gets one memory node more."""

from local_cluster import wait_until
from registry import test

# Values of several size classes, so that what one key gives up does not fit the next one.
SIZES = (64, 300, 1000, 5000, 20000)


def fill_up(cluster):
    """key -> value of all that was acknowledged, until every agent refuses more of every size."""
    values = {}
    with cluster.connect(agent=0, timeout_s=60.0) as first, \
            cluster.connect(agent=1, timeout_s=60.0) as second:
        # Records beside the registers.
        for i in range(500):
            assert not first.call("INCR", "counter%d" % i).is_error
            values["counter%d" % i] = b"1"
        number = 0

        def put(size):
            """Returns true if one more was taken."""
            nonlocal number
            key = "key%d" % number
            value = b"%d:" % number + b"v" * size
            reply = (first, second)[number % 2].call("SET", key, value)
            number += 1
            if not reply.is_error:
                values[key] = value
                return True
            assert b"OOM" in reply.value, reply.value
            return False

        refused = 0
        while refused < len(SIZES):
            refused += not put(SIZES[number % len(SIZES)])
        # To the brim: what is free then is of no use to what is larger.
        for size in reversed(SIZES):
            refused = 0
            while refused < 6:
                refused = 0 if put(size) else refused + 1
    return values


def check(cluster, values):
    with cluster.connect(agent=1, timeout_s=60.0) as client:
        for key, value in values.items():
            reply = client.call("GET", key)
            assert reply.value == value, (key, reply.value)


for _fabric in ("shm", "tcp"):
    @test("%s: a cluster that is full gets one memory node more" % _fabric)
    def _full(context, fabric=_fabric):
        with context.cluster(fabric=fabric, memory="24MiB") as cluster:
            values = fill_up(cluster)
            assert len(values) > 2000, len(values)
            code, output, error = cluster.tool("node", "add", "--dir", cluster.path)
            assert code == 0 and "memory node 3 has its share" in output, (output, error)
            check(cluster, values)
            assert "the capacity" in output, output
            code, output, error = cluster.tool("node", "add", "--spare", "--dir", cluster.path)
            assert code == 0, (output, error)
            # Registers may be made again, and one node may be drained as well.
            code, output, error = cluster.tool("node", "drain", "1", "--dir", cluster.path)
            if code != 0:
                print(cluster.tool("status", "--dir", cluster.path)[1])
                for agent in (0, 1):
                    with cluster.connect(agent=agent, timeout_s=60.0) as client:
                        print(client.call("INFO", "everything").value.decode())
            assert code == 0, (output, error)
            wait_until(lambda: cluster.service()[0] == 0, "all is well")
            check(cluster, values)
            with cluster.connect(agent=0, timeout_s=60.0) as client:
                assert client.call("DEL", *list(values)[:1000]).value == b"1000"
                wait_until(lambda: client.call("SET", "more", "m").value == b"OK", "there is room")
