# labels: full
# processors: 1
# One PS dies at each named point of the checkpoint writer: no rank survives, every resume works,
# and the model at the end is that of an undisturbed run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
completes "undisturbed" 4 job.yaml --run-dir whole
sha=$(field whole params_sha256)

# dies POINT: in one region only, at its second round, in west and east in turn.
west=
dies() {
  local point=$1 east=env
  if [ -z "$west" ]; then west="GEOTRAIN_FAILPOINT=$point:2"; else east="env GEOTRAIN_FAILPOINT=$point:2" west=; fi
  run "$point" -n 2 $east "$GEOTRAIN" train job.yaml --run-dir "$point" : -n 2 env $west "$GEOTRAIN" train job.yaml --run-dir "$point"
  ended "$point: a PS is killed" 137
  completes "$point: resume" 4 job.yaml --run-dir "$point" --resume
  check "$point: model of a whole run" same "$(field "$point" params_sha256)" "$sha"
  check "$point: no temporary file stays" same "$(find "$point" -name '*.tmp*' | wc -l)" 0
}

for point in begin open half written fsynced renamed done pruned; do dies "ckpt.$point"; done
# The very first round.
run "first round" -n 2 "$GEOTRAIN" train job.yaml --run-dir first : -n 2 env GEOTRAIN_FAILPOINT=ckpt.half "$GEOTRAIN" train job.yaml --run-dir first
ended "first round: a PS is killed" 137
completes "first round: resume" 4 job.yaml --run-dir first --resume
check "first round: model of a whole run" same "$(field first params_sha256)" "$sha"
finish
