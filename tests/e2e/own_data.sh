# processors: 1
# Regions with their own data: a split and a run with it, normalised in the same way; a file that
# some regions share is divided among them; regions without test samples; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN" data synth whole.h5 --train 900 --test 50 >/dev/null
cat >job.yaml <<'YAML'
name: own
seed: 3
model: {name: lenet5}
data: {path: whole.h5, partition: {shares: [3, 2, 1]}}
train: {until: {epochs: 1}, batch: 10, choices: rule, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 1}}
regions:
  - {name: east, ranks: 2}
  - {name: west, ranks: 2}
  - {name: north, ranks: 2}
sync: {local: sync, strategy: sma, period: 4, weights: samples}
checkpoint: {every: {steps: 40}, keep: 9}
YAML
own=(--set data.path=null --set data.partition.by=file)
for r in 1 2 3; do own+=(--set "regions.$((r - 1)).data.path=whole-$r.h5"); done
split() {
  plain data split whole.h5 --regions 3 --shares 3,2,1 --seed 3 "$@"
}
samples() { sed -nE 's/^      "samples": ([0-9]*),/\1/p' "$1/summary.json" | paste -sd ' '; }
scores() { sed -nE 's/^      "test_accuracy": ([^,]*),/\1/p' "$1/summary.json" | paste -sd ' '; }
newest() { echo "$1/ckpt/$(newest_round "$1")/east.h5"; }

# ---- one file, and the same data as one file per region ------------------------------------------

completes "one file" 6 job.yaml --run-dir one
split
ended "a split" 0 'wrote whole-1.h5' 'wrote whole-3.h5'
train "files of their own" 6 job.yaml --run-dir own "${own[@]}"
ended "files of their own" 0 'the regions. files differ in mean or std: those of all their training images are used, mean 0\.[0-9]+, std 0\.[0-9]+$'
check "training is the same to the bit" same "$(field own params_sha256)" "$(field one params_sha256)"
check "and so are the scores" same "$(field own test_loss)" "$(field one test_loss)"
check "the parts are the same" same "$(samples own)" "450 300 150"
check "said once" same "$(grep -c 'files differ' err)" 1

# ---- the normalisation goes with the model -------------------------------------------------------

"$GEOTRAIN" eval "$(newest own)" whole.h5 >of-whole 2>/dev/null
"$GEOTRAIN" eval "$(newest own)" whole-3.h5 >of-part 2>/dev/null
check "a checkpoint is scored as it was trained, on whatever file" cmp of-whole of-part
"$GEOTRAIN" export "$(newest own)" own.safetensors >/dev/null
mean=$("$GEOTRAIN" data info whole.h5 | awk '$1 == "mean" { printf "%.5s", $2 }')
check "an export says mean and std" grep -qaE '"mean":"'"$mean"'[0-9]*","std":"0\.[0-9]+"' own.safetensors
cp -r own more
completes "a resume" 6 job.yaml --run-dir more --resume "${own[@]}" --set train.until.epochs=2
train "that of the one file" 6 job.yaml --run-dir one --resume --set train.until.epochs=2
check "a resumed run is the same to the bit" same "$(field more params_sha256)" "$(field one params_sha256)"
"$GEOTRAIN" data synth other.h5 --train 150 --test 50 --seed 9 >/dev/null
train "other data at a resume" 6 job.yaml --run-dir more --resume "${own[@]}" --set train.until.epochs=3 --set regions.2.data.path=other.h5
ended "another file at a resume" 2 'regions.2.data.path is whole-3.h5 there and other.h5 here'
cp whole-3.h5 kept.h5 && cp other.h5 whole-3.h5
train "other data at a resume" 6 job.yaml --run-dir more --resume "${own[@]}" --set train.until.epochs=3
ended "other data at a resume" 4 'more/ckpt/[0-9]+/(east|west|north).h5: its data/mean differs from that of .*; expected the data with which it was trained'
mv kept.h5 whole-3.h5

# ---- given by the job ----------------------------------------------------------------------------

# In a run in which two regions share a file.
completes "given by the job" 6 job.yaml --run-dir given --set 'data.partition.shares=[1, 1, 1]' --set regions.2.data.path=other.h5 --set 'data.mean=[0.5]' --set 'data.std=[0.25]'
check "two share a file: every sample is somebody's" same "$(samples given)" "450 450 150"
check "nothing is formed then" same "$(grep -c 'files differ' err)" 0
"$GEOTRAIN" export "$(newest given)" given.safetensors >/dev/null
check "it is what the model was given" grep -qa '"mean":"0.5","std":"0.25"' given.safetensors
train "too many channels" 6 job.yaml --run-dir no --set 'data.mean=[0.5, 0.5]' --set 'data.std=[0.25, 0.25]'
ended "too many channels" 2 'data.mean has 2 numbers, and the samples of whole.h5 1 channels; expected one a channel'
train "half of it" 6 job.yaml --run-dir no --set 'data.mean=[0.5]'
ended "half of it" 2 'data.mean has 1 numbers and data.std 0; expected one per channel in both, or neither'

