#!/usr/bin/env bash
# Checks that the optimizer of a run and of its probe is built in one place: only gt_ps_optim_of reads
# the optimizer's settings from the job; otherwise a new setting could be lost silently.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
found=$(grep -rlE '=[^=]*train\.optimizer\.(beta1|beta2|epsilon|nesterov|weight_decay)' src --include='*.c' | grep -v '^src/job/' | LC_ALL=C sort | tr '\n' ' ')
[ "$found" = "src/ps/of_job.c " ] || { echo "the optimizer's settings are taken from the job in: $found; src/ps/of_job.c alone may"; exit 1; }
echo "the optimizer's settings are taken from the job in one place"
