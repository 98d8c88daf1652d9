# timeout: 300
# Three regions over a folder, with a model above 1 MiB: what a region sends to both others is written
# once.  The bits of one MPI job over every topology, the requests that are expected, and nothing but the
# cards left; also when a region is killed around the requests for such an object and the run is resumed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

export HOME=$PWD
job job.yaml
sed -i -e 's/name: lenet5/name: mlp, mlp: [512]/' -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' -e '/name: west, ranks: 2/a\  - {name: north, ranks: 2}' \
  -e 's/emulate: true/emulate: false/' -e '/links:/d' -e 's/steps: 60/steps: 32/' -e 's/every: {steps: 10}/every: {steps: 12}/' -e 's/wan_patience: 30 s/wan_patience: 10 s/' job.yaml
sed "s|^wan:|wan:\n  transport: store\n  store: {url: 'file://$PWD/objects', poll: 10 ms}|" job.yaml >apart.yaml
sites=(east west north)

# all NAME RUN WORDS...: the three regions, to their end, with the bits of one MPI job.
all() {
  local name=$1 run=$2 site
  shift 2
  for site in "${sites[@]}"; do begin "$site" "$run" "$@"; done
  for site in "${sites[@]}"; do end "$site" "$name" 0; done
  check "$name: the bits of one MPI job" same "$(for site in "${sites[@]}"; do field "$run-$site" params_sha256; done | uniq)" "$bits"
  check "$name: only the cards are left" same "$(cd objects && find . -type f | sort | paste -sd ' ')" "./region-0 ./region-1 ./region-2"
}

# requests RUN: writes and reads of data of each region.
requests() {
  /usr/bin/python3 -c '
import json, sys
print(*(str(r["store"]["writes"]) + "+" + str(r["store"]["reads"]) for r in json.load(open(sys.argv[1] + "-east/summary.json"))["regions"]))' "$1"
}

completes "one MPI job" 6 job.yaml --run-dir one
bits=$(field one params_sha256)
# 8 rounds: a write each in a mesh; over a hub, one of the hub
all mesh mesh
check "mesh: requests" same "$(requests mesh)" "8+16 8+16 8+16"
all hub hub --set sync.topology=hub --set sync.hub=west
check "hub: requests" same "$(requests hub)" "8+8 8+16 8+8"
if [ $full = yes ]; then
  all tree tree --set sync.topology=tree
  completes "one MPI job, ring" 6 job.yaml --run-dir one-ring --set sync.topology=ring
  mesh=$bits bits=$(field one-ring params_sha256)
  all ring ring --set sync.topology=ring
  bits=$mesh
fi

# killed POINT: the hub dies at this point of a request; all resume, or begin again.
killed() {
  local run="killed-${1//[.:]/-}" site
  hub=(--set sync.topology=hub --set sync.hub=west)
  begin east "$run" "${hub[@]}"
  GEOTRAIN_FAILPOINT=$1 begin west "$run" "${hub[@]}"
  begin north "$run" "${hub[@]}"
  end west "$1" 137
  end east "$1" 5
  end north "$1" 5
  rm -rf objects
  if [ -n "$(newest_round "$run-east")" ] && [ -n "$(newest_round "$run-west")" ] && [ -n "$(newest_round "$run-north")" ]; then
    all "$1, resumed" "$run" "${hub[@]}" --resume
  else
    all "$1, begun again" "$run-again" "${hub[@]}"
  fi
}
killed store.did_put:60
if [ $full = yes ]; then
  for point in store.put:45 store.did_put:75 store.did_get:60 store.delete:40; do killed $point; done
fi

finish
