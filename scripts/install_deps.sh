#!/usr/bin/env bash
# Installs what building, testing and benchmarking need, on Debian 12, and the packages named besides.
# Packages that are there already are left alone; when none is missing, neither root nor a network
# is needed.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config
  libevent-dev libxxhash-dev libabsl-dev libcli11-dev libspdlog-dev libjemalloc-dev
  libssl-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libsqlite3-dev
  nlohmann-json3-dev libibverbs-dev
  libhiredis-dev libgtest-dev libgmock-dev libbenchmark-dev
  redis-server redis-tools
  clang-format clang-tidy clang libclang-rt-14-dev
  python3 gnuplot-nox procps iproute2
  python3-redis python3-kombu ruby ruby-redis
  "$@"
)
# Node.js may have come from elsewhere, with an npm of its own.
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)

is_installed() {
  [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

if ! command -v apt-get >/dev/null; then
  echo "install_deps.sh: apt-get not found; install by hand: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install_deps.sh: nothing is missing"
  exit 0
fi
echo "install_deps.sh: installing ${missing[*]}"

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_deps.sh: run as root, or install by hand: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# The redis-server package starts a server on 6379, the port of our own agent. A policy of 101
# forbids services to start for as long as this script runs; a policy that is there stays in force.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

"${as_root[@]}" apt-get -q update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -q -y --no-install-recommends install "${missing[@]}"
