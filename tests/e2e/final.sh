# processors: 1
# The final model: final.h5 has the hash and score of the summary, eval and export find it,
# train.init reads it, and a resume that continues training removes it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sha() { h5dump -d "/model/$2" -b LE -o flat "$1" >/dev/null && sha256sum <flat | cut -d ' ' -f 1; }
scored() { sed -nE 's/^accuracy ([0-9.]+)  loss.*/\1/p' out; }

# told RUN REGION: a region's test accuracy in the summary, to four digits.
told() { sed -nE "/\"name\": \"$2\"/,/\"test_accuracy\"/s/^ *\"test_accuracy\": ([0-9.]+),?/\1/p" "$1/summary.json" | xargs printf '%.4f\n'; }

# plainly NAME WORDS...: geotrain without ranks.
plainly() {
  local name=$1
  shift
  plain "$@"
}

job job.yaml
sed -i 's/strategy: sma, period: 4/strategy: asgd-ga, period: 7/; s/{steps: 60}/{steps: 20}/' job.yaml
start 4 job.yaml --run-dir long --set train.until.steps=1000000
wait_round long 1
plainly "eval before the end" eval long data.h5
ended "eval before the end" 4 'long/final.h5 does not exist.* long holds ckpt/'
kill -USR1 "$launcher"
wait_end "a run that is stopped" 60
gone "a run that is stopped"
completes "a run" 4 job.yaml --run-dir run
check "the file has the summary's hash" same "$(sha run/final.h5 params)" "$(field run params_sha256)"
check "the file says its hash" same "$(attribute run/final.h5 params_sha256)" "$(field run params_sha256)"
check "the file is a mean of two" same "$(attribute run/final.h5 mean_of)" 2
check "nothing else is left" same "$(ls -A run | tr '\n' ' ')" "ckpt east.jsonl final.h5 job.yaml summary.json west.jsonl "
check "no later than the summary" [ ! run/final.h5 -nt run/summary.json ]

plainly "eval RUN_DIR" eval run data.h5
ended "eval RUN_DIR" 0 'the final model, the mean of 2 regions'
check "eval RUN_DIR: the summary's accuracy" same "$(scored)" "$(printf '%.4f' "$(field run test_accuracy)")"
plainly "eval FILE" eval run/final.h5 data.h5
ended "eval FILE" 0 'the mean of 2 regions'
plainly "export RUN_DIR" export run of-run.safetensors
ended "export RUN_DIR" 0 '61706 numbers of lenet5'
plainly "export FILE" export run/final.h5 of-file.safetensors
check "export: the same of both" cmp of-run.safetensors of-file.safetensors
plainly "eval of a region" eval run east data.h5
ended "eval of a region" 4 'run/final-east.h5 does not exist.* run holds final.h5, ckpt/'
plainly "a region of a file" eval run/final.h5 east data.h5
ended "a region of a file" 2 'final.h5 is not a run directory'

completes "from final.h5" 4 job.yaml --run-dir next --set train.init=run/final.h5 --set train.until.steps=1 --set train.optimizer.lr=1e-30
check "from final.h5: begins with it" same "$(sha next/final.h5 params)" "$(field run params_sha256)"

# A resume of a complete run keeps it; one that continues training removes it first.
touch -d '2001-01-01' run/final.h5
GEOTRAIN_FAILPOINT=ckpt.begin train "killed in a resume of what is complete" 4 job.yaml --run-dir run --resume
check "a resume of what is complete: it stays" [ -e run/final.h5 ]
first=$(field run params_sha256)
train "a resume of what is complete" 4 job.yaml --run-dir run --resume
ended "a resume of what is complete" 0 'complete already'
check "a resume of what is complete: the same again" same "$(sha run/final.h5 params)" "$first"
GEOTRAIN_FAILPOINT=ckpt.begin train "killed in a longer run" 4 job.yaml --run-dir run --resume --set train.until.steps=30
check "a longer run: it is gone" [ ! -e run/final.h5 ]
completes "a longer run" 4 job.yaml --run-dir run --resume --set train.until.steps=30
check "a longer run: its own" same "$(sha run/final.h5 params)" "$(field run params_sha256)"

# A kill while models travel to the lead, for 20 s here: training is not repeated, although it was
# shorter than the checkpoints' interval.
alone=(--set sync.strategy=none --set checkpoint.every.steps=1000)
train "undisturbed" 4 job.yaml --run-dir undisturbed "${alone[@]}"
start 4 job.yaml --run-dir travels "${alone[@]}" --set wan.links.0.bandwidth=100kbit/s
wait_round travels 1
check "models travel: the run is not at its end" [ ! -e travels/summary.json ]
for rank in 0 1 2 3; do kill -KILL "$(rank_pid $rank)"; done
wait_end "models travel" 30
train "models travel, resumed" 4 job.yaml --run-dir travels --resume
ended "models travel, resumed" 0 'complete already'
check "models travel, resumed: no step is made again" same "$(grep -c '"event":"eval"' travels/east.jsonl) $(grep '"event":"resumed"' -A 1 travels/east.jsonl | grep -o '"step":20' | tail -n 1)" "0 \"step\":20"
check "models travel, resumed: the same model" same "$(field travels params_sha256)" "$(field undisturbed params_sha256)"

# A kill while it is written: the summary does not name it, and a resume writes it.
rounds=$(rounds run | wc -l)
cp -r run half && rm half/final.h5 half/summary.json
GEOTRAIN_FAILPOINT=ckpt.half:2 train "killed in the file" 4 job.yaml --run-dir half --resume
check "killed in the file: no summary" [ ! -e half/summary.json ]
completes "made again" 4 job.yaml --run-dir half --resume
check "made again: the same" same "$(sha half/final.h5 params)" "$(field run params_sha256)"
check "made again: nothing else is left" same "$(ls -A half | tr '\n' ' ')" "ckpt east.jsonl final.h5 job.yaml summary.json west.jsonl "

sed -e 's/strategy: asgd-ga, period: 7/strategy: none, period: 1/' job.yaml >none.yaml
for clock in real virtual; do
  costs=()
  [ $clock = virtual ] && costs=(--set 'compute.samples_per_s=1500')
  completes "none, $clock" 4 none.yaml --run-dir $clock --clock $clock "${costs[@]}"
  for region in east west; do
    plainly "none, $clock: $region" eval $clock $region data.h5
    ended "none, $clock: $region" 0 "the final model of region $region"
    check "none, $clock: $region's accuracy" same "$(scored)" "$(told $clock $region)"
  done
done
plainly "none: no region named" eval real data.h5
ended "none: no region named" 4 'real/final.h5 does not exist.* real holds final-east.h5, final-west.h5, ckpt/'
finish
