"""Real clients: redis-cli, redis-benchmark and a C++ program on hiredis."""

import re
import subprocess
import time

from live import run_program, test
from servers import Server


def cli(server, *args, stdin=b""):
    code, out, err = run_program(["redis-cli", "-p", str(server.port)] + list(args), stdin)
    assert code == 0, "redis-cli exit code %d: %s" % (code, out + err)
    return out


@test("redis-cli: commands from standard input", on_redis_too=True)
def cli_commands(context):
    with context.agent() as server:
        out = cli(server,
        stdin=b"SET greeting \"hello world\"\nGET greeting\nINCR n\nMSET a 1 b 2\n"
                                b"MGET a b c\nGET nothing\nINCR greeting\nDEL a b\nPING\nQUIT\n")
        wanted = ["OK", "hello world", "1", "OK", "1", "2", "", "",
                  "ERR value is not an integer or out of range", "", "2", "PONG"]
        assert out.split("\n")[:-1] == wanted, out


@test("redis-cli: RESP3 and its own renderings", on_redis_too=True)
def cli_resp3(context):
    with context.agent() as server:
        assert cli(server, "-3", "--no-raw", "SET", "k", "v") == "OK\n"
        assert cli(server, "-3", "--no-raw", "GET", "k") == '"v"\n'
        assert cli(server, "-3", "--no-raw", "GET", "none") == "(nil)\n"
        assert cli(server, "--no-raw", "GET", "none") == "(nil)\n"
        assert "# Server" in cli(server, "-3", "INFO")
        assert cli(server, "-n", "3", "SET", "other", "db") == "OK\n"
        assert cli(server, "GET", "other") == "\n"
        assert cli(server, "-r", "5", "INCR", "n") == "1\n2\n3\n4\n5\n"


@test("redis-cli --pipe: mass insertion ends without errors", on_redis_too=True)
def cli_pipe(context):
    with context.agent() as server:
        data = b"".join(b"SET key:%d value:%d\r\n" % (i, i) for i in range(20000))
        out = cli(server, "--pipe", stdin=data)
        assert "errors: 0, replies: 20000" in out, out
        assert cli(server, "DBSIZE") == "20000\n"
        assert cli(server, "GET", "key:19999") == "value:19999\n"


