# labels: full
# timeout: 1500
# processors: all
# probe across the laboratory, over real TCP: it measures the configured links and the rate that a
# region's links share, and finds a cut link between two regions.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=400
lab="bash $GEOTRAIN_SOURCE/netem/lab --name e2e-$$-probe"

if [ "$(id -u)" -ne 0 ] || ! unshare --net --mount --uts true 2>/dev/null; then
  skip "probe in the laboratory" "namespaces cannot be made here"
  finish
fi
for tool in ip tc ethtool ping; do
  command -v "$tool" >/dev/null || { skip "probe in the laboratory" "$tool is not installed (jobs/packages, netem)" && finish; }
done

end() {
  $lab down >/dev/null 2>&1
  at_exit
}
trap end EXIT

data data.h5
cat >three.yaml <<'YAML'
name: drill
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 60}, batch: 16, optimizer: {name: sgd, lr: 0.02}}
regions: [{name: north, ranks: 2}, {name: west, ranks: 2}, {name: south, ranks: 2}]
wan:
  links:
    - {between: [north, west], bandwidth: 100 Mbit/s, latency: 25 ms}
    - {between: [north, south], bandwidth: 50 Mbit/s, latency: 10 ms}
    - {between: [west, south], bandwidth: 20 Mbit/s, latency: 60 ms}
YAML

GEOTRAIN=$program $lab up three.yaml >out 2>err || { fail "the laboratory" "$(tail -n 2 err)" && finish; }

# lab_probe NAME WORDS...: probe across the laboratory; its output in out and err, its exit code in
# $code.
lab_probe() {
  local name=$1
  shift
  timeout -k 5 "$LIMIT" $lab run "$program" probe three.yaml "$@" >out 2>err
  code=$?
  gone "$name"
}

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= 0.9 * b && a <= 1.1 * b) }'; }

links=(north:west:25:100 west:north:25:100 north:south:10:50 south:north:10:50 west:south:60:20 south:west:60:20)
# measured FROM:TO:MS:MBIT: sets $from, $to, $ms, $mbit, and as measured $latency and $rate; true if these
# are near those.
measured() {
  IFS=: read -r from to ms mbit <<<"$1"
  read -r latency rate < <(sed -nE "s/^ *- \{from: $from, to: $to, bandwidth: ([0-9.e+]+) Mbit\/s, latency: ([0-9.e+]+) ms.*/\2 \1/p" three.profile)
  near "${latency:-0}" "$ms" && near "${rate:-0}" "$mbit"
}
all_measured() {
  local link
  for link in "${links[@]}"; do measured "$link" || return; done
}

# Other programs of the host may slow the links of the laboratory: they are measured up to twice.
for attempt in 1 2; do
  lab_probe "shaped links" --out three.profile
  all_measured && break
  [ "$attempt" = 2 ] || echo "      $from to $to: $latency of $ms ms, $rate of $mbit Mbit/s: measured again"
done
ended "shaped links" 0 '^GO$'
for link in "${links[@]}"; do
  measured "$link"
  check "$from to $to: latency ${latency:-?} of $ms ms" near "${latency:-0}" "$ms"
  check "$from to $to: bandwidth ${rate:-?} of $mbit Mbit/s" near "${rate:-0}" "$mbit"
  # what probe itself sends while it measures work must not open the connections' windows before
  check "$from to $to: a slow start" grep -qE "from: $from, to: $to, .*window: [1-9]" three.profile
done

$lab block west south >/dev/null 2>&1 || fail "block" "the link cannot be cut"
lab_probe "a cut link" --link-limit "5 s"
ended "a cut link" 7 'NO-GO.*(west.*south|south.*west)'

# ---- links that share their region's access ---------------------------------------------------------------------------------------

# Exchanges of 8 MB with negligible computing between them: the time of an exchange depends on the
# rate of all links at once.
cat >plain.yaml <<'YAML'
name: shared
model: {name: dummy, parameters: 2000000}
data: {path: data.h5}
train: {until: {steps: 16}, batch: 16, optimizer: {name: sgd, lr: 0.001}, eval_every: {epochs: 0}}
regions: [{name: north, ranks: 2}, {name: west, ranks: 2}, {name: south, ranks: 2}]
sync: {local: sync, strategy: sma, period: 4}
compute: {step: 10 ms, emulate: true}
wan: {emulate: false}
YAML
sed 's/ranks: 2}/ranks: 2, access: 40 Mbit\/s}/g; s/^wan: .*/wan: {emulate: false, default: {bandwidth: 100 Mbit\/s, latency: 10 ms}}/' plain.yaml >shared.yaml

# last RUN: seconds until the last region is done.
last() { sed -nE 's/^ {6}"wall_s": ([0-9.]+),$/\1/p' "$1/summary.json" | sort -g | tail -n 1; }

# simulated RUN PROFILE: the same from a simulation with the profile and the job's compute times.
simulated() {
  sed -E 's/(eval_)?samples_per_s: [^,}]*,? ?//g; s/,? ?measured: \[[^]]*\]//g' "$2" >"$2.links"
  "$program" simulate plain.yaml --set profile="$2.links" --out "$1" >out 2>err || { tail -n 2 err >&2 && return; }
  last "$1"
}

# within A B SHARE: A is within SHARE of B.
within() { awk -v a="$1" -v b="$2" -v share="$3" 'BEGIN { exit !(a >= (1 - share) * b && a <= (1 + share) * b) }'; }

$lab down >/dev/null 2>&1
GEOTRAIN=$program $lab up shared.yaml >out 2>err || { fail "the laboratory with accesses" "$(tail -n 2 err)" && finish; }
timeout -k 5 "$LIMIT" $lab run "$program" probe plain.yaml --out shared.profile >out 2>err
code=$?
gone "a shared access"
cp out shared.report
ended "a shared access" 0 '^GO$' 'region north: its links share'
for region in north west south; do
  access=$(sed -nE "/- name: $region\$/{n; s/^ *access: ([0-9.e+]+) Mbit.s/\1/p}" shared.profile)
  check "access of $region: ${access:-?} of 40 Mbit/s" near "${access:-0}" 40
done
for link in north:west west:north north:south south:north west:south south:west; do
  IFS=: read -r from to <<<"$link"
  rate=$(sed -nE "s/^ *- \{from: $from, to: $to, bandwidth: ([0-9.e+]+) Mbit.*/\1/p" shared.profile)
  check "$from to $to alone: ${rate:-?} of 40 Mbit/s" near "${rate:-0}" 40
done
timeout -k 5 "$LIMIT" $lab run "$program" train plain.yaml --run-dir shared.run --progress none "${choices[@]}" >out 2>err
code=$?
gone "a run that shares an access"
ended "a run that shares an access" 0
took=$(last shared.run) said=$(simulated shared.sim shared.profile)
grep -v '^ *access:' shared.profile >single.profile
single=$(simulated single.sim single.profile)
check "exchanges at once: ${said:-?} s simulated, ${took:-?} s measured" within "${said:-0}" "${took:-0}" 0.15
check "${single:-?} s by single rates: the access is what counts" test "$(within "${single:-0}" "${took:-0}" 0.3 && echo near)" = ""
finish
