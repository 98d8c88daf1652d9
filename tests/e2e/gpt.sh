# processors: 1
# GPT on a text of few words: two regions learn how the words go on; a checkpoint evaluates, exports
# and resumes with the sizes of its job; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

words words.txt 4000
check "a text is imported" "$GEOTRAIN" data import text words.txt words.h5 --length 24
data_train=400 data images.h5

cat >job.yaml <<'YAML'
name: words
seed: 3
model: {name: gpt, layers: 2, width: 32, heads: 2, context: 24}
data: {path: words.h5}
train:
  until: {steps: 120}
  batch: 16
  optimizer: {name: adamw, lr: 0.01}
  schedule: {name: cosine, warmup_steps: 10}
  clip: 1
  eval_every: {epochs: 0}
regions:
  - {name: east, ranks: 3}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: sma, period: 8}
checkpoint: {every: {steps: 60}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
YAML
params=$((256 * 32 + 24 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32))
last() { echo "$1/ckpt/$(newest_round "$1")/east.h5"; }
above() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > b)}' || { echo "      found '$1', needed more than $2" && false; }; }
fewer=(--set train.until.steps=50 --set train.batch=12)
below() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > 1 && a < b)}' || { echo "      found '$1', needed less than $2" && false; }; }

train "gpt" 5 job.yaml --run-dir run
ended "gpt" 0 "words: gpt, $params parameters" 'tokens/s  ' 'test accuracy  0\.[0-9]+  perplexity [0-9.]+  loss'
# A word has seven letters with its space, of which only the first is open: 5^(1/7) = 1.26, and the
# first letters of a sample have little before them.
check "it learns the words" below "$(field run test_perplexity)" 1.5
check "accuracy counts letters" above "$(field run test_accuracy)" 0.8
check "and is a share" above 1 "$(field run test_accuracy)"
check "perplexity is e to the loss" same "$(field run test_loss | awk '{printf "%.4f", exp($1)}')" "$(field run test_perplexity | awk '{printf "%.4f", $1}')"
check "tokens/s" same "$(field run samples_per_s | awk '{printf "%.2f", 24 * $1}')" "$(field run tokens_per_s | awk '{printf "%.2f", $1}')"
sent=$(field run bytes_sent) messages=$(field run messages)
check "the WAN carries every parameter, 4 bytes each" same "$sent" $((messages * (4 * params + 64)))

# evaluated CHECKPOINT: prints its perplexity.
evaluated() { "$GEOTRAIN" eval "$1" words.h5 "${@:2}" 2>/dev/null | sed -nE 's/^accuracy .*  perplexity ([0-9.]+)  \(.*/\1/p'; }
check "eval builds the same model" same "$(evaluated "$(last run)")" "$(sed -nE '/"name": "east"/,/^    \}/s/^ *"test_perplexity": ([0-9.]+),?$/\1/p' run/summary.json | awk '{printf "%.3f", $1}')"
check "the same with 3 threads" same "$(evaluated "$(last run)" --threads 3)" "$(evaluated "$(last run)" --threads 1)"
check "export builds it, too" "$GEOTRAIN" export "$(last run)" words.safetensors
check "with the names of minimal GPT codes" grep -qa '"transformer.h.1.attn.c_proj.weight"' words.safetensors
check "the tied head, too" grep -qa '"lm_head.weight"' words.safetensors

# refused NAME CODE WORDS ARGUMENTS...: train refuses the job with these words.
refused() {
  local name=$1 want=$2 words=$3
  shift 3
  train "$name" 5 job.yaml "$@"
  ended "$name" "$want" "$words"
}
refused "resumed with other heads" 2 'model.heads is 2 there and 4 here' --run-dir run --resume --set model.heads=4 --set train.until.steps=130
train "resumed" 5 job.yaml --run-dir run --resume --set train.until.steps=130
ended "resumed" 0 'perplexity'
refused "images for gpt" 3 'images of .* model gpt takes ids' --run-dir bad --set data.path=images.h5
refused "samples beyond the context" 3 'samples are 25 ids each, so 24 positions; with model.context 20, expected 2 to 21 ids' --run-dir bad --set model.context=20
# unfit NAME WORDS ARGUMENTS...: by the check before a run, which reads the job as ranks do.
unfit() {
  plain info job.yaml --check "${@:3}"
  ended "$1" 2 "$2"
}
unfit "heads that do not divide the width" 'model.width is 32 and model.heads 3; expected a width that is a multiple' --set model.heads=3
unfit "heads for lenet5" 'model.heads is given and model.name is lenet5; it is for model.name gpt, gpt-tiny, gpt-small, gpt-124m only' --set 'model={name: lenet5, heads: 4}'

# A guess among 17 letters has a perplexity of 17.
completes "kernels ref" 4 job.yaml --run-dir ref --set train.kernels=ref --set regions.0.ranks=2 "${fewer[@]}"
check "kernels ref learn" below "$(field ref test_perplexity)" 4
train "async, asgd-ga, bf16, untied" 4 job.yaml --run-dir async --set regions.0.ranks=2 "${fewer[@]}" --set sync='{local: async, strategy: asgd-ga, period: 8, scale: mean}' --set train.precision=bf16 --set model.untied=true
ended "async, asgd-ga, bf16, untied" 0 "words: gpt, $((params + 256 * 32)) parameters"
check "async, asgd-ga, bf16, untied learn" below "$(field async test_perplexity)" 4
# The region's own checkpoint lacks what others send at the end.
check "eval builds the untied model" below "$(evaluated "$(last async)")" 4
finish
