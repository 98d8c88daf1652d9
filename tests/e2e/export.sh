# processors: 1
# A checkpoint's model as safetensors: another program reads it back, and every tensor equals that
# of the checkpoint, with PyTorch's names, shapes and layouts; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3
export=("$GEOTRAIN" export)

data data.h5
cat >job.yaml <<'YAML'
name: to-export
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 7}, batch: 16, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}
regions: [{name: east, ranks: 3}]
sync: {local: sync, strategy: none}
checkpoint: {every: {steps: 100}}
YAML

completes "lenet5" 3 job.yaml --run-dir lenet5
"$GEOTRAIN" data synth few.h5 --train 16 --test 2 >/dev/null
completes "resnet18" 2 job.yaml --run-dir resnet18 --set data.path=few.h5 --set model.name=resnet18 --set train.until.steps=1 --set train.batch=2 --set 'regions=[{name: east, ranks: 2}]'
mkdir deepfm
check "deepfm" "$GEOTRAIN_HELPERS/e2e.export_steps" deepfm deepfm # a checkpoint without a run
mkdir lstm
check "lstm" "$GEOTRAIN_HELPERS/e2e.export_steps" lstm lstm
mkdir gpt-tiny
check "gpt-tiny" "$GEOTRAIN_HELPERS/e2e.export_steps" gpt-tiny gpt-tiny
mkdir niser
check "niser" "$GEOTRAIN_HELPERS/e2e.export_steps" niser niser
last() { echo "$1/ckpt/$(newest_round "$1")/east.h5"; }

