# Shared by the scripts on a private Slurm, in addition to tests/e2e/lib.sh: the cluster, waiting
# for jobs, and an end that checks that nothing of it is left.  The scripts call cluster_up first
# and end with `finish_slurm`; exit code 77 means that a script could not run, which CTest reports
# as skipped.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
submit=$GEOTRAIN_SOURCE/slurm/submit
cluster='' # its directory, short because sockets lie in it
id=''      # the job that was submitted last
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

# cluster_up [KEY=VALUE]...: as tests/slurm/cluster start.
cluster_up() {
  local told
  cluster=$(mktemp -d /tmp/geotrain-slurm-XXXXXX)
  told=$("$here/cluster" start "$cluster" "$@" 2>cluster.err)
  code=$?
  if [ "$code" -eq 77 ]; then
    skip "a private Slurm" "$(cat cluster.err)"
    rm -rf "$cluster"
    cluster=
    exit 77
  fi
  [ "$code" -eq 0 ] || { fail "the cluster starts" "$(cat cluster.err)" && keep_logs && finish; }
  eval "$told"
  export SLURM_PMIX_FENCE=ring # for srun by hand; slurm/steps says why
  ok "the cluster is up"
}

keep_logs() {
  mkdir -p cluster-logs
  cp "$cluster"/*/*.log "$cluster/slurm.conf" cluster-logs/ 2>/dev/null
  for host in ctl eu1 us1 ap1; do cp "$cluster/$host/slurmd.log" "cluster-logs/$host.log" 2>/dev/null; done
}

cluster_down() {
  [ -n "$cluster" ] || return 0
  "$here/cluster" stop "$cluster" >cluster.err 2>&1 || fail "the cluster stops" "$(cat cluster.err)"
  [ "$failures" -eq 0 ] || keep_logs
  rm -rf "$cluster"
  cluster=
}

end_slurm() {
  cluster_down
  at_exit
}
trap end_slurm EXIT
trap 'exit 143' TERM INT

# The end of a script, with checks that nothing is left.
finish_slurm() {
  local token left
  token=$(cat "$cluster/token")
  cluster_down
  left=$(grep -lsF "/hosts-$token " /proc/[0-9]*/mountinfo)
  check "nothing of the cluster is left" same "$left" ""
  check "no rank is left" same "$(living)" ""
  finish
}

# ---- nodes ------------------------------------------------------------------------------------------------------------------------

# on NODE COMMAND...: runs COMMAND where that node's steps run.
on() {
  local pid
  pid=$(awk -v node="$1" '$1 == node { print $2 }' "$cluster/nodes")
  shift
  nsenter -t "$pid" -m -u -- "$@"
}

# Process ids of the jobs on the nodes (steps, batch shells, srun, ranks), without the daemons.
job_processes() {
  local file p
  grep -lsF "/hosts-$(cat "$cluster/token") " /proc/[0-9]*/mountinfo | while read -r file; do
    p=${file#/proc/} p=${p%/mountinfo}
    grep -qs '^State:	Z' "/proc/$p/status" && continue
    case $(cat "/proc/$p/comm" 2>/dev/null) in munged | slurmctld | slurmscriptd | slurmd | '') ;; *) echo "$p" ;; esac
  done
}

# nothing_runs NAME [SECONDS]: no process of a job is left on any node.
nothing_runs() {
  local end=$((SECONDS + ${2:-20})) p left=''
  while [ "$SECONDS" -lt "$end" ]; do
    [ -z "$(job_processes)" ] && return 0
    sleep 0.2
  done
  for p in $(job_processes); do left+="$p $(tr '\0' ' ' <"/proc/$p/cmdline" | cut -c 1-80); "; done
  fail "$1: no process left" "$left"
  # shellcheck disable=SC2046
  kill -KILL $(job_processes) 2>/dev/null
}

# ---- jobs -------------------------------------------------------------------------------------------------------------------------

# field RUN KEY: a field of the summary of a run, if there is one.
field() { [ -e "$1/summary.json" ] && sed -nE 's/^ *"'"$2"'": "?([^",]*)"?,?$/\1/p' "$1/summary.json" | head -n 1; }

# show ID KEY: a field of `scontrol show job`, of the first of its components.
show() { scontrol -o show job "$1" 2>/dev/null | head -n 1 | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }

# slurm/submit in the environment of a user; its output is in submit.out.
submits() { env -u SLURM_PMIX_FENCE bash "$submit" "$@" >submit.out 2>&1; }

