# processors: 1
# Signals to the launcher, to one worker, to one PS, to all of them repeatedly, at the start and at
# the end: every rank ends with 75 after a checkpoint, the last line says how to go on, and a resume
# gives the samples and the model of an uninterrupted run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Small batches: the time of a run is that of the WAN, and ranks mostly wait.
job job.yaml
sed -i 's/batch: 16/batch: 4/; s/latency: 1 ms/latency: 10 ms/' job.yaml
steps=(--set train.until.steps=240)
completes "undisturbed" 4 job.yaml --run-dir whole "${steps[@]}"
whole=whole

# stopped NAME RUN PID-COMMAND...: sends $signal (USR1) to the processes that the command prints,
# $times (1) times.
stopped() {
  local name=$1 run=$2 pid
  shift 2
  start 4 job.yaml --run-dir "$run" "${steps[@]}"
  wait_round "$run" 2
  pid=$("$@")
  if [ -z "$pid" ]; then fail "$name" "no process to signal"; fi
  for _ in $(seq "${times:-1}"); do
    # shellcheck disable=SC2086
    kill "-${signal:-USR1}" $pid 2>/dev/null
    sleep 0.02
  done
  wait_end "$name" 60
  gone "$name"
  if [ "$1" = the_launcher ] && [ "$open_mpi" = yes ] && [ "${signal:-USR1}" != USR1 ]; then
    ended "$name" 1 "SIGTERM: the run stops with a checkpoint; .* --run-dir $run --resume=auto"
    # mpirun may add lines of its own: that a rank has ended with 75.
    check "$name: geotrain's last line says how to go on" grep -q -- "--run-dir $run --resume" <(grep '^geotrain: ' err | tail -n 1)
  else
    ended "$name" 75 "--resume"
  fi
  check "$name: no summary yet" test ! -e "$run/summary.json"
  completes "$name: resume" 4 job.yaml --run-dir "$run" --resume "${steps[@]}"
  check "$name: samples of a whole run" same "$(field "$run" samples)" "$(field $whole samples)"
  check "$name: model of a whole run" same "$(field "$run" params_sha256)" "$(field $whole params_sha256)"
}

the_launcher() { echo "$launcher"; }
# Open MPI's mpirun passes USR1 on; after TERM, INT and HUP it gives the ranks a second, and ends with
# 1 whatever they return.
open_mpi=no
"${MPIRUN%% *}" --version 2>/dev/null | grep -qE "Open MPI|OpenRTE" && open_mpi=yes
stopped "USR1 to the launcher" a the_launcher
# Until mpirun has told the ranks of these, a short run may be over.
short=("${steps[@]}")
steps=(--set train.until.steps=1200)
completes "undisturbed, longer" 4 job.yaml --run-dir longer "${steps[@]}"
whole=longer
signal=TERM stopped "TERM to the launcher" f the_launcher
if [ $full = yes ]; then
  signal=HUP stopped "HUP to the launcher" l the_launcher
  signal=INT stopped "INT to the launcher" m the_launcher
fi
steps=("${short[@]}") whole=whole
signal=HUP stopped "HUP to all ranks" n living
if [ $full = yes ]; then
  stopped "USR1 to a worker" b rank_pid 3
  stopped "USR1 to a PS" c rank_pid 2
  times=5 stopped "USR1 to all ranks five times" g living
fi
times=2 signal=TERM stopped "TERM to all ranks twice" h living

# again NAME RUN: a run that was stopped before or after training is started or finished by
# --resume=auto, and equals an uninterrupted run.
again() {
  completes "$1: again" 4 job.yaml --run-dir "$2" --resume=auto "${steps[@]}"
  check "$1: model of a whole run" same "$(field "$2" params_sha256)" "$(field whole params_sha256)"
}

four_living() {
  for _ in $(seq 400); do
    [ "$(living | wc -l)" -eq 4 ] && return 0
    pause 0.01
  done
  return 1
}

# Before a process handles signals, a signal ends it like any process; afterwards the run starts,
# and is stopped with a checkpoint.
if [ $full = yes ]; then
  start 4 job.yaml --run-dir i "${steps[@]}"
  check "TERM at the start: four ranks" four_living
  kill -TERM $(living)
  wait_end "TERM at the start" 30
  gone "TERM at the start"
  check "TERM at the start: not 0" test "$code" -ne 0
  again "TERM at the start" i
fi

start 4 job.yaml --run-dir j "${steps[@]}"
wait_file err # the map of ranks: MPI is up, data and model are not
kill -TERM $(living)
wait_end "TERM during setup" 30
gone "TERM during setup"
ended "TERM during setup" 75 "--resume"
again "TERM during setup" j

# At the end, a region with nothing left to train ends the run, or stops with the others, and then
# little is left to do.
start 4 job.yaml --run-dir k "${steps[@]}"
for _ in $(seq 1200); do
  grep -q '"done"' k/east.jsonl 2>/dev/null && break
  pause 0.05
done
kill -USR1 $(living) 2>/dev/null
wait_end "USR1 at the end" 30
gone "USR1 at the end"
check "USR1 at the end: 0 or 75" test "$code" -eq 0 -o "$code" -eq 75
again "USR1 at the end" k

# The same in a region whose PS only waits for others: with asynchronous planes bits are not
# compared, but every sample is trained on once.
sed -e 's/local: sync, strategy: sma/local: async, strategy: asgd-ga/' -e 's/{steps: 60}/{epochs: 8}/' -e 's/batch: 4/batch: 8/' job.yaml >async.yaml
start 4 async.yaml --run-dir d
wait_round d 2
kill -USR1 "$(rank_pid 1)"
wait_end "async" 60
gone "async"
ended "async: USR1 to a worker" 75
completes "async: resume" 4 async.yaml --run-dir d --resume
check "async: every sample was seen" same "$(field d samples)" 32000

# Messages of 2 s each are queued for a slow link: after the stop they are not needed, and no rank
# waits for them.
start 4 job.yaml --run-dir backlog --set sync.strategy=asgd --set 'wan.links=[{between: [east, west], bandwidth: 1 Mbit/s, latency: 1 ms}]' \
  --set wan.outbox=4 --set limits.local=4s --set checkpoint.every=null
wait_file backlog/east.jsonl
sleep 1
kill -USR1 "$launcher"
wait_end "with a backlog" 25
gone "with a backlog"
ended "with a backlog" 75

# Workers in the middle of a long batch, whose gradients are sent as messages (regions of several
# nodes): no rank waits for a push that is not received.
export GEOTRAIN_LOCAL_PLANE=messages
start 4 job.yaml --run-dir e --set train.batch=250 --set train.kernels=ref --set train.until.steps=1000
wait_file e/east.jsonl
sleep 0.5
kill -USR1 "$launcher"
wait_end "in the middle of a batch" 25
gone "in the middle of a batch"
ended "in the middle of a batch" 75
finish
