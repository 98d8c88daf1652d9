# processors: 1
# A disk that does not answer ends the run with 4 and a message that names the round: under the
# virtual clock, where the region waits for it, and under the real clock when training has ended;
# so does one that does not answer while the final model of a pipeline is written in parts.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
limits=(--set limits.local='6 s' --set limits.wan_patience='6 s' --set train.choices=rule)

# hangs NAME WORDS...: west's second round never becomes durable.
hangs() {
  local name=$1
  shift
  LIMIT=40 run "$name" -n 2 "$GEOTRAIN" train job.yaml --run-dir "$name" "${limits[@]}" "$@" : \
    -n 2 env GEOTRAIN_FAILPOINT=ckpt.written:2:hang "$GEOTRAIN" train job.yaml --run-dir "$name" "${limits[@]}" "$@"
}

hangs virtual --clock virtual --set compute.step='10 ms'
ended virtual 4 'waited [0-9]+ s for checkpoint round 2 of region west to be written to virtual'
check "virtual: the round before is there" test -s virtual/ckpt/1/west.h5
hangs real
ended real 4 'waited [0-9]+ s for checkpoint round 2 of region west to be written to real'

. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
LIMIT=40 run parts -n 1 env GEOTRAIN_FAILPOINT=ckpt.part:2:hang "$GEOTRAIN" train four.yaml --run-dir parts "${limits[@]}" --set pipeline.schedule=1f1b : \
  -n 5 "$GEOTRAIN" train four.yaml --run-dir parts "${limits[@]}" --set pipeline.schedule=1f1b
if [ "$code" -eq 137 ] && by_mpich; then code=4; fi # that of a rank that the launcher has killed
ended parts 4 'waited 3 s in the write of final.h5 to the run directory'
check "parts: the round before is there" test -s parts/ckpt/2/west.h5
finish
