"""The harness against itself: planted differences must be found, equal servers must pass.

A proxy stands between the harness and a second redis-server and changes what passes through it.
"""

import socket
import threading

import cases_bits
import cases_connection
import cases_keys
import cases_strings
import render_commands
import render_differences
import rules
from differential import Mismatch, Pair
from live import test
from resp_client import Client
from servers import agent, free_port, redis_server
from steps import Outcome

# Changes that the proxy makes to replies, and a stream in which each must be seen.
PLANTED = [
    ("a bulk null becomes an array null", b"$-1\r\n", b"*-1\r\n", ["GET no"]),
    ("a simple string becomes a bulk", b"+OK\r\n", b"$2\r\nOK\r\n", ["SET k v"]),
    ("an integer becomes a simple string", b":1\r\n", b"+1\r\n", ["INCR n"]),
    ("an integer is off by one", b":5\r\n", b":6\r\n", ["APPEND k hello"]),
    ("an error loses its last character", b"range\r\n", b"rang\r\n", ["SET k v", "INCR k"]),
    ("TTL forgets a deadline", b":100\r\n", b":-1\r\n", ["SET k v EX 100", "TTL k"]),
    ("TTL is off by two", b":100\r\n", b":98\r\n", ["SET k v EX 100", "TTL k"]),
    ("a missing key looks like one without deadline", b":-2\r\n", b":-1\r\n", ["TTL no"]),
    ("a float has one digit less", b"3.0000000000000001", b"3.000000000000000", [
        ("SET", "f", "3.0000000000000001"), "GET f"]),
]


class Proxy:
    """Looks like a Server to Pair: forwards to `inner`; a `plant` (old, new) changes its replies."""

    def __init__(self, inner):
        self.inner = inner
        self.plant = None
        self.name = "proxy"
        self.password = None
        self.port = free_port()
        self.listener = socket.socket()

    def start(self):
        self.inner.start()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.inner.port))
            for source, target, change in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pump, args=(source, target, change),
                                 daemon=True).start()

    def _pump(self, source, target, change):
        try:
            while data := source.recv(1 << 16):
                if change and self.plant:
                    data = data.replace(*self.plant)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def connect(self, timeout_s=10.0, authenticated=True):
        return Client(port=self.port, timeout_s=timeout_s)

    def alive(self):
        return self.inner.alive()

    def stop(self):
        self.listener.close()
        return self.inner.stop()


@test("self-test: every planted difference is found", on_redis_too=True)
def planted_differences(context):
    proxy = Proxy(redis_server(context.redis_binary))
    pair = Pair(redis_server(context.redis_binary), proxy, rules.Judge(rules.load())).start()
    try:
        for name, old, new, stream in PLANTED:
            proxy.plant = None
            pair.run(stream, 2)  # Without the plant the two are equal.
            proxy.plant = (old, new)
            try:
                pair.run(stream, 2)
            except Mismatch:
                continue
            raise AssertionError("not found: " + name)
    finally:
        pair.stop()


@test("self-test: a difference is accepted only by its own rule, and unused rules are stale",
      on_redis_too=True)
def rules_accept(_context):
    def rule(kind, **fields):
        return rules.Rule(kind, {"name": "n", "reason": "r", **fields})

    accept = rule("difference", command="^GET a$", redis=r"^\+x", agent=r"^\+y")
    unused = rule("difference", command="^NEVER$", redis="", agent="")
    judge = rules.Judge([accept, unused])
    x, y, z = (Outcome(b"+%s\r\n" % letter) for letter in (b"x", b"y", b"z"))
    assert judge.equal("GET a", x, x)
    assert accept.uses == 0
    assert judge.equal("GET a", x, y)
    assert not judge.equal("GET a", x, z)
    assert not judge.equal("GET b", x, y)
    assert not judge.equal("GET b", x, Outcome(b"+x\r\n", closed=True))
    assert [r.command.pattern for r in judge.stale()] == ["^NEVER$"]


@test("self-test: case names are unique", on_redis_too=True)
def unique_names(_context):
    names = [name for module in (cases_strings, cases_bits, cases_keys, cases_connection)
             for name, _ in module.cases()]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@test("docs/COMPATIBILITY.md is what differences.toml says", on_redis_too=True)
def rendered_differences(_context):
    with open(render_differences.TARGET) as current:
        assert current.read() == render_differences.render(), (
            "out of date: run tests/compat/render_differences.py")


@test("docs/COMMANDS.md is what the command table says", on_redis_too=True)
def rendered_commands(_context):
    text, stale = render_commands.render()
    assert not stale, "commands.toml is about no command: %s" % stale
    with open(render_commands.TARGET) as current:
        assert current.read() == text, "out of date: run tests/compat/render_commands.py"


def command_names(server):
    server.start()
    try:
        with server.connect() as client:
            return {name.value.decode() for name in client.call("COMMAND", "LIST").value}
    finally:
        server.stop()


@test("docs/COMMANDS.md speaks of every command")
def listed_commands(context):
    listed = {name for _, name in render_commands.redis_commands()}
    assert command_names(redis_server(context.redis_binary)) == listed
    assert command_names(agent(context.agent_binary)) == render_commands.table_rows()
