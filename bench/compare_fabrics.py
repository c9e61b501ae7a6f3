#!/usr/bin/env python3
"""Compares agents by where their memory nodes are, and measures what a cluster costs at rest.

  bench/compare_fabrics.py [--rounds 5] [--seconds 2] [--tests get,set]

In one run, in rotating order: the embedded agent, an agent of a cluster of processes over shm, one
over tcp, and the null server, whose GET by one client is a bare round trip of the loopback device.
Prints medians, ratios by round, the CPU time that memory nodes spend per command, the start of a
cluster in seconds, and an idle cluster's CPU share and memory.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import compare_redis
from compare_servers import BenchError, Client, Server, free_port

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
IDLE_S = 10.0


def cpu_of(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_of(pid):
    """Resident bytes, and those of them that are shared memory: a memory node's pool."""
    fields = {}
    with open("/proc/%d/status" % pid) as status:
        for line in status:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "RssShmem"):
                fields[name] = int(value.split()[0]) * 1024
    return fields["VmRSS"], fields["RssShmem"]


class Cluster(Server):
    """`onetrip up` with one agent or more; as a Server it is its first agent."""

    def __init__(self, name, bin_dir, fabric, memory, agents=1):
        super().__init__(name, [])
        self.tool = os.path.join(bin_dir, "onetrip")
        self.path = os.path.join(self.directory, "c")
        self.flags = ["--fabric", fabric, "--memory", memory, "--agents", str(agents)]
        self.start_s = 0.0
        self.record = None

    def start(self, ready_within_s=60):
        self.port = free_port()
        started = time.monotonic()
        done = subprocess.run([self.tool, "up", "--dir", self.path, "--port", str(self.port)]
                              + self.flags, capture_output=True, check=False, text=True)
        if done.returncode != 0:
            raise BenchError("onetrip up: " + done.stderr)
        client = Client(self.port)
        client.call("SET", "first", "1")
        client.close()
        self.start_s = time.monotonic() - started
        with open(os.path.join(self.path, "cluster.json")) as file:
            self.record = json.load(file)

        class Process:
            pid = self.record["agents"][0]["pid"]
        self.process = Process

    def log_tail(self):
        with open(self.record["agents"][0]["log"], errors="replace") as log:
            return log.read()[-400:].strip()

    def pids(self):
        return {process["name"]: process["pid"] for process in
                [self.record["master"]] + self.record["memnodes"] + self.record["agents"]}

    def memnode_cpu_s(self):
        return sum(cpu_of(node["pid"]) for node in self.record["memnodes"])

    def stop(self):
        if self.record is not None:
            subprocess.run([self.tool, "down", "--dir", self.path], capture_output=True,
                           check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def parse_arguments():
    root = compare_redis.ROOT
    parser = argparse.ArgumentParser(prog="bench/compare_fabrics.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one run (default 2)")
    parser.add_argument("--tests", default="get,set,incr")
    parser.add_argument("--pipeline", default="1,16")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--client-threads", type=int, default=1)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--value-bytes", type=int, default=64)
    parser.add_argument("--memory", default="512MiB", help="of each memory node (default 512MiB)")
    parser.add_argument("--bin", default=os.path.join(root, "build/release/bin"))
    arguments = parser.parse_args()
    arguments.requests = 0
    arguments.null_server = ""
    arguments.agent = os.path.join(arguments.bin, "onetrip-agent")
    return arguments


def run_round(servers, arguments, cases, requests, results):
    for index, (test, depth, clients) in enumerate(cases):
        arguments.clients = clients
        shift = index % len(servers)
        for server in servers[shift:] + servers[:shift]:
            before = server.memnode_cpu_s() if isinstance(server, Cluster) else 0.0
            count = requests[test, depth, clients]
            figures = compare_redis.run_once(server, arguments, test, depth, count)
            after = server.memnode_cpu_s() if isinstance(server, Cluster) else 0.0
            figures["memnode_us_per_request"] = (after - before) * 1e6 / count
            results.setdefault((test, depth, clients), {}).setdefault(server.name,
                                                                     []).append(figures)


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def print_results(results):
    print("%-5s %3s %3s  %-9s %10s %9s %9s %9s %8s  %s" % (
        "test", "-P", "-c", "agent", "median/s", "p50 us", "cpu us/rq", "nodes us", "", "ratios"))
    for (test, depth, clients), by_server in results.items():
        for name, runs in by_server.items():
            ratios = []
            for peer in ("embedded", "null"):
                if peer == name or peer not in by_server:
                    continue
                pairs = [a["rps"] / b["rps"] for a, b in zip(runs, by_server[peer])]
                ratios.append("rate/%s %.2f" % (peer, statistics.median(pairs)))
            if clients == 1 and name != "null":
                pairs = [a["p50_ms"] / b["p50_ms"] for a, b in zip(runs, by_server["null"])]
                ratios.append("p50/loopback %.2f" % statistics.median(pairs))
            print("%-5s %3d %3d  %-9s %10.0f %9.1f %9.2f %9.2f %8s  %s" % (
                test, depth, clients, name, median(runs, "rps"), 1000 * median(runs, "p50_ms"),
                median(runs, "cpu_us_per_request"), median(runs, "memnode_us_per_request"), "",
                ", ".join(ratios)))


def print_rest(arguments):
    """A cluster of master, three memory nodes and two agents that has nothing to do."""
    for fabric in ("shm", "tcp"):
        cluster = Cluster("idle", arguments.bin, fabric, arguments.memory, agents=2)
        try:
            cluster.start()
            time.sleep(1.0)
            before = {name: cpu_of(pid) for name, pid in cluster.pids().items()}
            time.sleep(IDLE_S)
            shares = {name: (cpu_of(pid) - before[name]) / IDLE_S
                      for name, pid in cluster.pids().items()}
            print("\nidle cluster over %s: up in %.2f s, %.2f %% of a core in all" % (
                fabric, cluster.start_s, 100 * sum(shares.values())))
            for name, pid in cluster.pids().items():
                resident, shared = memory_of(pid)
                print("  %-10s %5.2f %% of a core, %5.1f MiB beside the pool" % (
                    name, 100 * shares[name], (resident - shared) / 1048576))
        finally:
            cluster.stop()


def main():
    arguments = parse_arguments()
    tests = arguments.tests.split(",")
    depths = [int(depth) for depth in arguments.pipeline.split(",")]
    cases = [(test, depth, arguments.clients) for depth in depths for test in tests]
    cases += [("get", 1, 1), ("set", 1, 1)]
    servers = [Server("embedded", [os.path.abspath(arguments.agent), "--port", "{port}",
                                   "--memory", arguments.memory]),
               Cluster("shm", arguments.bin, "shm", arguments.memory),
               Cluster("tcp", arguments.bin, "tcp", arguments.memory),
               Server("null", [os.path.abspath(compare_redis.null_server_binary(arguments)),
                               "{port}"])]
    results = {}
    try:
        for server in servers:
            server.start()
            server.preload(arguments.keys, arguments.value_bytes)
        requests = {}
        for case in cases:
            arguments.clients = case[2]
            requests[case] = compare_redis.choose_requests(servers[2], arguments, *case[:2])
        for _ in range(arguments.rounds):
            run_round(servers, arguments, cases, requests, results)
        print_results(results)
    except (BenchError, OSError) as error:
        print("compare_fabrics: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for server in servers:
            server.stop()
    print_rest(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
