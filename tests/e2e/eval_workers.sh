# labels: full
# The workers of a region evaluate together: one, two and three of them give the same figures to the
# bit for the same model, in shared memory, by messages, under both clocks and with both local
# planes; a stop and a lost worker during an evaluation end the run as usual.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# 5,100 test samples are four whole chunks and one of 1,004, in batches of 48; the last batch of a
# chunk is smaller.
"$GEOTRAIN" data synth data.h5 --train 960 --test 5100 >/dev/null || fail "data synth"
cat >job.yaml <<'YAML'
name: eval-workers
seed: 5
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 6}, batch: 48, kernels: blas, optimizer: {name: sgd, lr: 1e-30}, eval_every: {steps: 2}}
regions: [{name: here, ranks: 2}]
sync: {local: sync, strategy: none}
compute: {step: 10 ms, eval_samples_per_s: 100000}
checkpoint: {every: {steps: 100}}
limits: {local: 30 s}
YAML

# figures RUN: the figures of every evaluation and of the summary, each once; a learning rate of
# 1e-30 does not change them.
figures() {
  sed -nE 's/.*"event":"eval".*("loss":.*)\}$/\1/p' "$1/here.jsonl" | sort -u
  grep -E '"test_(loss|accuracy|auc)"' "$1/summary.json" | sort -u
}
wanted=
# same_figures NAME RUN
same_figures() {
  local found
  found=$(figures "$2")
  check "$1: every evaluation finds the same" same "$(grep -c '"loss":' <<<"$found")" 1
  [ -n "$wanted" ] || wanted=$found
  check "$1: the same figures" same "$found" "$wanted"
}

for kind in "1 shared sync" "2 shared sync" "2 messages async" "3 messages sync" "3 shared async"; do
  read -r workers plane local <<<"$kind"
  GEOTRAIN_LOCAL_PLANE=$plane completes "$kind" $((workers + 1)) job.yaml --run-dir "$kind" --set regions.0.ranks=$((workers + 1)) --set sync.local="$local"
  same_figures "$kind" "$kind"
done

# Under the virtual clock a whole chunk takes its worker 10.24 ms: five turns with one worker, three
# with two.  There are two evaluations during training, the region's at the end, and that of the
# mean.
for workers in 1 2 3; do
  completes "virtual, $workers" $((workers + 1)) job.yaml --run-dir "virtual-$workers" --set regions.0.ranks=$((workers + 1)) --clock virtual
  same_figures "virtual, $workers" "virtual-$workers"
done
# seconds RUN: time of the evaluations, which is all the time but 6 steps of 10 ms.
seconds() { awk -v s="$(field "$1" virtual_s)" 'BEGIN {printf "%.3f", s - 0.06}'; }
check "one worker scores 5,100 samples four times" same "$(seconds virtual-1)" 0.204
check "two share them: the slower has 3 chunks" same "$(seconds virtual-2)" "$(awk 'BEGIN {printf "%.3f", 4 * (3 * 1024 - 20) / 100000}')"
check "three: 2 chunks at most" same "$(seconds virtual-3)" "$(awk 'BEGIN {printf "%.3f", 4 * 2048 / 100000}')"

# ---- two classes -------------------------------------------------------------------------------------------------------------------

mkdir clicks
for split in train test; do
  awk -v n="$([ $split = train ] && echo 400 || echo 2500)" -v seed=$split 'BEGIN {
    srand(length(seed))
    for (i = 0; i < n; i++) print (rand() < 0.4 ? 1 : -1), int(rand() * 20) ":1", 20 + int(rand() * 20) ":1"
    print -1, "0:1 39:1"
  }' >clicks/clicks.$split.libfm
done
"$GEOTRAIN" data import libfm clicks clicks.h5 >/dev/null || fail "data import"
deepfm=(--set 'model={name: deepfm, embedding: 5, mlp: [16, 8]}' --set data.path=clicks.h5 --set train.batch=64)
wanted=
for kind in "1 shared" "2 messages" "3 shared" "3 messages"; do
  read -r workers plane <<<"$kind"
  GEOTRAIN_LOCAL_PLANE=$plane completes "deepfm, $kind" $((workers + 1)) job.yaml --run-dir "deepfm, $kind" --set regions.0.ranks=$((workers + 1)) "${deepfm[@]}"
  same_figures "deepfm, $kind" "deepfm, $kind"
done
check "deepfm: with their AUC" same "$(grep -cE '"auc":0\.[0-9]+' <<<"$wanted")" 1

# ---- a stop, a lost worker ---------------------------------------------------------------------------------------------------------

# An evaluation takes 1.5 s: a whole chunk for each worker, then the rest.
"$GEOTRAIN" data synth stop.h5 --train 960 --test 2100 >/dev/null || fail "data synth stop"
slow=(--set data.path=stop.h5 --set regions.0.ranks=3 --set train.until.steps=3 --set train.optimizer.lr=0.01 --set compute.eval_samples_per_s=700)
completes "undisturbed" 3 job.yaml --run-dir whole "${slow[@]}"
slow+=(--set compute.emulate=true)
# evaluating RUN: waits until the second step is done and the evaluation after it is under way.
evaluating() {
  wait_file "$1/here.jsonl" && sleep 0.6
  check "$1: it evaluates" same "$(grep -c '"event":"eval"' "$1/here.jsonl")" 0
}
start 3 job.yaml --run-dir stopped "${slow[@]}"
evaluating stopped
kill -USR1 "$(rank_pid 2)"
since=$SECONDS
wait_end "stopped" 20
gone "stopped"
ended "stopped" 75 "--resume"
check "stopped: soon" test $((SECONDS - since)) -le 4
completes "stopped: resume" 3 job.yaml --run-dir stopped --resume "${slow[@]}"
check "stopped: the model of a whole run" same "$(field stopped params_sha256)" "$(field whole params_sha256)"
check "stopped: the figures of a whole run" same "$(figures stopped)" "$(figures whole)"

start 3 job.yaml --run-dir lost "${slow[@]}" --set limits.local=4s
evaluating lost
kill -STOP "$(rank_pid 2)"
wait_end "lost" 30
gone "lost"
ended "lost" 5 'limits.local' 'the evaluation by worker 1 of region here'
finish
