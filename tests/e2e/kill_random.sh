# labels: full
# timeout: 1500
# processors: 1
# kill -9 of the launcher and all ranks at 50 random moments, resumed each time: at most one
# interval is lost, and the model at the end is that of an undisturbed run.  DRILL_SEED chooses the
# moments, DRILL_KILLS their number.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seed=${DRILL_SEED:-$((RANDOM * 32768 + RANDOM))}
kills=${DRILL_KILLS:-50}
RANDOM=$seed
echo "seed $seed"

# From the records: the step of the last round of east; the rounds that any region took, in order.
step_of() { sed -nE 's/.*"event":"checkpoint".*"step":([0-9]+).*/\1/p' "$1/east.jsonl" 2>/dev/null | sort -n | tail -n 1; }
taken_of() { cat "$1"/east.jsonl "$1"/west.jsonl 2>/dev/null | sed -nE 's/.*"event":"checkpoint","round":([0-9]+).*/\1/p' | sort -nu; }

# drill STRATEGY: kills the given number of times, then lets the run end.
drill() {
  local strategy=$1 n=0 steps=400000 at kept=0 taken=0 before after lost=0
  sed -e "s/strategy: sma/strategy: $strategy/" -e "s/{steps: 60}/{steps: $steps}/" -e 's/latency: 1 ms/latency: 0.1 ms/' job.yaml >"$strategy.yaml"
  rm -rf "$strategy"
  while [ "$n" -lt "$kills" ]; do
    start 4 "$strategy.yaml" --run-dir "$strategy" --resume=auto
    sleep "$(printf '%d.%03d' $((RANDOM % 3)) $((RANDOM % 1000)))"
    if ! kill -0 "$launcher" 2>/dev/null; then
      wait_end "$strategy" 1
      ended "$strategy: run $n, before it was killed" 137
      return
    fi
    # The order of the kills varies: the launcher first or last.
    if [ $((RANDOM % 2)) -eq 0 ]; then kill -KILL "$launcher" $(living); else kill -KILL $(living) "$launcher"; fi 2>/dev/null
    wait_end "$strategy" 10
    gone "$strategy: kill $n"
    n=$((n + 1))
    before=$kept
    kept=$(common "$strategy")
    [ "$kept" -lt "$before" ] && fail "$strategy: kill $n" "the newest whole round went from $before to $kept"
    # The round that was being written may be lost; the one before it is whole everywhere.  Numbers of
    # rounds that an earlier kill has lost are not used again.
    after=$(taken_of "$strategy" | awk -v kept="$kept" -v taken="$taken" '$1 > kept && $1 > taken' | wc -l)
    if [ "$after" -gt 1 ]; then
      echo "      kill $n: $after rounds were taken after $kept, the newest that is whole"
      lost=$((lost + 1))
    fi
    taken=$(taken_of "$strategy" | tail -n 1)
    taken=${taken:-0}
    at=$(step_of "$strategy")
  done
  ok "$strategy: killed $n times; $kept rounds, step ${at:-0}"
  # The run ends a little later; it is compared with an undisturbed run of that length.
  steps=$((${at:-0} + 40))
  completes "$strategy: last resume" 4 "$strategy.yaml" --run-dir "$strategy" --resume=auto --set "train.until.steps=$steps"
  LIMIT=$((300 + 4 * kills)) train "$strategy: undisturbed" 4 "$strategy.yaml" --run-dir "$strategy-whole" --set "train.until.steps=$steps"
  ended "$strategy: undisturbed" 0
  check "$strategy: model of the undisturbed run ($steps steps)" same "$(field "$strategy" params_sha256)" "$(field "$strategy-whole" params_sha256)"
  check "$strategy: samples of the undisturbed run" same "$(field "$strategy" samples)" "$(field "$strategy-whole" samples)"
  check "$strategy: at most one interval was lost each time" same "$lost" 0
}

# common RUN: the newest round of which both regions have a file.
common() {
  local round newest=0
  for round in $(rounds "$1"); do [ -e "$1/ckpt/$round/east.h5" ] && [ -e "$1/ckpt/$round/west.h5" ] && newest=$round; done
  echo "$newest"
}

job job.yaml
drill sma
kills=$((kills / 5))
drill ssgd
finish
