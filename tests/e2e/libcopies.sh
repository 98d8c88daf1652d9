# Shared by the end-to-end scripts of several copies of a pipeline.  Sourced after libpipeline.sh.

# copies_job REGIONS PIPELINE: two copies of a pipeline that ssgd keeps equal.
copies_job() {
  pipeline_job "$1" '' '[]' | sed -e "s/^pipeline: .*/pipeline: {$2, micro_batches: 6}/" \
    -e 's/^wan: .*/wan: {emulate: true, default: {bandwidth: 100 Mbit\/s, latency: 5 ms}}\nsync: {strategy: ssgd, period: 5}/'
}
# Each copy in one region, with one worker that has the whole model; each in two regions.  The
# regions with the data have the same numbers in both, so that they get the same samples.
copies_job '{name: east, ranks: 2}, {name: london, ranks: 2}' 'stages: [{region: east}], copies: [{regions: london}]' >one.yaml
copies_job '{name: east, ranks: 2}, {name: london, ranks: 2}, {name: west, ranks: 2}, {name: paris, ranks: 2}' \
  'stages: [{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}], copies: [{regions: [london, paris]}]' >two.yaml

# law NAME JUDGE RANKS JOB ARGUMENTS...: the run ends with the parameters of the run JUDGE.
law() {
  local name=$1 judge=$2 ranks=$3 job=$4 dir
  dir=law-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 4
  completes "$name" "$ranks" "$job" --run-dir "$dir" "$@"
  check "$name: the parameters" same "$(weights "$dir")" "$(weights "$judge")"
  check "$name: the samples" same "$(field "$dir" samples)" "$(field "$judge" samples)"
}

# parallel NAME ARGUMENTS...: the same with copies of one stage, which are data parallelism.
parallel() {
  local name=$1 dir
  dir=data-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift
  sed '/^pipeline: /d' "${ONE:-one.yaml}" >data.yaml
  completes "$name: data parallel" "${RANKS:-4}" data.yaml --run-dir "$dir" --clock virtual --set model.untied=true "$@"
  law "$name: copies of one stage" "$dir" "${RANKS:-4}" "${ONE:-one.yaml}" --clock virtual --set model.untied=true --set pipeline.schedule=gpipe --set pipeline.micro_batches=1 "$@"
}
