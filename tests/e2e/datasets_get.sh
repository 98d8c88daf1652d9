# processors: 1
# datasets/get from local folders: published files are checked and imported, anything else is
# refused in one sentence, and no partial file is left.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

script=$GEOTRAIN_SOURCE/datasets/get

# get NAME WORDS...: one whole run; its output goes to out and err.
get() { bash "$script" "$@" --geotrain "$GEOTRAIN" >out 2>err; code=$?; }

# refused NAME CODE WORD...: one sentence, and no new file in the folder `to`.
refused() {
  local name=$1
  ended "$@"
  check "$name: one sentence" same "$(grep -vc -e downloading -e 'could not be downloaded' err)" 1
  check "$name: nothing is left" same "$(ls -A to 2>/dev/null)" "${left:-}"
}

# ---- files of the seven formats ---------------------------------------------------------------------------------------------------

bytes() { # N BYTE: N bytes
  head -c "$1" /dev/zero | tr '\0' "$2"
}
idx() { # PREFIX COUNT: COUNT images of 2 x 2 and their labels, of two classes
  { printf '\0\0\10\3\0\0\0\'"$(printf %o "$2")"'\0\0\0\2\0\0\0\2' && bytes $((4 * $2)) '\100'; } | gzip >"$1-images-idx3-ubyte.gz"
  { printf '\0\0\10\1\0\0\0\'"$(printf %o "$2")" && bytes $(($2 - 1)) '\1' && printf '\0'; } >"$1-labels-idx1-ubyte"
}
record() { # LABEL: one record of CIFAR-10
  bytes 1 "\\$1" && bytes 3072 '\200'
}
mkdir -p mnist cifar frappe imdb verse verses sessions tar/cifar-10-batches-bin archive reviews/aclImdb/{train,test}/{neg,pos}
idx mnist/train 5
idx mnist/t10k 3
for i in 1 2 3 4 5; do record "$i" >cifar/data_batch_$i.bin; done
record 7 | gzip >cifar/test_batch.bin.gz
printf '1 0:1 3:1\r\n-1 2:1 4:1\r\n' >frappe/frappe.train.libfm
printf '1 0:1 7:1\n' >frappe/frappe.test.libfm
cp cifar/*.bin tar/cifar-10-batches-bin
gzip -dc cifar/test_batch.bin.gz >tar/cifar-10-batches-bin/test_batch.bin
tar -C tar -czf archive/cifar-10-binary.tar.gz cifar-10-batches-bin
seq -s ' ' 400 >verse/input.txt
gzip -c verse/input.txt >verses/input.txt.gz
for split in train test; do
  printf 'label\trating\tid\ttext\n1\t9\t0\tgood film\n0\t1\t7\tbad\n' >imdb/imdb_$split.tsv
  printf 'A good\tfilm' >reviews/aclImdb/$split/pos/0_9.txt
  printf 'bad' >reviews/aclImdb/$split/pos/10_7.txt
  printf 'bad, two\nlines' >reviews/aclImdb/$split/neg/2_1.txt
done
printf '1 2 3\n2 4\n' >sessions/all_train_seq.txt
printf '\200\2]](K\1K\5ea.' >sessions/test.txt
tar -C reviews -czf reviews/aclImdb_v1.tar.gz aclImdb

# ---- what is not published is not taken --------------------------------------------------------------------------------------------

get mnist --from mnist --to to
refused "other MNIST" 3 'SHA-256 of train-images-idx3-ubyte is [0-9a-f]{64}; the published one is ba891046'
get cifar10 --from cifar --to to
refused "other CIFAR-10" 3 'SHA-256 of data_batch_1.bin is [0-9a-f]{64}; the published one is cee91656'
get cifar10 --from archive --to to
refused "another archive" 3 'SHA-256 of cifar-10-binary.tar.gz is [0-9a-f]{64}; the published one is c4a38c50'
get frappe --from frappe --to to
refused "another Frappe" 3 'frappe.train.libfm has 2 lines; the published one has 202027'
get imdb --from imdb --to to
refused "other reviews" 3 'imdb_train.tsv has 3 lines; the published one has 25001'
get diginetica --from sessions --to to
refused "other sessions" 3 'SHA-256 of all_train_seq.txt is [0-9a-f]{64}; the published one is dc7e3646'
get imdb --from reviews --to to
refused "another archive of reviews" 3 'SHA-256 of aclImdb_v1.tar.gz is [0-9a-f]{64}; the published one is c40f74a1'
get shakespeare --from verse --to to
refused "another text" 3 'SHA-256 of input.txt is [0-9a-f]{64}; the published one is 86c4e6aa'
seq -f '1 %g:1 3:1' 202027 >long
mkdir other && cp long other/frappe.train.libfm && cp frappe/frappe.test.libfm other
get frappe --from other --to to
check "the training file's sum is said" grep -qE 'no SHA-256 is published of frappe.train.libfm.*[0-9a-f]{64}' err
ended "another test file" 3 'SHA-256 of frappe.test.libfm is [0-9a-f]{64}; the published one is 2f087586'

# ---- but with --no-check, which says so ----------------------------------------------------------

# imported NAME FROM WORD...: data info of the imported file has these words
imported() {
  local name=$1 from=$2 word
  shift 2
  get "$name" --from "$from" --to made --no-check
  ended "$name from $from" 0 'nothing was verified'
  check "$name from $from: its path is all that is printed" same "$(cat out)" "made/$name.h5"
  "$GEOTRAIN" data info "made/$name.h5" >info 2>&1
  for word in "$@"; do check "$name from $from: $word" grep -qE "$word" info; done
  check "$name from $from: nothing else is left" same "$(ls -A made)" "$name.h5"
  rm -r made
}
imported mnist mnist '^name +mnist$' '2 x 2 x 1 uint8' 'train +5$' 'test +3$'
imported fashion-mnist mnist '^name +fashion-mnist$'
imported cifar10 cifar '^name +cifar10$' '32 x 32 x 3 uint8' 'train +5$'
imported cifar10 archive '32 x 32 x 3 uint8' 'train +5$' 'test +1$'
imported frappe frappe '^name +frappe$' '1 x 1 x 2 int32' 'features +8$' 'train +2$'
imported imdb imdb '^name +imdb$' '1 x 1 x 200 int32' 'features +5$' 'train +2$'
imported imdb reviews '^name +imdb$' '1 x 1 x 200 int32' 'features +8$' 'train +3$' '^0 +1 +1$' '^1 +2 +2$'
imported shakespeare verse '^name +shakespeare$' '1 x 1 x 129 int32' 'features +256$' 'train +10$' 'test +1$'
imported shakespeare verses 'train +10$'
mv verse/input.txt verse/tinyshakespeare.txt
imported shakespeare verse 'train +10$'
imported diginetica sessions '^name +diginetica$' '1 x 1 x 50 int32' 'features +6$' 'classes +5$' 'train +3$' 'test +1$'
if command -v curl >/dev/null; then
  imported cifar10 "file://$PWD/archive" 'train +5$'
  get mnist --from "file://$PWD/nowhere" --to to
  ended "a URL without the file" 3 'train-images-idx3-ubyte.gz could not be downloaded \(.+\)' 'train-images-idx3-ubyte.gz was not downloaded; .*--from'
else
  skip "URLs" "there is no curl"
fi

# ---- a data set that is missing ----------------------------------------------------------------------------------------------------

names=$(bash "$script" --help | sed -n 's/^  NAME *//p' | sed 's/,/ /g; s/ or / /')
check "seven data sets" same "$(wc -w <<<"$names")" 7
for name in $names; do
  plain data info "datasets/$name.h5"
  ended "$name is missing" 3 "datasets/$name.h5: cannot be opened \(.*\); .datasets/get $name. fetches and imports it"
done
plain data info datasets/my-mnist.h5
ended "another file is missing" 3 'cannot be opened \(.*\); expected an HDF5 data set'

# ---- the real files, where Debian's package has them --------------------------------------------------------------------------------

real=/usr/share/datasets/fashion-mnist
mkdir offline
printf '#!/bin/sh\nexit 6\n' | tee offline/curl >offline/wget
chmod +x offline/*
if [ -e "$real/train-images-idx3-ubyte.gz" ]; then
  get fashion-mnist --from "$real" --to real
  ended "the real Fashion-MNIST" 0
  check "the real Fashion-MNIST: nothing but its import is said" same "$(cat err)" "wrote real/fashion-mnist.h5 (52.6 MiB)"
  (
    PATH=$PWD/offline:$PATH # a download would fail
    get fashion-mnist --to package
    exit "$code"
  )
  code=$?
  ended "Debian's package without a network" 0 "taking the files of Debian's dataset-fashion-mnist"
  check "Debian's package: as with --from" same "$(sha256sum <real/fashion-mnist.h5)" "$(sha256sum <package/fashion-mnist.h5)"
  "$GEOTRAIN" data info real/fashion-mnist.h5 >info
  check "the real Fashion-MNIST: its classes have names" grep -qE '^9 +6000 +1000  Ankle boot$' info
  mkdir damaged && cp "$real"/* damaged && truncate -s -9 damaged/t10k-images-idx3-ubyte.gz
  left=
  get fashion-mnist --from damaged --to to
  refused "a damaged gzip file" 3 't10k-images-idx3-ubyte cannot be unpacked'
else
  skip "the real Fashion-MNIST" "$real is not there (Debian: dataset-fashion-mnist)"
fi

# ---- what else goes wrong -----------------------------------------------------------------------------------------------------------

mkdir -p to && echo old >to/cifar10.h5
left=cifar10.h5
rm cifar/test_batch.bin.gz
get cifar10 --from cifar --to to --no-check
refused "a file is missing" 3 'cifar has no test_batch.bin, with .gz or without'
record 7 | head -c 3000 >cifar/test_batch.bin
get cifar10 --from cifar --to to --no-check
ended "the import fails" 3 'test_batch.bin: ends after 3000 bytes'
check "the import fails: nothing is left" same "$(ls -A to)" cifar10.h5
(
  trap '' XFSZ
  ulimit -f 1 # as on a full disk, a write fails
  bash "$script" mnist --from "$PWD/damaged" --to to --geotrain "$GEOTRAIN" 2>&1 | cat >err.full
  exit "${PIPESTATUS[0]}"
) >out 2>err
code=$?
cat err.full >>err
[ -d damaged ] && refused "no space" 3 'train-images-idx3-ubyte.gz cannot be copied to to/[^:]*: '
check "an older data set stays" same "$(cat to/cifar10.h5)" old

get minst
ended "an unknown name" 2 '`minst` is not known; mnist, fashion-mnist'
get mnist --form x
ended "an unknown option" 2 'option --form is not known'
get
ended "no name" 2 'a name is needed'
get mnist --from nowhere --to to
refused "no folder" 3 'nowhere is not a folder'
bash "$script" mnist --from mnist --to to --geotrain ./nothing >out 2>err
code=$?
refused "no program" 3 './nothing cannot be run'
mkdir tools
for tool in bash dirname cat; do ln -s "$(command -v "$tool")" tools; done
PATH=$PWD/tools bash "$script" mnist --to to --geotrain "$GEOTRAIN" >out 2>err
code=$?
refused "neither curl nor wget" 3 'there is neither curl nor wget'
finish
