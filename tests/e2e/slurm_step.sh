# processors: 1
# slurm/steps: how it treats the user's environment, and what it starts.  No Slurm is needed: srun
# and scontrol are scripts here.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
data_train=400
job job.yaml

mkdir bin
cat >bin/srun <<'SH'
#!/usr/bin/env bash
[ "$1" != --mpi=list ] || { echo pmix; exit 0; }
cp "${SLURM_HOSTFILE:-/dev/null}" seen
echo "${SLURM_EXPORT_ENV-}" >export
[ -z "${SRUN_RECORDS:-}" ] || echo "$SRUN_RECORDS" >>run/east.jsonl
while [ -n "${SRUN_AFTER-}" ] && ! grep -q "$SRUN_AFTER" err; do sleep 0.1; done
exit "${SRUN_ENDS:-0}"
SH
cat >bin/scontrol <<'SH'
#!/usr/bin/env bash
case $* in 'show hostnames'*) printf 'n1\nn2\n' ;; esac
SH
printf '#!/bin/sh\necho "$*" >>"$ASKED"\necho 9\n' >bin/sbatch
printf '#!/bin/sh\necho "$*" >>"$CANCELLED"\n' >bin/scancel
chmod +x bin/*
export ASKED=$PWD/asked CANCELLED=$PWD/cancelled
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=n[1-2]

# steps WORDS...: the step of a batch script for job.yaml in the folder run; left has the
# SLURM_HOSTFILE that remains.
steps() {
  mkdir -p run
  bash -c '. "$GEOTRAIN_SOURCE/slurm/steps"; geotrain_step job.yaml run "$@"; code=$?; echo "${SLURM_HOSTFILE-}" >left; exit $code' - "$@" >out 2>err </dev/null
  code=$?
}

# ---- $SLURM_HOSTFILE: the user's stays, one of slurm/steps goes --------------------------------------------------------------------
export TMPDIR=$PWD/tmp
mkdir tmp
echo mine >hosts
export SLURM_HOSTFILE=$PWD/hosts
steps
ended "a host file of the user" 0
check "a host file of the user stays" same "$(cat hosts 2>&1)" mine
steps --set regions.0.slurm.nodes=1 --set regions.1.slurm.nodes=1
ended "nodes of their own" 0
check "nodes of their own: srun is told hosts" same "$(paste -sd' ' seen)" "n1 n1 n2 n2"
check "nodes of their own: the user's host file stays" same "$(cat hosts 2>&1) $(cat left)" "mine $PWD/hosts"
check "nodes of their own: nothing is left" same "$(ls tmp)" ""

# ---- slurm.mpi: mpirun, in the words of whose it is ----------------------------------------------
cat >bin/mpirun <<'SH'
#!/usr/bin/env bash
[ "$1" != --version ] || { echo "$MPIRUN_IS"; exit 0; }
printf '%s\n' "mpirun $*" | sed "s|$GEOTRAIN|geotrain|g" >words
SH
chmod +x bin/mpirun
apart=(--set regions.0.slurm.nodes=1 --set regions.1.slurm.nodes=1)
# by NAME VERSION WORDS: the options that tell mpirun the regions' hosts.
by() {
  MPIRUN_IS=$2 steps --set slurm.mpi=mpirun "${apart[@]}"
  ended "mpirun of $1" 0
  check "mpirun of $1: its words" same "$(sed -E 's/ train job.yaml [^:]*( :|$)/\1/g' words)" "$3"
}
by 'Open MPI' 'mpirun (Open MPI) 4.1.4' \
  'mpirun --map-by slot --bind-to none -n 2 --host n1:2 -x GEOTRAIN_REGION=east geotrain : -n 2 --host n2:2 -x GEOTRAIN_REGION=west geotrain'
by MPICH 'HYDRA build details:' 'mpirun -n 2 -host n1 -env GEOTRAIN_REGION east geotrain : -n 2 -host n2 -env GEOTRAIN_REGION west geotrain'
by 'Intel MPI' 'Intel(R) MPI Library for Linux* OS, Version 2021.13' \
  'mpirun -n 2 -host n1 -env GEOTRAIN_REGION east geotrain : -n 2 -host n2 -env GEOTRAIN_REGION west geotrain'

# ---- a step that ends while a signal waits for its ranks ---------------------------------------------------------------------------------
mkdir -p run
rm -f seen
SRUN_AFTER='USR1 came' SRUN_ENDS=3 bash -c '. "$GEOTRAIN_SOURCE/slurm/steps"; (until [ -e seen ]; do sleep 0.1; done; kill -USR1 $$) & geotrain_step job.yaml run' >out 2>err
code=$?
ended "a step that ends beside a signal" 3 'USR1 came' 'a data set cannot be used'

# ---- sbatch --export=NONE: the ranks have what slurm/steps sets, and the next job of a chain its number -----------------------------------
SLURM_EXPORT_ENV=NONE steps
ended "--export=NONE" 0
check "--export=NONE is not for the ranks" same "$(cat export)" ""
mkdir top
ln -s "$GEOTRAIN_SOURCE/slurm" "$GEOTRAIN_SOURCE/jobs" top/
link() { # NUMBER: slurm/chain.sbatch as this job of the chain
  rm -f asked
  (unset GEOTRAIN_LINK; SLURM_SUBMIT_DIR=$PWD/top bash "$GEOTRAIN_SOURCE/slurm/chain.sbatch" "$@") >out 2>err
  code=$?
}
link
ended "the first of slurm/chain.sbatch" 0
check "the first of slurm/chain.sbatch numbers the next" same "$(cat asked)" "--parsable --dependency=afterany:1 slurm/chain.sbatch 2"
link 20
check "the last of slurm/chain.sbatch submits none" test ! -e asked

# ---- srun crashes at the end of a heterogeneous step: the run's files tell how it ended ------------
export GEOTRAIN_REQUEUE=no
stopped='{"event":"stopped","code":75}'
# crashed NAME SRUN-ENDS RECORD CODE WORDS
crashed() {
  SRUN_ENDS=$2 SRUN_RECORDS=$3 SLURM_HET_SIZE=2 SLURM_NTASKS_HET_GROUP_0=2 SLURM_NTASKS_HET_GROUP_1=2 steps
  ended "$1" "$4" "$5"
}
for ends in 134 137 139; do
  crashed "srun ends with $ends after a stop" $ends "$stopped" 75 'the checkpoint is written'
  crashed "srun ends with $ends before an end" $ends '' $ends "ended with code $ends"
done
SRUN_ENDS=0 SRUN_RECORDS=$stopped steps
ended "a launcher that ends with 0 after a stop" 75 'the checkpoint is written'
unset GEOTRAIN_REQUEUE

# ---- a busy slurmctld is not a job that is gone ----------------------------------------------------
cp bin/scontrol scontrol
cat >bin/scontrol <<'SH'
#!/usr/bin/env bash
echo "$*" >>"$CONTROL"
[ "$(wc -l <"$CONTROL")" -gt "${BUSY:-0}" ] || { echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2; exit 1; }
case $* in '-o show job'*) echo 'JobId=1 JobState=RUNNING Requeue=1' ;; esac
SH
export CONTROL=$PWD/control GEOTRAIN_ASK_PAUSE=0
for busy in 0 3 9; do
  rm -f control
  BUSY=$busy bash -c '. "$GEOTRAIN_SOURCE/slurm/steps"; geotrain_lead=/dev/null geotrain_how=stopped; geotrain_requeue .' >out 2>err
  code=$?
  if [ $busy = 9 ]; then
    ended "busy $busy times" 0 'scontrol was asked five times: .*timed out' 'is not requeued, because Slurm does not answer'
  else
    ended "busy $busy times" 0 'stopped; the job is requeued'
    check "busy $busy times: requeued" same "$(tail -n 1 control)" 'requeue 1'
  fi
done
mv scontrol bin/scontrol

# ---- slurm/submit --chain: what another attempt would not change is the last of it ------------------------------------------------------
"$GEOTRAIN_SOURCE/slurm/submit" --geotrain "$GEOTRAIN" job.yaml --chain 3 --run-dir "$PWD/chain" --dry-run >chain.sbatch 2>err
mkdir chain
cp job.yaml chain/submitted.yaml
printf '%s 0\n' 5 1 2 3 >chain/slurm-jobs
for ends in 0 1 2 3 4 6 5 75 137; do
  rm -f cancelled
  SRUN_ENDS=$ends bash chain.sbatch >out 2>err
  code=$?
  case $ends in 5 | 75 | 137) rest= ;; *) rest='2 3' ;; esac
  ended "a chain whose job ends with $ends" "$ends"
  check "a chain whose job ends with $ends: what it cancels" same "$(cat cancelled 2>/dev/null)" "$rest"
done
finish
