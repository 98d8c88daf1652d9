# processors: 1
# One frame between regions is lost, or is not what it should be: the run ends with 5 and the name of
# the region and of what is missing, or as if nothing had happened, and never by a crash or not at all.  One by one
# here; tests/e2e/forged_random.sh tries many.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 # the library comes before ASan's

data data.h5
cat >job.yaml <<'YAML'
name: forged
seed: 5
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [1, 1, 1]}}
train: {until: {steps: 12}, batch: 16, optimizer: {name: sgd, lr: 0.01}, eval_every: {epochs: 0}}
regions: [{name: h, ranks: 2}, {name: a, ranks: 2}, {name: b, ranks: 2}]
sync: {strategy: asgd-ga, period: 4}
compute: {step: 5 ms, eval_samples_per_s: 10000}
wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}
limits: {local: 20 s, wan_patience: 3 s}
YAML

# forged NAME FORGE WORDS...: a run in which one frame of one rank is changed (preload_forge.c).
forged() {
  local name=$1
  rm -rf run
  export FORGE=$2
  shift 2
  LIMIT=40 run "$name" -n 6 env LD_PRELOAD="$GEOTRAIN_HELPERS/e2e.preload_forge.so" "$GEOTRAIN" train job.yaml --run-dir run "${choices[@]}" "$@"
  check "$name: a frame is changed" grep -q '^forge: ' err
}

# Rank 2 is the PS of region a; kinds: 1 UPDATE, 17 ACK, 22 DONE, 33 MODEL.
still='waited [0-9.]+ s \(limits.wan_patience\), in which nothing moved between the regions, for'
forged "a lost DONE" '2 22 1 drop'
# Region b waits for a, and h for b: one of them is first.
ended "a lost DONE" 5 "$still the (end of the training of region a|final model and the result of region b)"
forged "a lost DONE, virtual clock" '2 22 1 drop' --clock virtual
ended "a lost DONE, virtual clock" 5 "$still the end of the training of region a"
forged "DONE names a message that was not sent" '2 22 1 byte 48 4' --clock virtual
ended "DONE names a message that was not sent" 5 "$still message 4 of region a, which is done \(3 came\)"
refused='a message of region a was refused:'
forged "a frame longer than the buffer" '2 1 1 length 2000000'
ended "a frame longer than the buffer" 5 "$refused a frame has 2246888 bytes; the longest of this job has [0-9]+"
forged "an unknown kind" '2 17 1 byte 4 99'
ended "an unknown kind" 5 "$refused .* has an unknown kind"
if [ "$full" = yes ]; then
  forged "a lost model" '2 33 1 drop' --clock virtual
  ended "a lost model" 5 "$still the final model and the result of region a"
  forged "DONE names one of another time" '2 22 1 byte 49 1'
  ended "DONE names one of another time" 5 "$refused .*message 259; expected"
  forged "a lost acknowledgement" '2 17 1 drop'
  ended "a lost acknowledgement" 0
  forged "an update that comes twice" '2 1 2 repeat'
  ended "an update that comes twice" 0
fi
finish
