#!/usr/bin/env python3
"""Alternates redis-benchmark over redis-server, onetrip-agent and the null server.

Every round runs every test against every server, in rotating order, so that drift of the machine
hits all of them. Rates are taken from the moment all clients are connected to the moment the first
of them leaves: with --threads redis-benchmark looks at the clock only every 250 ms, which would
round runs of a few seconds by several percent. bench/README.md explains the numbers.
"""

import argparse
import csv
import io
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import plot_compare
from compare_servers import BenchError, Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Test names of this script -> the name redis-benchmark takes. `ping` means the bulk form.
NAMED_TESTS = {"ping": "ping_mbulk", "ping_inline": "ping_inline", "set": "set", "get": "get",
               "incr": "incr", "mset": "mset"}
# Those of collections: each on one key that all clients share, and always the same element, as
# redis-benchmark has them. A list is as long as its pushes have made it; pops come behind these.
COLLECTION_TESTS = ("lpush", "rpush", "lpop", "rpop", "sadd", "hset", "spop", "zadd", "zpopmin")
NAMED_TESTS.update({test: test for test in COLLECTION_TESTS})
RANGE_ELEMENTS = 600
RANDOM = "__rand_int__"
APPENDED = "x" * 8
# Those for which it has no name -> the command, where VALUE stands for one of --value-bytes.
COMMAND_TESTS = {"incrhot": ["INCR", "hot"],
                 "setex": ["SET", "timed:" + RANDOM, "VALUE", "EX", "100000"],
                 "setnx": ["SETNX", "key:" + RANDOM, "VALUE"],
                 "append": ["APPEND", "grown:" + RANDOM, APPENDED],
                 "del": ["DEL", "gone:" + RANDOM],
                 "hsetlarge": ["HSET", "large:hash", "field:" + RANDOM, "VALUE"],
                 "zaddlarge": ["ZADD", "large:zset", RANDOM, "member:" + RANDOM],
                 "lrange_100": ["LRANGE", "range:list", "0", "99"],
                 "lrange_600": ["LRANGE", "range:list", "0", "599"]}
TESTS = list(NAMED_TESTS) + list(COMMAND_TESTS)
DEFAULT_TESTS = "ping,set,get,incr,incrhot,mset,setex,setnx,append,del"
COLLECTIONS = ",".join(COLLECTION_TESTS) + ",lrange_100,lrange_600,hsetlarge,zaddlarge"
# A DEL is worth measuring where there is a key: these are there before a run, which takes half
# as many DELs; 79 % of them find one (1 - e^-.5 of the keys go).
DEL_KEYS = 400000
SERVER_ORDER = ("redis", "agent", "null")
POLL_S = 0.004


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="bench/compare_redis.sh",
        description="Compare onetrip-agent with redis-server and the null server by "
                    "redis-benchmark; print medians, spread, ratios and CPU time per request.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all (default 5)")
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="length of one run, which decides the requests (default 3)")
    parser.add_argument("--requests", type=int, default=0,
                        help="requests per run, instead of --seconds")
    parser.add_argument("--pipeline", default="1,16", help="pipeline depths (default 1,16)")
    parser.add_argument("--tests", default=DEFAULT_TESTS,
                        help="of %s (default %s); collections: all of those"
                        % (",".join(TESTS), DEFAULT_TESTS))
    parser.add_argument("--clients", type=int, default=50, help="connections (default 50)")
    parser.add_argument("--client-threads", type=int, default=2,
                        help="threads of redis-benchmark (default 2)")
    parser.add_argument("--keys", type=int, default=100000, help="key space (default 100000)")
    parser.add_argument("--value-bytes", type=int, default=64, help="value size (default 64)")
    parser.add_argument("--agent", default=os.path.join(ROOT, "build/release/bin/onetrip-agent"),
                        help="agent binary (default build/release/bin/onetrip-agent)")
    parser.add_argument("--agent-args", default="--threads 1 --memory 1GiB",
                        help="its flags beside --port (default '--threads 1 --memory 1GiB')")
    parser.add_argument("--redis", default="redis-server", help="redis-server binary")
    parser.add_argument("--null-server", default="",
                        help="null server binary (default: beside the agent; built when missing)")
    parser.add_argument("--servers", default="redis,agent,null",
                        help="which to run (default redis,agent,null)")
    parser.add_argument("--out", default="",
                        help="prefix of the .json and .svg (default bench/results/compare-<time>)")
    arguments = parser.parse_args()
    arguments.tests = arguments.tests.replace("collections", COLLECTIONS).split(",")
    unknown = [test for test in arguments.tests if test not in TESTS]
    if unknown:
        parser.error("unknown test '%s'; there are: %s" % (unknown[0], ", ".join(TESTS)))
    arguments.pipeline = [int(depth) for depth in arguments.pipeline.split(",")]
    if arguments.rounds < 1 or min(arguments.pipeline) < 1:
        parser.error("--rounds and --pipeline must be at least 1")
    return arguments


