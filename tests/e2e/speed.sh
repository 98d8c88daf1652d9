# labels: full
# processors: all
# compute.speed and speeds really slow a region or a worker, and compute.emulate makes a step last
# as long as the job says.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
# Steps of some milliseconds, because with 0.3 ms the end of a sleep and other programs matter.
few=(--set train.until.steps=200 --set train.batch=128 --set checkpoint=null --set sync.strategy=none)

# train_ms RUN REGION-NUMBER: milliseconds of computing per mini-batch.
train_ms() { sed -n 's/^ *"train_s": \([^,]*\),*$/\1/p' "$1/summary.json" | sed -n "$2p" | awk '{ print 1000 * $1 }'; }
# times A B FACTOR: B is A times FACTOR, or longer by up to a third: after a sleep, caches are cold
# and other programs have used the core, and the sleep is in proportion to the time of the step.
times() { awk -v a="${1:-0}" -v b="${2:-0}" -v f="$3" 'BEGIN { exit !(a > 0 && b > 0.85 * f * a && b < 1.33 * f * a) }'; }

# Other programs of the host may slow a core: the measurement is repeated up to twice.
for attempt in 1 2 3; do
  rm -rf half
  completes "half speed" 4 job.yaml --run-dir half "${few[@]}" --set 'regions.1.compute={speed: 0.5}'
  times "$(train_ms half 1)" "$(train_ms half 2)" 2 && break
done
check "west computes twice as long as east: $(train_ms half 1), $(train_ms half 2) ms" times "$(train_ms half 1)" "$(train_ms half 2)" 2

# A given step must be longer than a real one on this machine: three times that with two workers,
# because now three share the cores, and at least 12 ms.
step=$(awk -v ms="$(train_ms half 1)" 'BEGIN { ms = int(3 * ms + 1); print ms < 12 ? 12 : ms }')
for attempt in 1 2 3; do
  rm -rf stated
  LIMIT=$((60 + 60 * 4 * step / 1000)) train "a stated step" 5 job.yaml --run-dir stated --set train.until.steps=60 --set checkpoint=null \
    --set compute.step="$step ms" --set compute.emulate=true --set regions.1.ranks=3 --set 'regions.1.compute={speeds: [1, 0.25]}'
  ended "a stated step" 0
  times "$step" "$(train_ms stated 1)" 1 && times "$step" "$(train_ms stated 2)" 2.5 && break
done
check "east's steps last $step ms: $(train_ms stated 1)" times "$step" "$(train_ms stated 1)" 1
check "west's workers $step and $((4 * step)) ms, $((5 * step / 2)) in the mean: $(train_ms stated 2)" times "$step" "$(train_ms stated 2)" 2.5
finish
