#!/usr/bin/env bash
# Breaks a cluster of processes at random for as long as one likes and judges what clients saw: runs of
# tests/nemesis/nemesis.py of five minutes at most, over every fabric and between hosts in turn, with
# fresh seeds. Goes on after a failure. Then what all runs came to; the last line is "N passed, N failed,
# N skipped", exit code 1 if anything failed.
#
#   scripts/nemesis.sh [--minutes N] [--seed FIRST] [nemesis.py's own flags]
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

minutes=10
seed=$(($(date +%s) % 1000000))
while (($#)); do
  case "$1" in
    --minutes) minutes=${2:?--minutes takes a number}; shift 2 ;;
    --seed) seed=${2:?--seed takes a number}; shift 2 ;;
    -h | --help) sed -n '2,7s/^# \?//p' "$0"; exit 0 ;;
    *) break ;;
  esac
done

scripts/install_deps.sh || exit 1
cmake --preset release >/dev/null || exit 1
cmake --build --preset release --target onetrip_programs nemesis_client -- --quiet || exit 1

root=$PWD
logs=$root/build/release/nemesis
mkdir -p "$logs"
cd "$logs" || exit 1
passed=0
failed=0
skipped=0
places=('--fabric shm' --hosts '--fabric tcp' --hosts '--fabric mixed' --hosts)
left=$minutes
done_logs=()
for ((run = 0; left > 0; ++run)); do
  length=$((left < 5 ? left : 5))
  ((left -= length))
  log=$logs/$((seed + run)).log
  done_logs+=("$log")
  # shellcheck disable=SC2086  # two words
  python3 -B "$root/tests/nemesis/nemesis.py" --bin "$root/build/release/bin" --minutes "$length" \
    --seed $((seed + run)) ${places[run % 6]} "$@" 2>&1 | tee "$log"
  if read -r good bad left_out < <(
    sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log"); then
    ((passed += good, failed += bad, skipped += left_out))
  else
    ((failed += 1))
  fi
done
sed -nE 's/^faults: [0-9]+: (.*)$/\1/p' "${done_logs[@]}" | tr ',' '\n' |
  awk '{n[$2] += $1; all += $1} END {
    printf "faults: %d", all; for (kind in n) printf ", %d %s", n[kind], kind; print ""}'
sed -nE 's/^operations: ([0-9]+) .*$/\1/p' "${done_logs[@]}" | awk '{n += $1} END {print "operations: " n}'
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
