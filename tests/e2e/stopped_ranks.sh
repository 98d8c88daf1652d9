# labels: full
# timeout: 600
# processors: 1
# SIGSTOP of one rank: a worker or a PS may be stopped for 30 s; after the deadlines the run ends
# with 5 and says who waited for whom.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
steps=600
completes "undisturbed" 4 job.yaml --run-dir whole --set train.until.steps=$steps

# survives NAME RANK
survives() {
  local name=$1 rank=$2 pid
  start 4 job.yaml --run-dir "survives-$rank" --set train.until.steps=$steps --set limits.local=120s --set limits.wan_patience=300s
  wait_round "survives-$rank" 2
  pid=$(rank_pid "$rank")
  kill -STOP "$pid"
  sleep 30
  check "$name: still there after 30 s" kill -0 "$launcher"
  kill -CONT "$pid"
  wait_end "$name" 60
  gone "$name"
  ended "$name" 0
  check "$name: model of a whole run" same "$(field "survives-$rank" params_sha256)" "$(field whole params_sha256)"
}
survives "a worker stopped for 30 s" 1
survives "a PS stopped for 30 s" 2

nlost=0
# lost NAME RANK OPTIONS -- WORD...: the rank stays stopped.
lost() {
  nlost=$((nlost + 1))
  local name=$1 rank=$2 pid since options=() dir=lost$nlost
  shift 2
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  start 4 job.yaml --run-dir "$dir" --set train.until.steps=100000 "${options[@]}"
  wait_round "$dir" 2
  pid=$(rank_pid "$rank")
  kill -STOP "$pid"
  since=$SECONDS
  wait_end "$name" 60
  check "$name: within the deadline" test $((SECONDS - since)) -le 20
  gone "$name"
  ended "$name" 5 "$@"
  completes "$name: resume" 4 job.yaml --run-dir "$dir" --resume --set train.until.steps="$(($(last_step "$dir") + 20))"
}
last_step() { sed -nE 's/.*"event":"checkpoint".*"step":([0-9]+).*/\1/p' "$1/west.jsonl" "$1/east.jsonl" | sort -n | tail -n 1; }

lost "a worker stopped for good" 3 --set limits.local=5s -- 'region west' 'limits.local' 'worker 0 of region west'
lost "a PS stopped for good, seen by the other region" 2 --set limits.wan_patience=5s --set limits.local=100s -- 'region east' 'limits.wan_patience' 'PS of region west'
lost "a PS stopped for good, seen by its worker" 0 --set limits.local=5s --set limits.wan_patience=100s -- 'worker 0 of region east' "order from this region's PS"

# The same with strategies that do not wait for each other.
sed -i 's/local: sync, strategy: sma/local: async, strategy: asgd-ga/' job.yaml
lost "async: a worker stopped for good" 1 --set limits.local=5s -- 'region east' 'limits.local' 'worker 0 of region east' 
lost "async: a PS stopped for good" 2 --set limits.wan_patience=5s --set limits.local=100s -- 'PS of region west' 'region east'
finish
