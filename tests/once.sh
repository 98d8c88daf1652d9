#!/usr/bin/env bash
# What a run and its probe must have alike is built in one place: the optimizer's settings are taken
# from the job by gt_ps_optim_of alone, or a new one would be lost on the way without a word.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
found=$(grep -rlE '=[^=]*train\.optimizer\.(beta1|beta2|epsilon|nesterov|weight_decay)' src --include='*.c' | grep -v '^src/job/' | LC_ALL=C sort | tr '\n' ' ')
[ "$found" = "src/ps/of_job.c " ] || { echo "the optimizer's settings are taken from the job in: $found; src/ps/of_job.c alone may"; exit 1; }
echo "the optimizer's settings are taken from the job in one place"
