#!/usr/bin/env bash
# Makes the figures of docs/strategies-results.md again: trains the jobs of four strategies under the
# virtual clock and draws their records with `geotrain report --svg`.
#
#   docs/images/figures.sh BUILD_DIR [RUN_DIR]    needs datasets/fashion-mnist.h5; a few minutes
#
# RUN_DIR keeps the runs: strategies that are there are not trained again.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${1:?a build folder, such as build/release}" && pwd)
runs=$(realpath -m "${2:-$(mktemp -d)}")
cd "$root"
# shellcheck disable=SC2046 # one word per line
export $(grep '^[A-Z]' jobs/mpi.env) OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
strategies=(ssgd sma asgd-ga none)
for strategy in "${strategies[@]}"; do
  [ -e "$runs/$strategy/summary.json" ] && continue
  mpirun -n 4 "$build/geotrain" train "jobs/$strategy-2-regions.yaml" --clock virtual --run-dir "$runs/$strategy" \
    --set train.until.epochs=3 --set train.choices=rule --set train.eval_every.epochs=0.25 --set log.every=1s
done
"$build/geotrain" report "${strategies[@]/#/$runs/}" --out "$runs/report.html" --svg "$runs/figures"
for figure in accuracy-time accuracy-bytes time; do
  cp "$runs/figures/$figure.svg" "docs/images/strategies-$figure.svg"
done
[ -n "${2:-}" ] || rm -rf "$runs"
