# labels: full
# processors: 1
# The effect of links on whole runs, under the virtual clock: outages with every strategy, traces, a
# shared access, loss, directions; and an outage in real time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libwan.sh"

# A model of lenet5 takes 98.8 ms on 20 Mbit/s, a step of 32 samples 100 ms.
data data.h5
cat >job.yaml <<'YAML'
name: wan
seed: 4
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 100}, batch: 32, optimizer: {name: sgd, lr: 0.01}, eval_every: {epochs: 0}}
regions:
  - {name: east, ranks: 2}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: asgd, period: 4, scale: sum}
wan:
  outbox: 2
  links: [{between: [east, west], bandwidth: 20 Mbit/s, latency: 25 ms}]
compute: {step: 100 ms}
log: {every: 1 s}
YAML
ranks=4

# virtual NAME JOB OPTIONS...
virtual() {
  local name=$1 job=$2
  shift 2
  completes "$name" "$ranks" "$job" --run-dir "$name" --clock virtual "$@"
}

# near FOUND WANTED SHARE: FOUND is within SHARE of WANTED.
near() { awk -v f="$1" -v w="$2" -v s="$3" 'BEGIN { ok = f != "" && f >= w * (1 - s) && f <= w * (1 + s); if (!ok) print "      found " f ", needed " w; exit !ok }'; }
between() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ] || { echo "      found $1, needed $2 to $3" && false; }; }
of() { awk "BEGIN { print $1 }"; }

# step_at RUN REGION TIME: the region's steps in its last progress line until then.
step_at() {
  sed -nE 's/^\{"t":([0-9.]+),"event":"progress","step":([0-9]+),.*/\1 \2/p' "$1/$2.jsonl" | awk -v t="$3" '$1 <= t { step = $2 } END { print step + 0 }'
}
# region_field RUN REGION KEY
region_field() { tr -d '",' <"$1/summary.json" | awk -v r="$2" -v k="$3:" '$1 == "name:" { name = $2 } name == r && $1 == k { print $2; exit }'; }
losses() { sed -n '/"regions": \[/,/\]/s/^ *"test_loss": \([^,]*\),*$/\1/p' "$1/summary.json"; }

# ---- outages ------------------------------------------------------------------------------------------------------------------------

sed '/^compute:/i\  outages: [{between: [east, west], from: 3 s, for: 6 s}]' job.yaml >outage.yaml

# outage STRATEGY LEAST MOST: runs through an outage from 3 s to 9 s; near its end each region has
# made this number of steps.
outage() {
  local name=outage-$1 region
  virtual "$name" outage.yaml --set sync.strategy="$1"
  check "$name: messages and bytes" as_the_rule_says "$name" "$1" 4 2
  for region in east west; do
    check "$name: steps of $region by then" between "$(step_at "$name" "$region" 9.1)" "$2" "$3"
    check "$name: all steps of $region" same "$(region_field "$name" "$region" steps)" 100
  done
}
outage none 80 92
outage ama 80 92     # continues throughout: replaces what has not left
outage asgd-ga 38 41 # until the outbox is full: two messages of 4 steps, and the third is due
outage asgd 31 33    # the same: messages of one step
outage sma 24 28
outage ssgd 12 15
# A region that waits makes the same model as without an outage; updates that are added arrive once:
# the regions' models are equal except for the order of additions.
for strategy in sma ssgd; do
  virtual "$strategy" job.yaml --set sync.strategy="$strategy"
  check "outage-$strategy: model of a run without one" same "$(field "outage-$strategy" params_sha256)" "$(field "$strategy" params_sha256)"
  check "outage-$strategy: takes longer by it" near "$(of "$(field "outage-$strategy" virtual_s) - $(field "$strategy" virtual_s)")" 6 0.1
done
for strategy in asgd asgd-ga; do
  check "outage-$strategy: one model" same "$(losses "outage-$strategy" | awk '{ print int(10000 * $1 + 0.5) }' | sort -u | wc -l)" 1
done

# ---- rates ----------------------------------------------------------------------------------------------------------------------------

# Steps take next to no time, so the links decide.
fast=(--set train.until.steps=60 --set compute.step=1ms)
message_bits=$((8 * message))

printf '%s\n' time_s,bandwidth,latency '0,20 Mbit/s,' '1,5 Mbit/s,' '2,5 Mbit/s,' >trace.csv
sed 's/bandwidth: 20 Mbit.s/trace: trace.csv/' job.yaml >trace.yaml
virtual flat job.yaml "${fast[@]}"
virtual trace trace.yaml "${fast[@]}"
check "flat: 60 models at 20 Mbit/s" near "$(field flat virtual_s)" "$(of "60 * $message_bits / 20e6")" 0.08
check "trace: 60 models at 20 and 5 Mbit/s in turn" near "$(field trace virtual_s)" "$(of "60 * $message_bits / 12.5e6")" 0.08

sed 's/latency: 25 ms/latency: 25 ms, loss: 0.01/' job.yaml >loss.yaml
virtual loss loss.yaml "${fast[@]}" --set train.until.steps=20
# 12.25 segments of 1448 bytes per round trip of 50 ms (docs/link-model.md)
check "loss: 20 models at 2.84 Mbit/s" near "$(field loss virtual_s)" "$(of "20 * $message_bits / 2.84e6")" 0.08

sed 's/links: .*/links: [{from: east, to: west, bandwidth: 20 Mbit\/s, latency: 25 ms}, {from: west, to: east, bandwidth: 5 Mbit\/s, latency: 40 ms}]/' job.yaml >directions.yaml
virtual directions directions.yaml "${fast[@]}"
check "directions: time on the wire of east" near "$(region_field directions east wire_s)" "$(of "60 * $message_bits / 20e6")" 0.02
check "directions: time on the wire of west" near "$(region_field directions west wire_s)" "$(of "60 * $message_bits / 5e6")" 0.02

# Three regions, of which one has an access as fast as one of its two links.
sed -e 's/^  - {name: west, ranks: 2}/&\n  - {name: north, ranks: 2}/' \
  -e 's/links: \[{between: \[east, west\], \([^}]*\)}\]/links: [{between: [east, west], \1}, {between: [east, north], \1}, {between: [west, north], \1}]/' job.yaml >three.yaml
sed 's/{name: east, ranks: 2}/{name: east, ranks: 2, access: 20 Mbit\/s}/' three.yaml >access.yaml
ranks=6
virtual three three.yaml "${fast[@]}"
virtual access access.yaml "${fast[@]}"
check "access: takes twice as long" near "$(field access virtual_s)" "$(of "2 * $(field three virtual_s)")" 0.1
ranks=4

# ---- real time ----------------------------------------------------------------------------------------------------------------------------

sed -e 's/from: 3 s, for: 6 s/from: 500 ms, for: 3 s/' -e 's/^wan:/&\n  emulate: true/' outage.yaml >real.yaml
completes "an outage in real time" 4 real.yaml --run-dir real --set sync.strategy=sma
check "an outage in real time: it was there" test "$(of "int($(field real wall_s))")" -ge 6 # 25 exchanges, 125 ms each, and 3 s
check "an outage in real time: the model of virtual time" same "$(field real params_sha256)" "$(field sma params_sha256)"
completes "an outage in real time, asgd" 4 real.yaml --run-dir real-asgd --set sync.local=async
check "an outage in real time, asgd: messages and bytes" as_the_rule_says real-asgd asgd 4 2
finish