# ---- shared by some ------------------------------------------------------------------------------

cp whole.h5 copy.h5
train "a copy is the same file" 6 job.yaml --run-dir copy "${own[@]}" --set 'data.partition.shares=[1, 2, 1]' --set regions.0.data.path=whole.h5 --set regions.1.data.path=copy.h5
ended "a copy is the same file" 0 'regions east and west read the same training samples \(whole.h5, copy.h5\): they are divided between them$'
check "each sample once" same "$(samples copy)" "300 600 150"

# ---- classes numbered differently ----------------------------------------------------------------

# idx FILE DIMENSIONS...: a header of idx; the bytes follow on stdin.
idx() {
  local file=$1 d
  shift
  { printf '\0\0\10\'"$#" && for d; do printf '\0\0\0\'"$(printf %o "$d")"; done && cat; } >"$file"
}
for r in 1 2; do
  mkdir "m$r"
  for split in train t10k; do
    head -c $((28 * 28 * 30)) /dev/urandom | idx "m$r/$split-images-idx3-ubyte" 30 28 28
    for i in $(seq 10); do printf '\0\1\2'; done | idx "m$r/$split-labels-idx1-ubyte" 30
  done
done
printf 'cat\ndog\nowl\n' >m1/class-names.txt
printf 'cat\nowl\ndog\nmouse\n' >m2/class-names.txt
cat >named.yaml <<'YAML'
name: named
model: {name: lenet5}
data: {partition: {by: file}}
train: {until: {steps: 2}, batch: 5, optimizer: {lr: 0.02}}
regions: [{name: east, ranks: 2, data: {path: m1.h5}}, {name: west, ranks: 2, data: {path: m2.h5}}]
sync: {strategy: sma, period: 2}
YAML
named() {
  for r in 1 2; do "$GEOTRAIN" data import mnist "m$r" "m$r.h5" >/dev/null; done
  train "$1" 4 named.yaml --run-dir "named-$2"
}
named "other classes" a
ended "other classes" 3 'region west has samples of 28 x 28 x 1 uint8 of 4 classes \(m2.h5\).*; all regions need the same: number classes, ids and columns alike: .geotrain data schema. makes one schema of the files'
printf 'cat\nowl\ndog\n' >m2/class-names.txt
named "another order" b
ended "another order" 3 'regions east and west number their classes differently: class 1 is `dog` in east \(m1.h5\) and `owl` in west \(m2.h5\); number classes, ids and columns alike'
check "another order: said once" same "$(grep -c '^geotrain: ' err)" 1
rm m2/class-names.txt
named "names in one region" c
ended "names in one region" 0 'the classes of region east have names and those of region west do not'
cp m1/class-names.txt m2
named "one order" d
ended "one order" 0

# ---- without test samples ------------------------------------------------------------------------

split --test last
completes "no tests where the mean is formed" 6 job.yaml --run-dir last "${own[@]}"
check "the mean is scored by the region that has them" same "$(field last test_accuracy) $(field last test_loss)" "$(field own test_accuracy) $(field own test_loss)"
check "the others are not" same "$(scores last | cut -d ' ' -f 1,2)" "null null"
check "training does not mind" same "$(field last params_sha256)" "$(field own params_sha256)"
split --test first
completes "no tests elsewhere" 6 job.yaml --run-dir first "${own[@]}"
check "the mean is scored" same "$(field first test_loss)" "$(field own test_loss)"

# ---- the job that comes with it ------------------------------------------------------------------

mkdir datasets
"$GEOTRAIN" data synth datasets/fashion-mnist.h5 --train 900 --test 100 >/dev/null
"$GEOTRAIN" data split datasets/fashion-mnist.h5 --regions 3 --by label >/dev/null
train "by label" 6 "$GEOTRAIN_SOURCE/jobs/own-data-3-regions.yaml" --run-dir label --set train.until.epochs=1
ended "by label" 0 'files differ in mean or std'

# ---- what cannot be ------------------------------------------------------------------------------

"$GEOTRAIN" data synth classes.h5 --train 150 --test 100 --classes 7 >/dev/null
train "other classes" 6 job.yaml --run-dir no "${own[@]}" --set regions.1.data.path=classes.h5
ended "other classes" 3 'region west has samples of 28 x 28 x 1 uint8 of 7 classes \(classes.h5\), region east of 28 x 28 x 1 uint8 of 10 classes \(whole-1.h5\); all regions need the same'
check "said once" same "$(grep -c '^geotrain: ' err)" 1
check "nothing is left behind" test ! -e no
split --regions x
ended "no number" 2 'data split --regions is .x.; expected a whole number'
finish
