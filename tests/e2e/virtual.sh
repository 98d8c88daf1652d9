# processors: 1
# The virtual clock: runs repeat to the bit while another program loads the cores, a resume ends
# with the model of an uninterrupted run, unsupported jobs are refused in one sentence, and the loss
# of a rank ends the job as in real time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Three uneven regions, with different speeds of workers, different lengths of steps, and links that
# differ by direction.
data data.h5
cat >job.yaml <<'YAML'
name: virtual
seed: 5
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [3, 2, 2]}}
train: {until: {steps: 12}, batch: 32, optimizer: {name: sgd, lr: 0.02}, eval_every: {steps: 7}}
regions:
  - {name: east, ranks: 3, access: 60 Mbit/s, compute: {speeds: [1, 0.6]}}
  - {name: west, ranks: 2, compute: {speed: 0.7}}
  - {name: north, ranks: 2, compute: {samples_per_s: 900}}
sync: {local: sync, strategy: sma, period: 3, weights: samples}
wan:
  links:
    - {between: [east, west], bandwidth: 50 Mbit/s, latency: 55 ms, jitter: 4 ms}
    - {between: [east, north], bandwidth: 80 Mbit/s, latency: 20 ms, jitter: 2 ms}
    - {from: west, to: north, bandwidth: 20 Mbit/s, latency: 110 ms, jitter: 9 ms}
    - {from: north, to: west, bandwidth: 30 Mbit/s, latency: 100 ms, jitter: 9 ms}
