#!/usr/bin/env python3
"""Tampers with the keys of a healthy cluster, and nemesis_client must notice.

  tests/nemesis/selftest.py --bin build/release/bin

Exit code 0 when it did each time; the last line is `N passed, N failed`.
"""

import argparse
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[1:1] = [os.path.join(TESTS, "cluster"), os.path.join(TESTS, "compat")]

# pylint: disable=wrong-import-position
from client import NemesisClient  # noqa: E402
from local_cluster import LocalCluster  # noqa: E402
from report import Report  # noqa: E402

AGENTS = 2
BEFORE_S = 2.0
AFTER_S = 1.0


def nothing(_):
    """The control: without it the clients find nothing."""


def delete_written_once(client):
    client.call("DEL", *["once:%d:%d" % (writer, number)
                         for writer in range(AGENTS) for number in range(10)])


def increment_a_counter(client):
    client.call("INCR", "counter:1")


def write_old_values(client):
    for _ in range(300):
        client.call("SET", "register:1", "1")


def write_keys_of_generations(client):
    for _ in range(100):
        for generation in range(5):
            client.call("SET", "g%d:h0" % generation, "a stranger's")
        time.sleep(0.01)


def delete_new_keys(client):
    # The first batches are deleted already, and there is no knowing how many have been written.
    for batch in range(400):
        client.call("DEL", *["grow:%d:%d" % (batch, number) for number in range(500)])


def delete_keys_with_deadlines(client):
    client.call("DEL", *["deadline:%d" % number for number in range(1000)])


def write_a_mixture_of_large_values(client):
    # Its writer writes on meanwhile.
    for _ in range(40):
        client.call("SET", "register:%d" % AGENTS, "1,1,2," * 200000)


def nothing_beside_flushes(_):
    """The control of runs with FLUSHALL."""


def write_keys_beside_flushes(client):
    write_keys_of_generations(client)


# A tampering, a word of what must be said of it, and the clients' flags.
TAMPERINGS = ((nothing, "", ()), (delete_written_once, "is lost", ()),
              (increment_a_counter, "acknowledged INCRs", ()),
              (write_old_values, "was acknowledged before it", ()),
              (write_keys_of_generations, "not linearizable", ()),
              (delete_new_keys, "the acknowledged SET grow:", ()),
              (delete_keys_with_deadlines, "long before its deadline", ()),
              (write_a_mixture_of_large_values, "that are no one value", ()),
              (nothing_beside_flushes, "", ("--flush-all",)),
              (write_keys_beside_flushes, "not linearizable", ("--flush-all",)))


def tamper(bin_dir, action, scratch, flags):
    """The failures that the clients have found."""
    with LocalCluster(bin_dir, agents=AGENTS, memory="128MiB") as cluster:
        addresses = ["127.0.0.1:%d" % (cluster.port + i) for i in range(AGENTS)]
        client = NemesisClient(os.path.join(bin_dir, "nemesis_client"), addresses, 1,
                               scratch, flags)
        try:
            for number in range(AGENTS):
                client.tell("up %d" % number)
            time.sleep(BEFORE_S)
            with cluster.connect(agent=0) as stranger:
                action(stranger)
            time.sleep(AFTER_S)
            return client.finish()["failures"]
        finally:
            client.kill()


def main():
    parser = argparse.ArgumentParser(prog="tests/nemesis/selftest.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(TESTS), "build/release/bin"),
                        help="folder of the programs (default build/release/bin)")
    bin_dir = os.path.abspath(parser.parse_args().bin)
    report = Report(verbose=True)
    with tempfile.TemporaryDirectory(prefix="onetrip_nemesis.") as scratch:
        for action, word, flags in TAMPERINGS:
            started = time.monotonic()
            failures = tamper(bin_dir, action, scratch, flags)
            name = "told apart: " + action.__name__.replace("_", " ")
            if any(word in failure for failure in failures) if word else not failures:
                report.passing(name, time.monotonic() - started)
            else:
                report.failing(name, "the clients say: %s" % failures[:3])
    print("%d passed, %d failed" % (report.passed, len(report.failures)))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
