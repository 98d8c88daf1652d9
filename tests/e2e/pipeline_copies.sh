# timeout: 300
# processors: 2
# Two copies of a pipeline.  With ssgd and sma cutting the copies into stages changes no bit of the
# parameters; copies of one stage with one micro-batch are data parallelism, to the bit.  simulate
# gives the results of train --clock virtual, and plan what a step of it takes.  More strategies,
# options and topologies are in pipeline_copies_more.sh.
pipeline_steps='8 4 3'
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"

ssgd=(--set sync.strategy=ssgd)
sma=(--set sync.strategy=sma)
# The copies make different numbers of steps; with sma the last rounds have the steps of one.
uneven=(--set 'train.until={epochs: 0.4}' --set train.eval_every.steps=0)
two_uneven=("${uneven[@]}" --set data.partition.shares=[1,2,0,0])
costs=(--set compute.local='100 us' --set compute.update='500 us' --set compute.apply='700 us' --set compute.encode='300 us' --set compute.checkpoint='100 Mbit/s')

# judge NAME ARGUMENTS...: copies of one stage.
judge() {
  completes "$1: judge" 4 one.yaml --run-dir "judge-$1" --clock virtual --set pipeline.schedule=gpipe "${@:2}"
}
# simulated NAME RUN ARGUMENTS...: as in simulate_pipeline.sh; the second copy's loss is not in the lead.
simulated() {
  simulates "$1" "$2" 1e-4 two.yaml "${costs[@]}" --set pipeline.schedule=zb-v "${@:3}"
}

judge ssgd "${ssgd[@]}"
law "ssgd: two stages, virtual clock" judge-ssgd 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${ssgd[@]}" "${costs[@]}"
simulated ssgd law-ssgd--two-stages--virtual-clock "${ssgd[@]}"
judge sma "${sma[@]}" "${uneven[@]}" --set data.partition.shares=[1,2]
law "sma: uneven" judge-sma 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${sma[@]}" "${two_uneven[@]}" "${costs[@]}"
simulated sma law-sma--uneven "${sma[@]}" "${two_uneven[@]}"
GEOTRAIN_LOCAL_PLANE=messages law "messages" judge-sma 8 two.yaml --set pipeline.schedule=zb-v "${sma[@]}" "${two_uneven[@]}"
completes "ama: simulate" 8 two.yaml --run-dir sim-ama --clock virtual --set pipeline.schedule=zb-v --set sync.strategy=ama "${costs[@]}"
simulated ama sim-ama --set sync.strategy=ama

# Clipped by the norm of all stages of the mean.
judge clipped "${ssgd[@]}" --set train.clip=0.2
check "clipped: it matters" test "$(weights judge-clipped)" != "$(weights judge-ssgd)"
law "clipped: two stages" judge-clipped 8 two.yaml --set pipeline.schedule=auto "${ssgd[@]}" --set train.clip=0.2

if [ $full = yes ]; then
  law "ssgd: two stages" judge-ssgd 8 two.yaml --set pipeline.schedule=auto "${ssgd[@]}"
  judge ssgd-uneven "${ssgd[@]}" "${uneven[@]}" --set data.partition.shares=[1,2]
  law "ssgd: uneven" judge-ssgd-uneven 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${ssgd[@]}" "${two_uneven[@]}"
  judge sma-even "${sma[@]}"
  law "sma: two stages, virtual clock" judge-sma-even 8 two.yaml --clock virtual --set pipeline.schedule=zb-v "${sma[@]}"
  law "sma: two stages" judge-sma-even 8 two.yaml --set pipeline.schedule=auto "${sma[@]}"
fi

parallel "ssgd" "${ssgd[@]}"
parallel "sma" "${sma[@]}"
check "ssgd and sma differ" test "$(weights data-ssgd)" != "$(weights data-sma)"
# Where nobody waits, bits depend on when messages arrive: nothing may shift them.
parallel "asgd-ga" --set sync.strategy=asgd-ga --set train.eval_every.steps=0 --set checkpoint.every.steps=1000

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
check "plan: the second copy" grep -q '^replica 2: london, paris$' out
finish
