"""INFO and COMMAND: what clients and people read out of them, by name rather than byte for byte."""

import re
import time

from live import test
from resp_client import Client
from servers import redis_server

# The fields that clients and tools are known to parse.
PARSED_FIELDS = """redis_version redis_mode role run_id loading maxmemory_policy connected_clients
blocked_clients used_memory total_commands_processed expired_keys rdb_changes_since_last_save
mem_allocator tracking_total_keys tcp_port uptime_in_seconds process_id used_memory_human
total_connections_received keyspace_hits keyspace_misses""".split()


def info(client, *sections):
    text = client.call("INFO", *sections).value.decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


OF_LATER_REDIS = {"client|setinfo", "client|no-touch"}  # They came with 7.2.


@test("INFO has the fields that clients parse", on_redis_too=True)
def info_fields(context):
    with context.agent() as server, server.connect() as client:
        client.call("SET", "k", "v")
        client.call("SET", "t", "v", "EX", "100")
        fields = info(client)
        missing = [name for name in PARSED_FIELDS if name not in fields]
        assert not missing, "INFO lacks %s" % ", ".join(missing)
        assert fields["redis_mode"] == "standalone" and fields["role"] == "master"
        assert fields["loading"] == "0"
        assert re.fullmatch(r"[0-9a-f]{40}", fields["run_id"]), fields["run_id"]
        assert fields["tcp_port"] == str(server.port)
        assert int(fields["process_id"]) == server.pid
        assert re.match(r"keys=2,expires=1,avg_ttl=\d+$", fields["db0"]), fields["db0"]
        assert int(fields["connected_clients"]) >= 1
        assert int(fields["used_memory"]) > 0


@test("INFO answers by sections, in either protocol", on_redis_too=True)
def info_sections(context):
    with context.agent() as server, server.connect() as client:
        for section in ("server", "clients", "memory", "stats", "replication", "cpu", "keyspace",
                        "persistence", "commandstats", "errorstats", "modules", "cluster"):
            client.call("SET", "k", "v")
            client.call("NOSUCH")
            text = client.call("INFO", section).value.decode()
            heads = re.findall(r"^# (\w+)", text, re.M)
            assert [head.lower() for head in heads] == [section], (section, heads)
        assert client.call("INFO", "nosuch").value == b""
        heads = re.findall(r"^# (\w+)", client.call("INFO", "server", "cpu").value.decode(), re.M)
        assert sorted(heads) == ["CPU", "Server"], heads
        client.call("HELLO", "3")
        reply = client.call("INFO", "server")
        assert reply.kind == "=" and reply.value.startswith(b"txt:# Server"), reply


@test("INFO counts commands, errors, hits and misses; CONFIG RESETSTAT sets them back",
      on_redis_too=True)
def info_counts(context):
    with context.agent() as server, server.connect() as client:
        client.call("CONFIG", "RESETSTAT")
        for _ in range(3):
            client.call("SET", "k", "v")
        for _ in range(5):
            client.call("GET", "k")
        client.call("GET", "none")
        client.call("INCR", "k")
        client.call("NOSUCH")
        fields = info(client, "everything")
        assert fields["cmdstat_get"].startswith("calls=6,"), fields["cmdstat_get"]
        assert fields["cmdstat_set"].startswith("calls=3,"), fields["cmdstat_set"]
        assert re.fullmatch(r"p50=[0-9.]+,p99=[0-9.]+,p99\.9=[0-9.]+",
                            fields["latency_percentiles_usec_get"]), fields
        assert re.search("failed_calls=1", fields["cmdstat_incr"]), fields["cmdstat_incr"]
        assert fields["errorstat_ERR"] == "count=2", fields["errorstat_ERR"]
        # An INCR of a key that exists looks it up as a write: neither hit nor miss.
        assert fields["keyspace_hits"] == "5" and fields["keyspace_misses"] == "1", (
            fields["keyspace_hits"], fields["keyspace_misses"])
        assert int(fields["total_commands_processed"]) >= 10
        assert client.call("CONFIG", "RESETSTAT").value == b"OK"
        fields = info(client, "everything")
        assert "cmdstat_get" not in fields and fields["keyspace_hits"] == "0"


@test("INFO onetrip shows the round trips of each kind of command")
def info_round_trips(context):
    with context.agent() as server, server.connect() as client:
        for i in range(100):
            client.call("SET", "k%d" % i, "v")
        client.call("CONFIG", "RESETSTAT")
        for i in range(100):
            client.call("SET", "k%d" % i, "w")
            client.call("GET", "k%d" % i)
            client.call("SETRANGE", "k%d" % i, 0, "x")
            client.call("SETRANGE", "k%d" % i, 0, "y")
        for i in range(100):
            client.call("DEL", "k%d" % i)
        fields = info(client, "onetrip")
        for name, low, high in (("rtt_per_get", 0.9, 2.1), ("rtt_per_set", 1, 6),
                                ("rtt_per_rmw", 1, 12), ("rtt_per_del", 1, 6)):
            assert name in fields, "no %s in INFO onetrip: %s" % (name, sorted(fields))
            value = float(fields[name])
            assert low <= value <= high, "%s is %s" % (name, fields[name])


@test("used_memory grows with the data and shrinks with FLUSHALL", on_redis_too=True)
def info_memory(context):
    with context.agent() as server, server.connect(30) as client:
        empty = int(info(client, "memory")["used_memory"])
        client.pipeline([("SET", "k%d" % i, b"x" * 1000) for i in range(10000)])
        full = int(info(client, "memory")["used_memory"])
        assert full - empty > 10000 * 1000, (empty, full)
        client.call("FLUSHALL")
        # The agent frees what was flushed behind the reply.
        for _ in range(100):
            flushed = int(info(client, "memory")["used_memory"])
            if flushed < full - 8000 * 1000:
                break
            time.sleep(0.05)
        assert flushed < full - 8000 * 1000, (full, flushed)


