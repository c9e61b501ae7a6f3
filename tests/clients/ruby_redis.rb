# ruby-redis through what applications do with it; see run.py. Usage: ruby_redis.rb PORT
require "redis"

PORT = ARGV[0].to_i
$stdout.sync = true

def client(**options) = Redis.new(port: PORT, **options)

def check(truth)
  raise "not so: #{caller(1..1).first}" unless truth
end

def release(redis, token)
  redis.watch("lock") do
    if redis.get("lock") == token
      redis.multi { |transaction| transaction.del("lock") } == [1]
    else
      redis.unwatch
      false
    end
  end
end

STEPS = {
  connect: lambda {
    redis = client(id: "rb")
    check redis.ping == "PONG"
    check redis.set("greeting", "hello") == "OK" && redis.get("greeting") == "hello"
    check redis.get("missing").nil?
    check redis.info["redis_mode"] == "standalone"
    redis.close
  },
  pool: lambda {
    clients = Queue.new
    4.times { clients << client }
    8.times.map { Thread.new { 50.times { c = clients.pop; c.incr("pooled"); clients << c } } }
     .each(&:join)
    check client.get("pooled") == "400"
  },
  pipeline: lambda {
    replies = client.pipelined { |p| 200.times { |i| p.set("p#{i}", i); p.get("p#{i}") } }
    check replies == (0...200).flat_map { |i| ["OK", i.to_s] }
  },
  multi: lambda {
    replies = client.multi { |t| t.set("m", 1); t.incr("m"); t.incrby("m", 5); t.get("m") }
    check replies == ["OK", 2, 7, "7"]
  },
  watch: lambda {
    client.set("balance", 0)
    4.times.map do
      Thread.new do
        redis = client
        20.times do
          done = nil
          until done
            done = redis.watch("balance") do
              value = redis.get("balance").to_i
              redis.multi { |t| t.set("balance", value + 1) }
            end
          end
        end
      end
    end.each(&:join)
    check client.get("balance") == "80"
  },
  lock: lambda {
    one, other = client, client
    check one.set("lock", "a", nx: true, px: 30_000)
    check !other.set("lock", "b", nx: true, px: 30_000)
    check !release(other, "b") && one.get("lock") == "a"
    check release(one, "a") && !release(one, "a")
    check other.set("lock", "b", nx: true, px: 20)
    sleep 0.08
    check one.set("lock", "a", nx: true, px: 30_000)
  },
  rate_limit: lambda {
    redis = client
    allowed = lambda {
      count = redis.incr("rate")
      redis.expire("rate", 1) if count == 1
      count <= 5
    }
    check 7.times.map { allowed.call } == [true] * 5 + [false] * 2
    sleep 1.1
    check allowed.call
  },
  cache: lambda {
    redis = client
    check redis.setex("page", 100, "text") == "OK" && redis.ttl("page").between?(1, 100)
    redis.set("short", "text", px: 30)
    sleep 0.08
    check redis.get("short").nil? && redis.ttl("short") == -2
    redis.mset("c1", "1", "c2", "2")
    check redis.mget("c1", "c2", "c3") == ["1", "2", nil]
    check redis.persist("page") && redis.ttl("page") == -1
  },
  session: lambda {
    redis = client
    check redis.mapped_hmset("session", "user" => "ann", "visits" => 1) == "OK"
    check redis.hincrby("session", "visits", 2) == 3 && redis.hget("session", "user") == "ann"
    check redis.hgetall("session") == { "user" => "ann", "visits" => "3" }
    check redis.hdel("session", %w[user visits]) == 2 && redis.hlen("session").zero?
  },
  leaderboard: lambda {
    redis = client
    check redis.zadd("board", [[10, "ann"], [20, "bob"], [15, "eve"]]) == 3
    check redis.zincrby("board", 7.5, "ann") == 17.5 && redis.zrevrank("board", "ann") == 1
    check redis.zrevrange("board", 0, 1, with_scores: true) == [["bob", 20.0], ["ann", 17.5]]
    check redis.zrangebyscore("board", "(15", "+inf") == %w[ann bob]
  },
  queue: lambda {
    client.rpush("jobs", (0...200).to_a)
    done = Queue.new
    4.times.map do
      Thread.new do
        own = client
        while (job = own.rpoplpush("jobs", "running"))
          done << job.to_i
          check own.lrem("running", 1, job) == 1
        end
      end
    end.each(&:join)
    check Array.new(done.size) { done.pop }.sort == (0...200).to_a
    check client.llen("running").zero?
  },
  tags: lambda {
    redis = client
    redis.sadd("red", %w[a b c])
    redis.sadd("round", %w[b c d])
    check redis.sinter("red", "round").sort == %w[b c] && redis.smembers("red").sort == %w[a b c]
    check redis.sunionstore("both", "red", "round") == 4 && redis.sismember("red", "a")
  },
  stream: lambda {
    redis = client
    ids = (0...5).map { |i| redis.xadd("events", { "n" => i }) }
    check redis.xlen("events") == 5 && redis.xrange("events", ids[3]).first == [ids[3], { "n" => "3" }]
    check redis.xgroup(:create, "events", "workers", "0") == "OK"
    check redis.xreadgroup("workers", "ann", "events", ">", count: 3)["events"].map(&:first) == ids[0, 3]
    check redis.xack("events", "workers", ids[0, 2]) == 2
    check redis.xpending("events", "workers")["size"] == 1
    check redis.xtrim("events", 2) == 3 && redis.xdel("events", ids[3]) == 1
  },
  # Each far beyond what lies in one piece.
  large: lambda {
    redis = client
    names = (0...2000).map { |i| format("element:%05d", i) }
    redis.pipelined do |p|
      names.each_with_index do |name, i|
        p.hset("large:hash", name, i)
        p.rpush("large:list", name)
        p.sadd("large:set", [name])
        p.zadd("large:board", i, name)
      end
    end
    check redis.hgetall("large:hash") == names.each_with_index.to_h { |name, i| [name, i.to_s] }
    check redis.hincrby("large:hash", names[7], 3) == 10 && redis.hscan_each("large:hash").count == 2000
    check redis.lrange("large:list", 995, 1004) == names[995..1004]
    check redis.lpop("large:list") == names[0] && redis.rpop("large:list") == names[-1]
    check redis.smembers("large:set").sort == names && redis.srem("large:set", names[0, 50]) == 50
    check redis.zrange("large:board", 1000, 1002) == names[1000..1002]
    check redis.zrank("large:board", names[77]) == 77 && redis.zremrangebyrank("large:board", 0, 9) == 10
    check redis.del("large:hash", "large:list", "large:set", "large:board") == 4
  },
  # As sidekiq does: jobs for later in a sorted set, those that are due in the queue of their class,
  # workers that poll, a counter of what was done, and failed jobs scheduled again.
  schedule: lambda {
    redis = client
    redis.zadd("schedule", (0...100).map { |i| [i, "job:#{i}"] })
    poller = lambda {
      own = client
      until (due = own.zrangebyscore("schedule", "-inf", 49, limit: [0, 5])).empty?
        due.each do |job|
          next unless own.zrem("schedule", job)

          own.multi { |t| t.sadd("queues", ["default"]); t.lpush("queue:default", job) }
        end
      end
    }
    4.times.map { Thread.new(&poller) }.each(&:join)
    check redis.zcard("schedule") == 50 && redis.llen("queue:default") == 50
    worker = lambda {
      own = client
      while (job = own.rpop("queue:default"))
        if job.end_with?("7") && own.hincrby("retries", job, 1) == 1
          own.zadd("retry", Time.now.to_f, job)
        else
          own.incr("stat:processed")
        end
      end
    }
    4.times.map { Thread.new(&worker) }.each(&:join)
    check redis.zcard("retry") == 5 && redis.get("stat:processed") == "45"
    check redis.zpopmin("retry", 10).size == 5 && redis.llen("queue:default").zero?
  },
  reconnect: lambda {
    redis = client(reconnect_attempts: 100, reconnect_delay: 0.05, reconnect_delay_max: 0.05)
    redis.set("before", 1)
    puts "restart"
    $stdin.gets
    check redis.set("after", 2) == "OK" && redis.get("after") == "2"
  }
}.freeze

STEPS.each do |name, step|
  step.call
  puts "ok #{name}"
end
