# processors: 1
# slurm/steps: what it leaves of the user's environment, and what it starts.  No Slurm is needed: srun and scontrol are scripts here.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
job job.yaml

mkdir bin
cat >bin/srun <<'SH'
#!/usr/bin/env bash
[ "$1" != --mpi=list ] || { echo pmix; exit 0; }
cp "${SLURM_HOSTFILE:-/dev/null}" seen
exit "${SRUN_ENDS:-0}"
SH
cat >bin/scontrol <<'SH'
#!/usr/bin/env bash
case $* in 'show hostnames'*) printf 'n1\nn2\n' ;; esac
SH
chmod +x bin/*
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=n[1-2]

# steps WORDS...: a batch script's step of job.yaml in the folder run; what it left of SLURM_HOSTFILE is in left.
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
finish
