"""The directory of `onetrip up`: what it remembers, whose files it keeps, its secret; and processes
that come back."""

import os
import shutil
import signal
import stat
import time

from local_cluster import is_gone, wait_until
from refusals import run
from registry import test


def plant(cluster, *names):
    """Files that are not the cluster's, in its folders."""
    for name in names:
        path = os.path.join(cluster.path, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("not the cluster's\n")
    return [os.path.join(cluster.path, name) for name in names]


def fill(cluster, keys=300):
    with cluster.connect(agent=0) as client:
        for i in range(keys):
            assert client.call("SET", "k%d" % i, "v%d" % i).value == b"OK"


def check(cluster, keys=300, agent=1):
    with cluster.connect(agent=agent) as client:
        for i in range(keys):
            assert client.call("GET", "k%d" % i).value == b"v%d" % i, i
        assert client.call("INCR", "writes").value is not None


def kill(cluster, name):
    pid = cluster.processes()[name]["pid"]
    assert pid, name + " does not run"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid), "the end of " + name)


def names(shown):
    return {one["name"]: one["state"] for one in shown["memnodes"] + shown["agents"]}


@test("a persistent cluster stays one: up without --persistent finds its data and removes nothing")
def stays_persistent(context):
    with context.cluster(memory="64MiB", fabric="tcp", extra=["--persistent"]) as cluster:
        fill(cluster)
        foreign = plant(cluster, "logs/mine.log", "memory/node-9.img", "memory/notes", "run/x")
        code, output, error = cluster.down()
        assert code == 0 and "data stays" in output, (output, error)
        code, shown = cluster.service()
        assert code == 2 and shown["state"] == "down", shown
        assert "onetrip up" in shown["waiting_for"], shown
        for flags in (["--memory", "128MiB"], ["--replicas", "2"], ["--memnodes", "4"]):
            code, _, error = cluster.tool("up", "--dir", cluster.path, *flags)
            assert code == 1 and "%s %s differs" % tuple(flags) in error, (flags, error)
            assert cluster.path in error, error
        # Neither the count nor the memory is told again; the file of a stranger starts no node.
        cluster.flags = ["--timeout", "60"]
        cluster.up()
        assert len(cluster.status()["memnodes"]) == 3
        check(cluster)
        # The state it was killed with comes back, too.
        for name in list(cluster.processes()):
            kill(cluster, name)
        cluster.up()
        check(cluster)
        # A start that fails costs nothing.
        cluster.down()
        images = sorted(os.listdir(cluster.path + "/memory"))
        os.chmod(cluster.path + "/memory/node-1.img", 0o644)
        code, _, error = cluster.tool("up", "--dir", cluster.path, "--timeout", "10")
        assert code == 1 and "node-1.img" in error and "Nothing has been removed" in error, error
        assert sorted(os.listdir(cluster.path + "/memory")) == images
        assert all(process["pid"] is None for process in cluster.processes().values())
        os.chmod(cluster.path + "/memory/node-1.img", 0o600)
        cluster.up()
        check(cluster)
        cluster.down()
        for path in foreign:
            assert os.path.exists(path), path


@test("a failing up, and down, leave the files of others alone")
def files_of_others(context):
    cluster = context.cluster(memory="64MiB", fabric="tcp")
    foreign = plant(cluster, "logs/mine.log", "memory/node-0.img", "memory/mine", "master/mine",
                    "logs/agent-0.log")
    code, _, error = cluster.tool("up", "--dir", cluster.path, "--memory", "64TiB", "--timeout", "10")
    assert code == 1 and "Nothing has been removed" in error, error
    for path in foreign:
        assert os.path.exists(path), path
    with cluster:
        fill(cluster)
        for path in foreign:
            assert os.path.exists(path), path
        code, output, error = cluster.down()
        assert code == 0, (output, error)
        left = [os.path.join(folder, name) for folder, _, files in os.walk(cluster.path)
                for name in files]
        assert sorted(left) == sorted(foreign), left
        with open(foreign[-1], encoding="utf-8", errors="replace") as file:
            assert file.read().startswith("not the cluster's\n")


