#!/usr/bin/env bash
# From a bare Debian 12 to a running store: installs what is missing, builds, starts a cluster of
# processes (a master, three memory nodes, two agents from port ${ONETRIP_PORT:-6379} on) and shows it
# through redis-cli. Further arguments go to `onetrip up`.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

port=${ONETRIP_PORT:-6379}
dir=build/run/cluster
onetrip=build/release/bin/onetrip

scripts/install_deps.sh
for taken in "$port" "$((port + 1))"; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$taken") 2>/dev/null; then
    echo "quickstart.sh: port $taken is taken; stop what listens there or choose another port:" \
      "ONETRIP_PORT=7000 $0" >&2
    exit 1
  fi
done

echo "Building into build/release ..."
mkdir -p build/run
if ! cmake --preset release >build/run/configure.log 2>&1; then
  cat build/run/configure.log >&2
  exit 1
fi
cmake --build --preset release --target onetrip_programs

echo
"$onetrip" up --dir "$dir" --port "$port" "$@"

show() {
  echo "\$ redis-cli -p $*"
  redis-cli -p "$@"
}
echo
show "$port" SET greeting hello
show "$((port + 1))" GET greeting
show "$port" INCR visits
show "$((port + 1))" INCR visits
echo
"$onetrip" status --dir "$dir"
cat <<END

Two agents, one keyspace. Talk to it:  redis-cli -p $port
Measure it:  redis-benchmark -p $port -t ping,set,get,incr,mset -n 1000000 -P 16 -c 50
Watch it:    $onetrip status --dir $dir
Stop it:     $onetrip down --dir $dir
END
