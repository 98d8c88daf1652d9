# labels: quick
# processors: 2
# Pipelines over regions: whatever the schedule and the places of its stages, the parameters are
# those of one worker that has the whole model and adds up over the same micro-batches.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

awk 'BEGIN {
  srand(1); n = split("apple banana cherry orange quince", words, " ")
  for (i = 0; i < 3000; i++) printf "%s%s", words[1 + int(rand() * n)], i % 9 == 8 ? "\n" : " "
}' >words.txt
"$GEOTRAIN" data import text words.txt words.h5 --length 16 >data.log 2>&1 || fail "data" "$(cat data.log)"

# pipeline_job REGIONS STAGES: the job with this list of regions and of stages, in one line each.
pipeline_job() {
  cat <<YAML
name: words
seed: 3
model: {name: gpt, layers: 4, width: 16, heads: 2, context: 16}
data: {path: words.h5}
train:
  until: {steps: 12}
  batch: 24
  optimizer: {name: adamw, lr: 0.01}
  schedule: {name: cosine, warmup_steps: 4}
  eval_every: {steps: 6}
  choices: rule
regions: [$1]
pipeline: {stages: [$2], micro_batches: 6}
wan: {emulate: true, links: $3}
compute: {step: 24 ms}
checkpoint: {every: {steps: 5}, keep: 9}
limits: {wan_patience: 30 s, local: 30 s}
YAML
}
link='[{between: [east, west], bandwidth: 100 Mbit/s, latency: 5 ms}]'
pipeline_job '{name: east, ranks: 2}' '{region: east, workers: 1}' '[]' >judge.yaml
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}' "$link" >four.yaml
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 2}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.2}, {region: east}' "$link" >three.yaml
pipeline_job '{name: east, ranks: 3}' '{region: east, last: transformer.h.1}, {region: east}' '[]' >two.yaml
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 2}' '{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}' "$link" >folded.yaml
# Two workers have the stage in the middle: each computes with half of a micro-batch.
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, workers: 1, last: transformer.h.0}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 1}' "$link" >wide.yaml

weights() { field "$1" params_sha256; }
# law NAME RANKS JOB ARGUMENTS...: the run ends with the judge's parameters.
law() {
  local name=$1 ranks=$2 job=$3 dir
  dir=$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 3
  train "$name" "$ranks" "$job" --run-dir "$dir" "$@"
  ended "$name" 0
  check "$name: the parameters" same "$(weights "$dir")" "$(weights judge)"
  check "$name: the test loss" same "$(field "$dir" test_loss)" "$(field judge test_loss)"
}

train "the judge" 2 judge.yaml --run-dir judge --set pipeline.schedule=gpipe
ended "the judge" 0
for schedule in gpipe 1f1b zb-h1 zb-h2 auto; do
  law "four stages, $schedule" 6 four.yaml --set pipeline.schedule=$schedule
done
law "virtual clock" 6 four.yaml --set pipeline.schedule=1f1b --clock virtual
law "three stages" 5 three.yaml --set pipeline.schedule=1f1b
law "one region" 3 two.yaml --set pipeline.schedule=zb-h1
law "folded" 4 folded.yaml --set pipeline.schedule=zb-v
GEOTRAIN_LOCAL_PLANE=messages law "messages" 6 four.yaml --set pipeline.schedule=zb-h1
finish
