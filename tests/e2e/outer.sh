# processors: 1
# sync.outer: the same model with the real and the virtual clock and after a resume; another one than
# without it; one region alone; strategies that have none.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
outer=(--set sync.strategy=sma --set sync.outer.name=nesterov --set sync.outer.lr=0.7 --set sync.outer.momentum=0.5)
completes "real clock" 4 job.yaml --run-dir real "${outer[@]}"
completes "virtual clock" 4 job.yaml --run-dir virtual "${outer[@]}" --clock virtual --set compute.step='1 ms'
check "virtual clock: the same model" same "$(field virtual params_sha256)" "$(field real params_sha256)"

# The regions make different numbers of steps, and agree on the rounds of the run.
falling=("${outer[@]}" --set sync.outer.lr_min=0.1 --set 'data.partition.shares=[2, 1]' --set 'train.until={epochs: 2}')
completes "falling rate" 4 job.yaml --run-dir falling "${falling[@]}"
check "falling rate: one model" test -z "$(grep -h 'final model of region' out err)"
completes "falling rate, virtual clock" 4 job.yaml --run-dir falling-virtual "${falling[@]}" --clock virtual --set compute.step='1 ms'
check "falling rate, virtual clock: the same model" same "$(field falling-virtual params_sha256)" "$(field falling params_sha256)"
completes "constant rate" 4 job.yaml --run-dir constant "${falling[@]}" --set sync.outer.lr_min=0
check "constant rate: another model" test "$(field constant params_sha256)" != "$(field falling params_sha256)"

completes "without" 4 job.yaml --run-dir without --set sync.strategy=sma
check "without: another model" test "$(field without params_sha256)" != "$(field real params_sha256)"

cp -r real again
rm again/summary.json again/ckpt/"$(newest_round again)"/west.h5
train "resumed" 4 job.yaml --run-dir again --resume
ended "resumed" 0 'continues from round'
check "resumed: the same model" same "$(field again params_sha256)" "$(field real params_sha256)"

train "resumed with another" 4 job.yaml --run-dir again --resume "${outer[@]}" --set sync.outer.lr=0.5
ended "resumed with another" 2 'sync.outer.lr is 0.7 there and 0.5 here'

sed -E -e '/name: west/d' -e 's/shares: \[1, 1\]/shares: [1]/' -e '/^wan:/,/links:/d' job.yaml >one.yaml
completes "one region" 2 one.yaml --run-dir one "${outer[@]}"
completes "one region, no outer optimizer" 2 one.yaml --run-dir plain --set sync.strategy=sma
check "one region: rounds with itself" test "$(field one params_sha256)" != "$(field plain params_sha256)"

train "asgd-ga" 4 job.yaml --run-dir refused "${outer[@]}" --set sync.strategy=asgd-ga
ended "asgd-ga" 2 'sync.outer.name is given and sync.strategy is asgd-ga; it is for sync.strategy sma only'
train "no optimizer" 4 job.yaml --run-dir refused --set sync.strategy=sma --set sync.outer.lr=1
ended "no optimizer" 2 'sync.outer.lr is given and sync.outer.name is none; it is for sync.outer.name sgd, nesterov, adam only'
finish
