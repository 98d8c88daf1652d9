# processors: 1
# Data sets that cannot be used: exit 3, with the file and the fault; regions whose data do not
# match.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=800
job job.yaml
python=/usr/bin/python3
if ! "$python" -c 'import h5py, numpy' 2>/dev/null; then
  skip "damaged data sets" "$python has no h5py (Debian: python3-h5py)"
else
  "$python" - <<'PYTHON' || fail "damaged data sets" "they could not be made"
import shutil
import h5py, numpy as np

def change(name, how):
    shutil.copy("data.h5", name)
    with h5py.File(name, "r+") as f:
        how(f)

def replace(f, path, array):
    keep = dict(f[path].attrs)
    del f[path]
    f.create_dataset(path, data=array)
    for k, v in keep.items():
        f[path].attrs[k] = v

def images(f): return f["train/x"][...]
def labels(f): return f["train/y"][...]
def nan(f):
    x = images(f).astype(np.float32) / 255
    x[17, 3, 3] = np.nan
    replace(f, "train/x", x)
    replace(f, "test/x", f["test/x"][...].astype(np.float32) / 255)
def label(f):
    y = labels(f)
    y[5] = 10
    replace(f, "train/y", y)
change("flat.h5", lambda f: replace(f, "train/x", images(f).reshape(len(labels(f)), -1)))
change("type.h5", lambda f: replace(f, "train/x", images(f).astype(np.int64)))
change("nan.h5", nan)
change("count.h5", lambda f: replace(f, "train/y", labels(f)[:-1]))
change("label.h5", label)
change("nolabels.h5", lambda f: f.__delitem__("train/y"))
change("test.h5", lambda f: replace(f, "test/x", f["test/x"][:, :20, :20]))
def crop(f):
    for split in "train/x", "test/x":
        replace(f, split, f[split][:, :8, :8])
change("tiny.h5", crop)
PYTHON
  # wrong FILE WORD...: by ranks the first two, the others by the check before a run, which reads them alike.
  wrong() {
    local file=$1
    shift
    case $full,$file in
      yes,* | *,flat.h5 | *,nan.h5) train "$file" 4 job.yaml --run-dir run --set "data.path=$file" ;;
      *)
        plain info job.yaml --check --set "data.path=$file"
        ;;
    esac
    ended "$file" 3 "$file" "$@"
    check "$file: said once" same "$(grep -c '^geotrain: ' err)" 1
  }
  wrong flat.h5 'train/x'
  wrong type.h5 'train/x' 'uint8'
  wrong nan.h5 'train/x' '[Nn]a[Nn]|finite'
  wrong count.h5 '799' '800'
  wrong label.h5 'train/y' '10'
  wrong nolabels.h5 'train/y'
  wrong test.h5 'test/x' '20'
  # The last batch of an epoch is one sample, and ResNet-18 has only one value per channel left with
  # such images.
  train "a batch of a single value" 4 job.yaml --run-dir run --set model.name=resnet18 --set train.batch=399 --set train.until.steps=1 --set data.path=tiny.h5
  ended "a batch of a single value" 2 'region east has 400 samples in batches of 399' 'the last of an epoch has 1;' 'images of 8 x 8' 'expected 2 or more'
  check "a batch of a single value: said once" same "$(grep -c '^geotrain: ' err)" 1
fi

train "no file" 4 job.yaml --run-dir run --set data.path=nothing.h5
ended "no file" 3 'nothing.h5'
head -c 5000 data.h5 >cut.h5
train "a file cut short" 4 job.yaml --run-dir run --set data.path=cut.h5
ended "a file cut short" 3 'cut.h5'

# Only one region's file is bad: every rank ends, and the message names it.
sed -e 's/{name: west, ranks: 2}/{name: west, ranks: 2, data: {path: cut.h5}}/' job.yaml >own.yaml
train "one region's file" 4 own.yaml --run-dir run
ended "one region's file" 3 'cut.h5'
check "nothing is left behind" test ! -e run
finish
