# labels: full
# timeout: 1500
# kill -9 of the launcher and all ranks at 50 random moments, resumed each time: at most one interval is lost, and the model at the end is that of an
# undisturbed run.  DRILL_SEED chooses the moments, DRILL_KILLS their number.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seed=${DRILL_SEED:-$((RANDOM * 32768 + RANDOM))}
kills=${DRILL_KILLS:-50}
RANDOM=$seed
echo "seed $seed"

# The step that east has reached, by its record; 0 when it has none yet.
step_of() { sed -nE 's/.*"event":"checkpoint".*"step":([0-9]+).*/\1/p' "$1/east.jsonl" 2>/dev/null | sort -n | tail -n 1; }

# drill STRATEGY: kills until there were enough, then lets it end.
drill() {
  local strategy=$1 n=0 empty=0 steps=40000 limit at
  sed -e "s/strategy: sma/strategy: $strategy/" -e "s/{steps: 60}/{steps: $steps}/" -e 's/latency: 1 ms/latency: 0.1 ms/' job.yaml >"$strategy.yaml"
  rm -rf "$strategy"
  local kept=0 before lost=0
  while [ "$n" -lt "$kills" ]; do
    start 4 "$strategy.yaml" --run-dir "$strategy" --resume=auto
    sleep "$(printf '%d.%03d' $((RANDOM % 3)) $((RANDOM % 1000)))"
    if ! kill -0 "$launcher" 2>/dev/null; then
      wait_end "$strategy" 1
      ended "$strategy: run $n, before it was killed" 137
      return
    fi
    # The order in which they die differs: the launcher first or last.
    if [ $((RANDOM % 2)) -eq 0 ]; then kill -KILL "$launcher" $(living); else kill -KILL $(living) "$launcher"; fi 2>/dev/null
    wait_end "$strategy" 10
    gone "$strategy: kill $n"
    n=$((n + 1))
    before=$kept
    kept=$(common "$strategy")
    [ "${kept:-0}" -lt "$before" ] && fail "$strategy: kill $n" "the newest whole round went from $before to ${kept:-none}"
    at=$(step_of "$strategy")
  done
  ok "$strategy: killed $n times; $kept rounds, step ${at:-0}"
  # It ends a little further on: the undisturbed run of that length is the judge.
  steps=$((${at:-0} + 40))
  train "$strategy: last resume" 4 "$strategy.yaml" --run-dir "$strategy" --resume=auto --set "train.until.steps=$steps"
  ended "$strategy: last resume" 0
  LIMIT=300 train "$strategy: undisturbed" 4 "$strategy.yaml" --run-dir "$strategy-whole" --set "train.until.steps=$steps"
  ended "$strategy: undisturbed" 0
  check "$strategy: model of the undisturbed run ($steps steps)" same "$(field "$strategy" params_sha256)" "$(field "$strategy-whole" params_sha256)"
  check "$strategy: samples of the undisturbed run" same "$(field "$strategy" samples)" "$(field "$strategy-whole" samples)"
  # Every resume went on within one interval of what had been recorded.
  check "$strategy: at most one interval was lost each time" lost_little "$strategy"
}

# common RUN: the newest round of which both regions have a file.
common() {
  local round newest=0
  for round in $(rounds "$1"); do [ -e "$1/ckpt/$round/east.h5" ] && [ -e "$1/ckpt/$round/west.h5" ] && newest=$round; done
  echo "$newest"
}

# After each start the first checkpoint of a region is taken at most two intervals (one that was lost, one that it trains) beyond the last one of the start before.
lost_little() {
  awk -F'"step":' '/"event":"checkpoint"/ { split($2, a, ","); s = a[1] + 0; if (s + 20 < last) { print "      went back from step " last " to " s; bad = 1 } last = s }
    END { exit bad }' "$1/east.jsonl"
}

job job.yaml
drill sma
kills=$((kills / 5))
drill ssgd
finish
