#!/usr/bin/env python3
"""Compares onetrip-agent with redis-server while the number of keys grows.

  bench/scale.py                                           # 10^5 to 10^7 keys, as memory allows
  bench/scale.py --keys 100000,1000000 --rounds 5 --json
  bench/scale.py --keys 1000000 --agent-args '--cache-memory 64MiB'
  bench/scale.py --keys 100000 --servers redis,tcp --clients 1   # one connection, over a network

Both servers run at the same time and grow from one size to the next; every run is made on each of
them, in rotating order. At each size: inserts of new keys in order, then GET and SET of keys drawn
evenly and by Zipf's law (theta .99), each with its rate, its latency (from the sending of a
pipeline), the CPU time of the server per request, and the round trips that the agent counts; then
what a key takes of memory: in the agent, in the pool, and in redis-server. bench/README.md explains
the numbers.

Without --keys the sizes are those of 100,000, 1,000,000, 3,000,000 and 10,000,000 for which memory
suffices: what both servers are expected to take must be no more than --memory-share of what is
available (MemAvailable, and the control group's limit).
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import compare_redis
from active_expiry import info
from cluster_processes import MIB, Cluster, cpu_of, mappings
from compare_servers import BenchError, Client, Server

GIB = 1 << 30
DEFAULT_KEYS = (100_000, 1_000_000, 3_000_000, 10_000_000)
SERVER_ORDER = ("redis", "agent", "shm", "tcp")
REPLICAS = 3
REGION_BYTES = 16 * MIB  # kRegionBytes, client_core/layout/global_addr.h
FIXED_BYTES = 512 * MIB  # all processes without a key
# Expected bytes per key, as measured (bench/README.md). Too much is no harm but a size that is left
# out.
IN_PLACE_BYTES_MAX = 1016
KNOWN_REGISTER_BYTES = 370
CASES = [("get", "uniform"), ("get", "zipf"), ("set", "uniform"), ("set", "zipf")]
COMMANDS = {"insert": "SET {key} {value}", "set": "SET {key} {value}", "get": "GET {key}"}
# INFO's field for the round trips of each.
TRIPS = {"insert": "rtt_per_set", "set": "rtt_per_set", "get": "rtt_per_get"}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/scale.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default="", help="sizes, ascending (default: as memory allows)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="length of a run of GETs or SETs (default 1)")
    parser.add_argument("--pipeline", default="1,16",
                        help="depths for GET and SET (default 1,16)")
    parser.add_argument("--insert-pipeline", type=int, default=16,
                        help="depth for inserts (default 16)")
    parser.add_argument("--clients", type=int, default=50, help="connections (default 50)")
    parser.add_argument("--value-bytes", type=int, default=64, help="value size (default 64)")
    parser.add_argument("--servers", default="redis,agent",
                        help="of %s: the last two are clusters of processes (default redis,agent)"
                             % ",".join(SERVER_ORDER))
    parser.add_argument("--agent-args", default="--threads 1",
                        help="the embedded agent's flags beside --port and --memory "
                             "(default '--threads 1')")
    parser.add_argument("--redis", default="redis-server", help="redis-server binary")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    parser.add_argument("--memory-share", type=float, default=0.8,
                        help="of the available memory that the servers may take (default 0.8)")
    parser.add_argument("--json", nargs="?", const="", default=None, metavar="FILE",
                        help="also write all of it (default bench/results/scale-<time>.json)")
    arguments = parser.parse_args()
    try:
        arguments.sizes = [int(size) for size in arguments.keys.split(",") if size]
        arguments.pipeline = [int(depth) for depth in arguments.pipeline.split(",")]
    except ValueError as error:
        parser.error("--keys and --pipeline are lists of numbers: %s" % error)
    if arguments.sizes != sorted(set(arguments.sizes)) or min(arguments.sizes, default=100) < 100:
        parser.error("--keys must ascend from at least 100")
    if arguments.rounds < 1 or min(arguments.pipeline) < 1 or arguments.seconds <= 0:
        parser.error("--rounds, --pipeline and --seconds must be at least 1, and more than 0")
    arguments.servers = arguments.servers.split(",")
    unknown = [name for name in arguments.servers if name not in SERVER_ORDER]
    if unknown:
        parser.error("unknown server '%s'; there are: %s" % (unknown[0], ", ".join(SERVER_ORDER)))
    return arguments


# --- memory ---

def replica_bytes(value_bytes):
    if value_bytes <= IN_PLACE_BYTES_MAX:
        return 170 + 2.6 * value_bytes
    return 300 + 1.15 * value_bytes


def expected_bytes(arguments, keys):
    """What all chosen servers together are expected to have resident with `keys` keys."""
    total = FIXED_BYTES
    for name in arguments.servers:
        if name == "redis":
            total += keys * 1.25 * (105 + arguments.value_bytes)
        else:
            total += keys * 1.15 * REPLICAS * replica_bytes(arguments.value_bytes)
            total += keys * KNOWN_REGISTER_BYTES
    return int(total)


def available_bytes():
    """What this process and its children may still take."""
    with open("/proc/meminfo") as file:
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    available = fields["MemAvailable"]
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, \
                open("/sys/fs/cgroup/memory.current") as current:
            text = limit.read().strip()
            if text != "max":
                available = min(available, int(text) - int(current.read()))
    except OSError:  # no control group of that kind
        pass
    return available


def choose_sizes(arguments):
    """The sizes to measure. Raises when memory does not suffice for one that was asked for."""
    budget = arguments.memory_share * available_bytes()
    wanted = arguments.sizes or DEFAULT_KEYS
    fitting = [size for size in wanted if expected_bytes(arguments, size) <= budget]
    if len(fitting) == len(wanted):
        return fitting
    first = wanted[len(fitting)]
    reason = "%d keys take about %.1f GiB, and %.1f GiB are %.0f %% of the available memory" % (
        first, expected_bytes(arguments, first) / GIB, budget / GIB, 100 * arguments.memory_share)
    if arguments.sizes or not fitting:
        raise BenchError("memory does not suffice: %s; take fewer --keys, shorter values, or a "
                         "larger --memory-share" % reason)
    print("left out: %s" % reason)
    return fitting


def pool_bytes(arguments, keys):
    """Of each memory node, in whole regions. Memory that is never touched costs nothing."""
    wanted = int(keys * 1.6 * replica_bytes(arguments.value_bytes)) + GIB
    return -(-wanted // REGION_BYTES) * REGION_BYTES


def is_pool(name, size, node_bytes):
    """Memory nodes of one process have mappings beside each other, which are one then; an agent's
    other mappings may be large, too, but not of that very size."""
    if "onetrip-memory" in name:
        return True
    nodes, beyond = divmod(size, node_bytes)
    return not name and 1 <= nodes <= REPLICAS and beyond < 2 * MIB


def resident_bytes(pid, node_bytes):
    """Of the pool, and of the rest."""
    pool = rest = 0
    for name, size, fields in mappings(pid):
        if is_pool(name, size, node_bytes):
            pool += fields["Rss"]
        else:
            rest += fields["Rss"]
    return pool, rest


def memory_figures(server):
    """Resident bytes of a server: of its pool, and of the rest; and what it says itself."""
    client = Client(server.port)
    if server.name == "redis":
        figures = {"pool": 0, "rest": server.rss_bytes(),
                   "used_memory": int(info(client, "memory")["used_memory"])}
        client.close()
        return figures
    pool, rest = resident_bytes(server.process.pid, server.pool_bytes)
    if isinstance(server, Cluster):
        # Over shm the pages are resident in the process that has touched them: the agent.
        pool = max(pool, sum(resident_bytes(node["pid"], server.pool_bytes)[0]
                             for node in server.record["memnodes"]))
    fields = info(client, "onetrip")
    client.close()
    counters = {name: int(fields["pool_%s_bytes" % name])
                for name in ("owned", "live", "free", "index")}
    return {"pool": pool, "rest": rest, **counters}


# --- servers ---

def program(path, how):
    if shutil.which(path) is None:
        raise BenchError("no program at %s; %s" % (path, how))
    return path


class Agent(Server):
    """The embedded agent; `pool_bytes` are each memory node's."""

    def __init__(self, path, memory_bytes, flags):
        super().__init__("agent", [path, "--port", "{port}", "--memory", "%dMiB"
                                   % (memory_bytes // MIB)] + flags)
        self.pool_bytes = memory_bytes


def make_servers(arguments, keys):
    build = "build it: cmake --build --preset release --target %s, or name another --bin"
    arguments.load = program(os.path.join(os.path.abspath(arguments.bin), "redis_load"),
                             build % "redis_load")
    makers = {
        "redis": lambda: Server("redis", [
            program(arguments.redis, "install it (apt-get install redis-server), name another by "
                                     "--redis, or leave it out: --servers agent"),
            "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", "{dir}"]),
        "agent": lambda: Agent(
            program(os.path.join(os.path.abspath(arguments.bin), "onetrip-agent"),
                    build % "onetrip-agent"),
            pool_bytes(arguments, keys), shlex.split(arguments.agent_args)),
    }
    for name in ("shm", "tcp"):
        makers[name] = lambda fabric=name: Cluster(
            fabric, os.path.dirname(program(os.path.join(os.path.abspath(arguments.bin), "onetrip"),
                                            build % "onetrip onetrip-master onetrip-memnode")),
            fabric, "%dMiB" % (pool_bytes(arguments, keys) // MIB))
    return [makers[name]() for name in SERVER_ORDER if name in arguments.servers]


def run_load(server, arguments, what, depth, order, first, keys):
    """One run of redis_load; adds the CPU time and the round trips of the server."""
    client = Client(server.port)
    client.call("CONFIG", "RESETSTAT")
    cpu_before = cpu_of(server.process.pid)
    done = subprocess.run(
        [arguments.load, "--port", str(server.port), "--command", COMMANDS[what],
         "--order", order, "--first", str(first), "--keys", str(keys),
         "--seconds", str(arguments.seconds), "--clients", str(arguments.clients),
         "--pipeline", str(depth), "--value-bytes", str(arguments.value_bytes),
         "--seed", str(time.monotonic_ns() % (1 << 32))],
        capture_output=True, check=False, text=True)
    if done.returncode != 0:
        log = " (its log ends: %s)" % server.log_tail() if server.log_tail() else ""
        raise BenchError("%s of %d keys from %d on at %s failed: %s%s" % (
            what, keys, first, server.name, done.stderr.strip(), log))
    figures = json.loads(done.stdout)
    if figures["misses"]:
        raise BenchError("%s: %d of %d keys are missing at a %s" % (
            server.name, figures["misses"], figures["requests"], what))
    cpu_s = cpu_of(server.process.pid) - cpu_before
    figures["cpu_us_per_request"] = cpu_s * 1e6 / figures["requests"]
    if server.name != "redis":
        fields = info(client, "onetrip")
        figures["round_trips"] = float(fields[TRIPS[what]])
        # "1=99,2=1": calls by their round trips.
        calls = fields[TRIPS[what] + "_histogram"].split(",")
        figures["round_trips_most"] = max(int(pair.split("=")[0]) for pair in calls)
    client.close()
    return figures


# --- measurement ---

def rotated(servers, index):
    shift = index % len(servers)
    return servers[shift:] + servers[:shift]


def measure_inserts(servers, arguments, have, size):
    runs = {server.name: [] for server in servers}
    bounds = [have + (size - have) * i // arguments.rounds for i in range(arguments.rounds + 1)]
    for index, (first, last) in enumerate(zip(bounds, bounds[1:])):
        for server in rotated(servers, index):
            runs[server.name].append(run_load(server, arguments, "insert",
                                              arguments.insert_pipeline, "sequential", first,
                                              last - first))
    return runs


def measure_cases(servers, arguments, size):
    results = {(what, order, depth): {server.name: [] for server in servers}
               for depth in arguments.pipeline for what, order in CASES}
    for index in range(arguments.rounds):
        for number, (what, order, depth) in enumerate(results):
            for server in rotated(servers, index + number):
                results[what, order, depth][server.name].append(
                    run_load(server, arguments, what, depth, order, 0, size))
    return results


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def summarise(by_server):
    row = {"servers": {}}
    for name, runs in by_server.items():
        rates = [run["rps"] for run in runs]
        row["servers"][name] = {"median_rps": statistics.median(rates), "min_rps": min(rates),
                                "max_rps": max(rates), "runs": runs,
                                **{field: median(runs, field) for field in
                                   ("cpu_us_per_request", "p50_us", "p99_us")},
                                "max_us": max(run["max_us"] for run in runs)}
        if name != "redis":
            row["servers"][name].update(
                round_trips=median(runs, "round_trips"),
                round_trips_most=max(run["round_trips_most"] for run in runs))
    if "redis" not in by_server:
        return row
    for name, runs in by_server.items():
        if name == "redis":
            continue
        # Runs of one round stand side by side in time.
        pairs = [a["rps"] / r["rps"] for a, r in zip(runs, by_server["redis"])]
        ours, theirs = row["servers"][name], row["servers"]["redis"]
        ours.update(ratio_rps=statistics.median(pairs), ratio_min=min(pairs), ratio_max=max(pairs),
                    ratio_cpu=ours["cpu_us_per_request"] / theirs["cpu_us_per_request"])
    return row


def print_row(title, row):
    for name, figures in row["servers"].items():
        line = "%-17s %-6s %9.0f %19s %8.2f %8.0f %8.0f %9.0f" % (
            title, name, figures["median_rps"],
            "%.0f..%.0f" % (figures["min_rps"], figures["max_rps"]),
            figures["cpu_us_per_request"], figures["p50_us"], figures["p99_us"], figures["max_us"])
        if name != "redis":
            line += " %6.2f %4d" % (figures["round_trips"], figures["round_trips_most"])
        if "ratio_rps" in figures:
            line += "  %.2f (%.2f..%.2f), cpu %.2f" % (
                figures["ratio_rps"], figures["ratio_min"], figures["ratio_max"],
                figures["ratio_cpu"])
        print(line, flush=True)


def per_key(now, before, keys):
    return {field: (now[field] - before[field]) / keys for field in now}


def print_memory(memory, empty):
    """The pool by its counters, as granted blocks: with huge pages memory is resident where no
    block is yet, also without a key."""
    redis = memory.get("redis")
    theirs = redis["rest"] if redis else 0
    for name, bytes_of in memory.items():
        if name == "redis":
            print("bytes per key     redis  %.0f resident; used_memory %.0f" % (
                theirs, bytes_of["used_memory"]))
            continue
        pool = REPLICAS * bytes_of["owned"]
        ratio = (" (%.2f and %.2f of redis)" % (pool / theirs, (pool + bytes_of["rest"]) / theirs)
                 if theirs else "")
        print("bytes per key     %-6s pool %.0f, with the agent's %.0f: %.0f%s" % (
            name, pool, bytes_of["rest"], pool + bytes_of["rest"], ratio))
        print("%25sa replica: blocks %.0f, live %.0f, index %.0f; resident in all: %.0f beyond the "
              "%.0f MiB without a key" % (
                  "", bytes_of["owned"], bytes_of["live"], bytes_of["index"], bytes_of["pool"],
                  empty[name]["pool"] / MIB), flush=True)


def measure_size(servers, arguments, have, size, empty):
    """Grows from `have` keys to `size`, measures, prints; returns it for the JSON."""
    print("\n%d keys" % size)
    print("%-17s %-6s %9s %19s %8s %8s %8s %9s %6s %4s  %s" % (
        "test", "server", "median/s", "min..max", "cpu us", "p50 us", "p99 us", "max us", "trips",
        "most", "rate / redis"))
    inserts = summarise(measure_inserts(servers, arguments, have, size))
    print_row("insert -P %d" % arguments.insert_pipeline, inserts)
    memory = {server.name: per_key(memory_figures(server), empty[server.name], size)
              for server in servers}
    rows = []
    for (what, order, depth), by_server in measure_cases(servers, arguments, size).items():
        row = {"test": what, "order": order, "pipeline": depth, **summarise(by_server)}
        print_row("%s %s -P %d" % (what, order, depth), row)
        rows.append(row)
    print_memory(memory, empty)
    return {"keys": size, "insert": inserts, "results": rows, "bytes_per_key": memory}


def write_json(arguments, machine, empty, sizes):
    path = arguments.json or os.path.join(
        compare_redis.ROOT, "bench/results/scale-%s.json" % time.strftime("%Y%m%d-%H%M%S"))
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump({"machine": machine, "empty_bytes": empty, "sizes": sizes}, out, indent=1)
    print("written: %s" % path)


def describe(arguments):
    machine = {"cores": os.cpu_count(), "memory_bytes": available_bytes(),
               "load_before": os.getloadavg()[0]}
    for field in ("rounds", "seconds", "clients", "value_bytes", "agent_args", "insert_pipeline"):
        machine[field] = getattr(arguments, field)
    compare_redis.warn_when_busy(machine, "scale")
    return machine


def measure_all(servers, arguments, sizes, machine):
    measured = []
    empty = {}
    try:
        for server in servers:
            server.start()
        empty = {server.name: memory_figures(server) for server in servers}
        have = 0
        for size in sizes:
            # Others may have taken memory since the sizes were chosen.
            needed = expected_bytes(arguments, size) - expected_bytes(arguments, have)
            if needed > available_bytes():
                raise BenchError("memory does not suffice any more for %d keys: they take about "
                                 "%.1f GiB more, %.1f are available" % (
                                     size, needed / GIB, available_bytes() / GIB))
            measured.append(measure_size(servers, arguments, have, size, empty))
            have = size
    finally:
        if measured and arguments.json is not None:
            write_json(arguments, machine, empty, measured)


def main():
    arguments = parse_arguments()
    servers = []
    try:
        machine = describe(arguments)
        sizes = choose_sizes(arguments)
        servers = make_servers(arguments, sizes[-1])
        measure_all(servers, arguments, sizes, machine)
    except (BenchError, OSError) as error:
        print("scale: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for server in servers:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
