#!/usr/bin/env bash
# Tests RDMA against the kernel's SoftRoCE driver, in guests: no RDMA is needed here. Backend and store by
# verbs_tests, a cluster of processes with redis-cli and redis-benchmark, one on two hosts. The last line is
# "N passed, N failed" of these parts; the exit code is 0 if none failed. Kernels are kept in
# ~/.cache/onetrip/guest.
#
#   scripts/test-verbs.sh [--filter PATTERN] [unit] [cluster] [hosts]      # PATTERN: GoogleTest's, of unit
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

filter='*Verbs*'
parts=()
while (($#)); do
  case "$1" in
    --filter) filter=${2:?--filter takes a pattern}; shift 2 ;;
    unit | cluster | hosts) parts+=("$1"); shift ;;
    -h | --help) sed -n '2,8s/^# \?//p' "$0"; exit 0 ;;
    *) echo "test-verbs.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
((${#parts[@]})) || parts=(unit cluster hosts)

scripts/install_deps.sh qemu-system-x86 busybox-static ibverbs-providers redis-server redis-tools || exit 1
cmake --preset release >/dev/null && cmake --build --preset release -- --quiet || exit 1
cmake --build --preset release --target verbs_tests -- --quiet || exit 1

bin=build/release/bin
processes=("$bin/onetrip" "$bin/onetrip-master" "$bin/onetrip-memnode" "$bin/onetrip-agent"
  "$(command -v redis-server)" "$(command -v redis-cli)" "$(command -v redis-benchmark)" tests/verbs/steps.sh)
guest() { python3 -B tests/verbs/guest.py --timeout "${ONETRIP_GUEST_TIMEOUT_S:-480}" "$@"; }

passed=0
failed=0
for part in "${parts[@]}"; do
  echo "=== RDMA: $part ($(date +%T))"
  case "$part" in
    unit)
      guest "$bin/verbs_tests" \
        --command "verbs_tests --gtest_color=no --gtest_brief=1 --gtest_filter='$filter'" ;;
    cluster) guest "${processes[@]}" tests/verbs/cluster.sh --command "sh /bin/cluster.sh" ;;
    hosts)
      guest "${processes[@]}" tests/verbs/two_hosts.sh --command "sh /bin/two_hosts.sh first" \
        --second "sh /bin/two_hosts.sh second" ;;
  esac
  if (($? == 0)); then
    ((++passed))
  else
    ((++failed))
    echo "failed: $part"
  fi
done
echo "$passed passed, $failed failed"
((failed == 0))
