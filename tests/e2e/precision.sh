# labels: quick
# processors: 1
# train.precision bf16 where there is such a thing; a line that says why, and float32, where kernels, the CPU or the environment have none.
set -uo pipefail
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
else
  skip "oneDNN held back" "bf16: $reason"
fi
finish
