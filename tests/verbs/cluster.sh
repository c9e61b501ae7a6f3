#!/bin/busybox sh
# What people do with a cluster over RDMA, and what happens to it, in a guest that has a device
# (tests/verbs/guest.py): master, three memory nodes and two agents, redis-server beside them.
set -u
. /bin/steps.sh
cd /tmp || exit 1

# stream SEED: commands whose replies are to be a redis-server's, on few keys, so that they meet.
stream() {
  awk -v seed="$1" 'BEGIN {
    srand(seed)
    split("SET GET DEL INCR MSET MGET EXPIREAT APPEND STRLEN SETNX GETSET DECRBY EXISTS PERSIST SETRANGE GETRANGE GETDEL TYPE", verbs, " ")
    for (i = 0; i < 400; ++i) {
      verb = verbs[int(rand() * 18) + 1]; key = "k" int(rand() * 12); number = int(rand() * 100)
      if (verb == "SET" || verb == "SETNX" || verb == "GETSET" || verb == "APPEND") print verb, key, number
      else if (verb == "MSET") print verb, key, number, "k" int(rand() * 12), "text-" number
      else if (verb == "MGET") print verb, key, "k" int(rand() * 12)
      else if (verb == "EXPIREAT") { print verb, key, 4000000000 + number; print "EXPIRETIME", key }
      else if (verb == "DECRBY") print verb, key, number
      else if (verb == "SETRANGE") print verb, key, number % 20, "xyz"
      else if (verb == "GETRANGE") print verb, key, 0, number % 20
      else print verb, key
    }
    print "SET"; print "INCR k1 k2"; print "EXPIRE k1 soon"; print "NOSUCHCOMMAND x"
  }'
}

refused() {
  onetrip-memnode --master 127.0.0.1:1 --memory 64MiB --fabric verbs "$@" 2>&1 | tail -n 1
}
case $(refused --device mlx5_0) in
  *"there is no RDMA device mlx5_0; there are rxe0"*) ;;
  *) fail "a device that is not there: $(refused --device mlx5_0)" ;;
esac
case $(refused --gid-index 77) in
  *"has no GID at index 77"*) ;;
  *) fail "a GID that is not there: $(refused --gid-index 77)" ;;
esac
case $(refused --backing /tmp/file) in
  *"a memory in a file is not served over RDMA"*) ;;
  *) fail "a file: $(refused --backing /tmp/file)" ;;
esac
step "what cannot work is refused in a sentence"

up() {
  onetrip up --dir /tmp/c --fabric verbs --device rxe0 --agents 2 --memnodes 3 --memory 64MiB \
    --port 7600 --timeout 120 >/tmp/up.log 2>&1
}
up || { cat /tmp/up.log; fail "onetrip up"; }
step "onetrip up --fabric verbs --device rxe0"
onetrip status --dir /tmp/c >/tmp/status.log
grep -q "rxe0, port 1, GID 1 ::ffff:10.0.0.1, MTU 4096, Ethernet" /tmp/status.log ||
  fail "status does not show the device"
grep -A 3 '^ *memnode' /tmp/status.log
[ "$(info 7600 cluster_fabric)" = verbs ] || fail "the agent is not over verbs"
step "status shows the device"

onetrip-agent --master "$(sed -n 's/.*master \(127[0-9.:]*\).*/\1/p' /tmp/c/logs/agent-0.log | head -n 1)" \
  --secret-file /tmp/c/secret --fabric tcp --port 7690 >/tmp/tcp-agent.log 2>&1
grep -q "serves RDMA alone; give --fabric verbs" /tmp/tcp-agent.log || fail "an agent over tcp is not refused"
step "an agent over tcp is refused"

redis-server --port 6390 --save "" --daemonize yes >/dev/null
await 20 "redis-server" redis-cli -p 6390 ping
for seed in 1 2 3 4; do
  redis-cli -p 6390 flushall >/dev/null
  redis-cli -p 7600 flushall >/dev/null
  stream $seed >/tmp/stream
  redis-cli -p 6390 </tmp/stream >/tmp/expected 2>&1
  redis-cli -p $((7600 + seed % 2)) </tmp/stream >/tmp/found 2>&1
  cmp -s /tmp/expected /tmp/found || {
    diff /tmp/expected /tmp/found | head -n 10
    fail "stream $seed: replies differ"
  }
