# labels: full
# timeout: 900
# processors: 2
# Several copies of a pipeline: options of strategies, every topology, clipping and a limit on bytes.
# Copies of one stage are data parallelism with the same keys, to the bit; simulate gives the results
# of train --clock virtual.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"

copies_job '{name: east, ranks: 2}, {name: london, ranks: 2}, {name: tokyo, ranks: 2}' 'stages: [{region: east}], copies: [{regions: london}, {regions: tokyo}]' >three.yaml
quiet=(--set train.eval_every.steps=0 --set checkpoint.every.steps=1000)

# simulated NAME JOB RANKS ARGUMENTS...
simulated() {
  local name=$1 job=$2 ranks=$3 dir
  dir=sim-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 3
  completes "$name: simulate" "$ranks" "$job" --run-dir "$dir" --clock virtual "$@"
  simulates "$name" "$dir" 1e-4 "$job" "$@"
}

parallel "asgd" --set sync.strategy=asgd "${quiet[@]}"
parallel "ama" --set sync.strategy=ama "${quiet[@]}"
parallel "asgd, mean" --set sync.strategy=asgd --set sync.scale=mean "${quiet[@]}"
parallel "asgd-ga, average" --set sync.strategy=asgd-ga --set sync.scale=average "${quiet[@]}"
parallel "asgd-ga, gradient" --set sync.strategy=asgd-ga --set sync.exchange=gradient "${quiet[@]}"
parallel "ama, half" --set sync.strategy=ama --set sync.merge=half "${quiet[@]}"
parallel "asgd-ga, clipped" --set sync.strategy=asgd-ga --set train.clip=0.2 "${quiet[@]}"
parallel "ama, clipped" --set sync.strategy=ama --set train.clip=0.2 "${quiet[@]}"
parallel "ssgd, clipped" --set sync.strategy=ssgd --set train.clip=0.2
parallel "sma, clipped" --set sync.strategy=sma --set train.clip=0.2
completes "sma, clipped: judge" 4 one.yaml --run-dir clipped --clock virtual --set pipeline.schedule=gpipe --set sync.strategy=sma --set train.clip=0.2
law "sma, clipped: two stages" clipped 8 two.yaml --set pipeline.schedule=zb-v --set sync.strategy=sma --set train.clip=0.2

for way in hub tree ring; do
  ONE=three.yaml RANKS=6 parallel "ssgd, $way" --set sync.strategy=ssgd --set sync.topology=$way
  ONE=three.yaml RANKS=6 parallel "sma, $way" --set sync.strategy=sma --set sync.topology=$way
  simulated "sma, $way" two.yaml 8 --set sync.strategy=sma --set sync.topology=$way --set pipeline.schedule=zb-v
done
for way in hub tree; do
  ONE=three.yaml RANKS=6 parallel "asgd-ga, $way" --set sync.strategy=asgd-ga --set sync.topology=$way "${quiet[@]}"
  simulated "asgd, $way" two.yaml 8 --set sync.strategy=asgd --set sync.topology=$way --set pipeline.schedule=zb-v
done
completes "hub: judge" 4 one.yaml --run-dir hub-judge --clock virtual --set pipeline.schedule=gpipe
law "hub: two stages, as over a mesh" hub-judge 8 two.yaml --set pipeline.schedule=zb-v --set sync.topology=hub --set sync.hub=london
simulated "asgd-ga" two.yaml 8 --set sync.strategy=asgd-ga --set pipeline.schedule=zb-v
simulated "ssgd, clipped" two.yaml 8 --set train.clip=0.2 --set pipeline.schedule=zb-v
simulated "asgd-ga, clipped" two.yaml 8 --set sync.strategy=asgd-ga --set train.clip=0.2 --set pipeline.schedule=zb-v

# A step sends at least what the copy's regions exchange.
limit=(--set pipeline.schedule=zb-v --set limits.wan_bytes=300kB)
train "limits.wan_bytes" 8 two.yaml --run-dir bytes --clock virtual "${limit[@]}"
ended "limits.wan_bytes" 6 'a limit ended the run .*limits.wan_bytes'
check "limits.wan_bytes: some steps are made" test "$(sed -nE 's/.*"event":"stopped".*"step":([0-9]+).*/\1/p' bytes/east.jsonl | tail -n 1)" -gt 1
"$GEOTRAIN" simulate two.yaml "${limit[@]}" >said 2>&1
check "limits.wan_bytes: simulate" grep -q 'limits.wan_bytes stops this run' said
train "limits.wan_bytes, resumed with more" 8 two.yaml --run-dir bytes --resume --clock virtual --set pipeline.schedule=zb-v --set limits.wan_bytes=1GB
ended "limits.wan_bytes, resumed with more" 0 "continues from round"
check "limits.wan_bytes, resumed with more: the parameters" same "$(weights bytes)" "$(weights hub-judge)"

# A region's part of the model may be larger than the pieces in which it goes to the final one.
completes "large parts" 4 one.yaml --run-dir large --clock virtual --set pipeline.schedule=gpipe --set model.width=192 --set train.until.steps=2 "${quiet[@]}"
check "large parts: larger than a piece" awk "BEGIN { exit !($(field large parameters) > 1048576) }"

"$GEOTRAIN" simulate three.yaml --set sync.strategy=asgd --set sync.topology=ring >out 2>err
check "asgd over a ring: exit 2" same $? 2
check "asgd over a ring" grep -q 'sync.topology ring has rounds only' err
finish
