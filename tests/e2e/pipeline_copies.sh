# labels: quick
# timeout: 300
# processors: 2
# Two copies of a pipeline, kept equal by ssgd or sma.  Cutting the copies into stages changes no bit
# of the parameters; copies of one stage with one micro-batch are data parallelism, to the bit.
# simulate gives the results of train --clock virtual.  What is not built is refused.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"

ssgd=(--set sync.strategy=ssgd)
sma=(--set sync.strategy=sma)
# law NAME JUDGE RANKS JOB ARGUMENTS...: the run ends with the parameters of the run JUDGE.
law() {
  local name=$1 judge=$2 ranks=$3 job=$4 dir
  dir=law-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 4
  train "$name" "$ranks" "$job" --run-dir "$dir" "$@"
  ended "$name" 0
  check "$name: the parameters" same "$(weights "$dir")" "$(weights "$judge")"
  check "$name: the samples" same "$(field "$dir" samples)" "$(field "$judge" samples)"
}

# The copies make different numbers of steps; with sma the last rounds have the steps of one.
uneven=(--set 'train.until={epochs: 0.6}' --set train.eval_every.steps=0)
for strategy in ssgd sma; do
  declare -n with=$strategy
  train "$strategy: judge" 4 one.yaml --run-dir judge-$strategy --clock virtual --set pipeline.schedule=gpipe "${with[@]}"
  ended "$strategy: judge" 0
  law "$strategy: two stages, virtual clock" judge-$strategy 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${with[@]}"
  law "$strategy: two stages" judge-$strategy 8 two.yaml --set pipeline.schedule=auto "${with[@]}"
  train "$strategy: uneven, judge" 4 one.yaml --run-dir uneven-$strategy --clock virtual --set pipeline.schedule=gpipe "${with[@]}" "${uneven[@]}" --set data.partition.shares=[1,2]
  ended "$strategy: uneven, judge" 0
  law "$strategy: uneven" uneven-$strategy 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${with[@]}" "${uneven[@]}" --set data.partition.shares=[1,2,0,0]

  sed '/^pipeline: /d' one.yaml >data.yaml
  train "$strategy: data parallel" 4 data.yaml --run-dir data-$strategy --clock virtual --set model.untied=true "${with[@]}"
  ended "$strategy: data parallel" 0
  law "$strategy: copies of one stage" data-$strategy 4 one.yaml --clock virtual --set model.untied=true --set pipeline.schedule=gpipe --set pipeline.micro_batches=1 "${with[@]}"
done
check "ssgd and sma differ" test "$(weights judge-ssgd)" != "$(weights judge-sma)"
GEOTRAIN_LOCAL_PLANE=messages law "messages" judge-sma 8 two.yaml --set pipeline.schedule=zb-v "${sma[@]}"

# simulate: as in simulate_pipeline.sh; the second copy's loss is not in the lead.
costs=(--set compute.local='100 us' --set compute.update='500 us' --set compute.apply='700 us' --set compute.encode='300 us' --set compute.checkpoint='100 Mbit/s' --set pipeline.schedule=zb-v)
for strategy in ssgd sma; do
  declare -n with=$strategy
  train "$strategy: simulate" 8 two.yaml --run-dir sim-$strategy --clock virtual "${with[@]}" "${costs[@]}"
  ended "$strategy: simulate" 0
  "$GEOTRAIN" simulate two.yaml "${with[@]}" "${costs[@]}" --out sim-$strategy-said >said 2>&1 || fail "$strategy: simulate" "$(tail -n 1 said)"
  said=$(/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/simulate_compare.py" sim-$strategy sim-$strategy-said 1e-4) && ok "$strategy: simulate: $said" || fail "$strategy: simulate" "$said"
done

"$GEOTRAIN" plan two.yaml >out 2>err
check "plan: exit 2" same $? 2
check "plan" grep -q 'pipeline.copies is given, and plans of several copies are not built' err
finish
