# processors: 2
# simulate gives the results of train --clock virtual for pipelines over regions: for every kind of
# schedule and several places of the stages, with evaluations, checkpoints that take time, jitter, a
# trace and an outage, messages, bytes of each kind and every region's times are equal, and virtual_s
# to the nanosecond.  Where the loss is not in the lead, the results that are sent to it contain
# accuracies, and their length is not known before.
pipeline_steps='11 4 5' pipeline_costs=', local: 100 us, update: 500 us, apply: 700 us, encode: 300 us, resume: 200 us, checkpoint: 100 Mbit/s'
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
printf 'time_s,bandwidth,latency\n0,40 Mbit/s,\n0.2,90 Mbit/s,\n0.35,10 Mbit/s,\n0.5,0,\n' >saw.csv
link='[{between: [east, west], bandwidth: 100 Mbit/s, latency: 5 ms, jitter: 1 ms, loss: 0.001}]'
rough='[{between: [east, west], trace: saw.csv, latency: 15 ms, jitter: 2 ms}], outages: [{between: [east, west], from: 300 ms, for: 500 ms}]'
four='{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}'
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' "$four" "$link" >four.yaml
pipeline_job '{name: east, ranks: 3, access: 200 Mbit/s}, {name: west, ranks: 3, access: 30 Mbit/s, compute: {step: 40 ms, speeds: [1, 0.7]}}' "$four" "$rough" >rough.yaml
pipeline_job '{name: west, ranks: 2}, {name: east, ranks: 3}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.2}, {region: east}' "$link" >behind.yaml
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 2}' '{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}' "$link" >folded.yaml
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, workers: 1, last: transformer.h.0}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 1}' "$link" >wide.yaml
pipeline_job '{name: east, ranks: 3}' '{region: east, last: transformer.h.1}, {region: east}' '[]' >two.yaml
pipeline_job '{name: west, ranks: 3}, {name: east, ranks: 2}' '{region: east, last: transformer.h.1}, {region: west, workers: 2}' "$rough" |
  sed 's/context: 16}/context: 16, untied: true}/; s/micro_batches: 6/micro_batches: 6, labels: send/' >sent.yaml

# law NAME RANKS JOB APART KEY=VALUE...: the two ends are at most APART seconds apart.
law() {
  local name=$1 ranks=$2 job=$3 apart=$4 dir sets=() key
  dir=$(tr -c 'a-z0-9\n' - <<<"$name")
  for key in "${@:5}"; do sets+=(--set "$key"); done
  train "$name" "$ranks" "$job" --run-dir "$dir" --clock virtual "${sets[@]}"
  [ "$code" = 0 ] || { fail "$name" "train ended with $code: $(tail -n 3 err)" && return; }
  simulates "$name" "$dir" "$apart" "$job" "${sets[@]}"
}

ns=1e-9
for schedule in gpipe $([ $full = no ] || echo 1f1b zb-h1) auto; do
  law "four stages, $schedule" 6 four.yaml $ns pipeline.schedule=$schedule
done
law "rough, epochs, zb-h2" 6 rough.yaml $ns pipeline.schedule=zb-h2 "train.until={epochs: 0.4}" "train.eval_every={epochs: 0.15}"
law "the lead has no loss" 5 behind.yaml 1e-4 pipeline.schedule=1f1b
law "folded" 4 folded.yaml $ns pipeline.schedule=zb-v
law "wide, clipped" 6 wide.yaml $ns pipeline.schedule=zb-h1 train.clip=0.5
if [ $full = yes ]; then
  law "rough, zb-h2" 6 rough.yaml $ns pipeline.schedule=zb-h2
  law "wide" 6 wide.yaml $ns pipeline.schedule=zb-h1
  law "rough, clipped" 6 rough.yaml $ns pipeline.schedule=zb-h1 train.clip=0.5
fi
law "labels" 5 sent.yaml $ns pipeline.schedule=zb-h1
# The part of region west is sent in two pieces of different sizes.
law "a model in pieces" 6 four.yaml $ns pipeline.schedule=gpipe model.width=256 'train.until={steps: 2}'
law "one region" 3 two.yaml $ns pipeline.schedule=1f1b

# Sizes are all that a simulation needs of a model: 6.5 billion parameters within 4 GB.
if (ulimit -v 4000000 && "$GEOTRAIN" --version) >/dev/null 2>&1; then
  (ulimit -v 4000000 && "$GEOTRAIN" simulate four.yaml --set model.layers=32 --set model.width=4096 --set 'train.until={steps: 2}') >out 2>err
  check "a model larger than the memory: exit 0" same $? 0
else
  skip "a model larger than the memory" "a program with sanitizers needs more address space"
fi

"$GEOTRAIN" simulate four.yaml --set train.batch=6000 >out 2>err
check "too few samples: exit 2" same $? 2
check "too few samples" grep -q 'samples, and a step of the pipeline takes 6000' err
finish
