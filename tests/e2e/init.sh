# processors: 1
# train.init from a safetensors file: the bits of a start from the checkpoint that it was exported
# from; half precision; other classes; files that do not fit the model.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

data data.h5
cat >job.yaml <<'YAML'
name: from-weights
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 4}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.02}}
regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]
sync: {local: sync, strategy: sma, period: 2, weights: samples}
YAML
cat >edit.py <<'PY'
# Writes IN's tensors to OUT: edit.py IN OUT half|bfloat|WITHOUT|+WITH|short
import json, struct, sys
blob = open(sys.argv[1], "rb").read()
n = int.from_bytes(blob[:8], "little")
head, data, how = json.loads(blob[8:8 + n]), blob[8 + n:], sys.argv[3]
out, body = {}, b""
for name, at in head.items():
    if name == "__metadata__" or name == how:
        continue
    a, b = at["data_offsets"]
    part, kind = data[a:b], at["dtype"]
    values = struct.unpack(f"<{(b - a) // 4}f", part)
    if how == "half":
        part, kind = struct.pack(f"<{len(values)}e", *values), "F16"
    if how == "bfloat":
        part, kind = b"".join(part[i + 2:i + 4] for i in range(0, len(part), 4)), "BF16"
    out[name] = {"dtype": kind, "shape": at["shape"], "data_offsets": [len(body), len(body) + len(part)]}
    body += part
if how[0] == "+":
    out[how[1:]] = dict(out["fc3.bias"])
text = json.dumps(out).encode()
open(sys.argv[2], "wb").write(len(text).to_bytes(8, "little") + text + (body[:-4] if how == "short" else body))
PY

train begin 4 job.yaml --run-dir begin
ended begin 0
check "exported" "$GEOTRAIN" export begin begin.safetensors
start() { train "$1" 4 job.yaml --run-dir "$1" --set "train.init=$2" "${@:3}"; }
start checkpoint begin/final.h5
start tensors begin.safetensors
ended "from safetensors" 0
check "the bits of a start from the checkpoint" same "$(field tensors params_sha256)" "$(field checkpoint params_sha256)"
check "info --check reads it" "$GEOTRAIN" info job.yaml --check --set train.init=begin.safetensors

# A model in half precision is near the other one.
for how in half bfloat; do
  "$python" edit.py begin.safetensors $how.safetensors $how
  start $how $how.safetensors --set train.optimizer.lr=1e-30
  ended "$how precision" 0
  "$GEOTRAIN" export $how $how-back.safetensors >/dev/null
done
cat >near.py <<'PY'
import json, struct, sys
def read(path):
    blob = open(path, "rb").read()
    n = int.from_bytes(blob[:8], "little")
    head, data = json.loads(blob[8:8 + n]), blob[8 + n:]
    return {k: struct.unpack(f"<{(b - a) // 4}f", data[a:b]) for k, v in head.items() if k[0] != "_" for a, b in [v["data_offsets"]]}
a, b, limit = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
assert a.keys() == b.keys()
worst = max(abs(x - y) / (abs(x) + 1e-3) for k in a for x, y in zip(a[k], b[k]))
assert 0 < worst <= limit, worst
PY
check "F16 keeps eleven bits" "$python" near.py begin.safetensors half-back.safetensors 4.9e-4
check "BF16 keeps eight bits" "$python" near.py begin.safetensors bfloat-back.safetensors 7.9e-3

# Other classes: the last layer begins anew, in every region alike.
"$GEOTRAIN" data synth five.h5 --train 600 --test 60 --classes 5 >/dev/null
start five begin.safetensors --set data.path=five.h5
ended "five classes" 0 'train.init begin.safetensors: fc3.weight is 10 x 84 there and 5 x 84 here, so it begins with random values'
check "said once" same "$(grep -c 'fc3.weight is' err)" 1

start other begin.safetensors --set model.name=mlp
ended "another model" 4 "train.init begin.safetensors has a tensor conv1.bias, and model mlp has none of this name"
"$python" edit.py begin.safetensors less.safetensors conv2.bias
start less less.safetensors
ended "without a tensor" 4 "train.init less.safetensors has no tensor conv2.bias; expected all tensors of model lenet5"
"$python" edit.py begin.safetensors more.safetensors +fc4.bias
start more more.safetensors
ended "with a layer more" 4 "has a tensor fc4.bias, and model lenet5 has none of this name"
train mlp 4 job.yaml --run-dir mlp --set 'model={name: mlp, mlp: [8]}'
"$GEOTRAIN" export mlp mlp.safetensors >/dev/null
start wider mlp.safetensors --set 'model={name: mlp, mlp: [9]}'
ended "a wider layer" 4 "mlp.safetensors: mlp.0.weight is 8 x 784; expected 9 x 784, as in model mlp of this job"
"$python" edit.py begin.safetensors short.safetensors short
start none none.h5
ended "no file" 4 "train.init none.h5"
start short short.safetensors
ended "cut off" 4 "short.safetensors: tensor .* has no valid type, shape and position"
finish