# refused CODE NAME WORDS ARGUMENTS...: one sentence, the exit code, and no file.
refused() {
  local want=$1 name=$2 word=$3 found
  shift 3
  "${export[@]}" "$@" >out 2>err
  found=$?
  if [ "$found" -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qE "$word" err && ! ls ./*.tmp new.safetensors >/dev/null 2>&1; then
    ok "$name: exit $want, says $word"
  else
    fail "$name" "exit $found: $(cat err; ls)"
  fi
}

for model in lenet5 resnet18 deepfm lstm gpt-tiny niser; do
  check "$model is exported" "${export[@]}" "$(last $model)" $model.safetensors
done
check "again gives the same bytes" eval '"${export[@]}" "$(last lenet5)" again.safetensors && cmp lenet5.safetensors again.safetensors'

cat >compare.py <<'PY'
# Compares every tensor of a safetensors file with the flat arrays of the checkpoint, value by
# value.
import json, sys
import h5py, numpy as np
blob = open(sys.argv[1], "rb").read()
length = int.from_bytes(blob[:8], "little")
head, data = json.loads(blob[8:8 + length]), blob[8 + length:]
assert length % 8 == 0 and blob[8:9] == b"{", "the header is not aligned"
notes = head.pop("__metadata__")
with h5py.File(sys.argv[2], "r") as f:
    flat = {"params": f["model/params"][:], "buffers": f["model/buffers"][:] if "model/buffers" in f else np.zeros(0, "f4")}
    step = int(f.attrs["step"])
text = lambda value: value if isinstance(value, str) else value.decode()
assert notes["format"] == "pt" and notes["model"] == sys.argv[3] and notes["job"] == ("steps" if sys.argv[3] in ("deepfm", "lstm", "gpt-tiny", "niser") else "to-export") and notes["region"] == "east", notes
assert notes["step"] == str(step) and notes["geotrain"], notes
end = 0
tensors = {}
for name, at in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
    a, b = at["data_offsets"]
    assert a == end, f"{name} begins at {a}, the tensor before it ends at {end}"
    end = b
    tensors[name] = np.frombuffer(data[a:b], {"F32": "<f4", "I64": "<i8"}[at["dtype"]]).reshape(at["shape"])
assert end == len(data), "bytes behind the last tensor"

used = {"params": 0, "buffers": 0}
def take(kind, name, there, here=None, order=None):
    """The next tensor of the flat array: shape `here` and turned by `order` it is `there`."""
    n = int(np.prod(there))
    mine = flat[kind][used[kind]:used[kind] + n].reshape(here or there)
    used[kind] += n
    if order: mine = mine.transpose(order)
    theirs = tensors.pop(name)
    assert theirs.shape == tuple(there), f"{name} is {theirs.shape}, not {there}"
    assert np.array_equal(mine.reshape(there), theirs), f"{name} differs"
    assert theirs.dtype == np.float32 and np.ptp(theirs) >= 0
def conv(name, k, c, r, bias=False):
    take("params", name + ".weight", (k, c, r, r), (r, r, c, k), (3, 2, 0, 1))
    if bias: take("params", name + ".bias", (k,))
def norm(name, c):
    take("params", name + ".weight", (c,)), take("params", name + ".bias", (c,))
    take("buffers", name + ".running_mean", (c,)), take("buffers", name + ".running_var", (c,))
    count = tensors.pop(name + ".num_batches_tracked")
    assert count.shape == () and count.dtype == np.int64 and count == step
def linear(name, o, i, image=None):
    if image: # columns (H,W,C) here, (C,H,W) there
        take("params", name + ".weight", (o, i), (o, *image), (0, 3, 1, 2))
    else:
        take("params", name + ".weight", (o, i))
    take("params", name + ".bias", (o,))

if sys.argv[3] == "lenet5":
    conv("conv1", 6, 1, 5, True), conv("conv2", 16, 6, 5, True)
    linear("fc1", 120, 400, (5, 5, 16)), linear("fc2", 84, 120), linear("fc3", 10, 84)
elif sys.argv[3] == "deepfm":
    take("params", "embedding.weight", (517, 10)), take("params", "linear.weight", (517, 1)), take("params", "bias", (1,))
    linear("mlp.0", 400, 100), linear("mlp.2", 400, 400), linear("mlp.4", 400, 400), linear("mlp.6", 1, 400)
elif sys.argv[3] == "lstm":
    take("params", "embedding.weight", (517, 128))
    for name, there in (("weight_ih_l0", (512, 128)), ("weight_hh_l0", (512, 128)), ("bias_ih_l0", (512,)), ("bias_hh_l0", (512,))):
        take("params", "lstm." + name, there)
    linear("fc", 2, 128)
elif sys.argv[3] == "gpt-tiny":
    assert notes["heads"] == "4", notes
    take("params", "transformer.wte.weight", (117, 128)), take("params", "transformer.wpe.weight", (256, 128))
    rows = lambda name: (take("params", name + ".weight", (128,)), take("params", name + ".bias", (128,)))
    for layer in range(4):
        at = f"transformer.h.{layer}"
        rows(at + ".ln_1"), linear(at + ".attn.c_attn", 384, 128), linear(at + ".attn.c_proj", 128, 128)
        rows(at + ".ln_2"), linear(at + ".mlp.c_fc", 512, 128), linear(at + ".mlp.c_proj", 128, 512)
    rows("transformer.ln_f")
    assert np.array_equal(tensors.pop("lm_head.weight").ravel(), flat["params"][:117 * 128]), "the head is tied"
elif sys.argv[3] == "niser":
    take("params", "embedding.weight", (201, 100))
    for name, there in (("w_ih", (300, 200)), ("w_hh", (300, 100)), ("b_ih", (300,)), ("b_hh", (300,)), ("b_iah", (100,)), ("b_oah", (100,))):
        take("params", "gnn." + name, there)
    for name in "gnn.linear_edge_in", "gnn.linear_edge_out", "linear_one", "linear_two": linear(name, 100, 100)
    take("params", "linear_three.weight", (1, 100)), linear("linear_transform", 100, 200)
else:
    conv("conv1", 64, 1, 3), norm("bn1", 64)
    width = 64
    for stage in range(4):
        for block in range(2):
            at, k = f"layer{stage + 1}.{block}", 64 << stage
            conv(at + ".conv1", k, width, 3), norm(at + ".bn1", k)
            conv(at + ".conv2", k, k, 3)
            if width != k: conv(at + ".downsample.0", k, width, 1), norm(at + ".downsample.1", k)
            norm(at + ".bn2", k)
            width = k
    linear("fc", 10, 512)
assert not tensors, f"left over: {list(tensors)}"
assert used["params"] == len(flat["params"]) and used["buffers"] == len(flat["buffers"]), used
print(f"{sys.argv[3]}: {len(head)} tensors are the checkpoint's")
PY
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
  for model in lenet5 resnet18 deepfm lstm gpt-tiny niser; do
    check "$model: every tensor, by numpy" "$python" compare.py $model.safetensors "$(last $model)" $model
  done
else
  skip "every tensor, by numpy" "$python has no h5py (Debian: python3-h5py)"
fi

good=$(last lenet5)
head -c 60000 "$good" >cut.h5
refused 4 "a cut checkpoint" 'cut.h5: it ends after' cut.h5 new.safetensors
refused 4 "no checkpoint" 'no.h5' no.h5 new.safetensors
refused 4 "data instead of a checkpoint" 'data.h5' data.h5 new.safetensors
refused 3 "a folder that is not there" 'nowhere/new.safetensors: cannot be written \(No such file' "$good" nowhere/new.safetensors
refused 2 "a folder in the way" 'lenet5 is a folder; expected the name of a file to write' "$good" lenet5
refused 2 "the checkpoint itself" 'is both the input and the output' "$good" "$good"
refused 2 "the checkpoint itself, with --force" 'is both the input and the output' --force "$good" "$good"
cp data.h5 notes.h5
refused 2 "another file of the user" 'notes.h5 exists and is no safetensors file, so it is not overwritten' "$good" notes.h5
check "another file of the user is untouched" cmp data.h5 notes.h5
check "--force replaces it" "${export[@]}" "$good" notes.h5 --force
check "a safetensors file is replaced" "${export[@]}" "$good" notes.h5
refused 2 "one file" '1 files are given; usage' "$good"
refused 2 "an option that is not known" "unknown option '--half'" --half "$good" new.safetensors
before=$failures
(
  trap '' XFSZ
  ulimit -f 100
  refused 3 "no room" 'new.safetensors: cannot be written \(File too large' "$good" new.safetensors
  exit $((failures - before))
) || failures=$((failures + 1))
check "what was there stays" cmp lenet5.safetensors again.safetensors
finish
