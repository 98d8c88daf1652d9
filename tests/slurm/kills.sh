# labels: full
# timeout: 3600
# kill -9 of a rank, of a slurmstepd, of srun: the job ends by its deadline (limits of 15 s, then 7
# s in which srun ends the step, with a margin for a busy machine), none of its processes survives,
# and submitting it again resumes it.  DRILLS: how often each is done (2).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
drills=${DRILLS:-2}
cluster_up KillWait=5
slurm_job job.yaml
sed -i "s/limits: .*/limits: {wan_patience: 15 s, local: 15 s}/" job.yaml
undisturbed job.yaml

# named COMM [NODE]: the first process of that name that belongs to a job, on NODE if given.
named() {
  local p
  for p in $(job_processes); do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || continue
    [ -z "${2:-}" ] || [ "$(nsenter -t "$p" -u hostname 2>/dev/null)" = "$2" ] || continue
    echo "$p" && return
  done
}

# The host of region west, which does not run the batch shell.
far_node() { scontrol show hostnames "$(show "$id" NodeList)" | tail -n 1; }

rank() { # RANK
  local p
  for p in $(living); do grep -qszFx "SLURM_PROCID=$1" "/proc/$p/environ" && echo "$p" && return; done
}

# killed NAME PID-COMMAND...: kills with kill -9 the process whose id the command prints.
killed() {
  local name=$1 n run pid
  shift
  for n in $(seq "$drills"); do
    run=${name// /-}-$n
    submitted "$name $n" job.yaml "$run" --one || continue
    wait_rounds "$name $n" "$run" $((2 + n * 3 % 20)) || continue
    pid=$("$@")
    if [ -z "$pid" ]; then fail "$name $n" "no process to kill"; else kill -KILL "$pid"; fi
    wait_job "$name $n" "$id" 60 "$run"
    check "$name $n: the job does not end well" test "$code" -ne 0
    nothing_runs "$name $n" 30
    check "$name $n: the log says how to go on" grep -q -- '--again' "$run/slurm.log"
    again "$name $n" "$run"
  done
}

again() {
  if ! submits --again "$2"; then
    fail "$1: submitted again" "$(tail -n 5 submit.out)"
    return
  fi
  id=$(awk 'END { print $1 }' "$2/slurm-jobs")
  wait_job "$1 again" "$id" 120 "$2"
  job_ended "$1 again" "$2" 0
  check "$1 again: resumed" test "$(field "$2" resumes)" -ge 1
  same_model "$1 again" "$2"
  nothing_runs "$1 again"
}

far_stepd() { named slurmstepd "$(far_node)"; }
the_srun() { named srun; }

killed "a worker" rank 3
killed "a server" rank 0
killed "a slurmstepd" far_stepd
killed "srun" the_srun
finish_slurm
