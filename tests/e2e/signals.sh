# labels: quick
# SIGUSR1 to the launcher, to one worker, to one PS: every rank ends with 75 after a checkpoint, and a resume makes the samples and the model of a whole run.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
steps=(--set train.until.steps=400)
train "undisturbed" 4 job.yaml --run-dir whole "${steps[@]}"
ended "undisturbed" 0
sha=$(field whole params_sha256)

# stopped NAME RUN PID-COMMAND...: sends USR1 to the process that the command prints.
stopped() {
  local name=$1 run=$2 pid
  shift 2
  start 4 job.yaml --run-dir "$run" "${steps[@]}"
  wait_round "$run" 2
  pid=$("$@")
  if [ -z "$pid" ]; then fail "$name" "no process to signal"; else kill -USR1 "$pid"; fi
  wait_end "$name" 20
  gone "$name"
  ended "$name" 75 "--resume"
  check "$name: no summary yet" test ! -e "$run/summary.json"
  train "$name: resume" 4 job.yaml --run-dir "$run" --resume "${steps[@]}"
  ended "$name: resume" 0
  check "$name: samples of a whole run" same "$(field "$run" samples)" "$(field whole samples)"
  check "$name: model of a whole run" same "$(field "$run" params_sha256)" "$sha"
}

the_launcher() { echo "$launcher"; }
stopped "USR1 to the launcher" a the_launcher
stopped "USR1 to a worker" b rank_pid 3
stopped "USR1 to a PS" c rank_pid 2

# The same in a region whose PS waits only for others: asynchronous planes, no bits to compare, but every sample once.
sed -e 's/local: sync, strategy: sma/local: async, strategy: asgd-ga/' -e 's/{steps: 60}/{epochs: 3}/' job.yaml >async.yaml
start 4 async.yaml --run-dir d
wait_round d 2
kill -USR1 "$(rank_pid 1)"
wait_end "async" 20
gone "async"
ended "async: USR1 to a worker" 75
train "async: resume" 4 async.yaml --run-dir d --resume
ended "async: resume" 0
check "async: every sample was seen" same "$(field d samples)" 12000

# SIGTERM: the launcher gives the ranks little time, so a checkpoint is tried and not promised; nobody stays and the run goes on.
start 4 async.yaml --run-dir f
wait_round f 2
kill -TERM "$launcher"
wait_end "TERM to the launcher" 20
gone "TERM to the launcher"
check "TERM to the launcher: not 0" test "$code" -ne 0
train "TERM: resume" 4 async.yaml --run-dir f --resume
ended "TERM: resume" 0
check "TERM: every sample was seen" same "$(field f samples)" 12000

# Workers in the middle of a long batch, whose gradients travel as messages (regions of several nodes): nobody waits for a push that is not taken.
export GEOTRAIN_LOCAL_PLANE=messages
start 4 job.yaml --run-dir e --set train.batch=250 --set train.kernels=ref --set train.until.steps=1000
wait_file e/east.jsonl
sleep 0.5
kill -USR1 "$launcher"
wait_end "in the middle of a batch" 25
gone "in the middle of a batch"
ended "in the middle of a batch" 75
finish
