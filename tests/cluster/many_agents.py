"""Sixty-four agents on one master."""

import threading

from registry import test
from resp_client import encode

AGENTS = 64


@test("64 agents: all join, all count, the sum is exact", alone=True)
def sixty_four(context):
    with context.cluster(agents=AGENTS, memory="128MiB", fabric="mixed") as cluster:
        failures = []

        def work(first):
            try:
                clients = [cluster.connect(agent=agent, timeout_s=60)
                           for agent in range(first, AGENTS, 8)]
                for _ in range(10):
                    for client in clients:
                        client.send_raw(encode([b"INCR", b"n"]) * 5)
                    for client in clients:
                        left = 5
                        while left > 0:
                            reply = client.read_raw()
                            # Five INCRs of each client at one key may be too much for a machine of
                            # few processors.
                            if reply.startswith(b"-TRYAGAIN"):
                                client.send_raw(encode([b"INCR", b"n"]))
                                continue
                            assert reply[:1] == b":", reply
                            left -= 1
                for client in clients:
                    client.close()
            except BaseException as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        for agent in (0, AGENTS - 1):
            with cluster.connect(agent=agent) as client:
                assert client.call("GET", "n").value == b"%d" % (AGENTS * 50)
        status = cluster.status()
        assert sum(agent["state"] == "up" for agent in status["agents"]) == AGENTS
