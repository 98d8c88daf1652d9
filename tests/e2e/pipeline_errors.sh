# labels: full
# timeout: 300
# processors: 2
# Jobs with a pipeline that cannot run or go on: each ends with its code and says what is needed.
# What a resume may change, and what it may not; whole models and parts of them; steps that are not
# finite; limits.wan_bytes; ranks that are stopped.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# The last round waits for the one of step 10; more rounds would be left out where the disk is slow.
pipeline_steps="12 6 10"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

four=(four.yaml --set pipeline.schedule=1f1b)
completes "the judge" 2 judge.yaml --run-dir judge --set pipeline.schedule=gpipe
completes "four stages" 6 "${four[@]}" --run-dir four
check "four stages: the judge's parameters" same "$(weights four)" "$(weights judge)"
check "four stages: two rounds" same "$(rounds four | tr '\n' ' ')" "1 2 "

# ---- refused before the first step ---------------------------------------------------------------

# refused NAME RANKS WORD OPTIONS...: code 2, and nothing is left.
refused() {
  local name=$1 ranks=$2 word=$3
  shift 3
  run "$name" -n "$ranks" "$GEOTRAIN" train "${four[@]}" --run-dir refused "$@"
  ended "$name" 2 "$word"
  check "$name: no round" same "$(rounds refused)" ""
  rm -rf refused
}
refused "choices of a file" 6 'train.choices is words.txt, and with a pipeline products are computed by the rule; expected rule' --set train.choices=words.txt
refused "a batch larger than the data" 6 'train.batch: region east has 1146 samples, and a step of the pipeline takes 24000; expected as many samples or more' --set train.batch=24000
refused "a rank too few" 5 '5 ranks were started, but the job needs 6 \(east 3, west 3\)'
refused "a rank too many" 7 '7 ranks were started, but the job needs 6 \(east 3, west 3\)'
refused "ranks that are not the stages'" 6 'the stages of pipeline.stages in region east have 2 workers, and regions.0.ranks is 2, of which 1 are workers' --set regions.0.ranks=2
refused "micro-batches of a part of a sample" 6 'pipeline.micro_batches is 7 and train.batch 24; expected a number that divides the batch' --set pipeline.micro_batches=7
refused "a memory too small" 6 'pipeline.memory is .* a worker of stage 0 needs' --set pipeline.memory=1kB
run "probe" -n 6 "$GEOTRAIN" probe four.yaml
ended "probe" 2 'four.yaml: pipeline.stages is given, and probe measures steps of the whole model on every worker; expected a job without the key pipeline'
check "probe: nothing was measured" same "$(grep -c 'probe: [cil]' err)$(ls profile.yaml 2>/dev/null)" 0

# ---- resumes -------------------------------------------------------------------------------------

# resumed RUN OPTIONS...: a copy of the run up to step 10, resumed; the end of the training is the
# same, so the parameters must be.
resumed() {
  local name=$1
  shift
  rm -rf "$name" && cp -r four "$name" && rm -r "$name/ckpt/2" "$name/summary.json" "$name/final.h5"
  train "resume, $name" 6 "${four[@]}" --run-dir "$name" --resume "$@"
}
for change in pipeline.schedule=zb-h2 pipeline.schedule=auto pipeline.memory=10MB; do
  resumed "$change" --set "$change"
  ended "resume, $change" 0 'continues from round 1'
  check "resume, $change: the parameters" same "$(weights "$change")" "$(weights judge)"
done
# Another sum over micro-batches has other bits, those of the judge with the same change.
resumed micros --set pipeline.micro_batches=3
ended "resume, other micro-batches" 0 'continues from round 1'
cp -r judge judge3 && rm -r judge3/ckpt/2 judge3/summary.json judge3/final.h5
train "the judge with other micro-batches" 2 judge.yaml --run-dir judge3 --resume --set pipeline.schedule=gpipe --set pipeline.micro_batches=3
ended "the judge with other micro-batches" 0 'continues from round 1'
check "resume, other micro-batches: the parameters" same "$(weights micros)" "$(weights judge3)"
check "resume, other micro-batches: they are others" test "$(weights micros)" != "$(weights judge)"
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 2}' '{region: east}, {region: west}, {region: east}' "$link" |
  sed 's/ranks: 2}, {name: west/ranks: 3}, {name: west/' >plain.yaml
