#!/usr/bin/env bash
# Compares onetrip-agent with redis-server and with the null server; see bench/README.md and --help.
set -euo pipefail
exec python3 "$(dirname "$(readlink -f "$0")")/compare_redis.py" "$@"
