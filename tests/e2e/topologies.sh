# labels: full
# processors: 1
# Runs over a hub, a tree, a ring and what auto chooses: a hub gives the bits of a mesh, killed runs
# are resumed to the same bits, an update is not lost, and what cannot be is refused in one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job two.yaml
sed -e '/name: west/a\  - {name: north, ranks: 2}' -e 's/shares: \[1, 1\]/shares: [2, 1, 1]/' \
  -e 's/links:.*/default: {bandwidth: 200 Mbit\/s, latency: 3 ms}/' two.yaml >job.yaml

for strategy in ssgd sma; do
  for topology in mesh hub tree ring; do
    name=$strategy-$topology
    completes "$name" 6 job.yaml --run-dir "$name" --set sync.strategy=$strategy --set sync.topology=$topology
  done
  check "$strategy: a hub gives the bits of a mesh" same "$(field $strategy-hub params_sha256)" "$(field $strategy-mesh params_sha256)"
done

# What a region carries is what the topology says: the hub's neighbours only it.
python3 - sma-hub north <<'PY' && ok "a hub: only links to and from it carry models" || fail "a hub: links"
import json, sys
links = json.load(open(sys.argv[1] + "/summary.json"))["links"]
used = {(l["from"], l["to"]) for l in links if l["bytes_sent"]}
hubs = {h for h in ("east", "west", "north") if all(h in pair for pair in used)}
sys.exit(0 if len(used) == 4 and len(hubs) == 1 else print(used) or 1)
PY
completes "a hub by name" 6 job.yaml --run-dir named --set sync.topology=hub --set sync.hub=west
check "a hub by name: the same bits" same "$(field named params_sha256)" "$(field sma-mesh params_sha256)"

# Killed in the middle, and resumed.
for topology in hub tree ring; do
  start 6 job.yaml --run-dir killed-$topology --set sync.topology=$topology --set train.until.steps=120
  wait_round killed-$topology 2
  kill -KILL "$(rank_pid 2)"
  wait_end "killed-$topology" 60
  gone "killed-$topology"
  train "resumed-$topology" 6 job.yaml --run-dir killed-$topology --resume --set sync.topology=$topology --set train.until.steps=120
  ended "resumed-$topology" 0 'continues from round'
  completes "whole-$topology" 6 job.yaml --run-dir whole-$topology --set sync.topology=$topology --set train.until.steps=120
  check "$topology: the same bits after a kill" same "$(field killed-$topology params_sha256)" "$(field whole-$topology params_sha256)"
done

# auto: regions take the way that simulation says takes least, and a resumed run keeps it although
# its links have changed.  Here all but one pair of regions have fast links; then only that one has.
printf '0,%s,\n1000,%s,\n' '20 Mbit/s' '20 Mbit/s' >slow.csv
printf '0,%s,\n1000,%s,\n' '300 Mbit/s' '300 Mbit/s' >fast.csv
sed -e 's/default:.*/links: [{between: [east, north], trace: b.csv, latency: 2 ms}, {between: [north, west], trace: b.csv, latency: 2 ms}, {between: [east, west], trace: a.csv, latency: 2 ms}]}/' \
  -e 's/emulate: true/emulate: true, /' job.yaml | sed -e ':a;N;$!ba;s/wan:\n *emulate: true, \n *links/wan: {emulate: true, links/' >links.yaml
# next_of RUN [N]: "by next" of its Nth line on the topology, in the lead's record.
next_of() { /usr/bin/python3 -c '
import json, sys
lines = [e for e in map(json.loads, open(sys.argv[1] + "/east.jsonl")) if e["event"] == "topology"]
e = lines[int(sys.argv[2])]
print(e["by"], e["topology"], *e["next"] or [])' "$1" "${2:-0}"; }
for topology in auto tree; do
  cp slow.csv a.csv && cp fast.csv b.csv
  completes "whole-$topology-links" 6 links.yaml --run-dir whole-$topology-links --set sync.topology=$topology --set train.until.steps=120
  start 6 links.yaml --run-dir killed-$topology-links --set sync.topology=$topology --set train.until.steps=120
  wait_round killed-$topology-links 2
  kill -KILL "$(rank_pid 2)"
  wait_end "killed-$topology-links" 60
  gone "killed-$topology-links"
  cp fast.csv a.csv && cp slow.csv b.csv
  train "resumed-$topology-links" 6 links.yaml --run-dir killed-$topology-links --resume --set sync.topology=$topology --set train.until.steps=120
  ended "resumed-$topology-links" 0 'continues from round'
  check "$topology: the same bits after a kill, over other links" same "$(field killed-$topology-links params_sha256)" "$(field whole-$topology-links params_sha256)"
  first=$(next_of killed-$topology-links 0) again=$(next_of killed-$topology-links -1)
  check "$topology: the resumed run keeps its place" same "checkpoint ${first#* }" "$again"
  completes "fresh-$topology-links" 6 links.yaml --run-dir fresh-$topology-links --set sync.topology=$topology --set train.until.steps=20
  check "$topology: a fresh run has another place" [ "$(next_of fresh-$topology-links)" != "$first" ]
done
check "auto: through the region with fast links" same "$(next_of whole-auto-links)" 'choice hub north north north'
check "auto: the record says what the others would have taken" \
  grep -qE '"event":"topology".*"exact":true.*"mesh_s":[0-9.]+,"hub_s":[0-9.]+,"tree_s":[0-9.]+,"ring_s":[0-9.]+' whole-auto-links/east.jsonl
train "auto without links" 6 job.yaml --run-dir no --set sync.topology=auto --set wan.default=null
ended "auto without links" 2 'has no latency; to choose among topologies'
train "auto and a hub" 6 job.yaml --run-dir no --set sync.topology=auto --set sync.hub=west
ended "auto and a hub" 2 'sync.hub requires topology hub'

# Updates and models that nobody waits for.
for strategy in asgd asgd-ga ama; do
  for topology in hub tree auto; do
    completes "$strategy-$topology" 6 job.yaml --run-dir "$strategy-$topology" --set sync.strategy=$strategy --set sync.topology=$topology
  done
done
train "a ring without rounds" 6 job.yaml --run-dir no --set sync.topology=ring --set sync.strategy=asgd
ended "a ring without rounds" 2 'expected mesh, hub or tree'
check "a ring without rounds: nothing was made" [ ! -e no/job.yaml ]

finish
