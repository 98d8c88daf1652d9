# Shared by the end-to-end scripts of pipeline.adapt micro_batches: a job, a trace of its link, and
# what its steps have had.  Sourced after libadapt.sh.
# A pass takes 0.7 ms beside its samples.  Over the fast link 4 micro-batches are nearly as good as
# any; over the slow one workers wait, and more of them are better.
sed 's/micro_batches: 24, adapt: true/micro_batches: 4, adapt: micro_batches/; s/step: 240 ms/step: 240 ms, pass: 700 us/; s/until: {steps: 120}/until: {steps: 80}/' adapt.yaml >micros.yaml

# STEP:MICROS from the first step with another order on, for stages_judge.
numbers() { sed -nE 's/.*"event":"decision".*"choice":"[0-9a-f]* from step ([0-9]+) on, ([0-9]+) micro-batches".*/\1:\2/p' "$1/$2.jsonl" | sort -un -t : -k 1; }
# different RUN JOB: how many numbers of micro-batches its steps have had.
different() { { sed -nE 's/.*micro_batches: ([0-9]+).*/0:\1/p' "$2"; numbers "$1" east; } | cut -d : -f 2 | sort -u | wc -l; }
# judged NAME RUN JOB WORDS...: its parameters are those of one process with the same numbers.
judged() {
  local name=$1 run=$2 job=$3
  shift 3
  check "$name: the number changes" test "$(different "$run" "$job")" -ge 2
  check "$name: the regions change alike" same "$(numbers "$run" east | tr '\n' ' ')" "$(numbers "$run" west | tr '\n' ' ')"
  check "$name: the parameters" same "$(weights "$run")" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" "$job" $(numbers "$run" east) "$@" pipeline.schedule=1f1b pipeline.adapt=false)"
}
