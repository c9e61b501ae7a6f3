#!/usr/bin/env python3
"""Real Redis clients against an agent: hiredis, redis-py, ruby-redis, ioredis, node-redis, and kombu.

  tests/clients/run.py [--agent build/release/bin/onetrip-agent] [--filter NAME]

Each client program goes through the same steps, prints "ok STEP" after each, and prints "restart"
when it wants the agent to be restarted. All of them run at once, each with an agent of its own.
hiredis's program is built with the agent and lies beside it. The clients of Node.js, which say
HELLO 3, are installed here by `npm ci` when they are not yet. Exit code 0 when everything passed;
the last line is `N passed, N failed`. `--agent redis-server` must pass too (hiredis's program is
then that of build/release/bin).
"""

import argparse
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/compat"))

import servers  # pylint: disable=wrong-import-position

STEPS = ["connect", "pool", "pipeline", "multi", "watch", "lock", "rate_limit", "cache", "session",
         "leaderboard", "queue", "tags", "stream", "large", "schedule", "reconnect"]
# Debian's Python, which has python3-redis, whatever runs this. {bin}: where built programs are.
CLIENTS = {
    "hiredis": ["{bin}/hiredis_client"],
    "redis-py": ["/usr/bin/python3", "redis_py.py"],
    "ruby-redis": ["/usr/bin/ruby", "ruby_redis.rb"],
    "ioredis": ["node", "ioredis.js"],
    "node-redis": ["node", "node_redis.js"],
    "kombu": ["/usr/bin/python3", "kombu_queue.py"],
}
# A library that does one thing with a client has steps of its own.
STEPS_OF = {"kombu": ["connect", "poll", "acknowledged"]}
WITHIN_S = 60


def install_node_clients():
    if not os.path.isdir(os.path.join(HERE, "node_modules/redis")):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=HERE, check=True)


def restart(server):
    server.process.terminate()
    server.process.wait(timeout=20)
    server.start()


def drive(command, server):
    """Runs one client program: the steps it has done, and what else it said."""
    done, rest = [], []
    process = subprocess.Popen(command + [str(server.port)], cwd=HERE, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    watchdog = threading.Timer(WITHIN_S, process.kill)
    watchdog.start()
    for line in process.stdout:
        word = line.split()
        if word[:1] == ["ok"]:
            done.append(word[1])
        elif word == ["restart"]:
            restart(server)
            process.stdin.write("\n")
            process.stdin.flush()
        else:
            rest.append(line)
    process.wait()
    watchdog.cancel()
    return done, "".join(rest)


def run_client(name, agent, binaries, outcomes):
    command = [word.format(bin=binaries) for word in CLIENTS[name]]
    with servers.agent(agent) as server:
        outcomes[name] = drive(command, server)


def main():
    parser = argparse.ArgumentParser(prog="tests/clients/run.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    release = os.path.join(ROOT, "build/release/bin")
    parser.add_argument("--agent", default=os.path.join(release, "onetrip-agent"))
    parser.add_argument("--filter", default="", help="run only clients whose name contains this")
    arguments = parser.parse_args()
    agent = arguments.agent
    if os.sep in agent:
        agent = os.path.abspath(agent)
    binaries = release if os.path.basename(agent) == "redis-server" else os.path.dirname(agent)
    names = [name for name in CLIENTS if arguments.filter in name]
    if any(CLIENTS[name][0] == "node" for name in names):
        install_node_clients()
    outcomes = {}
    threads = [threading.Thread(target=run_client, args=(name, agent, binaries, outcomes))
               for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = failed = 0
    for name in names:
        done, rest = outcomes.get(name, ([], "the agent did not start\n"))
        passed += len(done)
        for step in STEPS_OF.get(name, STEPS):
            if step not in done:
                failed += 1
                print("failed: %s: %s" % (name, step))
        if rest:
            print("      %s said: %s" % (name, rest[-2000:].rstrip()))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
