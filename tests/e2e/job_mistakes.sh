# processors: 1
# Each kind of mistake in a job file or at the start, through the launcher: exit 2 and a helpful
# message, printed once; no file is left.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=400
job job.yaml

# change NAME SED-SCRIPT: bad.yaml is the job with a change.
change() {
  sed -e "$2" job.yaml >bad.yaml
  cmp -s job.yaml bad.yaml && fail "$1" "the change did not take"
}
# mistake NAME SED-SCRIPT WORD...: the job with a change, read without ranks (--full: as launched).
mistake() {
  [ $full = no ] || { launched "$@" && return; }
  local name=$1
  change "$1" "$2"
  shift 2
  plain info bad.yaml
  ended "$name" 2 "$@"
  check "$name: said once" same "$(grep -c '^geotrain: ' err)" 1
}
# launched NAME SED-SCRIPT WORD...: the same by train, of which every rank reads the job.
launched() {
  local name=$1
  change "$1" "$2"
  shift 2
  train "$name" 4 bad.yaml --run-dir run
  ended "$name" 2 "$@"
  check "$name: said once" same "$(grep -c '^geotrain: ' err)" 1
  check "$name: leaves no run directory" test ! -e run
}

launched "an unknown key" 's/period: 4/perod: 4/' 'bad.yaml' 'perod' 'period'
mistake "an unknown strategy" 's/strategy: sma/strategy: smaa/' 'sync.strategy' 'sma'
mistake "an option of other strategies" 's/period: 4/exchange: gradient/' 'sync.exchange' 'sma' 'asgd, asgd-ga'
mistake "a number out of range" 's/period: 4/period: 0/' 'sync.period' '0' '1'
mistake "a wrong unit" 's/1 Gbit\/s/1 parsec/' 'bandwidth' 'parsec'
mistake "a missing key" '/^model/d' 'model.name'
launched "not YAML" 's/\[east, west\]/[east, west/' 'bad.yaml'
mistake "a link to nowhere" 's/\[east, west\]/[east, wst]/' 'wst' 'west'
launched "two ends of training" 's/{steps: 60}/{steps: 60, epochs: 1}/' 'train.until'

launched "a run that goes on in one MPI job" 's/strategy: sma/strategy: sma, on_loss: continue/' 'sync.on_loss is continue' 'all regions are in one MPI job'
launched "faults of a simulation" '$a faults: [{region: west, lost: 9 s}]' 'faults is given' 'geotrain simulate --train trains with them'

auto='regions.0.ranks is auto; `geotrain plan JOB --write OUT.yaml` resolves it'
sed -e 's/east, ranks: 2/east, ranks: auto, devices: [{type: a, count: 2}]/' job.yaml >auto.yaml
train "ranks that a plan resolves" 4 auto.yaml --run-dir run
ended "ranks that a plan resolves" 2 "$auto"
run "ranks that a plan resolves, probe" -n 4 "$GEOTRAIN" probe auto.yaml
ended "ranks that a plan resolves, probe" 2 "$auto"
GEOTRAIN=$program "$GEOTRAIN_SOURCE/slurm/submit" --dry-run auto.yaml >out 2>err
code=$?
ended "ranks that a plan resolves, slurm/submit" 2 "auto.yaml: $auto"
mistake "a negative price" 's/east, ranks: 2/east, ranks: 2, price: -1/' 'regions.0.price is -1; expected 0 or more'
mistake "no devices" 's/east, ranks: 2/east, ranks: 2, devices: []/' 'regions.0.devices is an empty list'
launched "a region without data" '/^data:/d; s/, ranks: 2/, ranks: 2, samples: 100/' 'region east has no data set'

train "an unknown --set" 4 job.yaml --run-dir run --set sync.perod=2
ended "an unknown --set" 2 'sync.perod' 'period'
train "no such job file" 4 nothing.yaml --run-dir run
ended "no such job file" 2 'nothing.yaml'
train "three ranks for four" 3 job.yaml --run-dir run
ended "three ranks for four" 2 '3' '4'
run "no launcher's world" -n 1 "$GEOTRAIN" train job.yaml --run-dir run
ended "one rank for four" 2 'mpirun -n 4'
GEOTRAIN_REGION=nort train "a region by a name that is none" 4 job.yaml --run-dir run
ended "a region by a name that is none" 2 'nort' 'east'

sed -e 's/period: 4/period: 5/' job.yaml >other.yaml
run "regions with different jobs" -n 2 "$GEOTRAIN" train job.yaml --run-dir run : -n 2 "$GEOTRAIN" train other.yaml --run-dir run
ended "regions with different jobs" 2 'sync.period' '4' '5'
run "one region without a job file" -n 2 "$GEOTRAIN" train job.yaml --run-dir run : -n 2 "$GEOTRAIN" train nothing.yaml --run-dir run
ended "one region without a job file" 2 'nothing.yaml'
check "nothing is left behind" test ! -e run
# Processes of an srun without PMI: each detects it, one reports it, and MPI is not started.
for id in 0 1; do
  SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=$id plain train job.yaml --run-dir mismatch
  ended "srun without PMIx, task $id" 2
  check "srun without PMIx, task $id: sentences" same "$(grep -c 'srun --mpi=none started 4 tasks' err)" $((1 - id))
  check "srun without PMIx, task $id: lines" same "$(wc -l <err)" $((1 - id))
done
finish
