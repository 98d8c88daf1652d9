# labels: full
# timeout: 900
# processors: all
# probe: on emulated links it measures what the job says; every reason for a NO-GO is reported, with
# exit 7; a blocked link is found in limited time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=240

# probe NAME RANKS WORDS...: geotrain probe with these arguments.
probe() {
  local name=$1 ranks=$2
  shift 2
  run "$name" -n "$ranks" "$GEOTRAIN" probe "$@"
}

# measured FROM TO: latency in ms and bandwidth in Mbit/s of the table of links.
measured() { awk -v from="$1" -v to="$2" '$1 == from && $2 == "->" && $3 == to { print $4, $5; exit }' out; }

# profiled FROM TO: the same from the profile.
profiled() {
  sed -nE "s/^ *- \{from: $1, to: $2, bandwidth: ([0-9.e+]+) Mbit\/s, latency: ([0-9.e+]+) ms.*/\2 \1/p" "$3"
}

# near A B: within 10%.
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= 0.9 * b && a <= 1.1 * b) }'; }

# link NAME "MS MBIT" MS MBIT
link() {
  local latency rate
  read -r latency rate <<<"$2"
  check "$1: latency ${latency:-?} of $3 ms" near "${latency:-0}" "$3"
  check "$1: bandwidth ${rate:-?} of $4 Mbit/s" near "${rate:-0}" "$4"
}

