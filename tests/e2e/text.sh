# processors: 1
# A decoder learns a text in two regions and continues it, from bytes and from pairs of bytes; the
# vocabulary travels in its checkpoints; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# 23 positions and 45 bytes have no common factor: training sees the verse from each of its bytes.
verse='the quick brown fox jumps over the lazy dog; '
for _ in $(seq 120); do printf '%s' "$verse"; done >verse.txt
check "bytes are imported" "$GEOTRAIN" data import text verse.txt bytes.h5 --length 23 --test-share 0.2
check "pairs are imported" "$GEOTRAIN" data import text verse.txt pairs.h5 --length 11 --vocabulary 280 --test-share 0.2
check "pairs of the other's vocabulary" "$GEOTRAIN" data import text verse.txt same.h5 --length 11 --vocabulary-of pairs.h5
cp verse.txt second.txt
plain data import text verse.txt second.txt
ended "an output is forgotten" 2 'second.txt exists and is no HDF5 file, so it is not overwritten'
check "an output is forgotten: the text stays" cmp -s verse.txt second.txt
plain data import text verse.txt pairs.h5 --vocabulary-of pairs.h5
ended "an output that is an input" 2 'pairs.h5 is both the input and the output'
"$GEOTRAIN" data info pairs.h5 >info
for word in 'name +pairs$' '1 x 1 x 12 int32' 'features +280$' 'vocabulary +[0-9a-f]{64}$'; do check "pairs: $word" grep -qE "$word" info; done
check "pairs: no table of labels" same "$(grep -c label info)" 0

cat >job.yaml <<'YAML'
name: verse
seed: 3
model: {name: gpt, layers: 1, width: 32, heads: 2, context: 32}
data: {path: bytes.h5}
train:
  until: {steps: 220}
  batch: 8
  clip: 1
  optimizer: {name: adamw, lr: 0.01, beta2: 0.99}
  schedule: {name: cosine, warmup_steps: 10}
  eval_every: {epochs: 0}
regions:
  - {name: east, ranks: 2}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: sma, period: 8}
checkpoint: {every: {steps: 110}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
YAML
continued() { "$GEOTRAIN" generate "$@" 2>err; }

for data in bytes pairs; do
  train "$data" 4 job.yaml --run-dir $data --set data.path=$data.h5
  ended "$data" 0 'verse: gpt'
  check "$data: it continues" same "$(continued $data --prompt 'the quick' --tokens 6 --temperature 0 | cut -c 1-15)" 'the quick brown'
  check "$data: a long prompt" same "$(continued $data --prompt "$verse$verse${verse% }" --tokens 24 --temperature 0 | cut -c 135-144)" ' the quick'
  check "$data: a checkpoint of a region" same "$(continued "$data/ckpt/$(newest_round $data)/west.h5" --prompt 'the lazy' --tokens 4 --top 1 | cut -c 1-12)" 'the lazy dog'
done
# Parts of the model on several ranks write the same text.
for n in $([ $full = no ] || echo 2) 3 5; do
  LIMIT=60 run "in $n parts" -n $n "$GEOTRAIN" generate pairs --prompt 'dog' --temperature 2 --seed 7 --tokens 40
  ended "in $n parts" 0
  check "in $n parts" same "$(cat out)" "$(continued pairs --prompt 'dog' --temperature 2 --seed 7 --tokens 40)"
done
LIMIT=60 run "a missing file on several ranks" -n 3 "$GEOTRAIN" generate nowhere --prompt 'dog'
ended "a missing file on several ranks" 4 'nowhere'
check "a missing file on several ranks: one message" same "$(grep -c nowhere err)" 1
check "one more byte a token" same "$(continued bytes --prompt 'x' --tokens 20 --temperature 0 | wc -c)" 22
check "no tokens" same "$(continued bytes --prompt 'as it is' --tokens 0)" 'as it is'
continued pairs --prompt 'dog' --temperature 3 --seed 7 >one
continued pairs --prompt 'dog' --temperature 3 --seed 7 >two
continued pairs --prompt 'dog' --temperature 3 --seed 8 >three
check "the same seed, the same text" cmp -s one two
check "another seed, another text" eval '! cmp -s one three'

# refuses NAME CODE WORDS ARGUMENTS...: generate refuses with these words.
refuses() {
  local name=$1 want=$2 words=$3
  shift 3
  plain generate "$@"
  ended "$name" "$want" "$words"
}
refuses "no prompt" 2 'generate: --prompt is empty or missing; expected a text that the model continues' bytes
refuses "an empty prompt" 2 'generate: --prompt is empty or missing' bytes --prompt ''
refuses "no model" 2 'generate: 0 files are given; usage: geotrain generate' --prompt x
refuses "no such file" 4 'nowhere.h5' nowhere.h5 --prompt x
refuses "a negative temperature" 2 'generate: --temperature is `-1`; expected a number, 0 or more' bytes --prompt x --temperature -1
refuses "a count that is none" 2 'generate: --tokens is `some`; expected a whole number up to 1000000' bytes --prompt x --tokens some
refuses "an unknown option" 2 'generate: option --length is unknown' bytes --prompt x --length 4
data_train=400 data images.h5
train "lenet5" 4 job.yaml --run-dir images --set 'model={name: lenet5}' --set data.path=images.h5 --set train.until.steps=2 --set train.schedule.warmup_steps=0
refuses "a model of images" 4 'images/final.h5: its model, lenet5, does not continue texts' images --prompt x

train "a text for lstm" 4 job.yaml --run-dir bad --set 'model={name: lstm}'
ended "a text for lstm" 3 'samples are windows of a text, which have no labels; model lstm learns labels'
plain info job.yaml --check --set 'model={name: lstm}'
ended "checked before" 3 'samples are windows of a text'

"$GEOTRAIN" data import text "$GEOTRAIN_SOURCE/README.md" other.h5 --length 11 --vocabulary 280 >/dev/null
cp pairs.h5 before.h5 && cp other.h5 pairs.h5
train "resumed with another vocabulary" 4 job.yaml --run-dir pairs --resume --set data.path=pairs.h5 --set train.until.steps=230
ended "resumed with another vocabulary" 4 'its data/merges differs from that of pairs.h5'
plain eval pairs pairs.h5
ended "scored on another vocabulary" 3 'pairs.h5 was imported with other columns, words or tokens than the data of the model of pairs/final.h5'
cp before.h5 pairs.h5
train "regions with two vocabularies" 4 job.yaml --run-dir bad --set data.path=pairs.h5 --set regions.1.data.path=other.h5
ended "regions with two vocabularies" 3 'vocabulary [0-9a-f]{8} \(other.h5\), region east .*; all regions need the same'
completes "regions with one vocabulary" 4 job.yaml --run-dir shared --set data.path=pairs.h5 --set regions.1.data.path=same.h5 --set train.until.steps=10
finish
