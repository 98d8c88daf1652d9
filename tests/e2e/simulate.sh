# processors: 1
# simulate gives the results of train --clock virtual: for every strategy, periods 1 and 8, both
# local planes, uneven regions, an outage, a trace, and checkpoints that take time, messages, bytes
# and every region's times are equal; the end of the run differs only by the length of the results,
# which contain accuracies.  A thousand regions take seconds.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CELLS=${CELLS:-some} # all: every strategy with every period, local plane and set of regions

data data.h5
cat >three.yaml <<'YAML'
name: three
seed: 3
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [3, 2, 1]}}
train: {until: {steps: 20}, batch: 16, optimizer: {name: sgd, lr: 0.02, momentum: 0.9}, eval_every: {steps: 12}}
regions:
  - {name: a, ranks: 3, compute: {samples_per_s: 1000, speeds: [1, 0.8]}}
  - {name: b, ranks: 2}
  - {name: c, ranks: 2, compute: {samples_per_s: 700}, access: 80 Mbit/s}
compute: {samples_per_s: 800, variation: 0.1, local: 1 ms, resume: 2 ms, update: 500 us, apply: 700 us, encode: 300 us, checkpoint: 100 Mbit/s}
wan:
  links:
    - {between: [a, b], bandwidth: 100 Mbit/s, latency: 25 ms, jitter: 2 ms}
    - {between: [a, c], trace: saw.csv, latency: 15 ms, jitter: 1 ms}
    - {between: [b, c], bandwidth: 30 Mbit/s, latency: 60 ms, jitter: 5 ms, loss: 0.001}
  outages:
    - {between: [a, b], from: 300 ms, for: 500 ms}
checkpoint: {every: {steps: 9}}
YAML
printf 'time_s,bandwidth,latency\n0,40 Mbit/s,\n0.2,90 Mbit/s,\n0.35,10 Mbit/s,\n0.5,0,\n' >saw.csv
cat >four.yaml <<'YAML'
name: four
seed: 9
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [4, 3, 2, 1]}}
train: {until: {epochs: 0.2}, batch: 32, optimizer: {name: adam, lr: 0.001}, eval_every: {epochs: 0}}
regions:
  - {name: n, ranks: 2, compute: {speed: 0.5}}
  - {name: e, ranks: 2}
  - {name: s, ranks: 2, compute: {samples_per_s: 300}}
  - {name: w, ranks: 2, compute: {step: 60 ms}}
compute: {samples_per_s: 1200}
wan: {outbox: 1, default: {bandwidth: 20 Mbit/s, latency: 40 ms, jitter: 3 ms}}
YAML
# One region only aggregates, here the last, there the lead.
cat >last.yaml <<'YAML'
name: last
seed: 5
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [3, 2, 1, 0]}}
train: {until: {steps: 20}, batch: 16, optimizer: {name: sgd, lr: 0.02, momentum: 0.9}, eval_every: {steps: 12}}
regions:
  - {name: a, ranks: 3, compute: {speeds: [1, 0.8]}}
  - {name: b, ranks: 2}
  - {name: c, ranks: 2, compute: {samples_per_s: 700}, access: 80 Mbit/s}
  - {name: hub, ranks: 1, access: 300 Mbit/s, compute: {update: 300 us}}
sync: {hub: hub, topology: hub}
compute: {samples_per_s: 800, variation: 0.1, local: 1 ms, resume: 2 ms, update: 500 us, apply: 700 us, encode: 300 us, checkpoint: 100 Mbit/s}
wan: {default: {bandwidth: 60 Mbit/s, latency: 20 ms, jitter: 2 ms}}
checkpoint: {every: {steps: 9}}
YAML
sed -e '/name: hub/d' -e 's/^regions:/&\n  - {name: hub, ranks: 1, access: 300 Mbit\/s}/' -e 's/3, 2, 1, 0/0, 3, 2, 1/' last.yaml >lead.yaml

# Regions that meet in the model of a store.
sed -e '/^wan:/,/^checkpoint:/d' -e 's/name: c, ranks: 2,/& store: {download: 40 Mbit\/s, latency: 30 ms},/' three.yaml >stored.yaml
cat >>stored.yaml <<'YAML'
wan: {transport: store, store: {url: "s3://none/run", poll: 20 ms, upload: 90 Mbit/s, download: 160 Mbit/s, latency: 12 ms, request: 8 ms, lag: 5 ms}}
checkpoint: {every: {steps: 9}}
YAML
# Messages that are written once for several regions.
sed 's/name: lenet5/name: mlp, mlp: [512]/' stored.yaml >large.yaml

