"""Old state that is put back: an image of one memory node, all of them, the master's own data."""

import os
import shutil
import signal
import subprocess
import time

from backing_damaged import NODES, Processes
from local_cluster import wait_until
from registry import test

KEYS = 300


def write_round(processes, number):
    with processes.connect() as client:
        for i in range(KEYS):
            assert client.call("SET", "key%d" % i, "round %d of %d" % (number, i)).value == b"OK"
        assert client.call("SET", "large", bytes([number]) * 100000).value == b"OK"


def expect_round(processes, number, keys=KEYS):
    with processes.connect() as client:
        wrong = [i for i in range(keys) if client.call("GET", "key%d" % i).value
                 != b"round %d of %d" % (number, i)]
        assert not wrong, "%d of %d keys are not of round %d: %s" % (
            len(wrong), keys, number, wrong[:5])
        assert client.call("GET", "large").value == bytes([number]) * 100000


def start_all(processes, *arguments):
    processes.start_master()
    for node in range(NODES):
        processes.start_node(node, *arguments)
    processes.start_agent()
    processes.await_ready("agent")


def copy_image(processes, node, to):
    shutil.copyfile(processes.path("node-%d" % node), processes.path(to))


def put_back(processes, node, copy):
    # In place, as `cp` does: a node with the lock is not there any more.
    shutil.copyfile(processes.path(copy), processes.path("node-%d" % node))


def expect_older_copy_is_out(processes, node, number):
    """The node has started on an older copy."""
    processes.await_ready("node-%d" % node)
    log = processes.log("node-%d" % node)
    assert "it is an older copy of the node's memory" in log, log
    assert "it is an older copy of the node's memory" in processes.log("master")
    expect_round(processes, number)
    processes.await_redundancy()
    processes.await_state(node, "up")
    expect_round(processes, number)


def one_image_reverted(context, fabric):
    with Processes(context, fabric) as processes:
        start_all(processes)
        write_round(processes, 1)
        processes.stop_all()
        # An image of a cluster that was stopped.
        copy_image(processes, 1, "old")
        start_all(processes)
        write_round(processes, 2)
        processes.stop_all()
        put_back(processes, 1, "old")
        start_all(processes)
        expect_older_copy_is_out(processes, 1, 2)
        # An image of a node that runs, and goes on for a while.
        copy_image(processes, 2, "old")
        write_round(processes, 3)
        mark = processes.running["node-2"].pid
        assert mark
        time.sleep(5)
        # Without an agent at work, so that the cluster has not given it up before it is back.
        processes.end("agent")
        processes.end("node-2", signal.SIGKILL)
        put_back(processes, 2, "old")
        processes.start_node(2)
        processes.await_ready("node-2")
        processes.start_agent()
        processes.await_ready("agent")
        expect_older_copy_is_out(processes, 2, 3)
        # Whatever the first two held is not what is read now.
        processes.end("node-0", signal.SIGKILL)
        expect_round(processes, 3)
        processes.stop_all()


def all_reverted_together(context):
    with Processes(context, "tcp") as processes:
        start_all(processes)
        write_round(processes, 1)
        processes.stop_all()
        copies = ["node-%d" % node for node in range(NODES)]
        for name in copies:
            shutil.copyfile(processes.path(name), processes.path(name + ".copy"))
        shutil.copytree(processes.path("m"), processes.path("m.copy"))
        start_all(processes)
        write_round(processes, 2)
        processes.stop_all()
        for name in copies:
            shutil.copyfile(processes.path(name + ".copy"), processes.path(name))
        shutil.rmtree(processes.path("m"))
        shutil.copytree(processes.path("m.copy"), processes.path("m"))
        start_all(processes)
        expect_round(processes, 1)
        write_round(processes, 3)
        expect_round(processes, 3)
        processes.stop_all()
        assert "older copy" not in processes.log("master")
        # The images alone: nothing is believed, and nothing is given up, until the operator says
        # so.
        for name in copies:
            shutil.copyfile(processes.path(name + ".copy"), processes.path(name))
        processes.start_master()
        for node in range(NODES):
            processes.start_node(node)
        wait_until(lambda: processes.status()
                   and "--accept-damaged" in processes.status()["waiting_for"], "it is said", 30)
        for node in range(NODES):
            processes.end("node-%d" % node)
        for node in range(NODES):
            processes.start_node(node, "--accept-damaged", "yes")
        processes.start_agent()
        processes.await_ready("agent")
        expect_round(processes, 1)
        processes.stop_all()