compute: {samples_per_s: 1500, variation: 0.2, local: 1 ms, update: 0.4 ms, apply: 0.3 ms, encode: 0.5 ms, checkpoint: 100 Mbit/s}
checkpoint: {every: {steps: 5}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
log: {every: 1 s}
YAML
ranks=7

burners=()
burn() {
  local i
  for i in $([ $full = no ] || echo 1) 2; do
    bash -c 'while :; do :; done' &
    burners+=($!)
  done
}
quiet() {
  [ ${#burners[@]} -gt 0 ] && { kill "${burners[@]}" && wait "${burners[@]}"; } 2>/dev/null
  burners=()
}
trap 'quiet; at_exit' EXIT

virtual() {
  local name=$1
  shift
  train "$name" "$ranks" job.yaml --run-dir "$name" --clock virtual "$@"
}
but_wall() { sed '/^  "wall_s":/d' "$1/summary.json" | sha256sum; }

# alike NAME RUN JUDGE: the same summary and the same records.
alike() {
  local file
  check "$1: the summary but for wall_s" same "$(but_wall "$2")" "$(but_wall "$3")"
  for file in east west north; do check "$1: record of $file" cmp "$2/$file.jsonl" "$3/$file.jsonl"; done
}
# repeats NAME OPTIONS...
repeats() {
  local name=$1
  shift
  virtual "$name-quiet" "$@"
  ended "$name" 0 'virtual time'
  check "$name: virtual time passed" test "$(field "$name-quiet" clock)" = virtual -a "$(field "$name-quiet" virtual_s)" != "$(field "$name-quiet" wall_s)"
  [ $full = yes ] || return
  burn
  virtual "$name-burnt" "$@"
  quiet
  ended "$name, the cores burnt" 0
  alike "$name, the cores burnt" "$name-burnt" "$name-quiet"
}
[ $full = no ] || repeats asgd --set sync.strategy=asgd --set sync.local=async --set sync.scale=mean
repeats sma

# The default link and the power of devices also count.  The run repeats the one before, while
# another program loads a core.
sed -e '/between: \[east, north\]/d' -e 's/^wan:/&\n  default: {bandwidth: 80 Mbit\/s, latency: 20 ms, jitter: 2 ms}/' -e 's/compute: {samples_per_s: 1500, /compute: {/' \
  -e 's/compute: {speeds: \[1, 0.6\]}/devices: [{type: fast, count: 1, power: 1500 samples\/s}, {type: slow, count: 3, power: 900}]/' \
  -e 's/compute: {speed: 0.7}/&, devices: [{type: fast, count: 1, power: 1500}]/' -e 's/compute: {samples_per_s: 900}/devices: [{type: slow, count: 2, power: 900}]/' \
  job.yaml >devices.yaml
burn
train "devices and a default link" "$ranks" devices.yaml --run-dir devices --clock virtual
quiet
ended "devices and a default link" 0 'virtual time'
alike "devices and a default link" devices sma-quiet

# ---- stop and resume ----------------------------------------------------------------------------------------------------------------

# The resumed run ends a few steps after the stop, wherever that was.
start "$ranks" job.yaml --run-dir stopped --clock virtual --set train.until.steps=100000 --set train.eval_every.steps=0
wait_round stopped 2
kill -USR1 "$launcher"
wait_end "USR1" 60
gone "USR1"
ended "USR1" 75 '--resume'
stopped=$(sed -nE 's/.*"event":"stopped".*"step":([0-9]+),.*/\1/p' stopped/east.jsonl)
steps=(--set train.until.steps=$((stopped + 20)) --set train.eval_every.steps=0)
virtual stopped --resume "${steps[@]}"
ended "resume" 0
virtual whole "${steps[@]}"
ended "undisturbed" 0
check "resume: samples of a whole run" same "$(field stopped samples)" "$(field whole samples)"
check "resume: model of a whole run" same "$(field stopped params_sha256)" "$(field whole params_sha256)"

# ---- what it cannot do ----------------------------------------------------------------------------------------------------------------

# Two regions are enough, of a worker each.
sed -i -e '/name: north/d; /north/d; s/, 2]}}/]}}/; s/ranks: 3/ranks: 2/; s/, compute: {speeds: \[1, 0.6\]}//' job.yaml
ranks=4

# refused NAME WORDS JOB: the job is refused with one sentence that has these words; no file is left.
refused() {
  local name=$1 words=$2
  shift 2
  train "$name" "$ranks" "$@" --run-dir refused --clock virtual
  ended "$name" 2 "$words"
  check "$name: one sentence" same "$(grep -c geotrain: err)" 1
  check "$name: no run" test ! -e refused/summary.json -a ! -e refused/job.yaml
}
sed '/^compute:/d' job.yaml >no-compute.yaml
refused "no figures of compute" 'compute.step is not given for region east; expected it under --clock virtual, as in --set .compute.step=10 ms., ' no-compute.yaml
sed '/between: \[east, west\]/s/between: \[east, west\]/from: east, to: west/' job.yaml >no-link.yaml
refused "a pair without a link" 'the link from west to east has no latency' no-link.yaml
sed 's/latency: 55 ms, jitter: 4 ms/latency: 0 ms/' job.yaml >no-latency.yaml
refused "a link without latency" 'the link from east to west has no latency' no-latency.yaml
train "an unknown clock" 1 job.yaml --clock foo
ended "an unknown clock" 2 '--clock is "foo"; expected one of real, virtual'

# ---- ranks that are lost ----------------------------------------------------------------------------------------------------------------

steps=(--set train.until.steps=100000 --set train.eval_every.steps=0)
start "$ranks" job.yaml --run-dir killed --clock virtual "${steps[@]}"
wait_round killed 2
kill -KILL "$(rank_pid 1)"
wait_end "a worker killed" 25
gone "a worker killed"
ended "a worker killed" 137

if [ $full = yes ]; then
  start "$ranks" job.yaml --run-dir silent --clock virtual "${steps[@]}" --set limits.local=2s
  wait_round silent 2
  kill -STOP "$(rank_pid 3)"
  wait_end "a worker stopped" 25
  gone "a worker stopped"
  ended "a worker stopped" 5 'limits.local' 'worker 0 of region west'
fi
finish
