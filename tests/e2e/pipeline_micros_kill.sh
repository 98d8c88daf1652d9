# labels: full
# timeout: 400
# processors: 2
# pipeline.adapt micro_batches: a run that is killed before, between and after its changes of the
# number has the same changes and parameters as one that is not.  With several workers in a stage,
# with labels that travel and under the real clock, too, the parameters are those of one process that
# uses the same numbers.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmicros.sh"

completes "a fall" 6 micros.yaml --run-dir fall --clock virtual
judged "a fall" fall micros.yaml

# Checkpoints are made every 20 steps.  A run killed at its second one continues from the first: here
# in turn from step 20, before any change, from 40, with 6 micro-batches, and from 60, with 12.
resume=()
for from in 0 20 40; do
  GEOTRAIN_FAILPOINT=ckpt.done:2 train "from step $from" 6 micros.yaml --run-dir killed --clock virtual ${resume[@]+"${resume[@]}"}
  ended "killed, from step $from" 137
  resume=(--resume)
done
check "killed: behind a change" test -n "$(numbers killed east)"
completes "resumed" 6 micros.yaml --run-dir killed --clock virtual --resume
check "resumed: the parameters" same "$(weights killed)" "$(weights fall)"
check "resumed: the same changes" same "$(changes killed east | sort -u)" "$(changes fall east | sort -u)"
check "resumed: in both regions" same "$(changes killed west | sort -u)" "$(changes fall west | sort -u)"

# A resume with another plan continues by that, and says so, or its record would not have what its steps
# have had.  The learning rate must not depend on the steps that are asked for.
constant=train.schedule.name=constant
completes "another plan: before" 6 micros.yaml --run-dir other --clock virtual --set train.until.steps=40 --set $constant
check "another plan: before, a change" test -n "$(numbers other east)"
train "another plan" 6 micros.yaml --run-dir other --clock virtual --resume --set train.until.steps=60 --set $constant --set pipeline.micro_batches=3
ended "another plan" 0 'step 40: pipeline.schedule is [0-9a-f]* from step 41 on, 3 micro-batches now: the checkpoint has orders of another plan'
judged "another plan" other micros.yaml train.until.steps=60 $constant

# Two workers in stage 1, so that 8 micro-batches of 3 samples cannot be.
sed 's/{name: west, ranks: 3}/{name: west, ranks: 4}/; s/{region: west, last: transformer.h.1}/{region: west, workers: 2, last: transformer.h.1}/' micros.yaml >two.yaml
train "two workers" 7 two.yaml --run-dir two --clock virtual
ended "two workers" 0 'a step may have 1, 2, 3, 4, 6 or 12 micro-batches'
judged "two workers" two two.yaml

sed 's/adapt: micro_batches/adapt: micro_batches, labels: send/; s/{region: west, last: transformer.h.1}/{region: east, last: transformer.h.1}/; s/, {region: east}\]/, {region: west}]/; s/context: 16}/context: 16, untied: true}/; s/micro_batches: 4/micro_batches: 2/' micros.yaml >sent.yaml
train "labels sent" 6 sent.yaml --run-dir sent --clock virtual
ended "labels sent" 0 'labels leave region east'
judged "labels sent" sent sent.yaml

completes "real clock" 6 micros.yaml --run-dir real --set compute.emulate=true
judged "real clock" real micros.yaml
finish
