"""kombu's queues, polled: a get that does not block, and acknowledgements; see run.py.

A get that blocks while its queue is empty sends BRPOP, which an agent refuses then. Usage:
kombu_queue.py PORT
"""

import queue
import sys
import threading

import kombu
import redis

URL = "redis://127.0.0.1:%s/0" % sys.argv[1]
JOBS = 200


def connect():
    with kombu.Connection(URL) as connection:
        connection.ensure_connection(max_retries=1)
        jobs = connection.SimpleQueue("jobs")
        jobs.put({"first": True})
        message = jobs.get(timeout=5)
        assert message.payload == {"first": True}
        message.ack()
        jobs.close()


def poll():
    """Workers poll until there is nothing left; each job is done once, and acknowledged."""
    with kombu.Connection(URL) as connection:
        jobs = connection.SimpleQueue("jobs")
        for i in range(JOBS):
            jobs.put({"job": i, "text": "x" * 200})
        assert jobs.qsize() == JOBS
        jobs.close()
    done, failures = [], []

    def work():
        try:
            with kombu.Connection(URL) as own:
                mine = own.SimpleQueue("jobs")
                while True:
                    message = mine.get(block=False)
                    done.append(message.payload["job"])
                    message.ack()
        except queue.Empty:
            pass
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert sorted(done) == list(range(JOBS))


def acknowledged():
    """Nothing is left of those that were acknowledged."""
    plain = redis.Redis.from_url(URL)
    assert plain.hlen("unacked") == 0 and plain.zcard("unacked_index") == 0
    assert plain.llen("jobs") == 0


for step in (connect, poll, acknowledged):
    step()
    print("ok", step.__name__, flush=True)
