# labels: full
# timeout: 600
# processors: all
# geotrain probe --fleet: over emulated links and with slowed workers it measures what the job says,
# and the groups are those that the job means.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=300

# near NAME FOUND NEEDED SHARE
near() { check "$1: ${2:-?}, needed $3 within $4" awk -v a="${2:-0}" -v b="$3" -v s="$4" 'BEGIN { exit !(a >= (1 - s) * b && a <= (1 + s) * b) }'; }

# power DEVICE
power() { sed -nE "s/^ *- \{name: $1, .*power: ([0-9.e+]+),.*/\1/p" fleet.profile; }

# times DEVICE KEY: the list of times in us
times() { sed -nE "s/^ *- \{from: $1, .*$2: \[([^]]*)\].*/\1/p" fleet.profile | tr -d ,; }

job base.yaml
sed -E -e 's/bandwidth: 1 Gbit.s, latency: 1 ms/bandwidth: 100 Mbit\/s, latency: 25 ms/' \
  -e 's/\{name: (east|west), ranks: 2\}/{name: \1, ranks: 3, compute: {speeds: [1, 0.5]}}/' base.yaml >two.yaml
# ratio A B
ratio() { awk -v a="$(power "$1")" -v b="$(power "$2")" 'BEGIN { print a / b }'; }
within() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= 0.9 * b && a <= 1.1 * b) }'; }
# Other programs of the host may slow a core: the measurement is repeated up to twice.
for attempt in 1 2 3; do
  run "probe --fleet" -n 6 "$GEOTRAIN" probe two.yaml --fleet --out fleet.profile
  ended "probe --fleet" 0 '^GO$' '^fleet, reference tasks' '^fleet: geotrain fleet fleet.profile$'
  within "$(ratio east.1 east.0)" 0.5 && within "$(ratio west.1 west.0)" 0.5 && within "$(ratio west.0 east.0)" 1 && break
done

check "operations follow each other" awk '
  /^  operations:/ { on = 1; next }
  on && match($0, /first: [0-9]+/) {
    if (substr($0, RSTART + 7, RLENGTH - 7) + 0 != next_one + 0) bad++
    match($0, /last: [0-9]+/)
    next_one = substr($0, RSTART + 6, RLENGTH - 6) + 1
    n++
  }
  END { exit bad > 0 || n < 5 }' fleet.profile

for region in east west; do near "speed of $region.1" "$(ratio $region.1 $region.0)" 0.5 0.1; done
near "speed of west.0" "$(ratio west.0 east.0)" 1 0.1

# Columns: east.0, east.1, west.0, west.1.  Over the link 64 B have a header of as many, 4 MiB four.
for device in east.0 east.1 west.0 west.1; do
  case $device in east*) far="3 4" ;; *) far="1 2" ;; esac
  read -r -a small <<<"$(times $device small_us)"
  read -r -a large <<<"$(times $device large_us)"
  for column in $far; do
    near "64 B from $device to column $column, us" "${small[column - 1]:-}" 25010 0.05
    near "4 MiB from $device to column $column, us" "${large[column - 1]:-}" 360565 0.05
  done
done

plain fleet fleet.profile
ended "its groups" 0 '^fleet.profile: 4 devices, 2 regions, 4 groups$'
completes "with the profile" 6 two.yaml --run-dir with --set profile=fleet.profile --set train.until.steps=8
finish
