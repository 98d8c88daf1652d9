# processors: 1
# A run directory belongs to one run at a time; the lock of a killed run never blocks the next start.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
long=(--set train.until.steps=2000 --set compute='{step: 20 ms, emulate: true}')

# ---- a live run ---------------------------------------------------------------------------------------------------------------

# begin DIR: a run that lasts 40 s, in the background; waits until its first round.
begin() {
  start 4 job.yaml --run-dir "$1" "${long[@]}"
  wait_round "$1" 1
}

begin live
first=$launcher
pid=$(rank_pid 0)
$MPIRUN -n 4 "$GEOTRAIN" train job.yaml --run-dir live "${long[@]}" "${choices[@]}" --resume >out2 2>err2
check "--resume of a live run: exit 2" same "$?" 2
check "--resume of a live run: says who has it" grep -qE "run directory live is in use by process $pid on .* since 20" err2
check "the live run continues" kill -0 "$first"
for p in $(living); do kill -KILL "$p"; done
wait_end "a killed run" 30
check "its locks stay" test -e live/west.lock -a -e live/east.lock
LIMIT=15 completes "a resume at once" 4 job.yaml --run-dir live --resume "${long[@]}" --set train.until.steps=20
check "no lock stays" same "$(ls live/*.lock 2>/dev/null)" ""

# ---- two runs of one second ----------------------------------------------------------------------------------------------------

rm -rf runs
for seed in 1 2; do
  ($MPIRUN -n 4 "$GEOTRAIN" train job.yaml --set train.until.steps=20 --set seed=$seed "${choices[@]}" >$seed.out 2>$seed.err
  echo $? >$seed.rc) &
done
wait
check "two runs of one second: both end" same "$(cat 1.rc 2.rc | tr '\n' ' ')" "0 0 "
check "in folders of their own" same "$(ls -d runs/*/ | wc -l)" 2
check "with their own jobs" same "$(grep -h '^seed' runs/*/job.yaml | sort | tr '\n' ' ')" "seed: 1 seed: 2 "

# ---- locks of other hosts --------------------------------------------------------------------------------------------------------

lock() { # BEAT [WORDS]: a lock that a process of another host has written
  printf 'beat %020d host elsewhere boot 11111111-2222-3333-4444-555555555555 space pid:[1] pid 7 began 77 job %s since 2026-01-01T00:00:00\n' "$1" "${2:-- restart 0}"
}
rm -rf far
lock 5 'c/42 restart 0' >west.lock
mkdir far && mv west.lock far/
SLURM_CLUSTER_NAME=c SLURM_JOB_ID=42 SLURM_RESTART_COUNT=1 LIMIT=15 train "a requeued job" 4 job.yaml --run-dir far --set train.until.steps=20
ended "a requeued job takes over its own lock" 0
if [ "$full" = yes ]; then
  rm -rf far && mkdir far
  lock 5 >far/west.lock
  LIMIT=60 completes "a lock that nobody counts in" 4 job.yaml --run-dir far --set train.until.steps=20
  rm -rf far && mkdir far
  (for i in $(seq 100); do lock "$i" >far/new && mv far/new far/west.lock && sleep 1; done) &
  counter=$!
  LIMIT=60 train "a lock of a live run elsewhere" 4 job.yaml --run-dir far --set train.until.steps=20
  kill $counter
  ended "a lock of a live run elsewhere" 2 'in use by process 7 on elsewhere since 2026-01-01T00:00:00'
fi
finish
