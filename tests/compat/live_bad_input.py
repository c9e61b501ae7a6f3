"""Mistakes that users make at start: one line on stderr says what and what to do, exit code 1."""

import os
import re
import socket

from live import ScratchDirectory, run_program, test
from servers import free_port


def refused(context, *flags, mentions=()):
    """Starts the agent with these flags: it must end at once, saying why on one line."""
    code, out, err = run_program([context.agent_binary] + list(flags), timeout_s=20)
    lines = [line for line in err.splitlines() if line.strip()]
    assert code == 1, "exit code %d with %s: %s" % (code, flags, (out + err)[-400:])
    assert len(lines) == 1, "stderr is not one line: %r" % err
    assert not out.strip(), "stdout is not empty: %r" % out
    for word in mentions:
        assert re.search(word, lines[0], re.I), "no %r in: %s" % (word, lines[0])
    return lines[0]


@test("bad input: the port is taken")
def port_taken(context):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused(context, "--port", port, "--memory", "64MiB", mentions=[port, "use|taken"])


@test("bad input: the unix socket's folder does not exist or is not a folder")
def socket_path(context):
    port = str(free_port())
    refused(context, "--port", port, "--memory", "64MiB", "--unixsocket", "/nonexistent/dir/sock",
            mentions=["/nonexistent/dir/sock"])
    refused(context, "--port", port, "--memory", "64MiB", "--unixsocket", "/proc/onetrip.sock",
            mentions=["/proc/onetrip.sock"])
    refused(context, "--port", port, "--memory", "64MiB", "--unixsocket", "/tmp/" + "x" * 200,
            mentions=["long|path"])


@test("bad input: a file that is no socket is not replaced")
def socket_is_a_file(context):
    with ScratchDirectory() as directory:
        path = os.path.join(directory, "precious")
        with open(path, "w") as out:
            out.write("data")
        refused(context, "--port", str(free_port()), "--memory", "64MiB", "--unixsocket", path,
                mentions=["precious"])
        with open(path) as kept:
            assert kept.read() == "data"


@test("bad input: unknown flags and values out of range")
def unknown_flags(context):
    refused(context, "--no-such-flag", mentions=["no-such-flag"])
    refused(context, "stray", mentions=["stray"])
    for flags in (["--port", "70000"], ["--port", "abc"], ["--port", "-1"], ["--threads", "0"],
                  ["--threads", "-1"], ["--memory", "abc"], ["--memory", "0"], ["--memory",
                  "-1GiB"],
                  ["--memory", "1XiB"], ["--engine", "nosuch"], ["--databases", "0"], ["--port"]):
        refused(context, *flags, mentions=[flags[0].strip("-")])
    refused(context, "--bind", "not-an-address", mentions=["not-an-address"])


@test("bad input: more memory than the machine has")
def too_much_memory(context):
    line = refused(context, "--port", str(free_port()), "--memory", "100TiB", mentions=["memory"])
    assert "100" in line or "TiB" in line or "bytes" in line, line


@test("bad input: config files")
def config_files(context):
    refused(context, "--config", "/nonexistent/agent.toml", mentions=["/nonexistent/agent.toml"])
    with ScratchDirectory() as directory:
        path = os.path.join(directory, "agent.toml")
        for text, word in (("no_such_key = 1\n", "no_such_key"), ("port = \"abc\"\n", "port"),
                           ("port = = 1\n", ".")):
            with open(path, "w") as out:
                out.write(text)
            refused(context, "--config", path, mentions=[word])


@test("bad input: an unknown environment value is refused like a flag's")
def environment(context):
    os.environ["ONETRIP_THREADS"] = "many"
    try:
        refused(context, mentions=["threads"])
    finally:
        del os.environ["ONETRIP_THREADS"]


@test("--help names every option and --version the version, exit code 0")
def help_and_version(context):
    code, out, _ = run_program([context.agent_binary, "--help"])
    assert code == 0
    for flag in ("--port", "--bind", "--unixsocket", "--threads", "--engine", "--memory",
    "--config",
                 "--requirepass", "--protected-mode", "--maxclients", "--timeout", "--op-timeout-ms",
                 "--cache-memory"):
        assert flag in out, "no %s in --help" % flag
    code, out, _ = run_program([context.agent_binary, "--version"])
    assert code == 0 and re.search(r"\d+\.\d+\.\d+", out), out
