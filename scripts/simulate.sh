#!/usr/bin/env bash
# Runs the simulation for as long as one likes: every scenario, fresh seeds, one process per core.
# Ends at the first failure, whose replay command it prints; exit code 1.
#
#   scripts/simulate.sh [--minutes N] [--seed FIRST] [simulate's own flags]
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

minutes=10
seed=$(date +%s)
while (($#)); do
  case "$1" in
    --minutes) minutes=${2:?--minutes takes a number}; shift 2 ;;
    --seed) seed=${2:?--seed takes a number}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# \?//p' "$0"; exit 0 ;;
    *) break ;;
  esac
done

scripts/install_deps.sh || exit 1
cmake --preset tests >/dev/null || exit 1
cmake --build --preset tests --target simulate -- --quiet || exit 1

cores=$(nproc)
logs=build/tests/simulate
mkdir -p "$logs"
echo "simulate.sh: $cores processes for $minutes minutes, seeds from $seed on; logs in $logs"
pids=()
for ((core = 0; core < cores; ++core)); do
  # Far apart, so that no seed runs twice.
  first=$((seed * 1000 + core * 100000000))
  build/tests/bin/simulate --minutes "$minutes" --seed "$first" --seeds 200 "$@" \
    >"$logs/$core.log" 2>&1 &
  pids+=($!)
done
result=0
for ((core = 0; core < cores; ++core)); do
  if ! wait "${pids[core]}"; then
    result=1
    kill "${pids[@]}" 2>/dev/null
    grep -aE -A 60 '^FAILED|CHECK failed' "$logs/$core.log" | head -n 80
    grep -a '^replay' "$logs/$core.log"
  fi
done
grep -ahE '^[0-9]+ schedules' "$logs"/*.log
exit $result
