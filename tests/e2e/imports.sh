# processors: 1
# data import of the files that other programs write: arrays of NumPy, their values compared with
# numpy's; with --full, an array larger than the memory.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python=/usr/bin/python3
if ! "$python" -c 'import h5py' 2>/dev/null; then
  skip "values, by numpy" "$python has no h5py (Debian: python3-h5py)"
  finish
fi

# import NAME ARGUMENTS...: its output goes to out and err.
import() {
  "$GEOTRAIN" data import "$@" >out 2>err
  code=$?
}

# ---- arrays of NumPy ------------------------------------------------------------------------------

"$python" - <<'PY'
import numpy as np, os
r = np.random.default_rng(1)
for dtype in ('u1', 'i1', '<u2', '>i4', '<i8', '<f2', '>f4', '<f8', '?'):
    x, y = r.integers(0, 2 if dtype == '?' else 120, (60, 5, 4, 3)).astype(dtype), r.integers(0, 3, 60)
    name = dtype.strip('<>?') or 'b1'
    os.mkdir(name)
    for k, a in zip(('x_train', 'y_train', 'x_test', 'y_test'), (x[:50], y[:50], x[50:], y[50:])): np.save(f'{name}/{k}', a)
    (np.savez, np.savez_compressed)[len(dtype) % 2](name, train_images=x[:50], train_labels=y[:50, None], test_images=x[50:], test_labels=y[50:], val_images=y)
PY
for type in u1 i1 u2 i4 i8 f2 f4 f8 b1; do
  for source in $type $type.npz; do
    import npy "$source" "$source.h5"
    ended "$source" 0 "wrote $source.h5"
  done
  check "$type: numpy's values" "$python" - "$type" <<'PY'
import h5py, numpy as np, sys
for end in ('.h5', '.npz.h5'):
    with h5py.File(sys.argv[1] + end) as f:
        for s in ('train', 'test'):
            x = np.load(f'{sys.argv[1]}/x_{s}.npy')
            assert (f[s]['x'][:] == x.astype('f4')).all() and f[s]['x'].dtype == ('u1' if x.dtype == 'u1' else 'f4')
            assert (f[s]['y'][:] == np.load(f'{sys.argv[1]}/y_{s}.npy')).all()
PY
done
head -c 400 f8/x_train.npy >x && mv x f8/x_train.npy
import npy f8 out.h5
ended "a file cut short" 3 'f8/x_train.npy: ends before its 50 rows do; expected a whole file'
check "nothing is left" same "$(ls -A | grep out.h5)" ""
head -c 200000 /dev/zero >long.txt
(trap '' XFSZ && ulimit -f 100 && exec "$GEOTRAIN" data import text long.txt out.h5 >out 2>err)
code=$?
ended "no space for the file" 3 'out.h5: writing failed .File too large'
check "no space: nothing is left" same "$(ls -A | grep out.h5)" ""

# ---- tables as numbers ----------------------------------------------------------------------------

"$python" - <<'PY'
import random
r = random.Random(3)
with open('t.csv', 'w') as out:
    out.write('age,city,income,y\n')
    for i in range(900):
        age, city = r.randrange(18, 90), r.choice('abc')
        out.write(f'{age},{city},{r.gauss(3e4, 9e3):.2f},{int(age > 50) ^ (city == "b")}\n')
PY
import csv t.csv t.h5 --label y --as numbers --seed 2
ended "a table as numbers" 0 'wrote t.h5'
"$GEOTRAIN" data info t.h5 >info
check "columns and classes" grep -qE '^shape +1 x 1 x 5 float32' info
check "numpy's mean and deviation" "$python" - <<'PY'
import h5py, numpy as np
with h5py.File('t.h5') as f:
    x, names = f['train/x'][:, 0, 0].astype('f8'), [n.decode() for n in f['vocabulary'][:]]
    assert names[0] == 'age' and sorted(names[1:4]) == ['city = a', 'city = b', 'city = c'] and names[4] == 'income', names
    assert (x[:, 1:4].sum(1) == 1).all()
    for c in (0, 4):
        assert abs(f.attrs['mean'][c] / x[:, c].mean() - 1) < 1e-6 and abs(f.attrs['std'][c] / x[:, c].std() - 1) < 1e-6
    assert (f.attrs['mean'][1:4] == 0).all() and (f.attrs['std'][1:4] == 1).all()
