"""Agents see each other's writes at once, whatever fabric each of them is on."""

import threading
import time

from registry import FABRICS, test
from resp_client import encode


def for_each_fabric(name):
    """Registers the test once per fabric."""
    def register(function):
        for fabric in FABRICS:
            def run(context, fabric=fabric):
                with context.cluster(fabric=fabric) as cluster:
                    function(cluster)
            test("%s: %s" % (fabric, name))(run)
        return function
    return register


@for_each_fabric("what one agent has acknowledged the other reads next")
def read_after_write(cluster):
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        clients = (first, second)
        for turn in range(1500):
            writer, reader = clients[turn % 2], clients[(turn + 1) % 2]
            key = "k%d" % (turn % 7)
            assert writer.call("SET", key, turn).value == b"OK"
            assert reader.call("GET", key).value == b"%d" % turn
            if turn % 5 == 0:
                assert reader.call("DEL", key).value == b"1"
                assert writer.call("GET", key).value is None
                assert writer.call("EXISTS", key).value == b"0"
        # Both count the same keys.
        assert first.call("DBSIZE").value == second.call("DBSIZE").value


@for_each_fabric("commands over several keys answer as if they took one after the other")
def several_keys(cluster):
    large = b"l" * (3 << 20)
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        for count in (1, 2, 15, 16, 17, 100, 1000):
            keys = [b"k%d" % i for i in range(count)]
            pairs = [part for key in keys for part in (key, b"1" + key)]
            # The last value of a key that comes again stands, next to each other and far apart.
            pairs += [b"k0", b"2", b"k0", b"3", keys[-1], b"4"]
            assert first.call("MSET", *pairs).value == b"OK"
            expected = [b"1" + key for key in keys]
            expected[0] = b"3"
            expected[-1] = b"4"
            for client in (first, second):
                reply = client.call("MGET", b"none", *keys, b"k0", b"x" * 70000)
                assert [part.value for part in reply.value] == [None] + expected + [
                    expected[0], None]
                assert client.call("EXISTS", *keys, b"none", b"k0").value == b"%d" % (count + 1)
            assert second.call("DEL", b"k0", *keys, b"none", b"k0").value == b"%d" % count
            assert first.call("EXISTS", *keys).value == b"0"
            # Keys are counted behind the writes.
            deadline = time.monotonic() + 10
            while first.call("DBSIZE").value != b"0":
                assert time.monotonic() < deadline, first.call("DBSIZE")
        assert first.call("MSET", b"a", b"1", b"b", large, b"c", b"3").value == b"OK"
        assert second.call("LPUSH", b"d", b"x").value == b"1"  # MGET overlooks what is no string
        reply = second.call("MGET", b"a", b"b", b"d", b"b", b"c")
        assert [part.value for part in reply.value] == [b"1", large, None, large, b"3"]
        assert second.call("MULTI").value == b"OK"
        for command in (("MSET", b"a", b"5", b"a", b"6"), ("MGET", b"a", b"a"), ("DEL", b"a", b"a")):
            assert second.call(*command).value == b"QUEUED"
        done, values, removed = second.call("EXEC").value
        assert (done.value, [part.value for part in values.value], removed.value) == (
            b"OK", [b"6", b"6"], b"1")
        assert first.call("UNLINK", b"a", b"b", b"c", b"d").value == b"3"


@for_each_fabric("a FLUSHALL of one agent is in force on the other when it is answered")
def flush(cluster):
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        for turn in range(30):
            assert first.call("MSET", "a", turn, "b", turn).value == b"OK"
            assert second.call("FLUSHALL").value == b"OK"
            assert [part.value for part in first.call("MGET", "a", "b").value] == [None, None]
            assert second.call("SET", "a", "new").value == b"OK"
            assert first.call("GET", "a").value == b"new"


@for_each_fabric("a SWAPDB of one agent is in force on the other when it is answered")
def swap(cluster):
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        assert second.call("SELECT", "5").value == b"OK"
        for turn in range(20):
            assert first.call("MSET", "a", turn, "b", turn).value == b"OK"
            assert second.call("SET", "a", "five").value == b"OK"
            assert second.call("DEL", "b").value in (b"0", b"1")
            swapper = (first, second)[turn % 2]
            assert swapper.call("SWAPDB", "0", "5").value == b"OK"
            assert [part.value for part in second.call("MGET", "a", "b").value] == [
                b"%d" % turn] * 2
            assert [part.value for part in first.call("MGET", "a", "b").value] == [b"five", None]
            assert second.call("DBSIZE").value == b"2"
            assert first.call("DBSIZE").value == b"1"
            if turn % 4 == 3:
                assert first.call("FLUSHDB").value == b"OK"
                assert first.call("DBSIZE").value == b"0"
                assert second.call("DBSIZE").value == b"2"


