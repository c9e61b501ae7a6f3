"""Processes that do not belong together refuse each other; a line on both sides says why."""

import os
import subprocess

from local_cluster import wait_until
from registry import test


def run(command, timeout_s=60):
    """(exit code, output) of a program that must end by itself."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=timeout_s, check=False, text=True)
    return done.returncode, done.stdout


def write_secret(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


@test("addresses beyond this host need a secret, everywhere")
def no_secret(context):
    scratch = context.cluster()
    for command in (
            ["onetrip-master", "--listen", "0.0.0.0:0", "--data-dir", scratch.path],
            ["onetrip-memnode", "--master", "10.0.0.1:7400", "--memory", "64MiB"],
            ["onetrip-agent", "--master", "10.0.0.1:7400", "--port", "0"]):
        code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:])
        assert code == 1 and "--secret-file" in output, (command, output)


@test("a secret file that others may read, or that is empty, is refused")
def bad_secret_files(context):
    cluster = context.cluster()
    path = os.path.join(cluster.directory, "secret")
    for text, mode in (("0123456789abcdef0123", 0o644), ("", 0o600), ("short", 0o600)):
        write_secret(path, text, mode)
        code, output = run([os.path.join(context.bin_dir, "onetrip-master"), "--listen",
                            "127.0.0.1:0", "--data-dir", cluster.path, "--secret-file", path])
        assert code == 1 and path in output, output
        os.unlink(path)


@test("a process with another secret gets nowhere, and both sides say so")
def wrong_secret(context):
    with context.cluster() as cluster:
        path = write_secret(os.path.join(cluster.directory, "secret"), "not the cluster's secret")
        master = cluster.record()["master"]["address"]
        for command in (["onetrip-agent", "--port", "0"], ["onetrip-memnode", "--memory", "64MiB"]):
            code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:]
                               + ["--master", master, "--secret-file", path])
            assert code == 1 and "secret" in output, output
        wait_until(lambda: cluster.log("master").count("secret") >= 2, "the master's lines")
        code, _, error = cluster.tool("status", "--master", master, "--secret-file", path)
        assert code == 2 and "secret" in error, error
        with cluster.connect() as client:
            assert client.call("PING").value == b"PONG"


@test("memory of another cluster, and memory that is in use, is refused and not touched")
def foreign_memory(context):
    with context.cluster(extra=["--persistent"]) as first:
        command = first.command_line("memnode-0")
        backing = command[command.index("--backing") + 1]
        code, output = run(command[:command.index("--socket")] + first.secret()
                           + ["--backing", backing, "--socket", first.path + "/run/other.sock"])
        assert code == 1 and backing in output, output
        with first.connect() as client:
            assert client.call("SET", "k", "v").value == b"OK"
        first.down()
        with context.cluster(extra=["--persistent"]) as second:
            stranger = list(command)
            stranger[stranger.index("--master") + 1] = second.record()["master"]["address"]
            stranger[stranger.index("--secret-file") + 1] = second.secret()[1]
            os.makedirs(first.path + "/run", mode=0o700, exist_ok=True)
            code, output = run(stranger)
            assert code == 1 and "cluster" in output, output
        # The directory knows how many there are.
        count = first.flags.index("--memnodes") + 1
        first.flags[count] = "1"
        code, _, error = first.tool("up", "--dir", first.path, *first.flags)
        assert code == 1 and "--memnodes 1 differs" in error, error
        first.flags[count] = "3"
        first.up()
        assert len(first.status()["memnodes"]) == 3
        with first.connect() as client:
            assert client.call("GET", "k").value == b"v"


@test("an agent whose engine cannot share the cluster's memory is refused, and says what can")
def foreign_engine(context):
    with context.cluster() as cluster:
        with cluster.connect() as client:
            assert client.call("SET", "k", "v").value == b"OK"
        master = cluster.record()["master"]["address"]
        command = [os.path.join(context.bin_dir, "onetrip-agent"), "--port", "0",
                   "--master", master] + cluster.secret()
        code, output = run(command + ["--engine", "raw"])
        assert code == 1 and "engine raw" in output and "--engine swarm" in output, output
        with cluster.connect() as client:
            assert client.call("GET", "k").value == b"v"
            assert client.call("SET", "k", "w").value == b"OK"


@test("unknown flags, bad values and missing options are named")
def flags(context):
    for command, word in (
            (["onetrip-master", "--bogus", "1"], "--bogus"),
            (["onetrip-master"], "--data-dir"),
            (["onetrip-master", "--data-dir", "/tmp", "--replicas", "9"], "replicas"),
            (["onetrip-memnode", "--master", "127.0.0.1:1", "--fabric", "pigeon"], "fabric"),
            (["onetrip-memnode"], "--master"),
            (["onetrip-agent", "--fabric", "pigeon"], "fabric")):
        code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:])
        assert code == 1 and word in output, (command, output)


@test("the example configs are read: every key of them is known")
def example_configs(context):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))), "deploy/config")
    for name in ("master", "memnode", "agent"):
        # The secret is looked for when all options have been read.
        missing = "/nonexistent/secret-of-" + name
        code, output = run([os.path.join(context.bin_dir, "onetrip-" + name), "--config",
                            os.path.join(folder, name + ".toml"), "--secret-file", missing])
        assert code == 1 and missing in output, output