# submitted NAME JOB RUN WORDS...: slurm/submit with these arguments; the job's id is in $id.
submitted() {
  local name=$1 job=$2 run=$3
  shift 3
  id=
  if ! submits "$job" --run-dir "$run" --geotrain "$GEOTRAIN" "$@"; then
    fail "$name: submitted" "$(tail -n 5 submit.out)"
    return 1
  fi
  id=$(awk 'END { print $1 }' "$run/slurm-jobs")
  [ -n "$id" ] || { fail "$name: $run/slurm-jobs names the job" "$(tail -n 5 submit.out)" && return 1; }
}

log_end() { tail -n "${2:-6}" "$1/slurm.log" 2>/dev/null | cut -c 1-300; }

# wait_job NAME ID SECONDS RUN: waits until the job and all its components have ended; its exit code
# is in $code.
wait_job() {
  local end=$((SECONDS + $3)) states ended=0
  while [ "$SECONDS" -lt "$end" ]; do
    states=$(scontrol -o show job "$2" 2>/dev/null | grep -oE 'JobState=[A-Z_]+' | sort -u | tr '\n' ' ')
    case $states in
      *PENDING* | *RUNNING* | *COMPLETING* | *REQUEUE* | *SUSPENDED* | *CONFIGURING* | *PREEMPTED* | '') ended=0 ;;
      *) ended=$((ended + 1)) ;; # for a moment also while a job is requeued
    esac
    if [ $ended -ge 4 ]; then
      code=$(show "$2" ExitCode)
      code=${code%%:*}
      return 0
    fi
    sleep 0.2
  done
  fail "$1: ends" "it is still ${states:-unknown} after $3 s: $(show "$2" Reason); $(log_end "$4")"
  scancel "$2" 2>/dev/null
  scancel -s KILL "$2" 2>/dev/null
  code=-1
  return 1
}

# wait_rounds NAME RUN ROUND: waits for a whole round that is at least as new as ROUND, while the
# job runs.
wait_rounds() {
  local end=$((SECONDS + 60)) newest
  while [ "$SECONDS" -lt "$end" ]; do
    newest=$(newest_round "$2")
    [ -n "$newest" ] && [ "$newest" -ge "$3" ] && [ "$(find "$2/ckpt/$newest" -name '*.h5' 2>/dev/null | wc -l)" -ge 2 ] && return 0
    sleep 0.05
  done
  fail "$1: round $3" "it did not come in 60 s; the job is $(show "$id" JobState); $(log_end "$2")"
  return 1
}

# job_ended NAME RUN CODE WORD...: the last job ended with this code, its log has these words, and
# there is no fault of geotrain.
job_ended() {
  local name=$1 run=$2 want=$3
  shift 3
  cp "$run/slurm.log" out 2>/dev/null
  : >err
  grep -E '^(slurmstepd|srun|geotrain)' out | tail -n 12 >err
  ended "$name" "$want" "$@"
}

# region_on LOG REGION: the hosts of a region in the last map in the log.
region_on() { sed -nE "s/^region $2: ranks .* on ([^ ]+)\$/\1/p" "$1" | tail -n 1; }

# ---- what is trained --------------------------------------------------------------------------------------------------------------

# slurm_job FILE: the job of tests/e2e/lib.sh over a WAN of 20 ms, so that 400 steps take at least 4
# s on any machine, with a partition and a node for each region.
slurm_job() {
  job "$1"
  sed -i 's/steps: 60/steps: 400/; s/latency: 1 ms/latency: 20 ms/' "$1"
  sed -i 's/{name: east, ranks: 2}/{name: east, ranks: 2, slurm: {partition: eu, nodes: 1}}/; s/{name: west, ranks: 2}/{name: west, ranks: 2, slurm: {partition: us, nodes: 1}}/' "$1"
  echo 'slurm: {partition: all}' >>"$1"
}

# undisturbed JOB [RANKS]: a run without Slurm for comparison; the emulated WAN changes only times.
# Its hash is in $sha.
undisturbed() {
  rm -rf whole
  train "undisturbed" "${2:-4}" "$1" --run-dir whole --set wan.emulate=false
  ended "undisturbed" 0
  sha=$(field whole params_sha256)
  [ -n "$sha" ] || { fail "undisturbed" "no hash to compare with" && finish_slurm; }
}

# same_model NAME RUN: the run ended with the model of the undisturbed run.
same_model() { check "$1: the model of an undisturbed run" same "$(field "$2" params_sha256)" "$sha"; }

# two_hosts NAME RUN: the last map in the log has one host per region, and they differ.
two_hosts() {
  local east west
  east=$(region_on "$2/slurm.log" east) west=$(region_on "$2/slurm.log" west)
  if [[ $east =~ ^(eu1|us1|ap1)$ && $west =~ ^(eu1|us1|ap1)$ && $east != "$west" ]]; then
    ok "$1: region east on $east, west on $west"
  else
    fail "$1: a host a region" "$(grep '^region' "$2/slurm.log" | tail -n 2)"
  fi
}
