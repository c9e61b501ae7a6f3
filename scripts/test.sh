#!/usr/bin/env bash
# Installs what is missing, builds the release, tests, asan-ubsan and tsan presets (or those named as
# arguments) and runs every test of each: of release, those of processes; of tests, simulations and the data
# path; of asan-ubsan, all; of tsan, what has threads. The last line is "N passed, N failed"; a build that fails
# counts as one failure. The lines before it name what failed, and count what the nemesis had to leave
# out on this host, if anything. Exit code 0 only when nothing failed.
#
# A fuzz target counts as one test; it runs for $ONETRIP_FUZZ_S seconds (10).
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

# Of work_ahead's own use.
is_ahead=
[[ ${1:-} != --ahead ]] || { is_ahead=1; shift; }

presets=("$@")
((${#presets[@]})) || [[ -n $is_ahead ]] || presets=(release tests asan-ubsan tsan)
jobs=$(nproc)
started=$SECONDS

# What each part comes to, one line each: "passed N", "failed N", "skipped N", "told NAME", a name of what failed,
# or "beside NAME", of what failed beside others and passed alone. A file, because parts run side by side.
results=build/results
note() { printf '%s\n' "$*" >>"$results"; }
sum_of() { awk -v what="$1" '$1 == what { sum += $2 } END { print sum + 0 }' "$results"; }

[[ -n $is_ahead ]] || scripts/install_deps.sh || exit 1

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# The control plane's library is not instrumented: what only it has seen is no report.
tsan_options=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1
export TSAN_OPTIONS=${TSAN_OPTIONS:-$tsan_options:suppressions=$PWD/tests/tsan.supp}

# ThreadSanitizer cannot place its shadow memory under some kernels' address randomisation.
steady=()
if setarch "$(uname -m)" -R true 2>/dev/null; then steady=(setarch "$(uname -m)" -R); fi

# build PRESET: true when all of it is built that is run here.
build() {
  cmake --preset "$1" >"build/$1-configure.log" 2>&1 || { cat "build/$1-configure.log"; return 1; }
  cmake --build --preset "$1" -- -j "$jobs" --quiet
}

# work_ahead PRESET...: does what else there is while tests wait for their processes rather than for the
# processors: builds these presets, and runs of them what only simulates, time included, so that a busy host
# breaks none of it. A build that fails fails again, and is told, when its turn comes. It has a session of its
# own, for Linux shares processors by session (autogroups) first, and by priority within one.
ahead=
work_ahead() {
  setsid scripts/test.sh --ahead "$@" >build/ahead.log 2>&1 &
  ahead=$!
}
trap '[[ -z $ahead ]] || kill -- "-$ahead" 2>/dev/null' EXIT

be_ahead() {
  (echo 19 >/proc/self/autogroup) 2>/dev/null
  renice -n 19 "$$" >/dev/null
  for preset in "${presets[@]}"; do
    build "$preset" || continue
    # No simulation has threads.
    [[ $preset == tsan ]] || run_ctest "$preset" simulated >"build/$preset-simulated.log" 2>&1
  done
}

# Waits for it, and shows what it has run.
end_ahead() {
  local preset
  [[ -n $ahead ]] || return 0
  wait "$ahead"
  ahead=
  for preset in "${presets[@]}"; do
    [[ -f build/$preset-simulated.log ]] || continue
    echo "=== $preset: simulations and house checks, which were run above, beside others"
    cat "build/$preset-simulated.log"
  done
}

# count_cases REPORT: prints "PASSED FAILED" of a JUnit report.
count_cases() {
  python3 - "$1" <<'EOF'
import sys
import xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
total, failed = (int(suite.get(name, "0")) for name in ("tests", "failures"))
skipped = int(suite.get("skipped", "0")) + int(suite.get("disabled", "0"))
print(total - failed - skipped, failed)
EOF
}

# tell_cases PRESET REPORT: notes the cases that failed in a JUnit report.
tell_cases() {
  python3 - "$1" "$2" >>"$results" <<'EOT'
import sys
import xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[2]).getroot().iter("testcase"):
    if case.find("failure") is not None:
        print("told " + sys.argv[1] + ": " + case.get("name"))
EOT
}

# add_counts WHOSE PASSED FAILED. Without two numbers, what should have counted did not come to its
# end.
add_counts() {
  if [[ ${2:-} =~ ^[0-9]+$ && ${3:-} =~ ^[0-9]+$ ]]; then
    note passed "$2"
    note failed "$3"
  else
    echo "=== the tests above did not end"
    note told "$1 did not end"
    note failed 1
  fi
}

# run_ctest PRESET all | simulated | others: every case of ctest, or those that only simulate or read, or all but
# those;
# never compat and cluster, whose cases are counted one by one below; of tsan, not what stands in one file with
# what has threads, has none and takes long. Of the cases that passed nothing is shown; build/PRESET/Testing has
# everything.
run_ctest() {
  local report=$PWD/build/$1/$2.xml good bad simulated='^(sim_tests|explore_tests|house)\.' left_out='^(compat|cluster)$'
  local only=()
  [[ $1 != tsan ]] || left_out+='|/ExtentsTest\.'
  # It replaces the preset's own choice.
  [[ $2 != simulated ]] || only=(--tests-regex "$simulated")
  [[ $2 != others ]] || left_out+="|$simulated"
  rm -f "$report"
  "${steady[@]}" ctest --preset "$1" -j "$jobs" "${only[@]}" --exclude-regex "$left_out" --no-tests=error \
    --output-junit "$report" | grep -vE '^ *[0-9]+/[0-9]+ Test +#.* Passed |^ +Start '
  read -r good bad < <(count_cases "$report" 2>/dev/null)
  [[ ${bad:-0} == 0 ]] || tell_cases "$1" "$report"
  add_counts "$1: ctest, $2" "$good" "$bad"
}

# run_counted PRESET NAME COMMAND...: a program whose last line has the counts; note_counts counts.
run_counted() {
  timeout 2400 "${steady[@]}" "${@:3}" 2>&1 | tee "build/$1/$2.log"
}
note_counts() {
  local good bad left_out
  read -r good bad left_out < <(
    sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "build/$1/$2.log")
  note skipped "${left_out:-0}"
  sed -nE -e "s/^failed: /told $1: $2: /p" -e "s/^failed beside others, passed alone: /beside $1: $2: /p" \
    "build/$1/$2.log" >>"$results"
  add_counts "$1: $2" "$good" "$bad"
}

# run_fuzz PRESET: every fuzz target from the inputs that tests/fuzz/corpus keeps for it, if any, as many at a
# time as there are processors; what fails stays in build/PRESET.
run_fuzz() {
  local target number=0
  for target in build/"$1"/bin/*_fuzz; do
    run_fuzz_target "$1" "$target" &
    ((++number % jobs)) || wait
  done
  wait
}
run_fuzz_target() {
  local name corpus kept=()
  name=$(basename "$2")
  corpus=build/$1/$name.corpus
  rm -rf "$corpus"
  mkdir -p "$corpus"
  [[ ! -d tests/fuzz/corpus/$name ]] || kept=("tests/fuzz/corpus/$name")
  if "$2" -max_total_time="${ONETRIP_FUZZ_S:-10}" -max_len=4096 -rss_limit_mb=2048 \
    -artifact_prefix="build/$1/$name." "$corpus" "${kept[@]}" >"build/$1/$name.log" 2>&1; then
    note passed 1
  else
    echo "=== $name failed; build/$1/$name.log ends with:"
    grep -m 5 -E 'CHECK|ERROR:|runtime error' "build/$1/$name.log"
    tail -n 15 "build/$1/$name.log"
    note told "$1: $name"
    note failed 1
  fi
}

mkdir -p build
if [[ -n $is_ahead ]]; then
  be_ahead
  exit
fi
: >"$results"
rm -f build/*-simulated.log
for ((i = 0; i < ${#presets[@]}; ++i)); do
  preset=${presets[i]}
  echo "=== $preset: build ($(date +%T))"
  end_ahead
  if ! build "$preset"; then
    echo "=== $preset: the build failed"
    note told "$preset: the build"
    note failed 1
    continue
  fi
  if [[ $preset != release ]]; then
    if [[ -f build/$preset-simulated.log ]]; then
      echo "=== $preset: unit tests ($(date +%T))"
      run_ctest "$preset" others
    else
      echo "=== $preset: all tests ($(date +%T))"
      run_ctest "$preset" all
    fi
    if [[ $preset == asan-ubsan ]]; then
      echo "=== $preset: fuzz targets ($(date +%T))"
      run_fuzz "$preset"
    fi
  fi
  # The agents of the sanitizer builds are driven by the unit tests' sockets; against redis-server's
  # deadlines they would be too slow.
  [[ $preset == release || $preset == dev ]] || continue
  work_ahead "${presets[@]:i+1}"
  echo "=== $preset: compatibility tests ($(date +%T))"
  # Side by side, for each mostly waits for its servers. Under engine snapshot all keys are records:
  # the other form that a key can have.
  run_counted "$preset" compat-snapshot python3 -B tests/compat/run.py --differential --agent-args '--engine snapshot' \
    --agent "build/$preset/bin/onetrip-agent" &
  snapshot=$!
  run_counted "$preset" compat python3 -B tests/compat/run.py --agent "build/$preset/bin/onetrip-agent"
  wait "$snapshot"
  note_counts "$preset" compat
  note_counts "$preset" compat-snapshot
  echo "=== $preset: real clients ($(date +%T))"
  run_counted "$preset" clients python3 -B tests/clients/run.py --agent "build/$preset/bin/onetrip-agent"
  note_counts "$preset" clients
  echo "=== $preset: clusters of processes ($(date +%T))"
  run_counted "$preset" cluster python3 -B tests/cluster/run.py --bin "build/$preset/bin" --jobs $((2 * jobs))
  note_counts "$preset" cluster
  if [[ $preset == release ]]; then
    # A fresh seed, unless ONETRIP_NEMESIS_SEED says which: what it finds can be repeated, as far as times
    # allow. scripts/nemesis.sh goes on for as long as one likes, and among hosts.
    echo "=== $preset: a cluster broken at random ($(date +%T))"
    seed=${ONETRIP_NEMESIS_SEED:-$(($(date +%s) % 1000000))}
    minutes=${ONETRIP_NEMESIS_MINUTES:-3}
    echo "ONETRIP_NEMESIS_SEED=$seed ONETRIP_NEMESIS_MINUTES=$minutes"
    run_counted "$preset" nemesis python3 -B tests/nemesis/nemesis.py --bin "build/$preset/bin" --minutes "$minutes" \
      --seed "$seed" --out "build/$preset/nemesis"
    note_counts "$preset" nemesis
    echo "=== $preset: collections under agents that are killed ($(date +%T))"
    run_counted "$preset" collections python3 -B tests/nemesis/collections_kill.py --bin "build/$preset/bin" \
      --seconds 20 --seed "$seed"
    note_counts "$preset" collections
    echo "=== $preset: RDMA, in guests ($(date +%T))"
    if command -v qemu-system-x86_64 >/dev/null || scripts/install_deps.sh qemu-system-x86; then
      run_counted "$preset" verbs scripts/test-verbs.sh
      note_counts "$preset" verbs
    else
      echo "=== SKIPPED: nothing was tested over RDMA, for QEMU cannot be installed here"
      note skipped 1
    fi
  fi
done
end_ahead

sed -n 's/^beside /=== failed beside others, passed alone: /p' "$results"
sed -n 's/^told /=== failed: /p' "$results" | tee build/failed.log
skipped=$(sum_of skipped)
failed=$(sum_of failed)
((skipped == 0)) || echo "=== $skipped skipped; what, and why, stands above"
echo "=== it took $(((SECONDS - started + 59) / 60)) minutes"
echo "$(sum_of passed) passed, $failed failed"
((failed == 0))
