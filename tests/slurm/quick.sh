# processors: 1
# A job of two regions through slurm/submit: the map is right, USR1 leads to a checkpoint, a requeue
# and a resume, and the model is that of an undisturbed run; geotrain watch shows it waiting,
# running and ending.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# clock_of RUN: the plan's time limit in the format of sbatch.
clock_of() { "$GEOTRAIN" info "$1/plan.yaml" --flat | awk -F= '$1 == "slurm.time" { printf "%d-%02d:%02d:%02d", $2 / 86400, $2 % 86400 / 3600, $2 % 3600 / 60, $2 % 60 }'; }
cluster_up
slurm_job job.yaml
sed -i "s/steps: 400/steps: 300/; s/batch: 16/batch: 4/" job.yaml
echo 'log: {every: 300 ms}' >>job.yaml # how often a progress event is recorded, too
undisturbed job.yaml

submitted "one job" job.yaml run --one
"$GEOTRAIN" watch run --progress log >watch.out 2>watch.err &
watcher=$!
wait_rounds "one job" run 3
for _ in $(seq 50); do
  grep -qs '"event":"progress".*"loss":[0-9]' run/east.jsonl && break
  sleep 0.1
done
"$GEOTRAIN" watch run --once >running.out 2>&1
check "watch --once: 0 of a run that continues" same "$?" 0
check "watch --once: says how far it is" grep -qE 'step [1-9].* loss [0-9]' running.out
scancel --signal=USR1 "$id"
wait_job "one job" "$id" 90 run
job_ended "one job" run 0 'requeue'
two_hosts "one job" run
check "one job: requeued once" same "$(show "$id" Restarts)" 1
check "one job: resumed once" same "$(field run resumes)" 1
same_model "one job" run

timeout 30 tail --pid="$watcher" -f /dev/null
kill "$watcher" 2>/dev/null && fail "watch" "it is still there 30 s after the job's end"
wait "$watcher"
check "watch: 0 when the run has ended" same "$?" 0
check "watch: says that the run waits to be resumed" grep -q 'waits to be resumed' watch.out
check "watch: ends with the table" grep -q 'test accuracy' watch.out
"$GEOTRAIN" watch run --once >once.out 2>&1
check "watch --once: 0 of a run that has ended" same "$?" 0
nothing_runs "one job"

# With a plan: ranks that are auto, the time limit, and at the end the predicted and measured
# figures.
sed "s/steps: 300/steps: 40/; s/{name: west, ranks: 2, /{name: west, ranks: auto, devices: [{type: x, count: 1, power: 2000, price: 1}], /" job.yaml >auto.yaml
echo 'compute: {samples_per_s: 2000}' >>auto.yaml
submitted "planned" auto.yaml planned --one --plan --set plan.start=1min
check "planned: the table is shown" grep -q '^choice ' submit.out
check "planned: what is submitted has the plan's time" grep -qx "#SBATCH --time=$(clock_of planned)" planned/sbatch.sh
wait_job "planned" "$id" 60 planned
job_ended "planned" planned 0 '^plan \(geotrain .*predicted and measured:'
check "planned: bytes as predicted" grep -qE '^WAN traffic .* 0 %' planned/slurm.log
nothing_runs "planned"
finish_slurm
