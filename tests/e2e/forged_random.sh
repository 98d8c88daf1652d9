# labels: full
# timeout: 1200
# processors: 1
# Frames between regions that are lost, sent twice, cut, lengthened or have a wrong byte in their header, at random: every
# kind, over every topology and strategy.  Each run ends as if nothing had happened, or with 5 and a region's name, and
# never by a crash or not at all.  COUNT and SEED in the environment choose how many and which.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 # the library comes before ASan's

data data.h5
cat >job.yaml <<'YAML'
name: forged
seed: 5
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [1, 1, 1]}}
train: {until: {steps: 12}, batch: 16, optimizer: {name: sgd, lr: 0.01}, eval_every: {steps: 6}}
regions: [{name: h, ranks: 2}, {name: a, ranks: 2}, {name: b, ranks: 2}]
sync: {strategy: asgd-ga, period: 4}
compute: {step: 5 ms, eval_samples_per_s: 10000}
wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}
checkpoint: {every: {steps: 4}, keep: 2}
limits: {local: 20 s, wan_patience: 3 s, nonfinite: 1000}
YAML
cat >pipe.yaml <<'YAML'
name: forged
seed: 5
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [1, 0, 0]}}
train: {until: {steps: 6}, batch: 16, optimizer: {name: sgd, lr: 0.01}, eval_every: {steps: 3}}
regions: [{name: h, ranks: 2}, {name: a, ranks: 2}, {name: b, ranks: 2}]
pipeline: {stages: [{region: h}, {region: a}, {region: b}], micro_batches: 4, schedule: 1f1b, labels: send}
sync: {strategy: none}
compute: {step: 5 ms, eval_samples_per_s: 10000}
wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}
checkpoint: {every: {steps: 2}, keep: 2}
limits: {local: 20 s, wan_patience: 3 s, nonfinite: 1000}
YAML
ways=('job.yaml --set sync.strategy=ssgd --set sync.topology=ring' 'job.yaml --set sync.strategy=sma --set sync.topology=hub'
  'job.yaml --set sync.strategy=sma --set sync.topology=mesh' 'job.yaml --set sync.strategy=ama --set sync.topology=tree'
  'job.yaml --set sync.strategy=ama --set sync.topology=mesh' 'job.yaml --set sync.strategy=asgd --set sync.topology=hub'
  'job.yaml --set sync.strategy=asgd --set sync.topology=mesh' 'job.yaml --set sync.topology=tree' 'job.yaml --set sync.topology=mesh'
  'job.yaml --set sync.strategy=sma --set sync.central=h' pipe.yaml)
kinds=(0 0 0 0 0 0 1 2 16 17 18 19 20 21 22 24 25 32 33 34 35) # 0: any

# one NAME FORGE WORDS...: a run under the virtual clock in which one frame is changed.
one() {
  local name=$1
  rm -rf run
  export FORGE=$2
  shift 2
  LIMIT=60 run "$name" -n 6 env LD_PRELOAD="$GEOTRAIN_HELPERS/e2e.preload_forge.so" "$GEOTRAIN" train "$@" --run-dir run --clock virtual "${choices[@]}"
}

declare -A sha
for way in "${ways[@]}"; do
  one "$way" '9 0 0 none' $way
  [ "$code" -eq 0 ] || fail "$way" "exit $code: $(grep geotrain: err | tail -n 1)"
  sha[$way]=$(field run params_sha256)
done

RANDOM=${SEED:-1}
none=0 equal=0 other=0 refused=0 late=0
for i in $(seq "${COUNT:-60}"); do
  way=${ways[RANDOM % ${#ways[@]}]} rank=$((RANDOM % 3 * 2)) kind=${kinds[RANDOM % ${#kinds[@]}]} nth=$((RANDOM % 3 + 1))
  [ $kind -ne 0 ] || nth=$((RANDOM % 90 + 1))
  case $((RANDOM % 8)) in
    0) action=drop ;;
    1) action=repeat ;;
    2) action="length $((RANDOM % 2 ? RANDOM * 60 : -(RANDOM % 200) - 1))" ;;
    *) action="byte $((RANDOM % 96)) $((RANDOM % 2 ? RANDOM % 256 : RANDOM % 4))" ;;
  esac
  name="$i: $way: $rank $kind $nth $action"
  one "$name" "$rank $kind $nth $action" $way
  did=$(sed -n 's/^forge: .*kind \([0-9]*\), .*/\1/p' err)
  said=$(grep -E '^geotrain: ' err | grep -v 'layers with' | tail -n 1)
  if [ -z "$did" ]; then
    none=$((none + 1)) # the run has no such frame
    check "$name: undisturbed" same "$code $(field run params_sha256)" "0 ${sha[$way]}"
    continue
  fi
  case $code in
    0) [ "$(field run params_sha256)" = "${sha[$way]}" ] && equal=$((equal + 1)) || { other=$((other + 1)) && echo "      $name (kind $did): other parameters"; } ;;
    5)
      grep -qE 'region [hab]' err || fail "$name" "exit 5 without the name of a region: $said"
      if grep -q 'in which nothing moved' err; then late=$((late + 1)); else refused=$((refused + 1)); fi
      ;;
    2 | 3 | 4) [ "$did" = 16 ] || fail "$name (kind $did)" "exit $code: $said" ;; # the greeting says what differs
    6 | 75) [ "$did" = 20 ] || [ "$did" = 24 ] || fail "$name (kind $did)" "exit $code: $said" ;; # an order to stop
    *) fail "$name (kind $did)" "exit $code: $said" ;;
  esac
done
ok "$none undisturbed, $equal without effect, $other with other parameters, $refused refused, $late by the deadline"
finish
