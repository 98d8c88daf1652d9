# Shared by the end-to-end scripts of pipelines: a small text and jobs of GPT in stages.  Sourced after
# lib.sh; $pipeline_steps has the steps of a run, between evaluations and between checkpoints,
# $pipeline_costs more times of compute.
: "${pipeline_costs:=}"
read -r steps_all steps_eval steps_saved <<<"${pipeline_steps:-12 6 5}"
words words.txt 3000
"$GEOTRAIN" data import text words.txt words.h5 --length 16 >data.log 2>&1 || fail "data" "$(cat data.log)"

# pipeline_job REGIONS STAGES LINKS: the job with these lists, in one line each.
pipeline_job() {
  cat <<YAML
name: words
seed: 3
model: {name: gpt, layers: 4, width: 16, heads: 2, context: 16}
data: {path: words.h5}
train:
  until: {steps: $steps_all}
  batch: 24
  optimizer: {name: adamw, lr: 0.01}
  schedule: {name: cosine, warmup_steps: 4}
  eval_every: {steps: $steps_eval}
  choices: rule
regions: [$1]
pipeline: {stages: [$2], micro_batches: 6}
wan: {emulate: true, links: $3}
compute: {step: 24 ms$pipeline_costs}
checkpoint: {every: {steps: $steps_saved}, keep: 9}
limits: {wan_patience: 30 s, local: 30 s}
YAML
}
link='[{between: [east, west], bandwidth: 100 Mbit/s, latency: 5 ms}]'
pipeline_job '{name: east, ranks: 2}' '{region: east, workers: 1}' '[]' >judge.yaml
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}' "$link" >four.yaml

weights() { field "$1" params_sha256; }
