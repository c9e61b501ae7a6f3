"""Hard connections: deep pipelines, slow and half-closed peers, kills, limits, many of them."""

import os
import signal
import socket
import struct
import threading
import time

import servers
from live import run_program, test
from resp_client import Client, ConnectionClosed, encode


def open_files(server):
    return len(os.listdir("/proc/%d/fd" % server.pid))


def rss_bytes(server):
    with open("/proc/%d/statm" % server.pid) as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_until(condition, within_s=5.0):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def send_in_background(client, data):
    thread = threading.Thread(target=client.send_raw, args=(data,))
    thread.start()
    return thread


@test("a pipeline of a hundred thousand commands is answered in order", on_redis_too=True)
def deep_pipeline(context):
    with context.agent() as server, server.connect(30) as client:
        count = 100000
        sender = send_in_background(client, encode([b"INCR", b"n"]) * count)
        for i in range(count):
            assert client.read_raw() == b":%d\r\n" % (i + 1)
        sender.join()


@test("a pipeline of ten thousand different commands is answered in order", on_redis_too=True)
def mixed_pipeline(context):
    with context.agent() as server, server.connect(30) as client:
        data, wanted = [], []
        for i in range(3400):
            key = b"k%d" % (i % 50)
            data += [encode([b"SET", key, b"v%d" % i]), encode([b"GET", key]), b"PING\r\n"]
            wanted += [b"+OK\r\n", b"$%d\r\nv%d\r\n" % (len(str(i)) + 1, i), b"+PONG\r\n"]
        sender = send_in_background(client, b"".join(data))
        for answer in wanted:
            assert client.read_raw() == answer
        sender.join()


@test("commands that come byte by byte", on_redis_too=True)
def byte_by_byte(context):
    with context.agent() as server, server.connect() as client:
        data = encode([b"SET", b"key", b"\r\n$3\r\n"]) + encode([b"GET", b"key"]) + b"PING x\r\n"
        for i in range(len(data)):
            client.send_raw(data[i:i + 1])
            time.sleep(0.0005)
        assert [client.read_raw() for _ in range(3)] == [b"+OK\r\n", b"$6\r\n\r\n$3\r\n\r\n",
                                                         b"$1\r\nx\r\n"]


@test("a peer that does not read holds up nobody else and gets everything later")
def slow_reader(context):
    with context.agent() as server, server.connect(30) as slow, server.connect() as other:
        value = b"x" * 100000
        other.call("SET", "big", value)
        before = rss_bytes(server)
        sender = send_in_background(slow, encode([b"GET", b"big"]) * 500)
        time.sleep(0.5)
        started = time.monotonic()
        for i in range(200):
            assert other.call("SET", "k", i).value == b"OK"
            assert other.call("GET", "k").value == b"%d" % i
        assert time.monotonic() - started < 5, "the others wait for a slow reader"
        grown = rss_bytes(server) - before
        assert grown < 200 << 20, "the agent grew by %d bytes for one slow reader" % grown
        answer = b"$100000\r\n" + value + b"\r\n"
        for _ in range(500):
            assert slow.read_raw() == answer
        sender.join()
        assert slow.call("PING").value == b"PONG"


@test("a peer that closed its sending half gets every reply, then the end", on_redis_too=True)
def half_closed(context):
    with context.agent() as server, server.connect() as client:
        client.send_raw(b"".join(encode([b"SET", b"k%d" % i, b"v"]) for i in range(1000)))
        client.send_raw(encode([b"GET", b"k999"]))
        replies = 0
        client.sock.shutdown(socket.SHUT_WR)
        try:
            while True:
                client.read_raw()
                replies += 1
        except ConnectionClosed:
            pass
        # Redis drops replies that are not written yet when the end arrives first; commands count.
        with server.connect() as other:
            assert wait_until(lambda: other.call("EXISTS", "k999").value == b"1")


