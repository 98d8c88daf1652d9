# labels: full
# processors: 1
# train.precision bf16 if it is available; a line with the reason, and float32, if the kernels, the
# CPU or the environment have none.  The record has the precision of the workers, not of their
# parameter server; a difference between workers is reported once.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN" data synth few.h5 --train 16 --test 2 >/dev/null
cat >job.yaml <<'YAML'
name: precision
model: {name: resnet18}
data: {path: few.h5}
train: {until: {steps: 2}, batch: 2, precision: bf16, optimizer: {name: sgd, lr: 0.001}, eval_every: {epochs: 0}}
regions: [{name: east, ranks: 2}]
sync: {local: sync, strategy: none}
YAML
precision() { field "$1" precision; }

reason=$("$GEOTRAIN" info | sed -n 's/^bf16: *//p')
train "as it comes" 2 job.yaml --run-dir as-it-comes
if [ "$reason" = yes ]; then
  ended "as it comes" 0
  check "bf16 is in the summary" same "$(precision as-it-comes)" bf16
else
  ended "as it comes" 0 "train.precision is bf16, and $reason: computing in f32"
  check "f32 is in the summary" same "$(precision as-it-comes)" f32
fi

train "kernels blas" 2 job.yaml --run-dir blas --set train.kernels=blas
ended "kernels blas" 0 'kernels other than auto and dnn compute in f32: computing in f32'
check "kernels blas: f32 is in the summary" same "$(precision blas)" f32

if [ "$reason" = yes ]; then
  export DNNL_MAX_CPU_ISA=AVX2
  train "oneDNN held back" 2 job.yaml --run-dir held
  ended "oneDNN held back" 0 "DNNL_MAX_CPU_ISA keeps oneDNN from this CPU's bf16 arithmetic: computing in f32"
  check "oneDNN held back: f32 is in the summary" same "$(precision held)" f32
  unset DNNL_MAX_CPU_ISA

  # held RANK NAME WORDS...: three ranks, of which one has no bf16.
  cat >some <<'SH'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$HELD" ] && export DNNL_MAX_CPU_ISA=AVX2
exec "$@"
SH
  chmod +x some
  sed -i 's/ranks: 2/ranks: 3/' job.yaml
  held() {
    local rank=$1 name=$2
    shift 2
    HELD=$rank run "$name" -n 3 ./some "$GEOTRAIN" train job.yaml --run-dir "held-$rank-$1" --set "train.choices=$1"
  }
  for how in rule measure; do
    held 0 "a parameter server without bf16, $how" $how
    ended "a parameter server without bf16, $how" 0
    check "a parameter server without bf16, $how: its workers' is recorded" same "$(precision "held-0-$how")" bf16
    check "a parameter server without bf16, $how: nothing is said" same "$(grep -c 'computing in f32\|precision differ' err)" 0
    for rank in 1 2; do
      held $rank "worker $rank without bf16, $how" $how
      ended "worker $rank without bf16, $how" 0 'workers compute in different precision \(east (bf16\+f32|f32\+bf16)\)'
      check "worker $rank without bf16, $how: recorded" grep -qx 'bf16+f32\|f32+bf16' <<<"$(precision "held-$rank-$how")"
      check "worker $rank without bf16, $how: it says why" grep -q "rank $rank .*: train.precision is bf16, and .*: computing in f32" err
    done
  done
  check "the record's first line has it, too" grep -q '"event": *"start".*"precision": *"bf16+f32"' held-2-rule/east.jsonl
else
  skip "oneDNN held back" "bf16: $reason"
fi
finish
