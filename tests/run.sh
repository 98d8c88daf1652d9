#!/usr/bin/env bash
# Runs the checks.
#
#   bash tests/run.sh [--full] [--stage NAME]... [--again] [--slurm]
#
# Without options: the checks that every change must pass, about 15 minutes of CPU time.  --full adds more
# cases of each test, a build and tests with the second compiler, the sanitizers over everything,
# tests with MPICH, the fault drills, the fuzzers, ThreadSanitizer and, on x86-64, a build for arm64
# under QEMU.
# --stage NAME runs one stage: gcc, lint, format, asan, and with --full clang, asan-ranks, mpich,
# drills, fuzz, tsan, arm64.
#
# A check that passed on this very tree (files, compilers, packages, CPU, options) is remembered in
# build/checks and not repeated, so an interrupted run continues; --again repeats everything.  A
# failure does not stop the other checks.  Build folders are kept: a second run rebuilds only changes.
# As root, missing packages are installed; Slurm's daemons, for the tests on a private Slurm, only if
# the machine has no Slurm of its own, or with --slurm.
set -uo pipefail

GEOTRAIN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$GEOTRAIN_ROOT"
. jobs/install

quick_stages=(gcc lint format asan)
full_stages=("${quick_stages[@]}" clang asan-ranks mpich drills fuzz tsan arm64)
usage() {
  echo "usage: tests/run.sh [--full] [--stage NAME]... [--again] [--slurm]; stages: ${quick_stages[*]}, with --full also ${full_stages[*]:4}" >&2
  exit 2
}

full=no slurm=no again=no chosen=()
while [ $# -gt 0 ]; do
  case $1 in
    --full) full=yes ;;
    --slurm) slurm=yes ;;
    --again) again=yes ;;
    --stage) [ $# -ge 2 ] || usage && chosen+=("$2") && shift ;;
    *) usage ;;
  esac
  shift
done
stages=("${quick_stages[@]}")
[ "$full" = no ] || stages=("${full_stages[@]}")
for word in ${chosen[@]+"${chosen[@]}"}; do
  [[ " ${stages[*]} " == *" $word "* ]] || usage
