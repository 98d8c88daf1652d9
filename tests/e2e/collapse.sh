# processors: 1
# A training run that has collapsed warns at its end; one that learns does not.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
sed -i -e 's/{steps: 60}/{steps: 300}/' -e 's/lr: 0.02, momentum: 0.9/lr: 0.1, momentum: 0/' job.yaml
said() { cat out "$1"/*.jsonl | grep -c 'in the last 20 % of the training'; }

train "a rate of 2" 4 job.yaml --run-dir broken --set train.optimizer.lr=2
ended "a rate of 2" 0 '^warning +east: loss 2.3[0-9]+ in the last 20 % of the training: guessing among 10 classes gives 2.303'
check "a rate of 2: both regions, in the table and in the records" same "$(said broken)" 4
check "a rate of 2: summary.json" grep -q '"warning": "loss 2.3' broken/summary.json
completes "a rate that fits" 4 job.yaml --run-dir fine
check "a rate that fits: no word" same "$(said fine)" 0
train "a rate of 2, under the virtual clock" 4 job.yaml --run-dir virtual --clock virtual --set train.optimizer.lr=2 \
  --set compute.step='10 ms' --set compute.eval_samples_per_s=10000
ended "a rate of 2, under the virtual clock" 0
check "a rate of 2, under the virtual clock: said" same "$(said virtual)" 4
finish
