#!/usr/bin/env bash
# Runs the checks.  Without options: those that every change must pass, in under ten minutes on two
# cores.  --full adds a build and tests with the second compiler, the sanitizers over everything,
# the fault drills, the fuzzers and, on x86-64, a build for arm64 under QEMU.  Build folders are
# kept, so a second run only rebuilds changes.  When run as root, it installs Slurm's daemons for
# the tests on a private Slurm, if the machine has no Slurm of its own; --slurm: even then.
set -uo pipefail

GEOTRAIN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$GEOTRAIN_ROOT"
. jobs/install

full=no slurm=no
for word; do
  case $word in
    --full) full=yes ;;
    --slurm) slurm=yes ;;
    *)
      echo "usage: tests/run.sh [--full] [--slurm]" >&2
      exit 2
      ;;
  esac
done
[ "$full" = no ] || export GEOTRAIN_TESTS=full # more cases in the tests (tests/cases.h)

cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # else nproc counts OpenMP's threads
slots=$((cores + (cores + 1) / 2)) # of CTest: what runs ranks mostly waits
export LC_ALL=C
target= # of a build: all
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # an environment that pins OpenBLAS's kernels tests others than users run
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# shellcheck disable=SC2046 # a word a line
export $(grep '^[A-Z]' jobs/mpi.env)
passed=0 failed=0 skipped=0 failures=()

# stage NAME COMMAND...: runs it, prints its time and its output if it fails, counts it as one check.
stage() {
  local name=$1 start=$SECONDS log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok    %4ds  %s\n' $((SECONDS - start)) "$name"
    rm -f "$log"
    return 0
  fi
  failed=$((failed + 1))
  failures+=("$name")
  tail -n 120 "$log" | cut -c 1-400
  printf 'FAIL  %4ds  %s\n' $((SECONDS - start)) "$name"
  rm -f "$log"
  return 1
}

# tests NAME BUILD CTEST-WORDS...: runs CTest and counts each of its tests.
tests() {
  local name=$1 build=$2 start=$SECONDS log total lost left
  shift 2
  log=$(mktemp)
  ctest --test-dir "$build" -j "$slots" --output-on-failure --no-tests=error "$@" >"$log" 2>&1
  local code=$?
  read -r lost total < <(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log") || true
  if [ -z "${total:-}" ]; then # CTest itself failed: no test found, or no build
    total=1 lost=1
  fi
  left=$(grep -c '\*\*\*Skipped' "$log")
  passed=$((passed + total - lost - left)) failed=$((failed + lost)) skipped=$((skipped + left))
  if [ "$code" -ne 0 ]; then
    tail -n 200 "$log"
    while read -r test; do failures+=("$name: $test"); done < <(sed -nE '/^The following tests FAILED/,$s/^[[:space:]]*[0-9]+ - ([^ ]+) \(.*/\1/p' "$log")
    [ "$lost" -gt 0 ] || { failed=$((failed + 1)) && failures+=("$name: ctest ended with $code"); }
  fi
  printf '%-5s %4ds  %s: %d of %d tests%s\n' "$([ "$code" -eq 0 ] && echo ok || echo FAIL)" $((SECONDS - start)) "$name" $((total - lost - left)) "$total" \
    "$([ "$left" -eq 0 ] || echo ", $left skipped")"
  sed -nE '/^The following tests did not run/,/^$/s/^[[:space:]]*[0-9]+ - ([^ ]+) \(Skipped\)/skip         \1/p' "$log"
  rm -f "$log"
}

build() { # preset [cmake words]; $target: not all of it
  cmake --preset "$@" && cmake --build "build/$1" -j "$cores" --target "${target:-all}"
}

sources() { find src include tests bench -name '*.[ch]' | LC_ALL=C sort; }

format() {
  sources | xargs -P "$cores" -n 20 clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):.*clang-format-violations.*/not formatted: clang-format -i \1/p' | uniq
  [ "${PIPESTATUS[1]}" -eq 0 ]
}

# The commands of build/dev without options that only gcc has.
clang_commands() {
  mkdir -p build/dev/clang
  sed 's/ -fno-predictive-commoning//' build/dev/compile_commands.json >build/dev/clang/compile_commands.json
}