done
[ ${#chosen[@]} -eq 0 ] || stages=("${chosen[@]}")
# More cases of each test (tests/cases.h), once: tests with ranks and tests of kernels in `gcc`, all
# others in `clang`.
more=quick
[ "$full" = no ] || more=full
export GEOTRAIN_TESTS=quick

cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # else nproc counts OpenMP's threads
slots=$((cores + (cores + 1) / 2)) # of CTest
more_slots=$((2 * cores))          # for tests with ranks, which mostly wait
export LC_ALL=C
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # pinned OpenBLAS kernels would not be those that users run
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# shellcheck disable=SC2046 # a word a line
export $(grep '^[A-Z]' jobs/mpi.env)
passed=0 failed=0 skipped=0 failures=()

# ---- remembered results -----------------------------------------------------------------------------------------------------------

# Prints one hash of the tree, the tools and the machine.
here() {
  {
    if git rev-parse --git-dir >/dev/null 2>&1; then
      git ls-files -co --exclude-standard -z
    else
      find . -path ./build -prune -o -type f -print0
    fi | LC_ALL=C sort -z | xargs -0 sha256sum 2>/dev/null
    gcc --version
    clang --version
    mpirun --version
    packages_wanted tests bench slurm | xargs dpkg-query -W
    grep -m 1 '^flags' /proc/cpuinfo || uname -m
    echo "$full"
  } 2>/dev/null | sha256sum | cut -c 1-16
}

# Lines of $memory: date, step, test or "-".
remember() { printf '%s\t%s\t%s\n' "$(date '+%F %T')" "$1" "${2:--}" >>"$memory"; }
remembered() { awk -F '\t' -v step="$1" '$2 == step && $3 == "-" { found = 1 } END { exit !found }' "$memory"; }
known=0 # checks that were not repeated
oldest=

recall() { # STEP [COUNT]: counts remembered checks as passed
  passed=$((passed + ${2:-1})) known=$((known + ${2:-1}))
  local date
  date=$(awk -F '\t' -v step="$1" '$2 == step { print $1; exit }' "$memory")
  [[ -n $oldest && $oldest < $date ]] || oldest=$date
}

# ---- steps ------------------------------------------------------------------------------------------------------------------------

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Sets $cpu: the CPU seconds of everything that has ended.
clock() {
  times >"$scratch/times" # in a subshell they would be the subshell's
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%d", s + 0.5 }' "$scratch/times")
}

begin() {
  clock
  began=$SECONDS began_cpu=$cpu
}

say() { # WORD NAME: prints a step's line, with its time since `begin`
  clock
  printf '%-5s %4ds %5ds CPU  %s\n' "$1" $((SECONDS - began)) $((cpu - began_cpu)) "$2"
}

# step NAME COMMAND...: runs it, prints its output if it fails, counts it as one check.
step() {
  local name=$1 log=$scratch/log
  shift
  begin
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    say ok "$name"
    return 0
  fi
  failed=$((failed + 1))
  failures+=("$name")
  tail -n 120 "$log" | cut -c 1-400
  say FAIL "$name"
  return 1
}

# once NAME COMMAND...: runs a step, unless it has passed on the same tree.
once() {
  if remembered "$1"; then recall "$1" && printf 'ok    remembered        %s\n' "$1" && return; fi
  step "$@" && remember "$1"
}

# tests NAME BUILD CTEST-WORDS...: runs the selected CTest tests that are not remembered, and counts each.
tests() {
  local name=$1 build=$2 log=$scratch/log todo numbers have total lost left new
  shift 2
  begin
  ctest --test-dir "$build" -N "$@" | sed -nE 's/^ *Test +#[0-9]+: ([^ ]+).*/\1/p' | awk '{ print NR "\t" $1 }' >"$log" # -I numbers the selected tests
  total=$(wc -l <"$log")
  if [ "$total" -eq 0 ]; then
    failed=$((failed + 1)) && failures+=("$name: CTest finds no test in $build") && say FAIL "$name" && return 1
  fi
  todo=$(awk -F '\t' -v step="$name" -v memory="$memory" 'FILENAME == memory { if ($2 == step) have[$3] = 1; next } !($2 in have) { print $1 }' "$memory" "$log")
  numbers=$(wc -w <<<"$todo")
  have=$((total - numbers))
  [ "$have" -eq 0 ] || recall "$name" "$have"
  lost=0 left=0
  if [ "$numbers" -gt 0 ]; then
    todo=${todo//$'\n'/,}
    ctest --test-dir "$build" -j "$slots" --output-on-failure "$@" -I "${todo%%,*},${todo%%,*},,$todo" 2>&1 | tee "$log" |
      while IFS= read -r line; do
        if [[ $line =~ ^\ *[0-9]+/[0-9]+\ Test\ +#[0-9]+:\ ([^\ ]+)\ .*\ Passed\  ]]; then remember "$name" "${BASH_REMATCH[1]}"; fi
      done
    read -r lost new < <(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log") || true
    if [ "${new:-0}" -ne "$numbers" ]; then # CTest itself failed
      failures+=("$name: CTest ran ${new:-0} of $numbers tests")
      lost=$((numbers - ${new:-0} + lost))
    fi
    left=$(grep -c '\*\*\*Skipped' "$log")
    passed=$((passed + numbers - lost - left)) failed=$((failed + lost)) skipped=$((skipped + left))
  fi
  if [ "$lost" -gt 0 ]; then
    # the output of each failed test, then CTest's list
    awk '/^ *[0-9]+\/[0-9]+ Test +#/ { shown = /\*\*\*/ && !/\*\*\*Skipped/ } / Start +[0-9]+: / { shown = 0 } /^[0-9]+% tests passed/ { shown = 1 } shown' "$log" | cut -c 1-400
    while read -r new; do failures+=("$name: $new"); done < <(sed -nE '/^The following tests FAILED/,$s/^[[:space:]]*[0-9]+ - ([^ ]+) \(.*/\1/p' "$log")
  fi
  say "$([ "$lost" -eq 0 ] && echo ok || echo FAIL)" "$name: $((total - lost - left)) of $total tests$([ "$have" -eq 0 ] || echo ", $have remembered")$([ "$left" -eq 0 ] || echo ", $left skipped")"
  sed -nE '/^The following tests did not run/,/^$/s/^[[:space:]]*[0-9]+ - ([^ ]+) \(Skipped\)/skip                    \1/p' "$log"
  [ "$lost" -eq 0 ]
}

# build PRESET COMPILER [TARGET]
build() { cmake --preset "$1" ${2:+-DCMAKE_C_COMPILER="$2"} && cmake --build "build/$1" -j "$cores" --target "${3:-all}"; }

format() {
  find src include tests bench -name '*.[ch]' | LC_ALL=C sort |
    xargs -P "$cores" -n 20 clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):.*clang-format-violations.*/not formatted: clang-format -i \1/p' | uniq
  [ "${PIPESTATUS[2]}" -eq 0 ]
}

lint() { build_commands && tests/lint build/dev $([ "$full" = no ] || echo --deep); }
build_commands() { [ -e build/dev/compile_commands.json ] || cmake --preset dev -DCMAKE_C_COMPILER=gcc; }

# ---- stages -----------------------------------------------------------------------------------------------------------------------

# Tests with ranks, and optimised kernels; the other unit tests run under the sanitizers.
gcc_stage() {
  local same=() # the tests at AVX2 equal those at the CPU's own instruction set
  grep -q '^flags.* avx512f' /proc/cpuinfo || same=(-E '\.avx2$')
  step "build, gcc (build/dev)" build dev gcc rank_tests &&
    GEOTRAIN_TESTS=$more slots=$more_slots tests "tests, gcc" build/dev -L '^(mpi|e2e|tensor|nn|tree)$' -LE '^full$' ${same[@]+"${same[@]}"}
}

lint_stage() { once "clang-tidy" lint; }

format_stage() { once "clang-format" format; }

# The quick run skips the longest tests of networks and kernels: `gcc` runs them.
asan_stage() {
  local apart=(-LE '^(mpi|full|e2e|tree)$')
  [ "$full" = yes ] || apart=(-LE '^(mpi|full|e2e|tree|isa)$' -E '^(nn\.test_(resnet|gpt|niser|lstm|passes|gradients|deepfm)|tensor\.test_(norm|prepared|decoder|lstm|kernels))$')
  step "build, sanitizers (build/asan)" build asan gcc unit_tests &&
    tests "unit tests, sanitizers" build/asan "${apart[@]}"
}

clang_stage() {
  step "build, clang (build/dev-clang)" build dev-clang clang || return 1
  GEOTRAIN_TESTS=$more tests "unit tests, clang" build/dev-clang -LE '^(mpi|full|e2e)$'
  slots=$more_slots tests "MPI and end-to-end tests, clang" build/dev-clang -L '^(mpi|e2e)$' -LE '^full$'
}

asan-ranks_stage() {
  step "build of ranks, sanitizers (build/asan)" build asan gcc &&
    slots=$more_slots tests "MPI and end-to-end tests, sanitizers" build/asan -L '^(mpi|e2e)$' -LE '^full$'
}

mpich_stage() {
  step "build, MPICH (build/mpich)" build mpich gcc &&
    slots=$more_slots tests "MPI and end-to-end tests, MPICH" build/mpich -L '^(mpi|e2e)$' -LE '^full$' -E '^slurm\.'
}

drills_stage() {
  step "build of drills, gcc (build/dev)" build dev gcc &&
    GEOTRAIN_TESTS=$more slots=$more_slots tests "drills, gcc" build/dev -L '^full$' # they wait for an emulated WAN
}

fuzz_stage() {
  step "build, fuzzers (build/fuzz)" build fuzz clang && tests "fuzzers" build/fuzz -L '^fuzz$'
}

# ThreadSanitizer checks the C memory model, not that of one CPU, so it finds code that is correct only
# on x86.  clang, because gcc selects a function's copies for several CPUs before the sanitizer is
# initialised.
tsan_stage() {
  step "build, ThreadSanitizer (build/tsan)" build tsan clang thread_tests &&
    tests "threads, ThreadSanitizer" build/tsan -L '^threads$'
}

# A CPU with other instructions and an unsigned char.  QEMU does not reorder memory accesses as Arm
# CPUs can, and takes 10 to 50 times as long.  So one run of five ranks represents all end-to-end
# tests; planner, pipelines and simulator, which have no code for an instruction set, are skipped, and so are the
# two longest tests of networks, whose operators nn.test_passes runs.  wan.test_emulate compares times.
arm64_stage() {
  [ "$(uname -m)" = x86_64 ] || return 0
  step "arm64 libraries (build/sysroot-aarch64)" tests/aarch64/sysroot &&
    step "build, aarch64 (build/aarch64)" build aarch64 '' || return 1
  tests "unit and MPI tests, aarch64 under QEMU" build/aarch64 -LE '^(full|e2e)$' -E '^(wan\.test_emulate|nn\.test_(resnet|gpt)$|(pipe|plan|planner|sim)\.)'
  tests "a whole run, aarch64 under QEMU" build/aarch64 -R '^e2e\.train_basic$'
}

finish() {
  local failure
  for failure in ${failures[@]+"${failures[@]}"}; do echo "failed: $failure"; done
  if [ -n "${tree:-}" ] && [ "$(here)" != "$tree" ]; then
    echo "the tree has changed during this run: its results are not remembered"
    rm -f "$memory"
  fi
  [ "$known" -eq 0 ] || echo "$known of these results are remembered, the oldest from $oldest; tests/run.sh --again repeats them"
  clock
  echo "total ${SECONDS}s, ${cpu}s CPU"
  echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
  [ "$failed" -eq 0 ]
  exit
}

groups=(tests images)
# A download of 3 MB.  Only root can start a private Slurm; on a machine with another Slurm it is
# installed only with --slurm.
if [ "$slurm" = no ] && [ "$(id -u)" -eq 0 ] && slurm_of_its_own; then
  echo "this machine has a Slurm of its own: tests/run.sh --slurm installs what the tests of a private one need"
elif [ "$slurm" = yes ] || [ "$(id -u)" -eq 0 ]; then
  groups+=(slurm)
fi
if [ "$full" = yes ]; then groups+=(bench mpich); fi # PyTorch checks exports
if [ "$full" = yes ] && [ "$(id -u)" -eq 0 ]; then groups+=(netem); fi # one of the drills tests it
if [ "$full" = yes ] && [ "$(uname -m)" = x86_64 ]; then groups+=(aarch64); fi
step "packages" install_packages "${groups[@]}" || finish

mkdir -p build/checks
tree=$(here)
memory=build/checks/$tree
[ "$again" = no ] || rm -f "$memory"
touch "$memory"
find build/checks -type f -mtime +30 -delete

for name in "${stages[@]}"; do
  at=stage:$name
  if remembered "$at"; then
    recall "$at" "$(awk -F '\t' -v at="$at" '$2 == at { print $4 }' "$memory" | tail -n 1)"
    printf 'ok    remembered        all of %s\n' "$name"
    continue
  fi
  was_passed=$passed was_open=$((failed + skipped))
  "${name}_stage"
  # Skipped tests are tried again.
  [ $((failed + skipped)) -gt "$was_open" ] || printf '%s\t%s\t-\t%d\n' "$(date '+%F %T')" "$at" $((passed - was_passed)) >>"$memory"
done
finish
