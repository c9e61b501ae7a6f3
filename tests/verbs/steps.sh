# For the scripts that guests run: steps that are told, and waiting.

started=$(date +%s)
step() { echo "ok: $* ($(($(date +%s) - started)) s)"; }
fail() {
  echo "FAILED: $*"
  for log in /tmp/*.log /tmp/c/logs/*.log; do
    [ -f "$log" ] || continue
    echo "== $log"
    tail -n 12 "$log"
  done
  exit 1
}

# The time since the boot, in hundredths of a second.
now() { awk '{print int($1 * 100)}' /proc/uptime; }

# await SECONDS WHAT COMMAND...: until the command is true.
await() {
  local end what=$2
  end=$(($(now) + $1 * 100))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$(now)" -lt $end ] || fail "$what, in time"
    sleep 0.2
  done
}

# info PORT FIELD: of an agent's INFO.
info() { redis-cli -p "$1" info onetrip | tr -d '\r' | sed -n "s/^$2://p"; }

# pid_of WORDS: of the process whose command line has them.
pid_of() {
  local process
  for process in /proc/[0-9]*; do
    tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q -- "^[^ ]*onetrip-.*$1" && echo "${process#/proc/}"
  done
}

# benchmark TESTS FLAGS...: redis-benchmark, of which as many tests have to come to their end.
benchmark() {
  local tests=$1
  shift
  redis-benchmark "$@" -q 2>&1 | tr '\r' '\n' | grep 'requests per second' >/tmp/benchmark
  cat /tmp/benchmark
  [ "$(wc -l </tmp/benchmark)" -eq "$tests" ] || fail "redis-benchmark"
}
