# Shared by the end-to-end scripts: a small job, runs whose output and exit code are kept, one line
# per check, and an end that checks that no rank survives.  A script ends with `finish`.
set -uo pipefail
: "${GEOTRAIN:?the program}" "${MPIRUN:?its launcher}"
export GEOTRAIN_DRILL="$$-$RANDOM$RANDOM" # every rank of this script carries it in its environment
program=$(readlink -f "$GEOTRAIN")
export LC_ALL=C
[ "${GEOTRAIN_TESTS:-quick}" = full ] && full=yes || full=no # of tests/run.sh --full
checks=0 failures=0 skips=0 code=0 launcher= finished=

# pause SECONDS: as sleep, without a process.
exec {never}<> <(:) # a pipe into which nothing is written
pause() { read -rt "$1" -u "$never" || true; }

ok() {
  checks=$((checks + 1))
  printf 'ok    %4ds  %s\n' "$SECONDS" "$1"
}

# fail NAME [DETAIL]
fail() {
  failures=$((failures + 1))
  printf 'FAIL  %4ds  %s: %s\n' "$SECONDS" "$1" "${2:-}"
}

# check NAME COMMAND...: ok if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then ok "$name"; else fail "$name" "$*"; fi
}

same() { [ "$1" = "$2" ] || { echo "      found '$1', needed '$2'" && false; }; }

skip() {
  skips=$((skips + 1))
  printf 'skip  %4ds  %s: %s\n' "$SECONDS" "$1" "$2"
}

# ---- ranks ----------------------------------------------------------------------------------------------------------------------