PY
sed '8s/^[0-9]*/NA/' t.csv >na.csv
import csv na.csv na.h5 --label y
ended "a column of numbers with a text" 0 'na.csv: line 8 has .NA. in column age, where 899 of 900 values are numbers, so its values are categories'
check "said once" same "$(wc -l <err)" 1
import csv t.csv na.h5 --label y
check "no warning of numbers or categories" same "$(wc -c <err)" 0
cat >job.yaml <<'YAML'
name: table
model: {name: mlp, mlp: [32, 32]}
data: {path: t.h5, partition: {shares: [2, 1]}}
train: {until: {epochs: 20}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}}
regions: [{name: east, ranks: 2}, {name: west, ranks: 2}]
sync: {local: sync, strategy: sma, period: 4, weights: samples}
YAML
train "a table" 4 job.yaml --run-dir one
ended "a table" 0
check "it is learnt" awk "BEGIN { exit !($(field one test_accuracy) > 0.9) }"
"$GEOTRAIN" data split t.h5 --regions 2 --shares 2,1 --seed 1 >/dev/null
own=(--set data.path=null --set data.partition.by=file --set regions.0.data.path=t-1.h5 --set regions.1.data.path=t-2.h5)
train "a file in each region" 4 job.yaml --run-dir own "${own[@]}"
ended "a file in each region" 0 'those of all their training rows are used, mean and std of 5 columns'
check "the columns of all regions are normalised alike, to the bit" same "$(field own params_sha256)" "$(field one params_sha256)"
"$GEOTRAIN" eval own t.h5 >of-whole 2>/dev/null
"$GEOTRAIN" eval own t-2.h5 >of-part 2>/dev/null
check "a model is scored as it was trained, on whatever file" cmp of-whole of-part
check "scored" grep -q accuracy of-whole
train "a table cannot be cropped" 4 job.yaml --run-dir bad --set data.augment=crop-flip
ended "a table cannot be cropped" 2 'data.augment is crop-flip, but the samples of t.h5 are rows of a table; expected images'
printf 'age,city,income,y\n30,d,1,1\n40,a,2,0\n' >d.csv
import csv d.csv d.csv d.h5 --label y --as numbers
train "other columns" 4 job.yaml --run-dir bad "${own[@]}" --set regions.1.data.path=d.h5
ended "other columns" 3 'region west has samples of 1 x 1 x 4 float32'

# 1,000 columns keep 256 MiB of numbers together; 2^16 each would be 500 MiB
if [ "$full" = yes ]; then
  "$python" -c 'print(*(f"c{i}" for i in range(1000)), "y", sep=",")
for i in range(40000): print("7," * 1000 + str(i % 2))' >wide.csv
  (ulimit -v 600000 && exec "$GEOTRAIN" data import csv wide.csv wide.h5 --label y >out 2>err)
  code=$?
  ended "a wide table" 0 'wrote wide.h5'
  rm -f wide.csv wide.h5
fi

# ---- progress, and Ctrl-C -------------------------------------------------------------------------

mkdir slow
"$python" - <<'PY'
import numpy as np
with open('slow/x.npy', 'wb') as out: # zeros that need no space on the disk
    np.lib.format.write_array_header_2_0(out, {'descr': '|u1', 'fortran_order': False, 'shape': (500000, 1000)})
    out.truncate(out.tell() + 500000000)
np.save('slow/y', np.arange(500000) % 2)
PY
"$python" - "$GEOTRAIN" data import npy slow bar.h5 >bar <<'PY'
import os, pty, sys
pty.spawn(sys.argv[1:])
PY
check "a bar on a terminal" grep -qE $'\rdata import: \\[#* *\\] [0-9]+ of 500000 samples written, [0-9]+ s left\033\\[K' bar
check "it is removed" grep -qE $'\r\033\\[Kwrote bar.h5' bar
rm bar.h5
import npy u1 bar.h5
check "no bar in a file" same "$(wc -c <err)" 0
for signal in INT TERM HUP; do
  env --default-signal=$signal "$GEOTRAIN" data import npy slow slow.h5 >out 2>err &
  for i in $(seq 200); do
    size=$(stat -c %s .slow.h5.tmp-* 2>/dev/null)
    [ "${size:-0}" -gt 20000000 ] && break
    pause 0.02
  done
  kill -$signal $!
  { wait $!; } 2>/dev/null
  check "$signal ends an import" same "$?" $((128 + $(kill -l $signal)))
  check "$signal leaves nothing behind" same "$(ls -A | grep -c slow.h5)" 0
  check "$signal: it had begun" test "${size:-0}" -gt 20000000
done

# ---- larger than the memory -----------------------------------------------------------------------

if [ $full = yes ] && [ "$(df --output=avail -B1G . | tail -n 1)" -gt 8 ]; then
  mkdir large
  "$python" - <<'PY'
import numpy as np
n = 805306
with open('large/x.npy', 'wb') as out: # zeros that need no space on the disk
    np.lib.format.write_array_header_2_0(out, {'descr': '<f8', 'fortran_order': False, 'shape': (n, 1000)})
    out.truncate(out.tell() + 8000 * n)
np.save('large/y', np.arange(n) % 2)
PY
  (ulimit -v 600000 && exec "$GEOTRAIN" data import npy large large.h5 >out 2>err)
  code=$?
  ended "6.4 GB with 600 MB of memory" 0 'wrote large.h5 .3.0 GiB'
  rm large.h5
fi
finish
