#!/usr/bin/env python3
"""How long expired keys' memory is in use when nobody touches them, and what GETs notice of it.

  bench/active_expiry.py [--keys 1000000] [--ttl 25] [--fabric shm] [--agents 2]

Loads the keys through `redis-cli --pipe`, half of them at each agent, all with one deadline (PXAT)
--ttl seconds after the start, beside 10,000 keys without one. One client asks for the latter all
the time. Prints the pool's live bytes and DBSIZE around the deadline, how long after it they were
back, and the GETs' latencies ahead of the deadline, while keys are removed, and afterwards.

Exit code 1 when the memory was not back within --limit seconds.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import time

import compare_redis
from cluster_processes import MIB, Cluster
from compare_servers import BenchError, Client, encode

KEPT = 10_000


def info(client, section):
    lines = client.call("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def load(port, first, keys, value_bytes, deadline_ms):
    """Starts to set keys; the process ends when all are set."""
    pipe = subprocess.Popen(["redis-cli", "-p", str(port), "--pipe", "--pipe-timeout", "120"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    value = b"v" * value_bytes

    def feed():
        for start in range(first, first + keys, 1000):
            pipe.stdin.write(b"".join(
                encode("SET", b"timed:%08d" % i, value, "PXAT", str(deadline_ms))
                for i in range(start, min(start + 1000, first + keys))))
        pipe.stdin.close()
    return pipe, feed


def load_all(ports, keys, value_bytes, deadline_ms):
    share = keys // len(ports)
    feeders = []
    for i, port in enumerate(ports):
        pipe, feed = load(port, i * share, share, value_bytes, deadline_ms)
        feeder = multiprocessing.get_context("fork").Process(target=feed)
        feeder.start()
        pipe.stdin.close()
        feeders.append((pipe, feeder))
    for pipe, feeder in feeders:
        output = pipe.stdout.read().decode()
        feeder.join()
        if pipe.wait() != 0 or "errors: 0" not in output:
            raise BenchError("redis-cli --pipe: " + output)


def ask(port, until, latencies):
    """GETs of keys that stay, until a time; sends [(when, us)]."""
    client = Client(port)
    found = []
    i = 0
    while time.time() < until.value:
        started = time.perf_counter()
        if client.call("GET", "kept:%d" % (i % KEPT)) != b"kept":
            raise BenchError("a key without a deadline is gone")
        found.append((time.time(), (time.perf_counter() - started) * 1e6))
        i += 7
    latencies.send(found)


def show(name, latencies_us):
    latencies_us.sort()
    if not latencies_us:
        print("  GETs %-28s none" % name)
        return
    at = lambda share: latencies_us[min(len(latencies_us) - 1, int(share * len(latencies_us)))]
    print("  GETs %-28s %7d, us: p50 %.0f, p99 %.0f, p99.9 %.0f, longest %.0f" % (
        name, len(latencies_us), at(0.5), at(0.99), at(0.999), latencies_us[-1]))


def live_bytes(clients):
    """Of records: the index does not shrink."""
    total = 0
    for client in clients:
        fields = info(client, "onetrip")
        total += int(fields["pool_live_bytes"]) - int(fields["pool_index_bytes"])
    return total


def wait_for(deadline_s, clients, before, give_up_s):
    """Prints how the memory comes back; returns seconds after the deadline, or None."""
    shown = 0
    keys_gone_s = None
    while True:
        passed = time.time() - deadline_s
        live, keys = live_bytes(clients), clients[0].call("DBSIZE")
        if keys <= before["keys"] and keys_gone_s is None:
            keys_gone_s = passed
        # What walks have left in the hands of epochs and bitmaps is no more than a per cent.
        back = keys <= before["keys"] and live <= before["bytes"] * 1.01 + MIB
        if passed >= shown or back:
            print("  %5.1f s after it: %7.1f MiB live, %8d keys" % (passed, live / MIB, keys))
            shown += 1
        if back or passed > give_up_s:
            return keys_gone_s, passed if back else None
        time.sleep(0.1)


def measure(cluster, arguments):
    ports = [cluster.port + i for i in range(arguments.agents)]
    clients = [Client(port) for port in ports]
    for i in range(KEPT):
        clients[0].call("SET", "kept:%d" % i, "kept")
    before = {"bytes": live_bytes(clients), "keys": clients[0].call("DBSIZE")}
    print("  %.1f MiB live, %d keys before" % (before["bytes"] / MIB, before["keys"]))
    deadline = time.time() + arguments.ttl
    load_all(ports, arguments.keys, arguments.value_bytes, int(deadline * 1000))
    loaded_s = deadline - time.time()
    if loaded_s < 3:
        raise BenchError("loading took too long: give a longer --ttl")
    print("  loaded %d keys, %.1f s ahead of their deadline" % (arguments.keys, loaded_s))
    until = multiprocessing.Value("d", deadline + 1000)
    here, there = multiprocessing.Pipe(duplex=False)
    asking = multiprocessing.Process(target=ask, args=(ports[0], until, there))
    began = time.time()
    asking.start()
    time.sleep(max(0.0, deadline - time.time() - 0.5))
    print("  %.1f MiB live, %d keys; %s" % (live_bytes(clients) / MIB, clients[0].call("DBSIZE"),
                                            info(clients[0], "keyspace")["db0"]))
    keys_gone_s, back_s = wait_for(deadline, clients, before, arguments.give_up)
    now = time.time()
    until.value = now + 3
    found = here.recv()
    asking.join()
    expired = sum(int(info(client, "stats")["expired_keys"]) for client in clients)
    gone = keys_gone_s if keys_gone_s is not None else now - deadline
    part = lambda low, high: [us for when, us in found if low <= when < high]
    show("ahead of it", part(began + 1, deadline))
    show("while keys were removed", part(deadline, deadline + gone))
    show("afterwards", part(now, now + 3))
    print("  removed: %d; keys gone %s, memory back %s after their deadline" % (
        expired, "%.1f s" % keys_gone_s if keys_gone_s is not None else "never",
        "%.1f s" % back_s if back_s is not None else "never"))
    for client in clients:
        client.close()
    return back_s


def main():
    parser = argparse.ArgumentParser(prog="bench/active_expiry.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--ttl", type=float, default=25.0, help="seconds (default 25)")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp", "mixed"))
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--memory", default="1GiB", help="of each memory node (default 1GiB)")
    parser.add_argument("--limit", type=float, default=0.0,
                        help="seconds that are too many; 0: none (default)")
    parser.add_argument("--give-up", type=float, default=60.0, help="seconds (default 60)")
    parser.add_argument("--bin", default=os.path.join(compare_redis.ROOT, "build/release/bin"))
    arguments = parser.parse_args()
    cluster = Cluster("expiry", arguments.bin, arguments.fabric, arguments.memory, arguments.agents)
    try:
        cluster.start()
        print("%d keys of %d bytes over %s, %d agents, load %.2f:" % (
            arguments.keys, arguments.value_bytes, arguments.fabric, arguments.agents,
            os.getloadavg()[0]))
        back_s = measure(cluster, arguments)
        return 1 if back_s is None or 0 < arguments.limit < back_s else 0
    except (BenchError, OSError) as error:
        print("active_expiry: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