parses() { /usr/bin/python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$1" 2>/dev/null || ! /usr/bin/python3 -c 'import yaml' 2>/dev/null; }

# ---- two regions ----------------------------------------------------------------------------------------------------------------

job quick.yaml
sed 's/bandwidth: 1 Gbit.s, latency: 1 ms/bandwidth: 100 Mbit\/s, latency: 25 ms/; s/topology: mesh/&, codec: {name: int8}/' quick.yaml >two.yaml
echo 'plan: {codecs: [none, topk]}' >>two.yaml
probe "two regions" 4 two.yaml --out two.profile
ended "two regions" 0 '^GO$' 'region east: ranks 0 \(PS\), 1' 'local plane of region east: shared memory' 'Open MPI|MPI:'
link "east to west" "$(measured east west)" 25 100
link "west to east" "$(measured west east)" 25 100
link "east to west, fitted" "$(profiled east west two.profile)" 25 100
[ "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" -lt 4 ] && check "more ranks than cores: a warning" grep -q 'more ranks than cores' out
check "nothing stays of the run directory" same "$(find . -maxdepth 1 -name runs)" ""
check "the profile is YAML" parses two.profile
check "a profile names every worker's speed" same "$(grep -c 'measured: \[1\]' two.profile)" 2
check "and what its server's work takes" same "$(grep -c 'local: .* update: .* apply: .* encode: ' two.profile)" 2
check "and what its codec's work takes" same "$(grep -cE 'codec: \{int8: \{encode: [0-9.e+]+ Mbit/s, decode: [0-9.e+]+ Mbit/s\}, topk: \{encode: [^}]*\}\}' two.profile)" 2
completes "with the profile" 4 two.yaml --run-dir with --set profile=two.profile --set train.until.steps=8

# ---- three regions, links that differ, and two that share their region's access -------------------------------------------------

# The access of east limits its links when all are used, though not alone; the other regions are
# slowed by it and have no access limit.
sed -E -e 's/  - \{name: west, ranks: 2\}/&\n  - {name: north, ranks: 2}/' -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' \
  -e 's/links: .*/default: {bandwidth: 20 Mbit\/s, latency: 10 ms}\n  links: [{between: [north, west], bandwidth: 20 Mbit\/s, latency: 60 ms}]/' \
  -e 's/(name: east, ranks: 2)/\1, access: 24 Mbit\/s/' quick.yaml >three.yaml
probe "three regions" 6 three.yaml --out three.profile
ended "three regions" 0 '^GO$' 'region east: its links share'
link "north to west" "$(measured north west)" 60 20
access=$(sed -nE '/- name: east$/{n; s/^ *access: ([0-9.e+]+) Mbit.s/\1/p}' three.profile)
check "access of east: ${access:-?} of 24 Mbit/s" near "${access:-0}" 24
check "and of nobody else" same "$(grep -c '^ *access: ' three.profile)" 1
link "east to west beside an access" "$(profiled east west three.profile)" 10 20
link "north to east beside an access" "$(profiled north east three.profile)" 10 20
link "west to north" "$(profiled west north three.profile)" 60 20
check "six directions in the profile" same "$(grep -c 'from: ' three.profile)" 6

# ---- reasons --------------------------------------------------------------------------------------------------------------------

probe "too few ranks" 3 quick.yaml
ended "too few ranks" 7 '^NO-GO$' '3 ranks were started, but the job needs 4' 'region west would get 1 rank, and needs at least 2'
printf '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" -ge 2 ] && export GEOTRAIN_REGION=wst || export GEOTRAIN_REGION=east\nexec "$@"\n' >misnamed
chmod +x misnamed
run "no such region" -n 4 ./misnamed "$GEOTRAIN" probe quick.yaml
ended "no such region" 7 '^NO-GO$' 'GEOTRAIN_REGION is "wst".*did you mean "west"'
probe "not a job" 4 quick.yaml --set train.batch=0
ended "not a job" 2 'train.batch'
probe "no data" 4 quick.yaml --set data.path=nowhere.h5 --out no.profile
ended "no data" 7 '^NO-GO$' 'nowhere.h5'
probe "no room for the profile" 4 quick.yaml --out nowhere/profile.yaml
ended "no room for the profile" 7 '^NO-GO$' 'nowhere/profile.yaml cannot be written'

mkdir plain
if [ "$(id -u)" -eq 0 ] && mount -o bind plain plain 2>/dev/null && mount -o remount,bind,ro plain 2>/dev/null; then
  unmount() {
    at_exit
    umount plain
  }
  trap unmount EXIT
  probe "read-only, and no data" 4 quick.yaml --run-dir plain/run --set data.path=nowhere.h5
  ended "read-only, and no data" 7 '^NO-GO$' 'Read-only file system' 'nowhere.h5'
  umount plain
  trap at_exit EXIT
else
  skip "read-only checkpoint directory" "a mount is for root only, and not in every container"
fi

# ---- hosts of their own: a blocked link, a link that is refused -----------------------------------------------------------------

tag=p$$
hosts=("${tag}a" "${tag}b")
unlab() {
  local h
  for h in "${hosts[@]}"; do
    ip link del "v$h" 2>/dev/null
    umount "$PWD/$h.net" "$PWD/$h.uts" 2>/dev/null
  done
  ip link del "$tag" 2>/dev/null
  at_exit
}

# lab: two hosts on a bridge, each with its own network and host name.
lab() {
  local h n=0 holder
  [ "$(id -u)" -eq 0 ] && command -v ip bridge nsenter unshare >/dev/null || return 1
  ip link add "$tag" type bridge 2>/dev/null && ip addr add 10.211.7.254/24 dev "$tag" && ip link set "$tag" up || return 1
  for h in "${hosts[@]}"; do
    n=$((n + 1))
    touch "$h.net" "$h.uts"
    unshare --net="$PWD/$h.net" --uts="$PWD/$h.uts" sh -c "hostname $h; ip link set lo up" || return 1
    ip link add "v$h" type veth peer name "w$h" || return 1
    nsenter --net="$PWD/$h.net" sleep 60 &
    holder=$!
    sleep 0.2
    ip link set "w$h" netns "$holder" || return 1
    kill "$holder"
    wait "$holder" 2>/dev/null
    nsenter --net="$PWD/$h.net" sh -c "ip addr add 10.211.7.$n/24 dev w$h; ip link set w$h up"
    ip link set "v$h" master "$tag" up
  done
  printf '#!/bin/sh\nh=$1\nshift\nexec nsenter --net="%s/$h.net" --uts="%s/$h.uts" -- sh -c "$*"\n' "$PWD" "$PWD" >agent
  chmod +x agent
}

# far NAME WORDS...: two ranks on each host.
far() {
  local name=$1
  shift
  run "$name" --mca btl self,vader,tcp --mca plm_rsh_agent "$PWD/agent" --host "${hosts[0]}:2,${hosts[1]}:2" -n 4 "$GEOTRAIN" probe "$@"
}

trap unlab EXIT
if lab 2>lab.err; then
  far "two hosts" quick.yaml --set wan.emulate=false --set 'wan.links.0.latency=500 ms'
  ended "two hosts" 0 '^GO$' "PS: w${hosts[0]} 10.211.7.1, on" 'region west at 10.211.7.2$' 'links, real'
  bridge link set dev "v${hosts[0]}" isolated on
  bridge link set dev "v${hosts[1]}" isolated on
  before=$SECONDS
  far "blocked" quick.yaml --set wan.emulate=false --link-limit '3 s'
  ended "blocked" 7 '^NO-GO$' "from region east \(rank 0 on ${hosts[0]}\) to region west \(rank 2 on ${hosts[1]}\).* within 3 s: the link is blocked"
  check "blocked: found in $((SECONDS - before)) s" test $((SECONDS - before)) -lt 30
  bridge link set dev "v${hosts[0]}" isolated off
  bridge link set dev "v${hosts[1]}" isolated off
  nsenter --net="$PWD/${hosts[0]}.net" ip route add unreachable 10.211.7.2/32
  nsenter --net="$PWD/${hosts[1]}.net" ip route add unreachable 10.211.7.1/32
  far "refused" quick.yaml --set wan.emulate=false --link-limit '3 s'
  ended "refused" 7 '^NO-GO$' "from region east \(rank 0 on ${hosts[0]}\) to region west .*No route to host"
else
  skip "blocked links" "namespaces and a bridge cannot be made here: $(tail -n 1 lab.err)"
fi
finish
