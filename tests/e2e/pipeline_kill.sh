# labels: full
# timeout: 900
# processors: 2
# A pipeline over two regions that is killed (kill -9 of one random rank) and stopped (SIGTERM of
# one) at random moments, and resumed each time: the parameters and the loss at the end are those of
# one worker that was not disturbed.  Under the virtual clock the same run twice is the same to the
# bit, and so are the parameters of one that was killed.  DRILL_SEED chooses the moments,
# DRILL_KILLS the number of kills and of stops.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

seed=${DRILL_SEED:-$((RANDOM * 32768 + RANDOM))}
kills=${DRILL_KILLS:-6}
RANDOM=$seed
echo "seed $seed"
ranks=6 more=40 # more: steps after the last disturbance

# A rate that does not depend on the end, which is chosen when the run has been disturbed.
for file in judge four; do
  sed -i 's/name: cosine/name: constant/; s/batch: 24/batch: 24\n  clip: 0.5/; s/eval_every: {steps: 6}/eval_every: {steps: 7}/; s/keep: 9/keep: 2/; s/latency: 5 ms/latency: 1 ms/; s/step: 24 ms/step: 6 ms/' $file.yaml
done

# same_end NAME RUN STEPS: it has ended as an undisturbed worker with the whole model does.
same_end() {
  LIMIT=200 completes "$1: the judge" 2 judge.yaml --run-dir "$2-judge" --set pipeline.schedule=gpipe --set train.until.steps="$3"
  check "$1: the parameters" same "$(weights "$2")" "$(weights "$2-judge")"
  check "$1: the test loss" same "$(field "$2" test_loss)" "$(field "$2-judge" test_loss)"
  check "$1: the samples" same "$(field "$2" samples)" "$(field "$2-judge" samples)"
}

# common RUN: the newest round of which both regions have a file.
common() {
  local round newest=0
  for round in $(rounds "$1"); do [ -e "$1/ckpt/$round/east.h5" ] && [ -e "$1/ckpt/$round/west.h5" ] && newest=$round; done
  echo "$newest"
}

# step_of RUN: the step of its newest round.
step_of() { sed -nE 's/.*"event":"checkpoint".*"step":([0-9]+).*/\1/p' "$1/east.jsonl" | tail -n 1; }

# drill NAME RUN WORDS...: kills and stops in a random order; the run then continues to its end.
drill() {
  local name=$1 run=$2 dead=0 stopped=0 victim pid before kept=0 steps
  shift 2
  while [ "$dead" -lt "$kills" ] || [ "$stopped" -lt "$kills" ]; do
    start $ranks four.yaml --run-dir "$run" --resume=auto --set train.until.steps=100000 "$@"
    [ $((dead + stopped)) -gt 0 ] || wait_round "$run" 1
    sleep "$(printf '%d.%03d' $((1 + RANDOM % 3)) $((RANDOM % 1000)))"
    victim=$((RANDOM % ranks)) pid=
    for _ in $(seq 100); do pid=$(rank_pid $victim) && [ -n "$pid" ] && break; sleep 0.05; done
    if ! kill -0 "$launcher" 2>/dev/null || [ -z "$pid" ]; then
      wait_end "$name" 60
      gone "$name"
      fail "$name: it runs until it is disturbed" "exit $code after $dead kills and $stopped stops: $(tail -n 3 err | tr '\n' ' ')"
      return
    fi
    if [ "$stopped" -ge "$kills" ] || { [ "$dead" -lt "$kills" ] && [ $((RANDOM % 2)) -eq 0 ]; }; then
      kill -KILL "$pid" 2>/dev/null
      dead=$((dead + 1))
      wait_end "$name" 40
      gone "$name"
      ended "$name: kill $dead, rank $victim" 137
    else
      wait_file err # the map of ranks: signals are taken from then on
      kill -TERM "$pid" 2>/dev/null
      stopped=$((stopped + 1))
      wait_end "$name" 40
      gone "$name"
      ended "$name: stop $stopped, rank $victim" 75 '--resume'
    fi
    before=$kept
    kept=$(common "$run")
    [ "$kept" -ge "$before" ] || fail "$name: rounds" "the newest whole round went from $before to $kept"
  done
  ok "$name: killed $dead times, stopped $stopped times; round $kept, step $(step_of "$run")"
  check "$name: it has made steps" test "$(step_of "$run")" -gt 0
  steps=$(($(step_of "$run") + more))
  LIMIT=200 train "$name: the end" $ranks four.yaml --run-dir "$run" --resume=auto --set train.until.steps=$steps "$@"
  ended "$name: the end" 0 'continues from round'
  same_end "$name" "$run" $steps
}
drill "real clock" real --set pipeline.schedule=zb-h1
kills=$(((kills + 1) / 2)) more=10
GEOTRAIN_LOCAL_PLANE=messages drill "without shared memory" messages --set pipeline.schedule=auto

# ---- virtual clock -------------------------------------------------------------------------------

# Records and summary, but for wall times.
but_wall() { cat "$1/east.jsonl" "$1/west.jsonl" "$1/summary.json" | sed -E 's/"wall_s": ?[^,}]*//' | sha256sum; }
for run in once twice; do
  completes "virtual clock, $run" $ranks four.yaml --run-dir $run --clock virtual --set pipeline.schedule=zb-h1 --set train.until.steps=60
done
same_end "virtual clock" once 60
check "virtual clock: the same records and summary twice" same "$(but_wall once)" "$(but_wall twice)"
check "virtual clock: the same final model twice" same "$(weights once)" "$(weights twice)"
drill "virtual clock, disturbed" virtual --clock virtual --set pipeline.schedule=zb-h1
finish
