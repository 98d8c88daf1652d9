# labels: full
# timeout: 600
# processors: 2
# The law of pipelines: parameters after training are those of one process that adds up over the
# same micro-batches in the same grouping (stages_judge.c), bit for bit.  A sample of models, of 2 to
# 4 stages of 1 and 2 workers in 1 and 2 regions, folded and not, and of schedules.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
data images.h5

# Behind which operations a model is cut into 2, 3 or 4 parts.
declare -A cuts=(
  [gpt2]='transformer.h.1' [gpt3]='transformer.h.0 transformer.h.2' [gpt4]='transformer.h.0 transformer.h.1 transformer.h.2'
  [lenet2]='pool1' [lenet3]='pool1 pool2' [lenet4]='pool1 pool2 relu3')
# The regions of its stages; s: labels are sent.
declare -A places=([12]='east east' [13]='east east east' [14]='east east east east' [23]='east west east' [24]='east west west east'
  [s2]='east west' [s3]='east west west' [s4]='east east west west')

# law_job MODEL REGIONS WORKERS...: a job with these stages, as many as there are numbers of workers.
law_job() {
  local model=$1 regions=$2 n=$(($# - 2)) i list='' names where east=1 west=1 sets=()
  shift 2
  read -ra names <<<"${cuts[${model%-*}$n]}"
  read -ra where <<<"${places[$regions$n]}"
  for ((i = 0; i < n; i++)); do
    list+="{region: ${where[i]}, workers: $1${names[i]:+, last: ${names[i]}}}, "
    [ "${where[i]}" = east ] && east=$((east + $1)) || west=$((west + $1))
    shift
  done
  write_job "$model" "$regions" "$east" "$west" "${list%, }"
}

# folded_job MODEL REGIONS WORKERS WORKERS: two stages with two parts each.
folded_job() {
  local east=$(($3 + 1)) west=$(($4 + 1)) other=west first='transformer.h.0' second='[transformer.h.1, transformer.h.2]'
  [ "$1" = lenet ] && first=pool1 second='[conv2, relu3]'
  [ "$2" = 1 ] && other=east east=$(($3 + $4 + 1))
  write_job "$1" "$2" "$east" "$west" "{region: east, workers: $3, last: $first}, {region: $other, workers: $4, last: $second}"
}

# write_job MODEL REGIONS EAST WEST STAGES
write_job() {
  local regions="{name: east, ranks: $3}" links='[]'
  ranks=$3
  [ "$2" != 1 ] && regions+=", {name: west, ranks: $4}" links=$link ranks=$(($3 + $4))
  pipeline_job "$regions" "$5" "$links" | sed 's/until: {steps: 12}/until: {steps: 6}/; s/warmup_steps: 4/warmup_steps: 2/' >cell.yaml
  [ "$2" = s ] && sed -i 's/micro_batches: 6/micro_batches: 6, labels: send/' cell.yaml
  case $1 in
  gpt-untied) sed -i 's/context: 16}/context: 16, untied: true}/' cell.yaml ;;
  lenet) sed -i 's/^model: .*/model: {name: lenet5}/; s/words.h5/images.h5/; s/name: adamw, lr: 0.01/name: sgd, lr: 0.05, momentum: 0.9/' cell.yaml ;;
  esac
}

cells=0
# cell NAME SCHEDULE OPTIONS...: the run of cell.yaml ends as the judge says.
cell() {
  local name=$1 sets=(--set "pipeline.schedule=$2") keys=("pipeline.schedule=$2") key
  for key in "${@:3}"; do sets+=(--set "$key") && keys+=("$key"); done
  cells=$((cells + 1))
  completes "$name" "$ranks" cell.yaml --run-dir "run-$cells" "${sets[@]}"
  check "$name: the parameters" same "$(weights "run-$cells")" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" cell.yaml "${keys[@]}")"
}

# Each line: model, regions (s: two, and the last stage is not where the labels are), schedule, workers of the stages.
while read -r model regions schedule workers; do
  # shellcheck disable=SC2086
  if [ "$schedule" = zb-v ]; then folded_job "$model" "$regions" $workers; else law_job "$model" "$regions" $workers; fi
  # Every second one is clipped: a norm at which some of the steps are.
  cell "$model, $regions regions, $schedule, workers $workers" "$schedule" $([ $((cells % 2)) = 0 ] || echo train.clip=0.5)
done <<'CELLS'
gpt 1 gpipe 1 1
gpt 1 1f1b 2 1
gpt 1 zb-h1 1 2
gpt 1 zb-h2 2 2
gpt 1 zb-v 2 1
gpt 1 zb-h1 4 1
gpt 1 auto 1 2 1
gpt 1 gpipe 2 1 1 2
gpt 2 1f1b 2 1 2
gpt 2 zb-h1 2 2 1
gpt 2 zb-h2 1 2 2
gpt 2 auto 1 1 2 1
gpt 2 1f1b 1 4 1
gpt 2 zb-v 1 2
gpt 2 zb-v 2 2
gpt-untied 1 1f1b 2 2
gpt-untied 2 gpipe 1 2 1
gpt-untied 2 auto 2 1 2
gpt-untied 2 zb-h2 2 1 1 2
gpt-untied 2 zb-v 2 1
lenet 1 gpipe 2 2
lenet 1 zb-h1 2 1 2
lenet 1 auto 1 2 2 1
lenet 1 zb-v 1 2
lenet 2 1f1b 1 2 1
lenet 2 zb-h2 2 1 2
lenet 2 auto 2 2 1 1
lenet 2 zb-v 2 2
gpt-untied s 1f1b 2 1
gpt-untied s auto 1 2 1
gpt-untied s zb-h2 1 1 2 1
lenet s gpipe 1 2
lenet s zb-h1 2 1 2
CELLS

# Three regions: labels go to the last one by way of that between.
three='[{between: [east, mid], bandwidth: 100 Mbit/s, latency: 2 ms}, {between: [mid, west], bandwidth: 50 Mbit/s, latency: 3 ms}, {between: [east, west], bandwidth: 50 Mbit/s, latency: 4 ms}]'
pipeline_job '{name: east, ranks: 2}, {name: mid, ranks: 2}, {name: west, ranks: 2}' '{region: east, last: transformer.h.0}, {region: mid, last: transformer.h.2}, {region: west}' "$three" |
  sed 's/context: 16}/context: 16, untied: true}/; s/micro_batches: 6/micro_batches: 6, labels: send/' >cell.yaml
ranks=6
cell "three regions, labels sent" 1f1b train.clip=0.5

law_job gpt 1 1 1
one=$("$GEOTRAIN_HELPERS/e2e.stages_judge" cell.yaml)
law_job gpt 1 2 1
check "the grouping matters" test "$one" != "$("$GEOTRAIN_HELPERS/e2e.stages_judge" cell.yaml)"
finish
