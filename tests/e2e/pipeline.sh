# labels: quick
# processors: 2
# Pipelines over regions: whatever the schedule and the places of its stages, the parameters are
# those of one worker that has the whole model and adds up over the same micro-batches.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 2}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.2}, {region: east}' "$link" >three.yaml
pipeline_job '{name: east, ranks: 3}' '{region: east, last: transformer.h.1}, {region: east}' '[]' >two.yaml
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 2}' '{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}' "$link" >folded.yaml
# Two workers have the stage in the middle: each computes with half of a micro-batch.
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, workers: 1, last: transformer.h.0}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 1}' "$link" >wide.yaml

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
