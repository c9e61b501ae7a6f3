#!/usr/bin/env python3
"""Redis's own test suite against an agent.

  tests/compat/redis_suite.py --source redis-7.0.15 [--agent build/release/bin/onetrip-agent]

--source is a folder with Redis 7.0's source (`apt-get source redis` fetches it where source
packages are listed); nothing in it is changed. Needs tclsh. redis_suite.toml says which units run
and which of their tests are left out, and why.

Exit code 0 when everything passed; the last line is `N passed, N failed`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import servers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# The suite's lines about a test that is over, and the line that ends its list of them.
OVER = re.compile(r"^\[(ok|err|exception)\]: (.*)")
SUMMARY = "!!! WARNING The following tests failed"
UNIT_S = 600


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tests/compat/redis_suite.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="folder with Redis 7.0's source")
    parser.add_argument("--agent", default=os.path.join(ROOT, "build/release/bin/onetrip-agent"),
                        help="agent binary (default build/release/bin/onetrip-agent)")
    parser.add_argument("--agent-args", default="", help="more flags for the agent")
    parser.add_argument("--filter", default="", help="run only units whose name contains this")
    arguments = parser.parse_args()
    if not os.path.isfile(os.path.join(arguments.source, "tests/test_helper.tcl")):
        parser.error("no tests/test_helper.tcl in %s; give the folder of Redis's source"
                     % arguments.source)
    if not os.access(arguments.agent, os.X_OK):
        parser.error("no agent at %s; build it or pass --agent" % arguments.agent)
    if shutil.which("tclsh") is None:
        parser.error("no tclsh; install tcl")
    return arguments


def run_unit(folder, unit, port, skip_file, denied_tags):
    """The lines that the suite prints about one unit."""
    command = ["tclsh", "tests/test_helper.tcl", "--host", servers.HOST, "--port", str(port),
               "--singledb", "--no-latency", "--ignore-encoding", "--ignore-digest", "--tags",
               " ".join(["-needs:repl -cluster -needs:save"] + denied_tags), "--skipfile", skip_file, "--single", unit]
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, errors="replace", timeout=UNIT_S)
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace")
        output += "\n[exception]: %s did not end in %d s\n" % (unit, UNIT_S)
    return COLOURS.sub("", output).split(SUMMARY)[0].splitlines()


def count(unit, lines):
    """(passed, failed); prints what failed with the lines behind it."""
    passed = failed = 0
    shown = 0
    for line in lines:
        over = OVER.match(line)
        if over:
            shown = 0 if over[1] == "ok" else 6
            passed += over[1] == "ok"
            failed += over[1] != "ok"
        if shown > 0:
            print("    " + line[:300])
            shown -= 1
    if passed + failed == 0:
        print("    no test of it ran; the suite said:\n      " + "\n      ".join(lines[-5:]))
        failed = 1
    print("%-24s %3d passed, %d failed" % (unit, passed, failed), flush=True)
    return passed, failed


def main():
    arguments = parse_arguments()
    with open(os.path.join(HERE, "redis_suite.toml"), "rb") as source:
        plan = tomllib.load(source)
    folder = tempfile.mkdtemp(prefix="onetrip_redis_suite.")
    total = [0, 0]
    try:
        shutil.copytree(os.path.join(arguments.source, "tests"), os.path.join(folder, "tests"))
        skip_file = os.path.join(folder, "skips")
        with open(skip_file, "w") as skips:
            skips.write("\n".join(test for skip in plan["skip"] for test in skip["tests"]))
        extra = ["--proto-max-bulk-len", "512MiB", "--memory", "1GiB"]
        extra += arguments.agent_args.split()
        for unit in (unit for unit in plan["units"] if arguments.filter in unit):
            with servers.agent(os.path.abspath(arguments.agent), extra=extra) as server:
                counts = count(unit, run_unit(folder, unit, server.port, skip_file,
                                              plan["denied_tags"].get(unit, [])))
            total = [one + other for one, other in zip(total, counts)]
    except servers.StartFailed as failure:
        print("redis_suite: %s" % failure, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
