"""A process that answers in the master's place ends no member: the members work on, and wait for
the master."""

import os
import random
import shutil
import subprocess
import threading

from local_cluster import is_gone, wait_until
from master_restart import Load, all_are_up, kill_master, restart_master
from registry import test


def start_master(command):
    """A master's process; it says that it is ready, and everything in its log from then on."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    lines = []
    line = process.stdout.readline()
    assert "is ready" in line, line
    threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True).start()
    return process, lines


def end(process):
    process.kill()
    process.wait(timeout=20)


def with_option(command, name, value):
    """The command with another value of an option, or with the option."""
    command = list(command)
    if name in command:
        command[command.index(name) + 1] = value
    else:
        command += [name, value]
    return command


def assert_all_live(cluster):
    for name, process in cluster.processes().items():
        if name != "master":
            assert not is_gone(process["pid"]), name


def outlives(cluster, command, told):
    """Another master sits there for as long as it takes to refuse all members several times."""
    process, _ = start_master(command)
    try:
        members = [name for name in cluster.processes() if name != "master"]
        for name in members:
            wait_until(lambda: told in cluster.log(name), "%s: %s" % (name, told))
        assert_all_live(cluster)
    finally:
        end(process)


@test("members outlive a master with another secret, with an empty data directory, and with an old "
      "copy of its own")
def impostors(context):
    with context.cluster() as cluster:
        with cluster.connect() as client:
            for number in range(500):
                assert client.call("SET", "k%d" % number, "v%d" % number).value == b"OK"
        record = cluster.record()["master"]
        data_dir = cluster.command_line("master")
        data_dir = data_dir[data_dir.index("--data-dir") + 1]
        master = None
        load = Load(cluster)
        try:
            load.progress(100)
            kill_master(cluster)
            copy = os.path.join(cluster.directory, "copy")
            shutil.copytree(data_dir, copy)
            # One epoch more, which the copy does not know.
            master = restart_master(cluster)
            wait_until(lambda: all_are_up(cluster), "every member is back")
            end(master)
            master = None
            secret = os.path.join(cluster.directory, "other_secret")
            with open(secret, "w", encoding="utf-8", opener=lambda path, flags: os.open(
                    path, flags, 0o600)) as file:
                file.write("%032x" % random.getrandbits(128))
            command = cluster.master_command
            outlives(cluster, with_option(command, "--secret-file", secret), "has not proved")
            empty = os.path.join(cluster.directory, "empty")
            outlives(cluster, with_option(command, "--data-dir", empty), "another cluster")
            # Started again and again its own epochs pass those that the members know.
            for _ in range(3):
                outlives(cluster, with_option(command, "--data-dir", copy), "old copy")
            load.progress(200)
            master = restart_master(cluster)
            wait_until(lambda: all_are_up(cluster), "every member is back")
            load.progress(200)
            with cluster.connect() as client:
                for number in range(500):
                    assert client.call("GET", "k%d" % number).value == b"v%d" % number
                assert client.call("FLUSHALL").value == b"OK"
        finally:
            try:
                load.stop()
            finally:
                if master is not None:
                    cluster.down()
                    master.terminate()
                    master.wait(timeout=20)
        assert record["pid"] != 0