def null_server_binary(arguments):
    """The given one, the one beside the agent, or one compiled now: it is a single file."""
    if arguments.null_server:
        return arguments.null_server
    beside = os.path.join(os.path.dirname(arguments.agent), "null_server")
    if os.path.exists(beside):
        return beside
    source = os.path.join(ROOT, "bench/null_server_main.cc")
    target = os.path.join(ROOT, "build/null_server")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        subprocess.run(["g++", "-std=c++20", "-O2", "-o", target, source], check=True)
    return target


def make_servers(arguments):
    chosen = arguments.servers.split(",")
    commands = {
        "redis": [arguments.redis, "--port", "{port}", "--bind", "127.0.0.1", "--save", "",
                  "--appendonly", "no", "--dir", "{dir}"],
        # ONETRIP_COMPARE_AGENT replaces the whole command line, {port} and {dir} are filled in.
        "agent": (shlex.split(os.environ["ONETRIP_COMPARE_AGENT"])
                  if "ONETRIP_COMPARE_AGENT" in os.environ
                  else [os.path.abspath(arguments.agent), "--port", "{port}"]
                  + shlex.split(arguments.agent_args)),
    }
    if "null" in chosen:
        commands["null"] = [os.path.abspath(null_server_binary(arguments)), "{port}"]
    for name in chosen:
        if name not in SERVER_ORDER:
            raise BenchError("unknown server '%s'; there are: redis, agent, null" % name)
        if shutil.which(commands[name][0]) is None:
            raise BenchError("no program at %s; build it (scripts/quickstart.sh) or name another"
                             % commands[name][0])
    return [Server(name, commands[name]) for name in chosen]


class ClientWatch:
    """Times a run by the server's descriptors: from all clients connected to the first one gone.

    A server may open a file of its own for a moment, so one sample alone never ends a run.
    """

    def __init__(self, clients):
        self.clients = clients
        self.started = self.leaving = self.finished = None

    def sample(self, now, connected):
        if self.started is None:
            if connected >= self.clients:
                self.started = now
        elif self.finished is None:
            if connected >= self.clients:
                self.leaving = None
            elif self.leaving is None:
                self.leaving = now
            else:
                self.finished = self.leaving

    def elapsed_s(self, exit_time):
        """When no client was seen leaving, all left with the process, between two samples."""
        if self.started is None:
            return 0.0
        return (self.finished or self.leaving or exit_time) - self.started


def test_flags(test, value_bytes):
    """What tells redis-benchmark which command to send; a command of its own comes last."""
    if test in NAMED_TESTS:
        return ["-t", NAMED_TESTS[test]]
    value = "x" * value_bytes
    return [value if word == "VALUE" else word for word in COMMAND_TESTS[test]]


def key_space(arguments, test):
    return DEL_KEYS if test == "del" else arguments.keys


def fill_for(server, test, keys, value_bytes):
    """The keys of a test that Server.preload() does not write, in the form that the test keeps."""
    value = "x" * value_bytes
    if test == "setex":
        server.fill("timed", keys, "SET", value, "EX", "100000")
    elif test == "append":
        server.fill("grown", keys, "APPEND", APPENDED)
    elif test.startswith("lrange"):
        server.ask("DEL", "range:list")
        server.ask("RPUSH", "range:list", *[value] * RANGE_ELEMENTS)