done
step "1,600 commands have the replies of redis-server"

redis-cli -p 7600 set known value >/dev/null
redis-cli -p 7600 set known again >/dev/null
# Ten times in a row; what is slow may take another round trip now and then.
all_in_one() {
  redis-cli -p 7600 config resetstat >/dev/null
  for i in 1 2 3 4 5 6 7 8 9 10; do echo "$2"; done | redis-cli -p 7600 >/dev/null
  [ "$(info 7600 "$1")" = 1.000 ]
}
await 20 "GETs of a known key in one round trip" all_in_one rtt_per_get "get known"
await 20 "SETs of a known key in one round trip" all_in_one rtt_per_set "set known value"
[ "$(info 7600 rdma_doorbells)" -gt 20 ] && [ "$(info 7600 rdma_flushed)" = 0 ] ||
  fail "what INFO counts: $(redis-cli -p 7600 info onetrip | grep rdma)"
step "GET and SET of a known key take one round trip"

benchmark 4 -p 7600 -t set,get,incr,mset -n 2000 -c 10 -P 4 -r 200
step "redis-benchmark"

# Something is written all the time: the count of what was acknowledged goes to /tmp/acknowledged.
writer() {
  i=0
  while [ ! -f /tmp/stop ]; do
    [ "$(redis-cli -p 7601 set "written:$i" "$i" 2>/dev/null)" = OK ] && i=$((i + 1)) && echo $i >/tmp/acknowledged.new && mv /tmp/acknowledged.new /tmp/acknowledged
  done
}
check_written() {
  local all
  await 20 "an agent at port $1" redis-cli -p "$1" ping
  all=$(cat /tmp/acknowledged)
  [ "$all" -ge 20 ] || fail "nothing was written"
  i=0
  while [ $i -lt "$all" ]; do echo "get written:$i"; i=$((i + 1)); done | redis-cli -p "$1" >/tmp/found
  i=0
  while [ $i -lt "$all" ]; do echo $i; i=$((i + 1)); done >/tmp/expected
  cmp -s /tmp/expected /tmp/found || fail "acknowledged writes are missing: $(diff /tmp/expected /tmp/found | head -n 4)"
}
more() { [ "$(cat /tmp/acknowledged 2>/dev/null || echo 0)" -ge "$1" ]; }
writer &
await 60 "writes" more 20
begin=$(now)
kill -9 "$(pid_of node-1.sock)"
await 60 "writes go on without a memory node" more $(($(cat /tmp/acknowledged) + 10))
echo "a memory node was killed: ten more writes after $(($(now) - begin)) hundredths of a second"
check_written 7600
step "a memory node dies"

up || { cat /tmp/up.log; fail "up again"; }
await 90 "the cluster is whole again" onetrip status --dir /tmp/c
step "it comes back, and its memory is copied anew"

ip link set dummy0 down
sleep 3
ip link set dummy0 up
await 60 "writes go on when the link is back" more $(($(cat /tmp/acknowledged) + 10))
check_written 7600
step "the link goes down and comes up"
await 90 "the cluster is whole again" onetrip status --dir /tmp/c

# Stopped for longer than its lease, then going on: its queue pairs are gone.
agent=$(pid_of "--port 7600")
kill -STOP "$agent"
sleep 4
before=$(cat /tmp/acknowledged)
kill -CONT "$agent"
gone() { ! kill -0 "$agent" 2>/dev/null; }
await 30 "an expelled agent ends" gone
await 30 "the other agent goes on" more $((before + 10))
check_written 7601
step "an agent that slept is fenced"

touch /tmp/stop
wait
up || { cat /tmp/up.log; fail "up again"; }
check_written 7600
onetrip check --dir /tmp/c >/tmp/check.log 2>&1 || { cat /tmp/check.log; fail "onetrip check"; }
cat /tmp/check.log
onetrip down --dir /tmp/c >/dev/null || fail "onetrip down"
step "nothing is lost"
