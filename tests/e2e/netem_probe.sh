# labels: full
# timeout: 600
# processors: all
# probe across the laboratory, over real TCP: it measures what the links are shaped to, and finds a cut link between two regions point to point.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=240
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

# lab_probe NAME WORDS...: probe across the laboratory; its words in out and err, its exit in $code.
lab_probe() {
  local name=$1
  shift
  timeout -k 5 "$LIMIT" $lab run "$program" probe three.yaml "$@" >out 2>err
  code=$?
  gone "$name"
}

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= 0.9 * b && a <= 1.1 * b) }'; }

lab_probe "shaped links" --out three.profile
ended "shaped links" 0 '^GO$'
for link in north:west:25:100 west:north:25:100 north:south:10:50 south:north:10:50 west:south:60:20 south:west:60:20; do
  IFS=: read -r from to ms mbit <<<"$link"
  read -r latency rate < <(sed -nE "s/^ *- \{from: $from, to: $to, bandwidth: ([0-9.e+]+) Mbit\/s, latency: ([0-9.e+]+) ms.*/\2 \1/p" three.profile)
  check "$from to $to: latency ${latency:-?} of $ms ms" near "${latency:-0}" "$ms"
  check "$from to $to: bandwidth ${rate:-?} of $mbit Mbit/s" near "${rate:-0}" "$mbit"
done

$lab block west south >/dev/null 2>&1 || fail "block" "the link cannot be cut"
lab_probe "a cut link" --link-limit "5 s"
ended "a cut link" 7 'NO-GO.*(west.*south|south.*west)'

mkdir -p closed && mount -o bind,ro closed closed 2>/dev/null
$lab unblock west south >/dev/null 2>&1
lab_probe "a read-only directory" --run-dir closed/run
umount closed 2>/dev/null
ended "a read-only directory" 7 'NO-GO' 'closed/run|Read-only'
finish