@test("redis-cli --stat prints its line", on_redis_too=True)
def cli_stat(context):
    with context.agent() as server:
        cli(server, "SET", "k", "v")
        process = subprocess.Popen(
            ["stdbuf", "-oL", "redis-cli", "-p", str(server.port), "--stat", "-i", "0.1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            lines = [process.stdout.readline().decode() for _ in range(4)]
        finally:
            process.kill()
            process.wait()
        assert "keys" in lines[1], lines
        assert lines[2].split()[0] == "1", lines  # One key.


def summary_of(out):
    """The summary that --bigkeys and --memkeys give of a keyspace of strings: (keys, the biggest's
    name and size, strings, their sum)."""
    keys = re.search(r"^Sampled (\d+) keys in the keyspace!$", out, re.M)
    biggest = re.search(r"^Biggest string found '\"(.*)\"' has (\d+) bytes$", out, re.M)
    strings = re.search(r"^(\d+) strings with (\d+) bytes \(100.00% of keys", out, re.M)
    assert keys and biggest and strings and "rror" not in out, out
    return (int(keys[1]), (biggest[1], int(biggest[2])), int(strings[1]), int(strings[2]))


@test("redis-cli --scan, --bigkeys and --memkeys find every key", on_redis_too=True)
def cli_key_statistics(context):
    with context.agent() as server:
        sizes = {"key:%d" % i: i % 40 + 1 for i in range(1000)}
        sizes["the biggest"] = 50000
        data = b"".join(b'SET "%s" %s\r\n' % (key.encode(), b"x" * size)
                        for key, size in sizes.items())
        assert "errors: 0, replies: 1001" in cli(server, "--pipe", stdin=data)
        assert sorted(cli(server, "--scan").splitlines()) == sorted(sizes)
        assert sorted(cli(server, "--scan", "--pattern", "key:99?").splitlines()) == [
            "key:99%d" % i for i in range(10)]
        total = sum(sizes.values())
        assert summary_of(cli(server, "--bigkeys")) == (1001, ("the biggest", 50000), 1001, total)
        keys, (biggest, biggest_bytes), strings, in_memory = summary_of(cli(server, "--memkeys"))
        assert (keys, biggest, strings) == (1001, "the biggest", 1001)
        assert biggest_bytes > 50000 and in_memory > total + biggest_bytes - 50000


@test("redis-cli: help of the server's commands", on_redis_too=True)
def cli_help(context):
    with context.agent() as server:
        # An interactive session asks for COMMAND DOCS first; a wrong reply would end it.
        out = cli(server, stdin=b"help get\nGET k\n")
        assert "GET key" in out or "GET" in out, out


def benchmark(server, *args):
    code, out, err = run_program(["redis-benchmark", "-p", str(server.port), "-q"] + list(args))
    assert code == 0, "exit code %d: %s" % (code, (out + err)[-500:])
    assert "rror" not in out + err and "WARN" not in out + err, (out + err)[-500:]
    for name in ("PING", "SET", "GET", "INCR", "MSET"):
        assert name in out, out


BENCHMARK_TESTS = ["-t", "ping,set,get,incr,mset", "-n", "100000", "-c", "50"]


@test("redis-benchmark -P 16", on_redis_too=True)
def benchmark_pipelined(context):
    with context.agent() as server:
        benchmark(server, "-P", "16", *BENCHMARK_TESTS)


@test("redis-benchmark --threads 2 with random keys", on_redis_too=True)
def benchmark_threads(context):
    with context.agent() as server:
        benchmark(server, "-P", "16", "--threads", "2", "-r", "50000", "-d", "64",
                  *BENCHMARK_TESTS)


@test("redis-benchmark against an agent with two threads")
def benchmark_two_workers(context):
    with context.agent("--threads", "2") as server:
        benchmark(server, "-P", "16", "--threads", "2", "-r", "1000", *BENCHMARK_TESTS)


@test("redis-benchmark -3 and large values", on_redis_too=True)
def benchmark_resp3(context):
    with context.agent() as server:
        code, out, err = run_program(
            ["redis-benchmark", "-p", str(server.port), "-q", "-3", "-t", "set,get", "-n", "20000",
             "-d", "10000", "-r", "100", "-P", "4"])
        assert code == 0 and "rror" not in out + err, out + err


@test("hiredis: typed replies, pipelines, binary values, reconnecting, unix socket")
def hiredis_smoke(context):
    program = context.tool("hiredis_smoke")
    server = context.agent("--unixsocket", "{dir}/sock")
    with server:
        done = subprocess.run([program], check=False, capture_output=True, timeout=60,
                              env={"ONETRIP_PORT": str(server.port),
                                   "ONETRIP_SOCKET": server.socket_path})
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]


@test("the ready line comes once, on one line, after which the port answers")
def ready_line(context):
    server = context.agent()
    assert isinstance(server, Server)
    with server:
        time.sleep(0.1)
        lines = [line for line in server.log_tail().splitlines() if str(server.port) in line]
        assert len(lines) == 1, server.log_tail()


@test("redis-benchmark with RESP3", on_redis_too=True)
def benchmark_all_resp3(context):
    with context.agent() as server:
        benchmark(server, "-3", "-P", "4", "-t", "ping,set,get,incr,mset", "-n", "20000", "-c", "20")


@test("redis-cli --latency and --latency-history measure", on_redis_too=True)
def cli_latency(context):
    with context.agent() as server:
        # Without a terminal it measures for one interval and prints minimum, maximum, average, samples.
        numbers = cli(server, "--latency", "-i", "1").split()
        assert len(numbers) == 4 and float(numbers[0]) <= float(numbers[2]) <= float(numbers[1])
        assert int(numbers[3]) > 1, numbers


@test("redis-cli sends transactions and shows MONITOR", on_redis_too=True)
def cli_transactions(context):
    with context.agent() as server:
        out = cli(server, stdin=b"MULTI\nSET k 1\nINCR k\nEXEC\nMULTI\nNOSUCH\nEXEC\nWATCH k\n"
                                b"INCR k\nMULTI\nINCR k\nEXEC\nGET k\n")
        lines = [line for line in out.split("\n") if line and not line.startswith("ERR unknown")]
        assert lines == ["OK", "QUEUED", "QUEUED", "OK", "2", "OK",
                         "EXECABORT Transaction discarded because of previous errors.", "OK", "3",
                         "OK", "QUEUED", "3"], lines
        monitor = subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-p", str(server.port),
                                    "MONITOR"], stdout=subprocess.PIPE)
        try:
            assert monitor.stdout.readline() == b"OK\n"
            cli(server, "SET", "shown", "by monitor")
            lines = [monitor.stdout.readline()]
            while b"shown" not in lines[-1]:
                lines.append(monitor.stdout.readline())
            assert lines[-1].endswith(b'] "SET" "shown" "by monitor"\n'), lines
        finally:
            monitor.kill()
            monitor.wait()
