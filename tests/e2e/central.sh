# labels: full
# processors: 1
# sync.central: every worker's message crosses the WAN singly, to the byte; with one worker a region
# has the bits of a mesh; the optimizer's state is in one region's checkpoint; runs that are killed
# or stopped by a limit are resumed to the same bits; what cannot be is refused in one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job two.yaml
sed -e '/name: west/a\  - {name: north, ranks: 3}' -e 's/name: east, ranks: 2/name: east, ranks: 3/' -e 's/shares: \[1, 1\]/shares: [2, 1, 1]/' \
  -e 's/links:.*/default: {bandwidth: 200 Mbit\/s, latency: 3 ms}/' two.yaml >three.yaml

for strategy in ssgd sma; do
  completes "$strategy over a mesh" 4 two.yaml --run-dir mesh-$strategy --set sync.strategy=$strategy
  completes "$strategy, central" 4 two.yaml --run-dir two-$strategy --set sync.strategy=$strategy --set sync.central=west
  check "$strategy: one worker a region: the bits of a mesh" same "$(field two-$strategy params_sha256)" "$(field mesh-$strategy params_sha256)"
done

# crosses RUN ROUNDS: lenet5 has 61706 parameters; a message is one frame with a route.
crosses() {
  python3 - "$1" "$2" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1] + "/summary.json"))
rounds, workers, bad = int(sys.argv[2]), {"east": 2, "west": 1, "north": 2}, 0
for link in summary["links"]:
    ends = link["from"], link["to"]
    remote = [end for end in ends if end != "west"]
    n = rounds * workers[remote[0]] if len(remote) == 1 else 0
    if (link["messages"], link["bytes_sent"]) != (n, n * (4 * 61706 + 96)):
        print("     ", ends, link["messages"], link["bytes_sent"], "and not", n)
        bad = 1
sys.exit(bad or len(summary["links"]) != 6)
PY
}

for strategy in ssgd sma; do
  completes "$strategy over a hub" 8 three.yaml --run-dir hub-$strategy --set sync.strategy=$strategy --set sync.topology=hub
  completes "$strategy of three" 8 three.yaml --run-dir three-$strategy --set sync.strategy=$strategy --set sync.central=west
  check "$strategy of three: bytes of each link" crosses three-$strategy $([ $strategy = ssgd ] && echo 60 || echo 15)
  check "$strategy of three: the loss of a hub but for rounding" same \
    "$(printf '%.3f' "$(field three-$strategy test_loss)")" "$(printf '%.3f' "$(field hub-$strategy test_loss)")"
done

# optimizer RUN REGION: state arrays of the optimizer in the region's last checkpoint.
optimizer() {
  /usr/bin/python3 - "$1/ckpt/$(newest_round "$1")/$2.h5" <<'PY'
import h5py, sys
names = []
with h5py.File(sys.argv[1], "r") as f:
    f.visit(lambda name: names.append(name))
print(sum("optim/" in name and not name.endswith("steps") for name in names))
PY
}
if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
  check "ssgd: the central region has the momentum" same "$(optimizer three-ssgd west)" 1
  check "ssgd: another region has none" same "$(optimizer three-ssgd east)" 0
  check "sma: every region has its own" same "$(optimizer three-sma east)$(optimizer three-sma west)" 11
else
  skip "the optimizer's state" "python3 has no h5py (Debian: python3-h5py)"
fi

# Killed in the middle, the central region or another, and resumed.
for strategy in ssgd sma; do
  words=(three.yaml --set sync.strategy=$strategy --set sync.central=west --set train.until.steps=90)
  completes "whole-$strategy" 8 "${words[@]}" --run-dir whole-$strategy
  for rank in 3 5; do
    run=killed-$strategy-$rank
    start 8 "${words[@]}" --run-dir $run
    wait_round $run 2
    kill -KILL "$(rank_pid $rank)"
    wait_end "$run" 60
    gone "$run"
    train "$run" 8 "${words[@]}" --run-dir $run --resume
    ended "$run" 0 'continues from round'
    check "$strategy: the same bits after rank $rank was killed" same "$(field $run params_sha256)" "$(field whole-$strategy params_sha256)"
  done
  train "limited-$strategy" 8 "${words[@]}" --run-dir limited-$strategy --set limits.wan_bytes=5MB
  ended "limited-$strategy" 6 'limits.wan_bytes'
  train "limited-$strategy" 8 "${words[@]}" --run-dir limited-$strategy --resume --set limits.wan_bytes=null
  ended "limited-$strategy" 0 'continues from round'
  check "$strategy: the same bits after a limit" same "$(field limited-$strategy params_sha256)" "$(field whole-$strategy params_sha256)"
done

for strategy in asgd asgd-ga ama none; do
  train "central with $strategy" 4 two.yaml --run-dir no --set sync.central=west --set sync.strategy=$strategy
  ended "central with $strategy" 2 "sync.strategy $strategy, with which no region waits for another; expected ssgd or sma"
done
train "central and hub" 4 two.yaml --run-dir no --set sync.central=west --set sync.topology=hub
ended "central and hub" 2 'sync.central is "west" and sync.topology hub; expected one of the two'
train "central, local async" 4 two.yaml --run-dir no --set sync.central=west --set sync.local=async
ended "central, local async" 2 'sync.local async; sync.central requires sync.local sync'
check "refused: nothing was made" [ ! -e no/job.yaml ]
finish