@for_each_fabric("reads that follow a FLUSHALL never see what was before it")
def flush_under_load(cluster):
    stop = threading.Event()
    failures = []

    def write():
        try:
            with cluster.connect(agent=0) as client:
                while not stop.is_set():
                    client.send_raw(b"".join(encode([b"SET", b"k%d" % i, b"v"])
                                             for i in range(50)))
                    for _ in range(50):
                        assert client.read_raw() == b"+OK\r\n"
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with cluster.connect(agent=1) as second, cluster.connect(agent=0) as first:
            for turn in range(40):
                assert second.call("SET", "mark", turn).value == b"OK"
                assert second.call("FLUSHALL").value == b"OK"
                assert first.call("GET", "mark").value is None
    finally:
        stop.set()
        writer.join()
    if failures:
        raise failures[0]


@for_each_fabric("a key expires for both agents at once")
def expiry(cluster):
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        for turn in range(20):
            key = "k%d" % turn
            assert first.call("SET", key, "v", "PX", 40).value == b"OK"
            left = int(second.call("PTTL", key).value)
            # The agents know the time of the cluster to a millisecond or so.
            assert left <= 60, left
            while first.call("GET", key).value is not None:
                pass
            assert second.call("GET", key).value is None, "gone on one agent, there on the other"


@for_each_fabric("WATCH notices what the other agent does to the key, whatever form it has")
def watch_across_agents(cluster):
    changes = (["SET", "k", "2"], ["INCR", "k"], ["DEL", "k"], ["EXPIRE", "k", "100"],
               ["SET", "k", "1"], ["FLUSHALL"])
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        for start in (["SET", "k", "1"], ["INCRBY", "k", "1"]):
            for change in changes:
                for body in (["SET", "k", "mine"], ["APPEND", "k", "mine"]):
                    first.call("DEL", "k")
                    first.call(*start)
                    for notices in (True, False):
                        first.call("WATCH", "k")
                        if notices:
                            second.call(*change)
                        first.call("MULTI")
                        first.call(*body)
                        reply = first.call("EXEC")
                        assert (reply.value is None) == notices, (start, change, body, reply)
                        gone = notices and change[0] in ("DEL", "FLUSHALL")
                        assert second.call("EXISTS", "k").value == (b"0" if gone else b"1")


@for_each_fabric("increments by WATCH and MULTI from two agents sum exactly")
def optimistic_increments(cluster):
    rounds, workers = 60, 4
    failures = []

    def work(number):
        try:
            with cluster.connect(agent=number % 2) as client:
                for _ in range(rounds):
                    while True:
                        client.call("WATCH", "n")
                        value = int(client.call("GET", "n").value or 0)
                        client.call("MULTI")
                        client.call("SET", "n", value + 1)
                        if client.call("EXEC").value is not None:
                            break
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    with cluster.connect() as client:
        assert client.call("GET", "n").value == b"%d" % (rounds * workers)


@for_each_fabric("a transaction on one key is one step for the other agent")
def one_key_transactions(cluster):
    """Each adds two letters at a time and takes none away: a reader never sees an odd number."""
    stop = threading.Event()
    failures = []

    def work(agent):
        try:
            with cluster.connect(agent=agent) as client:
                for _ in range(150):
                    client.send_raw(b"".join(encode(command) for command in (
                        [b"MULTI"], [b"APPEND", b"k", b"a"], [b"APPEND", b"k", b"b"], [b"EXEC"])))
                    for _ in range(3):
                        client.read_raw()
                    assert client.read_raw().startswith(b"*2\r\n")
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    def read():
        try:
            with cluster.connect(agent=1) as client:
                while not stop.is_set():
                    value = client.call("GET", "k").value or b""
                    assert value == b"ab" * (len(value) // 2), value[-8:]
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in [reader] + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert not failures, failures
    with cluster.connect() as client:
        assert client.call("STRLEN", "k").value == b"%d" % (4 * 150 * 2)
