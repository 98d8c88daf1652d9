# processors: 1
# A final model or loss that is not finite ends the run with 6, over every topology: the last line
# names the region, and there is no final.h5 and no summary.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Parameters grow by a factor of 1e12 a step: the fourth step overflows, and nothing before it does.
cat >diverging.yaml <<'YAML'
name: diverging
seed: 5
model: {name: dummy, parameters: 8000}
data: {path: data.h5, partition: {by: shares, shares: [1, 1, 1]}}
train: {until: {steps: 4}, batch: 16, optimizer: {name: sgd, lr: 1.0e+6, weight_decay: 1.0e+6}, eval_every: {epochs: 0}}
regions: [{name: h, ranks: 2}, {name: a, ranks: 2}, {name: b, ranks: 2}]
sync: {strategy: ama, period: 1}
compute: {step: 20 ms}
wan: {default: {bandwidth: 100 Mbit/s, latency: 10 ms}}
limits: {local: 20 s, wan_patience: 20 s, nonfinite: 1000}
YAML
data data.h5

# diverges NAME WHAT WORDS...: the run ends with 6 and says that WHAT is not finite.
diverges() {
  local name=$1 what=$2
  shift 2
  rm -rf run
  LIMIT=30 train "$name" 6 diverging.yaml --run-dir run "$@"
  ended "$name" 6 "^geotrain: the $what is not finite: there is no final model"
  check "$name: no final model, no summary" same "$(find run -maxdepth 1 -name 'final*' -o -maxdepth 1 -name summary.json)" ""
  check "$name: every region's record says stopped" same "$(grep -l '"event":"stopped","code":6' run/*.jsonl | wc -l)" 3
}

of_h='final model of region h'
diverges "ama over a hub" "$of_h" --clock virtual --set sync.topology=hub --set sync.hub=h
diverges "ama over a tree" "$of_h" --clock virtual --set sync.topology=tree
diverges "none, real clock" "$of_h" --set sync=null --set sync.strategy=none
# One step gives parameters of about 1e12: they are finite, the loss of five layers is not.
loss=(--clock virtual --set model=null --set model.name=lenet5 --set train.until.steps=1)
diverges "a loss" 'test loss of the final model of region h' "${loss[@]}" --set sync.strategy=ssgd
diverges "the loss of a pipeline" 'test loss of the final model of region b' "${loss[@]}" --set data.partition.shares='[1, 0, 0]' \
  --set sync=null --set sync.strategy=none --set pipeline='{stages: [{region: h}, {region: a}, {region: b}], micro_batches: 4, labels: send}'
if [ "$full" = yes ]; then
  for strategy in ama asgd asgd-ga ssgd; do
    for topology in mesh hub tree; do
      diverges "$strategy over a $topology" "$of_h" --clock virtual --set sync.strategy=$strategy --set sync.topology=$topology
    done
  done
  diverges "ssgd over a ring" "$of_h" --clock virtual --set sync.strategy=ssgd --set sync.topology=ring
fi
finish
