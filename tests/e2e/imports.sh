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
