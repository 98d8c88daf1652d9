# labels: full
# timeout: 1200
# Each strategy, both layouts and local planes, and runs that limits.wan_bytes stops, all resumed, under
# the virtual clock twice, once while other programs load every core (bench/virtual --repeat).  A PS
# that is lost.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

/usr/bin/python3 "$GEOTRAIN_SOURCE/bench/virtual" --geotrain "$GEOTRAIN" --repeat 2 --cells 'mesh/* limit/asgd limit/asgd-ga limit/ama' --out "$PWD/runs"
check "no two runs of one differ" same "$?" 0
gone "all of them"

ranks=8
cp runs/new/job-3.yaml runs/new/data.h5 .

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
