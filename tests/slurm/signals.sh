# labels: full
# timeout: 3600
# A job that is interrupted in any way resumes by itself and ends with the model of an undisturbed
# run.  DRILLS: how often each is done (2).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
drills=${DRILLS:-2}
cluster_up PreemptType=preempt/partition_prio PreemptMode=REQUEUE
slurm_job job.yaml
undisturbed job.yaml

# drill NAME COMMAND...: a running job ($form of $job) is disturbed by COMMAND, at a different round
# each time.
job=job.yaml form=--one
drill() {
  local name=$1 run n
  shift
  for n in $(seq "$drills"); do
    run=${name// /-}-$n
    submitted "$name $n" "$job" "$run" "$form" || continue
    wait_rounds "$name $n" "$run" $((2 + n * 3 % 20)) && "$@"
    wait_job "$name $n" "$id" 150 "$run"
    resumed "$name $n" "$run"
  done
}

# resumed NAME RUN: the last job ended well after at least one requeue, from a round and not from
# the start.
resumed() {
  local again
  job_ended "$1" "$2" 0
  again=$(show "$id" Restarts)
  check "$1: requeued (${again:-0} times)" test "${again:-0}" -ge 1
  check "$1: resumed from a round" test "$(field "$2" resumes)" -ge 1
  two_hosts "$1" "$2"
  same_model "$1" "$2"
  nothing_runs "$1"
}

usr1() { scancel --signal=USR1 "$id"; }
term() { scancel --signal=TERM "$id"; }
batch_usr1() { scancel --batch --signal=USR1 "$id"; }
batch_term() { scancel --batch --signal=TERM "$id"; }
requeue() { scontrol requeue "$id"; }

# The last node of the job, which does not run the batch shell, goes down and comes back when the
# job has left it.
node_down() {
  local node i
  node=$(scontrol show hostnames "$(show "$id" NodeList)" | tail -n 1)
  scontrol update nodename="$node" state=down reason=drill
  for i in $(seq 100); do
    [ "$(show "$id" JobState)" != RUNNING ] && break
    sleep 0.1
  done
  scontrol update nodename="$node" state=resume
}

# A job of a partition with a higher priority takes all nodes for a while.
preempt() { sbatch --parsable -p urgent -N 3 --exclusive -o /dev/null --wrap 'sleep 2' >/dev/null; }

drill "USR1 to the step" usr1
drill "TERM to the step" term
drill "USR1 to the batch shell" batch_usr1
drill "TERM to the batch shell" batch_term
drill "requeue" requeue
drill "node down" node_down
drill "pre-empted" preempt

# Each region is a component.
sed 's/, nodes: 1//' job.yaml >het.yaml
job=het.yaml form=--het
drill "USR1 to a heterogeneous step" usr1
drill "USR1 to the first component's batch shell" batch_usr1

# A signal directly to ranks that are still starting: it must wait for them.  Slurm lists a step
# before it has ranks, and a signal to a step without ranks is lost.
rank_is_there() {
  local p
  for p in $(job_processes); do
    tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q '^[^ ]*geotrain train ' && return
  done
  return 1
}
for n in $(seq "$drills"); do
  submitted "early USR1 $n" job.yaml "early-$n" --one || continue
  until rank_is_there || [ -e "early-$n/summary.json" ]; do sleep 0.02; done
  usr1
  wait_job "early USR1 $n" "$id" 150 "early-$n"
  job_ended "early USR1 $n" "early-$n" 0
  check "early USR1 $n: requeued" test "$(show "$id" Restarts)" -ge 1
  same_model "early USR1 $n" "early-$n"
done

# A time limit.  Slurm's smallest is a minute, and Slurm checks limits every 30 s: with 50 s of
# warning the signal comes within the first 30 s, so the job must run longer than that: links of 300
# ms make 600 steps take at least 45 s.
sed -e 's/steps: 400/steps: 600/; s/latency: 20 ms/latency: 300 ms/' job.yaml >limit.yaml
undisturbed limit.yaml
for n in $(seq "$drills"); do
  submitted "time limit $n" limit.yaml "limit-$n" --one --set "slurm.time=1 min" --set "slurm.signal_before=50 s" || continue
  wait_job "time limit $n" "$id" 300 "limit-$n"
  resumed "time limit $n" "limit-$n"
done
finish_slurm
