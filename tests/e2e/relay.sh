# Three regions as MPI jobs of their own, of which two only dial: the third one relays between them,
# and the bits are those of one MPI job.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

data_train=1000
job job.yaml
read -r port < <(free_ports 1)
certify east west north
sed -i -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' -e 's/emulate: true/emulate: false/' -e "s/name: west, ranks: 2}/name: west, ranks: 2}\n  - {name: north, ranks: 2, address: '127.0.0.1:$port'}/" job.yaml
sed "s|^wan:|wan:\n  transport: tcp\n  streams: 2\n  $tls|" job.yaml >apart.yaml
hub=(--set sync.strategy=sma --set sync.topology=hub) mesh=(--set sync.strategy=ssgd)

# by NAME WORDS...: a run of three jobs; its bits are those of one MPI job of the same strategy.
by() {
  local name=$1
  shift
  train "$name" 6 job.yaml --run-dir "$name" "$@"
  ended "$name, one job" 0
  for region in west north east; do begin "$region" "$name" "$@"; done
  for region in east west north; do end "$region" "$name" 0; done
  check "$name: the bits of one job" same "$(field "$name-east" params_sha256)" "$(field "$name" params_sha256)"
}

by mesh "${mesh[@]}"
by hub "${hub[@]}"
# relayed RUN: what north has copied to west for east, and back, is at least what they sent.
relayed() {
  /usr/bin/python3 -c '
import json, sys
links = {(l["from"], l["to"]): l for l in json.load(open(sys.argv[1] + "/summary.json"))["links"]}
for a, b in (("east", "west"), ("west", "east")):
    sent, copied = links[a, b]["bytes_sent"] + links[a, b]["bytes_other"], links["north", b].get("bytes_relayed", 0)
    print(a, b, sent, copied)
    assert sent <= copied < 1.2 * sent + 100000 and "bytes_relayed" not in links[a, b]' "$1"
}
check "the relayed bytes are counted" relayed mesh-east
check "and in the table" grep -q '^relayed .* MB by north' north.out

finish
