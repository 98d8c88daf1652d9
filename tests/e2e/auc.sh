# processors: 1
# Two classes: records, summary, final output and `eval` have the AUC of the test set, the same as
# computed by another program; there is none with more labels, or for the mean if no mean is formed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

job job.yaml
check "a set of two classes" "$GEOTRAIN" data synth two.h5 --classes 2 --train 1600 --test 2500
two="--set data.path=two.h5 --set model.name=dummy --set train.until.steps=12 --set train.optimizer.lr=0.002 --set train.eval_every.steps=5 --set checkpoint.every.steps=100"

# region_field RUN REGION KEY: a field of a region in summary.json.
region_field() { sed -nE '/"name": "'"$2"'"/,/^    \}/s/^ *"'"$3"'": "?([^",]*)"?,?$/\1/p' "$1/summary.json" | head -n 1; }
learned() { awk -v a="$1" 'BEGIN {exit !(a > 0.5 && a <= 1)}'; }
# A pair of the test set counts 6e-7; rounding may reverse the order of a few pairs.
near() { awk -v a="$1" -v b="$2" 'BEGIN {d = a - b; exit !(a != "" && b != "" && d < 5e-6 && d > -5e-6)}' || { echo "      found '$1', needed '$2'" && false; }; }
evaluated() { "$GEOTRAIN" eval "$1" two.h5 | sed -nE 's/^accuracy .*  auc ([0-9.]+)  \(.*/\1/p'; }

# shellcheck disable=SC2086
train "two classes" 4 job.yaml --run-dir run $two
ended "two classes" 0 'test accuracy  [0-9.]+  auc 0\.[0-9]+  loss' 'samples +auc +loss'
check "the AUC of the mean model" learned "$(field run test_auc)"
check "records: evaluations have it" same "$(grep -c '"event":"eval".*"auc":0\.[5-9]' run/east.jsonl)" 2
last=run/ckpt/$(newest_round run)
for region in east west; do
  check "the AUC of $region" learned "$(region_field run $region test_auc)"
  check "eval finds it in the checkpoint of $region" near "$(evaluated "$last/$region.h5")" "$(region_field run $region test_auc)"
done

# threads WORDS...: the figures on standard output, the number of threads on standard error.
threads() { "$GEOTRAIN" eval "$last/west.h5" two.h5 "$@" 2>threads.err; }
figures=$(threads --threads 1)
check "eval says its threads" grep -q '1 thread: --threads' threads.err
for n in $([ $full = no ] || echo 2 3) 7; do check "eval: the same with $n threads" same "$(threads --threads $n)" "$figures"; done
check "eval: OMP_NUM_THREADS caps them" same "$(OMP_NUM_THREADS=1 threads)" "$figures"
check "and it says so" grep -qE '1 thread: (OMP_NUM_THREADS|one per core)' threads.err
threads --threads 0 >/dev/null
check "--threads 0: exit 2" same "$? $(grep -c 'from 1 to' threads.err)" "2 1"

# All pairs of the test set in float64, from the parameters in the checkpoint.
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
  other=$("$python" - "$last/west.h5" two.h5 <<'PY'
import sys, h5py, numpy as np
with h5py.File(sys.argv[2], "r") as f:
    x, y = f["test/x"][:].astype(np.float64) / 255, f["test/y"][:]
    x = ((x - f.attrs["mean"]) / f.attrs["std"]).reshape(len(y), -1)
with h5py.File(sys.argv[1], "r") as f:
    params = f["model/params"][:].astype(np.float64)
logits = x @ params[:-2].reshape(2, -1).T + params[-2:]
score = logits[:, 1] - logits[:, 0]
d = score[y == 1][:, None] - score[y == 0][None, :]
print("%.9f" % ((d > 0) + 0.5 * (d == 0)).mean())
PY
  )
  check "numpy finds the same" near "$other" "$(region_field run west test_auc)"
else
  skip "the AUC by numpy" "$python has no h5py (Debian: python3-h5py)"
fi

# shellcheck disable=SC2086
train "strategy none, virtual clock" 4 job.yaml --run-dir none $two --set sync.strategy=none --clock virtual --set compute.samples_per_s=1500
ended "strategy none, virtual clock" 0 'see the regions'
check "none: no mean model, no AUC" same "$(field none test_auc)" null
check "none: the AUC of east" learned "$(region_field none east test_auc)"
check "none: evaluations have it" same "$(grep -c '"event":"eval".*"auc":0\.[5-9]' none/west.jsonl)" 2

train "ten classes" 4 job.yaml --run-dir ten --set train.until.steps=8 --set train.eval_every.steps=4 --set model.name=dummy
ended "ten classes" 0 'test accuracy  [0-9.]+  loss' 'accuracy +loss'
check "ten classes have none" same "$(field ten test_auc) $(region_field ten west test_auc) $(grep -c '"event":"eval".*auc' ten/east.jsonl)" "null null 0"
finish
