# processors: 1
# A whole run of five uneven ranks, asynchronous: exit code, run directory, summary.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=800
job job.yaml
sed -e 's/east, ranks: 2/east, ranks: 3/' -e 's/until: {steps: 60}/until: {epochs: 1}/' -e 's/local: sync, strategy: sma/local: async, strategy: asgd-ga/' \
  -e 's/eval_every: {epochs: 0}/eval_every: {epochs: 1}/' -e 's/every: {steps: 10}/every: {epochs: 1}/' job.yaml >five.yaml

train "train" 5 five.yaml --run-dir run
ended "train" 0 "test accuracy"
check "the map of ranks is printed" grep -q 'region east: ranks 0 (PS), 1, 2' err
for file in job.yaml east.jsonl west.jsonl summary.json; do check "run/$file" test -s "run/$file"; done
for key in job strategy clock wall_s samples samples_per_s test_accuracy test_loss params_sha256 resumes; do
  check "summary: $key" test -n "$(field run "$key")"
done
check "every sample was seen once" same "$(field run samples)" 800
for part in regions links build; do check "summary: $part" grep -q "\"$part\": " run/summary.json; done
check "records: every line is an object" bash -c '! grep -vqE "^\{.*\}$" run/east.jsonl run/west.jsonl'
check "two rounds at most" test "$(rounds run | wc -l)" -le 2
newest=$(newest_round run)
check "eval of the last round" "$GEOTRAIN" eval "run/ckpt/$newest/east.h5" data.h5
check "no temporary file is left" same "$(find run -name '*.tmp*' | wc -l)" 0

train "again without --resume" 5 five.yaml --run-dir run
ended "again without --resume" 2 "run directory run already holds a run" "--resume"
train "--resume of a finished run" 5 five.yaml --run-dir run --resume
ended "--resume of a finished run" 0 "test accuracy"
check "its samples stay" same "$(field run samples)" 800

# A step with a rate of 1e-30 does not change the checkpoint's parameters, so the accuracy is that
# of the checkpoint.
accuracy=$("$GEOTRAIN" eval "run/ckpt/$newest/east.h5" data.h5 | sed -nE 's/^accuracy ([0-9.]+).*/\1/p')
start_from() { train "$1" 5 five.yaml --run-dir "$1" --set "train.init=$2" --set train.until.steps=1 --set train.optimizer.lr=1e-30; }
start_from init "run/ckpt/$newest/east.h5"
ended "train.init" 0
check "train.init starts from the checkpoint's parameters" awk -v a="$(field init test_accuracy)" -v b="$accuracy" 'BEGIN {exit !(a - b < 1e-3 && b - a < 1e-3)}'
start_from other data.h5
ended "train.init of another file" 4 "data.h5"
completes "the resolved job is a job" 5 run/job.yaml --run-dir again
finish
