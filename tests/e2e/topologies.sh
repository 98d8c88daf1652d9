# labels: quick
# processors: 1
# Runs over a hub, a tree and a ring: a hub gives the bits of a mesh, killed runs are resumed to the
# same bits, an update is not lost, and what cannot be is refused in one sentence.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job two.yaml
sed -e '/name: west/a\  - {name: north, ranks: 2}' -e 's/shares: \[1, 1\]/shares: [2, 1, 1]/' \
  -e 's/links:.*/default: {bandwidth: 200 Mbit\/s, latency: 3 ms}/' two.yaml >job.yaml

for strategy in ssgd sma; do
  for topology in mesh hub tree ring; do
    name=$strategy-$topology
    train "$name" 6 job.yaml --run-dir "$name" --set sync.strategy=$strategy --set sync.topology=$topology
    ended "$name" 0
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
train "a hub by name" 6 job.yaml --run-dir named --set sync.topology=hub --set sync.hub=west
ended "a hub by name" 0
check "a hub by name: the same bits" same "$(field named params_sha256)" "$(field sma-mesh params_sha256)"

# Killed in the middle, and resumed.
for topology in hub tree ring; do
  start 6 job.yaml --run-dir killed-$topology --set sync.topology=$topology --set train.until.steps=120
  wait_round killed-$topology 2
  kill -KILL "$(rank_pid 2)"
  wait_end "killed-$topology" 60
  gone "killed-$topology"
  train "resumed-$topology" 6 job.yaml --run-dir killed-$topology --resume --set sync.topology=$topology --set train.until.steps=120
  ended "resumed-$topology" 0 'goes on from round'
  train "whole-$topology" 6 job.yaml --run-dir whole-$topology --set sync.topology=$topology --set train.until.steps=120
  ended "whole-$topology" 0
  check "$topology: the same bits after a kill" same "$(field killed-$topology params_sha256)" "$(field whole-$topology params_sha256)"
done

# Updates and models that nobody waits for.
for strategy in asgd asgd-ga ama; do
  for topology in hub tree; do
    train "$strategy-$topology" 6 job.yaml --run-dir "$strategy-$topology" --set sync.strategy=$strategy --set sync.topology=$topology
    ended "$strategy-$topology" 0
  done
done
train "a ring without rounds" 6 job.yaml --run-dir no --set sync.topology=ring --set sync.strategy=asgd
ended "a ring without rounds" 2 'mesh, hub or tree is needed'
check "a ring without rounds: nothing was made" [ ! -e no/job.yaml ]

finish
