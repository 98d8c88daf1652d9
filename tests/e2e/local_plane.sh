# labels: full
# The local plane does not change results: three synchronous workers give the same bits in shared
# memory, by messages, and under the virtual clock, whatever the load; so does a run that was
# stopped in the middle of a step.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# 1,000 samples in batches of 24 are 42 batches, the last of 16: epochs end in the middle of a step,
# and 5.1 epochs end in the middle of a step of two workers.
"$GEOTRAIN" data synth data.h5 --train 1000 --test 200 >/dev/null || fail "data synth"
cat >job.yaml <<'YAML'
name: local-plane
seed: 5
model: {name: lenet5}
data: {path: data.h5}
train: {until: {epochs: 5.1}, batch: 24, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, eval_every: {steps: 9}}
regions: [{name: here, ranks: 4}]
sync: {local: sync, strategy: none}
compute: {step: 25 ms, update: 1 ms}
checkpoint: {every: {epochs: 100}}
limits: {local: 30 s}
YAML

slow="--set compute.emulate=true"

sha() { field "$1" params_sha256; }

completes "shared memory" 4 job.yaml --run-dir shared
wanted=$(sha shared)
check "it trains" awk -v a="$(field shared test_accuracy)" 'BEGIN {exit !(a > 0.3)}'
check "every sample was seen" test "$(field shared samples)" -ge 5000

GEOTRAIN_LOCAL_PLANE=messages completes "messages" 4 job.yaml --run-dir messages
check "messages: the same bits" same "$(sha messages)" "$wanted"

completes "virtual clock" 4 job.yaml --run-dir virtual --clock virtual
check "virtual clock: the same bits" same "$(sha virtual)" "$wanted"

# Stopping workers in turn does not change what is added, nor its order.
start 4 job.yaml --run-dir stuttering $slow
wait_file stuttering/here.jsonl
stops=0
for rank in 1 2 3 1 2 3; do
  pid=$(rank_pid $rank)
  [ -n "$pid" ] && kill -STOP "$pid" 2>/dev/null && sleep 0.15 && kill -CONT "$pid" 2>/dev/null && stops=$((stops + 1))
done
check "stuttering: it did" test "$stops" -ge 3
wait_end "stuttering" 60
gone "stuttering"
ended "stuttering" 0
check "stuttering: the same bits" same "$(sha stuttering)" "$wanted"

# Statistics of normalisations are the mean of the workers'; they determine the test loss.
"$GEOTRAIN" data synth few.h5 --train 64 --test 16 >/dev/null || fail "data synth few"
for plane in shared messages; do
  GEOTRAIN_LOCAL_PLANE=$plane train "resnet18, $plane" 3 job.yaml --run-dir "resnet-$plane" --set model.name=resnet18 --set data.path=few.h5 --set train.batch=2 \
    --set train.until.steps=3 --set regions.0.ranks=3
  ended "resnet18, $plane" 0
done
check "resnet18: the same bits" same "$(sha resnet-messages)" "$(sha resnet-shared)"
check "resnet18: the same loss" same "$(field resnet-messages test_loss)" "$(field resnet-shared test_loss)"

start 4 job.yaml --run-dir stopped $slow
wait_file stopped/here.jsonl && sleep 0.3
kill -USR1 "$(rank_pid 2)"
wait_end "stopped" 60
gone "stopped"
ended "stopped" 75
completes "resumed" 4 job.yaml --run-dir stopped --resume $slow
check "resumed: the same bits" same "$(sha stopped)" "$wanted"
finish
