#!/usr/bin/env bash
# From a bare Debian 12 to a running store: installs what is missing, builds, starts an agent on
# port ${ONETRIP_PORT:-6379} and shows it through redis-cli. Further arguments go to the agent.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

port=${ONETRIP_PORT:-6379}
run_dir=$PWD/build/run
pid_file=$run_dir/agent-$port.pid
log_file=$run_dir/agent-$port.log

scripts/install_deps.sh
if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
  echo "quickstart.sh: port $port is taken; stop what listens there or choose another port:" \
    "ONETRIP_PORT=7000 $0" >&2
  exit 1
fi

echo "Building into build/release ..."
mkdir -p "$run_dir"
if ! cmake --preset release >"$run_dir/configure.log" 2>&1; then
  cat "$run_dir/configure.log" >&2
  exit 1
fi
cmake --build --preset release --target onetrip-agent

# In a session of its own, so that it outlives this terminal.
setsid build/release/bin/onetrip-agent --port "$port" "$@" >"$log_file" 2>&1 </dev/null &
agent_pid=$!
echo "$agent_pid" >"$pid_file"

for ((attempt = 0; ; ++attempt)); do
  if [[ "$(redis-cli -p "$port" ping 2>/dev/null)" == PONG ]]; then break; fi
  if ! kill -0 "$agent_pid" 2>/dev/null || ((attempt == 150)); then
    echo "quickstart.sh: the agent does not answer; its last words ($log_file):" >&2
    tail -n 5 "$log_file" >&2
    kill "$agent_pid" 2>/dev/null || true
    rm -f "$pid_file"
    exit 1
  fi
  sleep 0.2
done
disown "$agent_pid"

show() {
  echo "\$ redis-cli -p $port $*"
  redis-cli -p "$port" "$@"
}
echo
show SET greeting hello
show GET greeting
show INCR visits
show INCR visits
cat <<EOF

The agent runs as process $agent_pid on 127.0.0.1:$port; its log is build/run/agent-$port.log.
Talk to it:  redis-cli -p $port
Measure it:  redis-benchmark -p $port -t ping,set,get,incr,mset -n 1000000 -P 16 -c 50
Stop it:     kill \$(cat build/run/agent-$port.pid)
EOF