# One file per process, because the analyzer of clang 14 mistakes va_lists from the second file on.
# Large files come first, so that the last of them does not run alone at the end.  A stamp for each
# file skips what has not changed; a changed header or rule renews all.  Most of the time depends on
# the analyzer's depth: the quick run follows 10,000 nodes per function (a tenth of the time), the
# full run has no limit.
tidy() {
  local stamps=build/dev/tidy stale=() file stamp newest depth=(-extra-arg=-Xclang -extra-arg=-analyzer-config -extra-arg=-Xclang -extra-arg=max-nodes=10000)
  [ "$full" = no ] || { depth=() && stamps=build/dev/tidy-full; }
  mkdir -p "$stamps"
  clang_commands
  newest=$(find include src .clang-tidy -name '*.h' -o -name .clang-tidy | xargs -r ls -t | head -n 1)
  for file in $(find src -name '*.c' -printf '%s %p\n' | sort -rn | cut -d ' ' -f 2); do
    grep -qF "/$file\"" build/dev/clang/compile_commands.json || continue # of another version of oneDNN
    stamp=$stamps/${file//\//.}
    if [ ! "$stamp" -nt "$file" ] || [ ! "$stamp" -nt "$newest" ]; then stale+=("$file"); fi
  done
  [ ${#stale[@]} -eq 0 ] && return 0
  printf '%s\n' "${stale[@]}" | stamps=$stamps xargs -P "$cores" -n 1 bash -c \
    'file=${*: -1}; clang-tidy --quiet -p build/dev/clang "$@" || exit 1; touch "$stamps/${file//\//.}"' tidy "${depth[@]}"
}

# The second compiler checks every file with the commands of build/dev, for its warnings; --full
# also builds with it.  The stamp of an entry holds its command: an entry is stale if its command
# has changed, or if its file or any header is newer.
clang_reads() {
  local stamps=build/dev/clang stale=() entries=0 object command stamp newest
  clang_commands
  newest=$(find include src tests bench -name '*.h' -print0 | xargs -0 -r ls -t | head -n 1)
  while read -r object command; do
    entries=$((entries + 1)) stamp=$stamps/${object//\//.}
    if [ ! "$stamp" -nt "${command##* }" ] || [ ! "$stamp" -nt "$newest" ] || [ "$(<"$stamp")" != "$command" ]; then
      stale+=("$stamp" "$command")
    fi
  done < <(sed -nE 's/^ *"command": "(.*)",?$/\1/p' build/dev/clang/compile_commands.json |
    sed -E 's/\\(.)/\1/g; s/^([^ -][^ ]* )+/clang /; s/(.*) -o ([^ ]+) -c (.*)/\2 \1 -fsyntax-only \3/')
  [ "$entries" -gt 0 ] || { echo "build/dev/compile_commands.json has no commands" && return 1; }
  [ ${#stale[@]} -eq 0 ] && return 0
  printf '%s\0' "${stale[@]}" | xargs -0 -P "$cores" -n 2 bash -c 'eval "$2" && printf "%s\n" "$2" >"$1"' clang_reads
}

finish() {
  local failure
  for failure in ${failures[@]+"${failures[@]}"}; do echo "failed: $failure"; done
  echo "total ${SECONDS}s"
  echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
  [ "$failed" -eq 0 ]
  exit
}

groups=(tests images)
# 3 MB to download.  Only root can start a private Slurm, and it is not installed beside another
# Slurm without --slurm.
if [ "$slurm" = no ] && [ "$(id -u)" -eq 0 ] && slurm_of_its_own; then
  echo "this machine has a Slurm of its own: tests/run.sh --slurm installs what the tests of a private one need"
elif [ "$slurm" = yes ] || [ "$(id -u)" -eq 0 ]; then
  groups+=(slurm)
fi
if [ "$full" = yes ]; then groups+=(bench); fi # PyTorch judges exports
if [ "$full" = yes ] && [ "$(id -u)" -eq 0 ]; then groups+=(netem); fi # its test is one of the drills
if [ "$full" = yes ] && [ "$(uname -m)" = x86_64 ]; then groups+=(aarch64); fi
stage "packages" install_packages "${groups[@]}" || finish

if stage "build, gcc (build/dev)" build dev -DCMAKE_C_COMPILER=gcc; then
  stage "clang-tidy" tidy
  stage "clang's warnings" clang_reads
  tests "tests, gcc" build/dev -LE full
fi
stage "clang-format" format

[ "$full" = yes ] || target=unit_tests
if stage "build, sanitizers (build/asan)" build asan -DCMAKE_C_COMPILER=gcc; then
  # The quick run leaves out what takes 40 s and more with sanitizers: others run the same kernels
  # and searches.  Kernels run with the CPU's own instruction set only.
  long='nn\.test_resnet|nn\.test_gpt|planner\.test_plan|pipe\.test_adapt|pipe\.test_search'
  heavy=(-LE "mpi|full|e2e|isa" -E "^($long)\$")
  [ "$full" = no ] || heavy=(-LE "mpi|full|e2e")
  tests "unit tests, sanitizers" build/asan "${heavy[@]}"
fi

if [ "$full" = yes ]; then
  if stage "build, clang (build/dev-clang)" build dev-clang -DCMAKE_C_COMPILER=clang; then
    tests "tests, clang" build/dev-clang -LE full
  fi
  if [ -d build/asan ]; then tests "MPI and end-to-end tests, sanitizers" build/asan -L "mpi|e2e" -LE full; fi
  if [ -d build/dev ]; then tests "drills, gcc" build/dev -L full; fi
  if stage "build, fuzzers (build/fuzz)" build fuzz -DCMAKE_C_COMPILER=clang; then
    tests "fuzzers" build/fuzz -L fuzz
  fi
  # ThreadSanitizer checks the C memory model, not that of one CPU, so it finds orders that only x86
  # allows.  clang, because gcc selects a function's copies for several CPUs before the sanitizer is
  # initialised.
  target=thread_tests
  if stage "build, ThreadSanitizer (build/tsan)" build tsan -DCMAKE_C_COMPILER=clang; then
    tests "threads, ThreadSanitizer" build/tsan -L threads
  fi
  target=
  # A CPU with other instructions and an unsigned char; QEMU does not reorder memory accesses as an
  # Arm CPU may. wan.test_emulate compares times, and one whole run of five ranks stands for all
  # end-to-end tests, because QEMU takes 10 to 50 times as long.
  if [ "$(uname -m)" = x86_64 ] && stage "arm64 libraries (build/sysroot-aarch64)" tests/aarch64/sysroot &&
    stage "build, aarch64 (build/aarch64)" build aarch64; then
    tests "unit and MPI tests, aarch64 under QEMU" build/aarch64 -LE "full|e2e" -E '^wan\.test_emulate'
    tests "a whole run, aarch64 under QEMU" build/aarch64 -R '^e2e\.train_basic$'
  fi
fi
finish
