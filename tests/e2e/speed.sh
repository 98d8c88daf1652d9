# labels: full
# processors: all
# A region or a worker is slowed really (compute.speed, speeds), and compute.emulate makes a step last as long as the job says.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
# Steps of some milliseconds: beside one of 0.3 ms the end of a sleep and other programs count.
few=(--set train.until.steps=200 --set train.batch=128 --set checkpoint=null --set sync.strategy=none)

# train_ms RUN REGION-NUMBER: milliseconds that a mini-batch computes.
train_ms() { sed -n 's/^ *"train_s": \([^,]*\),*$/\1/p' "$1/summary.json" | sed -n "$2p" | awk '{ print 1000 * $1 }'; }
# times A B FACTOR: B is A times FACTOR, or longer by up to a third of it: who slept finds its caches
# cold and its core lent to other programs, and sleeps in proportion to what the step then took.
times() { awk -v a="${1:-0}" -v b="${2:-0}" -v f="$3" 'BEGIN { exit !(a > 0 && b > 0.85 * f * a && b < 1.33 * f * a) }'; }

train "half speed" 4 job.yaml --run-dir half "${few[@]}" --set 'regions.1.compute={speed: 0.5}'
ended "half speed" 0
check "west computes twice as long as east: $(train_ms half 1), $(train_ms half 2) ms" times "$(train_ms half 1)" "$(train_ms half 2)" 2

# A stated step must be longer than what one takes on this machine: three times what it took two
# workers, as three share the cores now, and 12 ms at least.
step=$(awk -v ms="$(train_ms half 1)" 'BEGIN { ms = int(3 * ms + 1); print ms < 12 ? 12 : ms }')
LIMIT=$((60 + 60 * 4 * step / 1000)) train "a stated step" 5 job.yaml --run-dir stated --set train.until.steps=60 --set checkpoint=null \
  --set compute.step="$step ms" --set compute.emulate=true --set regions.1.ranks=3 --set 'regions.1.compute={speeds: [1, 0.25]}'
ended "a stated step" 0
check "east's steps last $step ms: $(train_ms stated 1)" times "$step" "$(train_ms stated 1)" 1
check "west's workers $step and $((4 * step)) ms, $((5 * step / 2)) in the mean: $(train_ms stated 2)" times "$step" "$(train_ms stated 2)" 2.5
finish