@test("a persistent cluster whose directory was moved, or copied, starts with its own files")
def directory_moved(context):
    with context.cluster(memory="64MiB", fabric="shm", extra=["--persistent"]) as cluster:
        fill(cluster)
        code, _, error = cluster.down()
        assert code == 0, error
        first = cluster.path
        moved = os.path.join(cluster.directory, "moved")
        os.rename(first, moved)
        cluster.path = moved
        code, _, error = cluster.tool("up", "--dir", moved)
        assert code == 0, error
        check(cluster)
        assert cluster.down()[0] == 0
        shutil.copytree(moved, first)
        # What only the original has is not the copy's.
        os.truncate(os.path.join(moved, "secret"), 0)
        cluster.path = first
        code, _, error = cluster.tool("up", "--dir", first)
        assert code == 0, error
        check(cluster)
        assert cluster.secret()[1] in " ".join(cluster.command_line("agent-0"))


@test("what an older version left without a description is not touched unasked")
def older_data(context):
    with context.cluster(memory="64MiB", fabric="tcp", extra=["--persistent"]) as cluster:
        fill(cluster)
        cluster.down()
        os.unlink(cluster.path + "/cluster.json")
        os.unlink(cluster.path + "/secret")
        code, _, error = cluster.tool("up", "--dir", cluster.path, "--memory", "64MiB")
        assert code == 1 and "--persistent" in error and "older version" in error, error
        cluster.up()
        check(cluster)


@test("the secret of a cluster: 0600, in use everywhere, and nobody gets in without it")
def secret(context):
    with context.cluster(memory="64MiB", fabric="tcp") as cluster:
        path = cluster.secret()[1]
        info = os.stat(path)
        assert stat.S_IMODE(info.st_mode) == 0o600, oct(info.st_mode)
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
        assert len(text) == 64 and len(set(text)) > 6, len(text)
        for name in cluster.processes():
            assert path in cluster.command_line(name), name
        master = cluster.record()["master"]["address"]
        for command in (["onetrip-agent", "--port", "0"],
                        ["onetrip-memnode", "--memory", "64MiB", "--fabric", "tcp"]):
            code, output = run([os.path.join(context.bin_dir, command[0])] + command[1:]
                               + ["--master", master, "--connect-timeout-ms", "2000"])
            assert code == 1 and "secret" in output, output
        code, _, error = cluster.tool("status", "--master", master)
        assert code == 2 and "secret" in error, error
        assert cluster.service()[0] == 0
        # While processes run that know it, no other is made.
        os.rename(path, path + ".away")
        code, _, error = cluster.tool("up", "--dir", cluster.path)
        assert code == 1 and path in error and "onetrip down" in error, error
        os.rename(path + ".away", path)
        # Another cluster has another.
        with context.cluster(memory="64MiB", fabric="tcp") as other:
            with open(other.secret()[1], encoding="utf-8") as file:
                assert file.read().strip() != text


@test("processes that died come back by up, only they, and by restart")
def come_back(context):
    with context.cluster(memory="64MiB", fabric="mixed", extra=["--persistent"]) as cluster:
        fill(cluster)
        before = {name: one["pid"] for name, one in cluster.processes().items()}
        code, output, _ = cluster.tool("up", "--dir", cluster.path)
        assert code == 0 and "up already" in output, output
        for flags in (["--port", "1"], ["--agents", "3"], ["--memory", "128MiB"]):
            code, _, error = cluster.tool("up", "--dir", cluster.path, *flags)
            assert code == 1 and flags[0] in error and "differs" in error, error
        for name in ("memnode-1", "agent-0", "master"):
            os.kill(before[name], signal.SIGKILL)
        # At once: what they held is waited for.
        code, output, error = cluster.tool("up", "--dir", cluster.path)
        assert code == 0 and "Started again: master, memnode-1, agent-0." in output, (output, error)
        after = {name: one["pid"] for name, one in cluster.processes().items()}
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {"memnode-1", "agent-0", "master"}, changed
        wait_until(lambda: cluster.service()[0] == 0, "all is whole again")
        check(cluster, agent=0)
        for name in ("master", "agent-1", "memnode-0"):
            code, output, error = cluster.tool("restart", name, "--dir", cluster.path)
            assert code == 0 and name in output, (output, error)
            wait_until(lambda: cluster.service()[0] == 0, "all is whole again")
        check(cluster, agent=1)
        code, _, error = cluster.tool("restart", "memnode-7", "--dir", cluster.path)
        assert code == 1 and "memnode-2" in error, error


