"""Sets where chance or other connections decide: what must hold however it falls out."""

from live import test
from live_threads import THREADS, in_parallel


def members(client, *call):
    """The strings of a reply that is an array of them."""
    return [part.value.decode() for part in client.call(*call).value]


def number(client, *call):
    return int(client.call(*call).value)


@test("SPOP and SRANDMEMBER tell members that are there, each once", on_redis_too=True)
def random_members(context):
    with context.agent() as server, server.connect() as client:
        for prefix, size in (("", 300), ("m", 300), ("", 2000)):
            everything = {prefix + str(i) for i in range(size)}
            client.call("SADD", "s", *everything)
            for count in (1, 7, 40, 299, size, 2 * size):
                chosen = members(client, "SRANDMEMBER", "s", str(count))
                assert len(chosen) == len(set(chosen)) == min(count, size)
                assert set(chosen) <= everything
                chosen = members(client, "SRANDMEMBER", "s", str(-count))
                assert len(chosen) == count and set(chosen) <= everything
            left = set(everything)
            for count in (1, 2, 7, 30, 100, size):
                left.discard(client.call("SPOP", "s").value.decode())
                popped = members(client, "SPOP", "s", str(count))
                assert len(popped) == len(set(popped)) == min(count, len(left))
                assert set(popped) <= left
                left -= set(popped)
                assert set(members(client, "SMEMBERS", "s")) == left
            assert number(client, "EXISTS", "s") == 0


@test("SPOP chooses all members alike", on_redis_too=True)
def fair_choice(context):
    with context.agent() as server, server.connect() as client:
        times = dict.fromkeys("0123456789", 0)
        for _ in range(2000):
            client.pipeline([["SADD", "s", *times]])
            for member in members(client, "SPOP", "s", "2"):
                times[member] += 1
        assert all(300 < count < 500 for count in times.values()), times


@test("SSCAN meets each member of a large set once", on_redis_too=True)
def pages(context):
    with context.agent() as server, server.connect() as client:
        everything = {"m%d" % i for i in range(3000)}
        client.call("SADD", "s", *everything)
        seen, cursor, calls = [], b"0", 0
        while calls == 0 or cursor != b"0":
            reply = client.call("SSCAN", "s", cursor, "COUNT", "100").value
            cursor = reply[0].value
            seen += [part.value.decode() for part in reply[1].value]
            calls += 1
            client.call("SREM", "s", "none")
        assert set(seen) == everything
        assert calls > 10


@test("two threads: every member of a set is popped once, none of those added is lost")
def popped_once(context):
    with context.agent(*THREADS) as server:
        popped = [[] for _ in range(8)]

        def work(client, worker):
            for step in range(150):
                own = "%d" % (worker * 1000 + step)
                assert number(client, "SADD", "s", own, "x" + own) == 2
                popped[worker] += members(client, "SPOP", "s", "2")

        in_parallel(server, 8, work)
        with server.connect() as client:
            everything = [one for part in popped for one in part] + members(client, "SMEMBERS", "s")
        assert len(everything) == len(set(everything)) == 8 * 150 * 2


@test("two threads: a member that several move out of a set goes one way")
def moved_once(context):
    with context.agent(*THREADS) as server:
        count = 300
        moved = [set() for _ in range(4)]
        with server.connect() as client:
            client.call("SADD", "from", *[str(i) for i in range(count)])

        def work(client, worker):
            for i in range(count):
                if number(client, "SMOVE", "from", "to%d" % worker, str(i)) == 1:
                    moved[worker].add(str(i))

        in_parallel(server, 4, work)
        with server.connect() as client:
            assert number(client, "EXISTS", "from") == 0
            for worker in range(4):
                assert set(members(client, "SMEMBERS", "to%d" % worker)) == moved[worker]
        assert sum(len(part) for part in moved) == count


@test("two threads: a union stored in one of its sources loses nothing")
def union_in_place(context):
    with context.agent(*THREADS) as server:
        def work(client, worker):
            for i in range(200):
                if worker % 2 == 0:
                    assert number(client, "SADD", "all", "%d:%d" % (worker, i)) == 1
                else:
                    client.call("DEL", "new%d" % worker)
                    client.call("SADD", "new%d" % worker, "%d:%d" % (worker, i))
                    assert number(client, "SUNIONSTORE", "all", "all", "new%d" % worker) > 0

        in_parallel(server, 6, work)
        with server.connect() as client:
            assert number(client, "SCARD", "all") == 6 * 200


@test("two threads: SORT STORE on its own key by several keeps the list whole")
def sorted_in_place(context):
    with context.agent(*THREADS) as server:
        with server.connect() as client:
            client.call("SADD", "s", *[str(i) for i in range(100)])
            client.call("SORT", "s", "STORE", "l")

        def work(client, worker):
            for _ in range(100):
                order = "DESC" if worker % 2 else "ASC"
                assert number(client, "SORT", "l", order, "STORE", "l") == 100

        in_parallel(server, 4, work)
        with server.connect() as client:
            assert members(client, "SORT", "l") == [str(i) for i in range(100)]