completes "stages without names" 5 plain.yaml --run-dir plain --set pipeline.schedule=auto
check "stages without names: the judge's parameters" same "$(weights plain)" "$(weights judge)"
train "resume, stages less" 2 judge.yaml --run-dir four --resume --set pipeline.schedule=gpipe
ended "resume, stages less" 2 'judge.yaml is not the job of the run .*regions: a list of 2 -> a list of 1'

# ---- whole models and parts ----------------------------------------------------------------------

# command NAME CODE WORD ARGUMENTS...
command_says() {
  local name=$1 want=$2 word=$3
  shift 3
  plain "$@"
  ended "$name" "$want" "$word"
}
command_says "eval of the final model" 0 'accuracy .*, gpt, the final model, step 12' eval four words.h5
check "eval of the final model: the test loss" grep -q "loss $(printf %.3f "$(field judge test_loss)")" out
command_says "export of the final model" 0 '53 tensors, .* numbers of gpt at step 12' export four four.safetensors
command_says "generate by the final model" 0 apple generate four --prompt apple --tokens 3
for region in east west; do
  file=four/ckpt/2/$region.h5
  words="$file holds only the stages of region $region, a part of model gpt; expected the whole model, final.h5, which the pipeline's run writes at its end"
  command_says "eval of a part, $region" 4 "$words" eval "$file" words.h5
  command_says "export of a part, $region" 4 "$words" export "$file" part.safetensors
  command_says "generate by a part, $region" 4 "$words" generate "$file" --prompt apple
done
check "export of a part: nothing is left" test ! -e part.safetensors
plain eval judge/ckpt/2/east.h5 words.h5
ended "eval of a pipeline in one region, whose file is whole" 0 'round 2 of region east'
# The region that writes the final model has no data, and yet the model has its vocabulary.
pipeline_job '{name: east, ranks: 2}, {name: west, ranks: 3}' '{region: west, last: transformer.h.0}, {region: east, last: transformer.h.2}, {region: west}' "$link" >back.yaml
completes "data in the second region" 5 back.yaml --run-dir back --set pipeline.schedule=1f1b
command_says "generate by its final model" 0 apple generate back --prompt apple --tokens 3
completes "the judge from a final model" 2 judge.yaml --run-dir judge-init --set pipeline.schedule=gpipe --set train.init=four/final.h5
completes "train.init, a final model" 6 "${four[@]}" --run-dir init --set train.init=four/final.h5
check "train.init, a final model: the judge's parameters" same "$(weights init)" "$(weights judge-init)"
train "train.init, a part" 6 "${four[@]}" --run-dir part --set train.init=four/ckpt/2/east.h5
ended "train.init, a part" 4 'train.init four/ckpt/2/east.h5 holds only the stages of region east; expected the whole model, final.h5 of the pipeline.s run'

# ---- not finite ----------------------------------------------------------------------------------

# count RUN REGION TEXT: lines of the region's record with the text.
count() { grep -c -- "$3" "$1/$2.jsonl"; }

train "a rate that explodes" 6 "${four[@]}" --run-dir wild --set train.until.steps=200 --set train.optimizer.lr=1e6 --set checkpoint.every.steps=1
ended "a rate that explodes" 6 'gradient of region east is not finite and was dropped \(3 so far, limits.nonfinite 3\)' 'a limit ended the run \(limits.nonfinite'
for region in east west; do
  check "a rate that explodes: $region drops three steps" same "$(count wild $region '"event":"nonfinite"')" 3
  check "a rate that explodes: $region ends with 6" grep -q '"event":"stopped","code":6,"reason":"limit"' "wild/$region.jsonl"
