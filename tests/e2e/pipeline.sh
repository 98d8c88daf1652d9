# processors: 2
# Pipelines over regions: whatever the schedule and the places of its stages, the parameters are
# those of one worker that has the whole model and adds up over the same micro-batches.
pipeline_steps='8 4 3'
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 2}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.2}, {region: east}' "$link" >three.yaml
pipeline_job '{name: east, ranks: 3}' '{region: east, last: transformer.h.1}, {region: east}' '[]' >two.yaml
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 2}' '{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}' "$link" >folded.yaml
# Two workers have the stage in the middle: each computes with half of a micro-batch.
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, workers: 1, last: transformer.h.0}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 1}' "$link" >wide.yaml
pipeline_job '{name: east, ranks: 5}' '{region: east, workers: 2, last: transformer.h.1}, {region: east, workers: 2}' '[]' >twos.yaml
pipeline_job '{name: east, ranks: 6}' '{region: east, workers: 4, last: transformer.h.1}, {region: east, workers: 1}' '[]' | sed 's/context: 16}/context: 16, untied: true}/' >fours.yaml

judge=judge
# law NAME RANKS JOB ARGUMENTS...: the run ends with the parameters of the run $judge.
law() {
  local name=$1 ranks=$2 job=$3 dir
  dir=law-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 3
  completes "$name" "$ranks" "$job" --run-dir "$dir" "$@"
  check "$name: the parameters" same "$(weights "$dir")" "$(weights "$judge")"
  check "$name: the test loss" same "$(field "$dir" test_loss)" "$(field "$judge" test_loss)"
}

completes "the judge" 2 judge.yaml --run-dir judge --set pipeline.schedule=gpipe
for schedule in $([ $full = no ] || echo gpipe 1f1b zb-h1 zb-h2) auto; do
  law "four stages, $schedule" 6 four.yaml --set pipeline.schedule=$schedule
done
if [ $full = yes ]; then
  law "virtual clock" 6 four.yaml --set pipeline.schedule=1f1b --clock virtual
  law "folded" 4 folded.yaml --set pipeline.schedule=zb-v
  law "three stages" 5 three.yaml --set pipeline.schedule=1f1b
  law "one region" 3 two.yaml --set pipeline.schedule=zb-h1
fi
law "folded, virtual clock" 4 folded.yaml --set pipeline.schedule=zb-v --clock virtual
GEOTRAIN_LOCAL_PLANE=messages law "messages" 6 four.yaml --set pipeline.schedule=zb-h1

# Workers that share a stage change the grouping, and so the bits: stages_judge adds up in the same.
# judged NAME RANKS JOB [SCHEDULE]: a run with the parameters that it prints.
judged() {
  completes "$1" "$2" "$3" --run-dir "judged-$3" --set pipeline.schedule="${4:-1f1b}"
  check "$1: the parameters" same "$(weights "judged-$3")" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" "$3" pipeline.schedule=1f1b)"
}
check "the judge: one process" same "$(weights judge)" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" judge.yaml)"
judged "two workers in a stage" 6 wide.yaml auto
mv judged-wide.yaml wide
judged "two workers in both stages, tied" 5 twos.yaml
[ $full = no ] || judged "four workers in a stage, untied" 6 fours.yaml
# The norm is that of all stages: over two regions as in one process.
for job in four $([ $full = no ] || echo wide); do
  completes "clipped, $job" 6 $job.yaml --run-dir clipped-$job --set pipeline.schedule=1f1b --set train.clip=0.2
  check "clipped, $job: the parameters" same "$(weights clipped-$job)" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" $job.yaml train.clip=0.2)"
  check "clipped, $job: they are others" test "$(weights clipped-$job)" != "$(weights $([ $job = four ] && echo judge || echo wide))"
done
cp -r clipped-four again && rm -r again/ckpt/3 again/summary.json again/final.h5
train "clipped, resumed" 6 four.yaml --run-dir again --resume --set pipeline.schedule=zb-h1 --set train.clip=0.2
ended "clipped, resumed" 0 'continues from round 2'
check "clipped, resumed: the parameters" same "$(weights again)" "$(weights clipped-four)"
if [ $full = yes ]; then
  judge=wide
  law "two workers, zb-h1" 6 wide.yaml --set pipeline.schedule=zb-h1
  law "two workers, 1f1b" 6 wide.yaml --set pipeline.schedule=1f1b
fi

# LeNet: what its convolutions send is larger than the part of the model in west.
"$GEOTRAIN" data synth images.h5 --train 1000 --test 100 >/dev/null || fail "data synth images.h5"
{ sed -e 's/^name: .*/name: images/; s/^model: .*/model: {name: lenet5}/; s/words.h5/images.h5/; s/batch: 24/batch: 48/' \
  -e 's/name: adamw, lr: 0.01/name: sgd, lr: 0.02/; /schedule: {name: cosine/d' three.yaml |
  sed -E 's/, last: [a-z0-9.]+//g'; } >lenet.yaml
judge=lenet
completes "LeNet" 2 lenet.yaml --run-dir lenet --set 'regions=[{name: east, ranks: 2}]' --set 'pipeline.stages=[{region: east}]' --set 'wan.links=[]' --set pipeline.schedule=gpipe
[ $full = no ] || law "LeNet, three stages, 1f1b" 5 lenet.yaml --set pipeline.schedule=1f1b
law "LeNet, three stages, zb-h2" 5 lenet.yaml --set pipeline.schedule=zb-h2
# The loss is in another region than the data, and labels go there: for all steps and evaluations.
away=(--set 'regions=[{name: east, ranks: 2}, {name: west, ranks: 2}]' --set 'pipeline.stages=[{region: east}, {region: west}]' --set pipeline.labels=send)
[ $full = no ] || law "LeNet, labels sent" 4 lenet.yaml "${away[@]}" --set pipeline.schedule=1f1b
law "LeNet, labels sent, virtual clock" 4 lenet.yaml "${away[@]}" --set pipeline.schedule=auto --clock virtual
check "LeNet, labels sent: it is said" grep -q 'labels leave region east (pipeline.labels: send): they go with all activations to region west, which has the loss, 4 bytes a sample$' err
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, last: transformer.h.0}, {region: east, last: transformer.h.1}, {region: west, workers: 2}' "$link" |
  sed 's/context: 16}/context: 16, untied: true}/; s/micro_batches: 6/micro_batches: 6, labels: send/' >sent.yaml
judged "GPT, text sent as labels" 6 sent.yaml
check "GPT, text sent as labels: it is said" grep -q '68 bytes a sample; those of a text are the text itself$' err
finish
