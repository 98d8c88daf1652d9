# labels: full
# timeout: 900
# processors: 2
# Two copies of a pipeline over two regions each, under both clocks, killed (kill -9 of one random
# rank) and stopped (SIGTERM of one) at random moments and resumed each time: with ssgd and sma the
# parameters at the end are those of a run that was not disturbed, clipped or not; where nobody waits
# they depend on when messages arrive, and the model has learnt.  DRILL_SEED chooses the moments,
# DRILL_KILLS their number, DRILL_STRATEGIES what keeps the copies equal.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"

seed=${DRILL_SEED:-$((RANDOM * 32768 + RANDOM))}
kills=${DRILL_KILLS:-4}
RANDOM=$seed
echo "seed $seed"
ranks=8

sed -i 's/name: cosine/name: constant/; s/eval_every: {steps: 6}/eval_every: {steps: 7}/; s/keep: 9/keep: 2/; s/latency: 5 ms/latency: 1 ms/; s/step: 24 ms/step: 6 ms/' two.yaml

# step_of RUN: the last step of which a copy has a checkpoint; copies that do not wait for each other
# are at different steps.
step_of() { cat "$1"/*.jsonl | sed -nE 's/.*"event":"checkpoint".*"step":([0-9]+).*/\1/p' | sort -n | tail -n 1; }

# drill NAME WORDS...: the run continues to its end 20 steps after the last disturbance, at step 60 or
# later: the loss is below 2 from about step 40 on.
drill() {
  local name=$1 dir i pid victim steps
  dir=$(tr -c 'a-z0-9\n' - <<<"$name")
  shift
  for i in $(seq "$kills"); do
    start $ranks two.yaml --run-dir "$dir" --resume=auto --set train.until.steps=100000 "$@"
    [ "$i" -gt 1 ] || wait_round "$dir" 1
    sleep "$(printf '%d.%03d' $((RANDOM % 2)) $((RANDOM % 1000)))"
    victim=$((RANDOM % ranks)) pid=
    for _ in $(seq 100); do pid=$(rank_pid $victim) && [ -n "$pid" ] && break; sleep 0.05; done
    if ! kill -0 "$launcher" 2>/dev/null || [ -z "$pid" ]; then
      wait_end "$name" 60
      gone "$name"
      fail "$name: it runs until it is disturbed" "exit $code: $(tail -n 3 err | tr '\n' ' ')"
      return
    fi
    if [ $((i % 2)) -eq 1 ]; then
      kill -KILL "$pid" 2>/dev/null
      wait_end "$name" 40
      gone "$name"
      ended "$name: disturbance $i, kill of rank $victim" 137
    else
      wait_file err # the map of ranks: signals are taken from then on
      kill -TERM "$pid" 2>/dev/null
      wait_end "$name" 40
      gone "$name"
      ended "$name: disturbance $i, stop of rank $victim" 75 '--resume'
    fi
  done
  steps=$(($(step_of "$dir") + 20))
  [ "$steps" -ge 60 ] || steps=60
  LIMIT=200 train "$name: the end" $ranks two.yaml --run-dir "$dir" --resume=auto --set train.until.steps=$steps "$@"
  ended "$name: the end" 0 'continues from round'
  check "$name: the samples" same "$(field "$dir" samples)" $((2 * 24 * steps))
  if [ "$waits" = no ]; then
    check "$name: it has learnt" awk "BEGIN { exit !($(field "$dir" test_loss) < 2) }"
    return
  fi
  LIMIT=200 train "$name: undisturbed" $ranks two.yaml --run-dir "$dir-judge" --clock virtual --set train.until.steps=$steps "$@"
  ended "$name: undisturbed, $steps steps" 0
  check "$name: the parameters" same "$(weights "$dir")" "$(weights "$dir-judge")"
  check "$name: the test loss" same "$(field "$dir" test_loss)" "$(field "$dir-judge" test_loss)"
}
for strategy in ${DRILL_STRATEGIES:-ssgd sma asgd-ga ama}; do
  waits=yes
  case $strategy in asgd* | ama) waits=no ;; esac
  drill "$strategy, virtual clock" --clock virtual --set pipeline.schedule=zb-v --set sync.strategy="$strategy"
  drill "$strategy, real clock" --set pipeline.schedule=zb-v --set sync.strategy="$strategy"
done
waits=yes
case " ${DRILL_STRATEGIES:-ssgd} " in
*' ssgd '*) drill "clipped, real clock" --set pipeline.schedule=zb-v --set sync.strategy=ssgd --set train.clip=0.2 ;;
esac
finish
