# A file system without locks: data sets, checkpoints, a final model in parts and train.init.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
without=$GEOTRAIN_HELPERS/e2e.preload_noflock.so
data_train=400
job job.yaml
(LD_PRELOAD=$without "$GEOTRAIN" data synth made.h5 --train 40 --test 10) >out 2>&1
check "data synth" same "$?" 0
(LD_PRELOAD=$without "$GEOTRAIN" data split made.h5 --regions 2) >out 2>&1
check "data split" same "$?" 0

locks() { run "$1" -n 4 env LD_PRELOAD="$without" "$GEOTRAIN" train job.yaml --run-dir "${@:2}" "${choices[@]}"; }
locks "a run" plain --set train.until.steps=20
ended "a run" 0
locks "train.init" init --set train.until.steps=4 --set train.init=plain/final.h5
ended "train.init" 0
locks "a pipeline" piped --set train.until.steps=20 --set sync=null --set sync.strategy=none \
  --set 'data.partition.shares=[1, 0]' --set 'pipeline={stages: [{region: east}, {region: west}], micro_batches: 4, schedule: 1f1b, labels: send}'
ended "a pipeline" 0
check "a pipeline: its rounds and final model" test -s piped/final.h5 -a "$(newest_round piped)" -ge 2
finish