def run_once(server, arguments, test, depth, requests):
    """One redis-benchmark run. Returns the measured figures; raises when any reply was bad."""
    if test == "del":
        server.fill("gone", DEL_KEYS, "SET", "x" * arguments.value_bytes)
    idle_files = server.idle_files()
    cpu_before = server.cpu_s()
    process = subprocess.Popen(
        ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port),
         "--threads", str(arguments.client_threads), "-c", str(arguments.clients),
         "-d", str(arguments.value_bytes), "-P", str(depth), "-n", str(requests), "--csv",
         "--precision", "3"]
        + ([] if test in COLLECTION_TESTS else ["-r", str(key_space(arguments, test))])
        + test_flags(test, arguments.value_bytes),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watch = ClientWatch(arguments.clients)
    while process.poll() is None:
        watch.sample(time.monotonic(), server.open_files() - idle_files)
        time.sleep(POLL_S)
    elapsed_s = watch.elapsed_s(time.monotonic())
    out, err = (stream.decode(errors="replace") for stream in process.communicate())
    if process.returncode != 0 or "rror" in out + err:
        raise BenchError("redis-benchmark of %s -P %d on %s failed (exit code %d): %s"
                         % (test, depth, server.name, process.returncode, (out + err)[-400:]))
    rows = list(csv.DictReader(io.StringIO(out)))
    if len(rows) != 1:
        raise BenchError("redis-benchmark printed %d results: %s" % (len(rows), out[-400:]))
    reported = float(rows[0]["rps"])
    if elapsed_s < 5 * POLL_S:
        raise BenchError("a run of %d requests of %s on %s is too short to be timed"
                         % (requests, test, server.name))
    return {"rps": requests / elapsed_s, "reported_rps": reported,
            "requests": requests,
            "cpu_us_per_request": (server.cpu_s() - cpu_before) * 1e6 / requests,
            "p50_ms": float(rows[0]["p50_latency_ms"]),
            "p99_ms": float(rows[0]["p99_latency_ms"])}