@test("COMMAND lists only what Redis has too, or what is named a difference")
def command_list(context):
    with context.agent() as server, server.connect() as client:
        names = [item.value.decode() for item in client.call("COMMAND", "LIST").value]
        assert len(names) == len(set(names))
        commands = [name for name in names if "|" not in name]  # The others are subcommands.
        assert int(client.call("COMMAND", "COUNT").value) == len(commands)
        assert len(client.call("COMMAND").value) == len(commands)
        assert len(client.call("COMMAND", "INFO").value) == len(commands)
        with redis_server(context.redis_binary) as redis, redis.connect() as reference:
            known = {item.value.decode() for item in reference.call("COMMAND", "LIST").value}
        more = set(names) - known - OF_LATER_REDIS
        assert not more, "Redis does not know %s" % more
        needed = """ping echo quit reset hello auth select client command config info dbsize time
            get set del unlink exists type mget mset setnx getset getdel incr decr incrby decrby
            incrbyfloat append strlen getrange setrange ttl pttl flushall flushdb""".split()
        missing = set(needed) - set(names)
        assert not missing, "COMMAND LIST lacks %s" % missing


@test("COMMAND INFO of every command is Redis's, and so are group and age in COMMAND DOCS")
def command_info(context):
    with context.agent() as server, server.connect() as client, \
            redis_server(context.redis_binary) as redis, redis.connect() as reference:
        names = [item.value.decode() for item in client.call("COMMAND", "LIST").value]
        containers = {name.split("|")[0] for name in names if "|" in name}
        for name in names:
            if name in OF_LATER_REDIS:
                continue  # Redis has it since 7.2 only.
            if name not in containers:  # Those list their subcommands.
                # A hint that Redis lists first here and last there.
                hint = b"$23\r\nnondeterministic_output\r\n"
                ours, theirs = (peer.call_raw("COMMAND", "INFO", name).replace(hint, b"")
                                for peer in (client, reference))
                assert ours == theirs, "COMMAND INFO %s: %r, Redis %r" % (name, ours, theirs)
            ours, theirs = (peer.call("COMMAND", "DOCS", name).value[1].pairs()
                            for peer in (client, reference))
            for field in (b"since", b"group"):
                assert ours[field] == theirs[field], (name, ours[field], theirs[field])


@test("COMMAND DOCS has a summary of its own, since, group and arguments", on_redis_too=True)
def command_docs(context):
    with context.agent() as server, server.connect() as client:
        for name in ("get", "set", "config", "client"):
            entry = client.call("COMMAND", "DOCS", name).pairs()[name.encode()].pairs()
            for field in (b"summary", b"since", b"group", b"complexity"):
                assert field in entry or (field == b"complexity" and name != "get"), (name, entry)
            assert len(entry[b"summary"].value) > 10
        everything = client.call("COMMAND", "DOCS").pairs()
        assert len(everything) == int(client.call("COMMAND", "COUNT").value)


@test("CONFIG GET knows what clients and tools ask for", on_redis_too=True)
def config_parameters(context):
    names = """save appendonly maxmemory maxmemory-policy notify-keyspace-events proto-max-bulk-len
        client-query-buffer-limit slowlog-log-slower-than slowlog-max-len latency-monitor-threshold
        lua-time-limit tracking-table-max-keys list-max-listpack-size hash-max-listpack-entries
        zset-max-listpack-entries set-max-intset-entries sanitize-dump-payload timeout databases
        maxclients tcp-keepalive port bind requirepass replica-read-only""".split()
    with context.agent() as server, server.connect() as client:
        missing = [name for name in names
                   if name.encode() not in client.call("CONFIG", "GET", name).pairs()]
        assert not missing, "CONFIG GET lacks %s" % ", ".join(missing)
        assert client.call("CONFIG", "GET", "port").pairs()[b"port"].value == b"%d" % server.port
        everything = client.call("CONFIG", "GET", "*").pairs()
        assert set(name.encode() for name in names) <= set(everything)


@test("CONFIG SET requirepass takes effect for new connections", on_redis_too=True)
def config_requirepass(context):
    with context.agent() as server, server.connect() as client:
        assert client.call("CONFIG", "SET", "requirepass", "pw").value == b"OK"
        with Client(port=server.port) as other:
            assert other.call("GET", "k").value == b"NOAUTH Authentication required."
            assert other.call("AUTH", "no").value.startswith(b"WRONGPASS")
            assert other.call("AUTH", "pw").value == b"OK"
            assert other.call("GET", "k").value is None
        assert client.call("CONFIG", "SET", "requirepass", "").value == b"OK"
        with Client(port=server.port) as other:
            assert other.call("PING").value == b"PONG"


@test("expired keys go though nobody touches them, unless DEBUG SET-ACTIVE-EXPIRE says 0",
      on_redis_too=True)
def active_expiry(context):
    def expired(client):
        return int(info(client, "stats")["expired_keys"])

    def keys(client):
        return int(client.call("DBSIZE").value)

    with context.agent() as server, server.connect() as client:
        before = expired(client)
        assert client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0").value == b"OK"
        for i in range(100):
            client.call("SET", "t%d" % i, "v", "PX", "1")
        time.sleep(0.3)
        assert (keys(client), expired(client)) == (100, before)
        assert client.call("GET", "t0").value is None
        assert client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1").value == b"OK"
        give_up = time.monotonic() + 30
        while keys(client) > 0 and time.monotonic() < give_up:
            time.sleep(0.05)
        assert (keys(client), expired(client)) == (0, before + 100)
