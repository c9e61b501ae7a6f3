#!/usr/bin/env bash
# Tests the RDMA backend against the kernel's SoftRoCE driver, in a guest: no RDMA is needed here.
# Exits with the guest's status. Kernels are kept in ~/.cache/onetrip/guest.
#
#   scripts/test-verbs.sh [--filter PATTERN]      # of GoogleTest; default: all
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

filter='*Verbs*'
while (($#)); do
  case "$1" in
    --filter) filter=${2:?--filter takes a pattern}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# \?//p' "$0"; exit 0 ;;
    *) echo "test-verbs.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done

scripts/install_deps.sh qemu-system-x86 busybox-static ibverbs-providers
cmake --preset release >/dev/null
cmake --build --preset release --target verbs_tests -- --quiet
exec python3 -B tests/verbs/guest.py build/release/bin/verbs_tests \
  --command "verbs_tests --gtest_color=no --gtest_brief=1 --gtest_filter='$filter'"
