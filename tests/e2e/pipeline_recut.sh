# timeout: 300
# processors: 2
# A resume that divides the model differently or moves stages to other regions: each region takes
# what it lacks from the other regions' files of the round, with the optimizer's arrays.  The
# parameters at the end are those of one worker with the whole model.
pipeline_steps='8 4 3'
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

completes "the judge" 2 judge.yaml --run-dir judge --set pipeline.schedule=gpipe
completes "four stages" 6 four.yaml --run-dir four --set pipeline.schedule=1f1b

# at ROUND FROM TO: a copy of a run as it was when that round was its newest one.
at() {
  local round
  rm -rf "$3" && cp -r "$2" "$3" && rm -f "$3/summary.json" "$3/final.h5"
  for round in $(rounds "$3"); do [ "$round" -le "$1" ] || rm -r "$3/ckpt/$round"; done
}
# recut NAME RANKS FROM ROUND OPTIONS...: the run NAME continues from that round of FROM.
recut() {
  local name=$1 ranks=$2
  at "$4" "$3" "$name"
  shift 4
  train "$name" "$ranks" four.yaml --run-dir "$name" --resume "$@"
}
judged() {
  ended "$1" 0 'divides the model differently than round'
  check "$1: the parameters" same "$(weights "$1")" "$(weights judge)"
  check "$1: the test loss" same "$(field "$1" test_loss)" "$(field judge test_loss)"
}

first='pipeline.stages=[{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}]'
recut moved 6 four 1 --set 'pipeline.stages=[{region: east, last: transformer.h.0.attn}, {region: west, last: transformer.h.2.attn}, {region: west, last: transformer.h.2}, {region: east}]' --set pipeline.schedule=zb-h1
judged moved
recut back 6 moved 2 --set "$first" --set pipeline.schedule=auto
judged back
recut fewer 5 four 2 --clock virtual --set 'regions.1.ranks=2' --set 'pipeline.stages=[{region: east, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}]'
judged fewer
recut folded 6 four 1 --set pipeline.schedule=zb-v --set 'pipeline.stages=[{region: east}, {region: east}, {region: west}, {region: west}]'
judged folded
recut unfolded 6 folded 2 --set "$first" --set pipeline.schedule=zb-h2
judged unfolded
if [ $full = yes ]; then
  recut "virtual" 6 four 1 --clock virtual --set 'pipeline.stages=[{region: east, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: west, last: transformer.h.3.attn}, {region: east}]'
  judged "virtual"
fi

# ---- the final model on several ranks -------------------------------------------------------------

"$GEOTRAIN" generate back --prompt apple --tokens 30 --temperature 2 --seed 3 >one 2>err
for n in 3 $([ $full = no ] || echo 5); do
  run "written in $n parts" -n $n "$GEOTRAIN" generate back --prompt apple --tokens 30 --temperature 2 --seed 3
  ended "written in $n parts" 0
  check "written in $n parts: the text" cmp -s one out
done

# ---- what is refused ------------------------------------------------------------------------------

recut first 6 four 1 --set 'pipeline.stages=[{region: west, last: transformer.h.0}, {region: east, last: transformer.h.2}, {region: east, last: transformer.h.3.attn}, {region: west}]'
ended "another first region" 4 'pipeline.stages begins in region east there and in region west here'
at 1 four none
train "no pipeline" 6 four.yaml --run-dir none --resume --set pipeline=null --set sync.strategy=none
ended "no pipeline" 4 'its job has a pipeline and this one has none'

# The ranks of west do not see what east has written, as with a disk in each region.
at 1 four apart
cat >apart.sh <<SH
#!/bin/bash
[ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" -lt 3 ] || mount --bind /dev/null "$PWD/apart/ckpt/1/east.h5" || exit 99
exec "$GEOTRAIN" "\$@"
SH
cat >boxed.sh <<SH
#!/bin/bash
exec unshare --mount $PWD/apart.sh "\$@"
SH
chmod +x apart.sh boxed.sh
if unshare --mount true 2>/dev/null; then
  outer=$GEOTRAIN
  GEOTRAIN=$PWD/boxed.sh
  train "apart" 6 four.yaml --run-dir apart --resume --set pipeline.stages.0.last=transformer.h.0.attn
  GEOTRAIN=$outer
  ended "the file of another region is not there" 4 'region west needs .*apart/ckpt/1/east.h5 of region east; copy it there'
else
  skip "the file of another region is not there" "no mount namespace can be made here"
fi

# ---- several workers a stage ----------------------------------------------------------------------

# Every layer has two workers, wherever it is: the tied head with the embedding, and without.
pipeline_job '{name: east, ranks: 5}, {name: west, ranks: 3}' '{region: east, workers: 2, last: transformer.h.0}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 2}' "$link" >four.yaml
together='pipeline.stages=[{region: east, workers: 2, last: [transformer.h.0, lm_head]}, {region: west, workers: 2, last: [transformer.h.1, transformer.h.2]}]'
completes "the judge of two workers" 3 four.yaml --run-dir judge-twos --clock virtual --set regions='[{name: east, ranks: 3}]' --set wan.links='[]' --set 'pipeline.stages=[{region: east, workers: 2}]'
completes "two workers a stage" 8 four.yaml --run-dir twos --clock virtual
recut joined 6 twos 1 --clock virtual --set regions.0.ranks=3 --set "$together"
recut parted 8 joined 2 --clock virtual --set regions.0.ranks=5 --set 'pipeline.stages=[{region: east, workers: 2, last: transformer.h.1}, {region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 2}]'
for run in twos joined parted; do
  check "$run: the parameters" same "$(weights $run)" "$(weights judge-twos)"
done

# NISER's scores borrow the items: the same bits in one stage and in two.
mkdir sessions
awk 'BEGIN { for (i = 0; i < 240; i++) { for (t = 0; t < 5; t++) printf "%d ", 1 + (7 * i + t) % 40; print "" } }' >sessions/all_train_seq.txt
head -40 sessions/all_train_seq.txt >sessions/test.txt
"$GEOTRAIN" data import sessions sessions sessions.h5 >data.log 2>&1 || fail "sessions" "$(cat data.log)"
sed 's/^model: .*/model: {name: niser, hidden: 8}/; s/words.h5/sessions.h5/' four.yaml >niser.yaml
alone=(--set regions='[{name: east, ranks: 3}]' --set wan.links='[]' --set 'pipeline.stages=[{region: east, workers: 2}]')
apart=(--set regions='[{name: east, ranks: 5}]' --set wan.links='[]' --set 'pipeline.stages=[{region: east, workers: 2, last: linear_transform}, {region: east, workers: 2}]')
completes "items in one stage" 3 niser.yaml --run-dir items --clock virtual "${alone[@]}"
completes "items in two stages" 5 niser.yaml --run-dir items-apart --clock virtual "${apart[@]}"
check "items in two stages: the parameters" same "$(weights items-apart)" "$(weights items)"
finish
