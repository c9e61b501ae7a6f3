// ioredis through what applications do with it; see run.py. Usage: ioredis.js PORT
import Redis from "ioredis";
import { assert, countOptimistically, manyNames, port, restart, run, sleep } from "./steps.js";

const connect = (options = {}) => new Redis({ port, ...options });
const redis = connect({ connectionName: "io" });

async function release(client, token) {
  await client.watch("lock");
  if ((await client.get("lock")) !== token) {
    await client.unwatch();
    return false;
  }
  const replies = await client.multi().del("lock").exec();
  return replies !== null && replies[0][1] === 1;
}

run({
  async connect() {
    assert.equal(await redis.ping(), "PONG");
    assert.equal(await redis.set("greeting", "hello"), "OK");
    assert.equal(await redis.get("greeting"), "hello");
    assert.equal(await redis.get("missing"), null);
    assert.equal(await redis.client("GETNAME"), "io");
    assert.match(await redis.info("server"), /redis_mode:standalone/);
  },
  async pool() {
    const clients = [0, 1, 2, 3].map(() => connect());
    await Promise.all(
      [...Array(400).keys()].map((i) => clients[i % 4].incr("pooled")),
    );
    assert.equal(await redis.get("pooled"), "400");
    await Promise.all(clients.map((client) => client.quit()));
  },
  async pipeline() {
    const pipe = redis.pipeline();
    for (let i = 0; i < 200; ++i) pipe.set(`p${i}`, i).get(`p${i}`);
    const replies = await pipe.exec();
    assert.equal(replies.length, 400);
    replies.forEach(([error, reply], i) => {
      assert.equal(error, null);
      assert.equal(reply, i % 2 ? String((i - 1) / 2) : "OK");
    });
  },
  async multi() {
    const replies = await redis.multi().set("m", 1).incr("m").incrby("m", 5).get("m").exec();
    assert.deepEqual(replies, [[null, "OK"], [null, 2], [null, 7], [null, "7"]]);
    await redis.set("text", "x");
    const mixed = await redis.multi().incr("text").set("after", 1).exec();
    assert.match(mixed[0][0].message, /not an integer/);
    assert.equal(mixed[1][1], "OK");
  },
  async watch() {
    await redis.set("balance", 0);
    await countOptimistically(connect, async (client) => {
      await client.watch("balance");
      const value = Number(await client.get("balance"));
      return client.multi().set("balance", value + 1).exec();
    });
    assert.equal(await redis.get("balance"), "80");
  },
  async lock() {
    const other = connect();
    assert.equal(await redis.set("lock", "a", "PX", 30000, "NX"), "OK");
    assert.equal(await other.set("lock", "b", "PX", 30000, "NX"), null);
    assert.equal(await release(other, "b"), false);
    assert.equal(await release(redis, "a"), true);
    assert.equal(await release(redis, "a"), false);
    assert.equal(await other.set("lock", "b", "PX", 20, "NX"), "OK");
    await sleep(80);
    assert.equal(await redis.set("lock", "a", "PX", 30000, "NX"), "OK");
    await other.quit();
  },
  async rate_limit() {
    const allowed = async () => {
      const [[, count]] = await redis.multi().incr("rate").expire("rate", 1, "NX").exec();
      return count <= 5;
    };
    const answers = [];
    for (let i = 0; i < 7; ++i) answers.push(await allowed());
    assert.deepEqual(answers, [true, true, true, true, true, false, false]);
    await sleep(1100);
    assert.equal(await allowed(), true);
  },
  async cache() {
    assert.equal(await redis.setex("page", 100, "text"), "OK");
    const ttl = await redis.ttl("page");
    assert.ok(ttl > 0 && ttl <= 100);
    await redis.set("short", "text", "PX", 30);
    await sleep(80);
    assert.equal(await redis.get("short"), null);
    assert.equal(await redis.mset({ c1: "1", c2: "2" }), "OK");
    assert.deepEqual(await redis.mget("c1", "c2", "c3"), ["1", "2", null]);
    assert.equal(await redis.getex("page", "PERSIST"), "text");
    assert.equal(await redis.ttl("page"), -1);
  },
  async session() {
    assert.equal(await redis.hset("session", { user: "ann", visits: 1 }), 2);
    assert.equal(await redis.expire("session", 100), 1);
    assert.equal(await redis.hincrby("session", "visits", 2), 3);
    assert.deepEqual(await redis.hgetall("session"), { user: "ann", visits: "3" });
    assert.deepEqual(await redis.hmget("session", "user", "none"), ["ann", null]);
    assert.equal(await redis.hdel("session", "user", "visits"), 2);
    assert.equal(await redis.exists("session"), 0);
  },
  async leaderboard() {
    assert.equal(await redis.zadd("board", 10, "ann", 20, "bob", 15, "eve"), 3);
    assert.equal(await redis.zincrby("board", 7.5, "ann"), "17.5");
    assert.equal(await redis.zrevrank("board", "ann"), 1);
    assert.deepEqual(await redis.zrevrange("board", 0, 1, "WITHSCORES"), ["bob", "20", "ann", "17.5"]);
    assert.deepEqual(await redis.zrangebyscore("board", "(15", "+inf"), ["ann", "bob"]);
    assert.deepEqual(await redis.zpopmin("board"), ["eve", "15"]);
  },
  async queue() {
    await redis.rpush("jobs", ...Array(200).keys());
    const done = [];
    const work = async () => {
      const own = connect();
      for (let job; (job = await own.lmove("jobs", "running", "LEFT", "RIGHT")) !== null; ) {
        done.push(Number(job));
        assert.equal(await own.lrem("running", 1, job), 1);
      }
      await own.quit();
    };
    await Promise.all([work(), work(), work(), work()]);
    assert.deepEqual(done.sort((a, b) => a - b), [...Array(200).keys()]);
    assert.equal(await redis.llen("running"), 0);
  },
  async tags() {
    await redis.sadd("red", "a", "b", "c");
    await redis.sadd("round", "b", "c", "d");
    assert.deepEqual((await redis.sinter("red", "round")).sort(), ["b", "c"]);
    assert.equal(await redis.sunionstore("both", "red", "round"), 4);
    assert.deepEqual(await redis.smismember("red", "a", "d"), [1, 0]);
  },
  async stream() {
    const ids = [];
    for (let i = 0; i < 5; ++i) ids.push(await redis.xadd("events", "*", "n", i));
    assert.equal(await redis.xlen("events"), 5);
    assert.deepEqual((await redis.xrange("events", ids[3], "+"))[0], [ids[3], ["n", "3"]]);
    assert.equal(await redis.xgroup("CREATE", "events", "workers", "0"), "OK");
    const [[, read]] = await redis.xreadgroup("GROUP", "workers", "ann", "COUNT", 3, "STREAMS", "events", ">");
    assert.deepEqual(read.map(([id]) => id), ids.slice(0, 3));
    assert.equal(await redis.xack("events", "workers", ids[0], ids[1]), 2);
    assert.equal((await redis.xpending("events", "workers"))[0], 1);
    assert.equal(await redis.xtrim("events", "MAXLEN", 2), 3);
    assert.equal(await redis.xdel("events", ids[3]), 1);
  },
  // Each far beyond what lies in one piece.
  async large() {
    const names = manyNames(2000);
    const pipe = redis.pipeline();
    names.forEach((name, i) => {
      pipe.hset("large:hash", name, i).rpush("large:list", name).sadd("large:set", name);
      pipe.zadd("large:board", i, name);
    });
    await pipe.exec();
    const all = await redis.hgetall("large:hash");
    assert.deepEqual(all, Object.fromEntries(names.map((name, i) => [name, String(i)])));
    assert.equal(await redis.hincrby("large:hash", names[7], 3), 10);
    assert.deepEqual(await redis.lrange("large:list", 995, 1004), names.slice(995, 1005));
    assert.equal(await redis.lpop("large:list"), names[0]);
    assert.equal(await redis.rpop("large:list"), names[1999]);
    assert.deepEqual((await redis.smembers("large:set")).sort(), names);
    assert.equal(await redis.srem("large:set", ...names.slice(0, 50)), 50);
    assert.deepEqual(await redis.zrange("large:board", 1000, 1002), names.slice(1000, 1003));
    assert.equal(await redis.zrank("large:board", names[77]), 77);
    assert.equal(await redis.zremrangebyrank("large:board", 0, 9), 10);
    assert.equal(await redis.del("large:hash", "large:list", "large:set", "large:board"), 4);
  },
  async schedule() {
    await redis.zadd("scheduled", ...[...Array(100).keys()].flatMap((i) => [i, `job:${i}`]));
    let moved = 0;
    const poll = async () => {
      const own = connect();
      for (let due; (due = await own.zrangebyscore("scheduled", "-inf", 49, "LIMIT", 0, 5)).length > 0; ) {
        for (const job of due) {
          if ((await own.zrem("scheduled", job)) === 0) continue;
          await own.lpush("due", job);
          ++moved;
        }
      }
      await own.quit();
    };
    await Promise.all([poll(), poll(), poll(), poll()]);
    assert.equal(moved, 50);
    assert.equal(await redis.zcard("scheduled"), 50);
    assert.equal(await redis.llen("due"), 50);
  },
  async reconnect() {
    redis.on("error", () => {});
    await redis.set("before", 1);
    await restart();
    assert.equal(await redis.set("after", 2), "OK");
    assert.equal(await redis.get("after"), "2");
  },
});
