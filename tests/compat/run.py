#!/usr/bin/env python3
"""Compatibility tests: the agent against redis-server, real clients, bad input, hard connections.

  tests/compat/run.py --agent build/release/bin/onetrip-agent [--filter TEXT] [--seeds N]

Exit code 0 when everything passed; the last line is `N passed, N failed`. With
`--agent redis-server` the differential part compares Redis with itself, which must always pass.
"""

import argparse
import os
import sys
import time

import cases_bits
import cases_connection
import cases_geo
import cases_hashes
import cases_keys
import cases_lists
import cases_service
import cases_sets
import cases_sort
import cases_sorted_sets
import cases_streams
import cases_strings
import cases_transactions
import live
import random_streams
import rules
import servers
from differential import Mismatch, Pair
from report import Report, run_live
from steps import Batch, title


RESTARTS_MAX = 20


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tests/compat/run.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--agent", default=os.path.join(root, "build/release/bin/onetrip-agent"),
                        help="agent binary (default build/release/bin/onetrip-agent)")
    parser.add_argument("--redis", default="redis-server", help="redis-server binary")
    parser.add_argument("--agent-args", default="", help="more flags for the compared agent")
    parser.add_argument("--differential", action="store_true",
                        help="only the comparison with redis-server")
    parser.add_argument("--filter", default="", help="run only tests whose name contains this")
    parser.add_argument("--seed", type=int, default=1, help="first seed of the random streams")
    parser.add_argument("--seeds", type=int, default=60, help="number of random streams")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--verbose", action="store_true", help="print passing tests too")
    arguments = parser.parse_args()
    if os.sep in arguments.agent:
        arguments.agent = os.path.abspath(arguments.agent)
        if not os.access(arguments.agent, os.X_OK):
            parser.error("no agent at %s; build it or pass --agent" % arguments.agent)
    return arguments


def differential_tests(arguments):
    """(name, which pair, protocol, steps) of every stream."""
    for module in (cases_strings, cases_bits, cases_keys, cases_connection, cases_transactions,
                   cases_service, cases_hashes, cases_lists, cases_sets, cases_sort,
                   cases_sorted_sets, cases_geo, cases_streams):
        for name, steps in module.cases():
            for protocol in (2, 3):
                yield "%s [RESP%d]" % (name, protocol), "open", protocol, steps
    for name, steps in cases_connection.password_cases():
        yield "%s [RESP2]" % name, "password", 2, steps
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        protocol = 2 + seed % 2
        yield ("random stream, seed %d [RESP%d]" % (seed, protocol), "open", protocol,
               random_streams.stream(seed))
    for seed in range(arguments.seed, arguments.seed + arguments.seeds // 2):
        yield ("damaged stream, seed %d [RESP2]" % seed, "open", 2,
               random_streams.damaged_stream(seed))


def show_stream(steps, lines_max=40):
    lines = []
    for step in steps:
        if isinstance(step, Batch):
            lines += ["on %d, one pipeline:" % step.on]
            lines += ["  " + title(item)[:90] for item in step.commands]
        else:
            lines.append("on %d: %s" % (step.on, title(step)[:90]))
    if len(lines) > lines_max:
        lines = ["(%d lines before these)" % (len(lines) - lines_max)] + lines[-lines_max:]
    return "\n      ".join(lines)


def run_differential(arguments, tests, report):
    judge = rules.Judge(rules.load())
    pairs = {}
    try:
        for name, which, protocol, steps in tests:
            if which not in pairs:
                password = "secret" if which == "password" else None
                pairs[which] = Pair(
                    servers.redis_server(arguments.redis, password),
                    servers.agent(arguments.agent, password, arguments.agent_args.split()),
                    judge, authenticated=which != "password").start()
            pair = pairs[which]
            started = time.monotonic()
            try:
                pair.ensure_alive()
                pair.run(steps, protocol)
                report.passing(name, time.monotonic() - started)
            except Mismatch as mismatch:
                report.failing(name, str(mismatch) + died(pair))
                if name.startswith("random"):
                    print("    shortest stream found:\n      "
                          + show_stream(pair.shrink(steps, protocol)), flush=True)
            except Exception as error:  # pylint: disable=broad-except
                report.failing(name, "%s: %s%s" % (type(error).__name__, error, died(pair)))
                if pair.restarts > RESTARTS_MAX:
                    break
    finally:
        for which, pair in pairs.items():
            code = pair.stop()
            if code != 0:
                report.failing("agent ends cleanly [%s]" % which, "exit code %s" % code)
            else:
                report.passing("agent ends cleanly [%s]" % which, 0.0)
    return judge


def died(pair):
    """The last words of an agent that died; a sanitizer's report is read from its first line on."""
    time.sleep(0.2)
    if pair.agent.alive():
        return ""
    text = pair.agent.log_tail(20000)
    for mark in ("runtime error:", "ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "CHECK"):
        if mark in text:
            text = text[text.rindex(mark):]
            break
    return "\n    the agent died: " + text[:3000]


def main():
    arguments = parse_arguments()
    streams = [test for test in differential_tests(arguments) if arguments.filter in test[0]]
    tests = [test for test in live.tests() if arguments.filter in test[0]]
    if arguments.list:
        print("\n".join([test[0] for test in streams] + [test[0] for test in tests]))
        return 0
    report = Report(arguments.verbose)
    judge = run_differential(arguments, streams, report)
    is_redis = "redis-server" in os.path.basename(arguments.agent)
    if is_redis:
        tests = [test for test in tests if test[1].on_redis_too]
    if arguments.differential:
        tests = []
    run_live(tests, live.Context(arguments.agent, arguments.redis), report)
    if not arguments.filter and not is_redis:
        for rule in judge.stale():
            report.failing("stale rule: " + rule.name, "no reply of this run needed it")
    for name in report.failures:
        print("failed: " + name)
    print("%d passed, %d failed" % (report.passed, len(report.failures)))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
