#!/bin/busybox sh
# A cluster over RDMA on two hosts, of which one vanishes (tests/verbs/guest.py --second):
#   two_hosts.sh first    master, two memory nodes, two agents
#   two_hosts.sh second   the third memory node
set -u
. /bin/steps.sh
cd /tmp || exit 1
echo "a secret of two hosts, long enough" >/tmp/secret
chmod 600 /tmp/secret

memnode() {
  onetrip-memnode --master 10.0.0.1:7400 --fabric verbs --listen "$1" --memory 64MiB \
    --secret-file /tmp/secret --connect-timeout-ms 120000
}

if [ "$1" = second ]; then
  await 60 "the master" nc -w 1 10.0.0.1 7400 </dev/null
  memnode 10.0.0.2:0
  exit
fi

onetrip-master --listen 10.0.0.1:7400 --data-dir /tmp/master --secret-file /tmp/secret \
  >/tmp/master.log 2>&1 &
for i in 0 1; do memnode 10.0.0.1:0 >/tmp/memnode-$i.log 2>&1 & done
for i in 0 1; do
  onetrip-agent --master 10.0.0.1:7400 --secret-file /tmp/secret --port 760$i \
    --connect-timeout-ms 120000 >/tmp/agent-$i.log 2>&1 &
done
# An agent that waits to join answers no PING.
for i in 0 1; do await 60 "a memory node" grep -q "is ready" /tmp/memnode-$i.log; done
await 60 "an agent" redis-cli -p 7600 ping
await 60 "another agent" redis-cli -p 7601 ping
[ "$(info 7600 cluster_fabric)" = verbs ] || fail "agents do not find RDMA by themselves"
onetrip status --master 10.0.0.1:7400 --secret-file /tmp/secret >/tmp/status.log
grep -q "rxe0, port 1, GID 1 ::ffff:10.0.0.2" /tmp/status.log || fail "status does not show the other host's device"
grep -A 3 '^ *memnode' /tmp/status.log
step "a cluster over RDMA on two hosts"

benchmark 2 -p 7600 -t set,get -n 1000 -c 10 -P 4 -r 200
i=0
while [ $i -lt 200 ]; do echo "set key:$i $i"; i=$((i + 1)); done | redis-cli -p 7600 | grep -v OK &&
  fail "a SET failed"

epoch=$(info 7601 cluster_epoch)
begin=$(now)
echo "guest: end the second"
# A key that is known needs a majority; a new one may end with its outcome unknown.
reply=$(redis-cli -p 7600 set key:5 5)
[ "$reply" = OK ] || fail "a SET beside the end of a host: $reply"
seen() { [ "$(info 7601 cluster_epoch)" != "$epoch" ]; }
await 30 "the view without the other host" seen
echo "the other host vanished: agents have the view without it after $(($(now) - begin)) hundredths of a second"
grep "retry counter" /tmp/agent-0.log /tmp/agent-1.log && fail "a device gave the host up before the view did"
redis-cli -p 7601 set behind "the end" | grep -q OK || fail "a SET behind the end of a host"
i=0
while [ $i -lt 200 ]; do echo "get key:$i"; i=$((i + 1)); done | redis-cli -p 7601 >/tmp/found
i=0
while [ $i -lt 200 ]; do echo $i; i=$((i + 1)); done | cmp - /tmp/found || fail "keys are missing"
echo "$(info 7600 rdma_flushed) batches of the first agent have an unknown outcome"
step "a host vanishes, and nothing is lost"
