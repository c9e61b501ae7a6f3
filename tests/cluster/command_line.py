"""The words that people type: flags, environment and files that are wrong, help, completion,
manual pages."""

import os
import re
import shutil
import subprocess
import tempfile

from refusals import run
from registry import test

PROGRAMS = ("onetrip", "onetrip-agent", "onetrip-memnode", "onetrip-master")
# Enough for each to look at its other options.
NEEDED = {"onetrip-agent": [], "onetrip-memnode": ["--master", "127.0.0.1:1"],
          "onetrip-master": ["--data-dir", "/nonexistent/onetrip"]}


def program(context, *command):
    return [os.path.join(context.bin_dir, command[0])] + list(command[1:])


def refused(context, command, *words, env=None):
    """It ends with one line that has all of `words`."""
    code, output = run(program(context, *command)) if env is None else run_in(
        program(context, *command), env)
    lines = output.splitlines()
    assert code == 1 and len(lines) == 1, (command, code, output)
    for word in words:
        assert word in lines[0], (command, word, output)


def run_in(command, env):
    done = subprocess.run(command, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
    return done.returncode, done.stdout


@test("an unknown flag, variable or key is an error that names the nearest known one")
def nearest(context):
    for name, needed in NEEDED.items():
        refused(context, [name, *needed, "--secret-fiel", "x"], "'--secret-fiel'",
                "did you mean --secret-file?")
        refused(context, [name, *needed], "ONETRIP_LOG_LEVLE", "did you mean ONETRIP_LOG_LEVEL?",
                env={"ONETRIP_LOG_LEVLE": "info"})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("# a comment\nlog-level = \"info\"\nsecret-fiel = \"x\"\n")
            refused(context, [name, *needed, "--config", path], path + ":3: ", "'secret-fiel'",
                    "did you mean secret-file?")
    refused(context, ["onetrip-agent", "--lease-ms", "1"], "only onetrip-master takes")
    refused(context, ["onetrip-master", "rebuild", "--forec"], "did you mean --force?")
    refused(context, ["onetrip", "up", "--memroy", "1GiB"], "did you mean --memory?")
    refused(context, ["onetrip", "dwon"], "did you mean down?")


@test("onetrip up starts nothing when the environment has a variable that no process knows")
def wrong_environment(context):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster")
        refused(context, ["onetrip", "up", "--dir", path], "ONETRIP_REQUIREPAS",
                "did you mean ONETRIP_REQUIREPASS?", env={"ONETRIP_REQUIREPAS": "x"})
        assert not os.path.exists(path), os.listdir(folder)


READ_AT = {".sh": r"\$\{?(ONETRIP_[A-Z_]+)", ".py": r"environ(?:\.get\(|\[)\"(ONETRIP_[A-Z_]+)",
           ".cc": r"(?:getenv|Number)\(\"(ONETRIP_[A-Z_]+)"}


@test("the programs know the variables of scripts and tests, in whose environment they start")
def variables_of_scripts(context):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    names = set()
    for folder in ("scripts", "tests", "bench", "tool"):
        for where, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                pattern = READ_AT.get(os.path.splitext(name)[1])
                if pattern is None:
                    continue
                with open(os.path.join(where, name), encoding="utf-8", errors="replace") as file:
                    names.update(re.findall(pattern, file.read()))
    assert {"ONETRIP_FUZZ_S", "ONETRIP_PASSWORD", "ONETRIP_SIM_SCALE"} <= names, names
    _, output = run_in(program(context, "onetrip-agent", "--port", "x"), dict.fromkeys(names, ""))
    assert "unknown variable" not in output, output


@test("limits are told as people write them")
def limits(context):
    refused(context, ["onetrip-agent", "--memory", "1MiB"], "must be 8 MiB to 64 TiB, not '1MiB'")
    refused(context, ["onetrip-memnode", "--master", "h:1", "--memory", "lots"], "a size such as", "16 MiB to 64 TiB")
    refused(context, ["onetrip-master", "--data-dir", "/d", "--lease-ms", "5"], "100 to 60000 ms (1 min)")
    refused(context, ["onetrip", "up", "--memory", "65TiB"], "16 MiB to 64 TiB")


@test("every program has help with examples, and so has every command of onetrip")
def helps(context):
    for name in PROGRAMS:
        code, output = run(program(context, name, "--help"))
        assert code == 0 and output.startswith("Usage: " + name), output
        assert run(program(context, "onetrip", "help", name)) == (0, output)
    assert "Examples:" in run(program(context, "onetrip-agent", "--help"))[1]
    for command in ("up", "down", "status", "node add", "master backup", "completion"):
        code, output = run(program(context, "onetrip", "help", *command.split()))
        assert code == 0 and output.startswith("Usage: onetrip " + command), output
        assert "Examples:" in output, output
        assert run(program(context, "onetrip", *command.split(), "--help")) == (code, output)
    code, output = run(program(context, "onetrip", "help", "nosuch"))
    assert code == 1 and "nosuch" in output, output


@test("manual pages are roff without a warning")
def manual_pages(context):
    for name in PROGRAMS:
        code, page = run(program(context, "onetrip", "man", name))
        assert code == 0 and page.startswith(".TH " + name.upper()), page
        if shutil.which("groff") is None:
            continue
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        # Bold is a letter struck twice.
        assert "\nEXAMPLES\n" in re.sub(".\b", "", done.stdout), done.stdout


def completed(script, *words):
    """The words that bash offers for the last of `words`."""
    quoted = " ".join("'%s'" % word for word in words)
    code = ("%s\ncompopt() { :; }\nCOMP_WORDS=(%s); COMP_CWORD=%d; _onetrip; echo \"${COMPREPLY[*]}\""
            % (script, quoted, len(words) - 1))
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


@test("the shells' completion knows commands, flags and values")
def completion(context):
    code, bash = run(program(context, "onetrip", "completion", "bash"))
    assert code == 0, bash
    assert completed(bash, "onetrip", "st") == ["status"]
    assert completed(bash, "onetrip", "node", "dr") == ["drain"]
    assert completed(bash, "onetrip", "node", "add", "--sp") == ["--spare"]
    assert completed(bash, "onetrip", "up", "--fabric", "m") == ["mixed"]
    assert completed(bash, "onetrip", "up", "--fabric", "=", "m") == ["mixed"]
    assert completed(bash, "/usr/bin/onetrip-agent", "--requirep") == ["--requirepass"]
    assert completed(bash, "onetrip-memnode", "--accept-damaged", "") == ["yes", "no"]
    assert completed(bash, "onetrip-master", "rebuild", "--fo") == ["--force"]
    for shell, parse in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        code, script = run(program(context, "onetrip", "completion", shell))
        assert code == 0 and "--accept-damaged" in script or "-l accept-damaged" in script, script
        if shutil.which(shell) is not None:
            done = subprocess.run(parse, input=script, text=True, timeout=20, check=False)
            assert done.returncode == 0, shell
    refused(context, ["onetrip", "completion", "tcsh"], "bash, zsh or fish")


@test("CONFIG has the limits of the flags, in Redis's words")
def config_limits(context):
    with context.cluster(memory="64MiB") as cluster, cluster.connect() as client:
        def answer(name, value):
            return str(client.call("CONFIG", "SET", name, value).value)
        assert "between 1 and 4294967295 inclusive" in answer("maxclients", "0")
        assert "between 1048576 and 536870912 inclusive" in answer("proto-max-bulk-len", "1gb")
        assert "between 0 and 2147483647 inclusive" in answer("timeout", "2147483648")
        assert "can't set immutable config" in answer("databases", "5")
        assert "OK" in answer("timeout", "2147483647")
        assert "OK" in answer("tcp-keepalive", "2147483647")
