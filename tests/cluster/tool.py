"""`onetrip up`, `status` and `down` as a user meets them."""

import os
import signal
import socket
import stat

from local_cluster import is_gone, wait_until
from registry import test


@test("onetrip up and status: what is shown is what runs")
def status(context):
    with context.cluster(memnodes=4, agents=2, fabric="tcp") as cluster:
        for agent in range(2):
            assert "redis-cli -p %d" % (cluster.port + agent) in cluster.output, cluster.output
        assert "onetrip down" in cluster.output
        with cluster.connect(agent=0) as client:
            for i in range(100):
                client.call("SET", "k%d" % i, "v")
                client.call("GET", "k%d" % i)
        shown = cluster.status()
        assert len(shown["memnodes"]) == 4 and len(shown["agents"]) == 2
        processes = cluster.processes()
        pids = {process["pid"] for process in processes.values()}
        members = [shown["master"]] + shown["memnodes"] + shown["agents"]
        assert {member["pid"] for member in members} == pids, (members, pids)
        assert all(member["state"] == "up" and member["address"] for member in members), members
        assert {agent["address"] for agent in shown["agents"]} == {
            "127.0.0.1:%d" % (cluster.port + i) for i in range(2)}
        assert shown["keys"] == 100, shown["keys"]
        assert shown["replicas"] == 3
        assert shown["regions"] > 0 and shown["regions_fully_redundant"] == shown["regions"]
        assert sum(node["regions"] for node in shown["memnodes"]) == 3 * shown["regions"]
        busy = [agent for agent in shown["agents"] if agent["commands"] > 200]
        assert len(busy) == 1, shown["agents"]
        assert busy[0]["round_trips"]["get"] >= 1 and busy[0]["round_trips"]["set"] >= 1
        assert busy[0]["latency_us"]["get"]["p50"] > 0 and busy[0]["latency_us"]["set"]["p99"] > 0
        # With the first renewal after its start.
        wait_until(lambda: all(node["page_bytes"] >= 4096
                               for node in cluster.status()["memnodes"]), "nodes tell their pages")
        assert "memory: 256 MiB in pages of" in cluster.log("memnode-0"), cluster.log("memnode-0")
        code, table, error = cluster.tool("status", "--dir", cluster.path)
        assert code == 0, error
        for word in ["master", "memnode", "agent", "up", "pages"] + [str(pid) for pid in pids]:
            assert word in table, (word, table)
        code, table, error = cluster.tool("status", "--master", processes["master"]["address"],
                                          *cluster.secret())
        assert code == 0 and str(shown["agents"][0]["pid"]) in table, (table, error)


@test("onetrip down leaves no process, no socket, no file")
def down(context):
    with context.cluster(fabric="mixed") as cluster:
        processes = cluster.processes()
        mapped = [name for name in os.listdir(cluster.path + "/run")
                  if stat.S_ISSOCK(os.stat(os.path.join(cluster.path, "run", name)).st_mode)]
        assert len(mapped) == 3, mapped
        code, output, error = cluster.down()
        assert code == 0, error
        assert "down" in output
        for name, process in processes.items():
            assert is_gone(process["pid"]), name
        assert not os.path.exists(cluster.path), os.listdir(cluster.path)
        code, _, error = cluster.down()
        assert code == 1 and "no cluster" in error, error


@test("onetrip down does not touch a process that has the pid of one of ours by now")
def foreign_pid(context):
    with context.cluster() as cluster:
        path = os.path.join(cluster.path, "cluster.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        master = cluster.record()["master"]
        # As if the master had died and its pid were this very process's.
        os.kill(master["pid"], signal.SIGKILL)
        wait_until(lambda: is_gone(master["pid"]), "the master's end")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"pid": %d' % master["pid"], '"pid": %d' % os.getpid()))
        code, _, error = cluster.down()
        assert code == 0, error


@test("onetrip up refuses a directory whose cluster runs, and a port that is taken")
def refusals(context):
    with context.cluster() as cluster:
        code, _, error = cluster.tool("up", "--dir", cluster.path, "--port", "1")
        assert code == 1 and "onetrip down" in error, error
        other = cluster.path + "2"
        code, _, error = cluster.tool("up", "--dir", other, "--port", str(cluster.port),
                                      "--memory", "64MiB")
        # Both agents find their ports taken; either may be the first to say so.
        assert code == 1 and "agent-" in error and "is taken" in error, error
        with open(os.path.join(other, "cluster.json"), encoding="utf-8") as file:
            assert '"pid": null' in file.read(), "a failed start leaves processes"
        assert os.path.exists(os.path.join(other, "logs/agent-0.log")), "a failed start removes logs"
        with cluster.connect(agent=0) as client:
            assert client.call("PING").value == b"PONG"
    fresh = other + "3"
    code, _, error = cluster.tool("up", "--memnodes", "2", "--replicas", "3", "--dir", fresh)
    assert code == 1 and "--memnodes 3" in error, error
    assert not os.path.exists(fresh), "options that cannot be leave a directory"
    code, _, error = cluster.tool("up", "--nodes", "3")
    assert code == 1 and "--nodes" in error, error
    code, _, error = cluster.tool("status", "--dir", fresh)
    assert code == 2 and "no cluster" in error, error


@test("a persistent cluster finds its data after down and up, with new processes")
def persistent(context):
    with context.cluster(fabric="mixed", extra=["--persistent"]) as cluster:
        with cluster.connect(agent=0) as client:
            for i in range(500):
                assert client.call("SET", "k%d" % i, "v%d" % i * 20).value == b"OK"
            assert client.call("INCRBY", "n", 41).value == b"41"
        old = cluster.processes()
        code, output, error = cluster.down()
        assert code == 0 and "data stays" in output, (output, error)
        assert all(is_gone(process["pid"]) for process in old.values())
        cluster.up()
        with cluster.connect(agent=1) as client:
            assert client.call("INCR", "n").value == b"42"
            for i in range(500):
                assert client.call("GET", "k%d" % i).value == b"v%d" % i * 20
            assert client.call("DBSIZE").value == b"501"


@test("an agent that is killed is gone from the status, its keys are not")
def killed_agent(context):
    with context.cluster(fabric="mixed") as cluster:
        for agent in (0, 1):
            with cluster.connect(agent=agent) as client:
                assert client.call("SET", "from%d" % agent, "v").value == b"OK"
        pid = cluster.processes()["agent-0"]["pid"]
        cluster.send_signal("agent-0", signal.SIGKILL)
        wait_until(lambda: is_gone(pid), "the agent's end")
        wait_until(lambda: [agent["state"] for agent in cluster.status()["agents"]
                            if agent["pid"] == pid] in ([], ["lost"], ["down"]),
                   "the status tells of it")
        with cluster.connect(agent=1) as client:
            assert client.call("GET", "from0").value == b"v"
            assert client.call("SET", "from0", "w").value == b"OK"
            assert client.call("FLUSHALL").value == b"OK"
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", cluster.port)) != 0
