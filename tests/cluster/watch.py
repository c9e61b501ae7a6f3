"""WATCH, MULTI and EXEC under contention: no update is lost, and what could lose one is refused."""

import threading

from several_agents import for_each_fabric

CLIENTS_PER_AGENT = 3
ROUNDS = 60


def run_all(functions):
    failures = []

    def run(function):
        try:
            function()
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def add_one(client, key, between=()):
    """By WATCH, GET, SET and EXEC until it succeeds."""
    while True:
        assert client.call("WATCH", key).value == b"OK"
        value = int(client.call("GET", key).value or 0)
        assert client.call("MULTI").value == b"OK"
        for command in between:
            assert client.call(*command).value == b"QUEUED"
        assert client.call("SET", key, value + 1).value == b"QUEUED"
        reply = client.call("EXEC")
        if reply.value is not None:
            assert [part.value for part in reply.value][-1] == b"OK", reply
            return


def add_everywhere(cluster, key, between=(), prepare=None):
    def work(agent):
        with cluster.connect(agent=agent) as client:
            for turn in range(ROUNDS):
                if prepare is not None:
                    prepare(client, turn)
                add_one(client, key, between)

    run_all([lambda agent=agent: work(agent) for agent in range(cluster.agents)
             for _ in range(CLIENTS_PER_AGENT)])
    with cluster.connect(agent=0) as client:
        assert int(client.call("GET", key).value) == cluster.agents * CLIENTS_PER_AGENT * ROUNDS


@for_each_fabric("no update by WATCH, GET, SET and EXEC is lost")
def counters(cluster):
    add_everywhere(cluster, "n")


@for_each_fabric("no update by WATCH and EXEC is lost with commands without keys among them")
def counters_among_keyless(cluster):
    add_everywhere(cluster, "n", between=(("PING",), ("ECHO", "x"), ("GET", "n")))


@for_each_fabric("no update by WATCH and EXEC is lost while the key changes its form")
def counters_that_change(cluster):
    # A deadline makes it a record, and SET without one a register.
    add_everywhere(cluster, "n", prepare=lambda client, turn: client.call("EXPIRE", "n", "1000"))


@for_each_fabric("EXEC over several keys behind WATCH executes nothing, ever")
def several_keys(cluster):
    with cluster.connect(agent=0) as first, cluster.connect(agent=1) as second:
        assert first.call("MSET", "a", "1", "b", "1").value == b"OK"
        for client in (first, second):
            assert client.call("WATCH", "a", "b").value == b"OK"
            assert client.call("MULTI").value == b"OK"
            assert client.call("SET", "a", "2").value == b"QUEUED"
            assert client.call("SET", "b", "2").value == b"QUEUED"
            reply = client.call("EXEC")
            assert reply.is_error and b"EXECABORT" in reply.value, reply
            assert [part.value for part in client.call("MGET", "a", "b").value] == [b"1", b"1"]
