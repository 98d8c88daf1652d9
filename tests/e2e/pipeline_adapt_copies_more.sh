# labels: full
# timeout: 900
# processors: 2
# pipeline.adapt with several copies: both change, at steps of their own, with ssgd and sma, under
# both clocks, clipped, and where nobody waits; killed before, between and after the changes, and
# resumed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmicros.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadaptcopies.sh"

# The first copy's link falls later.
for job in both both-micros; do
  sed -i 's/between: \[east, west\], bandwidth: 20 Mbit\/s/between: [east, west], trace: fall.csv/; s/until: {steps: 40}/until: {steps: 60}/; s/eval_every: {steps: 15}/eval_every: {steps: 25}/; s/every: {steps: 10}/every: {steps: 20}/' $job.yaml
done

# With true the parameters are those of the run without it.
for strategy in ssgd sma; do
  with=(--set sync.strategy=$strategy)
  completes "$strategy, kept" 8 both.yaml --run-dir $strategy-kept --clock virtual --set pipeline.adapt=false "${with[@]}"
  completes "$strategy" 8 both.yaml --run-dir $strategy --clock virtual "${with[@]}"
  check "$strategy: the first copy changes" test "$(changes $strategy east)" != ""
  check "$strategy: the second copy changes" test "$(changes $strategy london)" != ""
  check "$strategy: not as the first" test "$(changes $strategy london)" != "$(changes $strategy east)"
  judged_copies "$strategy" $strategy both.yaml sync.strategy=$strategy
  check "$strategy: as without it" same "$(weights $strategy)" "$(weights $strategy-kept)"
  check "$strategy: it is faster" faster $strategy $strategy-kept 1.02
  simulates "$strategy" $strategy 1e-4 both.yaml "${with[@]}"
done
completes "clipped" 8 both.yaml --run-dir clipped --clock virtual --set train.clip=0.2
judged_copies "clipped" clipped both.yaml train.clip=0.2
check "clipped: it matters" test "$(weights clipped)" != "$(weights ssgd)"

# Where nobody waits parameters depend on when messages arrive; the times are those of the simulation.
for strategy in asgd asgd-ga ama; do
  for job in both both-micros; do
    name="$strategy, $job"
    completes "$name" 8 $job.yaml --run-dir $strategy-$job --clock virtual --set sync.strategy=$strategy
    check "$name: a copy changes" test "$(changes $strategy-$job east)$(changes $strategy-$job london)" != ""
    check "$name: the first copy changes alike" same "$(changes $strategy-$job east)" "$(changes $strategy-$job west)"
    check "$name: the second copy changes alike" same "$(changes $strategy-$job london)" "$(changes $strategy-$job paris)"
    simulates "$name" $strategy-$job 1e-4 $job.yaml --set sync.strategy=$strategy
  done
done

# Other numbers of micro-batches, each copy its own, clipped and not.
for strategy in ssgd sma; do
  for clip in 0 0.2; do
    name="$strategy, numbers, clip $clip" dir=$strategy-numbers-$clip
    with=(--set sync.strategy=$strategy --set train.clip=$clip)
    completes "$name" 8 both-micros.yaml --run-dir $dir --clock virtual "${with[@]}"
    check "$name: those of the first copy change" test -n "$(numbers $dir east)"
    check "$name: those of the second copy change" test -n "$(numbers $dir london)"
    check "$name: not as the first" test "$(changes $dir london)" != "$(changes $dir east)"
    judged_copies "$name" $dir both-micros.yaml sync.strategy=$strategy train.clip=$clip
    simulates "$name" $dir 1e-4 both-micros.yaml "${with[@]}"
  done
done

# killed NAME JOB RUN WORDS...: killed at the second checkpoint of each start, so that it continues from
# the first: here from about step 20, and then from about step 40; of sma, whose copies drift apart,
# one copy is then in the middle of a step.  The changes and the parameters are those of RUN, which was
# not killed.
killed() {
  local name=$1 job=$2 run=$3 dir=killed-$3 region from resume=()
  shift 3
  for from in 0 20; do
    GEOTRAIN_FAILPOINT=ckpt.done:2 train "$name, from step $from" 8 "$job" --run-dir "$dir" --clock virtual ${resume[@]+"${resume[@]}"} "$@"
    ended "$name: killed, from step $from" 137
    resume=(--resume)
  done
  train "$name, resumed" 8 "$job" --run-dir "$dir" --clock virtual --resume "$@"
  ended "$name: resumed" 0 'continues from round'
  for region in east west london paris; do
    check "$name: the same changes in $region" same "$(changes "$dir" $region | sort -u)" "$(changes "$run" $region | sort -u)"
  done
  check "$name: the parameters" same "$(weights "$dir")" "$(weights "$run")"
}
killed "killed, ssgd" both.yaml ssgd
killed "killed, sma" both.yaml sma --set sync.strategy=sma
killed "killed, numbers, ssgd" both-micros.yaml ssgd-numbers-0
killed "killed, numbers, sma" both-micros.yaml sma-numbers-0 --set sync.strategy=sma

# Stopped at any moment, which loses no work; where one copy is in the middle of a step it begins this
# step again, later, so that changes may come at other steps: those of the record.
for strategy in ssgd sma; do
  with=(--clock virtual --set sync.strategy=$strategy)
  start 8 both-micros.yaml --run-dir stopped-$strategy "${with[@]}"
  wait_round stopped-$strategy 1
  kill -TERM "$(rank_pid 4)" 2>/dev/null
  wait_end "$strategy, stopped" 60
  gone "$strategy, stopped"
  ended "$strategy, stopped" 75 '--resume'
  train "$strategy, stopped and resumed" 8 both-micros.yaml --run-dir stopped-$strategy --resume "${with[@]}"
  ended "$strategy, stopped and resumed" 0 'continues from round'
  judged_copies "$strategy, stopped and resumed" stopped-$strategy both-micros.yaml sync.strategy=$strategy
done

# A resume may turn it on and off.
for first in true false; do
  then=$([ $first = true ] && echo false || echo true)
  GEOTRAIN_FAILPOINT=ckpt.done:3 train "$first, then $then" 8 both.yaml --run-dir turned-$first --clock virtual --set pipeline.adapt=$first
  ended "$first, then $then: killed" 137
  train "$first, then $then" 8 both.yaml --run-dir turned-$first --clock virtual --resume --set pipeline.adapt=$then
  ended "$first, then $then" 0 'continues from round'
  check "$first, then $then: the parameters" same "$(weights turned-$first)" "$(weights ssgd)"
done

# Under the real clock, too, the parameters are those of the numbers that it had.
for strategy in ssgd sma; do
  completes "$strategy, real clock" 8 both.yaml --run-dir $strategy-real --set compute.emulate=true --set sync.strategy=$strategy
  check "$strategy, real clock: the parameters" same "$(weights $strategy-real)" "$(weights $strategy)"
  completes "$strategy, numbers, real clock" 8 both-micros.yaml --run-dir $strategy-numbers-real --set compute.emulate=true --set sync.strategy=$strategy
  judged_copies "$strategy, numbers, real clock" $strategy-numbers-real both-micros.yaml sync.strategy=$strategy
done
finish