done
rm -rf spoilt && cp -r four spoilt && rm -r spoilt/summary.json spoilt/final.h5
"$GEOTRAIN_HELPERS/e2e.poison" spoilt 2 west model/params nan || fail "poison"
train "the newest round is not finite in one region" 6 "${four[@]}" --run-dir spoilt --resume
ended "the newest round is not finite in one region" 0 'ckpt/2/west.h5: model/params has non-finite values' 'continues from round 1'
check "the newest round is not finite in one region: the parameters" same "$(weights spoilt)" "$(weights judge)"
rm -rf huge && cp -r four huge && rm -r huge/summary.json huge/final.h5
"$GEOTRAIN_HELPERS/e2e.poison" huge 2 west model/params 3e38 || fail "poison"
train "one region's parameters are huge" 6 "${four[@]}" --run-dir huge --resume --set train.until.steps=200
ended "one region's parameters are huge" 6 'is not finite and was dropped \(3 so far, limits.nonfinite 3\)'
train "resume before it" 6 "${four[@]}" --run-dir huge --resume-round 1 --set train.until.steps=12
ended "resume before it" 0 'continues from round 1'
check "resume before it: the parameters" same "$(weights huge)" "$(weights judge)"

# ---- limits --------------------------------------------------------------------------------------

# sent RUN: bytes of activations and gradients of them that its regions have sent.
sent() { sed -nE 's/.*"wan_bytes":([0-9]+).*/\1/p' "$1/east.jsonl" | tail -n 1 | awk -v w="$(sed -nE 's/.*"wan_bytes":([0-9]+).*/\1/p' "$1/west.jsonl" | tail -n 1)" '{ print $1 + w }'; }

long=(--set train.until.steps=2000 --set train.eval_every.epochs=0 --set train.eval_every.steps=null)
train "limits.wan_bytes" 6 "${four[@]}" --run-dir bytes "${long[@]}" --set limits.wan_bytes=2MB
ended "limits.wan_bytes" 6 'a limit ended the run .*limits.wan_bytes.*; a checkpoint was written'
step=$(sed -nE 's/.*"event":"stopped".*"step":([0-9]+).*/\1/p' bytes/east.jsonl)
bytes=$(sent bytes)
check "limits.wan_bytes: it is reached, and exceeded by less than a step ($bytes B in $step steps)" \
  test "$bytes" -gt 2000000 -a $((bytes - bytes / step)) -le 2000000
check "limits.wan_bytes: a checkpoint of the last step" grep -q "\"event\":\"checkpoint\".*\"step\":$step,\"stop\":6" bytes/west.jsonl
train "limits.wan_bytes, resumed with the same" 6 "${four[@]}" --run-dir bytes --resume "${long[@]}" --set limits.wan_bytes=2MB
ended "limits.wan_bytes, resumed with the same" 6
check "limits.wan_bytes, resumed with the same: no step is made" same "$(sed -nE 's/.*"event":"stopped".*"step":([0-9]+).*/\1/p' bytes/east.jsonl | tail -n 1)" "$step"
train "limits.wan_bytes, resumed with more" 6 "${four[@]}" --run-dir bytes --resume "${long[@]}" --set limits.wan_bytes=3MB
ended "limits.wan_bytes, resumed with more" 6 'continues from round'
check "limits.wan_bytes, resumed with more: what was sent before counts" test "$(sent bytes)" -gt 3000000 -a "$(sent bytes)" -le $((3000000 + 2000000 / step + 1))

# stopped NAME DIR RANK OPTIONS -- WORD...: a rank is stopped in the middle of the training and stays
# so.
stopped() {
  local name=$1 dir=$2 rank=$3 options=() since pid
  shift 3
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  start 6 "${four[@]}" --run-dir "$dir" "${long[@]}" "${options[@]}"
  wait_file "$dir/west.jsonl"
  sleep 2
  pid=$(rank_pid "$rank")
  kill -STOP "$pid"
  since=$SECONDS
  wait_end "$name" 60
  check "$name: within the deadline" test $((SECONDS - since)) -le 20
  gone "$name"
  ended "$name" 5 "$@"
}
waited='waited 4 s \(limits.local\) for the gradient of batch [0-9]+ from worker 0 of region west, where stage 1 runs [FBW]+ of span 1, micro-batch [0-5]'
stopped "a worker is stopped" worker 4 --set limits.local=4s --set limits.wan_patience=60s -- "$waited"
# It has not taken its last keep-alive when it is ordered to make a pass.
stopped "a worker is stopped that waits" waiting 4 --set limits.local=4s --set limits.wan_patience=60s --set wan.links.0.latency='1500 ms' -- "$waited"
stopped "a PS is stopped" ps 3 --set limits.local=60s --set limits.wan_patience=4s -- \
  'waited [0-9]+ s \(limits.wan_patience\) for any sign of the PS of region west'
finish
