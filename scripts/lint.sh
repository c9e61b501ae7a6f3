#!/usr/bin/env bash
# The static checks: clang-format and the house rules on every file; clang-tidy on the files that
# differ from origin/main (or from $ONETRIP_LINT_BASE), and with --all on every file. --format
# rewrites all files by clang-format and does nothing else.
#
# Without --all, clang-tidy starts no further file after $ONETRIP_TIDY_BUDGET_S seconds (120), says how
# many files it left out, and lists them in build/lint-left-out.log.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

folders=(client_core memnode master redis_compat frontend tool tests bench)
failures=0
fail() {
  echo "lint.sh: $1" >&2
  ((failures += 1))
}

mapfile -t sources < <(find "${folders[@]}" -name '*.cc' -o -name '*.h' | sort)

case "${1:-}" in
  "" | --all) ;;
  --format) exec clang-format -i "${sources[@]}" ;;
  *)
    echo "usage: lint.sh [--all | --format]" >&2
    exit 1
    ;;
esac

clang-format --dry-run -Werror "${sources[@]}" ||
  fail "files are not formatted; run scripts/lint.sh --format"

python3 -B tests/house/house_check.py layout --root . || fail "the house rules are broken"

# The commit that the changes are counted from; empty: every file counts as changed.
change_base() {
  local base=${ONETRIP_LINT_BASE:-origin/main}
  git merge-base HEAD "$base" 2>/dev/null
}

# Files to tidy, product before tests, so that a budget that ends early ends on the tests.
files_to_tidy() {
  local base
  base=$(change_base)
  if [[ ${1:-} == --all || -z $base || $base == "$(git rev-parse HEAD)" ]]; then
    printf '%s\n' "${sources[@]}"
  else
    git diff --name-only --diff-filter=d "$base" -- "${folders[@]}"
  fi | grep -E '\.cc$' | grep -v '^tests/fuzz/' | sed -E 's/^(tests|bench)/~\1/' | sort |
    sed 's/^~//'
}

for build_dir in build/release build/dev ""; do
  [[ -n $build_dir && -f $build_dir/compile_commands.json ]] && break
done
if [[ -z $build_dir ]]; then
  build_dir=build/dev
  cmake --preset dev >/dev/null || fail "the dev preset does not configure"
fi
mkdir -p "$build_dir/tidy"
scripts/tidy_database.py "$build_dir" >"$build_dir/tidy/compile_commands.json" ||
  fail "the compilation database cannot be read"

tidy_one() {
  if (($(date +%s) >= TIDY_DEADLINE)); then
    echo "$2" >>"$LEFT_OUT"
    return 0
  fi
  # A benchmark is not in the database of a build without them, and cannot be read.
  [[ $2 != bench/* ]] || grep -qF "/$2\"" "$1/compile_commands.json" || return 0
  # gcc's options for link-time optimisation and batches are in the database, and mean nothing to clang.
  clang-tidy -p "$1" --quiet --extra-arg=-Wno-ignored-optimization-argument \
    --extra-arg=-Wno-unknown-warning-option "$2" 2>/dev/null
}
export -f tidy_one

budget_s=${ONETRIP_TIDY_BUDGET_S:-120}
[[ ${1:-} == --all ]] && budget_s=86400
TIDY_DEADLINE=$(($(date +%s) + budget_s))
LEFT_OUT=$PWD/build/lint-left-out.log
export TIDY_DEADLINE LEFT_OUT
: >"$LEFT_OUT"
mapfile -t tidy_files < <(files_to_tidy "${1:-}")
echo "lint.sh: clang-tidy on ${#tidy_files[@]} files"
if ((${#tidy_files[@]})); then
  # xargs answers 123 when any of them failed.
  printf '%s\0' "${tidy_files[@]}" |
    xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$@"' tidy_one "$build_dir/tidy" ||
    fail "clang-tidy has findings"
fi
[[ ! -s $LEFT_OUT ]] ||
  echo "lint.sh: out of time, left out $(wc -l <"$LEFT_OUT") files; build/lint-left-out.log lists them"

((failures == 0)) && echo "lint.sh: clean"
((failures == 0))
