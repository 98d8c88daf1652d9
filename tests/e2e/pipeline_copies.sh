# labels: quick
# timeout: 300
# processors: 2
# Two copies of a pipeline.  With ssgd and sma cutting the copies into stages changes no bit of the
# parameters; copies of one stage with one micro-batch are data parallelism, to the bit.  simulate
# gives the results of train --clock virtual, and plan what a step of it takes.  More strategies,
# options and topologies are in pipeline_copies_more.sh.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"

ssgd=(--set sync.strategy=ssgd)
sma=(--set sync.strategy=sma)
ama=(--set sync.strategy=ama)
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

  parallel "$strategy" "${with[@]}"
done
check "ssgd and sma differ" test "$(weights judge-ssgd)" != "$(weights judge-sma)"
GEOTRAIN_LOCAL_PLANE=messages law "messages" judge-sma 8 two.yaml --set pipeline.schedule=zb-v "${sma[@]}"

# simulate: as in simulate_pipeline.sh; the second copy's loss is not in the lead.
costs=(--set compute.local='100 us' --set compute.update='500 us' --set compute.apply='700 us' --set compute.encode='300 us' --set compute.checkpoint='100 Mbit/s' --set pipeline.schedule=zb-v)
for strategy in ssgd sma ama; do
  declare -n with=$strategy
  train "$strategy: simulate" 8 two.yaml --run-dir sim-$strategy --clock virtual "${with[@]}" "${costs[@]}"
  ended "$strategy: simulate" 0
  "$GEOTRAIN" simulate two.yaml "${with[@]}" "${costs[@]}" --out sim-$strategy-said >said 2>&1 || fail "$strategy: simulate" "$(tail -n 1 said)"
  said=$(/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/simulate_compare.py" sim-$strategy sim-$strategy-said 1e-4) && ok "$strategy: simulate: $said" || fail "$strategy: simulate" "$said"
done

# Where nobody waits, bits depend on when messages arrive: nothing may shift them.
parallel "asgd-ga" --set sync.strategy=asgd-ga --set train.eval_every.steps=0 --set checkpoint.every.steps=1000

# Clipped by the norm of all stages of the mean.
train "clipped: judge" 4 one.yaml --run-dir clipped --clock virtual --set pipeline.schedule=gpipe "${ssgd[@]}" --set train.clip=0.2
ended "clipped: judge" 0
check "clipped: it matters" test "$(weights clipped)" != "$(weights judge-ssgd)"
law "clipped: two stages" clipped 8 two.yaml --set pipeline.schedule=zb-v "${ssgd[@]}" --set train.clip=0.2

# The plan's period is what a simulated run takes from step to step.
simulated_s() { "$GEOTRAIN" simulate two.yaml --set train.eval_every.steps=0 --set checkpoint.every.steps=1000 --set pipeline.schedule=zb-v --set train.until.steps="$1" --out said-"$1" >/dev/null 2>&1 && field said-"$1" wall_s; }
"$GEOTRAIN" plan two.yaml --set pipeline.schedule=zb-v --json >plan.json 2>err
check "plan: exit 0" same $? 0
/usr/bin/python3 - plan.json "$(simulated_s 40)" "$(simulated_s 16)" >out 2>&1 <<'PYTHON'
import json, sys
plan, run = json.load(open(sys.argv[1])), (float(sys.argv[2]) - float(sys.argv[3])) / 24
print(f"{plan['period_s']:.6f} s, simulated {run:.6f} s")
sys.exit(len(plan["copies"]) != 2 or abs(plan["period_s"] / run - 1) > 0.02)
PYTHON
check "plan: a step takes $(cat out)" same $? 0
"$GEOTRAIN" plan two.yaml --set pipeline.schedule=zb-v >out 2>err
check "plan: the second copy" grep -q '^copy 2: london, paris$' out
finish
