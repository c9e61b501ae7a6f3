// node-redis with HELLO 3 through what applications do with it; see run.py.
// Usage: node_redis.js PORT
import { createClient, createClientPool, WatchError } from "redis";
import { assert, countOptimistically, manyNames, port, restart, run, sleep } from "./steps.js";

const options = { RESP: 3, socket: { port, reconnectStrategy: () => 50 } };
const connect = () => createClient(options).on("error", () => {}).connect();
const redis = await connect();

// Null when a watched key has changed.
async function execute(transaction) {
  try {
    return await transaction.exec();
  } catch (error) {
    if (error instanceof WatchError) return null;
    throw error;
  }
}

async function release(client, token) {
  await client.watch("lock");
  if ((await client.get("lock")) !== token) {
    await client.unwatch();
    return false;
  }
  const replies = await execute(client.multi().del("lock"));
  return replies !== null && replies[0] === 1;
}

const take = (client, token, ms) =>
  client.set("lock", token, { condition: "NX", expiration: { type: "PX", value: ms } });

run({
  async connect() {
    assert.equal(await redis.ping(), "PONG");
    assert.equal(await redis.set("greeting", "hello"), "OK");
    assert.equal(await redis.get("greeting"), "hello");
    assert.equal(await redis.get("missing"), null);
    const hello = await redis.sendCommand(["HELLO"]);
    assert.equal(hello.proto, 3);
    assert.match(await redis.info("server"), /redis_mode:standalone/);
  },
  async pool() {
    // Its clean-up ends clients that are closed already, and throws: later than this runs.
    const limits = { minimum: 1, maximum: 4, cleanupDelay: 600_000 };
    const pool = await createClientPool(options, limits).connect();
    await Promise.all([...Array(400).keys()].map(() => pool.incr("pooled")));
    assert.equal(await redis.get("pooled"), "400");
    await pool.close();
  },
  async pipeline() {
    const replies = await Promise.all(
      [...Array(200).keys()].flatMap((i) => [redis.set(`p${i}`, i), redis.get(`p${i}`)]),
    );
    replies.forEach((reply, i) => assert.equal(reply, i % 2 ? String((i - 1) / 2) : "OK"));
  },
  async multi() {
    const replies = await redis.multi().set("m", 1).incr("m").incrBy("m", 5).get("m").exec();
    assert.deepEqual(replies, ["OK", 2, 7, "7"]);
  },
  async watch() {
    await redis.set("balance", 0);
    await countOptimistically(connect, async (client) => {
      await client.watch("balance");
      const value = Number(await client.get("balance"));
      return execute(client.multi().set("balance", value + 1));
    });
    assert.equal(await redis.get("balance"), "80");
  },
  async lock() {
    const other = await connect();
    assert.equal(await take(redis, "a", 30000), "OK");
    assert.equal(await take(other, "b", 30000), null);
    assert.equal(await release(other, "b"), false);
    assert.equal(await release(redis, "a"), true);
    assert.equal(await release(redis, "a"), false);
    assert.equal(await take(other, "b", 20), "OK");
    await sleep(80);
    assert.equal(await take(redis, "a", 30000), "OK");
    await other.quit();
  },
  async rate_limit() {
    const allowed = async () => {
      const [count] = await redis.multi().incr("rate").expire("rate", 1, "NX").exec();
      return count <= 5;
    };
    const answers = [];
    for (let i = 0; i < 7; ++i) answers.push(await allowed());
    assert.deepEqual(answers, [true, true, true, true, true, false, false]);
    await sleep(1100);
    assert.equal(await allowed(), true);
  },
  async cache() {
    assert.equal(await redis.setEx("page", 100, "text"), "OK");
    const ttl = await redis.ttl("page");
    assert.ok(ttl > 0 && ttl <= 100);
    await redis.pSetEx("short", 30, "text");
    await sleep(80);
    assert.equal(await redis.get("short"), null);
    assert.equal(await redis.mSet({ c1: "1", c2: "2" }), "OK");
    assert.deepEqual(await redis.mGet(["c1", "c2", "c3"]), ["1", "2", null]);
    assert.equal(await redis.persist("page"), 1);
    assert.equal(await redis.ttl("page"), -1);
  },
  async session() {
    assert.equal(await redis.hSet("session", { user: "ann", visits: 1 }), 2);
    assert.equal(Number(await redis.expire("session", 100)), 1);
    assert.equal(await redis.hIncrBy("session", "visits", 2), 3);
    assert.deepEqual({ ...(await redis.hGetAll("session")) }, { user: "ann", visits: "3" });
    assert.equal(await redis.hDel("session", ["user", "visits"]), 2);
    assert.equal(await redis.exists("session"), 0);
  },
  async leaderboard() {
    const scores = [["ann", 10], ["bob", 20], ["eve", 15]];
    assert.equal(await redis.zAdd("board", scores.map(([value, score]) => ({ value, score }))), 3);
    assert.equal(await redis.zIncrBy("board", 7.5, "ann"), 17.5);
    assert.equal(await redis.zRevRank("board", "ann"), 1);
    assert.deepEqual(await redis.zRange("board", 0, 1, { REV: true }), ["bob", "ann"]);
    assert.equal((await redis.zPopMin("board")).value, "eve");
  },
  async queue() {
    await redis.rPush("jobs", [...Array(200).keys()].map(String));
    const done = [];
    const work = async () => {
      const own = await connect();
      for (let job; (job = await own.lMove("jobs", "running", "LEFT", "RIGHT")) !== null; ) {
        done.push(Number(job));
        assert.equal(await own.lRem("running", 1, job), 1);
      }
      await own.quit();
    };
    await Promise.all([work(), work(), work(), work()]);
    assert.deepEqual(done.sort((a, b) => a - b), [...Array(200).keys()]);
    assert.equal(await redis.lLen("running"), 0);
  },
  async tags() {
    await redis.sAdd("red", ["a", "b", "c"]);
    await redis.sAdd("round", ["b", "c", "d"]);
    assert.deepEqual([...(await redis.sInter(["red", "round"]))].sort(), ["b", "c"]);
    assert.equal(await redis.sUnionStore("both", ["red", "round"]), 4);
  },
  async stream() {
    const ids = [];
    for (let i = 0; i < 5; ++i) ids.push(await redis.xAdd("events", "*", { n: String(i) }));
    assert.equal(await redis.xLen("events"), 5);
    assert.equal((await redis.xRange("events", ids[3], "+"))[0].message.n, "3");
    assert.equal(await redis.xGroupCreate("events", "workers", "0"), "OK");
    // Its own method does not take RESP3's reply, whoever sends it.
    const reading = ["XREADGROUP", "GROUP", "workers", "ann", "COUNT", "3", "STREAMS", "events", ">"];
    const { events } = await redis.sendCommand(reading);
    assert.deepEqual(events.map(([id]) => id), ids.slice(0, 3));
    assert.equal(await redis.xAck("events", "workers", ids.slice(0, 2)), 2);
    assert.equal((await redis.xPending("events", "workers")).pending, 1);
    assert.equal(await redis.xTrim("events", "MAXLEN", 2), 3);
    assert.equal(await redis.xDel("events", ids[3]), 1);
  },
  // Each far beyond what lies in one piece.
  async large() {
    const names = manyNames(2000);
    await Promise.all(
      names.flatMap((name, i) => [
        redis.hSet("large:hash", name, i),
        redis.rPush("large:list", name),
        redis.sAdd("large:set", name),
        redis.zAdd("large:board", { score: i, value: name }),
      ]),
    );
    const all = { ...(await redis.hGetAll("large:hash")) };
    assert.deepEqual(all, Object.fromEntries(names.map((name, i) => [name, String(i)])));
    assert.equal(await redis.hIncrBy("large:hash", names[7], 3), 10);
    assert.deepEqual(await redis.lRange("large:list", 995, 1004), names.slice(995, 1005));
    assert.equal(await redis.lPop("large:list"), names[0]);
    assert.equal(await redis.rPop("large:list"), names[1999]);
    assert.deepEqual([...(await redis.sMembers("large:set"))].sort(), names);
    assert.equal(await redis.sRem("large:set", names.slice(0, 50)), 50);
    assert.deepEqual(await redis.zRange("large:board", 1000, 1002), names.slice(1000, 1003));
    assert.equal(await redis.zRank("large:board", names[77]), 77);
    assert.equal(await redis.zRemRangeByRank("large:board", 0, 9), 10);
    assert.equal(await redis.del(["large:hash", "large:list", "large:set", "large:board"]), 4);
  },
  async schedule() {
    const jobs = [...Array(100).keys()].map((i) => ({ score: i, value: `job:${i}` }));
    await redis.zAdd("scheduled", jobs);
    let moved = 0;
    const poll = async () => {
      const own = await connect();
      const next = () => own.zRangeByScore("scheduled", "-inf", 49, { LIMIT: { offset: 0, count: 5 } });
      for (let due; (due = await next()).length > 0; ) {
        for (const job of due) {
          if ((await own.zRem("scheduled", job)) === 0) continue;
          await own.lPush("due", job);
          ++moved;
        }
      }
      await own.quit();
    };
    await Promise.all([poll(), poll(), poll(), poll()]);
    assert.equal(moved, 50);
    assert.equal(await redis.zCard("scheduled"), 50);
    assert.equal(await redis.lLen("due"), 50);
  },
  async reconnect() {
    await redis.set("before", 1);
    await restart();
    assert.equal(await redis.set("after", 2), "OK");
    assert.equal(await redis.get("after"), "2");
  },
});
