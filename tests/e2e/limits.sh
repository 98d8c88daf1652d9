# processors: 1
# Limits that end a run: exit 6 with a checkpoint and a message; ranks that are killed: the
# launcher's code, no rank survives, the run can be resumed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
sed -i 's/batch: 16/batch: 4/' job.yaml # the time of a run is that of the WAN
train "wan_bytes" 4 job.yaml --run-dir bytes --set limits.wan_bytes=2MB --set train.until.steps=2000
ended "wan_bytes" 6 'limits.wan_bytes'
check "wan_bytes: a checkpoint" test -n "$(newest_round bytes)"
completes "wan_bytes: a larger limit" 4 job.yaml --run-dir bytes --resume --set limits.wan_bytes=1GB --set train.until.steps=60
train "undisturbed" 4 job.yaml --run-dir whole
check "wan_bytes: model of a whole run" same "$(field bytes params_sha256)" "$(field whole params_sha256)"

for local in "sync sma" "async asgd"; do
  set -- $local
  sed -e "s/local: sync, strategy: sma/local: $1, strategy: $2/" -e 's/lr: 0.02/lr: 1e6/' job.yaml >wild.yaml
  train "$2 that diverges" 4 wild.yaml --run-dir "wild-$2" --set train.until.steps=2000
  ended "$2 that diverges" 6 'not finite' 'limits.nonfinite'
  check "$2 that diverges: a checkpoint" test -n "$(newest_round "wild-$2")"
done

long=(--set train.until.steps=200 --set 'wan.links.0.latency=10 ms')
# killed NAME RANK: one rank dies during training.
killed() {
  local name=$1 rank=$2 since
  start 4 job.yaml --run-dir "killed-$rank" "${long[@]}"
  wait_round "killed-$rank" 2
  since=$SECONDS
  kill -KILL "$(rank_pid "$rank")"
  wait_end "$name" 40
  gone "$name"
  ended "$name" 137
  check "$name: all gone long before the deadlines of 30 s" test $((SECONDS - since)) -le 20
  completes "$name: resume" 4 job.yaml --run-dir "killed-$rank" --resume "${long[@]}"
  check "$name: samples of a whole run" same "$(field "killed-$rank" samples)" $((2 * 200 * 4))
}
killed "a worker killed" 1
killed "a PS killed" 2
finish
