"""redis-py through what applications do with it; see run.py. Usage: redis_py.py PORT"""

import sys
import threading
import time

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

PORT = int(sys.argv[1])


def client(**options):
    return redis.Redis(port=PORT, decode_responses=True, **options)


def connect():
    with client(client_name="py") as r:
        assert r.ping()
        assert r.set("greeting", "hello") and r.get("greeting") == "hello"
        assert r.get("missing") is None
        assert r.client_getname() == "py"
        assert r.info("server")["redis_mode"] == "standalone"


def pool():
    shared = redis.BlockingConnectionPool(port=PORT, max_connections=4, timeout=20)
    threads = [threading.Thread(target=lambda: [redis.Redis(connection_pool=shared).incr("pooled")
                                                for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client().get("pooled") == "400"
    shared.disconnect()


def pipeline():
    pipe = client().pipeline(transaction=False)
    for i in range(200):
        pipe.set("p%d" % i, i)
        pipe.get("p%d" % i)
    assert pipe.execute() == [part for i in range(200) for part in (True, str(i))]


def multi():
    r = client()
    pipe = r.pipeline(transaction=True)
    assert pipe.set("m", 1).incr("m").incrby("m", 5).get("m").execute() == [True, 2, 7, "7"]
    r.set("text", "x")
    replies = r.pipeline().incr("text").set("after", 1).execute(raise_on_error=False)
    assert isinstance(replies[0], redis.ResponseError) and r.get("after") == "1"


def watch():
    r = client()
    r.set("balance", 0)

    def add(pipe):
        value = int(pipe.get("balance"))
        pipe.multi()
        pipe.set("balance", value + 1)

    threads = [threading.Thread(target=lambda: [client().transaction(add, "balance")
                                                for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.get("balance") == "80"


def release(r, token):
    """Deletes the lock if it is still ours: compare-and-delete without a script."""
    with r.pipeline() as pipe:
        pipe.watch("lock")
        if pipe.get("lock") != token:
            return False
        pipe.multi()
        pipe.delete("lock")
        try:
            return pipe.execute() == [1]
        except redis.WatchError:
            return False


def lock():
    r, other = client(), client()
    assert r.set("lock", "a", nx=True, px=30000)
    assert other.set("lock", "b", nx=True, px=30000) is None
    assert not release(other, "b") and r.get("lock") == "a"
    assert release(r, "a") and not release(r, "a")
    assert other.set("lock", "b", nx=True, px=20)
    time.sleep(0.08)
    assert r.set("lock", "a", nx=True, px=30000)


def rate_limit():
    r = client()

    def allowed():
        count, _ = r.pipeline().incr("rate").expire("rate", 1, nx=True).execute()
        return count <= 5

    assert [allowed() for _ in range(7)] == [True] * 5 + [False] * 2
    time.sleep(1.1)
    assert allowed()


def cache():
    r = client()
    assert r.setex("page", 100, "text") and 0 < r.ttl("page") <= 100
    assert r.set("short", "text", px=30) and r.get("short") == "text"
    time.sleep(0.08)
    assert r.get("short") is None and r.ttl("short") == -2
    assert r.mset({"c1": "1", "c2": "2"}) and r.mget("c1", "c2", "c3") == ["1", "2", None]
    assert r.getex("page", persist=True) == "text" and r.ttl("page") == -1


def session():
    r = client()
    assert r.hset("session", mapping={"user": "ann", "visits": 1}) == 2 and r.expire("session", 100)
    assert r.hincrby("session", "visits", 2) == 3 and r.hget("session", "user") == "ann"
    assert r.hgetall("session") == {"user": "ann", "visits": "3"}
    assert r.hmget("session", "user", "none") == ["ann", None] and 0 < r.ttl("session") <= 100
    assert r.hdel("session", "user", "visits") == 2 and not r.exists("session")


def leaderboard():
    r = client()
    assert r.zadd("board", {"ann": 10, "bob": 20, "eve": 15}) == 3
    assert r.zincrby("board", 7.5, "ann") == 17.5 and r.zrevrank("board", "ann") == 1
    assert r.zrevrange("board", 0, 1, withscores=True) == [("bob", 20.0), ("ann", 17.5)]
    assert r.zrangebyscore("board", "(15", "+inf") == ["ann", "bob"] and r.zcount("board", 0, 15) == 1
    assert r.zpopmin("board") == [("eve", 15.0)] and r.zscore("board", "eve") is None


def queue():
    """Jobs that workers take over, and give back when done, without a script."""
    r = client()
    r.rpush("jobs", *range(200))
    done = []

    def work():
        own = client()
        while (job := own.lmove("jobs", "running", "LEFT", "RIGHT")) is not None:
            done.append(int(job))
            assert own.lrem("running", 1, job) == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(200)) and r.llen("running") == 0
    r.lpush("log", "c", "b", "a")
    assert r.lrange("log", 0, -1) == ["a", "b", "c"] and r.ltrim("log", 0, 1) and r.llen("log") == 2


def tags():
    r = client()
    assert r.sadd("red", "a", "b", "c") == 3 and r.sadd("round", "b", "c", "d") == 3
    assert r.sinter("red", "round") == {"b", "c"} and r.sdiff("red", "round") == {"a"}
    assert r.sunionstore("both", "red", "round") == 4 and r.scard("both") == 4
    assert r.smismember("red", "a", "d") == [1, 0] and r.spop("both") in {"a", "b", "c", "d"}
    assert set(r.sscan_iter("red")) == {"a", "b", "c"}


def stream():
    r = client()
    ids = [r.xadd("events", {"n": i}) for i in range(5)]
    assert r.xlen("events") == 5 and r.xrange("events", ids[3])[0] == (ids[3], {"n": "3"})
    assert r.xgroup_create("events", "workers", id="0")
    read = r.xreadgroup("workers", "ann", {"events": ">"}, count=3)
    assert [entry for entry, _ in read[0][1]] == ids[:3]
    assert r.xack("events", "workers", ids[0], ids[1]) == 2
    assert r.xpending("events", "workers")["pending"] == 1
    assert r.xtrim("events", maxlen=2, approximate=False) == 3 and r.xdel("events", ids[3]) == 1
    assert r.xrevrange("events") == [(ids[4], {"n": "4"})]


def large():
    """Each far beyond what lies in one piece."""
    r = client()
    names = ["element:%05d" % i for i in range(2000)]
    pipe = r.pipeline(transaction=False)
    for i, name in enumerate(names):
        pipe.hset("large:hash", name, i).rpush("large:list", name).sadd("large:set", name)
        pipe.zadd("large:board", {name: i})
    pipe.execute()
    assert r.hgetall("large:hash") == {name: str(i) for i, name in enumerate(names)}
    assert r.hincrby("large:hash", names[7], 3) == 10 and len(list(r.hscan_iter("large:hash"))) == 2000
    assert r.lrange("large:list", 995, 1004) == names[995:1005] and r.lindex("large:list", -1) == names[-1]
    assert r.lpop("large:list") == names[0] and r.rpop("large:list") == names[-1]
    assert r.linsert("large:list", "BEFORE", names[1000], "x") == 1999 and r.lrem("large:list", 0, "x") == 1
    assert r.smembers("large:set") == set(names) and r.srem("large:set", *names[:50]) == 50
    assert r.smismember("large:set", names[49], names[50]) == [0, 1]
    assert r.zrange("large:board", 1000, 1002) == names[1000:1003] and r.zrank("large:board", names[77]) == 77
    assert r.zincrby("large:board", 5000, names[0]) == 5000 and r.zrevrank("large:board", names[0]) == 0
    assert r.zremrangebyrank("large:board", 0, 9) == 10 and r.zcount("large:board", "-inf", "+inf") == 1990
    assert r.delete("large:hash", "large:list", "large:set", "large:board") == 4


def schedule():
    """Jobs that are due later, in a sorted set; due ones go to a list. Whoever takes one out owns it."""
    r = client()
    r.zadd("scheduled", {"job:%d" % i: i for i in range(100)})
    moved = []

    def poll():
        own = client()
        while due := own.zrangebyscore("scheduled", "-inf", 49, start=0, num=5):
            for job in due:
                if own.zrem("scheduled", job) == 1:
                    own.lpush("due", job)
                    moved.append(job)

    threads = [threading.Thread(target=poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(moved) == 50 and r.zcard("scheduled") == 50
    assert sorted(r.lrange("due", 0, -1)) == sorted("job:%d" % i for i in range(50))


def reconnect():
    r = client(retry=Retry(ConstantBackoff(0.05), 200),
               retry_on_error=[redis.ConnectionError, redis.TimeoutError])
    r.set("before", 1)
    print("restart", flush=True)
    sys.stdin.readline()
    assert r.set("after", 2) and r.get("after") == "2"


for step in (connect, pool, pipeline, multi, watch, lock, rate_limit, cache, session, leaderboard,
             queue, tags, stream, large, schedule, reconnect):
    step()
    print("ok", step.__name__, flush=True)
