# labels: full
# Exported models in PyTorch: the same outputs in evaluation and in training, and the same weights
# and statistics after the same steps of SGD.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(dirname "${BASH_SOURCE[0]}")
python=/usr/bin/python3

if ! "$python" -c 'import torch' 2>/dev/null; then
  skip "exported models in PyTorch" "$python has no torch (Debian: python3-torch)"
  finish
fi
for model in lenet5 resnet18 resnet18,large deepfm lstm gpt-tiny gpt-tiny,untied niser mlp; do
  mkdir $model
  check "$model: a checkpoint and steps" "$GEOTRAIN_HELPERS/e2e.export_steps" $model $model
  check "$model: exported" "$GEOTRAIN" export $model/ckpt/1/east.h5 $model.safetensors
  check "$model: the same in PyTorch" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$GEOTRAIN_SOURCE/bench" "$python" "$here/export_torch.py" ${model%,*} $model.safetensors $model
done
finish
