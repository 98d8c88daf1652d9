# labels: full
# timeout: 400
# processors: 2
# pipeline.adapt: the same run twice, and one that is killed and resumed, change the order after the
# same steps and end with the same parameters.  A link that is noisy, or swings, costs nothing.  Under
# the real clock, too, the parameters are those of the run that keeps its plan.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"

completes "a fall" 6 adapt.yaml --run-dir fall --clock virtual
check "a fall: the order changes once" same "$(count fall)" 1
law "noise of 10 %" noise --set train.until.steps=60
check "noise of 10 %: the order stays" same "$(count noise)" 0
law "a wave" wave --set train.until.steps=60

# Records and summary, but for wall times.
but_wall() { cat "$1/east.jsonl" "$1/west.jsonl" "$1/summary.json" | sed -E 's/"wall_s": ?[^,}]*//' | sha256sum; }
train "the fall again" 6 adapt.yaml --run-dir again --clock virtual
check "the fall again: the same records and summary" same "$(but_wall again)" "$(but_wall fall)"

# Killed after the third checkpoint, in which the link is as planned, and after the fifth, when the
# order has changed.
GEOTRAIN_FAILPOINT=ckpt.done:3 train "killed" 6 adapt.yaml --run-dir killed --clock virtual
ended "killed" 137
GEOTRAIN_FAILPOINT=ckpt.done:2 train "killed again" 6 adapt.yaml --run-dir killed --clock virtual --resume
ended "killed again" 137
completes "resumed" 6 adapt.yaml --run-dir killed --clock virtual --resume
check "resumed: the parameters" same "$(weights killed)" "$(weights fall)"
check "resumed: the same change" same "$(changes killed east | sort -u)" "$(changes fall east)"
check "resumed: in both regions" same "$(changes killed west | sort -u)" "$(changes fall west)"

# Under the real clock too the parameters do not depend on when the order changes.
completes "real clock" 6 adapt.yaml --run-dir real --set train.until.steps=40 --set compute.step='24 ms' --set wan.links.0.trace=wave.csv
train "real clock, kept" 6 adapt.yaml --run-dir real-kept --clock virtual --set train.until.steps=40 --set compute.step='24 ms' --set pipeline.adapt=false
check "real clock: the parameters" same "$(weights real)" "$(weights real-kept)"

finish