@test("in memory: a memory node that died is replaced by up, one that is needed is not restarted")
def come_back_in_memory(context):
    with context.cluster(memory="64MiB", fabric="tcp") as cluster:
        fill(cluster)
        kill(cluster, "memnode-2")
        wait_until(lambda: cluster.service()[0] == 1, "degraded")
        # One row for it, by its name and number.
        assert [(one["node"], one["name"]) for one in cluster.status()["memnodes"]] == [
            (0, "memnode-0"), (1, "memnode-1"), (2, "memnode-2")], cluster.status()["memnodes"]
        code, _, error = cluster.tool("restart", "memnode-0", "--dir", cluster.path)
        assert code == 1 and "--force" in error, error
        code, output, error = cluster.tool("up", "--dir", cluster.path)
        assert code == 0 and "Started again: memnode-2." in output, (output, error)
        wait_until(lambda: cluster.status()["regions_fully_redundant"] ==
                   cluster.status()["regions"], "all is whole again", within_s=60)
        check(cluster)
        code, output, error = cluster.tool("restart", "memnode-0", "--dir", cluster.path)
        assert code == 0, (output, error)
        wait_until(lambda: cluster.status()["regions_fully_redundant"] ==
                   cluster.status()["regions"], "all is whole again", within_s=60)
        check(cluster)
        for name in ("memnode-0", "memnode-1", "memnode-2"):
            kill(cluster, name)
        code, _, error = cluster.tool("up", "--dir", cluster.path)
        assert code == 1 and "onetrip down" in error, error


for _fabric in ("shm", "tcp"):
    @test("%s: a persistent cluster of which one image is gone comes up without it" % _fabric)
    def _image_gone(context, fabric=_fabric):
        with context.cluster(memory="64MiB", fabric=fabric, extra=["--persistent"]) as cluster:
            fill(cluster)
            assert cluster.down()[0] == 0
            os.remove(os.path.join(cluster.path, "memory", "node-1.img"))
            code, output, error = cluster.tool("up", "--dir", cluster.path)
            assert code == 0, (output, error)
            wait_until(lambda: cluster.service()[0] == 0, "all is whole again", within_s=60)
            check(cluster)


@test("tcp: onetrip check beside regions that are copied ends no agent")
def check_beside_copies(context):
    with context.cluster(memory="64MiB", memnodes=4, fabric="tcp",
                         extra=["--persistent"]) as cluster:
        fill(cluster)
        for name in ("memnode-1", "memnode-2", "memnode-3"):
            kill(cluster, name)
            assert cluster.tool("up", "--dir", cluster.path)[0] == 0
            for _ in range(4):
                cluster.tool("check", "--dir", cluster.path)
            assert not [agent for agent in cluster.status()["agents"] if agent["state"] != "up"]
            wait_until(lambda: cluster.service()[0] == 0, "all is whole again", within_s=60)
        assert cluster.tool("check", "--dir", cluster.path)[0] == 0


