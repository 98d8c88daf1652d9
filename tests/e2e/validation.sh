# processors: 2
# data.validation, train.keep and train.patience: all regions judge every checkpoint alike, the final
# model is that of the best one, and training ends when none has been better for a time.  Killed and
# resumed, a run of one region ends with the same bits.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=400
job job.yaml
cat >>job.yaml <<'YAML'
compute: {step: 5 ms, emulate: true}
YAML
sed -i -e 's/by: shares, shares: \[1, 1\]/by: shares, shares: [2, 1]/' -e 's/name: east, ranks: 2/name: east, ranks: 3/' -e 's/steps: 60/steps: 400/' -e 's/lr: 0.02/lr: 0.1/' job.yaml
sed -i -e 's/path: data.h5,/path: data.h5, validation: 0.2,/' -e 's/keep: 2/keep: 1/' job.yaml
best=(--set train.keep=best --set train.patience=3)
judged() { sed -n 's/.*"event":"validation",\("round":[0-9]*,\)"samples":[0-9]*,\(.*\)}/\1\2/p' "$1/$2.jsonl"; }
# best_of RUN: the round that the last judgement names; lowest RUN: that with the lowest loss.
best_of() { judged "$1" east | sed -n '$s/.*"best":\([0-9]*\).*/\1/p'; }
lowest() { judged "$1" east | sed 's/.*"round":\([0-9]*\),"loss":\([0-9.]*\).*/\2 \1/' | sort -g | sed -n '1s/.* //p'; }
steps() { sed -n "s/.*\"event\":\"done\",\"step\":\([0-9]*\).*/\1/p" "$1/east.jsonl" | tail -n 1; }

for clock in virtual real; do
  completes "$clock clock" 5 job.yaml --clock $clock --run-dir $clock "${best[@]}"
  check "$clock: both regions judged alike" same "$(judged $clock east)" "$(judged $clock west)"
  check "$clock: the best round has the lowest loss" same "$(best_of $clock)" "$(lowest $clock)"
  check "$clock: the best round is kept" [ -e "$clock/ckpt/$(best_of $clock)/east.h5" ]
  check "$clock: training ended early" [ "$(steps $clock)" -lt 400 ]
done
check "the table says so" grep -qE '^validation +loss [0-9.]+ at checkpoint [0-9]+ of [0-9]+, whose' out
check "so does the summary" grep -qE '"validation_loss": [0-9.]+' real/summary.json
check "another round than the last was kept" [ "$(best_of virtual)" -lt "$(judged virtual east | wc -l)" ]

# place FILE: the step and the samples of a model.
place() { echo "$(attribute "$1" step) $(attribute "$1" samples)"; }
check "the final model is of the steps of the best round" same "$(attribute virtual/final.h5 step)" "$(for r in east west; do attribute "virtual/ckpt/$(best_of virtual)/$r.h5" step; done | sort -n | tail -n 1)"

# killed RUN RANKS WORDS...: kills it three times, at other places, and resumes it until it ends.
killed() {
  local run=$1 ranks=$2 at
  shift 2
  for at in ckpt.pruned:4 ckpt.renamed:3 ckpt.fsynced none; do
    GEOTRAIN_FAILPOINT=$at train "killed at $at" "$ranks" job.yaml --clock virtual --run-dir "$run" --resume=auto "${best[@]}" "$@"
    [ "$at" = none ] || [ "$code" -ne 0 ] || fail "killed at $at" "it was not"
  done
  ended "$run, resumed" 0
}
killed killed 5
check "killed and resumed: both judged alike" same "$(judged killed east | sort -u)" "$(judged killed west | sort -u)"
check "killed and resumed: the best round has the lowest loss" same "$(best_of killed)" "$(lowest killed)"

# One region takes its checkpoints at the same steps again: it ends with the same bits.
alone=(--set 'regions=[{name: east, ranks: 3}]' --set data.partition.shares=null --set wan=null --set sync.period=null --set sync.strategy=none)
completes "one region" 3 job.yaml --clock virtual --run-dir one "${best[@]}" "${alone[@]}"
killed again 3 "${alone[@]}"
check "one region, killed and resumed: the bits of an undisturbed run" same "$(field again params_sha256)" "$(field one params_sha256)"
loss_of() { "$GEOTRAIN" eval "$1" data.h5 2>/dev/null | grep -oE 'loss [0-9.]+'; }
check "one region: the file's step and samples are those of the best round" same "$(place one/final.h5)" "$(place "one/ckpt/$(best_of one)/east.h5")"
check "one region: its final model" same "$(loss_of one/final.h5)" "$(loss_of "one/ckpt/$(best_of one)/east.h5")"
completes "more patience" 3 job.yaml --clock virtual --run-dir one --resume "${best[@]}" --set train.patience=6
check "more patience: it has trained on" [ "$(judged one east | wc -l)" -gt "$(($(best_of one) + 4))" ]
completes "keep last" 3 job.yaml --clock virtual --run-dir one --resume --set train.keep=last --set train.patience=null --set train.until.steps=400
check "keep last: the table says so" grep -q 'but the last model is the final one' <<<"$(joined out)"

