#!/usr/bin/env python3
"""Tests with real processes: master, memory nodes and agents as a user deploys them.

  tests/cluster/run.py --bin build/release/bin [--filter TEXT] [--jobs N] [--list] [--verbose]

With --jobs, what fails beside others is run once more with nothing beside it, for its deadlines are those of a user
who waits, on a machine that does nothing else. If it passes then, that counts, and a line "failed beside others"
names it.

Exit code 0 when everything passed; the last line is `N passed, N failed`.
"""

import argparse
import multiprocessing
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "compat"))

# pylint: disable=wrong-import-position
import registry  # noqa: E402
from report import Report, run_live  # noqa: E402


def run_one(name, bin_dir, verbose):
    """In a process of its own: tests change the environment, and name what they make by the process."""
    random.seed()
    report = Report(verbose)
    run_live([test for test in registry.tests() if test[0] == name], registry.Context(bin_dir), report)
    return report


def run_some(names, bin_dir, at_once, report):
    with multiprocessing.Pool(at_once, maxtasksperchild=1) as pool:
        runs = [pool.apply_async(run_one, (name, bin_dir, report.verbose)) for name in names]
        for run in runs:
            report.add(run.get())


def run_side_by_side(tests, bin_dir, jobs, report):
    alone = [name for name, _ in tests if registry.is_alone(name)]
    others = [name for name, _ in tests if not registry.is_alone(name)]
    run_some(others, bin_dir, jobs, report)
    if jobs > 1:
        again, report.failures = report.failures, []
        run_some(again, bin_dir, 1, report)
        for name in again:
            print("failed beside others, %s alone: %s" % (
                "failed" if name in report.failures else "passed", name))
    run_some(alone, bin_dir, 1, report)


def main():
    root = os.path.dirname(os.path.dirname(HERE))
    parser = argparse.ArgumentParser(prog="tests/cluster/run.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(root, "build/release/bin"),
                        help="folder of the programs (default build/release/bin)")
    parser.add_argument("--filter", default="", help="run only tests whose name contains this")
    parser.add_argument("--jobs", type=int, default=1,
                        help="so many tests at a time, each on clusters of its own (default 1)")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--verbose", action="store_true", help="print passing tests too")
    arguments = parser.parse_args()
    bin_dir = os.path.abspath(arguments.bin)
    for name in ("onetrip", "onetrip-master", "onetrip-memnode", "onetrip-agent"):
        if not os.access(os.path.join(bin_dir, name), os.X_OK):
            parser.error("no %s in %s; build it or pass --bin" % (name, bin_dir))
    tests = [test for test in registry.tests() if arguments.filter in test[0]]
    if arguments.list:
        print("\n".join(test[0] for test in tests))
        return 0
    report = Report(arguments.verbose)
    run_side_by_side(tests, bin_dir, max(1, arguments.jobs), report)
    for name in report.failures:
        print("failed: " + name)
    print("%d passed, %d failed" % (report.passed, len(report.failures)))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
