#!/usr/bin/env bash
# Installs, builds, imports and trains: two regions on this machine learn Fashion-MNIST over an
# emulated WAN.
#   bash jobs/quickstart.sh                     a new run under runs/
#   bash jobs/quickstart.sh --resume RUN_DIR    continues a run that was stopped
# Further arguments go to `geotrain train`, for example --set train.until.epochs=5.  Ctrl-C stops the
# run with a checkpoint.  GEOTRAIN_MPI=mpich builds with MPICH, in build/mpich.
set -euo pipefail

GEOTRAIN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
came_from=$PWD
cd "$GEOTRAIN_ROOT"
. jobs/install

case ${1:-} in
  --help | -h)
    sed -n '2,8s/^# \{0,1\}//p' jobs/quickstart.sh
    exit 0
    ;;
esac
if ! mkdir -p build runs datasets 2>/dev/null || [ ! -w build ] || [ ! -w runs ] || [ ! -w datasets ]; then
  echo "geotrain: $GEOTRAIN_ROOT/build cannot be written; expected a checkout that can be: build, runs and datasets are made in it" >&2
  exit 2
fi
run_dir=runs/quickstart-$(date +%Y%m%d-%H%M%S)
resume=()
if [ "${1:-}" = --resume ]; then
  if [ $# -lt 2 ]; then
    echo "geotrain: --resume needs the run directory to continue, as in --resume runs/quickstart-20260101-120000" >&2
    exit 2
  fi
  run_dir=$2
  [ -d "$run_dir" ] || run_dir=$came_from/$2
  [ -d "$run_dir" ] || { echo "geotrain: there is no run directory $2" >&2; exit 2; }
  resume=(--resume)
  shift 2
fi

# Open MPI, or MPICH beside it, with Debian's names.
mpi=() preset=release mpirun=mpirun
case ${GEOTRAIN_MPI:-openmpi} in
  openmpi) ;;
  mpich) mpi=(mpich) preset=mpich mpirun=mpiexec.mpich ;;
  *)
    echo "geotrain: GEOTRAIN_MPI is $GEOTRAIN_MPI; expected openmpi or mpich" >&2
    exit 2
    ;;
esac

data=datasets/fashion-mnist.h5
images=/usr/share/datasets/fashion-mnist
if [ -s "$data" ]; then install_packages ${mpi[@]+"${mpi[@]}"}; else install_packages images ${mpi[@]+"${mpi[@]}"}; fi
if [ ! -s "$data" ] && [ ! -d "$images" ]; then
  echo "geotrain: there are no images in $images (Debian's dataset-fashion-mnist); without that package build first" \
    "(cmake --preset release && cmake --build build/release), then datasets/get fashion-mnist downloads and imports them" >&2
  exit 3
fi

echo "geotrain: building (build/$preset)"
log=build/$preset.log
if ! { cmake --preset "$preset" && cmake --build "build/$preset" --target geotrain; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "geotrain: the build failed; all of its output is in $log" >&2
  exit 1
fi
geotrain=$GEOTRAIN_ROOT/build/$preset/geotrain

if [ ! -s "$data" ]; then
  # The import writes a temporary file first, with its process id in the name: so an existing data set
  # is complete, and the leftover of a stopped import is known.
  trap 'kill "$!" 2>/dev/null; wait "$!" || true; rm -f "${data%/*}/.${data##*/}.tmp-$!-"*; exit 130' INT TERM HUP
  "$geotrain" data import mnist "$images" "$data" &
  wait "$!"
  trap - INT TERM HUP
fi

# One thread per rank: the ranks share the cores of this machine.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# shellcheck disable=SC2046 # one word per line
export $(grep '^[A-Z]' jobs/mpi.env)

# mpirun kills its ranks on INT and TERM, but passes USR1 on, and the ranks then stop with a
# checkpoint.  mpirun runs in its own session (setsid), so Ctrl-C reaches only this script.
stops=0
stop() {
  stops=$((stops + 1))
  local mpirun_pid=${!:-}
  [ -n "$mpirun_pid" ] || exit 130
  if [ "$stops" -eq 1 ]; then
    kill -USR1 "$mpirun_pid" 2>/dev/null || true
    echo "geotrain: stopping with a checkpoint; once more ends the run at once" >&2
  else
    kill -TERM "$mpirun_pid" 2>/dev/null || true
  fi
}
trap stop INT TERM
trap 'exec >/dev/null 2>&1; stop' HUP # the terminal is gone

record() { stat -c '%n %s %Y' "$run_dir"/*.jsonl 2>/dev/null || true; }
before=$(record)
setsid "$mpirun" -n 4 "$geotrain" train jobs/quickstart.yaml --run-dir "$run_dir" \
  ${resume[@]+"${resume[@]}"} "$@" </dev/null &
mpirun_pid=$!

# A trap ends `wait` early; the last `wait` returns the run's own code, which bash remembers.
code=0
while :; do
  code=0
  wait "$mpirun_pid" || code=$?
  kill -0 "$mpirun_pid" 2>/dev/null || break
done
code=0
wait "$mpirun_pid" || code=$?

# After a signal MPICH's launcher may end with 0.
if [ "$stops" -gt 0 ] && [ "$code" -eq 0 ] && tail -qn 3 "$run_dir"/*.jsonl | grep -q '"event":"stopped"'; then code=75; fi

# USR1 ended mpirun, or ranks that were still starting.
if [ "$stops" -gt 0 ] && [ "$code" -eq 138 ] && [ "$(record)" = "$before" ]; then
  echo "geotrain: stopped before the run began; start it with: bash$(printf ' %q' "$0" ${resume[@]+"${resume[@]}" "$run_dir"} "$@")"
  exit 130
fi
again="bash$(printf ' %q' "$0" --resume "$run_dir" "$@")"
if [ "$came_from" != "$GEOTRAIN_ROOT" ] && [ "${run_dir#/}" = "$run_dir" ]; then run_dir=$GEOTRAIN_ROOT/$run_dir; fi
case $code in
  0) echo "geotrain: results are in $run_dir: summary.json, one record a region (*.jsonl), checkpoints (ckpt/)" ;;
  75) echo "geotrain: stopped, the checkpoint is written; continue with: $again" ;;
  *)
    echo "geotrain: the run ended with code $code; what it wrote is in $run_dir" >&2
    if [ -d "$run_dir/ckpt" ]; then echo "geotrain: it continues from its last checkpoint with: $again" >&2; fi
    ;;
esac
exit "$code"
