# processors: 1
# DeepFM on clicks that depend only on pairs of ids: two regions learn them; the bytes on the WAN; a
# checkpoint evaluates, exports and resumes with the widths of its job; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmodel.sh"

# clicks LINES: user 0-19, thing 20-39, and an id without information, 40-49; a click if user and
# thing are both even or both odd.
clicks() {
  awk -v n="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
      u = int(rand() * 20); t = int(rand() * 20); x = 40 + int(rand() * 10)
      print ((u + t) % 2 == 0 ? 1 : -1), u ":1", 20 + t ":1", x ":1"
    }
    print -1, "0:1 21:1 49:1" # the largest id
  }'
}
mkdir clicks
clicks 2000 1 >clicks/clicks.train.libfm
clicks 400 2 >clicks/clicks.test.libfm
check "clicks are imported" "$GEOTRAIN" data import libfm clicks clicks.h5
model_job clicks 'name: deepfm, embedding: 5, mlp: [16, 8]' 160 32 'name: adam, lr: 0.02' 'epochs: 0' 40
params=$((50 * 5 + 50 + 1 + 16 * 15 + 16 + 8 * 16 + 8 + 8 + 1))

train "deepfm" 5 job.yaml --run-dir run
ended "deepfm" 0 "clicks: deepfm, $params parameters" 'auc'
check "it learns the pairs" above "$(field run test_auc)" 0.95
sends_all "$params"

rebuilt 'auc' test_auc mlp.4.weight "PyTorch's"

refused "resumed with other widths" 2 'model.mlp is \[16, 8\] there and \[16, 9\] here' --run-dir run --resume --set 'model.mlp=[16, 9]' --set train.until.steps=170
train "resumed" 5 job.yaml --run-dir run --resume --set train.until.steps=200
ended "resumed" 0 'auc'
checked "images for deepfm" 3 'images of .* model deepfm takes ids' --set data.path=images.h5
checked "ids for lenet5" 3 '3 ids each, below 50; model lenet5 takes images' --set 'model={name: lenet5}'
checked "widths for lenet5" 2 'model.embedding is given and model.name is lenet5' --set model.name=lenet5
"$GEOTRAIN" eval "$(last run)" images.h5 2>err
check "images for its checkpoint: exit 3" same "$?" 3

learns test_auc 0.95 0.9
finish
