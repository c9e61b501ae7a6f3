"""Elements that clients move from one list to another one while others take them there."""

import threading

from several_agents import for_each_fabric

JOBS = 3000


@for_each_fabric("movers at one agent take no element twice")
def moves(cluster):
    with cluster.connect(agent=0) as client:
        client.call("RPUSH", "jobs", *[str(i) for i in range(JOBS)])
    moved, taken, done = [], [], []

    def move():
        with cluster.connect(agent=0) as own:
            while (job := own.call("RPOPLPUSH", "jobs", "running").value) is not None:
                moved.append(job)
        done.append(True)

    def take():
        with cluster.connect(agent=0) as own:
            while len(done) < 2 or own.call("LLEN", "running").value != b"0":
                job = own.call("RPOP", "running").value
                if job is not None:
                    taken.append(job)

    threads = [threading.Thread(target=target) for target in (move, move, take)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = sorted(b"%d" % i for i in range(JOBS))
    assert sorted(moved) == everything, (len(moved), len(set(moved)))
    assert sorted(taken) == everything, (len(taken), len(set(taken)))