def choose_requests(server, arguments, test, depth):
    if arguments.requests:
        return arguments.requests
    if test == "del":
        return DEL_KEYS // 2
    probe = run_once(server, arguments, test, depth, 20000 if depth < 4 else 100000)
    return max(20000, int(probe["rps"] * arguments.seconds) // 1000 * 1000)


def measure(servers, arguments):
    """All runs: results[(test, depth)][server name] is a list of one figure set per round."""
    results = {}
    cases = [(test, depth) for depth in arguments.pipeline for test in arguments.tests]
    requests = {case: choose_requests(servers[0], arguments, *case) for case in cases}
    total = arguments.rounds * len(cases) * len(servers)
    done = 0
    for round_index in range(arguments.rounds):
        for case_index, (test, depth) in enumerate(cases):
            shift = (round_index + case_index) % len(servers)
            for server in servers[shift:] + servers[:shift]:
                figures = run_once(server, arguments, test, depth, requests[test, depth])
                results.setdefault((test, depth), {}).setdefault(server.name, []).append(figures)
                done += 1
                if sys.stderr.isatty():
                    print("\r%d of %d runs" % (done, total), end="", file=sys.stderr)
        for server in servers:
            server.check_values(arguments.keys, arguments.value_bytes)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return results


def summarise(runs):
    rates = [run["rps"] for run in runs]
    return {"median_rps": statistics.median(rates), "min_rps": min(rates), "max_rps": max(rates),
            "cpu_us_per_request": statistics.median(run["cpu_us_per_request"] for run in runs),
            "p50_ms": statistics.median(run["p50_ms"] for run in runs),
            "p99_ms": statistics.median(run["p99_ms"] for run in runs), "runs": runs}


def summarise_all(results):
    table = []
    for (test, depth), by_server in results.items():
        row = {"test": test, "pipeline": depth,
               "servers": {name: summarise(by_server[name])
                           for name in SERVER_ORDER if name in by_server}}
        if "redis" in by_server and "agent" in by_server:
            redis, agent = row["servers"]["redis"], row["servers"]["agent"]
            # Runs of one round stand side by side in time, so a slow spell of the machine hits both.
            pairs = [a["rps"] / r["rps"] for a, r in zip(agent["runs"], redis["runs"])]
            row["ratio_rps"] = statistics.median(pairs)
            row["ratio_min"], row["ratio_max"] = min(pairs), max(pairs)
            if redis["cpu_us_per_request"] > 0:
                row["ratio_cpu"] = agent["cpu_us_per_request"] / redis["cpu_us_per_request"]
        table.append(row)
    return table


def print_table(table):
    print("%-12s %3s  %-6s %10s %23s %9s %8s" % (
        "test", "-P", "server", "median/s", "min..max", "cpu us/rq", "p50 ms"))
    for row in table:
        for name, figures in row["servers"].items():
            spread = "%.0f..%.0f" % (figures["min_rps"], figures["max_rps"])
            print("%-12s %3d  %-6s %10.0f %23s %9.2f %8.3f" % (
                row["test"], row["pipeline"], name, figures["median_rps"], spread,
                figures["cpu_us_per_request"], figures["p50_ms"]))
        if "ratio_rps" in row:
            print("%-12s %3d  agent/redis: rate %.2f (%.2f..%.2f by round), cpu %.2f" % (
                row["test"], row["pipeline"], row["ratio_rps"], row["ratio_min"],
                row["ratio_max"], row.get("ratio_cpu", float("nan"))))


def describe_machine(arguments):
    with open("/proc/cpuinfo") as cpuinfo:
        models = [line.split(":", 1)[1].strip() for line in cpuinfo
                  if line.startswith("model name")]
    redis_version = subprocess.run([arguments.redis, "--version"], capture_output=True, text=True,
                                   check=True).stdout.split("sha=")[0].strip()
    return {"cpu": models[0] if models else platform.machine(), "cores": os.cpu_count(),
            "kernel": platform.release(), "redis": redis_version,
            "rounds": arguments.rounds, "clients": arguments.clients, "keys": arguments.keys,
            "value_bytes": arguments.value_bytes, "client_threads": arguments.client_threads,
            "agent_args": arguments.agent_args, "load_before": os.getloadavg()[0]}


def warn_when_busy(machine, program="compare_redis"):
    if machine["load_before"] > 0.5 * machine["cores"]:
        print("%s: the machine is busy (load %.1f on %d cores); expect noise"
              % (program, machine["load_before"], machine["cores"]), file=sys.stderr)


def write_results(arguments, machine, table, memory):
    prefix = arguments.out or os.path.join(
        ROOT, "bench/results/compare-" + time.strftime("%Y%m%d-%H%M%S"))
    os.makedirs(os.path.dirname(os.path.abspath(prefix)), exist_ok=True)
    with open(prefix + ".json", "w") as out:
        json.dump({"machine": machine, "rss_bytes": memory, "results": table}, out, indent=1)
    with open(prefix + ".svg", "w") as out:
        out.write(plot_compare.render(machine, table))
    print("written: %s.json and %s.svg" % (prefix, prefix))


def main():
    arguments = parse_arguments()
    servers = []
    try:
        machine = describe_machine(arguments)
        warn_when_busy(machine)
        servers = make_servers(arguments)
        for server in servers:
            server.start()
            server.preload(arguments.keys, arguments.value_bytes)
            for test in arguments.tests:
                fill_for(server, test, arguments.keys, arguments.value_bytes)
            server.check_values(arguments.keys, arguments.value_bytes)
        table = summarise_all(measure(servers, arguments))
        memory = {server.name: server.rss_bytes() for server in servers}
        print_table(table)
        write_results(arguments, machine, table, memory)
    except (BenchError, OSError, subprocess.CalledProcessError) as error:
        print("compare_redis: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for server in servers:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