# Process ids of this script's ranks that are alive (without zombies).
living() {
  local p found=()
  for p in /proc/[0-9]*; do [ "$p/exe" -ef "$program" ] && found+=("$p/environ"); done
  [ ${#found[@]} -eq 0 ] && return
  for p in $(grep -slzFx "GEOTRAIN_DRILL=$GEOTRAIN_DRILL" "${found[@]}"); do
    p=${p#/proc/}
    echo "${p%/environ}"
  done
}

# rank_pid RANK: its process id.
rank_pid() {
  local p
  for p in $(living); do
    grep -qszFx -e "OMPI_COMM_WORLD_RANK=$1" -e "PMI_RANK=$1" "/proc/$p/environ" && echo "$p" && return
  done
}

none_living() {
  local i
  for i in $(seq 50); do
    [ -z "$(living)" ] && return 0
    pause 0.1
  done
  return 1
}

# gone NAME: checks that no rank survives the run; kills those that do, so that they do not disturb
# other tests.
gone() {
  none_living && return 0
  fail "$1: no process left" "$(living | tr '\n' ' ')"
  end_ranks
}

end_ranks() {
  local p
  for p in $(living); do kill -KILL "$p" 2>/dev/null; done
}

at_exit() {
  [ -n "$launcher" ] && kill -KILL "$launcher" 2>/dev/null
  end_ranks
  [ -n "$finished" ] || { echo 'FAIL  the script does not end with `finish`' && exit 1; }
}
trap at_exit EXIT

# ---- runs -----------------------------------------------------------------------------------------------------------------------

# launch WORDS...: starts the launcher with these arguments in the background; its output goes to
# out and err.  They are emptied first, because a wait might otherwise find the output of the
# previous run.
launch() {
  : >out
  : >err
  $MPIRUN "$@" >out 2>err </dev/null &
  launcher=$!
}

by_mpich() { [[ $($MPIRUN --version 2>&1) == *HYDRA* ]]; } # true if the launcher is MPICH's

# reap PID: waits for this launcher; its exit code is in $code.  If a signal kills a rank, the launcher
# of MPICH ends with the number of the signal.
reap() {
  { wait "$1"; } 2>/dev/null
  code=$?
  if [ "$code" -eq 9 ] && by_mpich; then code=137; fi
}

# wait_end NAME SECONDS: waits for the launcher, at most that long; its exit code is in $code.  Like all
# waits here it counts pauses: on a machine with other work these take longer, as the ranks do.
wait_end() {
  local left=$(($2 * 20))
  { while kill -0 "$launcher" && [ "$left" -gt 0 ]; do pause 0.05 && left=$((left - 1)); done; } 2>/dev/null
  if kill -0 "$launcher" 2>/dev/null; then
    fail "$1: ends" "still there after $2 s: $(tail -n 5 err | tr '\n' ' ')"
    kill -KILL "$launcher" 2>/dev/null
    end_ranks
  fi
  reap "$launcher"
  launcher=
}

# run NAME WORDS...: one whole run of the launcher with these arguments.
run() {
  local name=$1
  shift
  launch "$@"
  wait_end "$name" "${LIMIT:-60}"
  gone "$name"
}

# Kernels by the fixed rule, so that runs repeat to the bit and no script except choices.sh spends
# time on measuring.
choices=(--set train.choices=rule)

# train NAME RANKS WORDS...: geotrain train with these arguments.
train() {
  local name=$1 ranks=$2
  shift 2
  run "$name" -n "$ranks" "$GEOTRAIN" train "$@" "${choices[@]}"
}

# call_mpirun FOLDER: puts the launcher there, as mpirun, the name that pages and users call.
call_mpirun() {
  local words
  read -ra words <<<"$MPIRUN"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "${words[0]}") ${words[*]:1}" >"$1/mpirun"
  chmod +x "$1/mpirun"
}

# completes NAME RANKS WORDS...: as train; the run must end with 0.
completes() {
  train "$@"
  ended "$1" 0
}

# plain WORDS...: a command that needs no launcher, with these arguments.
plain() {
  "$GEOTRAIN" "$@" >out 2>err </dev/null
  code=$?
}

start() {
  local ranks=$1
  shift
  launch -n "$ranks" "$GEOTRAIN" train "$@" "${choices[@]}"
}

# simulates NAME RUN APART JOB WORDS...: a simulation gives the times, messages and bytes of the run;
# the two ends are at most APART seconds apart.  Its output goes to sim.out, its results to RUN-sim.
simulates() {
  local name=$1 run=$2 apart=$3 said
  shift 3
  "$GEOTRAIN" simulate "$@" --out "$run-sim" >sim.out 2>&1 || { fail "$name: simulate" "$(tail -n 1 sim.out)" && return; }
  said=$(/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/simulate_compare.py" "$run" "$run-sim" "$apart") && ok "$name: simulate: $said" || fail "$name: simulate" "$said"
}

# joined FILE: its paragraphs, wrapped at 80 columns, in one line each.
joined() {
  awk '/^ +[^ ]/ && NR > 1 { sub(/^ +/, " "); printf "%s", $0; next }
       { if (NR > 1) print ""; printf "%s", $0 }
       END { print "" }' "$1"
}

# ended NAME CODE WORD...: the last run ended with this code and printed these words (extended
# regular expressions), and there is no fault of geotrain.
ended() {
  local name=$1 want=$2 word text
  shift 2
  text=$(cat out err; joined out)
  # after a signal MPICH's launcher ends with the ranks' code or with 0
  if [ "$code" -eq 0 ] && [ "$want" -eq 75 ] && by_mpich && grep -q '^geotrain: stopped by a signal' err; then code=75; fi
  if [ "$code" -ne "$want" ]; then
    fail "$name: exit $want" "exit $code; $(grep -v '^ *$' err | tail -n 8 | cut -c 1-300)"
    return
  fi
  for word in "$@"; do
    grep -qE -- "$word" <<<"$text" || { fail "$name: says '$word'" "$(grep geotrain: err | tail -n 8 | cut -c 1-400)" && return; }
  done
  if grep -qE 'Segmentation|Assertion|AddressSanitizer|runtime error|broken invariant' <<<"$text"; then
    fail "$name" "$(grep -E 'Segmentation|Assertion|AddressSanitizer|runtime error|broken invariant' err | head -n 3)"
    return
  fi
  ok "$name: exit $want$([ $# -gt 0 ] && printf ', says %s' "$*")"
}

# refused NAME CODE WORDS ARGUMENTS...: train on 5 ranks refuses job.yaml with these words.
refused() {
  local name=$1 want=$2 words=$3
  shift 3
  train "$name" 5 job.yaml "$@"
  ended "$name" "$want" "$words"
}

# checked NAME CODE WORDS ARGUMENTS...: `info --check` refuses job.yaml with these words; with --full,
# train does, too.
checked() {
  local name=$1 want=$2 words=$3
  shift 3
  plain info job.yaml --check "$@"
  ended "$name" "$want" "$words"
  [ $full = no ] || refused "$name, train" "$want" "$words" --run-dir bad "$@"
}

# ---- what a run leaves ------------------------------------------------------------------------------------------------------------

# field RUN KEY: the first value of a key in summary.json.
field() { sed -nE 's/^ *"'"$2"'": "?([^",]*)"?,?$/\1/p' "$1/summary.json" | head -n 1; }

rounds() { find "$1/ckpt" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' -printf '%f\n' 2>/dev/null | sort -n; }

newest_round() { rounds "$1" | tail -n 1; }

# attribute FILE NAME: of a checkpoint or a final model.
attribute() { h5dump -a "$2" "$1" | sed -nE 's/^ *\(0\): "?([^"]*)"?$/\1/p'; }

# wait_round RUN ROUND: waits until both regions have a file of a round that is at least as new.
wait_round() {
  local i newest
  for i in $(seq 1200); do
    newest=$(newest_round "$1")
    if [ -n "$newest" ] && [ "$newest" -ge "$2" ] && [ -e "$1/ckpt/$newest/east.h5" ] && [ -e "$1/ckpt/$newest/west.h5" ]; then return 0; fi
    kill -0 "$launcher" 2>/dev/null || break
    pause 0.05
  done
  fail "$1: round $2" "it did not come: $(tail -n 3 err)"
  return 1
}

# wait_file FILE: waits until the file exists.
wait_file() {
  local i
  for i in $(seq 1200); do
    [ -s "$1" ] && return 0
    pause 0.05
  done
  fail "$1" "it did not come: $(tail -n 3 err)"
}

# data FILE: a small data set that lenet5 can learn.  With few test samples: to score 1000 of them in
# each region takes as long as 60 steps.  Scripts that train on few or none may set $data_train.
data() { "$GEOTRAIN" data synth "$1" --train "${data_train:-4000}" --test 100 >/dev/null || fail "data synth $1"; }

# words FILE N: a text of N of five words, the same each time.
words() {
  awk -v n="$2" 'BEGIN {
    srand(1); k = split("apple banana cherry orange quince", words, " ")
    for (i = 0; i < n; i++) printf "%s%s", words[1 + int(rand() * k)], i % 9 == 8 ? "\n" : " "
  }' >"$1"
}

# job FILE: two regions of two ranks, synchronous throughout, so that its bits do not depend on
# timing; a checkpoint round every 10 steps.
job() {
  data data.h5
  cat >"$1" <<'YAML'
name: drill
seed: 3
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [1, 1]}}
train: {until: {steps: 60}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.02, momentum: 0.9}, eval_every: {epochs: 0}}
regions:
  - {name: east, ranks: 2}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: sma, period: 4, topology: mesh, weights: samples}
wan:
  emulate: true
  links: [{between: [east, west], bandwidth: 1 Gbit/s, latency: 1 ms}]
checkpoint: {every: {steps: 10}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
YAML
}

# A script without any check counts as skipped.
finish() {
  finished=yes
  echo "$failures failed"
  if [ "$((checks + failures))" -eq 0 ] && [ "$skips" -gt 0 ]; then exit 77; fi
  [ "$failures" -eq 0 ]
  exit
}
