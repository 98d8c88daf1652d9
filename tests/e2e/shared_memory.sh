# Shared memory of a region: too little of it, a run that is killed, and a rank that is killed while its
# segment has a name.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if ! unshare -m true 2>/dev/null; then
  skip "a small /dev/shm" "this user cannot mount one"
  finish
fi
data_train=400
job job.yaml
# Two regions of 2 ranks: 35 MB of shared memory for each.
large=(--set model.name=dummy --set model.parameters=2200000 --set train.until.steps=4 --set train.eval_every.steps=0)
names() { ls /dev/shm | grep -c '^geotrain-'; }
export -f names

completes "enough" 4 job.yaml --run-dir enough "${large[@]}"
check "enough: nothing is said" same "$(grep -c 'shared memory' err)" 0

# with MIB COMMAND: in a /dev/shm of this size.
with() { unshare -m bash -c "mount -t tmpfs -o size=$1m none /dev/shm && . '$GEOTRAIN_SOURCE/tests/e2e/lib.sh' && $2"; }
export -f with
export words="${large[*]}"
with 64 'train small 4 job.yaml --run-dir small $words; echo "$code $(names)" >left; cp err small.err'
check "64 MiB for 70 MB: the run ends, and nothing is left" same "$(cat left)" "0 0"
check "64 MiB for 70 MB: said once for each region without" grep -qE 'PS of region (east|west)\): too little shared memory: this region needs 33.6 MiB of /dev/shm, whose size is 64(\.0)? MiB \(No space left' small.err
check "64 MiB for 70 MB: at most once a region" test "$(grep -c 'too little shared memory' small.err)" -le 2
check "64 MiB for 70 MB: the same bits" same "$(field small params_sha256)" "$(field enough params_sha256)"

# Workers reserve what their stages have: 89 MB of gradients and parameters together, not each.
cat >stages.yaml <<'YAML'
name: stages
model: {name: resnet18}
data: {path: data.h5}
train: {until: {steps: 1}, batch: 4, optimizer: {name: sgd, lr: 0.05}, eval_every: {epochs: 0}}
regions: [{name: here, ranks: 5}]
pipeline: {stages: [{region: here}, {region: here}, {region: here}, {region: here}], micro_batches: 2, schedule: 1f1b}
sync: {strategy: none}
YAML
with 256 'train stages 5 stages.yaml --run-dir stages; cp err stages.err; echo "$code" >left'
check "a pipeline: the run ends" same "$(cat left)" 0
check "a pipeline: its region has room in 256 MiB" same "$(grep -c 'too little shared memory' stages.err)" 0

with 512 'start 4 job.yaml --run-dir killed $words --set train.until.steps=100000; wait_file killed/east.jsonl; sleep 1; names >while
  for rank in 0 1 2 3; do kill -KILL "$(rank_pid $rank)"; done; wait_end killed 60; names >left'
check "a run: its memory has no name" same "$(cat while)" 0
check "killed: nothing is left" same "$(cat left)" 0

with 512 'GEOTRAIN_FAILPOINT=shared.named train named 4 job.yaml --run-dir named $words; names >left
  touch -d "10 minutes ago" /dev/shm/geotrain-*; train after 4 job.yaml --run-dir after $words; echo "$code $(names)" >>left'
check "killed before the name is removed: the next run removes it, not at once" awk 'NR == 1 { some = $1 > 0 } NR == 2 { none = $0 == "0 0" } END { exit !(some && none) }' left
finish