# A run that ends at a checkpoint has a last round of the same model, which counts for nothing.
short() { completes "$1" 3 job.yaml --clock virtual --run-dir short "${alone[@]}" --set train.keep=best --set train.patience=1 "${@:2}"; }
short "short" --set train.until.steps=20
check "short: all but the last round were the best so far" same "$(judged short east | wc -l) $(best_of short)" "3 2"
check "short: a tie" grep -q 'checkpoint round 3: .*; the best is round 2$' err
cp -r short gone
rm gone/ckpt/2/east.h5
train "short, without its best round" 3 job.yaml --clock virtual --run-dir gone --resume "${alone[@]}" --set train.keep=best --set train.until.steps=40
ended "short, without its best round" 4 'checkpoint round 2 is the best one, and cannot be read: gone/ckpt/2/east.h5: .*--set train.keep=last'
check "short, without its best round: not trained on" same "$(newest_round gone)" 3
for i in 1 2; do
  short "short, resumed" --resume
  check "short, resumed: not ended early" [ -z "$(grep 'ended early' <<<"$(joined out)")" ]
done
short "short, longer" --resume --set train.until.steps=40
check "short, longer: it has trained on" [ "$(steps short)" -gt 20 ]

# Without messages each region keeps its own; without test samples nothing else is evaluated.
"$GEOTRAIN" data split data.h5 --regions 2 --test first >/dev/null
completes "none" 4 job.yaml --run-dir none "${best[@]}" --set sync.strategy=none --set sync.period=null --set data.path=data-2.h5 --set regions.0.ranks=2
check "none: the models of both" [ -e none/final-east.h5 -a -e none/final-west.h5 ]
for region in east west; do
  check "none: the step of $region" same "$(place none/final-$region.h5)" "$(place "none/ckpt/$(best_of none)/$region.h5")"
  check "none: that of $region" same "$(loss_of none/final-$region.h5)" "$(loss_of "none/ckpt/$(best_of none)/$region.h5")"
done
local_plane=(--set sync.local=async --set sync.strategy=asgd-ga)
completes "async" 5 job.yaml --clock virtual --run-dir async "${local_plane[@]}" --set train.until.steps=100
simulates "async" async 1e-6 job.yaml "${local_plane[@]}" --set train.until.steps=100

# refuses NAME SENTENCE WORDS...: a job that cannot be.
refuses() {
  local name=$1 sentence=$2
  shift 2
  train "$name" 5 job.yaml --run-dir no "$@"
  ended "$name" 2 "$sentence"
}
refuses "patience alone" 'train.patience is 3 with train.keep last; expected best' --set train.patience=3
refuses "best alone" 'data.validation is missing; train.keep best needs it' --set train.keep=best --set data.validation=null
refuses "no checkpoints" 'data.validation is given and checkpoint.every is 0' --set checkpoint.every.steps=0
refuses "a pipeline" 'data.validation is given with pipeline.stages; expected none' --set regions.0.ranks=2 --set data.partition.shares=null --set 'pipeline={stages: [{region: east}, {region: west}], labels: send, micro_batches: 2}' --set sync=null
refuses "members" 'data.validation is given with sync.on_loss continue; expected stop' --set sync.on_loss=continue
plain simulate job.yaml --out no --set data.path=none.h5 --set regions.0.samples=2 --set regions.1.samples=100
ended "a share that rounds to 0, simulated" 3 'data.validation is 0.2 and region east has 2 training samples, of which 0 would be held back'
rm "virtual/ckpt/$(best_of virtual)/east.h5"
train "the best one is gone" 5 job.yaml --clock virtual --run-dir virtual --resume "${best[@]}"
ended "the best one is gone" 4 "checkpoint round $(best_of virtual) is the best one, and cannot be read: .*--set train.keep=last"
finish
