"""SHUTDOWN, MONITOR, CLIENT PAUSE, SLOWLOG and LATENCY of an agent with two threads."""

import re
import time

from live import test
from resp_client import encode

THREADS = ("--threads", "2")


def wait_until(condition, within_s=10):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)


@test("SHUTDOWN ends the agent in order")
def shutdown(context):
    for words in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE", "NOW", "FORCE"]):
        with context.agent(*THREADS) as server:
            with server.connect() as client:
                client.call("SET", "k", "v")
                client.send_raw(encode([word.encode() for word in words]))
                raw, closed = client.read_available(10)
                assert (raw, closed) == (b"", True), (raw, closed)
            assert server.process.wait(timeout=20) == 0


@test("DEBUG SLEEP does not hold SHUTDOWN up, nor other connections")
def shutdown_of_a_sleeper(context):
    with context.agent("--threads", "1") as server:
        with server.connect() as sleeper, server.connect() as other:
            sleeper.send("DEBUG", "SLEEP", "1000")
            assert other.call("PING").value == b"PONG"
            other.send("SHUTDOWN")
            assert server.process.wait(timeout=30) == 0


@test("MONITOR shows the commands of all threads, whole and once", on_redis_too=True)
def monitor_all(context):
    extra = () if context.is_redis else THREADS
    with context.agent(*extra) as server:
        clients = [server.connect() for _ in range(6)]
        with server.connect() as watcher:
            assert watcher.call("MONITOR").value == b"OK"
            for number, client in enumerate(clients):
                for turn in range(50):
                    assert client.call("SET", "k%d" % number, turn).value == b"OK"
            seen = [watcher.read_raw() for _ in range(300)]
            for number in range(6):
                wanted = [b'"SET" "k%d" "%d"\r\n' % (number, turn) for turn in range(50)]
                lines = [line[line.index(b"] ") + 2:] for line in seen if b'"k%d"' % number in line]
                assert lines == wanted, lines[:3]
            # It goes on answering, between the lines.
            clients[0].call("SET", "a", "b")
            watcher.send("RESET")
            while watcher.read_raw() != b"+RESET\r\n":
                pass
            clients[0].call("SET", "a", "b")
            assert watcher.call("PING").value == b"PONG"
        for client in clients:
            client.close()


@test("CLIENT PAUSE holds back writers of all threads, then lets them go", on_redis_too=True)
def pause(context):
    extra = () if context.is_redis else THREADS
    with context.agent(*extra) as server:
        clients = [server.connect() for _ in range(4)]
        clients[0].call("CLIENT", "PAUSE", "600", "WRITE")
        begun = time.monotonic()
        assert clients[1].call("GET", "n").value is None
        for client in clients:
            client.send_raw(encode([b"INCR", b"n"]))
        numbers = sorted(client.read_raw() for client in clients)
        assert numbers == [b":%d\r\n" % n for n in range(1, 5)], numbers
        assert time.monotonic() - begun > 0.5, "nobody waited"
        clients[0].call("CLIENT", "PAUSE", "100000", "WRITE")
        clients[1].send("SET", "n", "x")
        assert clients[2].call("GET", "n").value == b"4"
        wait_until(lambda: b"blocked_clients:1\r\n" in clients[0].call("INFO", "clients").value)
        flags = re.findall(rb"flags=(\S+)", clients[0].call("CLIENT", "LIST").value)
        assert sorted(flags) == [b"N", b"N", b"N", b"b"], flags
        # A reply to an earlier command goes out, and a command that is refused does not wait.
        clients[2].send_raw(encode([b"PING"]) + encode([b"SET", b"m"]) + encode([b"SET", b"m", b"1"]))
        assert clients[2].read_raw() == b"+PONG\r\n"
        assert clients[2].read_raw().startswith(b"-ERR wrong number")
        clients[3].call("CLIENT", "UNPAUSE")
        assert clients[1].read_raw() == b"+OK\r\n"
        assert clients[2].read_raw() == b"+OK\r\n"
        assert b"blocked_clients:0\r\n" in clients[0].call("INFO", "clients").value
        # A transaction that writes waits, one that reads does not.
        clients[0].call("CLIENT", "PAUSE", "100000", "WRITE")
        clients[1].send_raw(b"".join(encode(c) for c in ([b"MULTI"], [b"GET", b"n"], [b"EXEC"])))
        assert [clients[1].read_raw() for _ in range(3)][2] == b"*1\r\n$1\r\nx\r\n"
        clients[2].send_raw(b"".join(encode(c) for c in ([b"MULTI"], [b"DEL", b"n"], [b"EXEC"])))
        time.sleep(0.1)
        assert clients[1].call("GET", "n").value == b"x"
        # Its end frees those that wait; a killed one does not run what it waited with.
        clients[0].call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        clients[0].call("CLIENT", "UNPAUSE")
        time.sleep(0.05)
        assert clients[0].call("GET", "n").value == b"x"
        for client in clients:
            client.close()


@test("SLOWLOG and LATENCY note what took long")
def slow_calls(context):
    with context.agent(*THREADS) as server, server.connect() as client:
        client.call("CLIENT", "SETNAME", "slowpoke")
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "30000",
                    "latency-monitor-threshold", "30")
        client.call("DEBUG", "SLEEP", "0.05")
        client.call("PING")
        entries = client.call("SLOWLOG", "GET").value
        assert len(entries) == 1, entries
        took_us, argv, name = [entries[0].value[i].value for i in (2, 3, 5)]
        assert 50000 <= int(took_us) < 5000000 and name == b"slowpoke", entries
        assert [part.value for part in argv] == [b"DEBUG", b"SLEEP", b"0.05"]
        latest = client.call("LATENCY", "LATEST").value
        assert latest[0].value[0].value == b"command" and int(latest[0].value[2].value) >= 50
        assert b"command - high" in client.call("LATENCY", "GRAPH", "command").value
        assert b"worst ever" in client.call("LATENCY", "DOCTOR").value
        assert client.call("LATENCY", "RESET").value == b"1"
        for _ in range(10):
            client.call("GET", "k")
        histogram = client.call("LATENCY", "HISTOGRAM", "get", "debug", "nosuch").value
        names = [histogram[i].value for i in range(0, len(histogram), 2)]
        assert names == [b"get", b"debug"], names
        fields = histogram[1].value
        assert [fields[i].value for i in (0, 1, 2)] == [b"calls", b"10", b"histogram_usec"]
        steps = [int(part.value) for part in fields[3].value]
        assert steps[1::2] == sorted(steps[1::2]) and steps[-1] == 10, steps


@test("WAIT tells how many more copies an acknowledged write has")
def wait(context):
    with context.agent() as server, server.connect() as client:
        assert client.call("SET", "k", "v").value == b"OK"
        assert client.call("WAIT", "1", "100").value == b"1"
        assert client.call("WAIT", "5", "60000").value == b"1"
    with context.agent("--engine", "raw") as server, server.connect() as client:
        assert client.call("WAIT", "1", "100").value == b"0"
