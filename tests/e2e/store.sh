# timeout: 900
# Regions that are MPI jobs of their own, joined by a store: a folder, and S3 with a signature that
# the server checks.  The bits of one MPI job, also with kills around each kind of request and a
# resume; nothing is left in the store but the cards; and one sentence for every fault.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libstore.sh"

completes "one MPI job" 4 job.yaml --run-dir one
bits=$(field one params_sha256)

# ---- a folder --------------------------------------------------------------------------------------

both folder folder
check "only the cards are left" same "$(cd objects && find . -type f | sort | paste -sd ' ')" "./region-0 ./region-1"
# the cards of the last run are there, and one that is none
printf 'garbage' >objects/region-1
begin east again
pause 0.5
begin west again
end east "a card that is none" 0
end west "a later start" 0
check "the bits of one MPI job again" same "$(field again-east params_sha256)" "$bits"
both hub hub --set sync.topology=hub
completes "one MPI job, ssgd" 4 job.yaml --run-dir one-ssgd --set sync.strategy=ssgd --set train.until.steps=30
bits=$(field one-ssgd params_sha256)
both ssgd ssgd --set sync.strategy=ssgd --set train.until.steps=30
bits=$(field one params_sha256)

# ---- probe -----------------------------------------------------------------------------------------

# probes REGION WORDS...: starts the region's probe, probe-REGION.
probes() {
  local region=$1
  shift
  $MPIRUN -n 2 "$GEOTRAIN" probe "$@" --region "$region" >"probe-$region.out" 2>"probe-$region.err" </dev/null &
  pids[probe-$region]=$!
}
sed -e "s|poll: 10 ms|&, place: 'aws:oregon'|" -e 's/name: east, ranks: 2/&, place: "gcp:london"/' -e 's/name: west, ranks: 2/&, place: "aws:london"/' apart.yaml >placed.yaml
for region in west east; do begin "$region" probed --set train.until.steps=2000; done
trains probed-east
for region in west east; do probes "$region" placed.yaml --out "$region.csv"; done
for region in west east; do end "probe-$region" "probe" 0 '^region +request +write +read$' '^east +[0-9.]+ +[0-9]+ +[0-9]+$' 'name: west, store: {upload: [0-9.]+ Mbit/s, download: [0-9.]+ Mbit/s, latency: [0-9.]+ ms}' '^GO$'; done
for region in west east; do end "$region" "a training that is probed" 0; done
check "probe: the same rates everywhere" cmp west.csv east.csv
check "probe: rates" same "$(sed -n 's/,,[0-9.]*,$//p' west.csv | paste -sd ' ')" "storage_up_mbit_s,gcp,london,aws,oregon storage_down_mbit_s,aws,oregon,gcp,london storage_up_mbit_s,aws,london,aws,oregon storage_down_mbit_s,aws,oregon,aws,london"
"$GEOTRAIN" placement --network west.csv --model-bytes 17MB >out 2>err
check "probe: placement reads the rates" grep -q 'aws, aws, oregon, central' out
check "probe: its objects are deleted" same "$(cd objects && find . -type f | sort | paste -sd ' ')" "./probe/region-0 ./probe/region-1 ./region-0 ./region-1"
probes west job.yaml --out none.csv
end probe-west "probe without a store" 2 '--out is for the rates of a store, and wan.transport is mpi'
probes west apart.yaml --out none.csv
end probe-west "probe without places" 2 'none.csv has rates between places; expected wan.store.place and regions.*place'

# ---- kills -----------------------------------------------------------------------------------------

# counts_all RUN REGION: the summary has the requests of all starts in the record.
counts_all() {
  /usr/bin/python3 -c '
import json, sys
run, region = sys.argv[1:]
starts = []
for line in map(json.loads, open(f"{run}/{region}.jsonl")):
    if line["event"] in ("start", "resumed"): starts.append(0)
    if "store" in line: starts[-1] = line["store"]["control_writes"]
has = next(r["store"]["control_writes"] for r in json.load(open(f"{run}/summary.json"))["regions"] if r["name"] == region)
sys.exit(not (len(starts) == 2 and starts[0] > 0 and starts[1] < has <= sum(starts)))' "$@"
}

# killed POINT: dies at this point of a request, in the region west; both resume, or, before the
# first round, begin again.
killed() {
  local run="killed-${1//[.:]/-}"
  begin east "$run"
  GEOTRAIN_FAILPOINT=$1 begin west "$run"
  end west "$1" 137
  end east "$1" 5
  if [ -n "$(newest_round "$run-east")" ] && [ -n "$(newest_round "$run-west")" ]; then
    both "$1, resumed" "$run" --resume
    check "$1, resumed: the requests of both starts" counts_all "$run-west" west
  else
    both "$1, begun again" "$run-again"
  fi
}
killed store.did_put:40
killed store.delete:50
if [ $full = yes ]; then
  for point in store.put store.did_put store.did_get store.delete; do
    for at in 17 35 60; do killed $point:$at; done
  done
  for at in 15 16 18 19 20; do killed store.did_get:$at; done # while regions agree that data is there
fi

# ---- S3 --------------------------------------------------------------------------------------------

serves
sed -i "s|'file://.*objects'|s3://private/run|" apart.yaml
both S3 s3
check "only the cards are left there, too" same "$(cd files && find . -type f | sort | paste -sd ' ')" "./private/run/region-0 ./private/run/region-1"
begin east busy
begin west busy
for _ in 1 2 3; do pause 0.3 && printf '503\n500\n429\n' >files/.codes; done
end east "a server that is busy now and then" 0
end west "a server that is busy now and then" 0
check "the same bits" same "$(field busy-west params_sha256)" "$bits"
AWS_SECRET_ACCESS_KEY=another begin east wrong
end east "another secret" 5 'the store cannot be used: region-0: the server answers 403 .SignatureDoesNotMatch.'
check "no secret is printed" same "$(cat out err | grep -c another)" 0
kill $server
begin east away --set 'limits.wan_patience=1 s'
end east "no server" 5 'the store cannot be used: region-0: '

# ---- faults ----------------------------------------------------------------------------------------

begin east nowhere --set wan.store.url=file:///proc/none --set 'limits.wan_patience=1 s'
end east "no folder" 5 'the store cannot be used: region-0: /proc/none'
begin east nowhere --set wan.store.url=ftp://host
end east "another protocol" 2 'wan.store.url is "ftp://host"; with wan.transport store, expected file:///FOLDER or s3://BUCKET/PREFIX'
begin east nowhere --set wan.store=null
end east "no URL" 2 'wan.store.url is missing'
twice=(--set "wan.store.url=file://$PWD/objects")
begin east first "${twice[@]}"
pause 0.5
first=${pids[east]}
begin east second "${twice[@]}"
launcher=$first
wait_end "the first of two starts" 30
check "the first of two starts ends" same "$code" 4
begin west second "${twice[@]}"
end east "the second goes on" 0
end west "with the other region" 0

finish
