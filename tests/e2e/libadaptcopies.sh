# Shared by the end-to-end scripts of pipeline.adapt with several copies: a job of two copies over two
# regions each, and what each has changed.  Sourced after libcopies.sh and libmicros.sh.
# The link of the first copy is as planned, that of the second falls to an eighth.
printf 'time_s,bandwidth,latency\n0,20 Mbit/s,\n3,2.5 Mbit/s,\n10000,0,\n' >soon.csv
sed 's/width: 16/width: 32/; s/micro_batches: 6/micro_batches: 12, adapt: true/; s/step: 24 ms/step: 240 ms, pass: 100 us/; s/until: {steps: 12}/until: {steps: 40}/; s/eval_every: {steps: 6}/eval_every: {steps: 15}/; s/every: {steps: 5}/every: {steps: 10}/; s/^wan: .*/wan: {emulate: true, default: {bandwidth: 100 Mbit\/s, latency: 2 ms}, links: [{between: [east, west], bandwidth: 20 Mbit\/s, latency: 2 ms}, {between: [london, paris], trace: soon.csv, latency: 2 ms}]}/' two.yaml >both.yaml
# From 2 micro-batches, where each pass takes some time beside its samples.
sed 's/micro_batches: 12, adapt: true/micro_batches: 2, adapt: micro_batches/; s/pass: 100 us/pass: 700 us/' both.yaml >both-micros.yaml

# numbers_of RUN: of both copies, for stages_judge.
numbers_of() { { numbers "$1" east | sed 's|^|1/|'; numbers "$1" london | sed 's|^|2/|'; } | tr '\n' ' '; }
# judged_copies NAME RUN JOB WORDS...: the regions of each copy change alike, and the parameters are
# those of one process with the same numbers.
judged_copies() {
  local name=$1 run=$2 job=$3
  shift 3
  check "$name: the first copy changes alike" same "$(changes "$run" east)" "$(changes "$run" west)"
  check "$name: the second copy changes alike" same "$(changes "$run" london)" "$(changes "$run" paris)"
  check "$name: the parameters" same "$(weights "$run")" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" "$job" $(numbers_of "$run") "$@" pipeline.schedule=zb-v pipeline.adapt=false)"
}