@test("status tells the truth: names without the master, what is missing, exit codes")
def truth(context):
    with context.cluster(memory="64MiB", memnodes=4, fabric="tcp") as cluster:
        assert cluster.service()[0] == 0
        with_master = [(one["node"], one["name"]) for one in cluster.status()["memnodes"]]
        assert with_master == [(i, "memnode-%d" % i) for i in range(4)], with_master
        kill(cluster, "master")
        code, shown = cluster.service()
        assert code == 1 and shown["state"] == "without its master", shown
        assert [(one["node"], one["name"]) for one in shown["memnodes"]] == with_master, shown
        assert shown["regions"] is None and shown["epoch"] is None, shown
        code, table, _ = cluster.tool("status", "--dir", cluster.path)
        assert code == 1 and "epoch ?" in table and "memnode-3" in table, table
        assert "onetrip restart master" in table, table
        kill(cluster, "agent-1")
        assert names(cluster.status())["agent-1"] == "missing"
        assert cluster.tool("up", "--dir", cluster.path)[0] == 0
        wait_until(lambda: cluster.service()[0] == 0, "all is well again")
        kill(cluster, "agent-0")
        wait_until(lambda: names(cluster.status())["agent-0"] == "missing", "it is missed")
        assert cluster.service()[0] == 1
        kill(cluster, "agent-1")
        assert cluster.service()[0] == 2
        assert cluster.tool("status", "--nonsense")[0] == 2
        code, _, error = cluster.tool("status", "--dir", cluster.path + "nowhere")
        assert code == 2 and "no cluster" in error, error


@test("status --watch shows it again and again")
def watch(context):
    with context.cluster(memory="64MiB") as cluster:
        code, output = run(["timeout", "-s", "INT", "3.5", os.path.join(cluster.bin_dir, "onetrip"),
                            "status", "--dir", cluster.path, "--watch", "1"])
        assert code == 124 and 3 <= output.count("serving, epoch") <= 4, (code, output)


@test("down ends within 5 s whatever is dead, and so does SIGTERM")
def quick_down(context):
    for dead in (["master"], ["memnode-0", "memnode-1"], ["memnode-0", "memnode-1", "memnode-2"],
                 ["master", "memnode-1", "memnode-2"]):
        for fabric in ("shm", "tcp"):
            with context.cluster(memory="64MiB", fabric=fabric) as cluster:
                fill(cluster, 100)
                for name in dead:
                    kill(cluster, name)
                processes = cluster.processes()
                began = time.monotonic()
                code, output, error = cluster.down()
                took = time.monotonic() - began
                # On a quiet host; one that is busy has some seconds more.
                assert code == 0 and took < 9, (fabric, dead, took, output, error)
                assert "was killed" not in output, (fabric, dead, output)
                assert all(is_gone(process["pid"]) for process in processes.values())


@test("SIGHUP opens the logs anew, and SIGPIPE ends nobody")
def signals(context):
    with context.cluster(memory="64MiB", fabric="mixed") as cluster:
        for name, process in cluster.processes().items():
            os.rename(process["log"], process["log"] + ".1")
            os.kill(process["pid"], signal.SIGPIPE)
            os.kill(process["pid"], signal.SIGHUP)
            wait_until(lambda log=process["log"]: os.path.exists(log), "a new log of " + name)
            wait_until(lambda log=process["log"]: os.path.getsize(log) > 0, "a line in it")
            os.kill(process["pid"], signal.SIGHUP)
        fill(cluster, 10)
        assert cluster.service()[0] == 0
        assert all(not is_gone(process["pid"]) for process in cluster.processes().values())


@test("status works, and the cluster too, while the master's disk is full")
def full_disk(context):
    cluster = context.cluster(memory="64MiB", fabric="tcp")
    folder = os.path.join(cluster.path, "master")
    os.makedirs(folder, mode=0o700)
    code, output = run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", folder])
    if code != 0:
        print("    skipped: no tmpfs here: " + output)
        shutil.rmtree(cluster.directory)
        return
    try:
        with cluster:
            fill(cluster, 10)
            ballast = os.open(os.path.join(folder, "ballast"), os.O_WRONLY | os.O_CREAT)
            try:
                while True:
                    os.write(ballast, b"x" * 4096)
            except OSError:
                os.close(ballast)
            # The next time that is told must be durable first.
            wait_until(lambda: "cannot" in cluster.log("master"), "the master notices")
            code, shown = cluster.service()
            assert shown["master"]["state"] == "up", shown
            assert "cannot be written" in shown["waiting_for"], shown
            check(cluster, 10)
            os.unlink(os.path.join(folder, "ballast"))
            wait_until(lambda: cluster.service()[0] == 0, "all is well again")
            cluster.down()
    finally:
        run(["umount", folder])