def older_master(context):
    with Processes(context, "tcp") as processes:
        start_all(processes)
        write_round(processes, 1)
        processes.end("master")
        shutil.copytree(processes.path("m"), processes.path("m.copy"))
        processes.start_master()
        write_round(processes, 2)
        # A node goes out: the older state does not know it.
        processes.end("node-2", signal.SIGKILL)
        processes.await_ready("master")
        wait_until(lambda: [node["state"] for node in processes.status()["memnodes"]].count("out"),
                   "node 2 is out", 30)
        write_round(processes, 3)
        processes.stop_all()
        shutil.rmtree(processes.path("m"))
        shutil.copytree(processes.path("m.copy"), processes.path("m"))
        processes.start_master()
        for node in (2, 0, 1):
            processes.start_node(node)
        for node in (0, 1):
            name = "node-%d" % node
            assert processes.running.pop(name).wait(timeout=30) != 0
            assert "older copy" in processes.log(name), processes.log(name)
            assert "onetrip master rebuild" in processes.log(name), processes.log(name)


def master_lost(context, fabric, persistent):
    with Processes(context, fabric, persistent) as processes:
        start_all(processes)
        write_round(processes, 1)
        processes.end("master", signal.SIGKILL)
        shutil.rmtree(processes.path("m"))
        with processes.connect() as client:
            assert client.call("SET", "key0", "round 1 of 0").value == b"OK"
        output = rebuild(processes)
        assert "start the master" in output, output
        processes.start_master()
        wait_until(lambda: processes.status() and processes.status()["state"] == "serving",
                   "the cluster serves", 30)
        expect_round(processes, 1)
        write_round(processes, 2)
        # A new agent's workers have ids that no worker had.
        processes.end("agent")
        processes.start_agent()
        processes.await_ready("agent")
        expect_round(processes, 2)
        processes.end("node-0", signal.SIGKILL)
        write_round(processes, 3)
        expect_round(processes, 3)


def rebuild(processes, *arguments):
    done = subprocess.run(
        [os.path.join(processes.context.bin_dir, "onetrip"), "master", "rebuild", "--listen",
         processes.master, "--data-dir", processes.path("m"), "--wait-s", "12"] + list(arguments),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def all_stopped_and_master_lost(context):
    with Processes(context, "tcp") as processes:
        start_all(processes)
        write_round(processes, 1)
        processes.stop_all()
        shutil.rmtree(processes.path("m"))
        files = [argument for node in range(NODES)
                 for argument in ("--state", processes.path("node-%d.state" % node))]
        rebuild(processes, "--wait-s", "1", *files)
        start_all(processes)
        expect_round(processes, 1)
        write_round(processes, 2)
        processes.await_redundancy()


def backup_while_it_runs(context):
    with Processes(context, "tcp") as processes:
        start_all(processes)
        write_round(processes, 1)
        done = subprocess.run(
            [os.path.join(context.bin_dir, "onetrip"), "master", "backup", processes.path("copy"),
             "--master", processes.master], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=60, check=False, text=True)
        assert done.returncode == 0, done.stderr
        assert os.stat(processes.path("copy")).st_mode & 0o777 == 0o600
        # Not over a file that is there, which may be the master's own.
        done = subprocess.run(
            [os.path.join(context.bin_dir, "onetrip"), "master", "backup",
             processes.path("m/master.db"), "--master", processes.master],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, text=True)
        assert done.returncode != 0 and "is there already" in done.stderr, done.stderr
        # Nodes are told of their marks meanwhile.
        time.sleep(6)
        processes.end("master", signal.SIGKILL)
        shutil.rmtree(processes.path("m"))
        os.mkdir(processes.path("m"), 0o700)
        shutil.copyfile(processes.path("copy"), processes.path("m/master.db"))
        # They say that it is an older copy, and stay.
        processes.start_master()
        wait_until(lambda: "older copy" in processes.log("node-0"), "it is said", 30)
        assert processes.running["node-0"].poll() is None
        expect_round(processes, 1)
        processes.end("master", signal.SIGKILL)
        shutil.rmtree(processes.path("m"))
        rebuild(processes)
        processes.start_master()
        wait_until(lambda: processes.status() and processes.status()["state"] == "serving",
                   "the cluster serves", 30)
        write_round(processes, 2)
        expect_round(processes, 2)


for _fabric in ("tcp", "shm"):
    @test("%s: an older image that is put back is out until it is copied anew" % _fabric)
    def _reverted(context, fabric=_fabric):
        one_image_reverted(context, fabric)


@test("all images as old as the master's state go on; without it they wait for a word")
def _all(context):
    all_reverted_together(context)


@test("memory nodes do not join a master whose state is an older copy")
def _older(context):
    older_master(context)


@test("shm: the master's disk is lost under a cluster in memory, and its state made anew")
def _lost_shm(context):
    master_lost(context, "shm", persistent=False)


@test("tcp: the master's disk is lost under a persistent cluster, and its state made anew")
def _lost_tcp(context):
    master_lost(context, "tcp", persistent=True)


@test("the master's state is made anew from the files beside the images of nodes that are stopped")
def _lost_stopped(context):
    all_stopped_and_master_lost(context)


@test("the master's state is backed up while it runs; an old copy is refused, not believed")
def _backup(context):
    backup_while_it_runs(context)
