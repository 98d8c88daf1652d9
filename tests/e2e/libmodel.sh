# Shared by the end-to-end scripts of models of ids: two regions train one, and its checkpoint is
# evaluated, exported and resumed.  Sourced after lib.sh.

# model_job NAME MODEL STEPS BATCH OPTIMIZER EVALUATIONS ROUNDS: writes job.yaml, with NAME.h5.
model_job() {
  data_set=$1.h5
  data_train=400 data images.h5
  cat >job.yaml <<YAML
name: $1
seed: 3
model: {$2}
data: {path: $data_set}
train: {until: {steps: $3}, batch: $4, optimizer: {$5}, eval_every: {$6}}
regions:
  - {name: east, ranks: 3}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: sma, period: 8}
checkpoint: {every: {steps: $7}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
YAML
}

last() { echo "$1/ckpt/$(newest_round "$1")/east.h5"; }
above() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > b)}' || { echo "      found '$1', needed more than $2" && false; }; }

# sends_all PARAMETERS: the run sent them all in each message.
sends_all() {
  local sent messages
  sent=$(field run bytes_sent) messages=$(field run messages)
  check "the WAN carries every parameter, 4 bytes each" same "$sent" $((messages * (4 * $1 + 64)))
}

# of_east KEY DIGITS: this figure of region east in the summary.
of_east() { sed -nE '/"name": "east"/,/^    \}/s/^ *"'"$1"'": ([0-9.]+),?$/\1/p' run/summary.json | awk -v digits="$2" '{printf "%." digits "f", $1}'; }

# rebuilt FIGURE KEY TENSOR WHOSE: `eval` prints the checkpoint's figure, which is KEY of the
# summary, and `export` writes a tensor of this name.
rebuilt() {
  local found
  found=$("$GEOTRAIN" eval "$(last run)" "$data_set" | sed -nE 's/^accuracy .*  '"$1"' ([0-9.]+)  \(.*/\1/p')
  check "eval builds the same model" same "$found" "$(of_east "$2" 6)"
  check "export builds it, too" "$GEOTRAIN" export "$(last run)" exported.safetensors
  check "with $4 names" grep -qa "\"$3\"" exported.safetensors
}

# learns KEY LEAST LEAST_ASYNC: it learns with the kernels ref and blas, and with asgd-ga.
learns() {
  local kernels one=(--set 'regions=[{name: east, ranks: 2}]' --set checkpoint=null) # a worker has what is tested
  for kernels in ref blas; do
    completes "kernels $kernels" 2 job.yaml --run-dir "$kernels" --set train.kernels=$kernels "${one[@]}"
    check "kernels $kernels learn" above "$(field "$kernels" "$1")" "$2"
  done
  completes "async, asgd-ga" 4 job.yaml --run-dir async --set regions.0.ranks=2 --set sync='{local: async, strategy: asgd-ga, period: 8, scale: mean}'
  check "async, asgd-ga learn" above "$(field async "$1")" "$3"
}
