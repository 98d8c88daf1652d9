# labels: full
# timeout: 1200
# A small bench/virtual: every strategy, layout and local plane under the virtual clock twice, once
# while another program loads every core.  It also tests what a quick run leaves out: asynchronous
# runs that a limit stops and that are resumed repeat, too; a PS that is lost.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN_SOURCE/bench/virtual" --geotrain "$GEOTRAIN" --runs 2 --out "$PWD/runs"
check "no two runs of one differ" same "$?" 0
gone "all of them"

ranks=8
cp runs/job-3.yaml runs/data.h5 .
but_wall() { sed '/^  "wall_s":/d' "$1/summary.json" | sha256sum; }

# in_two RUN STRATEGY: a run that limits.wan_bytes stops, which is an event in virtual time, and its
# resume.
in_two() {
  local words=(job-3.yaml --run-dir "$1" --clock virtual --set sync.strategy="$2" --set sync.local=async)
  train "$1" "$ranks" "${words[@]}" --set limits.wan_bytes=3MB
  ended "$1: stopped" 6 'limits.wan_bytes'
  train "$1" "$ranks" "${words[@]}" --resume
  ended "$1: resumed" 0
}
for strategy in asgd asgd-ga ama; do
  in_two "$strategy-a" "$strategy"
  in_two "$strategy-b" "$strategy"
  check "$strategy: stopped and resumed twice alike" same "$(but_wall "$strategy-a")" "$(but_wall "$strategy-b")"
done

# The PS of mumbai: the others wait for its virtual time, its worker for an order.
lost() {
  local name=$1 i
  shift
  start "$ranks" job-3.yaml --run-dir "$name" --clock virtual --set train.until.epochs=1000 --set train.eval_every.steps=0 "$@"
  wait_file "$name/mumbai.jsonl"
  for i in $(seq 100); do
    grep -qs '"event":"checkpoint"' "$name/mumbai.jsonl" && break
    sleep 0.1
  done
  kill -STOP "$(rank_pid 4)"
  wait_end "$name" 30
  gone "$name"
}
lost "others" --set limits.wan_patience=4s --set limits.local=100s
ended "a PS stopped, seen by the other regions" 5 'limits.wan_patience' 'PS of region mumbai'
lost "worker" --set limits.wan_patience=100s --set limits.local=4s
ended "a PS stopped, seen by its worker" 5 'worker 0 of region mumbai' "order from this region's PS"
finish