@test("a peer that resets its connection amid a pipeline harms nobody", on_redis_too=True)
def reset_connection(context):
    with context.agent() as server, server.connect() as other:
        other.call("SET", "big", b"x" * 100000)
        files = open_files(server)
        for _ in range(50):
            client = Client(port=server.port)
            client.send_raw(encode([b"GET", b"big"]) * 50 + b"*3\r\n$3\r\nSET\r\n$1\r\nk")
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        assert other.call("PING").value == b"PONG"
        assert wait_until(lambda: open_files(server) <= files), "descriptors leak"


@test("CLIENT KILL by id and by address ends the right connection", on_redis_too=True)
def client_kill(context):
    with context.agent() as server, server.connect() as boss:
        victims = [server.connect() for _ in range(4)]
        ids = [victim.call("CLIENT", "ID").value for victim in victims]
        assert len(set(ids)) == 4
        assert boss.call("CLIENT", "KILL", "ID", ids[1]).value == b"1"
        address = "%s:%d" % victims[2].sock.getsockname()
        assert boss.call("CLIENT", "KILL", address).value == b"OK"
        address = "%s:%d" % victims[3].sock.getsockname()
        assert boss.call("CLIENT", "KILL", "ADDR", address).value == b"1"
        assert victims[0].call("PING").value == b"PONG"
        for victim in victims[1:]:
            try:
                victim.call("PING")
            except ConnectionClosed:
                continue
            raise AssertionError("a killed connection answers")
        listing = boss.call("CLIENT", "LIST").value.decode()
        assert "id=%s " % ids[0].decode() in listing, listing
        assert wait_until(lambda: len(boss.call("CLIENT", "LIST").value.splitlines()) == 2)
        for victim in victims:
            victim.close()


@test("CLIENT KILL across worker threads")
def client_kill_threads(context):
    with context.agent("--threads", "2") as server:
        clients = [server.connect() for _ in range(8)]
        ids = [client.call("CLIENT", "ID").value for client in clients]
        listing = clients[0].call("CLIENT", "LIST").value
        assert len(listing.splitlines()) == 8, listing
        for i in range(1, 8):
            assert clients[0].call("CLIENT", "KILL", "ID", ids[i]).value == b"1"
        for client in clients[1:]:
            try:
                client.call("PING")
            except ConnectionClosed:
                continue
            raise AssertionError("a killed connection answers")
        assert clients[0].call("PING").value == b"PONG"
        for client in clients:
            client.close()


@test("two thousand connections come and go without a trace", on_redis_too=True)
def many_connections(context):
    with context.agent() as server, server.connect() as keeper:
        files = open_files(server)
        for _ in range(4):
            clients = [Client(port=server.port) for _ in range(500)]
            for i, client in enumerate(clients):
                client.send("SET", "k%d" % i, i)
            for client in clients:
                assert client.read_raw() == b"+OK\r\n"
            for client in clients:
                client.close()
        assert keeper.call("GET", "k499").value == b"499"
        assert wait_until(lambda: open_files(server) <= files), "descriptors leak"


@test("maxclients: the next connection is told so and closed")
def max_clients(context):
    with context.agent("--maxclients", "10") as server:
        assert wait_until(lambda: _connected(server) == 1)
        clients = [server.connect() for _ in range(10)]
        for client in clients:
            assert client.call("PING").value == b"PONG"
        extra = Client(port=server.port)
        data, closed = extra.read_available(0.5)
        assert data == b"-ERR max number of clients reached\r\n" and closed, (data, closed)
        extra.close()
        clients.pop().close()
        assert wait_until(lambda: _answers(server)), "no room after a client left"
        for client in clients:
            client.close()


