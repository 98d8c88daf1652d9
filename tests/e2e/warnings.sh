# processors: 1
# train prints each warning once: about the job by one rank, about a region by that region's server.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=400
job job.yaml
sed -i 's/{steps: 60}/{epochs: 1}/' job.yaml
sed -e 's/east, ranks: 2/east, ranks: 3/' -e '/west, ranks/d' -e '/^wan:/,/links:/d' -e 's/shares: \[1, 1\]/shares: [1]/' job.yaml >one.yaml

# said NAME TIMES TEXT
said() { check "$1: said $2 times" same "$(cat out err | grep -cF -- "$3")" "$2"; }

all=(--set train.optimizer.name=adam --set train.schedule.name=constant --set train.schedule.warmup_steps=5000 --set train.batch=450)
completes "two regions" 4 job.yaml --run-dir two "${all[@]}" --set wan.links=null
said "adam with momentum" 1 'train.optimizer.momentum is 0.9 and does nothing'
said "emulation without links" 1 'wan.emulate is true and no link is given'
for region in east west; do
  said "a warm-up longer than the part of $region" 1 "train.schedule.warmup_steps is 5000 and region $region ends after 1 steps"
  said "a batch larger than the part of $region" 1 "train.batch is 450 and region $region holds 200 samples"
done
completes "one region of two workers" 3 one.yaml --run-dir one "${all[@]}" --set 'train.until={steps: 2}'
said "one region: adam with momentum" 1 'train.optimizer.momentum is 0.9 and does nothing'
said "one region: a warm-up longer than the run" 1 'train.schedule.warmup_steps is 5000 and the run ends after 2 steps'
said "one region: a batch larger than its part" 1 'train.batch is 450 and region east holds 400 samples'
completes "nothing to warn of" 4 job.yaml --run-dir plain --set 'train.until={steps: 9}'
check "nothing to warn of: no word" same "$(grep -cE 'geotrain: |warning' err)" 0
finish