# A region is a function that the store invokes.
sed -e 's/^sync: .*/sync: {central: hub}/' -e '/^wan:/d' -e 's/^compute: /wan: {transport: store, store: {url: "s3:\/\/none\/run", trigger: event, start: 40 ms, upload: 90 Mbit\/s, download: 160 Mbit\/s, latency: 12 ms}}\n&/' last.yaml >function.yaml

# cell JOB STRATEGY PERIOD LOCAL [TOPOLOGY, or central=REGION, or hub=REGION [KEY=VALUE...]]
cell() {
  local name="$1-$2-$3-$4-${5:-mesh}${6:+-${*:6}}" key
  local sets=(--set "sync.strategy=$2" --set "sync.period=$3" --set "sync.local=$4")
  case ${5:-mesh} in
    central=*) sets+=(--set "sync.$5") ;;
    hub=*) sets+=(--set "sync.$5" --set sync.topology=hub) ;;
    central) ;;
    tree) sets+=(--set sync.hub=null --set sync.topology=tree) ;;
    *) sets+=(--set "sync.topology=${5:-mesh}") ;;
  esac
  name=${name// /-}
  for key in "${@:6}"; do sets+=(--set "$key"); done
  train "$name" $(case $1 in three | stored | large) echo 7 ;; *) echo 8 ;; esac) "$1.yaml" --run-dir "$name" --clock virtual "${sets[@]}"
  [ "$code" = 0 ] || { fail "$name" "train ended with $code" && return; }
  simulates "$name" "$name" 1e-4 "$1.yaml" "${sets[@]}"
}

if [ "$CELLS" = all ]; then
  for job in three four; do
    for strategy in none ssgd asgd asgd-ga ama sma; do
      for period in 1 8; do
        for local in sync async; do
          for topology in mesh hub tree auto; do cell $job $strategy $period $local $topology; done
        done
      done
    done
  done
  for job in last lead; do
    for strategy in ssgd asgd asgd-ga ama sma; do
      for local in sync async; do
        for way in hub=hub tree; do cell $job $strategy 3 $local "$way"; done
      done
    done
  done
  for strategy in ssgd sma; do
    for region in a b c; do cell three $strategy 3 sync central=$region; done
    for region in n w; do cell four $strategy 1 sync central=$region; done
  done
else
  cell three asgd 1 sync
  cell three ama 8 async hub
  cell four ssgd 1 sync ring
  cell three asgd-ga 2 async auto sync.period_unit=pass sync.exchange=gradient
  cell three ssgd 1 sync central=b
  cell last asgd-ga 3 async hub=hub
  cell lead sma 3 sync hub=hub limits.wan_bytes=1GB
  cell three sma 2 sync hub=a sync.quorum=0.6 'sync.grace=20 ms'
  cell stored sma 4 sync hub=b
  cell large sma 4 sync hub=b
  # acknowledgements, which wait for data, do not wait for a heartbeat (50 s) after the last
  cell stored ssgd 1 sync
  check "the end of a run over a store" awk "BEGIN { exit !($(field stored-ssgd-1-sync-mesh virtual_s) < 10) }"
  cell function ssgd 1 sync central
  if [ $full = yes ]; then
    cell stored asgd-ga 2 async
    cell large asgd-ga 2 async
    cell large ssgd 1 sync
    cell stored ssgd 1 sync central=c
    cell stored ssgd 1 sync ring
    cell stored ama 3 sync tree
    cell function sma 3 sync hub=hub sync.central=null
    cell four asgd-ga 8 sync
    cell three ama 8 async
    cell three sma 8 sync hub data.validation=0.1 train.keep=best
    cell three asgd-ga 2 async auto
    cell three asgd-ga 2 async mesh sync.period_unit=pass sync.exchange=gradient
    cell three none 8 sync
    cell four ssgd 1 async
    cell three sma 8 sync
    cell four sma 1 async
    cell four asgd-ga 8 sync tree
    cell four ssgd 1 sync auto
    cell three sma 3 sync central=a
    cell three sma 2 async mesh sync.period_unit=pass
    cell three asgd-ga 4 sync mesh train.eval_every.steps=0 train.eval_every.epochs=0.03
    cell last ssgd 1 sync hub=hub
    cell last ama 3 sync tree
    cell lead asgd 1 sync hub=hub
  fi
