# labels: full
# Mistakes that are possible with Slurm: each gives one clear message and the right exit code, and
# nothing hangs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cluster_up
job job.yaml

# refused NAME CODE WORD... -- COMMAND...: the command ends within 60 s with that code and one
# message of geotrain with the words.
refused() {
  local name=$1 want=$2 words=()
  shift 2
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  timeout 60 "$@" >out 2>err </dev/null
  code=$?
  ended "$name" "$want" "${words[@]}"
  check "$name: one message" same "$(grep -c 'geotrain: ' err)" 1
  nothing_runs "$name"
}

world=(srun -w eu1,us1 -N 2 --ntasks-per-node=2)
refused "without PMIx" 2 '4 single processes|4 tasks' 'mpi=pmix' -- "${world[@]}" --mpi=none "$GEOTRAIN" train job.yaml --run-dir a
check "without PMIx: no run directory" test ! -e a
refused "too few tasks" 2 '3 ranks|3 processes' 'needs 4|4 (ranks )?(are|is) needed|4 ranks' -- srun -w eu1,us1 -N 2 -n 3 --mpi=pmix "$GEOTRAIN" train job.yaml --run-dir b
refused "a partition that is not there" 2 'partition nosuch of region east is not known to Slurm, which has all, ap, eu, urgent, us' -- \
  bash "$submit" job.yaml --run-dir c --geotrain "$GEOTRAIN" --set slurm.partition=nosuch
check "a partition that is not there: no run directory" test ! -e c

# A directory that is read-only on one of the nodes.
mkdir ro
on us1 mount --bind "$PWD/ro" "$PWD/ro"
on us1 mount -o remount,bind,ro "$PWD/ro"
# It does not matter which node makes it first.
refused "read-only on one node" 4 'ro/run cannot be (made|written) on us1: Read-only' -- "${world[@]}" --mpi=pmix "$GEOTRAIN" train job.yaml --run-dir ro/run
mkdir ro/there
refused "one that is there" 4 'ro/there cannot be written on us1: Read-only' -- "${world[@]}" --mpi=pmix "$GEOTRAIN" train job.yaml --run-dir ro/there
finish_slurm