@test("protected mode: who is not 127.0.0.1 is refused in Redis's words until there is a password")
def protected_mode(context):
    def stranger_hears(server):
        with Client(port=server.port, source="127.0.0.2") as stranger:
            return stranger.read_available(0.2)

    settings = [("protected-mode", "no"), ("protected-mode", "yes"), ("requirepass", "secret"),
                ("requirepass", "")]
    with context.agent("--unixsocket", "{dir}/sock") as server, \
            servers.redis_server(context.redis_binary) as redis:
        said, closed = stranger_hears(server)
        assert said.startswith(b"-DENIED Redis is running in protected mode") and closed, said
        assert (said, closed) == stranger_hears(redis)
        with server.connect() as ours, redis.connect() as theirs:
            assert b"\r\nrejected_connections:1\r\n" in ours.call("INFO", "stats").value
            for name, value in settings:
                for client in (ours, theirs):
                    assert client.call("CONFIG", "SET", name, value).value == b"OK"
                assert stranger_hears(server) == stranger_hears(redis), (name, value)
        with Client(path=server.socket_path) as local:
            assert local.call("PING").value == b"PONG"
    with context.agent("--protected-mode", "no") as server:
        assert stranger_hears(server) == (b"", False)


def _connected(server):
    with server.connect() as client:
        return len(client.call("CLIENT", "LIST").value.splitlines())


def _answers(server):
    try:
        with Client(port=server.port) as client:
            return client.call("PING").value == b"PONG"
    except (ConnectionClosed, ConnectionError):
        return False


@test("an idle connection is closed after `timeout` seconds", on_redis_too=True)
def idle_timeout(context):
    with context.agent() as server, server.connect() as busy, server.connect(10) as idle:
        assert busy.call("CONFIG", "SET", "timeout", "1").value == b"OK"
        idle.call("PING")
        started = time.monotonic()
        closed = False
        idle.sock.settimeout(0.1)
        while not closed and time.monotonic() - started < 6:
            busy.call("PING")
            try:
                closed = idle.sock.recv(1) == b""
            except socket.timeout:
                pass
        assert closed, "the idle connection is still open"
        assert time.monotonic() - started > 0.9
        assert busy.call("PING").value == b"PONG"


@test("unix socket: commands, and the file goes with the agent")
def unix_socket(context):
    server = context.agent("--unixsocket", "{dir}/sock")
    with server:
        with Client(path=server.socket_path) as client:
            assert client.call("SET", "k", b"\x00\r\n").value == b"OK"
            assert client.call("GET", "k").value == b"\x00\r\n"
        with server.connect() as client:
            assert client.call("GET", "k").value == b"\x00\r\n"
        code, out, _ = run_program(["redis-cli", "-s", server.socket_path, "PING"])
        assert code == 0 and out == "PONG\n", out
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=10) == 0
        assert not os.path.exists(server.socket_path), "the socket file stays behind"


@test("a stale unix socket of an agent that was killed is taken over")
def stale_unix_socket(context):
    server = context.agent("--unixsocket", "{dir}/sock")
    with server:
        server.process.kill()
        server.process.wait()
        assert os.path.exists(server.socket_path)
        server.start()
        with Client(path=server.socket_path) as client:
            assert client.call("PING").value == b"PONG"


@test("SIGTERM and SIGINT end the agent with exit code 0, idle or under load")
def signals(context):
    for number in (signal.SIGTERM, signal.SIGINT):
        with context.agent() as server, server.connect() as client:
            client.call("SET", "k", "v")
            server.process.send_signal(number)
            assert server.process.wait(timeout=10) == 0, server.log_tail()
        with context.agent("--threads", "2") as server:
            clients = [server.connect() for _ in range(4)]
            senders = [send_in_background(c, encode([b"INCR", b"n"]) * 100000) for c in clients]
            time.sleep(0.1)
            server.process.send_signal(number)
            assert server.process.wait(timeout=10) == 0, server.log_tail()
            for sender, client in zip(senders, clients):
                client.close()
                sender.join()


@test("a client that sends garbage for ever is closed, and memory does not grow")
def garbage(context):
    with context.agent() as server, server.connect() as keeper:
        before = rss_bytes(server)
        for data in (b"\x00" * 200000, os.urandom(200000), b"*1000000\r\n$100\r\n" * 10000,
                     b"$" * 100000, b"*2\r\n" * 100000, b"\r\n" * 100000):
            with Client(port=server.port, timeout_s=5) as client:
                client.send_raw(data)
                client.read_available(0.05)
        assert keeper.call("PING").value == b"PONG"
        assert rss_bytes(server) - before < 64 << 20