fi

# With places, the terms of the study: requests and egress as counted are those of the equations.
sed -E -e 's/- \{name: (a|b|c), /&place: "aws:london", /; s/- \{name: hub, /&place: "aws:oregon", /' \
  -e 's/trigger: event/&, place: "aws:virginia"/' -e "\$aplan: {catalogue: $GEOTRAIN_SOURCE/jobs/prices}" function.yaml >priced.yaml
cell priced ssgd 1 sync central
check 'the terms of the study' python3 - priced-ssgd-1-sync-central/summary.json <<'PY'
import json, sys
terms = {t["term"]: t for t in json.load(open(sys.argv[1]))["cost"]["equations"]}
assert len(terms) == 10
for name in "(7) out of machines", "(8) out of functions", "(9) out of the storage", "(5) writes", "(5) lists":
    t = terms[name]
    assert t["counted"] > 0 and abs(t["counted"] / t["equations"] - 1) < 0.002, t
t = terms["(5) reads"]  # with looks in vain, in the batch's time by the equations
assert abs(t["counted"] / t["equations"] - 1) < 0.15, t
PY

# A limit that is not reached changes nothing: regions with the same model do not send it at the end.
for limit in null 1GB; do
  "$GEOTRAIN" simulate three.yaml --set sync.strategy=sma --set limits.wan_bytes=$limit --out limit-$limit >limit.out 2>&1
done
check "a limit that is not reached" cmp <(grep bytes_other limit-1GB/summary.json) <(grep bytes_other limit-null/summary.json)

# A run that its limit ends is reported to end there.
"$GEOTRAIN" simulate three.yaml --set limits.wan_bytes=300kB --set train.until.steps=200 >limit.out 2>&1
grep -q 'limits.wan_bytes stops this run at .* (train exits with 6)' limit.out && ok 'a limit' || fail 'a limit' "$(tail -n 2 limit.out)"

# What takes long says how far it is.  plan simulates parts of long runs, and seldom takes so long.
if [ $full = yes ]; then
  timeout -s INT 25 "$GEOTRAIN" simulate three.yaml --set train.until.steps=1000000000 >long.out 2>&1
  check 'progress' grep -Eq '^geotrain: simulate: (1[0-9]|20) s so far; [0-9.e+]+ s of the run, [0-9.e+]+ events$' long.out
fi

# A region without compute times, a pair without latency, no data: one sentence.
refused() {
  local name=$1 pattern=$2
  shift 2
  "$GEOTRAIN" simulate "$@" >refused.out 2>&1
  code=$?
  if [ "$code" = 2 ] && [ "$(wc -l <refused.out)" = 1 ] && grep -q "$pattern" refused.out; then ok "$name"; else fail "$name" "code $code: $(cat refused.out)"; fi
}
grep -v '^compute' four.yaml >no-compute.yaml
refused 'no compute' 'compute.step is not given for region' no-compute.yaml
refused 'no latency' 'has no latency' four.yaml --set 'wan.default.latency=0 s'
refused 'a store without latency' 'wan.store: the link from a to b has no latency; to simulate it.*(wan.store.latency)' stored.yaml --set wan.store.latency=null --set wan.store.request=null --set wan.store.lag=null --set regions.2.store=null
refused 'a function without a root' 'wan.store.trigger is event; expected a region that adds up' stored.yaml --set wan.store.trigger=event
refused 'a function that does not wait' 'wan.store.trigger is event; expected a strategy in which every region waits' function.yaml --set sync.strategy=asgd
refused 'a function with workers' 'expected that region without workers: regions\[\].ranks 1' function.yaml --set regions.3.ranks=2 --set 'data.partition.shares=[3, 2, 1, 1]'
refused 'a function with epochs' 'expected train.until.steps' function.yaml --set sync.strategy=ssgd --set train.until.steps=0 --set train.until.epochs=1
refused 'a function with faults' 'expected sync.on_loss stop, and no faults' function.yaml --set sync.strategy=ssgd --set sync.central=null --set sync.topology=hub --set sync.hub=hub --set 'faults=[{region: a, lost: 1 s, back: 2 s}]'
refused 'no job' 'one job file' three.yaml four.yaml

finish
