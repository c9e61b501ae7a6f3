#!/usr/bin/env python3
"""Compares agents by where their memory nodes are, and measures what a cluster costs at rest.

  bench/compare_fabrics.py [--rounds 5] [--seconds 2] [--tests get,set] [--huge-pages]

In one run, in rotating order: the embedded agent, an agent of a cluster of processes over shm, one
over tcp, and the null server, whose GET by one client is a bare round trip of the loopback device.
Prints medians, ratios by round, the CPU time that memory nodes spend per command, the start of a
cluster in seconds, and an idle cluster's CPU share and memory.
"""

import argparse
import contextlib
import os
import statistics
import sys

import compare_redis
import idle_cost
from cluster_processes import Cluster, pages_of, reserved_huge_pages, size_bytes
from compare_servers import BenchError, Server

IDLE_S = 10.0


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
    parser.add_argument("--huge-pages", action="store_true",
                        help="as root: raise vm.nr_hugepages by what the shm cluster's memory nodes "
                             "need, for the time of the run")
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
            print("\nidle cluster over %s, up in %.2f s:" % (fabric, cluster.start_s))
            idle_cost.measure(cluster, IDLE_S)
        finally:
            cluster.stop()


def print_pages(servers, arguments):
    """Which pages the pools have, of servers that have one."""
    pool_bytes = size_bytes(arguments.memory)
    print("pages of the pool:")
    for server in servers:
        pids = server.pids() if isinstance(server, Cluster) else {"": server.process.pid}
        for name, pid in pids.items():
            pages = pages_of(pid, pool_bytes)
            if pages != "no pool":
                print("  %-9s %-10s %s" % (server.name, name, pages))
    print()


def compare(servers, arguments, cases, results):
    for server in servers:
        server.start()
        server.preload(arguments.keys, arguments.value_bytes)
    print_pages(servers, arguments)
    requests = {}
    for case in cases:
        arguments.clients = case[2]
        requests[case] = compare_redis.choose_requests(servers[2], arguments, *case[:2])
    for _ in range(arguments.rounds):
        run_round(servers, arguments, cases, requests, results)


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
    # Three memory nodes by default.
    reserve = (reserved_huge_pages(3 * size_bytes(arguments.memory)) if arguments.huge_pages
               else contextlib.nullcontext())
    try:
        with reserve:
            try:
                compare(servers, arguments, cases, results)
            finally:
                # The pages go back only when no process has them.
                for server in servers:
                    server.stop()
        print_results(results)
    except (BenchError, OSError) as error:
        print("compare_fabrics: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print_rest(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