def cpu_s(server):
    with open("/proc/%d/stat" % server.pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test("an idle agent leaves the cores to others")
def idle_agent(context):
    with context.agent("--threads", "2") as server:
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.call("SET", "k", "v")
        before = cpu_s(server)
        time.sleep(2)
        used = cpu_s(server) - before
        assert used < 0.2, "%.2f s of CPU in 2 idle seconds" % used
        for client in clients:
            client.close()


@test("maxclients is lowered to what the limit of open descriptors allows")
def descriptors(context):
    server = context.agent()
    # Root may raise even the hard limit.
    drop = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
    server.command = ["prlimit", "--nofile=300:300"] + (
        drop if os.geteuid() == 0 else []) + server.command
    with server:
        with server.connect() as client:
            most = int(client.call("CONFIG", "GET", "maxclients").value[1].value)
            assert 100 < most < 300, most
            assert "maxclients has been reduced from 10000 to %d" % most in server.log_tail()
            refusal = client.call("CONFIG", "SET", "maxclients", 5000)
            assert refusal.is_error and b"ulimit -n" in refusal.value, refusal
            assert client.call("CONFIG", "SET", "maxclients", most - 10).value == b"OK"
            assert client.call("CONFIG", "SET", "maxclients", most).value == b"OK"
            others = [server.connect() for _ in range(most - 1)]
            assert client.call("PING").value == b"PONG"
            assert [other.call("PING").value for other in others] == [b"PONG"] * len(others)
            with server.connect() as refused:
                assert b"max number of clients reached" in refused.read_raw()
            for other in others:
                other.close()


@test("a full pool is logged, with its cure and not again and again, and INFO warns of it")
def full_pool(context):
    with context.agent("--memory", "64MiB") as server:
        with server.connect() as client:
            for i in range(100_000):
                if client.call("SET", "k%d" % i, b"v" * 200_000).is_error:
                    break
            assert b"OOM" in client.call("SET", "one more", b"v" * 900_000).value
            info = client.call("INFO", "onetrip").value.decode()
            assert "\npool_used_percent:" in info and "\npool_warning:" in info, info
            assert wait_until(lambda: "are refused with -OOM" in server.log_tail())
            assert "onetrip node add" in server.log_tail()
            for _ in range(3):
                client.call("SET", "one more", b"v" * 900_000)
                time.sleep(1)
            assert server.log_tail().count("are refused with -OOM") == 1
            assert client.call("FLUSHALL").value == b"OK"


@test("what writes no file does not pretend to, and MEMORY USAGE counts a register whole")
def no_pretence(context):
    with context.agent() as server, server.connect() as client:
        for words in (["SAVE"], ["BGSAVE"], ["BGREWRITEAOF"], ["CONFIG", "SET", "appendonly", "yes"],
                      ["CONFIG", "SET", "save", "900 1"]):
            reply = client.call(*words)
            assert reply.is_error and b"writes no file" in reply.value, (words, reply)
        def usage():
            return int(client.call("MEMORY", "USAGE", "k" * 16).value)

        client.call("SET", "k" * 16, b"v" * 64)
        first = usage()
        client.call("SET", "k" * 16, b"w" * 64)
        register = usage()
        client.call("EXPIRE", "k" * 16, 1000)
        record = usage()
        assert record < first < 210 < register < 400, (record, first, register)


@test("a request for which the host has no memory is refused, and the agent goes on")
def no_host_memory(context):
    server = context.agent("--cache-memory", "8MiB", "--proto-max-bulk-len", "512MiB")
    # Room for the pool and the agent, and for one of the requests.
    server.command = ["prlimit", "--as=1500000000"] + server.command
    with server:
        head = b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$500000000\r\n" + b"x" * (1 << 20)
        clients = [server.connect() for _ in range(4)]
        for client in clients:
            client.send_raw(head)
        assert clients[-1].read_raw().startswith(b"-OOM")
        assert "the host has no memory for its request" in server.log_tail()
        with server.connect() as client:
            assert client.call("PING").value == b"PONG"
        for client in clients:
            client.close()
