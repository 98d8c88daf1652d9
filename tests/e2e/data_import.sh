# processors: 1
# data import of CIFAR and libFM: the contents of the data set; wrong files give exit 3 and one
# sentence; training on images that are cropped and flipped.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

bytes() { head -c "$1" /dev/zero | tr '\0' "$2"; }
record() { bytes 1 "\\$1" && bytes 1024 '\100' && bytes 1024 '\200' && bytes 1024 '\300'; }

# import NAME FORMAT FOLDER: its output goes to out and err.
import() {
  plain data import "$1" "$2" out.h5
}
# refused NAME WORD...: exit 3, one sentence, no file
refused() {
  ended "$1" 3 "${@:2}"
  check "$1: one sentence" same "$(wc -l <err)" 1
  check "$1: nothing is left" same "$(ls -d out.h5* 2>/dev/null)" ""
}

# ---- CIFAR --------------------------------------------------------------------------------------------------------------------------

mkdir cifar
for label in 1 2 3; do record "$label"; done >cifar/data_batch_2.bin
record 4 | gzip >cifar/data_batch_5.bin.gz
import cifar cifar
refused "no test file" 'cifar: test_batch.bin is missing'
record 5 >cifar/test_batch.bin
import cifar cifar
ended "cifar" 0 'wrote out.h5' 'cifar: found 2 of the 5 training files of cifar-10: 4 training and 1 test samples'
"$GEOTRAIN" data info out.h5 >info
for word in 'name +cifar$' '32 x 32 x 3 uint8' 'classes +10$' 'train +4$' 'mean +0.250980 0.501961 0.752941$'; do check "cifar: $word" grep -qE "$word" info; done
rm out.h5
record 4 | gzip | head -c 40 >cifar/data_batch_5.bin.gz
import cifar cifar
refused "gzip cut short" 'data_batch_5.bin.gz: its gzip data end before their check sum'
record 12 >cifar/data_batch_5.bin && rm cifar/data_batch_5.bin.gz # octal: label 10
import cifar cifar
refused "a label of 10" 'data_batch_5.bin: the label of record 0 is 10; expected 0 to 9'
head -c 5000 cifar/data_batch_2.bin >cifar/data_batch_5.bin
import cifar cifar
refused "half a record" 'data_batch_5.bin: ends after 5000 bytes, 1927 bytes into record 1'

# ---- libFM --------------------------------------------------------------------------------------------------------------------------

mkdir clicks
printf '1 0:1 3:1\n-1 2:1 4:1\n0 1:1 3:1\n' | gzip >clicks/shop.train.libfm.gz
printf '1 9:1 3:1\n-1 2:1 4:1\n' >clicks/shop.test.libfm
import libfm clicks
ended "libfm" 0 'wrote out.h5'
"$GEOTRAIN" data info out.h5 >info
for word in 'name +shop$' '1 x 1 x 2 int32' 'features +10$' 'classes +2$' 'train +3$' '^0 +2 +1$'; do check "libfm: $word" grep -qE "$word" info; done
check "libfm: no mean" same "$(grep -c mean info)" 0
mv out.h5 clicks.h5
for case in '1 0:1~1 fields' '1 0:1 x:1~field 2 of line 3 is .x' '~line 3 is empty' '1 0:1 -3:1~`-3`' '1 0:1 99999999999:1~`99999999999`' '1 0:1 3:0.5~value in field 2 .*only categories'; do
  printf '1 0:1 3:1\n-1 2:1 4:1\n%s\n1 0:1 3:1\n' "${case%%~*}" >clicks/shop.test.libfm
  import libfm clicks
  refused "libfm: ${case#*~}" "clicks/shop.test.libfm: .*${case#*~}"
done
rm clicks/shop.test.libfm
import libfm clicks
refused "no test text" 'clicks: shop.test.libfm is missing'
import lbfm clicks
ended "an unknown format" 2 'did you mean libfm'

# ---- augmentation ---------------------------------------------------------------------------------------------------------------------

data_train=400
job job.yaml
hash_of() { # RUN WORDS...
  local run=$1
  shift
  completes "$run" 4 job.yaml --run-dir "$run" --set train.until.steps=6 --set 'wan.links=[]' "$@"
  hash=$(field "$run" params_sha256)
}
hash_of plain && plain=$hash
hash_of cropped --set data.augment=crop-flip && cropped=$hash
hash_of again --set data.augment=crop-flip --set sync.local=sync && again=$hash
check "a run with augmentation repeats" same "$again" "$cropped"
check "augmentation changes training" test "$plain" != "$cropped"
check "the resolved job says it" grep -q 'augment: crop-flip' cropped/job.yaml
train "an unknown augmentation" 4 job.yaml --run-dir run --set data.augment=flip
ended "an unknown augmentation" 2 'data.augment is "?flip"?; .*crop-flip'
train "ids cannot be cropped" 4 job.yaml --run-dir run --set data.path=clicks.h5 --set model.name=dummy --set data.augment=crop-flip
ended "ids cannot be cropped" 2 'data.augment is crop-flip, but the samples of clicks.h5 are ids'
check "nothing is left behind" test ! -e run
finish
